"""Added and removed lines are counted as `git diff --numstat` counts them."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path

from whyfor.git.line_changes import compare_trees, read_counted_changes, read_line_changes


def _git(folder: Path, *words: str) -> str:
    own = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
    done = subprocess.run(
        ["git", *own, *words], cwd=folder, check=True, capture_output=True, text=True
    )
    return done.stdout


def _commit(folder: Path, texts: dict[str, list[str]]) -> str:
    for name, lines in texts.items():
        (folder / name).write_text("".join(f"{line}\n" for line in lines))
    _git(folder, "add", "-A")
    _git(folder, "commit", "-q", "-m", "change")
    return _git(folder, "rev-parse", "HEAD").strip()


def test_counts_are_numstats_where_a_change_can_be_read_in_two_ways(tmp_path: Path) -> None:
    """Lines that stand in many places: git's answer depends on the lines that it shows around."""
    rng = random.Random(7)
    words = ["", "}", "return", "+plus", "-minus", "@@ -1 +1 @@", "diff --git a b", "a = 1", "b"]
    old = {f"f{n}.txt": rng.choices(words, k=rng.randrange(300)) for n in range(60)}
    new = {}
    for name, lines in old.items():
        changed = list(lines)
        for _ in range(rng.randrange(12)):
            at = rng.randrange(len(changed) + 1)
            changed[at : at + rng.randrange(30)] = rng.choices(words, k=rng.randrange(30))
        new[name] = changed
    _git(tmp_path, "init", "-q", "-b", "main")
    first, second = _commit(tmp_path, old), _commit(tmp_path, new)
    wanted = {}
    for line in _git(tmp_path, "diff", "--numstat", first, second).splitlines():
        added, removed, name = line.split("\t")
        wanted[name] = (int(added), int(removed))
    one = dict(read_counted_changes(tmp_path, [second, first]))
    both = compare_trees(tmp_path, first, second, [], counted=True)
    for changes in (one[second], both):
        assert {change.path: (change.plus, change.removed) for change in changes} == wanted
    for change in both:
        before, after = list(old[change.path]), list(new[change.path])
        for at, plus, gone, minus in reversed(change.hunks):
            if plus:
                del after[at - 1 : at - 1 + plus]
            if minus:
                del before[gone - 1 : gone - 1 + minus]
        assert before == after, "without its lines, both texts are the same"
    # many files that are renamed and changed at once are found as git finds them
    for name in ("a", "b"):
        for path in tmp_path.glob("*.txt"):
            path.unlink()
        texts = {f"{name}{n}.txt": [f"{n} {step}" for step in range(5)] for n in range(401)}
        moved = _commit(tmp_path, {path: [*own, name] for path, own in texts.items()})
    counted = compare_trees(tmp_path, f"{moved}^", moved, [], counted=True)
    assert {(change.status, change.plus, change.removed) for change in counted} == {("R", 1, 1)}
    plain = dict(read_line_changes(tmp_path, [first]))[first]
    assert sum(change.plus for change in plain) == sum(map(len, old.values()))

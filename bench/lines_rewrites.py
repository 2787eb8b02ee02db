"""Rewrite the last commits of a laboratory as people do, and write down the truth of the new
ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from difflib import SequenceMatcher

from lines_lab import Lab, Owner

_UPSTREAM = [f"# upstream note number {number} of the team" for number in range(1, 7)]
_BASE = Owner("base")


@dataclass(frozen=True)
class Rewritten:
    """Commits and those that took their place."""

    before: list[str]
    after: list[str]


def rebase(lab: Lab, last: int) -> Rewritten:
    """The last commits onto a branch that put lines at the top of every file."""
    before = _last(lab, last)
    lab.now += 3_600_000
    lab.git("checkout", "-q", "-B", "upstream", f"{before[0]}^")
    _upstream(lab)
    lab.git("checkout", "-q", "-B", "rebased", before[-1])
    lab.git("rebase", "-q", "-X", "theirs", "--onto", "upstream", f"{before[0]}^")
    after = lab.git("rev-list", "--reverse", f"-n{last}", "HEAD").split()
    for old, new in zip(before, after, strict=True):
        _shifted(lab, old, new)
    return Rewritten(before, after)


def cherry_pick(lab: Lab, last: int) -> Rewritten:
    """The last commits onto such a branch, one by one."""
    before = _last(lab, last)
    lab.now += 3_600_000
    lab.git("checkout", "-q", "-B", "picked", f"{before[0]}^")
    _upstream(lab)
    lab.git("cherry-pick", "-X", "theirs", *before)
    after = lab.git("rev-list", "--reverse", f"-n{last}", "HEAD").split()
    for old, new in zip(before, after, strict=True):
        _shifted(lab, old, new)
    return Rewritten(before, after)


def squash(lab: Lab, last: int) -> Rewritten:
    """The last commits as one."""
    before = _last(lab, last)
    lab.now += 3_600_000
    lab.git("checkout", "-q", "-B", "squashed", before[-1])
    lab.git("reset", "-q", "--soft", f"{before[0]}^")
    lab.git("commit", "-q", "-m", "All of it")
    sha = lab.git("rev-parse", "HEAD")
    lab.record(sha, lab.count - last)
    return Rewritten(before, [sha])


def split(lab: Lab, _last_ones: int) -> Rewritten:
    """The last commit in two: of each file first one half of its changes, then the other. Nobody
    changes the work tree in between."""
    before = _last(lab, 1)
    lab.now += 3_600_000
    old = {}
    for path in lab.files:
        try:
            old[path] = lab.git("show", f"{before[0]}^:{path}").split("\n")
        except Exception:  # noqa: BLE001 - a file that is new in the commit
            old[path] = []
    lab.git("checkout", "-q", "-B", "split", before[0])
    lab.git("reset", "-q", "--hard", f"{before[0]}^")
    texts, truth = lab.texts[before[0]], lab.truth[before[0]]
    half_texts: dict[str, list[str]] = {}
    half_truth: dict[str, list[Owner]] = {}
    for path, lines in texts.items():
        half_texts[path], half_truth[path] = _half(old[path], lines, truth[path])
    first = _commit(lab, "The first half", half_texts, half_truth)
    rest = {path: list(owners) for path, owners in truth.items()}
    second = _commit(lab, "The other half", texts, rest)
    return Rewritten(before, [first, second])


OPERATIONS: dict[str, Callable[[Lab, int], Rewritten]] = {
    "rebase onto shifted text": rebase,
    "cherry-pick": cherry_pick,
    "squash": squash,
    "split": split,
}


def _last(lab: Lab, count: int) -> list[str]:
    lab.git("checkout", "-q", "main")
    return lab.git("rev-list", "--reverse", f"-n{count}", "main").split()


def _upstream(lab: Lab) -> None:
    for path in lab.git("ls-files").split("\n"):
        at = lab.repository / path
        at.write_text("".join(f"{line}\n" for line in [*_UPSTREAM, ""]) + at.read_text())
    lab.git("commit", "-qam", "Notes of the team")


def _shifted(lab: Lab, old: str, new: str) -> None:
    """The truth of a rebased commit: lines came above, as far as its text says so."""
    lab.truth[new], lab.texts[new] = {}, {}
    for path, owners in lab.truth[old].items():
        texts = lab.git("show", f"{new}:{path}").split("\n")
        above = len(texts) - len(lab.texts[old][path])
        same = texts[above:] == lab.texts[old][path]
        lab.texts[new][path] = texts
        judged = [*[_BASE] * above, *owners] if same else [Owner("unjudged")] * len(texts)
        lab.truth[new][path] = judged


def _half(old: list[str], new: list[str], owners: list[Owner]) -> tuple[list[str], list[Owner]]:
    blocks = SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    changed = [code for code in blocks if code[0] != "equal"]
    kept = set(changed[: (len(changed) + 1) // 2])
    texts: list[str] = []
    found: list[Owner] = []
    for code in blocks:
        _, first, last, start, stop = code
        if code in kept or code[0] == "equal":
            texts += new[start:stop]
            found += owners[start:stop]
        else:
            texts += old[first:last]
            found += [_BASE] * (last - first)
    return texts, found


def _commit(
    lab: Lab, message: str, texts: dict[str, list[str]], truth: dict[str, list[Owner]]
) -> str:
    lab.now += 60_000
    for path, lines in texts.items():
        (lab.repository / path).write_text("".join(f"{line}\n" for line in lines))
    lab.git("add", "-A")
    lab.git("commit", "-q", "--allow-empty", "-m", message)
    sha = lab.git("rev-parse", "HEAD")
    lab.texts[sha], lab.truth[sha] = texts, truth
    return sha

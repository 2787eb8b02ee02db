"""The change of one commit, as git tells it: odd names, renames, links, large files, and what
cannot be read."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.story.links.workshop import Clock, Repo
from whyfor.git import patch as patches
from whyfor.git.patch import PatchLine, patch


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    return Repo.made(tmp_path / "shop", Clock(1_700_000_000))


def _numstat(repo: Repo, sha: str) -> list[tuple[str, str]]:
    out = subprocess.run(
        ["git", "-C", str(repo.path), "show", "--numstat", "--format=", "-M", sha],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    return [
        (added, removed) for added, removed, _ in (line.split("\t", 2) for line in out.splitlines())
    ]


def test_lines_have_their_numbers_on_both_sides(repo: Repo) -> None:
    repo.commit("One", {"a.py": "one\ntwo\nthree\n"})
    (file,) = patch(repo.path, repo.commit("Two", {"a.py": "one\n2\nthree\nfour\n"})).files
    assert (file.path, file.status, file.added, file.removed) == ("a.py", "M", 2, 1)
    (hunk,) = file.hunks
    assert hunk.head == "@@ −1,3 +1,4 @@"
    assert hunk.lines == [
        PatchLine(" ", 1, 1, "one"),
        PatchLine("-", 2, None, "two"),
        PatchLine("+", None, 2, "2"),
        PatchLine(" ", 3, 3, "three"),
        PatchLine("+", None, 4, "four"),
    ]


def test_lines_that_look_like_a_diffs_own_are_lines(repo: Repo) -> None:
    text = "@@ -1,2 +3,4 @@\ndiff --git a/x b/x\n--- a/x\n+++ b/x\n\\ No newline\n:100644 100644\n"
    (file,) = patch(repo.path, repo.commit("Odd", {"odd.txt": text})).files
    assert [line.text for line in file.hunks[0].lines] == text.splitlines()


def test_names_no_shell_would_like(repo: Repo) -> None:
    names = [
        "tab\there.txt",
        "new\nline.txt",
        'quote".txt',
        "<img src=x>.txt",
        "Ünïcode.txt",
        ":colon.txt",
        "-dash.txt",
    ]
    sha = repo.commit("Names", {name: f"{name!r} has a line\n" for name in names})
    found = patch(repo.path, sha).files
    assert sorted(file.path for file in found) == sorted(names)
    assert all(
        file.added == 1 and file.hunks[0].lines[0].text == f"{file.path!r} has a line"
        for file in found
    )


def test_renames_links_binaries_and_modes(repo: Repo) -> None:
    body = "".join(f"line {n} of a file\n" for n in range(20))
    repo.commit("Before", {"a.py": body, "turns.txt": "plain\n", "tool.sh": "#!/bin/sh\n"})
    repo.git("mv", "a.py", "b.py")
    repo.write("b.py", body + "one more\n")
    (repo.path / "turns.txt").unlink()
    (repo.path / "turns.txt").symlink_to("b.py")
    (repo.path / "data.bin").write_bytes(b"\0\1\2")
    (repo.path / "tool.sh").chmod(0o755)
    sha = repo.commit("After")
    found = {file.path: file for file in patch(repo.path, sha).files}
    assert (found["b.py"].status, found["b.py"].old_path, found["b.py"].added) == ("R", "a.py", 1)
    assert found["data.bin"].added is None and found["data.bin"].hunks == []
    assert found["turns.txt"].status == "T" and len(found["turns.txt"].hunks) == 2
    assert found["tool.sh"].hunks == [] and (found["tool.sh"].added, found["tool.sh"].removed) == (
        0,
        0,
    )


def test_the_first_commit_and_a_deleted_file(repo: Repo) -> None:
    first = repo.sha("HEAD")
    assert [file.status for file in patch(repo.path, first).files] == ["A"]
    repo.git("rm", "-q", "README.md")
    repo.write("x", "x\n")
    assert {file.path: file.status for file in patch(repo.path, repo.commit("Gone")).files} == {
        "README.md": "D",
        "x": "A",
    }


def test_a_huge_change_is_read_as_far_as_it_fits(
    repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patches, "MOST", 20_000)
    sha = repo.commit(
        "Huge", {"a.txt": "small\n", "b.txt": "".join(f"line number {n}\n" for n in range(5000))}
    )
    found = patch(repo.path, sha)
    assert not found.whole
    assert [(file.path, str(file.added), file.whole) for file in found.files] == [
        ("a.txt", "1", True),
        ("b.txt", "5000", False),
    ]
    assert [(str(file.added), str(file.removed)) for file in found.files] == _numstat(repo, sha)


def test_a_line_without_end_is_cut(repo: Repo) -> None:
    (file,) = patch(repo.path, repo.commit("Minified", {"a.js": "x" * 50_000})).files
    assert len(file.hunks[0].lines[0].text) == patches.LINE_MAX


def test_nothing_is_known_of_a_commit_that_is_not_there(repo: Repo) -> None:
    found = patch(repo.path, "0" * 40)
    assert (found.files, found.whole) == ([], False)


def test_git_that_takes_too_long_is_not_waited_for(
    repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = tmp_path / "bin" / "git"
    slow.parent.mkdir()
    slow.write_text("#!/bin/sh\nexec sleep 60\n")
    slow.chmod(0o755)
    monkeypatch.setenv("PATH", f"{slow.parent}:/usr/bin:/bin")
    monkeypatch.setattr(patches, "SECONDS", 0.2)
    assert patch(repo.path, repo.path.name) == patches.Patch([], whole=False)

"""Commits and changes as real git tells them, whatever people's names, files and settings are."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from whyfor.git import history
from whyfor.git.history import (
    FileChange,
    commits,
    head_commit,
    patch_id,
    read_changes,
    resolve_commits,
)
from whyfor.git.line_changes import LineChange, read_line_changes
from whyfor.git.place import GitDir
from whyfor.model.errors import BadInput


def patch_ids(folder: Path, shas: list[str]) -> dict[str, str]:
    found = {sha: patch_id(changed) for sha, changed in read_changes(folder, shas)}
    return {sha: known for sha, known in found.items() if known is not None}


class Repository:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._clock = 1_780_000_000
        folder.mkdir(parents=True)
        self.git("init", "-q", "-b", "main")
        self.git("config", "user.name", "Ada")
        self.git("config", "user.email", "ada@example.org")

    def git(
        self, *arguments: str, given: bytes | None = None, env: dict[str, str] | None = None
    ) -> str:
        self._clock += 60
        dates = dict.fromkeys(("GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE"), f"{self._clock} +0000")
        done = subprocess.run(
            ["git", *arguments],
            cwd=self.folder,
            input=given,
            capture_output=True,
            check=True,
            env={**os.environ, **dates, **(env or {})},
        )
        return done.stdout.decode("utf-8", "replace").strip()

    def write(self, name: str, text: str | bytes) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode() if isinstance(text, str) else text)

    def commit(self, message: str = "A change", *more: str) -> str:
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", message, *more)
        return self.git("rev-parse", "HEAD")

    def changed(self, sha: str) -> list[FileChange]:
        ((_, found),) = read_changes(self.folder, [sha])
        return found


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "shop")


def _told(change: FileChange) -> tuple[str, str, list[str], list[str]]:
    added = [line.decode() for line in change.added]
    removed = [line.decode() for line in change.removed]
    return change.path, change.status, added, removed


# -- commits -------------------------------------------------------------------------------------


def test_commits_come_oldest_first_with_all_they_say(repository: Repository) -> None:
    first = repository.commit("First\n\nWith a body\nof two lines.")
    second = repository.commit("Second")
    one, two = commits(repository.folder, ["HEAD"])
    assert (one.sha, one.parents, two.sha, two.parents) == (first, (), second, (first,))
    assert (one.subject, one.body, one.author, one.email) == (
        "First",
        "With a body\nof two lines.",
        "Ada",
        "ada@example.org",
    )
    assert (two.authored_at, two.committed_at) == (
        one.authored_at + 180_000,
        one.committed_at + 180_000,
    )
    assert not two.is_merge
    assert head_commit(repository.folder) == second


def test_parents_come_before_children_in_a_merge(repository: Repository) -> None:
    repository.commit("Base")
    repository.git("checkout", "-q", "-b", "side")
    repository.write("side.txt", "side\n")
    side = repository.commit("Side")
    repository.git("checkout", "-q", "main")
    repository.write("main.txt", "main\n")
    repository.commit("Main")
    repository.git("merge", "-q", "--no-ff", "-m", "Merge", "side")
    found = commits(repository.folder, ["--all"])
    place = {commit.sha: number for number, commit in enumerate(found)}
    assert all(place[parent] < place[commit.sha] for commit in found for parent in commit.parents)
    assert found[-1].is_merge
    assert side in found[-1].parents
    assert dict(read_changes(repository.folder, [found[-1].sha])) == {found[-1].sha: []}


def test_ranges_limits_and_times_narrow_the_list(repository: Repository) -> None:
    shas = [repository.commit(f"Change {n}") for n in range(6)]
    times = [commit.committed_at for commit in commits(repository.folder, ["HEAD"])]
    assert [c.sha for c in commits(repository.folder, [f"{shas[1]}..{shas[4]}"])] == shas[2:5]
    assert [c.sha for c in commits(repository.folder, ["HEAD"], limit=2)] == shas[-2:]
    assert [c.sha for c in commits(repository.folder, ["--all"], since=times[3])] == shas[3:]
    assert {
        c.sha for c in commits(repository.folder, ["--no-walk=unsorted", shas[4], shas[1]])
    } == {shas[1], shas[4]}


def test_a_name_git_does_not_know_is_a_plain_error(repository: Repository) -> None:
    repository.commit()
    with pytest.raises(BadInput, match="git does not understand 'nowhere'"):
        commits(repository.folder, ["nowhere"])


def test_messages_in_other_encodings_and_with_control_characters_are_read(
    repository: Repository,
) -> None:
    repository.git("config", "i18n.commitEncoding", "ISO-8859-1")
    repository.git(
        "commit",
        "-q",
        "--allow-empty",
        "-F",
        "-",
        given="Größe\n\nein \x1f Rumpf\x1e".encode("latin-1"),
    )
    repository.git("config", "i18n.commitEncoding", "UTF-8")
    repository.git("config", "i18n.logOutputEncoding", "ISO-8859-1")
    repository.commit("Naïve 🛒 cart")
    one, two = commits(repository.folder, ["HEAD"])
    assert (one.subject, one.body, two.subject) == (
        "Größe",
        "ein \x1f Rumpf\x1e".strip(),
        "Naïve 🛒 cart",
    )


def test_thousands_of_commits_by_name_fit_into_one_question(repository: Repository) -> None:
    tree = repository.git("write-tree")
    stream = "".join(
        f"commit refs/heads/main\ncommitter A <a@b> {1_780_000_000 + n} +0000\ndata 1\nx\n"
        for n in range(5000)
    )
    repository.git("fast-import", "--quiet", given=stream.encode())
    found = commits(repository.folder, ["main"])
    named = commits(repository.folder, ["--no-walk=unsorted", *(commit.sha for commit in found)])
    assert len(found) == len(named) == 5000
    assert tree


# -- names that are asked for --------------------------------------------------------------------


def test_abbreviated_hashes_are_resolved_in_one_go(repository: Repository) -> None:
    kept = repository.commit("Kept")
    lost = repository.commit("Lost")
    blob = repository.git("hash-object", "-w", "--stdin", given=b"blob")
    repository.git("reset", "-q", "--hard", kept)
    found = resolve_commits(
        repository.folder, [kept[:7], lost[:9], "0123456789", blob[:10], "not a hash", "--all"]
    )
    assert found == {kept[:7]: kept, lost[:9]: lost}
    assert resolve_commits(repository.folder, ["f" * 40]) == {}
    assert resolve_commits(repository.folder, []) == {}


def test_an_empty_repository_has_no_head(repository: Repository) -> None:
    assert head_commit(repository.folder) is None


# -- changes -------------------------------------------------------------------------------------


def test_a_change_has_its_lines_and_no_context(repository: Repository) -> None:
    repository.write("cart.py", "one\ntwo\nthree\nfour\n")
    root = repository.commit()
    repository.write("cart.py", "one\n2\nthree\nfour\nfive\n")
    second = repository.commit()
    assert list(map(_told, repository.changed(root))) == [
        ("cart.py", "A", ["one", "two", "three", "four"], [])
    ]
    (change,) = repository.changed(second)
    assert _told(change) == ("cart.py", "M", ["2", "five"], ["two"])
    assert (change.plus, change.minus) == (2, 1)


def test_lines_that_look_like_headers_are_lines(repository: Repository) -> None:
    tricky = [
        "-- a/x",
        "++ b/x",
        "@@ -1 +1 @@",
        "diff --git a/x b/x",
        ":100644 100644 a b M\tx",
        "a" * 40,
        "\\ odd",
        "",
    ]
    repository.write("tricky.txt", "".join(f"{line}\n" for line in tricky))
    first = repository.commit()
    repository.write("tricky.txt", "")
    second = repository.commit()
    assert list(map(_told, repository.changed(first))) == [("tricky.txt", "A", tricky, [])]
    assert list(map(_told, repository.changed(second))) == [("tricky.txt", "M", [], tricky)]


def test_odd_names_are_told_as_they_are(repository: Repository) -> None:
    names = [
        "with space.txt",
        "tab\there.txt",
        'quo"te.txt',
        "back\\slash.txt",
        "naïve-🛒.txt",
        "new\nline.txt",
        " b/x",
    ]
    for name in names:
        repository.write(name, f"in {name!r}\n")
    assert {change.path for change in repository.changed(repository.commit())} == set(names)


def test_a_name_that_is_no_text_is_readable_all_the_same(repository: Repository) -> None:
    name = os.fsdecode(b"caf\xe9.txt")
    try:
        repository.write(name, "x\n")
    except OSError:
        pytest.skip("this file system takes only names that are text")
    assert [change.path for change in repository.changed(repository.commit())] == ["caf\ufffd.txt"]


def test_binary_files_modes_links_and_empty_files_are_listed_without_lines(
    repository: Repository,
) -> None:
    repository.write("image.png", b"\x00\x01\x02")
    repository.write("run.sh", "echo run\n")
    (repository.folder / "link").symlink_to("run.sh")
    repository.commit()
    repository.write("image.png", b"\x00\x03")
    (repository.folder / "run.sh").chmod(0o755)
    repository.write("empty", "")
    (repository.folder / "link").unlink()
    repository.write("link", "a file now\n")
    found = [_told(change) for change in repository.changed(repository.commit())]
    assert found == [
        ("empty", "A", [], []),
        ("image.png", "M", [], []),
        ("link", "T", ["a file now"], ["run.sh"]),
        ("run.sh", "M", [], []),
    ]


def test_renames_carry_only_what_changed(repository: Repository) -> None:
    lines = [f"line number {n}\n" for n in range(20)]
    repository.write("old.py", "".join(lines))
    repository.commit()
    (repository.folder / "old.py").unlink()
    repository.write("lib/new.py", "".join([*lines[:-1], "another end\n"]))
    (change,) = repository.changed(repository.commit())
    assert (change.old_path, *_told(change)) == (
        "old.py",
        "lib/new.py",
        "R",
        ["another end"],
        ["line number 19"],
    )


def test_line_ends_and_missing_ones_are_no_part_of_a_line(repository: Repository) -> None:
    repository.git("config", "core.autocrlf", "false")
    repository.write("dos.txt", "one\r\ntwo\rstill two\r\nlast")
    first = repository.commit()
    repository.write("dos.txt", "one\r\nlast\nmore")
    second = repository.commit()
    assert _told(repository.changed(first)[0]) == (
        "dos.txt",
        "A",
        ["one", "two\rstill two", "last"],
        [],
    )
    assert _told(repository.changed(second)[0]) == (
        "dos.txt",
        "M",
        ["last", "more"],
        ["two\rstill two", "last"],
    )


def test_empty_commits_have_an_answer_too(repository: Repository) -> None:
    first, second = repository.commit("One"), repository.commit("Two")
    assert list(read_changes(repository.folder, [second, first, second])) == [
        (second, []),
        (first, []),
    ]
    assert list(read_changes(repository.folder, [])) == []


def test_a_huge_commit_keeps_its_size_but_not_all_lines(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history, "MAX_LINES", 1000)
    repository.write("a.txt", "".join(f"{n}\n" for n in range(100_000)))
    repository.write("b.txt", "after\n")
    big, after = repository.changed(repository.commit())
    assert (big.plus, len(big.added)) == (100_000, 1000)
    assert (after.plus, after.added) == (1, [])


def test_a_submodule_is_a_file_like_others(repository: Repository, tmp_path: Path) -> None:
    inner = Repository(tmp_path / "inner")
    inner.commit()
    repository.git(
        "-c",
        "protocol.file.allow=always",
        "submodule",
        "--quiet",
        "add",
        str(inner.folder),
        "inner",
    )
    found = {change.path: change for change in repository.changed(repository.commit())}
    assert set(found) == {".gitmodules", "inner"}
    assert found["inner"].plus == 1


def test_a_commit_that_cannot_be_read_spoils_no_other(repository: Repository) -> None:
    shas = []
    for name in ("a", "b", "c"):
        repository.write(f"{name}.txt", f"{name}\n")
        shas.append(repository.commit())
    blob = repository.git("rev-parse", f"{shas[1]}:b.txt")
    (repository.folder / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    found = {
        sha: [change.path for change in changed]
        for sha, changed in read_changes(repository.folder, shas)
    }
    assert found == {shas[0]: ["a.txt"], shas[1]: [], shas[2]: ["c.txt"]}


def test_where_a_shallow_clone_ends_nothing_seems_added(
    repository: Repository, tmp_path: Path
) -> None:
    repository.write("a.txt", "a\n")
    repository.commit()
    repository.write("b.txt", "b\n")
    edge = repository.commit()
    repository.write("c.txt", "c\n")
    last = repository.commit()
    clone = tmp_path / "clone"
    subprocess.run(
        ["git", "clone", "-q", "--depth", "2", f"file://{repository.folder}", clone], check=True
    )
    found = {
        sha: [change.path for change in changed]
        for sha, changed in read_changes(clone, [edge, last])
    }
    assert found == {edge: [], last: ["c.txt"]}


# -- what must not matter ------------------------------------------------------------------------


def test_peoples_settings_change_nothing(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository.write("naïve.txt", "one\ntwo\n")
    repository.commit()
    repository.git("mv", "naïve.txt", "moved.txt")
    repository.write("new.txt", "three\n")
    repository.commit("Subject")
    plain = (
        commits(repository.folder, ["HEAD"]),
        list(read_changes(repository.folder, [head_commit(repository.folder) or ""])),
    )
    settings = {
        "diff.external": "false",
        "diff.noprefix": "true",
        "diff.mnemonicPrefix": "true",
        "diff.renames": "copies",
        "diff.submodule": "log",
        "diff.context": "7",
        "diff.algorithm": "patience",
        "diff.wsErrorHighlight": "all",
        "diff.colorMoved": "zebra",
        "diff.orderFile": "nowhere",
        "color.ui": "always",
        "color.diff": "always",
        "core.quotePath": "true",
        "core.pager": "false",
        "log.showSignature": "true",
        "log.mailmap": "true",
        "format.pretty": "raw",
    }
    for name, value in settings.items():
        repository.git("config", name, value)
    repository.git("config", "--unset", "diff.orderFile")
    repository.write(".mailmap", "Somebody Else <x@y> <ada@example.org>\n")
    for name, value in {
        "GIT_EXTERNAL_DIFF": "false",
        "GIT_DIFF_OPTS": "-u9",
        "GIT_DIR": "/nowhere",
    }.items():
        monkeypatch.setenv(name, value)
    assert (
        commits(repository.folder, ["HEAD"]),
        list(read_changes(repository.folder, [plain[1][0][0]])),
    ) == plain


def test_replaced_and_grafted_history_is_read_as_it_was_made(repository: Repository) -> None:
    first, second = repository.commit("First"), repository.commit("Second")
    other = repository.git("commit-tree", "-m", "Other", f"{second}^{{tree}}")
    repository.git("replace", second, other)
    (repository.folder / ".git" / "info").mkdir(exist_ok=True)
    (repository.folder / ".git" / "info" / "grafts").write_text(f"{second}\n")
    assert [(c.sha, c.subject) for c in commits(repository.folder, ["HEAD"])] == [
        (first, "First"),
        (second, "Second"),
    ]


def test_the_work_tree_and_the_index_are_left_alone(repository: Repository) -> None:
    repository.write("a.txt", "a\n")
    sha = repository.commit()
    index = repository.folder / ".git" / "index"
    before = index.stat().st_mtime_ns, index.read_bytes()
    os.utime(repository.folder / "a.txt", (1, 1))
    commits(repository.folder, ["HEAD"])
    repository.changed(sha)
    resolve_commits(repository.folder, [sha])
    assert (index.stat().st_mtime_ns, index.read_bytes()) == before


def test_a_bare_repository_and_a_worktree_answer_too(
    repository: Repository, tmp_path: Path
) -> None:
    repository.write("a.txt", "a\n")
    sha = repository.commit()
    repository.git("worktree", "add", "-q", str(tmp_path / "tree"))
    shutil.copytree(repository.folder / ".git", tmp_path / "bare.git")
    repository.git("config", "--file", str(tmp_path / "bare.git" / "config"), "core.bare", "true")
    for folder in (tmp_path / "tree", GitDir(tmp_path / "bare.git")):
        assert [commit.sha for commit in commits(folder, ["HEAD"])] == [sha]
        assert [change.path for _, found in read_changes(folder, [sha]) for change in found] == [
            "a.txt"
        ]
    with pytest.raises(BadInput, match="not a git repository"):
        commits(tmp_path / "bare.git", ["HEAD"])
    assert list(read_changes(tmp_path / "bare.git", [sha])) == [(sha, [])], "nobody named it"


# -- patch ids -----------------------------------------------------------------------------------


def test_a_picked_change_has_the_same_patch_id_and_another_one_has_not(
    repository: Repository,
) -> None:
    repository.write("cart.py", "".join(f"line {n}\n" for n in range(30)))
    base = repository.commit("Base")
    repository.write("cart.py", "".join(f"line {n}\n" for n in range(30)) + "the end\n")
    one = repository.commit("One")
    repository.git("checkout", "-q", "-b", "side", base)
    repository.write("cart.py", "first\n" + "".join(f"line {n}\n" for n in range(30)))
    two = repository.commit("Two")
    repository.git("cherry-pick", one)
    picked = repository.git("rev-parse", "HEAD")
    empty = repository.commit("Nothing")
    found = patch_ids(repository.folder, [base, one, two, picked, empty])
    assert found[one] == found[picked]
    assert len({found[base], found[one], found[two]}) == 3
    assert empty not in found


def test_binary_changes_have_different_patch_ids(repository: Repository) -> None:
    shas = []
    for data in (b"\x00\x01", b"\x00\x02", b"\x00\x01"):
        repository.write("image.png", data)
        shas.append(repository.commit())
    assert len(set(patch_ids(repository.folder, shas[1:]).values())) == 2


# -- where lines come ----------------------------------------------------------------------------


def test_where_lines_come_is_the_same_by_the_lines_and_without_them(
    repository: Repository,
) -> None:
    repository.write("a.txt", "".join(f"{n}\n" for n in range(20)))
    repository.write("old.txt", "".join(f"kept {n}\n" for n in range(20)))
    shas = [repository.commit()]
    # lines that look like headers, a line without an end, a renamed file, a link, a file that goes
    repository.write("a.txt", "-- a/a.txt\n++ b\n" + "".join(f"{n}\n" for n in range(3, 19)))
    shas.append(repository.commit())
    repository.write("a.txt", "@@ -1 +1 @@\ndiff --git a/x b/x\n\\ none\nno end")
    repository.git("mv", "old.txt", "new.txt")
    repository.write("new.txt", "".join(f"kept {n}\n" for n in range(19)) + "another")
    (repository.folder / "link").symlink_to("a.txt")
    shas.append(repository.commit())
    repository.git("rm", "-q", "a.txt")
    shas.append(repository.commit())
    told = dict(read_line_changes(repository.folder, shas))
    for sha in shas:
        assert [LineChange.of(change) for change in repository.changed(sha)] == told[sha]
    assert [change.plain for change in told[shas[2]]] == [True, False, True]

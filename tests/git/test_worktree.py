"""Which files differ from the last commit, compared with what git itself says where it runs
nothing."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from whyfor.git import worktree
from whyfor.git.run import ask
from whyfor.git.worktree import find_changes


class Shop:
    def __init__(self, path: Path) -> None:
        self.path = path
        subprocess.run(["git", "init", "-q", "-b", "main", str(path)], check=True)
        self.git("config", "user.name", "Ada")
        self.git("config", "user.email", "ada@example.org")

    def git(self, *arguments: str) -> str:
        done = subprocess.run(
            ["git", *arguments], cwd=self.path, check=True, capture_output=True, text=True
        )
        return done.stdout

    def write(self, **files: str | bytes) -> None:
        for name, content in files.items():
            self.put(name, content)

    def put(self, name: str, content: str | bytes) -> None:
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)

    def commit(self) -> None:
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", "x")
        self.age()

    def age(self) -> None:
        """The index becomes younger than every file, as it is a moment later."""
        index = self.path / ".git" / "index"
        later = index.stat().st_mtime_ns + 60_000_000_000
        os.utime(index, ns=(later, later))

    def look(self, *names: str) -> tuple[set[str], dict[str, str]]:
        """Changed and unread, of these files or of all there are."""
        there = {
            str(path.relative_to(self.path))
            for path in self.path.rglob("*")
            if ".git" not in path.parts
        }
        paths = [str(self.path / name) for name in names or there]
        found = find_changes(
            self.path, ask(self.path, "rev-parse", "--verify", "--quiet", "HEAD"), paths
        )
        cut = len(str(self.path)) + 1
        return {path[cut:] for path in found.changed}, {
            path[cut:]: why for path, why in found.unread.items()
        }

    def told(self) -> set[str]:
        """By git."""
        listed = self.git(
            "status", "--porcelain", "-z", "--untracked-files=all", "--no-renames"
        ).split("\0")
        return {line[3:] for line in listed if line}


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path / "shop")


def test_it_says_what_git_says(shop: Shop) -> None:
    shop.write(
        same="same\n",
        changed="one\n",
        deleted="x\n",
        staged="x\n",
        mode="x\n",
        became="x\n",
        forced="x\n",
    )
    shop.put(".gitignore", "ignored\nforced\n")
    shop.put("deep/ä b.txt", "x\n")
    (shop.path / "link").symlink_to("same")
    shop.git("add", "-f", "forced")
    shop.commit()
    shop.write(
        changed="two\n",
        staged="y\n",
        new="n\n",
        ignored="i\n",
        forced="y\n",
        intended="n\n",
        empty="",
    )
    shop.put("deep/ä b.txt", "y\n")
    shop.put("deep/*.txt", "a name that is a pattern\n")
    shop.git("add", "staged")
    shop.git("add", "-N", "intended", "empty")
    (shop.path / "deleted").unlink()
    (shop.path / "mode").chmod(0o755)
    (shop.path / "became").unlink()
    (shop.path / "became").symlink_to("same")
    (shop.path / "link").unlink()
    (shop.path / "link").symlink_to("changed")
    names = [*shop.told(), "same", "ignored", ".gitignore"]
    changed, unread = shop.look(*names)
    assert changed == shop.told()
    assert {
        "changed",
        "deleted",
        "staged",
        "mode",
        "became",
        "link",
        "new",
        "intended",
        "empty",
        "forced",
    } <= changed
    assert not {"same", "ignored", ".gitignore"} & changed
    assert unread == {}


def test_nothing_is_changed_right_after_a_commit(shop: Shop) -> None:
    shop.write(one="1\n", two="2\n")
    shop.commit()
    assert shop.look() == (set(), {})


def test_before_the_first_commit_every_file_differs(shop: Shop) -> None:
    shop.write(one="1\n", two="2\n")
    shop.git("add", "one")
    assert shop.look() == ({"one", "two"}, {})


def test_a_file_that_was_only_touched_is_the_same(shop: Shop) -> None:
    shop.write(one="1\n")
    shop.commit()
    os.utime(shop.path / "one", (1, 1))
    assert shop.look() == (set(), {})


def test_a_file_as_young_as_the_index_is_read(shop: Shop) -> None:
    """Same size, same times, same place: only its content tells."""
    shop.write(one="1\n")
    shop.git("add", "-A")
    shop.git("commit", "-q", "-m", "x")
    path, index = shop.path / "one", shop.path / ".git" / "index"
    before = path.stat()
    with path.open("r+b") as file:
        file.write(b"2")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    os.utime(index, ns=(before.st_mtime_ns, before.st_mtime_ns))
    assert shop.look() == ({"one"}, {})


def test_what_the_user_told_git_not_to_look_at_is_left_alone(shop: Shop) -> None:
    shop.write(one="1\n", two="2\n")
    shop.commit()
    shop.git("update-index", "--assume-unchanged", "one")
    shop.git("update-index", "--skip-worktree", "two")
    shop.write(one="changed\n", two="changed\n")
    assert shop.look() == (set(), {})


def test_a_merge_that_is_not_through_is_work_in_no_commit(shop: Shop) -> None:
    shop.write(one="1\n")
    shop.commit()
    shop.git("checkout", "-q", "-b", "other")
    shop.write(one="2\n")
    shop.commit()
    shop.git("checkout", "-q", "main")
    shop.write(one="3\n")
    shop.commit()
    subprocess.run(["git", "merge", "other"], cwd=shop.path, capture_output=True)
    assert shop.look("one") == ({"one"}, {})


@pytest.mark.parametrize(
    ("attributes", "setting"),
    [("* text=auto\n", "false"), ("* text eol=crlf\n", "false"), ("", "true"), ("", "input")],
)
def test_line_ends_that_git_converts_are_no_change(
    attributes: str, setting: str, shop: Shop
) -> None:
    shop.git("config", "core.autocrlf", setting)
    shop.put(".gitattributes", attributes)
    shop.write(one="a\nb\n", two="a\nb\n")
    shop.commit()
    shop.write(one="a\r\nb\r\n", two="a\r\nc\r\n")
    assert shop.look() == ({"two"}, {})


def test_line_ends_that_git_does_not_convert_are_a_change(shop: Shop) -> None:
    shop.put(".gitattributes", "one -text\n")
    shop.write(one="a\n", two="a\n")
    shop.commit()
    shop.write(one="a\r\n", two="a\r\n")
    assert shop.look() == ({"one", "two"}, {})


@pytest.mark.parametrize(
    ("attribute", "reason"),
    [
        ("filter=canary", "the filter canary"),
        ("filter=longer", "the filter longer"),
        ("ident", "$Id$"),
        ("working-tree-encoding=UTF-16", "encoding"),
    ],
)
def test_what_a_filter_would_be_needed_for_is_said(
    attribute: str, reason: str, shop: Shop, tmp_path: Path
) -> None:
    shop.write(one="1\n", other="1\n", clean="1\n")
    shop.commit()
    shop.git("config", "filter.canary.clean", f"touch {tmp_path / 'ran'}")
    shop.git("config", "filter.longer.process", f"touch {tmp_path / 'ran'}")
    (shop.path / ".git" / "info" / "attributes").write_text(f"one {attribute}\nclean {attribute}\n")
    shop.write(one="2\n", other="2\n")
    changed, unread = shop.look("one", "other", "clean")
    assert (changed, list(unread)) == ({"other"}, ["one"]), (
        "a file whose stat data is the same needs no filter"
    )
    assert reason in unread["one"]
    assert not (tmp_path / "ran").exists()


def test_a_filter_that_nobody_configured_converts_nothing(shop: Shop) -> None:
    shop.put(".gitattributes", "one filter=lfs\n")
    shop.write(one="1\n")
    shop.commit()
    shop.write(one="2\n")
    assert shop.look() == ({"one"}, {})


def test_where_git_fails_no_file_is_called_unchanged(shop: Shop) -> None:
    shop.write(one="1\n")
    shop.commit()
    (shop.path / ".git" / "index").write_bytes(b"nonsense")
    changed, unread = shop.look()
    assert (changed, list(unread)) == (set(), ["one"])
    assert "index" in unread["one"]


def test_a_large_file_is_not_read(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worktree, "MAX_BYTES", 1 << 20)
    shop.write(large=b"x" * (1 << 20))
    shop.commit()
    shop.write(large=b"y" * ((1 << 20) + 1))
    assert shop.look() == (set(), {"large": "it is larger than 1 MB"})


def test_a_pipe_in_a_files_place_is_not_waited_for(shop: Shop) -> None:
    shop.write(one="1\n")
    shop.commit()
    (shop.path / "one").unlink()
    os.mkfifo(shop.path / "one")
    assert shop.look("one") == ({"one"}, {})


def test_files_of_a_sha256_repository_are_compared_too(tmp_path: Path) -> None:
    subprocess.run(
        ["git", "init", "-q", "--object-format=sha256", str(tmp_path / "shop")], check=True
    )
    shop = Shop(tmp_path / "shop")
    shop.write(one="1\n", two="1\n")
    shop.commit()
    os.utime(shop.path / "one", (1, 1))
    shop.write(two="2\n")
    assert shop.look() == ({"two"}, {})


def test_paths_outside_and_paths_that_are_none_are_left_out(shop: Shop, tmp_path: Path) -> None:
    shop.write(one="1\n")
    odd = ["../other", "a/../../b", "x\0y", "\ud800", "", ".git/config"]
    assert shop.look("one", *odd) == ({"one"}, {})
    assert find_changes(shop.path, None, [str(tmp_path / "elsewhere")]).changed == frozenset()


def test_files_in_a_submodule_do_not_hide_the_others(shop: Shop, tmp_path: Path) -> None:
    library = Shop(tmp_path / "lib")
    library.write(one="1\n")
    library.commit()
    shop.git(
        "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(library.path), "lib"
    )
    shop.commit()
    shop.write(new="n\n")
    shop.put("lib/one", "2\n")
    shop.put("lib/two", "2\n")
    assert shop.look("new", "lib/one", "lib/two", "lib") == ({"new"}, {})


def test_more_files_than_one_question_holds(shop: Shop) -> None:
    shop.write(**{f"file{number}": f"{number}\n" for number in range(450)})
    shop.commit()
    shop.write(**{f"file{number}": "new\n" for number in range(0, 450, 3)})
    assert shop.look()[0] == {f"file{number}" for number in range(0, 450, 3)}

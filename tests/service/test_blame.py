"""Which turn wrote each line of a file: in commits, in the work tree, for programs, and what is
refused."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Result
from tests.story.links.workshop import Agent, Clock, Repo, Workshop
from whyfor.config import Settings
from whyfor.service.commit import commit_page
from whyfor.store.open import reading_local

Cli = Callable[..., Result]
WRITTEN = """def total(order):
    lines = [line.price for line in order]
    if not lines:
        return 0
    return sum(lines)
"""
SECRET = "quokka_in_a_file_name.py"


@pytest.fixture
def shop(tmp_path: Path, home: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> Workshop:
    repo = Repo.made(tmp_path / "code" / "shop", Clock())
    monkeypatch.chdir(repo.path)
    return Workshop(home, repo, cli, hooked=False)


@pytest.fixture
def agent(shop: Workshop) -> Agent:
    """Two turns and two commits; a person adds, touches and formats in between."""
    shop.repo.commit("Paid", {"total.py": "def paid(order):\n    return order.paid\n\n\n"})
    found = Agent("s1", shop.repo)
    found.prompt("Add up an order")
    found.edit("total.py", "    return order.paid\n", "    return order.paid\n\n\n" + WRITTEN)
    found.say("It is added up.")
    text = shop.repo.read("total.py").replace("return sum(lines)", "return sum( lines )")
    shop.repo.write(
        "total.py", text.replace("return 0", "return 0.0") + "# by hand, for the till\n"
    )
    shop.repo.commit("Add up an order")
    found.prompt("Say what is owed")
    owed = "def owed(order):\n    return total(order) - paid(order)\n"
    found.edit("total.py", "# by hand, for the till\n", f"# by hand, for the till\n\n\n{owed}")
    shop.repo.commit("Say what is owed")
    shop.ingest(found)
    return found


def _who(told: dict[str, Any]) -> dict[str, tuple[str, int | None, str | None]]:
    found = {}
    for line in told["lines"]:
        if line["text"].strip():
            who = line["who"]
            found[line["text"].strip()] = (who["kind"], who["turn"], who["evidence"])
    return found


EXPECTED = {
    "def paid(order):": ("unknown", None, None),
    "return order.paid": ("unknown", None, None),
    "def total(order):": ("agent", 1, "exact"),
    "lines = [line.price for line in order]": ("agent", 1, "exact"),
    "if not lines:": ("agent", 1, "exact"),
    "return 0.0": ("modified", 1, "modified"),
    "return sum( lines )": ("agent", 1, "reformatted"),
    "# by hand, for the till": ("person", None, "inferred"),
    "def owed(order):": ("agent", 2, "exact"),
    "return total(order) - paid(order)": ("agent", 2, "exact"),
}


def test_every_line_has_its_turn_and_its_evidence(
    shop: Workshop, agent: Agent, cli: Cli, settings: Settings
) -> None:
    told = cli("blame", "total.py", "--json").json
    assert _who(told) == EXPECTED
    assert told["commit"] is None
    line = next(line for line in told["lines"] if line["text"] == "def owed(order):")
    assert line["asked"] == "Say what is owed"
    assert (line["who"]["session"], line["who"]["agent"]) == (agent.session_id, "claude")
    # the page of a commit, and show, say the same
    page = commit_page(settings, shop.repo.git("rev-parse", "HEAD~1"))
    assert {name: page.counts[name] for name in ("claude", "modified", "person")} == {
        "claude": sum(1 for t in told["lines"] if t["who"]["turn"] == 1) - 1,
        "modified": 1,
        "person": 1,
    }
    # what was kept is read back; what is computed anew is the same, and kept
    with reading_local(settings) as library:
        kept = library.lines.of_commits([shop.repo.head])
    assert kept[shop.repo.head].files[0].path == "total.py"
    assert cli("rebuild").code == 0
    with reading_local(settings) as library:
        library.lines.of_commits([shop.repo.head])
    assert cli("blame", "total.py", "--json").json == told
    with reading_local(settings) as library:
        assert library.lines.of_commits([shop.repo.head]) != {}


def test_the_table_fits_eighty_columns_and_says_how_many_lines_are_whose(
    shop: Workshop, agent: Agent, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    done = cli("blame", "total.py:5-9")
    lines = done.out.splitlines()
    assert len(lines) == 5
    assert all(len(line) <= 80 for line in lines)
    assert "Cc T1" in lines[1]
    assert "T1~" in done.out
    assert "by agents" in done.err
    assert "whyfor why total.py:" in done.err


def test_programs_get_gits_own_words_with_tags(shop: Workshop, agent: Agent, cli: Cli) -> None:
    for form in ("--porcelain", "--line-porcelain"):
        for options in ([], ["-w"], ["-M", "-C"], ["-L2,7"]):
            done = cli("blame", form, *options, "total.py", "HEAD")
            plain = "".join(
                line for line in done.out.splitlines(True) if not line.startswith("whyfor-")
            )
            git = subprocess.run(
                ["git", "blame", form, *options, "HEAD", "--", "total.py"],
                capture_output=True,
                text=True,
                check=True,
            ).stdout
            assert plain == git
    tags = cli("blame", "--line-porcelain", "total.py").out.split("\n")
    at = tags.index("\tdef owed(order):")
    assert tags[at - 1] == "filename total.py"
    assert "whyfor-asked Say what is owed" in tags[at - 8 : at]
    assert "whyfor-evidence exact" in tags[at - 8 : at]


def test_lines_that_are_not_committed_are_replayed_too(
    shop: Workshop, agent: Agent, cli: Cli
) -> None:
    agent.prompt("Log it")
    agent.edit(
        "total.py", "def owed(order):\n", "def owed(order):\n    log('asked what is owed')\n"
    )
    agent.run("true")
    shop.repo.write("total.py", shop.repo.read("total.py") + "# not saved by anybody else\n")
    shop.ingest(agent)
    told = cli("blame", "total.py", "--json").json
    assert _who(told) == {
        **EXPECTED,
        "log('asked what is owed')": ("agent", 3, "exact"),
        "# not saved by anybody else": ("unknown", None, None),
    }
    new = [line for line in told["lines"] if line["commit"] is None]
    assert [line["text"].strip() for line in new] == [
        "log('asked what is owed')",
        "# not saved by anybody else",
    ]
    assert cli("blame", "total.py").out.count("\n+ ") == 2
    # a buffer that is not saved
    buffer = shop.repo.path / "buffer"
    buffer.write_text("# first\n" + shop.repo.read("total.py"))
    given = cli("blame", "total.py", "--contents", str(buffer), "--json").json
    assert given["lines"][0]["commit"] is None
    assert _who(given) == {**_who(told), "# first": ("unknown", None, None)}
    for chosen, wanted in {
        "9": range(9, 19),
        "9,": range(9, 19),
        ",3": range(1, 4),
        "9,+2": range(9, 11),
        "9,-2": range(8, 10),
        "9,8": range(8, 10),
    }.items():
        found = cli("blame", "total.py", "-L", chosen, "--json").json["lines"]
        assert [line["line"] for line in found] == list(wanted), chosen
    done = cli("blame", "--porcelain", "total.py")
    assert done.code == 2
    assert "not committed" in done.err


def test_a_renamed_file_keeps_its_writers(shop: Workshop, agent: Agent, cli: Cli) -> None:
    shop.repo.git("mv", "total.py", "sums.py")
    shop.repo.commit("Rename")
    assert _who(cli("blame", "sums.py", "--json").json) == EXPECTED
    gone = cli("blame", "total.py")
    assert (gone.code, "is not in HEAD" in gone.err) == (2, True)
    assert "It was renamed. Ask about sums.py" in gone.err
    assert _who(cli("blame", "total.py", "HEAD~1", "--json").json) == EXPECTED
    shop.repo.git("rm", "-q", "sums.py")
    shop.repo.commit("Remove it")
    hint = cli("blame", "sums.py").err.splitlines()[-1]
    assert hint.startswith("It was removed. As it was: whyfor blame sums.py ")
    assert _who(cli("blame", *hint.split()[-2:], "--json").json) == EXPECTED


def test_what_to_type_next_can_be_typed_where_it_was_asked(
    shop: Workshop, agent: Agent, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also in a subdirectory, with spaces in the name, for an older version, from elsewhere, and
    for a name that git quotes."""
    (shop.repo.path / "sub").mkdir()
    shop.repo.git("mv", "total.py", "sub/größe of it.py")
    shop.repo.commit("Rename")
    name = "größe of it.py"
    for folder, file, revision in (
        (shop.repo.path / "sub", name, []),
        (shop.repo.path, f"sub/{name}", ["HEAD"]),
        (shop.repo.path.parent, str(shop.repo.path / "sub" / name), []),
    ):
        monkeypatch.chdir(folder)
        typed = shlex.split(cli("blame", f"{file}:5", *revision).err.partition("Why: ")[2])
        assert typed == ["whyfor", "why", f"{file}:5", *revision]
        assert "Written by Claude Code" in cli(*typed[1:]).out
    monkeypatch.chdir(shop.repo.path)
    for quoted in ("true", "false"):
        shop.repo.git("config", "core.quotePath", quoted)
        told = cli("blame", "--porcelain", f"sub/{name}", "HEAD").out.splitlines(True)
        plain = [line for line in told if not line.startswith("whyfor-")]
        git = ["git", "blame", "--porcelain", "HEAD", "--", f"sub/{name}"]
        assert (
            "".join(plain) == subprocess.run(git, capture_output=True, check=True).stdout.decode()
        )


def test_what_has_no_lines_to_tell_is_refused_with_a_reason(
    shop: Workshop, agent: Agent, cli: Cli, tmp_path: Path
) -> None:
    (shop.repo.path / "picture.png").write_bytes(b"\x89PNG\0\0")
    (shop.repo.path / "link.py").symlink_to("total.py")
    (shop.repo.path / "model.bin").write_text(
        "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"
    )
    os.mkfifo(shop.repo.path / "pipe")
    shop.repo.commit("Things")
    outside = tmp_path / "outside.py"
    outside.write_text("x = 1\n")
    refused = {
        ("picture.png",): "is not text",
        ("picture.png", "HEAD"): "is not text",
        ("link.py",): "is a symbolic link",
        ("link.py", "HEAD"): "is a symbolic link",
        ("pipe",): "is not a plain file",
        (".",): "is not a file in this repository",
        (str(outside),): "is not a file in this repository",
        ("../../outside.py",): "is not a file in this repository",
        ("total.py", "no-such-branch"): "no commit is called",
        ("total.py", "--output=x"): "No such option",
        ("total.py:900",): "has only",
        ("total.py", "-L", "900,901", "HEAD"): "has only",
        ("total.py", "-L", "bogus", "HEAD"): "git does not understand these options",
        ("nothing.py",): "is not in HEAD",
        ("total.py:9-3",): "names no lines",
    }
    for arguments, reason in refused.items():
        done = cli("blame", *arguments)
        assert (done.code, reason in done.err) == (2, True), (arguments, done.err)
    pointer = cli("blame", "model.bin")
    assert pointer.code == 0
    assert "pointer of Git LFS" in pointer.err
    huge = shop.repo.path / "huge.txt"
    huge.write_text("x\n" * 1_000_000)
    done = cli("blame", "huge.txt")
    assert (done.code, "1,000,000 lines" in done.err) == (2, True)


def test_forgetting_leaves_no_byte_of_the_lines_in_the_store(
    shop: Workshop, cli: Cli, settings: Settings
) -> None:
    agent = Agent("s1", shop.repo)
    agent.prompt("Write it")
    agent.write(SECRET, WRITTEN)
    sha = shop.repo.commit("A file")
    shop.ingest(agent)
    with reading_local(settings) as library:
        assert library.lines.of_commits([sha])[sha].files[0].path == SECRET
    files = [path for path in settings.home.rglob("whyfor.db*") if path.is_file()]
    call = agent.lines[1]["message"]["content"][0]["id"].encode()
    assert any(call in path.read_bytes() for path in files)
    assert cli("forget", agent.session_id, "--yes").code == 0
    with reading_local(settings) as library:
        assert library.lines.of_commits([sha]) == {}
    for path in settings.home.rglob("*"):
        if path.is_file():
            assert call not in path.read_bytes(), path

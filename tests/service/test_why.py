"""Why a line is there, who removed one, and whose the lines of a branch are."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Result
from tests.story.links.workshop import Agent, Clock, Repo, Workshop

Cli = Callable[..., Result]


@pytest.fixture
def shop(tmp_path: Path, home: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> Workshop:
    repo = Repo.made(tmp_path / "code" / "shop", Clock())
    monkeypatch.chdir(repo.path)
    monkeypatch.setenv("COLUMNS", "80")
    return Workshop(home, repo, cli, hooked=False)


@pytest.fixture
def agent(shop: Workshop) -> Agent:
    """It writes a line, asks, rewrites it by the answer, and takes another one out; a colleague's
    branch is merged."""
    shop.repo.commit("Keys", {"keys.py": "import uuid\n\nkey = order.id\nretry(times=3)\n"})
    found = Agent("s1", shop.repo)
    found.prompt("Orders are charged twice.\nOne key per attempt, please.")
    found.edit("keys.py", "key = order.id\n", "key = order.attempt_key()\n")
    found.say("Each attempt has its own key now.")
    shop.repo.commit("One key per attempt")
    found.prompt("Keys must expire")
    found.ask("For how long?", "A day")
    found.edit("keys.py", "key = order.attempt_key()\n", "key = order.attempt_key(ttl=DAY)\n")
    found.edit("keys.py", "retry(times=3)\n", "")
    found.say("They expire after a day.")
    shop.repo.commit("Let keys expire")
    shop.repo.git("checkout", "-q", "-b", "topic", "HEAD~1")
    shop.repo.commit("By hand", {"notes.md": "one\ntwo\n", "blob.bin": "a\0b"})
    (shop.repo.path / "link").symlink_to("keys.py")
    shop.repo.commit("A link")
    shop.repo.git("checkout", "-q", "main")
    shop.repo.git("merge", "-q", "--no-ff", "-m", "Merge topic", "topic")
    shop.ingest(found)
    return found


def test_a_line_is_told_with_its_request_question_words_and_history(
    shop: Workshop, agent: Agent, cli: Cli
) -> None:
    (told,) = cli("why", "keys.py:3", "--json").json
    assert told["text"] == ["key = order.attempt_key(ttl=DAY)"]
    assert told["summary"] == "Let keys expire"
    assert (told["who"]["turn"], told["who"]["evidence"]) == (2, "exact")
    assert (told["asked"], told["question"]) == ("A day", "For how long?")
    assert told["closing"] == "They expire after a day."
    assert told["tool"] == "Edit"
    assert told["resume"] == f"whyfor restore {told['commit'][:10]}"
    before = told["history"]
    assert [(line["text"], line["who"]["turn"]) for line in before] == [
        ("key = order.attempt_key()", 1),
        ("retry(times=3)", None),
        ("key = order.id", None),
    ]
    assert before[0]["asked"] == "Orders are charged twice.\nOne key per attempt, please."
    shown = cli("keys.py:3").out
    assert cli("why", "keys.py:3").out == shown
    assert "Written by Claude Code" in shown
    assert "▌ A day" in shown
    assert "? For how long?" in shown
    assert all(len(line) <= 80 for line in shown.splitlines())
    # each run of a range by itself; what nobody is known for says so
    first, last = cli("why", "keys.py:1-3", "--json").json
    assert (first["who"]["kind"], first["asked"], last["line"]) == ("unknown", None, 3)
    assert "nobody we know of" in cli("why", "keys.py:1").out
    # a line that is not committed tells what it replaces
    text = shop.repo.read("keys.py")
    shop.repo.write("keys.py", text.replace("ttl=DAY", "ttl=WEEK"))
    (new,) = cli("why", "keys.py:3", "--json").json
    assert (new["commit"], new["who"]["kind"]) == (None, "unknown")
    assert [(line["text"], line["who"]["turn"]) for line in new["history"]][:2] == [
        ("key = order.attempt_key(ttl=DAY)", 2),
        ("key = order.attempt_key()", 1),
    ]
    shop.repo.write("keys.py", text)


def test_who_removed_a_text_is_found(shop: Workshop, agent: Agent, cli: Cli) -> None:
    told = cli("why", "--gone", "retry(", "--json").json
    assert (told["path"], told["text"], told["summary"]) == (
        "keys.py",
        "retry(times=3)",
        "Let keys expire",
    )
    assert (told["who"]["agent"], told["who"]["turn"], told["asked"]) == ("claude", 2, "A day")
    assert "removed" in cli("why", "--gone", "retry(", "keys.py").out
    gone = cli("why", "--gone", "order.id", "keys.py", "--json").json
    assert (gone["summary"], gone["who"]["turn"]) == ("One key per attempt", 1)
    assert "no commit here removed" in cli("why", "--gone", "import uuid").err
    assert "no commit here removed" in cli("why", "--gone", "retry(", "notes.md").err


def test_what_is_asked_wrongly_gets_a_hint(shop: Workshop, agent: Agent, cli: Cli) -> None:
    for arguments, reason in {
        ("why", "keys.py"): "names no line",
        ("why",): "give FILE:LINE",
        ("why", "--gone", " "): "nothing to look for",
        ("why", "keys.py:99"): "has only",
        ("nothing.py:3",): "is not in HEAD",
        ("lines", "no-such"): "no commit is called",
        ("lines", "main..no-such"): "no commit is called",
    }.items():
        done = cli(*arguments)
        assert (done.code, reason in done.err) == (2, True), (arguments, done.err)


def test_the_totals_are_gits_for_commits_ranges_and_merges(
    shop: Workshop, agent: Agent, cli: Cli
) -> None:
    names = shop.repo.git("rev-list", "HEAD").split()
    ranges = [(f"{sha}^1", sha, sha) for sha in names[:-1]]
    ranges += [("HEAD~3", "HEAD", "HEAD~3..HEAD"), ("HEAD~2", "topic", "main~1...topic")]
    for old, new, asked in ranges:
        told = cli("lines", asked, "--json").json
        git = subprocess.run(
            ["git", "diff", "--numstat", "-M", old, new], capture_output=True, text=True, check=True
        ).stdout
        counted = {
            line.split("\t")[2]: tuple(None if n == "-" else int(n) for n in line.split("\t")[:2])
            for line in git.splitlines()
        }
        assert {f["path"]: (f["added"], f["removed"]) for f in told["files"]} == counted, asked
        for file in [*told["files"], told["total"]]:
            kinds = (file[kind] for kind in ("agent", "modified", "person", "unknown"))
            assert sum(kinds) == (file["added"] or 0), file
    whole = cli("lines", "HEAD~3..HEAD", "--json").json["total"]
    assert (whole["agents"], whole["unknown"]) == ({"claude": 1}, 3)
    first = cli("lines", names[-1], "--json").json
    assert (first["old"], first["total"]["unknown"]) == (None, 1)
    table = cli("lines", "HEAD~3..HEAD")
    assert "binary" in table.out
    assert "by agents" in table.err
    assert all(len(line) <= 80 for line in table.out.splitlines())

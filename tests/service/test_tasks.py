"""whyfor tasks: found at ingest, corrected by people, made again by rebuild, gone when forgotten."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import REPOSITORY, Result
from tests.service.init.tools import git
from tests.transcripts import Transcript
from whyfor import config
from whyfor.model.stories import CommitFilter
from whyfor.service.commits import page_of_commits
from whyfor.service.search import CommitHit, SearchRequest, search_page
from whyfor.service.timeline import timeline
from whyfor.store.open import reading

Cli = Callable[..., Result]
BD = REPOSITORY / "tests" / "beads.py"
TITLE = "Say how old a tide table is"


@pytest.fixture
def shop(home: Path) -> Path:
    """A repository with beads in it, and three issues."""
    folder = home / "shop"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    git(folder, "config", "--global", "user.name", "Ada")
    git(folder, "config", "--global", "user.email", "ada@example.com")
    git(folder, "remote", "add", "origin", "https://example.com/ann/shop.git")
    git(folder, "commit", "-q", "--allow-empty", "-m", "Begin")
    (folder / ".beads" / "hooks").mkdir(parents=True)
    for title in (TITLE, "Split the module", "Cache pages"):
        bd(folder, "create", title)
    return folder


def bd(folder: Path, *words: str, session: str = "") -> str:
    env = {**os.environ, "USER": "robin"}
    env |= {"CLAUDE_SESSION_ID": session} if session else {}
    ran = subprocess.run(
        [sys.executable, BD, *words],
        cwd=folder,
        env=env,
        capture_output=True,
        text=True,
        check=True,
    )
    return ran.stdout


def committed(folder: Path) -> str:
    """What git prints when it commits."""
    return git(folder, "log", "-1", "--format=[main %h] %s").stdout


class Worker:
    """An agent's session that uses the stand-in for real, and is recorded as Claude Code does."""

    def __init__(self, name: str, shop: Path, home: Path, **more: Any) -> None:
        self.transcript = Transcript(name, cwd=str(shop), live=True, **more)
        self.shop, self.home = shop, home

    @property
    def id(self) -> str:
        return self.transcript.session_id

    def ask(self, text: str) -> None:
        self.transcript.prompt(text)

    def run(self, *words: str, own: bool = False) -> None:
        said = bd(self.shop, *words, session=self.id if own else "")
        self.transcript.call("Bash", {"command": " ".join(("bd", *words))}, said)

    def end(self, cli: Cli) -> None:
        self.transcript.say("That is all.")
        self.transcript.save(self.home)
        assert cli("ingest").code == 0


@pytest.fixture
def worker(shop: Path, home: Path) -> Worker:
    return Worker("first", shop, home)


def tasks(cli: Cli, *options: str) -> dict[str, dict[str, Any]]:
    shown = cli("tasks", "--json", *options)
    assert shown.code == 0, shown.err
    return {task["key"]: task for task in json.loads(shown.out)["tasks"]}


def task(cli: Cli, key: str) -> dict[str, Any]:
    shown = cli("show", key, "--json")
    assert shown.code == 0, shown.err
    found: dict[str, Any] = json.loads(shown.out)
    return found


def test_a_task_goes_from_claim_to_close_and_has_the_words_that_led_there(
    worker: Worker, cli: Cli
) -> None:
    worker.ask("Take the next task.")
    worker.run("update", "tw-1", "--claim")
    worker.run("update", "tw-2", "--claim")
    worker.ask("Keep four, change the test. Then close it.")
    worker.run("close", "tw-1", own=True)
    worker.ask("Now something else.")
    worker.end(cli)
    found = tasks(cli)
    assert {key: one["status"] for key, one in found.items()} == {
        "tw-1": "complete",
        "tw-2": "open",
    }
    one = found["tw-1"]
    assert (one["title"], one["source"], one["who"]) == (TITLE, "beads", "robin")
    assert (one["confidence"], one["evidence"]) == ("high", ["tracker", "shell"])
    assert (one["sessions"], one["turns"]) == (1, 2), "the last turn is not part of it"
    assert found["tw-2"]["turns"] == 3
    [decided] = [each for each in task(cli, "tw-1")["decisions"] if each["text"]]
    assert (decided["status"], decided["turn"]) == ("complete", 2)
    assert decided["text"] == "Keep four, change the test. Then close it."
    assert decided["session_id"] == worker.id
    shown = cli("tasks")
    assert TITLE in shown.out
    assert "1 in progress, 1 complete, 0 rejected, 0 abandoned" in shown.err
    assert "0 of 1 session belong to no task" in shown.err
    assert max(len(line) for line in shown.out.splitlines()) <= 80
    assert "Keep four, change the test." in cli("show", "tw-1").out


def test_a_command_that_failed_did_nothing(worker: Worker, cli: Cli) -> None:
    worker.ask("Close it.")
    worker.transcript.call("Bash", {"command": "bd close tw-1"}, "Error: locked", failed=True)
    worker.transcript.call("Bash", {"command": "bd close tw-2 2>&1 | tail -1"}, "Error: locked")
    worker.transcript.call("Bash", {"command": "echo bd close tw-3"}, "bd close tw-3")
    worker.end(cli)
    assert tasks(cli) == {}
    assert "No tasks yet" in cli("tasks").err


def test_what_is_opened_again_was_rejected_and_what_goes_silent_is_abandoned(
    worker: Worker, shop: Path, home: Path, cli: Cli
) -> None:
    worker.ask("Do the first.")
    worker.run("update", "tw-1", "--claim")
    worker.run("close", "tw-1")
    worker.ask("No. Three tries without a pause hammer the server. Open it again.")
    worker.run("reopen", "tw-1")
    worker.run("update", "tw-2", "--claim")
    worker.ask("Stop, give the second back.")
    worker.run("update", "tw-2", "--status=open")
    worker.end(cli)
    old = Worker("old", shop, home, ago=timedelta(days=3))
    old.ask("Cache it")
    old.run("update", "tw-3", "--claim")
    old.end(cli)
    found = tasks(cli)
    assert {key: one["status"] for key, one in found.items()} == {
        "tw-1": "rejected",
        "tw-2": "rejected",
        "tw-3": "abandoned",
    }
    assert found["tw-3"]["reason"] == "silent for 3 days"
    assert found["tw-3"]["confidence"] == "medium"
    words = task(cli, "tw-1")["decisions"][0]
    assert words["status"] == "rejected"
    assert words["text"].startswith("No. Three tries")
    assert list(tasks(cli, "--status", "abandoned")) == ["tw-3"]
    assert list(tasks(cli, "--find", "tide OLD")) == ["tw-1"]


def test_a_tracker_alone_closes_what_a_session_took_on(
    worker: Worker, shop: Path, cli: Cli
) -> None:
    worker.ask("Begin")
    worker.run("update", "tw-1", "--claim")
    worker.end(cli)
    assert tasks(cli)["tw-1"]["status"] == "open"
    bd(shop, "close", "tw-1", "--reason=Merged")
    assert cli("ingest").code == 0
    closed = task(cli, "tw-1")
    assert (closed["task"]["status"], closed["decisions"][0]["by"]) == ("complete", "tracker")
    bd(shop, "reopen", "tw-1")
    assert cli("ingest").code == 0
    assert tasks(cli)["tw-1"]["status"] == "open", "nobody had finished it in a session"


def test_a_person_corrects_and_a_rebuild_says_the_same(
    worker: Worker, cli: Cli, shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(shop)
    worker.ask("Begin")
    worker.run("update", "tw-1", "--claim")
    worker.end(cli)
    said = cli("task", "reject", "TW-1", "--reason", "Too slow", "--json")
    assert json.loads(said.out)["by"] == "person"
    rejected = task(cli, "tw-1")
    assert rejected["task"]["status"] == "rejected"
    assert rejected["decisions"][0]["text"] == "Too slow"
    assert cli("task", "start", "EXTRA-1").code == 0
    assert cli("task", "add", "EXTRA-1", "--session", worker.id[:8]).code == 0
    assert cli("task", "remove", "tw-1", "--session", worker.id[:8]).code == 0
    before = tasks(cli)
    assert before["EXTRA-1"]["sessions"] == 1
    assert before["tw-1"]["sessions"] == 0
    assert cli("rebuild").code == 0
    assert tasks(cli) == before
    assert cli("task", "done", "EXTRA-1", "--session", "nosuch").code != 0
    assert cli("task", "done", "two words").code != 0


def test_an_agent_says_it_of_its_own_session(
    worker: Worker, cli: Cli, shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(shop)
    worker.ask("Work on OPS-7")
    monkeypatch.setenv("WHYFOR_SESSION", f"claude:{worker.id}")
    assert cli("task", "start", "OPS-7").code == 0, "also before its session is read"
    worker.end(cli)
    found = task(cli, "OPS-7")
    assert found["task"]["evidence"] == ["command"]
    assert [each["session_id"] for each in found["sessions"]] == [worker.id]


def test_branches_links_keys_and_trailers_name_tasks(
    shop: Path, home: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert cli("config", "set", "tasks.keys", "SL").code == 0
    one = Worker("one", shop, home, branch="12-faster-basket")
    one.ask("Read UTF-8 and see https://example.com/ann/shop/issues/9, and SL-4. 1. #1 2. #2")
    (shop / "a.py").write_text("print(1)\n")
    one.transcript.call("Write", {"file_path": str(shop / "a.py"), "content": "print(1)\n"})
    git(shop, "add", "a.py")
    git(shop, "commit", "-q", "-m", "Print one", "-m", "Fixes: #5")
    one.transcript.call("Bash", {"command": "git commit -F message"}, committed(shop))
    one.end(cli)
    found = tasks(cli)
    assert {key: task["evidence"] for key, task in found.items()} == {
        "#12": ["branch"],
        "#9": ["url"],
        "SL-4": ["key"],
        "#5": ["trailer"],
    }
    assert found["#5"]["status"] == "complete"
    assert found["#5"]["commits"] == 1
    assert found["#12"]["status"] == "open"


def test_everything_can_be_narrowed_to_a_task(
    worker: Worker, shop: Path, home: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(shop)
    worker.ask("Mend the herring")
    worker.run("update", "tw-1", "--claim")
    (shop / "a.py").write_text("print(1)\n")
    git(shop, "add", "a.py")
    git(shop, "commit", "-q", "-m", "Print one")
    worker.transcript.call("Bash", {"command": "git commit -m 'Print one'"}, committed(shop))
    worker.end(cli)
    other = Worker("other", shop, home)
    other.ask("Mend the herring elsewhere")
    other.run("update", "tw-2", "--claim")
    other.end(cli)

    def sessions(*words: str) -> set[str]:
        ran = cli(*words, "--json")
        assert ran.code == 0, ran
        return set(re.findall(r'"session_id":"([^"]+)"', ran.out))

    assert sessions("sessions") == {worker.id, other.id}
    assert sessions("sessions", "--task", "tw-1") == {worker.id}
    assert sessions("search", "herring", "--task", "TW-1") == {worker.id}
    stories = json.loads(cli("search", "print", "--task", "tw-1", "--json").out)
    assert [hit["subject"] for hit in stories if hit["type"] == "commit"] == ["Print one"]
    stories = json.loads(cli("search", "print", "--task", "tw-2", "--json").out)
    assert [hit for hit in stories if hit["type"] == "commit"] == []
    settings = config.load()
    with reading(settings) as store:
        [(_, project)] = [each for each in store.projects.known() if each[1].evidence != "path"]
    for key, subjects in (("tw-1", ["Print one"]), ("tw-2", [])):
        which = CommitFilter(task=key)
        told = page_of_commits(settings, project.identity, which, limit=9).items
        assert [one.commit.subject for one in told] == subjects
        rows = timeline(settings, project.identity, which).share
        assert rows.commits == len(subjects)
        hits = search_page(settings, SearchRequest(f"print task:{key}", "commits"), limit=9).hits
        assert [hit.subject for hit in hits if isinstance(hit, CommitHit)] == subjects
    assert json.loads(cli("stats", "--task", "tw-1", "--json").out)["sessions"] == 1
    commits = json.loads(cli("log", "--task", "tw-1", "--json").out)
    assert [one["subject"] for one in commits] == ["Print one"]
    told = json.loads(cli("feed", "--task", "TW-1", "--json").out)
    assert {one["session_id"] for one in told} == {worker.id}
    assert {one["kind"] for one in told} >= {"prompt", "commit"}
    for verb in ("sessions", "feed"):
        assert "no task is called" in cli(verb, "--task", "tw-9").err
    assert task(cli, "tw-1")["commits"][0]["subject"] == "Print one"


def test_a_forgotten_session_takes_its_tasks_with_it_and_a_forgotten_word_stays_away(
    worker: Worker, shop: Path, home: Path, cli: Cli
) -> None:
    worker.ask("Begin")
    worker.run("update", "tw-1", "--claim")
    worker.end(cli)
    assert cli("task", "add", "EXTRA-1", "--session", worker.id).code == 0
    other = Worker("other", shop, home)
    other.ask("Begin")
    other.run("update", "tw-2", "--claim")
    other.end(cli)
    assert set(tasks(cli)) == {"tw-1", "tw-2", "EXTRA-1"}
    assert cli("forget", worker.id, "--yes").code == 0
    assert set(tasks(cli)) == {"tw-2"}
    assert cli("forget", "--match", "Split the module", "--yes").code == 0
    bd(shop, "update", "tw-2", "--claim")
    assert cli("ingest").code == 0
    assert tasks(cli)["tw-2"]["title"] is None
    kept = [path.read_bytes() for path in (home.parent / "whyfor").rglob("*") if path.is_file()]
    assert not any(b"Split the module" in content for content in kept)

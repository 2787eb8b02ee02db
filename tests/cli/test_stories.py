"""The commands that read and mend the stories behind commits, on a small real repository."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Result
from tests.transcripts import Transcript

Cli = Callable[..., Result]
NOW = datetime.now(UTC).replace(microsecond=0) - timedelta(hours=2)


class Session(Transcript):
    """A transcript whose clock we set, in a repository that is really there."""

    def __init__(self, name: str, repository: Path, at: datetime = NOW) -> None:
        super().__init__(name, cwd=str(repository))
        self.at = at

    def _time(self) -> str:
        self.at += timedelta(seconds=5)
        return self.at.strftime("%Y-%m-%dT%H:%M:%S.000Z")

    def write(self, path: Path, text: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        self.call("Write", {"file_path": str(path), "content": text}, "File created")

    def commit(self, repository: Path, subject: str) -> str:
        self.at += timedelta(seconds=5)
        sha = commit(repository, subject, self.at)
        self.call(
            "Bash",
            {"command": f"git commit -am '{subject}'"},
            f"[main {sha[:7]}] {subject}\n 1 file changed",
        )
        return sha


def git(repository: Path, *arguments: str, at: datetime | None = None) -> str:
    when = (at or datetime.now(UTC)).strftime("%Y-%m-%dT%H:%M:%SZ")
    env = {**os.environ, "GIT_AUTHOR_DATE": when, "GIT_COMMITTER_DATE": when}
    done = subprocess.run(
        ["git", *arguments], cwd=repository, env=env, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def commit(repository: Path, subject: str, at: datetime | None = None) -> str:
    git(repository, "add", "--all")
    git(repository, "commit", "-q", "-m", subject, at=at)
    return git(repository, "rev-parse", "HEAD")


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "code" / "tides"
    folder.mkdir(parents=True)
    git(folder, "init", "-q", "-b", "main")
    git(folder, "config", "user.name", "Robin")
    git(folder, "config", "user.email", "robin@example.com")
    (folder / "README").write_text("tides\n", encoding="utf-8")
    commit(folder, "Start", NOW - timedelta(days=3))
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def told(repository: Path, home: Path, cli: Cli) -> dict[str, str]:
    """One session with two commits of one request and one of another; then a person's own."""
    session = Session("first", repository)
    session.prompt("Fetching fails once in ten runs. Make it robust.")
    session.write(repository / "http.py", "def fetch(url):\n    return retry(url, attempts=4)\n")
    shas = {"one": session.commit(repository, "Retry dropped connections")}
    session.write(
        repository / "test_http.py",
        "def test_gives_up_after_four_attempts():\n    assert attempts() == 4\n",
    )
    shas["two"] = session.commit(repository, "Test the retries")
    session.say(
        "`fetch` tries four times now. I considered a retry library and left it out: one function "
        "is enough."
    )
    session.prompt("Now let people choose the harbour.")
    session.write(
        repository / "cli.py", "def main(harbour='Husum'):\n    print(next_tide(harbour))\n"
    )
    shas["three"] = session.commit(repository, "Choose the harbour")
    session.say("Done.")
    session.save(home)
    (repository / "notes.txt").write_text("A person wrote this line alone.\n", encoding="utf-8")
    shas["own"] = commit(repository, "Notes of mine", session.at + timedelta(minutes=5))
    assert cli("ingest").code == 0
    return {**shas, "session": session.session_id}


def log(cli: Cli, *arguments: str) -> dict[str, Any]:
    return {entry["subject"]: entry for entry in cli("log", "--json", *arguments).json}


def test_log_has_every_commit_newest_first_with_its_story(told: dict[str, str], cli: Cli) -> None:
    entries = cli("log", "--json").json
    assert [entry["commit"] for entry in entries][:4] == [
        told[name] for name in ("own", "three", "two", "one")
    ]
    one = log(cli)["Retry dropped connections"]["checkpoint"]
    assert (one["evidence"], one["confidence"], one["is_merge"], one["superseded_by"]) == (
        "output",
        "high",
        False,
        None,
    )
    assert one["id"].startswith("ctx-")
    assert one["sessions"][0]["session_id"] == told["session"]
    assert one["sessions"][0]["from"] == 1


def test_ranges_adjoin_and_groups_follow_requests(told: dict[str, str], cli: Cli) -> None:
    found = log(cli)
    one, two, three = (
        found[name]["checkpoint"]
        for name in ("Retry dropped connections", "Test the retries", "Choose the harbour")
    )
    assert two["sessions"][0]["from"] == one["sessions"][0]["to"] + 1
    assert three["sessions"][0]["from"] == two["sessions"][0]["to"] + 1
    assert one["group_root"] == two["group_root"] == one["id"]
    assert three["group_root"] == three["id"]
    assert [c["sessions"][0]["continued_from_parent"] for c in (one, two, three)] == [
        False,
        True,
        True,
    ]
    assert [c["sessions"][0]["new_messages"] for c in (one, two, three)] == [1, 1, 2]


def test_a_commit_of_a_persons_own_has_no_story_and_says_why(
    told: dict[str, str], cli: Cli
) -> None:
    entry = log(cli)["Notes of mine"]
    assert entry["checkpoint"] is None
    assert "no session" in entry["reason"]


def test_log_keeps_the_commits_of_one_request_together(told: dict[str, str], cli: Cli) -> None:
    out = cli("log").out
    assert "┌ Test the retries" in out
    assert out.index("┌ Test the retries") < out.index("└ Retry dropped connections")


def test_a_range_and_a_limit(told: dict[str, str], cli: Cli) -> None:
    assert list(log(cli, f"{told['one']}..{told['three']}")) == [
        "Choose the harbour",
        "Test the retries",
    ]
    assert len(cli("log", "--json", "--limit", "2").json) == 2


def test_all_is_every_branch(told: dict[str, str], repository: Path, cli: Cli) -> None:
    git(repository, "switch", "-q", "-c", "aside", told["one"])
    assert "Choose the harbour" not in log(cli)
    assert "Choose the harbour" in log(cli, "--all")
    assert cli("log", "--all", "HEAD").code == 2


def test_show_tells_the_story(told: dict[str, str], cli: Cli) -> None:
    out = cli("show", told["two"][:9]).out
    for words in (
        "Test the retries",
        "Fetching fails once in ten runs",
        "tries four times now",
        "output, high",
    ):
        assert words in out
    assert f"whyfor show {told['session'][:8]}" in out


def test_show_json_has_the_conversation(told: dict[str, str], cli: Cli) -> None:
    body = cli("show", "HEAD~1", "--json").json
    kinds = [(line["role"], line["kind"]) for line in body["conversation"]]
    assert kinds[0] == ("user", "user.prompt")
    assert kinds[-1] == ("assistant", "assistant.message")
    assert {line["session_id"] for line in body["conversation"]} == {told["session"]}
    assert body["tokens"]["output"] > 0
    assert [said["role"] for said in body["related"]] == ["request", "closing words"]


def test_alternatives_and_intent_are_derived(told: dict[str, str], cli: Cli) -> None:
    note = log(cli)["Test the retries"]["checkpoint"]["annotation"]
    assert note["by"] == "derived"
    assert note["alternatives"] == [
        "I considered a retry library and left it out: one function is enough."
    ]
    assert note["intent"].startswith("Fetching fails once in ten runs.")
    assert [file["path"] for file in note["files"]] == ["test_http.py"]


def test_a_checkpoint_id_is_a_name_too(told: dict[str, str], cli: Cli) -> None:
    ident = log(cli)["Choose the harbour"]["checkpoint"]["id"]
    assert cli("show", ident[:10], "--json").json["commit"] == told["three"]


def test_a_commit_nobody_looked_at_is_judged_on_the_spot(
    told: dict[str, str], repository: Path, cli: Cli
) -> None:
    (repository / "more.txt").write_text("unseen so far\n", encoding="utf-8")
    sha = commit(repository, "Unseen")
    entry = log(cli)["Unseen"]
    assert (entry["commit"], entry["checkpoint"]) == (sha, None)
    assert entry["reason"]


def test_status_says_where_things_stand(
    told: dict[str, str], repository: Path, home: Path, cli: Cli
) -> None:
    session = Session("second", repository, datetime.now(UTC) - timedelta(minutes=1))
    session.prompt("Write the changelog.")
    session.write(repository / "CHANGES", "One more line in the changelog.\n")
    session.save(home)
    cli("ingest")
    body = cli("status", "--json").json
    assert body["head"]["commit"] == told["own"]
    assert [s["session_id"] for s in body["active"]] == [session.session_id]
    assert [(o["session"]["session_id"], o["files"]) for o in body["open"]] == [
        (session.session_id, [str(repository / "CHANGES")])
    ]
    capture = {c["agent"]: c for c in body["capture"]}
    assert capture["claude"]["last_record_at"] is not None
    assert capture["claude"]["last_hook_at"] is None
    assert "Not in a commit yet" in cli("status").out


def test_diff_adds_up(told: dict[str, str], cli: Cli) -> None:
    body = cli("diff", told["one"], "HEAD", "--json").json
    assert [c["commit"] for c in body["commits"]] == [told["own"], told["three"], told["two"]]
    assert body["messages"] == 3
    assert [said["text"] for said in body["prompts"]] == [
        "Fetching fails once in ten runs. Make it robust.",
        "Now let people choose the harbour.",
    ]
    whole = cli("sessions", "--json").json[0]["tokens"]["output"]
    first = cli("show", told["one"], "--json").json["tokens"]["output"]
    assert body["tokens"]["output"] + first == whole
    assert "3 commits, 2 with a story" in cli("diff", told["one"]).out


def test_what_a_person_says_counts_more_than_evidence(told: dict[str, str], cli: Cli) -> None:
    assert cli("unlink", told["three"]).code == 0
    assert log(cli)["Choose the harbour"]["checkpoint"] is None
    assert cli("link", told["own"], told["session"][:8]).code == 0
    mine = log(cli)["Notes of mine"]["checkpoint"]
    assert (mine["evidence"], mine["sessions"][0]["session_id"]) == ("person", told["session"])
    cli("link")
    assert log(cli)["Choose the harbour"]["checkpoint"] is None
    before = cli("log", "--json").out
    cli("rebuild")
    assert cli("log", "--json").out == before


def test_linking_again_changes_nothing(told: dict[str, str], settings: Any, cli: Cli) -> None:
    before, lines = cli("log", "--json").out, settings.journal.read_text().count("\n")
    report = cli("link", "--json").json
    assert report["commits"] >= 3
    assert cli("log", "--json").out == before
    assert settings.journal.read_text().count("\n") == lines


def test_a_note_is_part_of_the_story(
    told: dict[str, str], cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli(
        "note",
        told["one"],
        "--title",
        "Sturdier fetch",
        "--alternative",
        "A library",
        "--tag",
        "bugfix",
    )
    note = log(cli)["Retry dropped connections"]["checkpoint"]["annotation"]
    assert (note["title"], note["alternatives"], note["tag"], note["by"]) == (
        "Sturdier fetch",
        ["A library"],
        "BUGFIX",
        "person",
    )
    monkeypatch.setenv("CLAUDECODE", "1")
    cli("note", told["one"], "--intent", "because")
    note = log(cli)["Retry dropped connections"]["checkpoint"]["annotation"]
    assert (note["title"], note["intent"], note["by"]) == ("Sturdier fetch", "because", "claude")


def test_a_note_may_come_before_the_story(told: dict[str, str], cli: Cli) -> None:
    assert cli("note", told["own"], "--title", "Mine", "--json").json is None
    cli("link", told["own"], told["session"][:8])
    assert log(cli)["Notes of mine"]["checkpoint"]["annotation"]["title"] == "Mine"


def test_sessions_of_a_path_that_is_gone_are_found_by_an_alias(
    told: dict[str, str], repository: Path, home: Path, cli: Cli
) -> None:
    session = Session("elsewhere", Path("/home/ada/tides"), NOW + timedelta(minutes=30))
    session.prompt("Say when the tide turns.")
    session.call(
        "Write",
        {
            "file_path": "/home/ada/tides/turn.py",
            "content": "def turning_point(table):\n    return max(table)\n",
        },
        "File created",
    )
    session.save(home)
    (repository / "turn.py").write_text(
        "def turning_point(table):\n    return max(table)\n", encoding="utf-8"
    )
    commit(repository, "Turning point", session.at + timedelta(minutes=1))
    cli("ingest")
    assert log(cli)["Turning point"]["checkpoint"] is None
    body = cli("projects", "alias", "/home/ada/tides/", repository, "--json").json
    assert body["stories"] >= 1
    found = log(cli)["Turning point"]["checkpoint"]
    assert (found["evidence"], found["sessions"][0]["session_id"]) == (
        "content",
        session.session_id,
    )
    known = {entry["identity"]: entry for entry in cli("projects", "--json").json}
    assert [entry["aliases"] for entry in known.values() if entry["aliases"]] == [
        ["/home/ada/tides"]
    ]


def test_several_old_paths_are_aliased_and_linked_together(
    told: dict[str, str], repository: Path, home: Path, cli: Cli
) -> None:
    paths = ["/home/ada/tides", "/mnt/laptop/tides"]
    for number, path in enumerate(paths):
        session = Session(f"elsewhere-{number}", Path(path), NOW + timedelta(minutes=30 + number))
        session.prompt("Say when the tide turns.")
        content = f"def turning_point_{number}(table):\n    return max(table, {number}0000)\n"
        written = {"file_path": f"{path}/turn_{number}.py", "content": content}
        session.call("Write", written, "File created")
        session.save(home)
        (repository / f"turn_{number}.py").write_text(content, encoding="utf-8")
        commit(repository, f"Turn {number}", session.at + timedelta(seconds=20))
    cli("ingest")
    assert log(cli)["Turn 0"]["checkpoint"] is None
    done = cli("projects", "alias", *paths, f"{paths[0]}/", repository, "--json")
    assert done.code == 0, done.err
    assert done.json["stories"] >= 2, "both, in one run"
    told_now = log(cli)
    assert all(told_now[f"Turn {number}"]["checkpoint"] for number in range(2))
    assert [known["aliases"] for known in cli("projects", "--json").json if known["aliases"]] == [
        paths
    ]


@pytest.mark.parametrize(
    "arguments, kind",
    [
        (("show", "no-such-thing"), "not_found"),
        (("show", "HEAD", "--raw"), "usage"),
        (("log", "nowhere..HEAD"), "bad_input"),
        (("log", "--branch=--all"), "bad_input"),
        (("diff", "nowhere"), "not_found"),
        (("note", "HEAD"), "bad_input"),
        (("link", "HEAD", "zzzz"), "not_found"),
        (("unlink", "HEAD"), "not_found"),
        (("projects", "alias", "/x", "/no/such/folder"), "not_found"),
    ],
)
def test_errors_name_the_next_command(
    told: dict[str, str], cli: Cli, arguments: tuple[str, ...], kind: str
) -> None:
    found = (
        cli(arguments[0], "--json", *arguments[1:])
        if arguments[0] != "projects"
        else cli(*arguments, "--json")
    )
    assert found.code == 2
    error = json.loads(found.out)["error"]
    assert error["kind"] == kind
    assert error["hint"]


def test_outside_a_repository_it_says_so(
    told: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    monkeypatch.chdir(tmp_path)
    assert json.loads(cli("log", "--json").out)["error"]["kind"] == "not_found"
    assert cli("status", "--json").json["head"] is None


def test_a_hash_that_is_a_session_too_is_ambiguous(
    told: dict[str, str], repository: Path, home: Path, cli: Cli
) -> None:
    session = Session("twin", repository)
    session.session_id = told["one"][:8] + "-0000-4000-8000-000000000000"
    session.prompt("Same beginning.")
    session.save(home)
    cli("ingest")
    assert json.loads(cli("show", told["one"][:8], "--json").out)["error"]["kind"] == "ambiguous"
    assert cli("show", told["one"], "--json").json["commit"] == told["one"]
    assert (
        cli("show", session.session_id, "--json").json["session"]["session_id"]
        == session.session_id
    )


def test_a_project_without_a_remote_is_called_by_its_folder(
    repository: Path, home: Path, cli: Cli, tmp_path: Path
) -> None:
    for name in ("tides", "elsewhere/tides", "elsewhere/moon"):
        folder = tmp_path / "code" / name
        if folder != repository:
            folder.mkdir(parents=True)
            git(folder, "init", "-q", "-b", "main")
            git(folder, "config", "user.name", "Ada")
            git(folder, "config", "user.email", "ada@example.com")
        (folder / "story.txt").write_text(name, encoding="utf-8")
        commit(folder, f"Begin {name}")
        session = Session(name.replace("/", "-"), folder)
        session.prompt("Tell the tides")
        session.save(home)
    assert cli("ingest").code == 0
    projects = {found["cwd"]: found["project"] for found in cli("sessions", "--json").json}
    roots = [project[4:12] for cwd, project in projects.items() if cwd.endswith("tides")]
    for shown in (cli("sessions").out, cli("stats").out, cli("search", "tides").out):
        assert "moon" in shown and "git:" not in shown
        assert all(f"tides {root}" in shown for root in roots), "two of one name are told apart"

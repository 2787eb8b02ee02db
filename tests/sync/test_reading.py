"""What others shared is read by the same commands as one's own: named, kept, and dropped in time."""

from __future__ import annotations

import json
import shutil
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
from msgspec.structs import replace

from tests.conftest import Result
from tests.store.team import TeamProject
from tests.sync.laptop import Laptop, SharedServer
from tests.transcripts import Transcript
from whyfor.service.share import keep_local
from whyfor.sync.cache import follow_shared_changes, shrink_cache
from whyfor.sync.forget import forget_everywhere
from whyfor.sync.remotes import load_remotes, save_remote

Cli = Callable[..., Result]


class Mates(NamedTuple):
    """Ann, who shared a story, and Bob, who reads it on his machine."""

    ann: Laptop
    bob: Laptop
    server: SharedServer
    project: TeamProject
    told: Transcript
    sha: str

    def kept(self) -> bytes:
        """All that Bob's machine keeps of what others shared."""
        files = [path for path in (self.bob.settings.home / "remote").rglob("*") if path.is_file()]
        return b"".join(path.read_bytes() for path in files)

    def point_bob_at(self, url: str) -> None:
        [remote] = load_remotes(self.bob.settings).remotes
        save_remote(self.bob.settings, replace(remote, url=url))


@pytest.fixture
def mates(
    laptop: Laptop,
    server: SharedServer,
    origin: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Mates:
    project = server.served.project()
    server.team.admin.execute("UPDATE people SET name='Ann' WHERE id=%s", (project.person,))
    told = laptop.transcript("gate")
    sha = laptop.work(told, "Mend the gate", "why did the walrus leave?", "because of the gate")
    laptop.git("push", "-q", "origin", "main")
    laptop.ingest()
    laptop.share(server, project, server.key(project.person))
    assert laptop.sync().remotes[0].error is None
    bob = Laptop(tmp_path / "bob", origin, "bob")
    own = bob.transcript("own")
    own.prompt("where does the walrus sleep?")
    own.save(bob.home)
    bob.ingest()
    bob.share(server, project, server.key(project.add("viewer")))
    for name, value in bob.settings.env.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(bob.repo)
    return Mates(laptop, bob, server, project, told, sha)


def test_a_search_finds_what_others_shared_and_says_who_did(mates: Mates, cli: Cli) -> None:
    found = cli("search", "walrus", "--json").json
    by = {hit["from"]: hit for hit in found if hit["type"] == "session"}
    assert set(by) == {None, "Ann"}
    assert by["Ann"]["session_id"] == mates.told.session_id
    assert set(by["Ann"]) == set(by[None]), "the same fields, whoever said it"
    assert by["Ann"]["project"] == by[None]["project"]
    assert [hit["from"] for hit in cli("search", "walrus", "--limit", "1", "--json").json] == [None]
    shown = cli("search", "walrus")
    assert "from Ann" in shown.out
    assert mates.told.session_id in shown.out
    newest = cli("search", "walrus", "--sort", "time", "--json").json
    times = [hit.get("created_at") or hit.get("committed_at") or hit["at"] for hit in newest]
    assert times == sorted(times, reverse=True)
    assert {hit["from"] for hit in cli("search", "walrus", "--local", "--json").json} == {None}
    assert cli("search", "gate", "--agent", "codex", "--json").json == []
    mine = [hit for hit in cli("search", "gate", "--json").json if hit["from"] is None]
    assert mine == []


def test_a_session_that_a_search_found_is_shown_and_restored(mates: Mates, cli: Cli) -> None:
    name = mates.told.session_id
    for reference in (name, f"claude:{name[:12]}"):
        shown = cli("show", reference)
        assert "why did the walrus leave?" in shown.out, shown.err
        assert "From Ann, " in shown.err
    told = cli("show", name, "--json").json
    assert told["from"].startswith("Ann, ")
    assert cli("show", name, "--turns", "--json").json["from"] == told["from"]
    assert b"walrus" in cli("show", name, "--raw").out.encode()
    made = cli("restore", name, "--yes", "--json")
    assert made.code == 0, made.err
    assert "words of Ann" in " ".join(made.json["warnings"])
    written = Path(made.json["path"]).read_text()
    assert "walrus" in written
    assert "From Ann" in written, "the new session is marked as theirs"
    assert made.json["session_id"] != name
    assert cli("show", "ffffffffff").code != 0


def test_what_was_restored_from_somebody_stays_theirs(mates: Mates, cli: Cli) -> None:
    bob, number = mates.bob, mates.project.number
    person = mates.server.team.new_person()
    mates.server.team.admin.execute(
        "INSERT INTO project_members VALUES(%s, %s, 'member')", (number, person)
    )
    bob.share(mates.server, mates.project, mates.server.key(person), "all")
    made = Path(cli("restore", mates.sha, "--yes", "--json").json["path"])
    bob.ingest()
    listed = {entry["commit"]: entry for entry in cli("log", "--json").json}
    assert listed[mates.sha]["from"] == "Ann", "the copy is no evidence"
    told = bob.transcript("restored")
    told.session_id = made.stem
    told.lines = [json.loads(line) for line in made.read_text().splitlines()]
    told.path = lambda home: made  # type: ignore[method-assign]
    sha = bob.work(told, "Paint the gate", "now paint it like a heron")
    bob.git("push", "-q", "origin", "main")
    bob.ingest()
    assert bob.sync().remotes[0].error is None
    assert bob.states()[sha] == "sent"
    assert mates.sha not in bob.states()
    rows = mates.server.rows("SELECT sha FROM checkpoints WHERE person=%s", person)
    assert rows == [(sha,)]
    words = str(mates.server.rows("SELECT text FROM events WHERE person=%s", person))
    assert "heron" in words
    assert "why did the walrus leave?" not in words, "Ann shares her words herself"


def test_a_list_of_commits_has_the_stories_of_others(mates: Mates, cli: Cli) -> None:
    listed = {entry["commit"]: entry for entry in cli("log", "--json").json}
    theirs = listed[mates.sha]
    assert theirs["from"] == "Ann"
    assert theirs["checkpoint"]["sessions"][0]["session_id"] == mates.told.session_id
    assert "from Ann" in cli("log").out
    mates.bob.git("commit", "-q", "--amend", "-m", "Another name")
    renamed = mates.bob.git("rev-parse", "HEAD")
    listed = {entry["commit"]: entry for entry in cli("log", "--json").json}
    assert listed[renamed]["from"] == "Ann", "a commit with the same change"
    assert cli("show", renamed, "--json").json["from"].startswith("Ann, ")


def test_lines_that_others_wrote_have_their_turns(mates: Mates, cli: Cli) -> None:
    [line] = cli("blame", "notes.txt", "--json").json["lines"]
    assert line["who"]["kind"] == "agent"
    assert line["who"]["from"].startswith("Ann, ")
    assert line["asked"] == "why did the walrus leave?"
    assert "shared by Ann" in cli("blame", "notes.txt").err
    tagged = cli("blame", "notes.txt", "HEAD", "--line-porcelain").out
    assert "whyfor-from Ann, " in tagged
    why = cli("why", "notes.txt:1")
    assert "from Ann" in why.out
    assert "why did the walrus leave?" in why.out
    assert "because of the gate" in why.out
    mates.bob.git("commit", "-q", "--amend", "-m", "Another name")
    [line] = cli("blame", "notes.txt", "--json").json["lines"]
    assert line["asked"] == "why did the walrus leave?", "by the change, not by the commit's id"


@contextmanager
def silent_server() -> Iterator[str]:
    """A server that takes connections and never answers."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(64)
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"


def test_without_its_server_a_command_answers_within_a_second_more(mates: Mates, cli: Cli) -> None:
    cli("show", mates.sha)
    commands: list[tuple[str, ...]] = [
        ("log",),
        ("search", "walrus"),
        ("show", "claude:ffffffff"),
        ("show", "HEAD~1"),
        ("blame", "notes.txt"),
        ("why", "notes.txt:1"),
    ]
    plain = {}
    [remote] = load_remotes(mates.bob.settings).remotes
    file = mates.bob.settings.remotes
    kept = file.read_bytes()
    file.unlink()
    for command in commands:
        begun = time.monotonic()
        cli(*command)
        plain[command] = time.monotonic() - begun
    file.write_bytes(kept)
    folder = mates.bob.settings.home / "remote"
    with silent_server() as url:
        mates.point_bob_at(url)
        names = [place.name for place in folder.iterdir()]
        (folder / names[0]).rename(
            folder / f"{url.partition('://')[2].replace(':', '-')}-{remote.team_project}"
        )
        shown = cli("show", mates.sha)
        assert "why did the walrus leave?" in shown.out, "what was read before is kept"
        assert "From Ann" in shown.err
        for command in commands:
            begun = time.monotonic()
            done = cli(*command)
            # a second of patience; the rest is what a busy machine takes longer
            assert time.monotonic() - begun < 5 * plain[command] + 6, command
            assert "server" in done.err or "walrus" in done.out, (command, done)
        shutil.rmtree(folder)
        for command in (("blame", "notes.txt"), ("why", "notes.txt:1"), ("show", mates.sha)):
            assert "server" in cli(*command).err, "nobody takes it for an answer"


def test_what_was_taken_back_or_replaced_is_gone_from_the_machines_of_others(
    mates: Mates, cli: Cli
) -> None:
    value = "Qx7vPz2mLk9sTr4w"
    told = mates.ann.transcript("late")
    later = mates.ann.work(told, "Lock the gate", f"the gate says {value} to the badger")
    mates.ann.git("push", "-q", "origin", "main")
    mates.ann.ingest()
    mates.ann.sync()
    mates.bob.git("pull", "-q")
    assert "walrus" in cli("show", mates.sha).out
    assert "badger" in cli("show", later).out
    assert _kept_words(mates, value, "walrus") == [True, True]
    told.prompt(f"by the way, export GATE_PASSWORD={value}")
    told.save(mates.ann.home)
    mates.ann.ingest()
    assert mates.ann.sync().remotes[0].error is None
    [remote] = load_remotes(mates.bob.settings).remotes
    assert follow_shared_changes(mates.bob.settings, remote) > 0
    assert _kept_words(mates, value, "walrus") == [False, True]
    assert "REDACTED" in cli("show", later).out
    keep_local(mates.ann.settings, later, mates.ann.repo)
    forget_everywhere(mates.ann.settings, [f"claude:{mates.told.session_id}"], [])
    assert mates.ann.sync().remotes[0].error is None
    assert mates.bob.sync().remotes[0].error is None, "a pass of the outbox asks too"
    assert _kept_words(mates, "badger", "walrus") == [False, False]
    assert "walrus" not in cli("show", mates.sha).out


def _kept_words(mates: Mates, *words: str) -> list[bool]:
    """Which words are anywhere in the copies on Bob's machine."""
    import zstandard

    data = mates.kept()
    for path in (mates.bob.settings.home / "remote").rglob("*.zst"):
        data += zstandard.decompress(path.read_bytes())
    return [word.encode() in data for word in words]


def test_copies_are_private_and_bounded(mates: Mates, cli: Cli) -> None:
    cli("show", mates.sha)
    folder = mates.bob.settings.home / "remote"
    for path in folder.rglob("*"):
        assert path.stat().st_mode & 0o077 == 0, path
    shrink_cache(folder, 1 << 30)
    assert list(folder.glob("*/*/whyfor.db"))
    shrink_cache(folder, 10)
    assert not list(folder.glob("*/*/whyfor.db"))
    assert "walrus" in cli("show", mates.sha).out, "and is fetched again"


def test_notes_of_others_are_told_to_no_session_before_a_person_took_them_over(
    mates: Mates, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = mates.ann.transcript("rule")
    told.prompt("From now on always use pnpm instead of npm in this repository.")
    told.say("I will always use pnpm instead of npm.")
    mates.ann.work(told, "Use pnpm", "now add the lock file")
    mates.ann.git("push", "-q", "origin", "main")
    mates.ann.ingest()
    assert mates.ann.sync().remotes[0].error is None
    listed = cli("memory", "team", "--json").json
    [note] = [each for each in listed if each["type"] == "rule" and "pnpm" in each["title"]]
    assert note["from"] == "Ann"
    assert "Ann" in cli("memory", "team").out
    assert "pnpm" not in cli("memory", "preview").out
    with monkeypatch.context() as agent:
        agent.setenv("CLAUDECODE", "1")
        refused = cli("memory", "accept", note["id"])
        assert "only a person" in refused.err
    taken = cli("memory", "accept", note["id"][:8], "--json")
    assert taken.code == 0, taken.err
    told_next = cli("memory", "preview").out
    assert "pnpm" in told_next
    assert "(from Ann)" in told_next
    assert note["id"] not in [each["id"] for each in cli("memory", "team", "--json").json]
    assert cli("memory", "forget", note["id"]).code == 0
    assert "pnpm" not in cli("memory", "preview").out

"""A session is forgotten: nothing of it is left, nothing brings it back, and nothing else has
changed."""

from __future__ import annotations

import hashlib
import shutil
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.capture.snapshot import Snapshot, assert_equal, derived, stored_bytes
from tests.capture.test_ingest import external, story, write
from tests.service.forget.traces import CANARY, traces
from tests.transcripts import Transcript
from whyfor.config import Settings
from whyfor.model.errors import NotFound
from whyfor.service.forget import ForgetArguments, forget
from whyfor.service.ingest import ingest
from whyfor.service.rebuild import rebuild
from whyfor.store.blobs import FolderBlobs
from whyfor.store.journal import ForgottenEntry, Journal

Cli = Callable[..., Any]


def secret(name: str = "secret") -> Transcript:
    """A session that says it everywhere."""
    said = Transcript(name)
    said.prompt(f"the word is {CANARY}")
    said.think(f"so it is {CANARY}")
    said.call("Bash", {"command": f"echo {CANARY}"}, f"{CANARY}\n" * 3)
    said.call("Write", {"file_path": f"/code/shop/{CANARY}.py", "content": CANARY})
    said.say(f"I keep {CANARY} to myself")
    said.lines.append(
        {"type": "ai-title", "aiTitle": f"About {CANARY}", "sessionId": said.session_id}
    )
    said.lines.append({"type": CANARY, "sessionId": said.session_id})
    return said


def subagent(home: Path, parent: Transcript) -> Path:
    """One that worked for the session, in a file of its own."""
    said = Transcript("child")
    said.session_id = parent.session_id
    said.prompt(f"look into {CANARY}")
    said.say(f"found {CANARY}")
    for line in said.lines:
        line.update(agentId="abc123", isSidechain=True)
    return write(
        parent.path(home).parent / parent.session_id / "subagents" / "agent-abc123.jsonl",
        said.text(),
    )


@pytest.fixture
def kept(settings: Settings, home: Path) -> Settings:
    """Sessions that stay, and one that shall go with all that hangs on it."""
    story("one").save(home)
    said = secret()
    path = said.save(home)
    call = said.call("Bash", {"command": "cat all"}, "<persisted-output>saved</persisted-output>")
    write(path, said.text() + "{torn " + CANARY + "\n")
    external(said, home, call, f"{CANARY}\n" * 20)
    subagent(home, said)
    story("two", 5).save(home)
    ingest(settings)
    assert traces(settings.home)
    return settings


def without(home: Path, settings: Settings, said: Transcript) -> Settings:
    """What there would be had the session never existed."""
    bare = settings.home.with_name("user-without")
    shutil.copytree(home, bare)
    said.path(bare).unlink()
    shutil.rmtree(said.path(bare).parent / said.session_id, ignore_errors=True)
    other = Settings(home=settings.home.with_name("without"), user_home=bare, env={})
    ingest(other)
    return other


def apart_from(snapshot: Snapshot, home: Path, other: Path, session: str) -> Snapshot:
    """With paths of one home as of the other, and without the rows that say a file is passed by."""
    found = {}
    for name, rows in snapshot.items():
        mended = [
            tuple(v.replace(str(home), str(other)) if isinstance(v, str) else v for v in row)
            for row in rows
        ]
        found[name] = sorted((row for row in mended if session not in repr(row)), key=repr)
    return found


def everything(settings: Settings) -> Snapshot:
    return derived(settings, segments=True)


def test_no_byte_is_left_and_all_else_is_as_if_it_had_never_been(
    kept: Settings, home: Path
) -> None:
    said = secret()
    other = without(home, kept, said)
    report = forget(kept, Path.cwd(), ForgetArguments(said.session_id))
    assert traces(kept.home) == []
    assert report.finished
    wanted = apart_from(everything(other), other.user_home, home, said.session_id)
    assert_equal(apart_from(everything(kept), home, home, said.session_id), wanted)


@pytest.mark.parametrize(
    "how", ["again", "touched", "grown", "rewritten", "moved", "rebuilt", "lost", "given"]
)
def test_nothing_brings_it_back(how: str, kept: Settings, home: Path) -> None:
    said = secret()
    forget(kept, Path.cwd(), ForgetArguments(said.session_id))
    before = everything(kept)
    path = said.path(home)
    if how == "touched":
        path.touch()
    elif how == "grown":
        said.prompt(f"and on about {CANARY}")
        said.save(home)
    elif how == "rewritten":
        write(path, said.text()[::-1][:50] + "\n" + said.text())
    elif how == "moved":
        write(path.parent.with_name("-elsewhere") / path.name, path.read_bytes())
        path.unlink()
    elif how == "rebuilt":
        assert rebuild(kept).gaps == []
    elif how == "lost":
        for file in kept.home.glob("whyfor.db*"):
            file.unlink()
    if how == "given":
        with pytest.raises(NotFound, match="was forgotten"):
            ingest(kept, [path])
    ingest(kept)
    assert traces(kept.home) == []
    names = (
        "sessions",
        "events",
        "usage",
        "touches",
        "docs",
        "words",
        "segments",
        "leaf_titles",
        "unparsed",
    )
    after = everything(kept)
    assert_equal({name: after[name] for name in names}, {name: before[name] for name in names})
    assert ingest(kept).new_records == 0
    rebuild(kept)
    assert traces(kept.home) == []


def test_a_dry_run_says_what_then_happens_and_writes_nothing(kept: Settings, cli: Cli) -> None:
    said = secret()
    before = {
        path: path.read_bytes()
        for path in kept.home.rglob("*")
        if path.is_file() and "-shm" not in path.name
    }
    planned = cli("forget", said.session_id, "--dry-run", "--json").json
    after = {
        path: path.read_bytes()
        for path in kept.home.rglob("*")
        if path.is_file() and "-shm" not in path.name
    }
    assert after == before
    done = cli("forget", said.session_id, "--yes", "--json").json
    for report in (planned, done):
        report.pop("seconds")
    assert (planned.pop("dry_run"), done.pop("dry_run")) == (True, False)
    assert planned == done
    assert [gone["subagent"] for gone in done["sessions"]] == [False, True]
    assert done["records"] == 15


def test_what_stays_can_still_be_read_and_grows_on(kept: Settings, home: Path) -> None:
    forget(kept, Path.cwd(), ForgetArguments(secret().session_id))
    said = story("two", 6)
    said.save(home)
    assert ingest(kept).new_records == 4
    assert stored_bytes(kept)[str(said.path(home))] == said.text().encode()


def test_titles_for_it_and_from_it_in_other_files_go(settings: Settings, home: Path) -> None:
    """Old versions of Claude Code wrote a title into whatever file came next."""
    said, other = secret(), story("other")
    for about, text in ((said, f"All of {CANARY}"), (other, "Apples")):
        title = {"type": "summary", "summary": text, "leafUuid": about.lines[4]["uuid"]}
        keeper = story(f"keeper of {text[:3]}")
        keeper.lines.insert(0, title)
        keeper.save(home)
    said.lines.insert(
        0,
        {"type": "summary", "summary": f"Not yours, {CANARY}", "leafUuid": other.lines[5]["uuid"]},
    )
    said.save(home)
    other.save(home)
    ingest(settings)
    forget(settings, Path.cwd(), ForgetArguments(said.session_id))
    assert traces(settings.home) == []
    after = everything(settings)
    assert ("Apples" in row for row in after["sessions"])
    rebuild(settings)
    assert_equal({**everything(settings), "sources": []}, {**after, "sources": []})
    ingest(settings)
    assert traces(settings.home) == []


def test_what_a_killed_process_left_behind_goes_too(kept: Settings, home: Path) -> None:
    """Segments that no journal knows of, half written objects, a rebuild that never ended."""
    FolderBlobs(kept.segments).put(secret().text().encode() * 2)
    write(kept.segments / "a" / "abc.zst#1", CANARY)
    write(kept.home / "rebuild.db", CANARY)
    write(kept.home / ".journal.jsonl.x1", CANARY)
    write(kept.home / "whyfor.db.damaged-20260101-000000-wal", CANARY)
    before = stored_bytes(kept)[str(story("two", 5).path(home))]
    forget(kept, Path.cwd(), ForgetArguments(secret().session_id))
    assert traces(kept.home) == []
    assert stored_bytes(kept)[str(story("two", 5).path(home))] == before


def test_a_tombstone_says_nothing_about_what_it_stands_for(kept: Settings, home: Path) -> None:
    other = Settings(home=kept.home.with_name("other"), user_home=home, env={})
    ingest(other)
    found = []
    for settings in (kept, other):
        forget(settings, Path.cwd(), ForgetArguments(match=CANARY))
        [entry] = [
            entry
            for entry in Journal(settings.journal).entries()
            if isinstance(entry, ForgottenEntry)
        ]
        assert entry.strings
        found.append(set(entry.strings))
        assert stat.S_IMODE((settings.home / "salt").stat().st_mode) == 0o600
        for text in (CANARY, f"the word is {CANARY}"):
            plain = {
                hashlib.new(name, text.encode()).hexdigest()[:32]
                for name in ("sha256", "md5", "blake2b")
            }
            assert not plain & found[-1]
    assert not found[0] & found[1], "the same text has another digest in another home"

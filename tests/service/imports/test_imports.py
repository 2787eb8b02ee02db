"""Conversations from elsewhere: recognised by content, bounded, and the same when read again."""

from __future__ import annotations

import json
import sqlite3
import zipfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.agents.samples import PROMPT, sample
from tests.capture.snapshot import derived
from tests.conftest import Result
from tests.service.imports.exports import (
    CHAT,
    SPECSTORY,
    TALK,
    chatgpt_conversation,
    claude_conversation,
)
from whyfor.agents import AGENTS
from whyfor.agents.base import SourceShape
from whyfor.config import Settings
from whyfor.model.findings import Sink
from whyfor.service.doctor import examine
from whyfor.store.open import reading

Cli = Callable[..., Result]


def zipped(path: Path, **files: str | bytes) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name.replace("__", "/"), content)
    return path


def export_of(path: Path, *conversations: dict[str, Any]) -> Path:
    name = {"conversations.json": json.dumps(list(conversations)), "user.json": "{}"}
    return zipped(path, **name)


def listed(cli: Cli) -> dict[str, dict[str, Any]]:
    return {one["session_id"]: one for one in cli("sessions", "--json").json}


def events(cli: Cli, ident: str) -> list[tuple[str, str]]:
    found = cli("show", ident, "--json").json["events"]
    return [(one["kind"], one["text"]) for one in found]


# -- web chats -----------------------------------------------------------------------------------


def test_a_chatgpt_export_is_read_along_the_path_that_was_shown(tmp_path: Path, cli: Cli) -> None:
    done = cli("import", str(export_of(tmp_path / "chats.zip", chatgpt_conversation())), "--json")
    assert done.code == 0, done.err
    assert (done.json["conversations"], done.json["sessions"]) == (1, 1)
    one = listed(cli)[CHAT]
    assert (one["agent"], one["title"]) == ("chatgpt", "Tide gauge")
    assert one["prompts"] == 1
    told = events(cli, CHAT)
    assert ("user.prompt", "How high is the tide gauge?") in told
    assert ("assistant.thinking", "Multiply.") in told
    assert ("tool.result", "42") in told
    assert ("assistant.message", "It is 42 feet high.") in told
    texts = [text for _, text in told]
    assert "Nobody knows." not in texts
    assert "be brief" not in texts


def test_a_claude_export_is_read_with_thoughts_tools_and_attachments(
    tmp_path: Path, cli: Cli
) -> None:
    path = tmp_path / "conversations.json"
    path.write_text(json.dumps([claude_conversation()]))
    assert cli("import", str(path)).code == 0
    one = listed(cli)[TALK]
    assert (one["agent"], one["title"]) == ("claude-web", "A breakwater")
    told = events(cli, TALK)
    assert ("user.prompt", "Draw the breakwater\n[attached: chart.txt]") in told
    assert ("assistant.thinking", "A line is enough.") in told
    assert ("tool.result", "OK") in told
    assert ("assistant.message", "Here is the breakwater.") in told


def test_a_later_export_adds_what_is_new_and_nothing_twice(tmp_path: Path, cli: Cli) -> None:
    first = export_of(tmp_path / "one.zip", chatgpt_conversation())
    cli("import", str(first))
    again = cli("import", str(first), "--json").json
    assert (again["sessions"], again["new_records"]) == (0, 0)
    assert "All of it was here already" in cli("import", str(first)).out
    later = export_of(tmp_path / "two.zip", chatgpt_conversation("And at low tide?"))
    cli("import", str(later))
    prompts = [text for kind, text in events(cli, CHAT) if kind == "user.prompt"]
    assert prompts == ["How high is the tide gauge?", "And at low tide?"]
    assert listed(cli)[CHAT]["prompts"] == 2


def test_specstory_notes_become_a_session_of_their_project(tmp_path: Path, cli: Cli) -> None:
    notes = tmp_path / "lighthouse" / ".specstory" / "history"
    notes.mkdir(parents=True)
    (notes / "2026-02-03_08-09Z-lighthouse-keeper.md").write_text(SPECSTORY)
    (notes / "readme.md").write_text("# Somebody's own notes\n")
    done = cli("import", str(tmp_path / "lighthouse"), "--json")
    assert done.code == 0, done.err
    [one] = cli("sessions", "--json").json
    assert (one["agent"], one["title"]) == ("specstory", "Lighthouse keeper")
    assert one["cwd"] == str(tmp_path / "lighthouse")
    assert one["started_at"].startswith("2026-02-03T08:09")
    told = [pair for pair in events(cli, one["session_id"]) if pair[1]]
    assert told == [
        ("user.prompt", "Light the lamp at dusk"),
        ("assistant.message", "The lamp is lit at dusk."),
        ("user.prompt", "Thank you"),
    ]


def test_odd_values_in_an_export_never_raise() -> None:
    odd: tuple[Any, ...] = (None, True, 7, -1.5, "", [], [[]], {}, {"": None}, [7])
    documents = {
        "chatgpt": chatgpt_conversation("more"),
        "claude-web": claude_conversation(),
        "specstory": {"specstory": {"name": "2026-02-03_08-09Z-x.md", "text": SPECSTORY}},
    }
    tried = 0
    for name, document in documents.items():
        for spoilt in _spoilt(document, odd):
            agent = AGENTS[name]
            agent.stamp(spoilt)
            agent.reader(SourceShape("document", "x"), {}).read(spoilt, 0, b"", Sink("x"))
            tried += 1
    assert tried > 500


def _spoilt(value: Any, odd: tuple[Any, ...]) -> Any:
    """Yield a document with one of its values replaced, each in turn."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in list(items):
        copies = list(odd)
        if isinstance(inner, dict | list):
            copies += list(_spoilt(inner, odd))
        for each in copies:
            copy = dict(value) if isinstance(value, dict) else list(value)
            copy[key] = each
            yield copy


# -- agents' files -------------------------------------------------------------------------------


def test_a_home_of_another_machine_is_read_and_its_sessions_say_so(
    tmp_path: Path, cli: Cli, settings: Settings
) -> None:
    laptop = tmp_path / "old laptop"
    for name in ("claude", "codex", "pi", "goose", "cline"):
        sample(name).write(laptop)
    done = cli("import", str(laptop), "--json")
    assert done.code == 0, done.err
    found = {one["agent"] for one in listed(cli).values()}
    assert found == {"claude", "codex", "pi", "goose", "cline"}
    assert PROMPT in cli("show", sample("pi").session_id).out
    assert "imported from old-laptop" in cli("show", sample("pi").session_id).out
    told = cli("show", sample("pi").session_id, "--json").json
    assert told["imported_from"].startswith("old-laptop-")
    assert not (settings.home / "imports").exists() or not any(
        (settings.home / "imports").iterdir()
    )
    again = cli("import", str(laptop), "--json").json
    assert (again["sessions"], again["new_records"]) == (0, 0)
    assert examine(settings).ok


def test_a_zip_of_transcripts_is_read_and_later_ones_go_on(tmp_path: Path, cli: Cli) -> None:
    one = sample("pi")
    [(name, content)] = one.files.items()
    assert isinstance(content, bytes)
    lines = content.splitlines(keepends=True)
    half = zipped(tmp_path / "part.zip", **{name: b"".join(lines[:6])})
    assert cli("import", str(half)).code == 0
    half.unlink()
    zipped(tmp_path / "part.zip", **{name: content})
    assert cli("import", str(tmp_path / "part.zip")).code == 0
    assert listed(cli)[one.session_id]["prompts"] == len(one.prompts)


def test_what_holds_no_conversation_is_said_and_nothing_is_stored(
    tmp_path: Path, cli: Cli, settings: Settings
) -> None:
    (tmp_path / "notes.txt").write_text("nothing")
    (tmp_path / "empty").mkdir()
    (tmp_path / "hollow.zip").write_bytes(b"PK\x05\x06" + b"\x00" * 18)
    (tmp_path / "cut.zip").write_bytes(b"PK\x03\x04" + b"\x00" * 18)
    (tmp_path / "noise.bin").write_bytes(bytes(range(256)))
    (tmp_path / "nothing.jsonl").touch()
    (tmp_path / "cut.json").write_text('[{"mapping": {}, "id": "a1"}, {"map')
    for name, why in {
        "empty": "no conversation",
        "hollow.zip": "no conversation",
        "noise.bin": "no conversation",
        "nothing.jsonl": "no conversation",
        "cut.zip": "damaged archive",
        "cut.json": "no list of conversations",
        "gone": "no such file",
        "/dev/zero": "no plain file",
    }.items():
        refused = cli("import", str(tmp_path / name))
        assert (refused.code, why in refused.err) == (2, True), (name, refused.err)
    assert not settings.imports.exists() or not list(settings.imports.iterdir())
    assert "nothing is kept yet" in cli("sessions").err


def test_a_damaged_file_does_not_keep_the_others_of_a_folder_out(tmp_path: Path, cli: Cli) -> None:
    one = sample("pi")
    given = tmp_path / "given"
    for name, content in one.files.items():
        (given / Path(name).name).parent.mkdir(exist_ok=True)
        assert isinstance(content, bytes)
        (given / Path(name).name).write_bytes(content)
    (given / "cut.json").write_text('[{"mapping": {}, "id": "a1"}, {"map')
    half = editor_state(tmp_path / "whole.db").read_bytes()[:3000]
    (given / "half.db").write_bytes(half)
    done = cli("import", str(given), "--json").json
    assert done["sessions"] == 1
    assert sorted(line.split(":")[0] for line in done["unreadable"]) == ["cut.json", "half.db"]


def test_an_archive_cannot_write_outside_nor_unpack_without_end(
    tmp_path: Path, cli: Cli, settings: Settings
) -> None:
    hostile = tmp_path / "hostile.zip"
    with zipfile.ZipFile(hostile, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("../../escaped.jsonl", "x")
        archive.writestr("/absolute.jsonl", "x")
        link = zipfile.ZipInfo("link.jsonl")
        link.external_attr = 0o120777 << 16
        archive.writestr(link, "/etc/passwd")
    assert cli("import", str(hostile)).code == 2
    assert not list(tmp_path.rglob("escaped.jsonl"))
    bomb = zipped(tmp_path / "bomb.zip", **{"a.jsonl": b"\x00" * (64 << 20)})
    refused = cli("import", str(bomb))
    assert refused.code == 2
    assert "claims to unpack" in refused.err
    assert not list(settings.home.rglob("a.jsonl"))


# -- whole homes ---------------------------------------------------------------------------------


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Go to another machine: another user's home, and nothing kept."""

    def go() -> None:
        monkeypatch.setenv("WHYFOR_HOME", str(tmp_path / "second"))
        monkeypatch.setenv("HOME", str(tmp_path / "second-home"))
        (tmp_path / "second-home").mkdir(exist_ok=True)

    return go


def test_a_whole_home_moves_to_another_machine(
    home: Path, tmp_path: Path, cli: Cli, settings: Settings, elsewhere: Callable[[], None]
) -> None:
    for name in ("claude", "codex", "goose"):
        sample(name).write(home)
    cli("ingest")
    cli("config", "set", "checkout_line", "false")
    archive = tmp_path / "home.zip"
    made = cli("export", "--all", "--output", str(archive), "--json")
    assert made.code == 0, made.err
    assert archive.stat().st_mode & 0o077 == 0
    assert cli("export", "--all", "--output", str(archive)).code == 2
    before = derived(settings)
    elsewhere()
    done = cli("import", str(archive), "--json")
    assert done.code == 0, done.err
    assert done.json["from_home"] and done.json["sessions"] == 3
    there = Settings(tmp_path / "second", tmp_path / "second-home", {})
    assert derived(there) == before
    assert cli("config", "get", "checkout_line").out.strip() == "false"
    again = cli("import", str(archive), "--json").json
    assert (again["sessions"], again["new_records"]) == (0, 0)
    assert derived(there) == before


def test_two_homes_are_merged_and_what_was_forgotten_stays_forgotten(
    home: Path, tmp_path: Path, cli: Cli, elsewhere: Callable[[], None]
) -> None:
    for name in ("claude", "pi"):
        sample(name).write(home)
    cli("ingest")
    archive = tmp_path / "home.zip"
    cli("export", "--all", "--output", str(archive))
    elsewhere()
    sample("codex").write(tmp_path / "second-home")
    cli("ingest")
    cli("import", str(archive))
    assert {one["agent"] for one in listed(cli).values()} == {"claude", "codex", "pi"}
    assert cli("forget", f"pi:{sample('pi').session_id}", "--yes").code == 0
    assert cli("import", str(archive)).code == 0
    assert {one["agent"] for one in listed(cli).values()} == {"claude", "codex"}
    assert cli("rebuild").code == 0
    assert {one["agent"] for one in listed(cli).values()} == {"claude", "codex"}


def test_a_source_that_grew_elsewhere_goes_on_here(
    home: Path, tmp_path: Path, cli: Cli, elsewhere: Callable[[], None]
) -> None:
    one = sample("pi")
    one.write(home, 0.4)
    cli("ingest")
    short = tmp_path / "short.zip"
    cli("export", "--all", "--output", str(short))
    one.write(home)
    cli("ingest")
    whole = tmp_path / "whole.zip"
    cli("export", "--all", "--output", str(whole))
    elsewhere()
    cli("import", str(short))
    cli("import", str(whole))
    assert listed(cli)[one.session_id]["prompts"] == len(one.prompts)
    cli("import", str(short))
    assert listed(cli)[one.session_id]["prompts"] == len(one.prompts)
    with reading(Settings(tmp_path / "second", tmp_path / "second-home", {})) as library:
        assert library.stats.totals().sessions == 1


def test_an_archive_of_a_newer_program_is_refused(tmp_path: Path, cli: Cli) -> None:
    newer = {"format": 9, "version": "9.0", "made_at": 1}
    path = zipped(tmp_path / "newer.zip", **{"whyfor-home.json": json.dumps(newer)})
    refused = cli("import", str(path))
    assert refused.code == 2
    assert "Upgrade Whyfor" in refused.err


# -- editors and terminals -----------------------------------------------------------------------


def editor_state(path: Path) -> Path:
    """A database of Cursor's, with one chat, and things that are none."""
    call = {"name": "search_replace", "toolCallId": "t1", "status": "completed", "result": "{}"}
    given = {"file_path": "a.txt", "old_string": "moor", "new_string": "quay"}
    bubbles = {
        "b1": {"type": 1, "text": "Where does the boat lie?"},
        "b2": {"type": 2, "thinking": {"text": "Look."}, "text": "At the quay."},
        "b3": {"type": 2, "toolFormerData": {**call, "rawArgs": json.dumps(given)}},
    }
    about = {
        "composerId": "c-1",
        "name": "The boat",
        "createdAt": 1_790_000_000_000,
        "fullConversationHeadersOnly": [{"bubbleId": name} for name in (*bubbles, "gone")],
        "workspaceIdentifier": {"uri": {"fsPath": "/code/quay"}},
    }
    rows = {
        "composerData:c-1": json.dumps(about),
        "composerData:empty": "{}",
        "composerData:../../x": json.dumps({"conversation": [{"type": 1, "text": "out"}]}),
        "composerData:broken": "{",
        **{f"bubbleId:c-1:{name}": json.dumps(one) for name, one in bubbles.items()},
    }
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE cursorDiskKV (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB)")
        db.executemany("INSERT INTO cursorDiskKV VALUES (?, ?)", rows.items())
        db.commit()
    return path


def test_chats_of_cursors_editor_are_read_from_its_database(tmp_path: Path, cli: Cli) -> None:
    state = editor_state(tmp_path / "state.vscdb")
    done = cli("import", str(state), "--json")
    assert done.code == 0, done.err
    assert (done.json["conversations"], done.json["sessions"]) == (1, 1)
    session = listed(cli)["c-1"]
    assert (session["agent"], session["title"], session["cwd"]) == (
        "cursor",
        "The boat",
        "/code/quay",
    )
    told = events(cli, "c-1")
    assert ("user.prompt", "Where does the boat lie?") in told
    assert ("assistant.thinking", "Look.") in told
    assert ("assistant.message", "At the quay.") in told
    shown = cli("show", "c-1", "--json").json
    assert [e["name"] for e in shown["events"] if e["kind"] == "tool.call"] == ["search_replace"]
    assert cli("import", str(tmp_path), "--json").json["new_records"] == 0 or len(listed(cli)) == 1
    assert [path.name for path in tmp_path.iterdir() if "state" in path.name] == ["state.vscdb"]


def test_a_damaged_database_of_an_editor_is_told(tmp_path: Path, cli: Cli) -> None:
    state = editor_state(tmp_path / "state.vscdb")
    state.write_bytes(state.read_bytes()[:6000])
    done = cli("import", str(state))
    assert done.code != 0
    assert "state.vscdb" in done.err or "no conversation" in done.err


def test_a_recording_of_a_terminal_is_imported_once(tmp_path: Path, cli: Cli) -> None:
    header = {"version": 2, "width": 80, "height": 24, "timestamp": 1_790_000_000, "title": "demo"}
    lines = [json.dumps(header), '[0.1, "o", "$ echo hello\\r\\n"]', '[0.2, "o", "hello\\r\\n"]']
    cast = tmp_path / "demo.cast"
    cast.write_text("\n".join(lines) + "\n")
    assert cli("import", str(cast), "--json").json["sessions"] == 1
    assert cli("import", str(cast), "--json").json["new_records"] == 0
    (session,) = listed(cli).values()
    assert (session["agent"], session["title"]) == ("terminal", "demo")

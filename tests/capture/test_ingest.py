"""What can happen to the agents' files between two ingests, and what is kept of them."""

from __future__ import annotations

import json
import os
import shutil
import stat
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zstandard

from tests.capture.snapshot import assert_equal, derived, found, on_disk, stored_bytes
from tests.transcripts import Transcript
from whyfor.capture import ingest as batches
from whyfor.capture import rebuild as rebuilding
from whyfor.capture import tail
from whyfor.config import Settings
from whyfor.model.query import SessionFilter
from whyfor.service.doctor import examine
from whyfor.service.ingest import ingest
from whyfor.service.rebuild import rebuild
from whyfor.service.sessions import sessions
from whyfor.service.show import raw_records
from whyfor.story.session_lookup import load_conversation

DAY = 86_400


def story(name: str = "story", turns: int = 3) -> Transcript:
    said = Transcript(name)
    for number in range(turns):
        said.prompt(f"question {number} about apples")
        said.call("Bash", {"command": f"make step{number}"}, f"made {number}")
        said.say(f"answer {number}, with pears")
    return said


def write(path: Path, text: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def shown(settings: Settings, session: str) -> bytes:
    return b"".join(raw_records(settings, session))


def said_in(settings: Settings, session: str) -> list[str]:
    return [
        e.text
        for e in load_conversation(settings, session).events
        if e.kind in ("user.prompt", "assistant.message")
    ]


def agent_health(cli: Callable[..., Any], name: str = "claude") -> dict[str, Any]:
    [health] = [item for item in cli("doctor", "--json").json["agents"] if item["agent"] == name]
    return dict(health)


# -- nothing happened ----------------------------------------------------------------------------


def test_a_second_ingest_writes_nothing(settings: Settings, home: Path) -> None:
    said = story()
    said.save(home)
    assert ingest(settings).new_records == len(said.lines)
    before = on_disk(settings.home)
    again = ingest(settings)
    assert (again.files, again.sessions, again.records, again.new_records) == (
        1,
        1,
        len(said.lines),
        0,
    )
    assert on_disk(settings.home) == before


def test_a_file_that_was_only_touched_adds_nothing(settings: Settings, home: Path) -> None:
    path = story().save(home)
    ingest(settings)
    before = derived(settings, observed=True, segments=True)
    os.utime(path, (1, 1))
    assert ingest(settings).new_records == 0
    assert_equal(derived(settings, observed=True, segments=True), before)


def test_a_home_without_agents_is_no_error(settings: Settings, cli: Callable[..., Any]) -> None:
    assert cli("ingest", "--json").json["files"] == 0
    assert "No agent has left a session here yet" in cli("ingest").out


def test_empty_files_are_read_when_something_is_in_them(settings: Settings, home: Path) -> None:
    said = story()
    path = write(said.path(home), b"")
    report = ingest(settings)
    assert (report.files, report.sessions, report.unreadable, report.unrecognised) == (1, 0, [], 0)
    write(path, said.text())
    assert ingest(settings).new_records == len(said.lines)


# -- it grew -------------------------------------------------------------------------------------


def test_what_was_appended_is_read_and_nothing_else(settings: Settings, home: Path) -> None:
    said = story()
    said.save(home)
    ingest(settings)
    said.prompt("one more thing")
    said.save(home)
    assert ingest(settings).new_records == 1
    assert said_in(settings, said.session_id)[-1] == "one more thing"
    assert shown(settings, said.session_id) == said.text().encode()


def test_a_torn_last_line_is_read_when_it_completes(settings: Settings, home: Path) -> None:
    said = story()
    data = said.text().encode()
    path = write(said.path(home), data[:-20])
    first = ingest(settings)
    assert (first.new_records, first.unparsed) == (len(said.lines) - 1, 0)
    assert shown(settings, said.session_id) == data[:-20]
    write(path, data)
    assert ingest(settings).new_records == 1
    assert said_in(settings, said.session_id)[-1] == "answer 2, with pears"
    assert shown(settings, said.session_id) == data


def test_a_whole_last_line_without_newline_is_read_at_once_and_not_twice(
    settings: Settings, home: Path
) -> None:
    said = story()
    data = said.text().encode()
    path = write(said.path(home), data[:-1])
    ingest(settings)
    at_once = load_conversation(settings, said.session_id)
    assert at_once.events[-1].text == "answer 2, with pears"
    before = on_disk(settings.home)
    ingest(settings)
    assert on_disk(settings.home) == before
    write(path, data)
    ingest(settings)
    later = load_conversation(settings, said.session_id)
    assert later.events == at_once.events
    assert later.session.tokens == at_once.session.tokens


@pytest.mark.parametrize("ending", [b"\n", b"\r\n"])
def test_records_without_an_id_are_not_doubled_when_their_line_ends_late(
    ending: bytes, settings: Settings, home: Path
) -> None:
    said = story(turns=1)
    bare = {
        "type": "user",
        "sessionId": said.session_id,
        "message": {"role": "user", "content": "no id of its own"},
    }
    data = said.text().encode() + json.dumps(bare).encode()
    path = write(said.path(home), data)
    ingest(settings)
    for more in (data + ending[:1], data + ending, data + ending + said.text().encode()):
        write(path, more)
        ingest(settings)
    assert said_in(settings, said.session_id).count("no id of its own") == 1


def test_a_first_line_that_is_still_being_written_names_no_session(
    settings: Settings, home: Path
) -> None:
    said = story()
    lines = [{**line, "isSidechain": True, "agentId": "a1b2c3"} for line in said.lines]
    data = "".join(json.dumps(line) + "\n" for line in lines).encode()
    path = said.path(home).with_suffix("") / "subagents" / "agent-a1b2c3.jsonl"
    for end in (40, 400, len(data)):
        write(path, data[:end])
        ingest(settings)
    [listed] = sessions(settings, SessionFilter(), limit=0, everything=True)
    assert listed.session.parent_session_id == said.session_id
    assert listed.session.session_id == f"agent-a1b2c3@{said.session_id}"
    assert stored_bytes(settings) == {str(path): data}


def test_a_folder_that_the_session_went_to_later_is_no_project_of_its_own(
    settings: Settings, home: Path, tmp_path: Path
) -> None:
    said = story(turns=1)
    said.save(home)
    ingest(settings)
    said.cwd = "/code/shop/src"
    said.prompt("in another folder")
    said.save(home)
    ingest(settings)
    at_once = Settings(home=tmp_path / "at-once", user_home=home, env={})
    ingest(at_once)
    assert_equal(derived(settings), derived(at_once))
    assert load_conversation(settings, said.session_id).session.project == "/code/shop"


def test_how_a_file_is_cut_into_segments_and_batches_makes_no_difference(
    settings: Settings, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(3):
        story(f"story {number}", turns=5).save(home)
    write(story("torn").path(home), story("torn").text()[:-30])
    named = Transcript("names")
    named.lines.append(titled(story("story 1", turns=5).lines[-1]["uuid"], "Pears for the market"))
    named.save(home)
    ingest(settings)
    assert len(found(settings, "market")) == 1
    small = Settings(home=tmp_path / "small", user_home=home, env={})
    monkeypatch.setattr(tail, "CHUNK", 700)
    for module in (batches, rebuilding):
        monkeypatch.setattr(module, "BATCH_BYTES", 2000)
    monkeypatch.setattr(batches, "BATCH_FILES", 1)
    ingest(small)
    assert_equal(derived(small), derived(settings))
    assert stored_bytes(small) == stored_bytes(settings)
    rebuild(small)
    assert_equal(derived(small), derived(settings))


# -- it changed ----------------------------------------------------------------------------------


def test_a_file_that_shrank_loses_nothing(settings: Settings, home: Path) -> None:
    said = story()
    path = said.save(home)
    ingest(settings)
    before = said_in(settings, said.session_id)
    shorter = "".join(said.text().splitlines(keepends=True)[:3])
    write(path, shorter)
    ingest(settings)
    assert said_in(settings, said.session_id) == before
    assert shown(settings, said.session_id) == shorter.encode()


def test_a_line_removed_in_the_middle_loses_nothing_and_doubles_nothing(
    settings: Settings, home: Path
) -> None:
    said = story(turns=6)
    path = said.save(home)
    ingest(settings)
    before = load_conversation(settings, said.session_id)
    lines = said.text().splitlines(keepends=True)
    rest = "".join(lines[:8] + lines[9:])
    write(path, rest)
    ingest(settings)
    after = load_conversation(settings, said.session_id)
    assert [(e.seq, e.text) for e in after.events] == [(e.seq, e.text) for e in before.events]
    assert after.session.tokens == before.session.tokens
    assert shown(settings, said.session_id) == rest.encode()
    said.prompt("and on we go")
    write(path, rest + json.dumps(said.lines[-1]) + "\n")
    assert ingest(settings).new_records == 1
    assert said_in(settings, said.session_id)[-1] == "and on we go"


def test_a_line_removed_in_the_middle_while_it_grew_is_noticed(
    settings: Settings, home: Path
) -> None:
    said = story(turns=6)
    path = said.save(home)
    ingest(settings)
    said.prompt("appended " * 300)
    lines = said.text().splitlines(keepends=True)
    write(path, "".join(lines[:8] + lines[9:]))
    ingest(settings)
    assert shown(settings, said.session_id) == path.read_bytes()
    assert said_in(settings, said.session_id)[-1].startswith("appended")


def test_a_file_that_is_read_anew_is_counted_once(settings: Settings, home: Path) -> None:
    said = story(turns=6)
    said.lines.insert(4, {"type": "quantum-leap", "sessionId": said.session_id})
    lines = [json.dumps(line) + "\n" for line in said.lines]
    path = write(said.path(home), "".join([*lines, "{torn\n"]))
    first = ingest(settings)
    assert (first.records, first.unparsed, first.unknown_types) == (len(lines) + 1, 1, 1)
    write(path, "".join([*lines[:9], *lines[10:], "{torn\n"]))
    again = ingest(settings)
    assert (again.records, again.unparsed, again.unknown_types) == (len(lines), 1, 1)
    assert load_conversation(settings, said.session_id).session.unparsed == 1
    write(path, "".join(lines[:9]))
    assert ingest(settings).unparsed == 0


def test_a_file_replaced_by_another_session_is_read_as_that_session(
    settings: Settings, tmp_path: Path
) -> None:
    one, two = story("one"), story("two", turns=4)
    for said in (one, two, one, two, one):
        ingest(settings, [write(tmp_path / "export.jsonl", said.text())])
        assert shown(settings, said.session_id) == said.text().encode()
    assert shown(settings, two.session_id) == two.text().encode()
    assert len(said_in(settings, one.session_id)) == 6
    assert len(said_in(settings, two.session_id)) == 8
    before = derived(settings, observed=True, segments=True)
    rebuild(settings)
    assert_equal(derived(settings, observed=True, segments=True), before)


def test_a_document_caught_half_written_is_read_when_it_is_whole(
    settings: Settings, home: Path
) -> None:
    session = str(uuid.uuid5(uuid.NAMESPACE_URL, "gemini"))
    message = {
        "id": "m1",
        "timestamp": "2026-05-01T10:00:01.000Z",
        "type": "user",
        "content": "written in one piece",
    }
    chat = {
        "sessionId": session,
        "projectHash": "ab",
        "startTime": message["timestamp"],
        "messages": [message],
    }
    data = json.dumps({**chat, "lastUpdated": message["timestamp"]}, indent=2).encode()
    path = home / ".gemini" / "tmp" / "ab" / "chats" / "session-2026-05-01T10-00-5e551011.json"
    for piece in (data[: len(data) - 30], data):
        write(path, piece)
        ingest(settings)
    assert said_in(settings, session) == ["written in one piece"]
    assert shown(settings, session) == data
    assert load_conversation(settings, session).session.unparsed == 0
    os.utime(path, (1, 1))
    assert ingest(settings).new_records == 0  # its bytes are known


@pytest.mark.parametrize("expected", [0, 9, 200_000, 900_000])
def test_a_document_is_read_to_its_end_however_long_it_was_before(
    tmp_path: Path, expected: int
) -> None:
    data = b"0123456789" * 20_000
    write(tmp_path / "chat.json", data)
    with tail.open_source(tmp_path / "chat.json") as file:
        assert tail.whole(file, expected) == data


# -- it went somewhere else ----------------------------------------------------------------------


def test_a_file_that_moved_is_still_the_same_source(settings: Settings, home: Path) -> None:
    said = story()
    path = said.save(home)
    ingest(settings)
    said.prompt("after the move")
    moved = path.parent.with_name("-work-elsewhere") / path.name
    write(moved, said.text())
    path.unlink()
    assert ingest(settings).new_records == 1
    assert list(stored_bytes(settings)) == [str(moved)]
    assert shown(settings, said.session_id) == said.text().encode()
    assert ingest(settings).new_records == 0


def test_a_copy_adds_no_events(settings: Settings, home: Path) -> None:
    said = story()
    path = said.save(home)
    ingest(settings)
    before = derived(settings)
    write(path.parent.with_name("-work-copy") / path.name, said.text())
    ingest(settings)
    after = derived(settings)
    for name in ("sessions", "events", "usage", "touches", "docs", "words"):
        assert after[name] == before[name], name
    assert len(after["sources"]) == 2


def test_a_file_that_vanished_is_kept(
    settings: Settings, home: Path, cli: Callable[..., Any]
) -> None:
    said = story()
    path = said.save(home)
    ingest(settings)
    before = derived(settings, observed=True, segments=True)
    shutil.rmtree(path.parent)
    report = ingest(settings)
    assert (report.files, report.sessions, report.new_records) == (0, 1, 0)
    assert_equal(derived(settings, observed=True, segments=True), before)
    result = cli("show", said.session_id[:8], "--raw")
    assert (result.code, result.out) == (0, said.text())
    [hit] = found(settings, "question apples")
    assert len(hit["passages"]) == 3
    health = agent_health(cli)
    assert (health["gone"], health["files"]) == (1, 0)


# -- it cannot be read ---------------------------------------------------------------------------


def unreadable_path(folder: Path, how: str) -> Path:
    """A transcript that fails for root too."""
    path = folder / f"{uuid.uuid5(uuid.NAMESPACE_URL, how)}.jsonl"
    if how == "cannot be opened":
        path.symlink_to(path.name)  # a link to itself
    elif how == "cannot be read":
        path.symlink_to("/proc/self/mem")  # opens, but its first byte is an I/O error
    elif how == "without permission":
        path.touch(mode=0)
    elif how == "is a pipe":
        os.mkfifo(path)  # whoever opens it waits
    elif how == "has no end":
        path.symlink_to("/dev/zero")
    else:
        path.symlink_to(folder / "nowhere.jsonl")
    return path


# Root may read everything, so for root the last way is none.
_WAYS = ["cannot be opened", "cannot be read", "is a pipe", "has no end", "without permission"]


@pytest.mark.parametrize("how", _WAYS[: len(_WAYS) - (os.geteuid() == 0)])
def test_a_file_that_cannot_be_read_is_reported_and_the_others_are_read(
    how: str, settings: Settings, home: Path, cli: Callable[..., Any]
) -> None:
    said = story()
    path = unreadable_path(said.save(home).parent, how)
    result = cli("ingest", "--json")
    assert result.code == 0
    assert [item["path"] for item in result.json["unreadable"]] == [str(path)]
    assert result.json["sessions"] == 1
    assert f"Cannot read {path}" in cli("ingest").out.replace("\n", "")
    [health] = [
        item for item in cli("doctor", "--json").json["agents"] if item["agent"] == "claude"
    ]
    assert (health["files"], "not a plain file" in str(health)) == (
        2,
        how in ("is a pipe", "has no end"),
    )


def test_a_known_file_that_cannot_be_read_any_more_keeps_what_was_stored(
    settings: Settings, home: Path
) -> None:
    said = story()
    path = said.save(home)
    ingest(settings)
    before = derived(settings, observed=True)
    path.unlink()
    path.symlink_to("/proc/self/mem")
    assert [item.path for item in ingest(settings).unreadable] == [str(path)]
    assert_equal(derived(settings, observed=True), before)


def test_a_dangling_link_is_a_file_that_is_gone(settings: Settings, home: Path) -> None:
    said = story()
    unreadable_path(said.save(home).parent, "dangles")
    report = ingest(settings)
    assert (report.files, report.sessions, report.unreadable) == (1, 1, [])
    assert (
        next(item for item in examine(settings).agents if item.agent == "claude").unreadable == []
    )


def test_a_damaged_packed_rollout_is_reported(settings: Settings, home: Path) -> None:
    path = write(
        home / ".codex" / "sessions" / "rollout-x.jsonl.zst", b"\x28\xb5\x2f\xfd" + b"garbage" * 9
    )
    assert [item.path for item in ingest(settings).unreadable] == [str(path)]


# -- what is not understood ----------------------------------------------------------------------


def test_unknown_record_types_are_counted_by_name(home: Path, cli: Callable[..., Any]) -> None:
    said = story(turns=1)
    for kind in ("quantum-leap", "quantum-leap", "tea-break"):
        said.lines.append({"type": kind, "sessionId": said.session_id})
    said.save(home)
    assert cli("ingest", "--json").json["unknown_types"] == 3
    assert cli("ingest", "--json").json["unknown_types"] == 3
    health = agent_health(cli)
    assert health["unknown_types"] == {"quantum-leap": 2, "tea-break": 1}
    assert cli("doctor").code == 0


def test_lines_that_do_not_parse_are_counted_by_file_and_reason(
    home: Path, cli: Callable[..., Any]
) -> None:
    one, two = story("one", 1), story("two", 1)
    first = write(one.path(home), one.text() + '{"torn\n{"torn again\n[]\n')
    second = write(two.path(home), two.text() + "\x00\x00\n")
    assert cli("ingest", "--json").json["unparsed"] == 4
    health = agent_health(cli)
    assert health["unparsed"] == {"truncated": 2, "not an object": 1, "NUL bytes": 1}
    listed = {(item["path"], item["reason"]): item["lines"] for item in health["unparsed_files"]}
    assert listed == {
        (str(first), "truncated"): 2,
        (str(first), "not an object"): 1,
        (str(second), "NUL bytes"): 1,
    }
    by_session = {item["session_id"]: item["unparsed"] for item in cli("sessions", "--json").json}
    assert by_session == {one.session_id: 3, two.session_id: 1}
    assert "4 lines could not be parsed" in cli("ingest").out


def test_a_foreign_file_in_the_agents_folder_is_counted_and_left_alone(
    settings: Settings, home: Path
) -> None:
    folder = story().save(home).parent
    write(folder / "some" / "tool-results" / "not-a-session" / "notes.txt", "no transcript")
    report = ingest(settings)
    assert (report.sessions, report.unreadable) == (1, [])


# -- what one gives it ---------------------------------------------------------------------------


def test_a_given_file_is_sniffed_whatever_its_name(settings: Settings, tmp_path: Path) -> None:
    said = story()
    path = write(tmp_path / "downloads" / "transcript.txt", said.text())
    report = ingest(settings, [path])
    assert (report.files, report.sessions, report.new_records) == (1, 1, len(said.lines))
    assert shown(settings, said.session_id) == said.text().encode()


def test_a_given_folder_is_read_with_all_below_it(settings: Settings, tmp_path: Path) -> None:
    write(tmp_path / "backup" / "a" / "one.jsonl", story("one").text())
    write(tmp_path / "backup" / "b" / "c" / "two.log", story("two").text())
    write(tmp_path / "backup" / "README.md", "nothing of ours")
    report = ingest(settings, [tmp_path / "backup"])
    assert (report.files, report.sessions, report.unrecognised) == (3, 2, 1)


def test_a_given_copy_of_a_home_is_read_like_a_home(settings: Settings, tmp_path: Path) -> None:
    said = story()
    said.save(tmp_path / "old-laptop")
    write(tmp_path / "old-laptop" / "Documents" / "letter.jsonl", story("not looked at").text())
    report = ingest(settings, [tmp_path / "old-laptop"])
    assert (report.files, report.sessions) == (1, 1)
    assert shown(settings, said.session_id) == said.text().encode()


def test_a_path_is_the_same_however_it_is_spelled(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = story("one"), story("two")
    write(tmp_path / "here" / "session.jsonl", one.text())
    write(tmp_path / "there" / "session.jsonl", two.text())
    monkeypatch.chdir(tmp_path / "here")
    ingest(settings, [Path("session.jsonl")])
    assert ingest(settings, [tmp_path / "here" / "session.jsonl"]).new_records == 0
    monkeypatch.chdir(tmp_path / "there")
    ingest(settings, [Path("session.jsonl")])
    assert shown(settings, one.session_id) == one.text().encode()
    assert shown(settings, two.session_id) == two.text().encode()


@pytest.mark.parametrize("name", ["missing.jsonl", "poem.txt"])
def test_a_given_file_that_is_none_or_no_session_is_an_error(
    name: str, tmp_path: Path, cli: Callable[..., Any]
) -> None:
    write(tmp_path / "poem.txt", "Roses are red.\n")
    result = cli("ingest", tmp_path / name, "--json")
    assert result.code == 2
    assert result.json["error"]["kind"] == "not_found"
    assert result.json["error"]["hint"]
    plain = cli("ingest", tmp_path / name)
    assert (plain.code, plain.out, len(plain.err.splitlines())) == (2, "", 2)


def test_only_one_agent_is_read_when_asked(
    settings: Settings, home: Path, cli: Callable[..., Any]
) -> None:
    story().save(home)
    assert cli("ingest", "--agent", "codex", "--json").json["files"] == 0
    assert cli("ingest", "--agent", "claude", "--json").json["sessions"] == 1
    assert cli("ingest", "--agent", "clippy", "--json").json["error"]["kind"] == "bad_input"


# -- what hangs on a session ---------------------------------------------------------------------


def codex_rollout(session: str) -> bytes:
    when = "2026-05-01T10:00:00.000Z"
    said = {
        "type": "message",
        "role": "user",
        "content": [{"type": "input_text", "text": "packed but readable"}],
    }
    meta = {
        "id": session,
        "timestamp": when,
        "cwd": "/code/shop",
        "cli_version": "0.166.0",
        "source": "cli",
    }
    lines = [("session_meta", meta), ("response_item", said)]
    return b"".join(
        json.dumps({"timestamp": when, "type": kind, "payload": payload}).encode() + b"\n"
        for kind, payload in lines
    )


def test_a_packed_rollout_is_read_and_its_records_are_kept_unpacked(
    settings: Settings, home: Path
) -> None:
    session = "019d0000-0000-7000-8000-000000000001"
    data = codex_rollout(session)
    name = f"rollout-2026-05-01T10-00-00-{session}.jsonl"
    path = home / ".codex" / "sessions" / "2026" / "05" / "01" / name
    write(path.with_name(name + ".zst"), zstandard.ZstdCompressor().compress(data))
    assert ingest(settings).new_records == 2
    assert shown(settings, session) == data
    assert [hit["session_id"] for hit in found(settings, "packed readable")] == [session]
    before = on_disk(settings.home)
    assert ingest(settings).new_records == 0
    assert on_disk(settings.home) == before


def test_a_rollout_that_the_agent_packs_later_is_not_doubled(
    settings: Settings, home: Path
) -> None:
    session = "019d0000-0000-7000-8000-000000000002"
    data = codex_rollout(session)
    path = write(
        home / ".codex" / "sessions" / f"rollout-2026-05-01T10-00-00-{session}.jsonl", data
    )
    ingest(settings)
    before = derived(settings)
    write(path.with_name(path.name + ".zst"), zstandard.ZstdCompressor().compress(data))
    path.unlink()
    ingest(settings)
    after = derived(settings)
    for table in ("sessions", "events", "usage", "docs", "words"):
        assert after[table] == before[table], table
    assert shown(settings, session) == data


def external(said: Transcript, home: Path, call: str, text: str) -> Path:
    return write(said.path(home).with_suffix("") / "tool-results" / f"{call}.txt", text)


def test_an_externalised_result_lands_in_the_turn_of_its_call_and_is_found(
    settings: Settings, home: Path
) -> None:
    said = Transcript("external")
    said.prompt("list everything")
    note = (
        "<persisted-output>\nOutput too large. Full output saved to: "
        "tool-results\n</persisted-output>"
    )
    call = said.call("Bash", {"command": "find /"}, note)
    said.prompt("thank you")
    said.save(home)
    external(said, home, call, "line one\nhippopotamus in the attic\n")
    ingest(settings)
    events = load_conversation(settings, said.session_id).events
    [result] = [event for event in events if "hippopotamus" in event.text]
    assert (result.kind, result.turn) == ("tool.result", 1)
    assert [(hit["session_id"], hit["turn"]) for hit in found(settings, "hippopotamus")] == [
        (said.session_id, 1)
    ]
    assert shown(settings, said.session_id) == said.text().encode()


def test_an_externalised_result_waits_for_its_call(settings: Settings, home: Path) -> None:
    said = Transcript("early")
    said.prompt("list everything")
    said.save(home)
    call = said.call("Bash", {"command": "find /"}, "saved")
    said.prompt("thank you")
    path = external(said, home, call, "hippopotamus")
    ingest(settings)
    assert found(settings, "hippopotamus") == []
    said.save(home)
    ingest(settings)
    assert [hit["turn"] for hit in found(settings, "hippopotamus")] == [1]
    assert str(path) in stored_bytes(settings)


def test_an_externalised_result_whose_call_never_comes_is_kept_after_a_day(
    settings: Settings, home: Path
) -> None:
    said = story()
    path = external(said, home, "toolu_nobody", "orphaned hippopotamus")
    said.save(home)
    old = path.stat().st_mtime - 2 * DAY
    os.utime(path, (old, old))
    ingest(settings)
    assert [hit["session_id"] for hit in found(settings, "hippopotamus")] == [said.session_id]


def test_a_subagents_meta_file_names_it(
    settings: Settings, home: Path, cli: Callable[..., Any]
) -> None:
    said = story()
    said.save(home)
    side = Transcript("side")
    side.prompt("look for leaks")
    side.say("none found")
    lines = [
        {**line, "sessionId": said.session_id, "isSidechain": True, "agentId": "a7"}
        for line in side.lines
    ]
    folder = said.path(home).with_suffix("") / "subagents"
    write(folder / "agent-a7.jsonl", "".join(json.dumps(line) + "\n" for line in lines))
    meta = {"agentType": "Explore", "description": "Search for leaks", "toolUseId": "toolu_1"}
    write(folder / "agent-a7.meta.json", json.dumps(meta))
    report = cli("ingest", "--json").json
    assert (report["sessions"], report["subagents"], report["unparsed"]) == (1, 1, 0)
    [child] = [
        item for item in cli("sessions", "--all", "--json").json if item["parent_session_id"]
    ]
    assert (child["parent_session_id"], child["subagent"]) == (said.session_id, "Explore")
    assert child["title"] == "Search for leaks"
    assert said_in(settings, child["session_id"]) == ["look for leaks", "none found"]


def titled(leaf: str, title: str) -> dict[str, Any]:
    return {"type": "summary", "summary": title, "leafUuid": leaf}


@pytest.mark.parametrize("first", ["the title", "the session"])
def test_a_legacy_title_reaches_its_session_in_whichever_order_they_come(
    first: str, settings: Settings, home: Path
) -> None:
    said = story()
    names = Transcript("names")
    names.lines.append(titled(said.lines[-1]["uuid"], "Pears for the market"))
    for each in (names, said) if first == "the title" else (said, names):
        each.save(home)
        ingest(settings)
    assert load_conversation(settings, said.session_id).session.title == "Pears for the market"
    assert [hit["session_id"] for hit in found(settings, "market")] == [said.session_id]


# -- whose it is ---------------------------------------------------------------------------------


def test_everything_below_our_home_is_its_owners_alone(
    settings: Settings, home: Path, cli: Callable[..., Any]
) -> None:
    story().save(home)
    for command in (
        ["ingest"],
        ["sessions"],
        ["search", "apples"],
        ["rebuild"],
        ["doctor"],
        ["ingest", "--json"],
    ):
        assert cli(*command).code == 0, command
    modes = {
        path: stat.S_IMODE(path.stat().st_mode)
        for path in [settings.home, *settings.home.rglob("*")]
    }
    assert {
        path: mode for path, mode in modes.items() if mode != (0o700 if path.is_dir() else 0o600)
    } == {}
    assert len([path for path in modes if path.suffix == ".zst"]) == 1

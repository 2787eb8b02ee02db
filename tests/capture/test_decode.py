"""Damaged lines: counted, kept, never fatal; what is whole beside them is read."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import settings as bounded
from hypothesis import strategies as st

from tests.capture.snapshot import found, stored_bytes
from tests.transcripts import Transcript
from whyfor.agents import decode
from whyfor.capture import tail
from whyfor.config import Settings
from whyfor.model.findings import Record
from whyfor.model.query import SessionFilter
from whyfor.model.sources import UnparsedRecord
from whyfor.model.wire.sessions import wire_transcript
from whyfor.service.ingest import ingest
from whyfor.service.sessions import sessions
from whyfor.service.show import raw_records
from whyfor.story.session_lookup import load_conversation

repeatable = bounded(deadline=None, derandomize=True, max_examples=100)
BIG = 2_000_000


def read(data: bytes, start: int = 0) -> tuple[list[Record], list[UnparsedRecord]]:
    """All records and all problems of a run of lines."""
    records: list[Record] = []
    problems: list[UnparsedRecord] = []
    for offset, line in decode.split_lines(data, start):
        result = decode.decode_line(line, offset)
        if isinstance(result, UnparsedRecord):
            problems.append(result)
        else:
            records += result
    return records, problems


# -- one kind of damage at a time ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        (b'{"a":1}{"b":2}', [{"a": 1}, {"b": 2}]),
        (b'{"a":1} \t{"b":2}{"c":{}}', [{"a": 1}, {"b": 2}, {"c": {}}]),
        (b'\x00\x00\x00{"a":1}', [{"a": 1}]),
        (b'{"a":1}\x00\x00', [{"a": 1}]),
        (b'{"a":1}\x00{"b":2}', [{"a": 1}, {"b": 2}]),
        (b'{"a":"x\x00y\x07"}', [{"a": "x\x00y\x07"}]),
        (b'{"a":"\\u0000"}', [{"a": "\x00"}]),
        (b'{"a":1}\r', [{"a": 1}]),
        (b'\xef\xbb\xbf{"a":1}', [{"a": 1}]),
        (b'  {"a":1}', [{"a": 1}]),
        (
            '{"a":"one\u2028two\u2029three\u0085"}'.encode(),
            [{"a": "one\u2028two\u2029three\u0085"}],
        ),
        (b'{"a":"\\ud83d\\ude00"}', [{"a": "\U0001f600"}]),
        (b'{"a":"x\\ud83d"}', [{"a": "x\ufffd"}]),
        (b'{"\\udc00":["\\udc00y"]}', [{"\ufffd": ["\ufffdy"]}]),
        (b'{"a":"caf\xe9"}', [{"a": "caf\ufffd"}]),
        (b'{"a":"\xed\xa0\x80"}', [{"a": "\ufffd\ufffd\ufffd"}]),
        (b'{"a":123456789012345678901234567890}', [{"a": 123456789012345678901234567890}]),
    ],
    ids=str,
)
def test_a_careless_line_is_still_read(line: bytes, wanted: list[Record]) -> None:
    assert decode.decode_line(line, 0) == wanted


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b'{"a":"unfini', "truncated"),
        (b'{"a":1', "truncated"),
        (b'{"a":', "truncated"),
        (b"{", "truncated"),
        (b'{"a":1}{"b":"unfini', "truncated"),
        (b'{"a":1,,"b":2}', "invalid JSON"),
        (b"not JSON at all", "invalid JSON"),
        (b"\x00" * 4096, "NUL bytes"),
        (b"[1,2]", "not an object"),
        (b'"text"', "not an object"),
        (b"7", "not an object"),
        (b"null", "not an object"),
        (b'{"a":' * 100_000, "nested too deeply"),
        (b'{"a":' * 5_000 + b"1" + b"}" * 5_000, "nested too deeply"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_a_line_that_cannot_be_read_says_why_and_where(line: bytes, reason: str) -> None:
    assert decode.decode_line(line, 40) == UnparsedRecord(40, len(line), reason)


@pytest.mark.parametrize("depth", [300, 600, 900, 990])
@pytest.mark.parametrize("after", [b"", b"\x00", b" {}"])
def test_nesting_is_read_or_reported_at_every_depth(depth: int, after: bytes) -> None:
    line = b'{"a":' * depth + b'"\\ud800"' + b"}" * depth + after
    result = decode.decode_line(line, 0)
    assert isinstance(result, list) or result.reason == "nested too deeply"


def test_a_line_of_two_megabytes_is_one_record() -> None:
    record = {"text": "ä" * (BIG // 2), "after": [1, 2]}
    line = json.dumps(record, ensure_ascii=False).encode()
    assert read(line + b"\n" + b'{"b":2}\n') == ([record, {"b": 2}], [])


def test_a_pretty_printed_record_among_lines_is_reported_line_by_line_and_its_neighbours_are_read() -> (
    None
):
    pretty = json.dumps({"type": "user", "message": {"content": ["x"]}}, indent=2).encode()
    records, problems = read(b'{"a":1}\n' + pretty + b'\n{"b":2}\n')
    assert records == [{"a": 1}, {"b": 2}]
    assert len(problems) == len(pretty.splitlines())


def test_crlf_and_blank_lines_are_no_damage() -> None:
    assert read(b'{"a":1}\r\n\r\n\n  \n{"b":2}\r\n') == ([{"a": 1}, {"b": 2}], [])


def test_a_document_may_be_pretty_printed_or_a_list_or_torn() -> None:
    assert decode.decode_document(json.dumps({"a": [1]}, indent=2).encode()) == [{"a": [1]}]
    assert decode.decode_document(b'[{"a":1}, 7, {"b":2}]') == [{"a": 1}, {"b": 2}]
    assert decode.decode_document(b'\xef\xbb\xbf[{"a":"\\ud800 \xff"}]') == [{"a": "\ufffd \ufffd"}]
    assert decode.decode_document(b"[1, 2]") == UnparsedRecord(0, 6, "not an object")
    assert decode.decode_document(b'{"a":[{"b":') == UnparsedRecord(0, 11, "truncated")


# -- any damage ----------------------------------------------------------------------------------

plain = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=8,
)
records_ = st.lists(st.dictionaries(st.text(max_size=8), plain, max_size=4), min_size=1, max_size=8)
NOISE = (
    b"\x00" * 17,
    b"\xff\xfe",
    b"\xed\xa0\x80",
    b"}{",
    b'"',
    b"\\",
    b"\r",
    b"\xe2\x80\xa8",
    b"[",
    b"]]",
    b"1e999",
)


@repeatable
@given(records_, st.data())
def test_damage_to_one_line_leaves_the_others_readable(
    records: list[Record], data: st.DataObject
) -> None:
    lines = [
        json.dumps(record, ensure_ascii=data.draw(st.booleans())).encode() for record in records
    ]
    hurt = data.draw(st.integers(0, len(lines) - 1))
    line = lines[hurt]
    at, to = sorted((data.draw(st.integers(0, len(line))), data.draw(st.integers(0, len(line)))))
    lines[hurt] = (
        line[:at]
        + data.draw(st.sampled_from(NOISE) | st.binary(max_size=9)).replace(b"\n", b"")
        + line[to:]
    )
    whole = b"\n".join(lines) + b"\n"
    got, problems = read(whole, 1000)
    assert [record for record in records[:hurt] + records[hurt + 1 :] if record not in got] == []
    assert len(problems) <= 1
    for problem in problems:
        assert problem.start - 1000 == sum(len(line) + 1 for line in lines[:hurt])
        # which ends it, with the newline
        assert problem.size == len(lines[hurt].removesuffix(b"\r"))


@repeatable
@given(st.binary(max_size=400), st.integers(0, 10_000))
def test_every_byte_is_in_a_line_or_is_a_line_end(data: bytes, start: int) -> None:
    rest = bytearray(data)
    for offset, line in decode.split_lines(data, start):
        at = offset - start
        assert data[at : at + len(line)] == line
        rest[at : at + len(line)] = b" " * len(line)
    assert bytes(rest).isspace() or not rest
    read(data, start)


@repeatable
@given(
    st.text(max_size=60).map(lambda text: f'{{"a":"{text}"}}'.encode("utf-8", "surrogatepass")),
    st.integers(0, 80),
)
def test_what_was_read_can_always_be_stored_as_text(line: bytes, cut: int) -> None:
    for piece in (line, line[:cut], line[cut:], line[cut:] + line[:cut]):
        result = decode.decode_line(piece, 0)
        if not isinstance(result, UnparsedRecord):
            json.dumps(result, ensure_ascii=False).encode()


@repeatable
@given(
    st.lists(st.binary(max_size=30), max_size=8).map(b"\n".join),
    st.integers(1, 40),
    st.integers(0, 8),
)
def test_chunks_put_together_are_the_file_from_the_position_on(
    data: bytes, size: int, skip: int
) -> None:
    starts = [0, *(at + 1 for at, byte in enumerate(data) if byte == 0x0A)]
    position = starts[min(skip, len(starts) - 1)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tail, "CHUNK", size)
        chunks = list(tail.chunks(io.BytesIO(data), position))
    assert b"".join(chunk.data for chunk in chunks) == data[position:]
    assert [chunk.start for chunk in chunks] == [
        position + sum(len(before.data) for before in chunks[:number])
        for number in range(len(chunks))
    ]
    assert [chunk.partial for chunk in chunks] == [
        not chunk.data.endswith(b"\n") for chunk in chunks
    ]
    assert [chunk for chunk in chunks[:-1] if chunk.partial] == []


def test_a_line_beyond_all_bounds_is_cut_and_both_halves_are_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tail, "CHUNK", 64)
    monkeypatch.setattr(tail, "MAX_LINE", 256)
    data = b'{"a":1}\n{"b":"' + b"x" * 1000 + b'"}\n{"c":3}\n'
    chunks = list(tail.chunks(io.BytesIO(data), 0))
    assert b"".join(chunk.data for chunk in chunks) == data
    assert max(len(chunk.data) for chunk in chunks) <= 256 + 64
    records = [record for chunk in chunks for record in read(chunk.data, chunk.start)[0]]
    assert records == [{"a": 1}, {"c": 3}]


# -- through the whole of capture ----------------------------------------------------------------


def kept(settings: Settings, home: Path, *lines: bytes) -> tuple[Path, dict[str, Any]]:
    """A session whose transcript has these lines between its own two, and what became of it."""
    said = Transcript("damaged")
    said.prompt("the words before")
    said.say("the words after")
    first, last = said.text().encode().splitlines(keepends=True)
    path = said.path(home)
    path.parent.mkdir(parents=True)
    path.write_bytes(first + b"".join(lines) + last)
    report = ingest(settings)
    assert report.unreadable == []
    assert stored_bytes(settings) == {str(path): path.read_bytes()}
    assert b"".join(raw_records(settings, said.session_id)) == path.read_bytes()
    story = load_conversation(settings, said.session_id)
    assert [e.text for e in story.events if e.kind in ("user.prompt", "assistant.message")][:1] == [
        "the words before"
    ]
    assert story.events[-1].text == "the words after"
    events = msgspec.to_builtins(wire_transcript(story))["events"]
    json.dumps(events, ensure_ascii=False).encode()
    return path, {"report": report, "session": story.session, "events": story.events}


def user(content: Any, **more: Any) -> bytes:
    record = {
        "type": "user",
        "uuid": "u-1",
        "message": {"role": "user", "content": content},
        **more,
    }
    return json.dumps(record).encode() + b"\n"


DAMAGE: dict[str, tuple[bytes, int]] = {
    "torn": (b'{"type":"user","message":{"content":"lost wor\n', 1),
    "glued": (user("first").rstrip() + user("second", uuid="u-2"), 0),
    "a run of NUL": (b"\x00" * 5000 + b"\n", 1),
    "NUL before a record": (b"\x00" * 500 + user("x"), 0),
    "a lone surrogate": (user("half \ud83d pair"), 0),
    "an escaped NUL": (user("be\x00tween"), 0),
    "invalid UTF-8": (user("caf").replace(b"caf", b"caf\xe9 \xff"), 0),
    "U+2028": (b"{}\n" + user("a b").replace(b"a b", "a\u2028b".encode()), 0),
    "CRLF": (user("x").replace(b"\n", b"\r\n"), 0),
    "pretty-printed": (json.dumps(json.loads(user("x")), indent=1).encode() + b"\n", 8),
    "not an object": (b'[1]\n"x"\nnull\n7\n', 4),
    "two megabytes": (user("word " * (BIG // 5)), 0),
    "two megabytes torn": (user("word " * (BIG // 5))[:-9] + b"\n", 1),
    "deep nesting": (b'{"type":' * 3000 + b"1" + b"}" * 3000 + b"\n", 1),
    "an endless number": (
        b'{"type":"user","uuid":"u-1","timestamp":1e999,"message":{"content":"x"}}\n',
        0,
    ),
    "infinity": (
        b'{"type":"user","uuid":"u-1","timestamp":Infinity,"message":{"content":"x"}}\n',
        0,
    ),
    "before the first year": (user("x", timestamp="0001-01-01T00:00:00+14:00"), 0),
    "after the last year": (user("x", timestamp="9999-12-31T23:59:59-14:00"), 0),
    "a type that is no word": (b'{"type":["user"]}\n{"type":{"a":1}}\n{"type":null}\n{}\n', 0),
    "no message": (
        b'{"type":"user"}\n{"type":"assistant","message":7}\n{"type":"system","subtype":[]}\n',
        0,
    ),
    "odd blocks": (
        user([7, None, [], {"type": []}, {"type": "tool_result", "tool_use_id": {}, "content": 3}]),
        0,
    ),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_line_is_kept_counted_and_never_fatal(
    damage: str, settings: Settings, home: Path
) -> None:
    lines, unparsed = DAMAGE[damage]
    _, got = kept(settings, home, lines)
    assert got["report"].unparsed == got["session"].unparsed == unparsed
    [listed] = sessions(settings, SessionFilter(), limit=0, everything=True)
    assert listed.session.session_id == got["session"].session_id


@pytest.mark.parametrize("depth", [500, 800, 960, 985])
@pytest.mark.parametrize("leaf", [b"1", b'"\\ud800"'])
def test_a_tool_call_nested_to_any_depth_is_never_fatal(
    depth: int, leaf: bytes, settings: Settings, home: Path
) -> None:
    call = b'{"type":"assistant","uuid":"u-1","message":{"content":[{"type":"tool_use","id":"t","name":"X","input":'
    _, got = kept(settings, home, call + b'{"a":' * depth + leaf + b"}" * depth + b"}]}}\n")
    assert got["report"].unparsed + got["session"].tool_calls == 1


def test_glued_records_both_become_events(settings: Settings, home: Path) -> None:
    _, got = kept(settings, home, DAMAGE["glued"][0])
    prompts = [event.text for event in got["events"] if event.kind == "user.prompt"]
    assert prompts == ["the words before", "first", "second"]


def test_an_escaped_nul_does_not_cut_the_text_short(settings: Settings, home: Path) -> None:
    kept(settings, home, user("zebra \x00 giraffe"))
    assert [hit["turn"] for hit in found(settings, "zebra giraffe")] == [2]


def test_the_end_of_a_text_of_two_megabytes_is_kept_raw(settings: Settings, home: Path) -> None:
    path, got = kept(settings, home, user("word " * (BIG // 5) + "finis"))
    assert b"finis" in path.read_bytes()
    assert max(len(event.text) for event in got["events"]) == 1_000_000


def test_a_file_that_is_damaged_from_its_first_byte_is_kept_under_its_own_name(
    settings: Settings, home: Path, cli: Callable[..., Any]
) -> None:
    path = home / ".claude" / "projects" / "-work" / "6f1e0c52-0000-4000-8000-00000000dead.jsonl"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"\x00" * 100 + b"\n\xff\xfe\n{\n" + b'{"type":' * 5000 + b"\n")
    report = ingest(settings)
    assert (report.sessions, report.unparsed) == (1, 4)
    assert b"".join(raw_records(settings, "6f1e0c52")) == path.read_bytes()
    doctor = cli("doctor", "--json").json
    [claude] = [agent for agent in doctor["agents"] if agent["agent"] == "claude"]
    assert sum(item["lines"] for item in claude["unparsed_files"]) == 4
    assert {item["path"] for item in claude["unparsed_files"]} == {str(path)}


@bounded(deadline=None, derandomize=True, max_examples=25)
@given(data=st.data())
def test_any_damage_to_a_transcript_leaves_its_other_lines_read_and_its_bytes_stored(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("any")
    said = Transcript("any")
    for number in range(4):
        said.prompt(f"question{number}")
        said.call("Bash", {"command": f"echo {number}"}, f"result{number}")
        said.say(f"answer{number}")
    lines = said.text().encode().splitlines(keepends=True)
    hurt = data.draw(st.integers(1, len(lines) - 1))
    line = lines[hurt]
    at, to = sorted((data.draw(st.integers(0, len(line))), data.draw(st.integers(0, len(line)))))
    damaged = [
        *lines[:hurt],
        line[:at] + data.draw(st.sampled_from(NOISE)) + line[to:],
        *lines[hurt + 1 :],
    ]
    path = said.path(folder)
    path.parent.mkdir(parents=True)
    path.write_bytes(b"".join(damaged))
    settings = Settings(home=folder / "own", user_home=folder, env={})
    ingest(settings)
    assert stored_bytes(settings) == {str(path): b"".join(damaged)}
    events = load_conversation(settings, said.session_id).events
    # its newline is gone: the next line hangs on it
    spoiled = {hurt, hurt + 1} if to == len(line) else {hurt}
    uuids = {(event.data or {}).get("uuid") for event in events}
    assert {json.loads(line)["uuid"] for n, line in enumerate(lines) if n not in spoiled} <= uuids

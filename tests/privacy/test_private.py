"""Private tags: what is one, how far it reaches, and that no text makes looking for them slow."""

from __future__ import annotations

import json
import string
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import Result
from tests.hook import Installed
from tests.privacy.canary import CANARY, ONLY, OPEN, found
from tests.transcripts import Transcript
from whyfor.agents import decode
from whyfor.capture.filters.gate import CaptureGate
from whyfor.capture.records import SegmentPiece, read_records
from whyfor.capture.tail import Chunk
from whyfor.config import Settings
from whyfor.hook import private as rules
from whyfor.model.gaps import clipped, filled, holes, join_gaps, runs, without
from whyfor.model.sources import Source
from whyfor.privacy import private
from whyfor.store.sql.write import EventWriter
from whyfor.store.sqlite.connection import connect

Cli = Callable[..., Result]


# -- gaps ----------------------------------------------------------------------------------------


@given(st.binary(min_size=1, max_size=60), st.data())
def test_what_is_kept_and_what_is_not_make_up_the_source(data: bytes, draw: st.DataObject) -> None:
    start = draw.draw(st.integers(0, 1000))
    places = st.integers(0, len(data) - 1)
    drawn = draw.draw(st.lists(st.tuples(places, st.integers(1, 9)), max_size=5))
    gaps = join_gaps(
        clipped([(start + place, size) for place, size in drawn], start, start + len(data))
    )
    kept = without(data, start, gaps)
    rebuilt = bytearray(len(data))
    for offset, run in runs(kept, start, gaps):
        rebuilt[offset - start : offset - start + len(run)] = run
    for place, size in gaps:
        rebuilt[place - start : place - start + size] = data[place - start : place - start + size]
    assert bytes(rebuilt) == data
    assert len(filled(kept, 0, holes(start, gaps))) == len(kept) + len(gaps) * len(b"[private]")


def test_lines_around_gaps_are_at_their_places_in_the_source() -> None:
    source = b'{"a":"xSECRETy"}\n{"gone":1}\n\n{"b":2}\r\n{"gone":2}\n'
    gaps = [(7, 6), (17, 11), (source.index(b'{"gone":2}'), 11)]
    kept = without(source, 0, gaps)
    found = list(decode.split_lines(kept, 0, gaps))
    assert found == [(0, b'{"a":"x[private]y"}'), (source.index(b'{"b"'), b'{"b":2}')]
    moved = list(decode.split_lines(kept, 500, [(place + 500, size) for place, size in gaps]))
    assert moved == [(offset + 500, line) for offset, line in found]


def test_a_forks_beginning_is_cut_at_its_place_in_the_source() -> None:
    source = b'{"a":"xSECRETy"}\n{"gone":1}\n{"b":2}\n{"c":3}\n'
    gaps = [(1007, 6), (1017, 11)]
    piece = SegmentPiece(1000, without(source, 1000, gaps), gaps)
    lines = Source(id=1, agent="codex", path="p", session_id="s", framing="lines")
    for last, wanted in (
        (1017, ["a"]),
        (1028, ["a"]),
        (1000 + source.index(b'{"c"'), ["a", "b"]),
        (2000, ["a", "b", "c"]),
    ):
        assert [
            next(iter(record)) for _, _, record in read_records(lines, [piece.before(last)])
        ] == wanted
    assert list(read_records(lines, [piece.before(900)])) == []


# -- tags ----------------------------------------------------------------------------------------


def left(value: Any, lists: frozenset[bytes] = frozenset()) -> Any:
    raw = json.dumps(value).encode()
    spans = private.spans(raw, lists)
    assert spans is not None
    return json.loads(private.without(raw, spans))


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("a<private>s</private>b", "ab"),
        ("a<PRIVATE>s</Private>b", "ab"),
        ("a< private >s</ private >b", "ab"),
        ("a<private\n>s</private\n>b", "ab"),
        ('a<private why="so">s</private>b', "ab"),
        ("a<private>s<private>s</private>s</private>b", "ab"),
        ("a<private>s", "a"),
        ("a<private>s<private>s</private>s", "a"),
        ("a\\u003cprivate\\u003es\\u003c/private\\u003eb", "ab"),
        ("a</private>b", "a</private>b"),
        ("<privates><private-x><privateer>", "<privates><private-x><privateer>"),
        ("&lt;private&gt;s", "&lt;private&gt;s"),
        ("<private/>s", "<private/>s"),
        ("private > public", "private > public"),
        ("x" * 300 + "<private " + "y" * 300 + ">k", "x" * 300 + "<private " + "y" * 300 + ">k"),
    ],
)
def test_what_is_a_tag_and_what_is_not(given: str, kept: str) -> None:
    assert left({"text": given}) == {"text": kept}


def test_a_tag_reaches_over_blocks_of_a_message_but_not_into_the_next() -> None:
    message = {
        "id": "m1",
        "content": [
            {"type": "text", "text": "a<private>s"},
            {"type": "image", "data": "s"},
            "s</private>b",
        ],
    }
    assert left(message) == {
        "id": "m1",
        "content": [{"type": "text", "text": "a"}, {"type": "image", "data": ""}, "b"],
    }
    two = {
        "messages": [
            {"id": "1", "text": "a<private>s"},
            {"id": "2", "text": "k"},
            {"id": "3", "text": "k</private>"},
        ]
    }
    assert left(two, frozenset([b"messages"]))["messages"][1] == {"id": "2", "text": "k"}


def test_json_inside_json_stays_json() -> None:
    inner = {"type": "text", "text": "a<private>s", "more": [{"x": "k"}]}
    assert json.loads(left({"data": json.dumps(inner)})["data"]) == {**inner, "text": "a"}
    assert json.loads(left({"data": json.dumps(inner, indent=1)})["data"]) == {**inner, "text": "a"}
    assert left({"data": '{"no json: <private>s", "s'}) == {"data": '{"no json: '}


@pytest.mark.parametrize(("tags", "whole"), [(100, False), (101, True)])
def test_of_a_message_with_more_than_a_hundred_tags_nothing_is_left(tags: int, whole: bool) -> None:
    message = {
        "uuid": "u1",
        "type": "user",
        "text": "k" + "<private>s</private>" * tags,
        "other": "k",
    }
    assert left(message) == {
        "uuid": "u1",
        "type": "user",
        "text": "" if whole else "k",
        "other": "" if whole else "k",
    }


# Text as people write it, private or not; what is private says so in capitals.
words = st.text(string.ascii_lowercase + ' "\\/{}[]:,<>é\n\t\u2028😀', max_size=8).filter(
    lambda t: "private" not in t
)
secrets = st.lists(words, max_size=3).map(lambda parts: "SECRET".join(["", *parts, ""]))
opening = st.sampled_from(
    ["<private>", "<PRIVATE>", "< private >", "<private\n>", "<private x='1'>"]
)
closing = st.sampled_from(["</private>", "</Private >", "< / private>"])
closed = st.tuples(opening, secrets, opening, secrets, closing, secrets, closing) | st.tuples(
    opening, secrets, closing
)
texts = st.tuples(
    words.map(lambda t: t.replace("<", "")),
    closed,
    words.map(lambda t: t.replace("<", "").replace(">", "")),
)
unclosed = st.tuples(words.map(lambda t: t.replace("<", "")), opening, secrets)
said = (texts | unclosed).map(
    lambda parts: "".join(p if isinstance(p, str) else "".join(p) for p in parts)
) | words
values = st.recursive(
    said,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=300, deadline=None)
@given(
    st.dictionaries(st.sampled_from(["text", "content", "tool_input", "x"]), values, max_size=3),
    st.data(),
)
def test_no_private_byte_survives_and_structure_does(
    record: dict[str, Any], draw: st.DataObject
) -> None:
    if draw.draw(st.booleans()):
        record = {"data": json.dumps(record)}
    raw = json.dumps(record, ensure_ascii=draw.draw(st.booleans())).encode()
    if draw.draw(st.booleans()):
        raw = raw.replace(b"<", b"\\u003c").replace(b">", b"\\u003E")
    spans = private.spans(raw)
    assert spans is not None
    kept = private.without(raw, spans)
    assert b"SECRET" not in kept
    assert _skeleton(json.loads(kept)) == _skeleton(record)
    assert private.spans(kept) == [], "once is enough"


def _skeleton(value: Any) -> Any:
    if isinstance(value, dict):
        return [_skeleton(item) for item in value.values()]
    return [_skeleton(item) for item in value] if isinstance(value, list) else None


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=200) | st.text('<>/privateu03ce\\" {}[]:,', max_size=200))
def test_any_text_at_all_is_dealt_with(text: str) -> None:
    raw = text.encode("utf-8", "replace")
    for spans in (
        private.spans(raw),
        private.text_spans(raw),
        private.spans(json.dumps({"x": text}).encode()),
    ):
        assert spans is None or all(low < high for low, high in spans)
    assert private.spans(json.dumps({"x": text}).encode()) is not None


# -- hostile text --------------------------------------------------------------------------------


class Counted(bytes):
    """Bytes that count how often one of them is looked at by itself, and how many are searched."""

    looks = 0

    def __getitem__(self, key: Any) -> Any:
        Counted.looks += 1 if isinstance(key, int) else len(range(*key.indices(len(self))))
        return bytes.__getitem__(self, key)

    def find(self, sub: Any, start: Any = 0, stop: Any = None) -> int:
        at = bytes.find(self, sub, start, len(self) if stop is None else stop)
        Counted.looks += (at if at >= 0 else len(self) if stop is None else stop) - start
        return at

    def lower(self) -> Counted:
        return Counted(bytes.lower(self))


HOSTILE = [
    b"<private>",
    b"</private>",
    b"<private></private>",
    b"< private",
    b"\\\\u003cprivate",
    b"\\\\\\\\",
    b'\\"<private>',
    b'","<private>',
    b'","</private>","<private>',
    b'":{"a":[{"messages":[',
    b"<private " + b" " * 200,
    b"\\n\\nprivate>",
    b'{\\"a\\":\\"',
]


@pytest.mark.parametrize("piece", HOSTILE)
@pytest.mark.parametrize("ending", [b'"}', b"", b'"]}'])
def test_twice_the_text_is_at_most_about_twice_the_work(piece: bytes, ending: bytes) -> None:
    def work(times: int) -> int:
        Counted.looks = 0
        data = Counted(b'{"x":"' + piece * times + ending)
        rules.spans(data, frozenset([b"messages"]))
        rules.text_spans(data)
        rules.marked(data)
        return Counted.looks

    small, large = work(2000), work(8000)
    assert large <= 4.4 * small + 10_000


# -- hooks ---------------------------------------------------------------------------------------


@pytest.fixture
def hook(tmp_path: Path) -> Installed:
    return Installed(tmp_path / "whyfor")


def payload(**fields: Any) -> bytes:
    return json.dumps(
        {"session_id": "s-1", "transcript_path": "/t.jsonl", "cwd": "/w", **fields}
    ).encode()


def test_a_private_prompt_silences_the_hooks_of_its_turn(hook: Installed) -> None:
    hook.run("claude", "UserPromptSubmit", payload=payload(prompt=f" {ONLY}\n"))
    hook.run(
        "claude", "PostToolUse", payload=payload(tool_name="Bash", tool_input={"command": CANARY})
    )
    hook.run("claude", "Stop", payload=payload(last_assistant_message=CANARY))
    other = {"session_id": "s-2", "transcript_path": "/u.jsonl", "message": OPEN}
    hook.run("claude", "Notification", payload=json.dumps(other).encode())
    assert found(hook.home) == []
    told = [json.loads(line.payload) for line in hook.lines()]
    assert [item["session_id"] for item in told] == ["s-1", "s-1", "s-1", "s-2"]
    assert told[3] == other
    hook.run("claude", "UserPromptSubmit", payload=payload(prompt=OPEN))
    hook.run("claude", "Notification", payload=payload(message=OPEN))
    assert [json.loads(line.payload).get("message") for line in hook.lines()][-1] == OPEN
    assert not (hook.folder / "private").exists()


def test_the_end_of_a_session_ends_its_silence(hook: Installed) -> None:
    hook.run("gemini", "BeforeAgent", payload=payload(prompt=ONLY))
    hook.run("gemini", "SessionEnd", payload=payload(reason=CANARY))
    assert found(hook.home) == []
    assert not (hook.folder / "private").exists()


def test_a_prompt_that_only_mentions_a_private_place_is_told(hook: Installed) -> None:
    told = payload(prompt="", cwd="/private/tmp")
    hook.run("claude", "UserPromptSubmit", payload=told)
    assert [line.payload for line in hook.lines()] == [told]


@settings(max_examples=40, deadline=None)
@given(
    st.dictionaries(st.sampled_from(["prompt", "tool_input", "tool_response"]), values, max_size=3)
)
def test_ingest_finds_nothing_that_a_hook_has_let_through(fields: dict[str, Any]) -> None:
    """And of what no hook has seen it drops exactly the same."""
    told = payload(**fields)
    spans = private.spans(told)
    assert spans is not None
    source = Source(id=1, agent="hook", path="2026-05-01.spool", session_id="", framing="lines")
    line = b'{"v":1,"at":1,"agent":"claude","event":"Stop"}\t' + told + b"\n"
    kept = CaptureGate(_nothing).kept(source, Chunk(0, line, False))
    assert kept.data == line.replace(told, private.without(told, spans))
    assert b"SECRET" not in kept.data
    again = CaptureGate(_nothing).kept(source, Chunk(0, kept.data, False))
    assert (again.data, again.gaps) == (kept.data, [])


_nothing: Any = None  # the spool needs no store


def test_an_old_hooks_line_is_cleaned_when_it_is_read(
    home: Path, tmp_path: Path, settings: Settings, cli: Cli
) -> None:
    folder = settings.home / "spool"
    folder.mkdir(parents=True)
    header = b'{"v":1,"at":1777629600000,"agent":"claude","event":"Stop","cwd":"/w","chain":[]}'
    lines = [
        header + b"\t" + payload(reason=f"{OPEN} {ONLY}"),
        header + b'\t{"torn <private>' + CANARY.encode(),
    ]
    (folder / "2026-05-01.spool").write_bytes(b"".join(line + b"\n" for line in lines))
    assert cli("ingest").code == 0
    (folder / "2026-05-01.spool").unlink()
    assert found(settings.home) == []
    assert found(settings.home, OPEN) != []


@pytest.mark.parametrize("at_once", [True, False])
def test_a_tag_reaches_over_the_records_of_a_message(
    at_once: bool, tmp_path: Path, cli: Cli
) -> None:
    t = Transcript("split")
    t.prompt("go")
    t.say(f"{OPEN} one <private> {CANARY}")
    opened = t.text().encode()
    message = json.loads(opened.splitlines()[-1])["message"]["id"]
    for text in (f"between {CANARY}", f"{CANARY}</private> {OPEN} two", f"{OPEN} three"):
        t.add(
            "assistant",
            {"id": message, "role": "assistant", "content": [{"type": "text", "text": text}]},
        )
    t.say(f"{OPEN} four </private> as it is")
    data = t.text().encode()
    if at_once:
        (tmp_path / "split.jsonl").write_bytes(data)
        assert CANARY not in cli("redact", tmp_path / "split.jsonl").out
    db = connect(tmp_path / "x.db")
    source = Source(
        id=0, agent="claude", path="p", session_id=t.session_id, framing="lines", state={}
    )
    gate = CaptureGate(EventWriter(db))
    cut = len(data) if at_once else len(opened)
    chunks = [
        Chunk(low, data[low:high], False)
        for low, high in ((0, cut), (cut, len(data)))
        if low < high
    ]
    kept = b"".join(gate.kept(source, chunk).data for chunk in chunks)
    assert CANARY.encode() not in kept
    assert kept.count(OPEN.encode()) == 4
    db.close()


# -- what it costs -------------------------------------------------------------------------------


def test_where_nothing_is_private_nothing_is_decoded(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    t = Transcript("plain")
    t.prompt("private static void main; List<String> p; if (a < b) private = c > d")
    data = t.text().encode()
    db = connect(tmp_path / "x.db")
    source = Source(
        id=0, agent="claude", path="p", session_id=t.session_id, framing="lines", state={}
    )
    monkeypatch.setattr(decode, "decode_line", lambda line, offset: pytest.fail("decoded"))
    kept = CaptureGate(EventWriter(db)).kept(source, Chunk(0, data, False))
    assert kept.data is data
    db.close()

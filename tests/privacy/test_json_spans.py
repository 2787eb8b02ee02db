"""The scanners of JSON text agree with each other, and hooks with ingest, whatever the text."""

from __future__ import annotations

import json
import runpy
from bisect import bisect_right
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from whyfor import hook
from whyfor.hook import private as rules
from whyfor.privacy import private
from whyfor.privacy.json_spans import literals, members, strings, word_spans
from whyfor.privacy.structure import IDENTITIES, KEPT_IN_PAUSE, SEALED, STRUCTURE

LISTS = frozenset([b"messages", b"items"])
# as an agent runs it: a file by itself, beside no package
INSTALLED = runpy.run_path(str(Path(hook.__file__).parent / "private.py"))

PIECES = [
    *(b"{ } [ ] , : \" \\ 1 -2.5e3 true null NaN x 'y'".split()),
    *(b" ", b"\n", b"\t", b"\0", b"\xff", b"\xed\xa0\x80", "é".encode()),
    *(b'"a":', b'"messages":[', b'"input":{', b'"text":"', b'{"id":"7",', b'"},', b'"]}'),
    *(b'\\"', b'\\\\"', b'\\\\\\"', b"\\\\\\\\", b"\\n", b"\\ud83d", b"\\u003c", b"\\u003e"),
    *(b"<private>", b"</private>", b"<private", b"</ PRIVATE >", b"\\u003cprivate\\u003e"),
    *(b"<\\/private>", b"< private \\n>", b'"{\\"a\\":\\"<private>b\\"}"', b'"[{\\"a\\":1}]"'),
]
BROKEN = st.lists(st.sampled_from(PIECES), max_size=30).map(b"".join)
TAG = st.sampled_from(["<private>", "</private>", "<PRIVATE x='1'>", "</ private>", "\\u003c"])
TEXT = st.lists(TAG | st.text(max_size=6), max_size=4).map("".join)
KEY = st.sampled_from(["messages", "items", "input", "id", "type", "text"]) | TEXT
VALUE = st.recursive(
    TEXT | st.integers() | st.floats(allow_nan=False) | st.booleans() | st.none(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(KEY, inner, max_size=3)
        | inner.map(json.dumps)  # JSON in a string
    ),
    max_leaves=10,
)


def written(value: Any, how: tuple[bool, int | None]) -> bytes:
    ascii_only, indent = how
    text = json.dumps(value, ensure_ascii=ascii_only, indent=indent)
    return text.encode("utf-8", "surrogatepass")


WHOLE = st.builds(written, VALUE, st.tuples(st.booleans(), st.sampled_from([None, 2])))
CUT = st.builds(lambda data, at: data[: at % (len(data) + 1)], WHOLE, st.integers(0, 500))
ANY = BROKEN | WHOLE | CUT | st.binary(max_size=40)
DEEP = b'{"a":' * 5000 + b'"<private>s"' + b"}" * 5000


def assert_scanners_agree(data: bytes) -> None:
    """Each string that one finds the other finds too; of JSON in a string one finds the strings
    in it, the other the whole."""
    found = {literal.start: literal for literal in literals(data)}
    starts = sorted(found)
    opened = set()
    for start, stop, _, key, _ in rules.Json(data, LISTS).strings:
        around = found[starts[bisect_right(starts, start) - 1]]
        if start == around.start:
            assert (stop, key == b":") == (around.stop, around.is_key)
        else:
            assert stop < around.stop
        opened.add(around.start)
    left = [found[start] for start in starts if start not in opened]
    assert all(_is_empty_json(data[one.start : one.stop]) for one in left)


@given(WHOLE)
@example(DEEP)
@example(b'{"a":"x\\ud83d\\\\\\" y","b":["{\\"c\\":[\\"<private>\\\\\\"\\"]}"]}')
def test_both_scanners_find_the_same_strings_in_json(data: bytes) -> None:
    assert rules.Json(data, LISTS).sound
    assert_scanners_agree(data)


def _is_empty_json(text: bytes) -> bool:
    return text[:1] in (b"{", b"[") and b'"' not in text


@given(ANY)
@example(DEEP)
@example(DEEP[:-1])
def test_a_hook_and_an_ingest_judge_private_text_alike(data: bytes) -> None:
    assert INSTALLED["marked"](data) == private.marked(data)
    assert INSTALLED["spans"](data) == private.spans(data)
    assert INSTALLED["spans"](data, LISTS) == private.spans(data, LISTS)
    assert INSTALLED["elements"](data, LISTS) == private.elements(data, LISTS)
    assert INSTALLED["everything"](data) == private.everything(data)
    assert INSTALLED["text_spans"](data) == private.text_spans(data)


@given(ANY)
def test_strings_of_any_text_are_in_order_and_apart(data: bytes) -> None:
    at = -1
    for literal in literals(data):
        assert at < literal.start - 1
        assert data[literal.start - 1 : literal.start] == b'"'
        assert data[literal.stop : literal.stop + 1] == (b'"' if literal.closed else b"")
        at = literal.stop


@given(ANY)
def test_the_text_of_a_line_is_found_on_that_line_alone(data: bytes) -> None:
    at, apart = 0, []
    for line in data.split(b"\n"):
        apart += [((at + first, at + last), text) for (first, last), text in strings(line)]
        at += len(line) + 1
    assert list(strings(data)) == apart


@given(st.dictionaries(KEY, VALUE, min_size=1, max_size=4), st.sampled_from([None, 2]))
def test_members_are_those_of_the_outermost_object(value: dict[str, Any], indent: int) -> None:
    data = json.dumps(value, indent=indent).encode()
    found = [(json.loads(b'"%b"' % key), data[low:high]) for key, (low, high) in members(data)]
    assert [key for key, _ in found] == list(value)
    for key, stretch in found[:-1]:
        assert json.loads(stretch.strip(b" \n:,")) == value[key]


def test_words_are_all_strings_but_keys_and_those_of_kept_keys() -> None:
    data = b'{"id":"7","x":["one",{"type":"t","y":"two \\"three\\""}],"z":""}'
    found = [
        data[low:high]
        for low, high in word_spans(data, (0, len(data)), frozenset([b"id", b"type"]))
    ]
    assert found == [b"one", b'two \\"three\\"']


def test_both_scanners_find_the_same_strings_in_real_transcripts(corpus: Path) -> None:
    for path in sorted(corpus.rglob("*.jsonl"))[::20]:
        for line in path.read_bytes().splitlines()[:200]:
            if rules.Json(line, LISTS).sound:
                assert_scanners_agree(line)


def test_the_lists_of_structural_keys_differ_only_where_they_are_meant_to() -> None:
    structure = {key.decode().lower() for key in STRUCTURE}
    assert KEPT_IN_PAUSE < STRUCTURE
    assert not SEALED & structure
    assert not SEALED & IDENTITIES
    # what redaction does not guess at, and a private message loses all the same
    assert IDENTITIES - structure == set(
        "leafuuid parentsessionid sourcetooluseid thread_id threadid updated_at branch eventid "
        "sha commit commit_hash hash checksum integrity snapshotid interactionid "
        "llm_response_id".split()
    )


@pytest.mark.parametrize("odd", [b"NaN", b"-Infinity", b"'one'", b"{", b"1 2"])
def test_of_a_hollow_record_nothing_stays_after_what_is_no_json(odd: bytes) -> None:
    """Python's decoder reads some of these: the record is one, so its words must go."""
    line = b'{"type":"user","cost":' + odd + b',"message":{"content":"hidden words"}}\n'
    left = line
    for start, stop in reversed(private.everything(line)):
        left = left[:start] + left[stop:]
    assert b"hidden" not in left
    assert left.startswith(b'{"type":"user","cost')
    assert left.endswith(b"\n")

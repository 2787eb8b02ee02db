"""Where strings stand in JSON, and what is left when some of them go."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from whyfor.capture.filters.forgotten import Forgotten, TextPattern, narrowed
from whyfor.model.gaps import filled, holes, without
from whyfor.privacy.json_spans import strings
from whyfor.store.tombstones import Tombstones

TEXT = st.text(st.characters(blacklist_categories=["Cs"]), max_size=20)
VALUES = st.recursive(
    TEXT | st.integers() | st.none(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)
RECORDS = st.dictionaries(TEXT, VALUES, max_size=5)


def said(value: Any) -> list[str]:
    """Every string in a value, keys too, that is not empty; of one that is JSON the strings in
    it."""
    if isinstance(value, dict):
        return [text for key, inner in value.items() for text in (*said(key), *said(inner))]
    if isinstance(value, list):
        return [text for inner in value for text in said(inner)]
    return [value] if isinstance(value, str) and value else []


@given(RECORDS, st.booleans())
def test_all_strings_are_found_with_what_they_say(record: dict[str, Any], ascii_only: bool) -> None:
    line = json.dumps(record, ensure_ascii=ascii_only).encode()
    plain = [text for text in said(record) if not text.startswith(("{", "["))]
    found = [text for _, text in strings(line)]
    assert [text for text in found if text in plain] == [text for text in plain if text in found]
    assert set(plain) <= set(found)


@given(RECORDS, st.booleans())
def test_strings_in_json_in_json_are_found_where_they_stand(
    record: dict[str, Any], ascii_only: bool
) -> None:
    inner = json.dumps(record, ensure_ascii=ascii_only)
    line = json.dumps({"data": inner}, ensure_ascii=ascii_only).encode()
    for (first, last), text in strings(line):
        if text == "data":
            continue
        emptied, gaps = narrowed(line, 0, (), [(first, last)])
        shown = filled(emptied, 0, holes(0, gaps))
        again = json.loads(json.loads(shown)["data"])
        assert len(said(again)) <= len(said(record)) or text in ("", "data")
        assert said(again).count(text) < max(1, said(record).count(text)) or text == "[private]"


PAIRS = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60)), max_size=5)


@given(st.binary(max_size=60), PAIRS, st.integers(0, 9))
def test_bytes_that_go_become_gaps_of_the_source(
    data: bytes, pairs: list[tuple[int, int]], start: int
) -> None:
    spans = [(min(pair), max(pair)) for pair in pairs if max(pair) <= len(data)]
    gone = {at for first, last in spans for at in range(first, last)}
    kept, gaps = narrowed(data, start, (), spans)
    assert kept == bytes(byte for at, byte in enumerate(data) if at not in gone)
    assert without(data, start, gaps) == kept
    assert {at for place, size in gaps for at in range(place - start, place - start + size)} == gone
    again, more = narrowed(kept, start, gaps, [(0, len(kept))])
    assert again == b""
    assert sum(size for _, size in more) == len(data)


@given(RECORDS, st.sampled_from(["lines", "document"]))
def test_what_was_forgotten_is_known_again_and_nothing_else(
    record: dict[str, Any], framing: str
) -> None:
    line = json.dumps(record).encode()
    texts = [text for _, text in strings(line)]
    stones = Tombstones(b"salt")
    stones.strings = {stones.string(text) for text in texts[:1]}
    spans = Forgotten(stones).hides("claude", "s", framing, line)
    assert len(spans) == texts.count(texts[0]) if texts else spans == []
    stones.strings = {stones.string("something nobody said here, ever")}
    assert Forgotten(stones).hides("claude", "s", framing, line) == []


@given(TEXT.filter(lambda text: len(text) > 2), st.integers(0, 2), st.booleans())
def test_a_text_is_found_however_deep_it_is_written(
    text: str, depth: int, ascii_only: bool
) -> None:
    value: Any = f"before {text} after"
    for _ in range(depth):
        value = json.dumps({"inner": value}, ensure_ascii=ascii_only)
    assert TextPattern(text).stands_in(
        json.dumps({"outer": value}, ensure_ascii=ascii_only).encode()
    )

"""What stands between private tags is dropped before anything is written."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from tests.cases import check_each
from whyfor import hook
from whyfor.hook import announce


@pytest.fixture(autouse=True)
def _beside(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a hook is installed, all its files lie in one folder."""
    monkeypatch.syspath_prepend(Path(hook.__file__).parent)


def without_private(payload: bytes) -> bytes:
    left, _ = announce.without_private([payload])
    return b"".join(left)


@pytest.mark.parametrize(
    ("given", "left"),
    [
        (b'{"x":"a <private>s</private> b"}', b'{"x":"a  b"}'),
        (b'{"x":"<private>s</private>"}', b'{"x":""}'),
        (b'{"x":"<private>a<private>b</private>c</private>d"}', b'{"x":"d"}'),
        (b'{"x":"a<private>s","y":"kept"}', b'{"x":"a","y":"kept"}'),
        (rb'{"x":"a<private>s\" s \\","y":"kept"}', b'{"x":"a","y":"kept"}'),
        (b'{"x":"<private>s<private>s</private>s","y":"kept"}', b'{"x":"","y":"kept"}'),
        (b'{"x":"<PRIVATE>s</Private>k"}', b'{"x":"k"}'),
        (rb'{"x":"\u003cprivate\u003es\u003C/private\u003Ek"}', b'{"x":"k"}'),
        (rb'{"x":"\\u003cprivate\\u003es\\u003c/private\\u003ek"}', b'{"x":"k"}'),
        (rb'{"x":"<private>s<\/private>k"}', b'{"x":"k"}'),
        (rb'{"x":"\\<private>s</private>\\"}', rb'{"x":"\\\\"}'),
        (rb'{"x":"{\"y\":\"<private>s\",\"z\":1}","k":1}', rb'{"x":"{\"y\":\"\",\"z\":1}","k":1}'),
        (rb'{"x":"{not \"y\":\"<private>s\",\"z\":1}","k":1}', rb'{"x":"{not \"y\":\"","k":1}'),
        (
            b'{"x":["a<private>s","s",{"type":"t","y":"s"},"s</private>b"]}',
            b'{"x":["a","",{"type":"t","y":""},"b"]}',
        ),
        (b'{"x":"a<private>s","y":"s</private>b"}', b'{"x":"a","y":"b"}'),
        (b'{"x":"a< private >s</ private\\n>b"}', b'{"x":"ab"}'),
        (b'{"x":"a<private class=\\"k\\">s</private>b<private/>c"}', b'{"x":"ab<private/>c"}'),
        (b'{"x":"&lt;private&gt;k"}', b'{"x":"&lt;private&gt;k"}'),
        (b'{"x":"a</private>b"}', b'{"x":"a</private>b"}'),
        (
            b'{"private":"<privates> private > <private-x>"}',
            b'{"private":"<privates> private > <private-x>"}',
        ),
        (b'not JSON <private>s "s" s', b"not JSON "),
        (b'  {"x":"<private>s"}', b'  {"x":""}'),
        (b'{"x":"<private>s', b'{"x":"'),
        (
            b'{"id":"7","x":"k","y":["' + b"<private></private>" * 101 + b'k"]}',
            b'{"id":"7","x":"","y":[""]}',
        ),
    ],
)
def test_private_text_is_dropped(given: bytes, left: bytes) -> None:
    assert without_private(given) == left


def test_what_is_left_is_still_json_and_holds_all_that_was_not_private() -> None:
    def check(seed: int) -> None:
        dice = random.Random(seed)
        document = {f"k{n}": _text(dice, 3) for n in range(4)}
        given = json.dumps(document, ensure_ascii=dice.random() < 0.5)
        if dice.random() < 0.5:
            given = given.replace("<", "\\u003c").replace(">", "\\u003E")
        left = without_private(given.encode())
        assert b"SECRET" not in left
        assert list(json.loads(left)) == list(document)
        assert left.count(b"open") == sum(text.count("open") for text in document.values())

    check_each(((f"seed {seed}", seed) for seed in range(200)), check)


def _text(dice: random.Random, depth: int, *, private: bool = False) -> str:
    odd = ['"', "\\", "\\\\", '\\"', "é", "\t", "<", ">", "</b>", " privates ", "\\u003c"]
    word = "SECRET" if private else "open"
    parts = [dice.choice([word, " ", *odd]) for _ in range(dice.randrange(8))]
    if depth and dice.random() < 0.7:
        inner = _text(dice, depth - 1, private=True)
        parts.append(
            f"<private>{inner}</private>"
            if dice.random() < 0.8 or private
            else f"<private>{inner} SECRET"
        )
        if parts[-1].endswith("</private>"):
            parts.append(_text(dice, depth - 1, private=private))
    return "".join(parts)


@pytest.mark.parametrize(
    "piece",
    [
        b"<private>",
        b"</private>",
        b"<private></private>",
        b"\\u003cprivate",
        b"\\",
        b'\\"<private>',
        b'"<private>"',
    ],
)
def test_hostile_text_takes_no_longer_than_any_other(piece: bytes) -> None:
    payload = b'{"x":"' + piece * (4_000_000 // len(piece))
    # with quadratic work this would take hours
    assert len(without_private(payload)) <= len(payload)

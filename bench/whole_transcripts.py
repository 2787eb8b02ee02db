"""Whole real transcripts with secrets planted among their records: what is redacted that is none,
and what is missed.

python whole_transcripts.py HOME    prints one JSON document
"""

from __future__ import annotations

import io
import sys
from collections import Counter
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from random import Random

import msgspec

from mentions import MentionCase, mention_cases
from planted import record_of
from raw import transcripts

_SPACING = 200  # records from one planted secret to the next
# The secrets that these transcripts are known to hold, by the beginning of their digests.
_KNOWN = frozenset("f5f48fad56561506 8d44e859a0de39d8 957974662c97ce8b a2ced0861f22bc19".split())
_BY_DESIGN = "private"  # what stands between tags goes, whatever it is


class WholeTranscripts(msgspec.Struct):
    files: int = 0
    size: int = 0
    false: dict[str, int] = {}  # places, by rule
    true: int = 0
    planted: int = 0
    found: int = 0


class _Planted(msgspec.Struct):
    """A transcript with secrets in it, and in which of its lines they stand."""

    data: bytes
    lines: dict[int, MentionCase]


def _plant(data: bytes, cases: Iterator[MentionCase]) -> _Planted:
    lines: list[bytes] = []
    where: dict[int, MentionCase] = {}
    for number, line in enumerate(data.split(b"\n")):
        lines.append(line)
        if number % _SPACING == _SPACING - 1 and line.startswith(b"{"):
            case = next(cases)
            where[len(lines)] = case
            lines.append(record_of(Random(number), case.text))
    return _Planted(b"\n".join(lines), where)


def _cases() -> Iterator[MentionCase]:
    cases = [case for case in mention_cases() if case.secret]
    Random("planted").shuffle(cases)
    while True:
        yield from cases


def look(home: Path) -> WholeTranscripts:
    # here, because the benchmark imports this file for its struct and must stay small itself
    from whyfor.privacy.engine import Engine
    from whyfor.privacy.rules import load_rules
    from whyfor.privacy.stream import Text

    engine, total, cases = Engine(load_rules()), WholeTranscripts(), _cases()
    false: Counter[str] = Counter()
    for path in transcripts(home):
        data = path.read_bytes()
        total.files += 1
        total.size += len(data)
        made = _plant(data, cases) if path.suffix == ".jsonl" else _Planted(data, {})
        text = Text(engine, io.BytesIO(made.data), 0, len(made.data))
        text.read()
        for item in text.found:
            value = made.data[item.start : item.end]
            if made.data.count(b"\n", 0, item.start) in made.lines or item.rule == _BY_DESIGN:
                continue
            if sha256(value).hexdigest()[:16] in _KNOWN:
                total.true += 1
            else:
                false[item.rule] += 1
        left = b"".join(clean for _, clean in text.redacted()).split(b"\n")
        total.planted += len(made.lines)
        for number, case in made.lines.items():
            total.found += _escaped(case.secret) not in left[number]
    total.false = dict(false)
    return total


def _escaped(secret: str) -> bytes:
    return msgspec.json.encode(secret)[1:-1]


if __name__ == "__main__":
    print(msgspec.json.encode(look(Path(sys.argv[1]))).decode())

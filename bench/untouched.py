"""Real transcripts, whose secrets others replaced long ago: what redaction takes out, and
whether they stay whole.

python untouched.py HOME    prints one JSON document
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path

import msgspec

from raw import transcripts
from strings import leaves

_MASK = re.compile(r"\[REDACTED:([a-z0-9-]+)")
# what a session hangs together by
_STRUCTURE = set(
    "type role id uuid parentUuid sessionId requestId messageId promptId agentId tool_use_id "
    "toolUseID parentToolUseID "
    "leafUuid sourceToolAssistantUUID call_id turn_id name cwd gitBranch version timestamp "
    "model signature".split()
)
_AROUND = 40  # characters


class Found(msgspec.Struct):
    rule: str
    where: str
    context: str


class Untouched(msgspec.Struct):
    files: int = 0
    size: int = 0
    lines: int = 0
    flagged: list[Found] = []
    structure: int = 0  # strings a session hangs together by that were changed
    broken: int = 0  # records that no longer parse or have another shape


def _context(old: str, new: str) -> str:
    """What stood where the lines first differ."""
    same = next(
        (at for at, (a, b) in enumerate(zip(old, new, strict=False)) if a != b),
        min(len(old), len(new)),
    )
    return old[max(0, same - _AROUND) : same + _AROUND]


def _compare(total: Untouched, old: object, new: object, where: str) -> None:
    before, after = list(leaves(old)), list(leaves(new))
    if [key for key, _ in before] != [key for key, _ in after]:
        total.broken += 1
        return
    for (key, text), (_, left) in zip(before, after, strict=True):
        if text == left:
            continue
        total.structure += key in _STRUCTURE
        for one, other in zip_longest(text.split("\n"), left.split("\n"), fillvalue=""):
            if one != other:
                rules = " ".join(_MASK.findall(other)) or "?"
                total.flagged.append(Found(rules, f"{where} {key}", _context(one, other)))


def _records(data: bytes) -> Iterator[object]:
    for line in data.split(b"\n"):
        try:
            yield msgspec.json.decode(line)
        except msgspec.DecodeError:
            yield None  # the corpus holds such lines on purpose


def look(home: Path) -> Untouched:
    # here, because the benchmark imports this file for its structs and must stay small itself
    from whyfor.privacy.engine import Engine
    from whyfor.privacy.redactor import Redactor
    from whyfor.privacy.rules import load_rules

    engine, total = Engine(load_rules()), Untouched()
    for path in transcripts(home):
        if path.suffix != ".jsonl":
            continue
        data = path.read_bytes()
        total.files += 1
        total.size += len(data)
        pairs = zip_longest(_records(data), _records(Redactor(engine).jsonl(data)))
        for number, (old, new) in enumerate(pairs, 1):
            total.lines += sum(text.count("\n") + 1 for _, text in leaves(old))
            if old != new:
                _compare(total, old, new, f"{path.stem[-12:]}:{number}")
    return total


if __name__ == "__main__":
    print(msgspec.json.encode(look(Path(sys.argv[1]))).decode())

"""LoCoMo, long conversations of two people and questions with their evidence, as sessions. Its
licence (CC BY-NC) keeps it out of this repository: the file is given with --locomo."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec

from invented import Turn, write_session
from retrieval import Question

_EVIDENCE = re.compile(r"D(\d+):\d+")
_SESSION = re.compile(r"session_(\d+)")


def conversations(path: Path) -> list[dict[str, Any]]:
    return msgspec.json.decode(path.read_bytes(), type=list[dict[str, Any]])


def write_conversation(home: Path, number: int, item: dict[str, Any]) -> list[Question]:
    """Write the sessions of one conversation into a home of their own; return its questions."""
    talk = item["conversation"]
    idents: dict[int, str] = {}
    for name, lines in talk.items():
        found = _SESSION.fullmatch(name)
        if found and isinstance(lines, list):
            at = int(found[1])
            idents[at] = write_session(home, f"talk{number}", at, _turns(lines))
    questions: list[Question] = []
    for asked in item["qa"]:
        places = {int(at) for at in _EVIDENCE.findall(" ".join(asked.get("evidence") or []))}
        gold = [idents[at] for at in sorted(places) if at in idents]
        if gold:
            questions.append(Question(" ".join(str(asked["question"]).split()), gold))
    return questions


def _turns(lines: list[dict[str, Any]]) -> list[Turn]:
    """Two lines are a turn: what one says, and what the other answers."""
    said = [_said(line) for line in lines]
    said += [""] * (len(said) % 2)
    return list(zip(said[::2], said[1::2], strict=True))


def _said(line: dict[str, Any]) -> str:
    shown = f" [{line['blip_caption']}]" if line.get("blip_caption") else ""
    return f"{line['speaker']}: {line['text']}{shown}"

"""Write a session of Claude Code: a tree of lines in its project's directory."""

from __future__ import annotations

import os
import unicodedata
import uuid
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from whyfor.agents.base import as_list, get_dict, get_list, get_str
from whyfor.agents.claude.places import projects_folder
from whyfor.agents.conversation import NewFile, NewSession, SpokenLine, json_lines
from whyfor.model.findings import Record
from whyfor.model.times import to_iso

TREE = ("user", "assistant", "attachment", "system")
# Lines that point past the cut, or to where the session was: titles, leaves, worktrees, backups of
# files.
LEFT_OUT = frozenset(
    """
    last-prompt summary custom-title ai-title agent-name relocated worktree-state bridge-session
    ended-by-model queue-operation file-history-snapshot file-history-delta
    """.split()
)
_NAME_MAX = 200


class ClaudeWriter:
    def new_id(self, now: int) -> str:
        return str(uuid.uuid4())

    def command(self, session_id: str, path: str = "") -> str:
        return f"claude --resume {session_id}"

    # -- the content of a line -------------------------------------------------------------------

    def opens(self, record: Record) -> list[str]:
        if record.get("type") != "assistant" or record.get("isSidechain"):
            return []
        return [
            get_str(block, "id") for block in _blocks(record) if block.get("type") == "tool_use"
        ]

    def answers(self, record: Record) -> list[str]:
        return [
            get_str(block, "tool_use_id")
            for block in _blocks(record)
            if block.get("type") == "tool_result"
        ]

    def asks(self, record: Record) -> bool:
        aside = record.get("isMeta") or record.get("isSidechain") or record.get("isCompactSummary")
        return record.get("type") == "user" and not aside and not self.answers(record)

    def without(self, record: Record, calls: set[str]) -> Record | None:
        if not calls.intersection(self.opens(record)):
            return record
        left = [block for block in _blocks(record) if block.get("id") not in calls]
        return {**record, "message": {**record["message"], "content": left}} if left else None

    def ident(self, record: Record) -> str | None:
        return get_str(record, "uuid") or None

    def continues(self, records: Sequence[Record]) -> tuple[str, int] | None:
        return None

    # -- one session -----------------------------------------------------------------------------

    def exact(self, records: Sequence[Record], place: NewSession) -> list[Record]:
        """Return the whole tree with all its branches; the last line is the leaf that is
        resumed."""
        starts = _starts(records)
        kept = [_moved(r, starts, place) for r in _mended(records) if r.get("type") not in LEFT_OUT]
        return [*kept, _title(place)]

    # -- several ---------------------------------------------------------------------------------

    def live(self, records: Sequence[Record]) -> list[Record]:
        tree = [
            r
            for r in _mended(records)
            if r.get("uuid") and r.get("type") in TREE and not r.get("isSidechain")
        ]
        by_uuid = {record["uuid"]: record for record in tree}
        wanted: set[str] = set()
        calls: set[str] = set()
        at: Any = tree[-1]["uuid"] if tree else None
        while at in by_uuid and at not in wanted:
            wanted.add(at)
            calls.update(self.opens(by_uuid[at]))
            kept = get_dict(get_dict(by_uuid[at], "compactMetadata"), "preservedMessages")
            wanted.update(get_list(kept, "uuids"))
            at = by_uuid[at].get("parentUuid")
        # Results of parallel calls hang on their calls, beside the path.
        wanted.update(r["uuid"] for r in tree if calls.intersection(self.answers(r)))
        return [r for r in tree if r["uuid"] in wanted and r.get("subtype") != "compact_boundary"]

    def spoken(self, said: Iterable[SpokenLine]) -> list[Record]:
        return [_line(item) for item in said]

    def joined(self, records: Sequence[Record], place: NewSession) -> list[Record]:
        starts = _starts(records)
        chain: list[Record] = []
        for record in records:
            parent = chain[-1]["uuid"] if chain else None
            chain.append({"cwd": place.cwd, **_moved(record, starts, place), "parentUuid": parent})
        return [*chain, _title(place)]

    # -- files -----------------------------------------------------------------------------------

    def files(self, records: Sequence[Record], place: NewSession) -> list[NewFile]:
        return [NewFile(_folder(place) / f"{place.session_id}.jsonl", json_lines(records))]

    def beside(
        self, path: str, records: Sequence[Record] | None, session_id: str, place: NewSession
    ) -> NewFile | None:
        """Subagents and large results stand in a folder named after the session."""
        before, _, below = path.replace("\\", "/").rpartition(f"/{session_id}/")
        target = (
            _folder(place)
            / place.session_id
            / (below if before else f"subagents/{path.rsplit('/', 1)[-1]}")
        )
        if records is None:
            return NewFile(target, b"")
        starts = _starts(records)
        return NewFile(target, json_lines(_moved(record, starts, place) for record in records))


def _blocks(record: Record) -> list[Record]:
    content = get_dict(record, "message").get("content")
    return [block for block in as_list(content) if isinstance(block, dict)]


def _mended(records: Sequence[Record]) -> list[Record]:
    """Return every line once, with a parent that exists: its own, else the line before it."""
    known: dict[str, Record] = {}
    for record in records:
        if isinstance(ident := record.get("uuid"), str):
            known.setdefault(ident, record)
    kept: list[Record] = []
    # of the conversation itself, and of subagents in the same file
    last: dict[bool, str | None] = {}
    for record in records:
        ident = record.get("uuid")
        if not isinstance(ident, str):
            kept.append(record)
        elif known[ident] is record:
            side = bool(record.get("isSidechain"))
            parent = _parent(record, known, last.get(side))
            kept.append(
                record if parent == record.get("parentUuid") else {**record, "parentUuid": parent}
            )
            if record.get("type") in TREE:
                last[side] = ident
    return kept


def _parent(record: Record, known: dict[str, Record], before: str | None) -> Any:
    """Return a line's parent, skipping lines between parent and child that are not messages, as old
    versions wrote them."""
    parent = record.get("parentUuid")
    passed: set[str] = set()
    while parent in known and known[parent].get("type") not in TREE and parent not in passed:
        passed.add(parent)
        parent = known[parent].get("parentUuid")
    return parent if parent is None or parent in known else before


def _starts(records: Sequence[Record]) -> set[str]:
    """Return the directories the sessions began in; the new session has another one in their
    place."""
    first: dict[str, str] = {}
    for record in records:
        if cwd := get_str(record, "cwd"):
            first.setdefault(get_str(record, "sessionId"), cwd)
    return set(first.values())


def _moved(record: Record, starts: set[str], place: NewSession) -> Record:
    """Return a line for the new session, with its origin noted as the agent does for its own
    branches."""
    changed: Record = {"sessionId": place.session_id}
    if record.get("cwd") in starts:
        changed["cwd"] = place.cwd
    if record.get("uuid") and record.get("sessionId"):
        changed["forkedFrom"] = {"sessionId": record["sessionId"], "messageUuid": record["uuid"]}
    return {**record, **changed}


def _line(said: SpokenLine) -> Record:
    message: Record = {"role": said.role, "content": said.text}
    if said.role == "assistant":
        message = {
            **message,
            "model": said.model or "unknown",
            "content": [{"type": "text", "text": said.text}],
        }
    return {
        "parentUuid": None,
        "isSidechain": False,
        "type": said.role,
        "message": message,
        "uuid": str(uuid.uuid4()),
        "timestamp": to_iso(said.at),
        "userType": "external",
    }


def _title(place: NewSession) -> Record:
    """It stands behind all that was copied, and says of which session that is a copy."""
    title = {"type": "custom-title", "customTitle": place.title, "sessionId": place.session_id}
    return {**title, "restoredFrom": place.copy_of}


def _folder(place: NewSession) -> Path:
    return projects_folder(place.home, place.env) / project_folder(
        os.path.realpath(place.cwd), place.env
    )


def project_folder(path: str, env: Mapping[str, str]) -> str:
    """Return the agent's name for a project: its path with all but letters and digits as dashes; a
    long one ends with a hash."""
    if given := env.get("CLAUDE_CODE_PROJECT_DIR_NAME"):
        return given
    raw = unicodedata.normalize("NFC", path).encode("utf-16-le", "surrogatepass")
    units = [raw[i] | raw[i + 1] << 8 for i in range(0, len(raw), 2)]
    name = "".join(chr(unit) if unit < 128 and chr(unit).isalnum() else "-" for unit in units)
    if len(name) <= _NAME_MAX:
        return name
    number = 0
    for unit in units:  # 32-bit and signed, as in JavaScript
        number = (number * 31 + unit) & 0xFFFFFFFF
    return f"{name[:_NAME_MAX]}-{_base36(min(number, 2**32 - number))}"


def _base36(number: int) -> str:
    digits = "0123456789abcdefghijklmnopqrstuvwxyz"
    out = ""
    while number or not out:
        number, rest = divmod(number, 36)
        out = digits[rest] + out
    return out


WRITER = ClaudeWriter()

"""Kimi Code, and Kimi CLI before it: a stream of events per session, under ~/.kimi-code/sessions
and ~/.kimi/sessions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from whyfor.agents.base import (
    FileAgent,
    OnError,
    RecordReader,
    RecordStamp,
    SourceShape,
    as_dict,
    get_list,
    get_str,
    head_records,
    walk,
)
from whyfor.agents.beside import small_object
from whyfor.agents.kimi.facts import FACTS, former_folder, own_folder
from whyfor.model.findings import Record
from whyfor.model.times import parse_iso

if TYPE_CHECKING:
    from whyfor.agents.conversation import SessionWriter

WIRE, STATE = "wire.jsonl", "state.json"
_RETOLD = ("agent.message.appended", "context.append_message")


class Kimi(FileAgent):
    name = "kimi"
    title = "Kimi Code"
    facts = FACTS

    def roots(self, home: Path, env: Mapping[str, str]) -> list[Path]:
        return [own_folder(home, env) / "sessions", former_folder(home, env) / "sessions"]

    def find(self, root: Path, onerror: OnError) -> Iterator[Path]:
        beside: list[Path] = []
        for path in walk(root, (WIRE, STATE), onerror):
            if path.name == WIRE:
                yield path
            elif path.name == STATE and path.parent.name != "notify":
                beside.append(path)
        yield from beside

    def sniff(self, path: Path, head: bytes) -> SourceShape | None:
        if path.name == STATE:
            is_own = b'"agents"' in head or b'"custom_title"' in head
            return SourceShape("document", path.parent.name, sidecar="meta") if is_own else None
        for record in head_records(head):
            if "protocol_version" in record and record.get("type") == "metadata":
                return _shape(path)
        return None

    def stamp(self, record: Record) -> RecordStamp:
        at = parse_iso(record.get("time")) or parse_iso(record.get("timestamp"))
        return RecordStamp(
            at=at,
            since=at or parse_iso(record.get("created_at")) or parse_iso(record.get("createdAt")),
            cwd=get_str(record, "cwd") or None,
            retells=record.get("type") in _RETOLD or "agents" in record,
        )

    def reader(self, shape: SourceShape, state: Record) -> RecordReader:
        from whyfor.agents.kimi.read import StateReader, WireReader  # most commands read nothing

        if shape.sidecar:
            return StateReader(state, shape, FACTS)
        return WireReader(state, shape, FACTS)

    def writer(self) -> SessionWriter:
        from whyfor.agents.kimi.write import WRITER

        return WRITER


def _shape(path: Path) -> SourceShape:
    """Kimi Code has a folder for each agent of a session, Kimi CLI one for the session."""
    if path.parent.parent.name != "agents":
        return SourceShape("lines", path.parent.name, cwd=_former_cwd(path))
    session = path.parent.parent.parent
    cwd = get_str(small_object(session / STATE), "cwd") or None
    if path.parent.name == "main":
        return SourceShape("lines", session.name, cwd=cwd)
    return SourceShape("lines", f"{path.parent.name}@{session.name}", session.name, cwd=cwd)


def _former_cwd(path: Path) -> str | None:
    """Return the folder whose hash the folder of sessions is called by, of those in the list."""
    from hashlib import md5  # here: OpenSSL takes longer to load than most runs take to look

    known = small_object(path.parents[3] / "kimi.json")
    for place in map(as_dict, get_list(known, "work_dirs")):
        folder = get_str(place, "path")
        hashed = md5(folder.encode("utf-8", "replace"), usedforsecurity=False).hexdigest()
        if hashed == path.parents[1].name:
            return folder
    return None


AGENT = Kimi()

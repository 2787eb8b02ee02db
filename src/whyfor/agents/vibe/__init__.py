"""Mistral Vibe: a folder per session under ~/.vibe/logs/session/unified. Each turn makes a new
snapshot of it, whose pieces are named by their content."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from whyfor.agents.base import (
    FileAgent,
    OnError,
    RecordReader,
    RecordStamp,
    SourceShape,
    get_dict,
    get_list,
    get_str,
)
from whyfor.agents.beside import small_object
from whyfor.agents.vibe.facts import FACTS, own_folder
from whyfor.model.findings import Record
from whyfor.model.times import parse_iso

META, TOTALS = "meta.json", "projection-state.json"


class Vibe(FileAgent):
    name = "vibe"
    title = "Mistral Vibe"
    facts = FACTS
    mutable = True
    local = False

    def roots(self, home: Path, env: Mapping[str, str]) -> list[Path]:
        return [own_folder(home, env) / "logs" / "session" / "unified"]

    def find(self, root: Path, onerror: OnError) -> Iterator[Path]:
        """Of each session: what is known of it, then the pieces of its last snapshot in order."""
        try:
            sessions = sorted(path for path in root.iterdir() if path.is_dir())
        except OSError as error:
            onerror(error)
            return
        for session in sessions:
            yield from _snapshot(session)

    def sniff(self, path: Path, head: bytes) -> SourceShape | None:
        if path.name == META and b'"session_id"' in head and b'"environment"' in head:
            return SourceShape("document", path.parent.name, sidecar="meta")
        if path.name == TOTALS and b'"projection_state_version"' in head:
            return SourceShape("document", path.parents[2].name, sidecar="totals")
        is_piece = path.parent.name == "chunks" and head.lstrip().startswith(b"[")
        if not is_piece or b'"createdAt"' not in head or b'"sessionId"' not in head:
            return None
        session = path.parent.parent
        about = get_dict(small_object(session / META), "environment")
        cwd = get_str(about, "working_directory") or None
        return SourceShape("document", session.name, cwd=cwd)

    def stamp(self, record: Record) -> RecordStamp:
        at = parse_iso(record.get("createdAt"))
        return RecordStamp(
            at=at,
            since=at or parse_iso(record.get("start_time")),
            until=parse_iso(record.get("updatedAt")),
            cwd=get_str(get_dict(record, "environment"), "working_directory") or None,
            session_id=get_str(record, "sessionId") or get_str(record, "session_id") or None,
            name=get_str(record, "id"),
        )

    def reader(self, shape: SourceShape, state: Record) -> RecordReader:
        from whyfor.agents.vibe.read import AboutReader, EntryReader, SnapshotTotalsReader

        if shape.sidecar == "meta":
            return AboutReader(state, shape, FACTS)
        if shape.sidecar == "totals":
            return SnapshotTotalsReader(state)
        return EntryReader(state, shape, FACTS)

    def resume(self, session_id: str) -> str:
        return f"vibe --resume {session_id}"


def _snapshot(session: Path) -> Iterator[Path]:
    """Yield the files of a session's last snapshot; older ones say the same, but less of it."""
    if (about := session / META).is_file():
        yield about
    generation = get_str(small_object(session / "CURRENT"), "generation")
    folder = session / "generations" / generation
    if not generation or Path(generation).name != generation:
        return
    state = get_dict(small_object(folder / "manifest.json"), "projection_state")
    for name in get_list(state, "chunks"):
        piece = session / "chunks" / f"{name}.json"
        if isinstance(name, str) and name.isalnum() and piece.is_file():
            yield piece
    if (totals := folder / TOTALS).is_file():
        yield totals


AGENT = Vibe()

"""All that is derived, as plain rows that do not depend on row ids: equal snapshots give equal
answers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import apsw
import msgspec
import pytest

from whyfor.config import Settings
from whyfor.model.query import SessionFilter
from whyfor.model.wire.sessions import wire_hit
from whyfor.service.search import HitRange, search
from whyfor.store.blobs import FolderBlobs

Rows = list[tuple[Any, ...]]
Snapshot = dict[str, Rows]

_TOKENS = "input, cache_read, cache_write, output, reasoning"


def _whose(session: str) -> str:
    return f"(SELECT s.agent || ':' || s.session_id FROM sessions s WHERE s.id = {session})"


_PATH = "(SELECT path FROM sources o WHERE o.id = source_id)"
_PROJECT = "(SELECT identity FROM projects p WHERE p.id = project_id)"
# {when} is observed_at, or nothing when two captures at different times are compared.
_DERIVED = {
    "projects": "SELECT identity, evidence, name, remote, root_commit, path FROM projects",
    "places": f"SELECT cwd, {_PROJECT}, {{when}} FROM places",
    "sources": "SELECT agent, path, session_id, parent, framing, sidecar, cwd, generation, position, tail, state, "
    "records, unparsed, error, head_hash, end_hash FROM sources",
    "unparsed": f"SELECT {_PATH}, generation, start, size, reason FROM unparsed",
    "unknown_types": f"SELECT agent, name, {_PATH}, records FROM unknown_types",
    "sessions": f"SELECT agent, session_id, parent, subagent, {_PROJECT}, cwd, branch, title, title_rank, version, "
    "forked_from, started_at, ended_at, last_seq, turn, prompts, messages, tool_calls, unparsed, models, "
    f"copied_to, restored_from, copy_of, copy_kind, own_from, original, {_TOKENS} FROM sessions",
    "events": f"SELECT {_whose('e.session_id')}, id & 16777215, key, turn, kind, source, confidence, created_at, "
    "{when}, actor, name, text, data FROM events e",
    "long_texts": f"SELECT {_whose('l.id >> 24')}, id & 16777215, {_PATH}, size, lines FROM long_texts l",
    "usage": f"SELECT {_whose('u.session_id')}, key, turn, created_at, model, {_TOKENS}, counts FROM usage u",
    "touches": f"SELECT {_whose('t.session_id')}, path, action, seq, turn FROM touches t",
    "leaf_titles": "SELECT key, title FROM leaf_titles",
    "signals": "SELECT id, at, agent, event, cwd, session_agent, session_id, how, repository, sha, data FROM signals",
    "docs": f"SELECT {_whose('d.id >> 24')}, id & 16777215, last_seq, turn, created_at FROM docs d",
}
_SEGMENTS = f"SELECT {_PATH}, generation, start, stop, digest, {{when}}, partial FROM segments"
# Where every word stands; for many megabytes only how often it stands in each column.
_PLACES = f"SELECT term, {_whose('doc >> 24')}, doc & 16777215, col, offset FROM temp.vocabulary"
_STEMS = "SELECT term, col, doc, cnt FROM temp.stems"
_COUNTS = "SELECT term, col, doc, cnt FROM temp.vocabulary"


def derived(
    settings: Settings, *, observed: bool = False, segments: bool = False, large: bool = False
) -> Snapshot:
    """`observed` with our clock, `segments` with how the bytes were cut, `large` with words
    counted only."""
    queries = dict(_DERIVED)
    if segments:
        queries["segments"] = _SEGMENTS
    queries["words"] = _COUNTS if large else _PLACES
    queries["passages"] = _STEMS
    db = apsw.Connection(str(settings.database), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        kind = "col" if large else "instance"
        db.execute(f"CREATE VIRTUAL TABLE temp.vocabulary USING fts5vocab(main, words, {kind})")
        db.execute("CREATE VIRTUAL TABLE temp.stems USING fts5vocab(main, passages, col)")
        when = "observed_at" if observed else "0"
        return {
            name: sorted(db.execute(sql.replace("{when}", when)), key=repr)
            for name, sql in queries.items()
        }
    finally:
        db.close()


def assert_equal(got: Snapshot, wanted: Snapshot) -> None:
    """Says where they differ, and little of what stands there."""
    assert got.keys() == wanted.keys()
    for name, rows in wanted.items():
        if got[name] != rows:
            extra, missing = _beyond(got[name], rows), _beyond(rows, got[name])
            pytest.fail(
                f"{name}: {len(got[name])} rows, expected {len(rows)}\ngot     {extra}\nmissing {missing}"
            )


def _beyond(these: Rows, those: Rows) -> str:
    """The first few of these that are not among those."""
    known = set(those)
    return "\n        ".join([repr(row)[:400] for row in these if row not in known][:3])


def found(settings: Settings, *queries: str) -> list[dict[str, Any]]:
    """What a search gives, best first."""
    return [
        msgspec.to_builtins(wire_hit(hit))
        for words in queries
        for hit in search(settings, words, SessionFilter(), HitRange(20))
    ]


def common_words(settings: Settings, number: int) -> list[str]:
    """Words that stand in many documents: every difference in the index moves their ranks."""
    db = apsw.Connection(str(settings.database), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        db.execute("CREATE VIRTUAL TABLE temp.vocabulary USING fts5vocab(main, words, row)")
        rows = db.execute(
            "SELECT term FROM temp.vocabulary WHERE length(term) > 3 AND term GLOB '[a-z]*' "
            "ORDER BY doc DESC, term LIMIT ?",
            (number,),
        )
        return [str(term) for (term,) in rows]
    finally:
        db.close()


def stored_bytes(settings: Settings) -> dict[str, bytes]:
    """What is stored of every source: the newest generation, put together from its segments,
    NULs where it has gaps."""
    blobs = FolderBlobs(settings.segments)
    db = apsw.Connection(str(settings.database), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        stored: dict[str, bytes] = {}
        rows = db.execute(
            "SELECT o.path, g.start, g.stop, g.digest, g.gaps FROM sources o JOIN segments g ON g.source_id = o.id "
            "AND g.generation = o.generation ORDER BY o.path, g.start"
        )
        for path, start, stop, digest, gaps in rows:
            before = stored.get(str(path), b"")
            content = blobs.get(str(digest))
            for place, size in json.loads(str(gaps or "[]")):
                content = (
                    content[: place - int(str(start))]
                    + b"\0" * size
                    + content[place - int(str(start)) :]
                )
            assert (len(before), len(content)) == (start, int(str(stop)) - int(str(start))), (
                f"{path} at {start}"
            )
            stored[str(path)] = before + content
        return stored
    finally:
        db.close()


def on_disk(home: Path) -> dict[str, tuple[int, bytes]]:
    """Every file below Whyfor's home: when it was written and what is in it (SQLite's -wal and
    -shm come and go)."""
    return {
        str(path.relative_to(home)): (path.stat().st_mtime_ns, path.read_bytes())
        for path in sorted(home.rglob("*"))
        if path.is_file() and not path.name.endswith(("-wal", "-shm"))
    }

"""Forgetting in the database: which rows go, what must not come back, and no byte left in the
file."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import apsw
import msgspec

from whyfor.files import replace
from whyfor.locks import file_name, open_file
from whyfor.model.errors import StoreError
from whyfor.store.journal import ForgottenEntry
from whyfor.store.sqlite.connection import fetch
from whyfor.store.sqlite.schema import SEQ_BITS

try:
    from _blake2 import blake2b  # as in model/ids.py: hashlib would bring OpenSSL along
except ImportError:
    from hashlib import blake2b

SALT = "salt"
UNFINISHED = "forgetting"  # a file that says what is left to do
STORY = "its story was forgotten, as somebody asked"
SESSION = "the session it came from was forgotten, as somebody asked"
READERS_MS = 5_000  # how long a reader that is still open is waited for
LOST = (
    "the file `salt` is lost or another: what was forgotten by its text would not be known again, "
    "so nothing is read"
)
LOST_HINT = (
    "Bring it back from a backup. If it is gone for good: whyfor forget --match TEXT --new-salt"
)
_SALT_BYTES = 32
_MARK = "salt-"


class Tombstones(msgspec.Struct):
    """All that was ever forgotten, and the salt its digests were made with."""

    salt: bytes = b""
    sessions: set[tuple[str, str]] = set()
    commits: set[str] = set()
    records: dict[str, set[str]] = {}
    strings: set[str] = set()
    marks: set[str] = set()  # of the salts that were ever used

    def __bool__(self) -> bool:
        return bool(self.sessions or self.records or self.strings)

    def covers(self, agent: str, session_id: str, parent: str | None = None) -> bool:
        """A session, or the one it works for, was forgotten."""
        return (agent, session_id) in self.sessions or (
            parent is not None and (agent, parent) in self.sessions
        )

    def add(self, entry: ForgottenEntry) -> None:
        for name in entry.sessions:
            agent, _, ident = name.partition(":")
            self.sessions.add((agent, ident))
        self.commits.update(entry.commits)
        for name, digests in entry.records.items():
            self.records.setdefault(name, set()).update(digests)
        self.learn(entry.strings)

    def learn(self, strings: Iterable[str]) -> None:
        for name in strings:
            (self.marks if name.startswith(_MARK) else self.strings).add(name)

    @property
    def mark(self) -> str:
        """What the salt is known again by; it is kept among the strings."""
        return _MARK + _digest(self.salt, b"\x00")

    @property
    def lost(self) -> bool:
        """There are digests, and nothing can be compared with them: the salt is not the one they
        were made with."""
        known = not self.marks or self.mark in self.marks
        return bool(self.records or self.strings) and not (self.salt and known)

    def line(self, session: str, line: bytes) -> str:
        """Digest of a record of a session."""
        return _digest(
            self.salt, session.encode("utf-8", "surrogatepass") + b"\x00" + line.rstrip(b"\r\n")
        )

    def torn(self, session: str, line: bytes, size: int) -> str:
        """The same of a line that had only so many bytes when it was forgotten, and may be whole
        by now."""
        return f"{size}-{self.line(session, line[:size])}"

    def string(self, text: str) -> str:
        """Digest of a string, whoever said it."""
        return _digest(self.salt, text.encode("utf-8", "surrogatepass"))


def _digest(salt: bytes, content: bytes) -> str:
    return blake2b(content, digest_size=16, key=salt).hexdigest()


def salt(home: Path, *, make: bool = False, anew: bool = False) -> bytes:
    """What digests are salted with; kept apart from them, so that they can be shared and still
    tell nothing."""
    path = home / SALT
    try:
        if not anew:
            return path.read_bytes()
    except FileNotFoundError:
        if not make:
            return b""
    replace(path, os.urandom(_SALT_BYTES))
    return path.read_bytes()


def load_tombstones(db: apsw.Connection, home: Path) -> Tombstones:
    found = Tombstones(salt(home), set(), set(), {}, set(), set())
    for kind, name in fetch(db, "SELECT kind, name FROM forgotten"):
        if kind == "session":
            agent, _, ident = name.partition(":")
            found.sessions.add((agent, ident))
        elif kind == "commit":
            found.commits.add(name)
        elif kind == "string":
            found.learn([name])
        elif kind == "record":
            session, _, digest = name.rpartition("/")
            found.records.setdefault(session, set()).add(digest)
    return found


def require_salt(found: Tombstones) -> Tombstones:
    """They are asked before anything is stored: what cannot be asked must not let all through."""
    if found.lost:
        raise StoreError(LOST, LOST_HINT)
    return found


def reasons(db: apsw.Connection) -> dict[str, str]:
    """Commits that have no story because of it, and why."""
    rows = fetch(db, "SELECT kind, name FROM forgotten WHERE kind IN ('commit', 'lost')")
    return {sha: STORY if kind == "commit" else SESSION for kind, sha in sorted(rows, reverse=True)}


def save_tombstones(db: apsw.Connection, entry: ForgottenEntry) -> None:
    rows = [("session", name) for name in entry.sessions]
    rows += [("commit", sha) for sha in entry.commits]
    rows += [("lost", sha) for sha in entry.lost]
    rows += [("string", digest) for digest in entry.strings]
    rows += [
        ("record", f"{session}/{digest}")
        for session, digests in entry.records.items()
        for digest in digests
    ]
    db.executemany("INSERT OR IGNORE INTO forgotten VALUES(?,?)", rows)


# -- rows ----------------------------------------------------------------------------------------


def sharing(db: apsw.Connection, sessions: Iterable[int]) -> tuple[list[int], list[int]]:
    """What these sessions paid for and others hold a copy of: its keys, and those others."""
    listed = _json(sorted(sessions))
    rows = fetch(
        db,
        "SELECT DISTINCT b.key, b.session_id FROM usage a JOIN usage b ON b.key=a.key WHERE "
        "a.session_id IN "
        "(SELECT value FROM json_each(?1)) AND b.session_id NOT IN (SELECT value FROM "
        "json_each(?1))",
        (listed,),
    )
    return sorted({row[0] for row in rows}), sorted({row[1] for row in rows})


def empty_session(db: apsw.Connection, session: int) -> None:
    """All that hangs on a session but what commits say of it; the session itself stays, as if
    nothing had been read."""
    base = session << SEQ_BITS
    top = base + (1 << SEQ_BITS) - 1
    docs = fetch(db, "SELECT id FROM docs WHERE id BETWEEN ? AND ?", (base, top))
    db.executemany("DELETE FROM words WHERE rowid=?", docs)
    db.execute("DELETE FROM docs WHERE id BETWEEN ? AND ?", (base, top))
    db.execute("DELETE FROM events WHERE id BETWEEN ? AND ?", (base, top))
    for table in ("usage", "touches", "acts"):
        db.execute(f"DELETE FROM {table} WHERE session_id=?", (session,))
    db.execute(
        "UPDATE sessions SET branch=NULL, title=NULL, title_rank=-1, version=NULL, "
        "forked_from=NULL, started_at=NULL, "
        "ended_at=NULL, last_seq=0, turn=0, prompts=0, messages=0, tool_calls=0, unparsed=0, "
        "models='[]', input=NULL, "
        "cache_read=NULL, cache_write=NULL, output=NULL, reasoning=NULL, subagent=NULL WHERE id=?",
        (session,),
    )


def delete_session(db: apsw.Connection, session: int) -> None:
    empty_session(db, session)
    for table in ("linked", "parts"):
        db.execute(f"DELETE FROM {table} WHERE session_id=?", (session,))
    db.execute("DELETE FROM sessions WHERE id=?", (session,))


def reset_source(db: apsw.Connection, source: int) -> None:
    """As if nothing of it had been read; what the file looked like stays, so that it is not
    opened again."""
    for table in ("segments", "unparsed", "unknown_types", "hiding"):
        db.execute(f"DELETE FROM {table} WHERE source_id=?", (source,))
    db.execute(
        "UPDATE sources SET generation=0, position=0, tail=0, head_hash=NULL, end_hash=NULL, "
        "state='{}', records=0, "
        "unparsed=0, error=NULL, cwd=NULL WHERE id=?",
        (source,),
    )


def drop_hints(db: apsw.Connection, names: set[tuple[str, str]]) -> None:
    """Hints of commits that name these sessions."""
    for sha, nearby in fetch(db, "SELECT sha, nearby FROM commits WHERE nearby IS NOT NULL"):
        hints = msgspec.json.decode(nearby)
        left = [hint for hint in hints if (hint.get("agent"), hint.get("session_id")) not in names]
        if left != hints:
            db.execute(
                "UPDATE commits SET nearby=? WHERE sha=?", (_json(left) if left else None, sha)
            )


# -- bytes ---------------------------------------------------------------------------------------


def scrub(db: apsw.Connection, copy: Path) -> bool:
    """Nothing deleted is left in the database's files; False if a reader that is still open
    keeps the log in use.

    Full text search keeps deleted words until its parts are merged, SQLite deleted pages until
    the file is rewritten, and the log of writes what both were before. It is rewritten by way of
    a copy of our own: a plain VACUUM would put everything into the system's folder for temporary
    files.
    """
    db.execute("INSERT INTO words(words) VALUES('optimize')")
    replace(copy, b"")
    db.execute("VACUUM INTO ?", (file_name(copy),))
    clean = open_file(copy)
    try:
        with db.backup("main", clean, "main") as pages:
            while not pages.done:
                pages.step(5000)
    finally:
        clean.close()
        copy.unlink()
    deadline = time.monotonic() + READERS_MS / 1000
    while True:
        busy, _, _ = fetch(db, "PRAGMA wal_checkpoint(TRUNCATE)")[0]
        if not busy:
            return True
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()

"""What was forgotten and must not be stored again: names of sessions and commits, salted digests of
records and strings."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import msgspec

from whyfor.files import replace
from whyfor.model.errors import StoreError
from whyfor.store.journal import ForgottenEntry

try:
    from _blake2 import blake2b  # as in model/ids.py: hashlib would bring OpenSSL along
except ImportError:
    from hashlib import blake2b

SALT = "salt"
FORGET_MARKER = "forgetting"  # a file in our home, there while a forget is not finished
STORY = "its story was forgotten, as somebody asked"
SESSION = "the session it came from was forgotten, as somebody asked"
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
    """Everything that was ever forgotten, with the salt of its digests."""

    salt: bytes = b""
    sessions: set[tuple[str, str]] = set()
    commits: set[str] = set()
    records: dict[str, set[str]] = {}
    strings: set[str] = set()
    marks: set[str] = set()  # of the salts that were ever used

    def __bool__(self) -> bool:
        return bool(self.sessions or self.records or self.strings)

    def covers(self, agent: str, session_id: str, parent: str | None = None) -> bool:
        """Return whether a session, or the session it is a subagent of, was forgotten."""
        if (agent, session_id) in self.sessions:
            return True
        return parent is not None and (agent, parent) in self.sessions

    def add_strings(self, names: Iterable[str]) -> None:
        """Add digests of strings; the marks of salts are kept among them."""
        for name in names:
            (self.marks if name.startswith(_MARK) else self.strings).add(name)

    @property
    def mark(self) -> str:
        """A digest that identifies the salt; stored among the strings."""
        return _MARK + _digest(self.salt, b"\x00")

    @property
    def lost(self) -> bool:
        """Whether there are digests but the salt they were made with is missing or changed, so
        nothing can be compared."""
        known = not self.marks or self.mark in self.marks
        return bool(self.records or self.strings) and not (self.salt and known)

    def line(self, session: str, line: bytes) -> str:
        """Return the digest of a record of a session."""
        name = session.encode("utf-8", "surrogatepass")
        return _digest(self.salt, name + b"\x00" + line.rstrip(b"\r\n"))

    def torn(self, session: str, line: bytes, size: int) -> str:
        """Return the digest of a line that had only `size` bytes when it was forgotten and may be
        complete now."""
        return f"{size}-{self.line(session, line[:size])}"

    def string(self, text: str) -> str:
        """Return the digest of a string, whichever session it is from."""
        return _digest(self.salt, text.encode("utf-8", "surrogatepass"))


def _digest(salt: bytes, content: bytes) -> str:
    return blake2b(content, digest_size=16, key=salt).hexdigest()


def read_salt(home: Path) -> bytes:
    """Return the salt of the digests; empty if there is none. It is kept apart from them, so that
    digests alone reveal nothing."""
    try:
        return (home / SALT).read_bytes()
    except FileNotFoundError:
        return b""


def make_salt(home: Path) -> bytes:
    """Write a new salt, replacing any old one, and return it."""
    replace(home / SALT, os.urandom(_SALT_BYTES))
    return read_salt(home)


def require_salt(found: Tombstones) -> Tombstones:
    """Raise StoreError if the salt is lost: forgotten text cannot be recognised then, so nothing
    may be ingested."""
    if found.lost:
        raise StoreError(LOST, LOST_HINT)
    return found


def merge_forgotten(one: ForgottenEntry, other: ForgottenEntry) -> ForgottenEntry:
    """Return both entries as one, without duplicates."""
    records = {name: set(digests) for name, digests in one.records.items()}
    for name, digests in other.records.items():
        records.setdefault(name, set()).update(digests)
    gone = {*one.sessions, *other.sessions}
    return ForgottenEntry(
        at=max(one.at, other.at),
        sessions=sorted(gone),
        commits=sorted({*one.commits, *other.commits}),
        lost=sorted({*one.lost, *other.lost}),
        records={
            name: sorted(digests) for name, digests in sorted(records.items()) if name not in gone
        },
        strings=sorted({*one.strings, *other.strings}),
    )

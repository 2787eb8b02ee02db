"""The conversations in a database of Cursor's editor: values by key, some of them huge. Only the
keys of conversations are looked at, and one conversation is in memory at a time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import apsw
import msgspec

from whyfor.agents.base import as_dict, get_list, get_str
from whyfor.agents.databases.connection import Database, unreadable
from whyfor.model.findings import Record

CHATS_MAX = 50_000
_BUBBLES_MAX = 20_000  # of one conversation
_TABLE = "cursorDiskKV"
_KEYS = f"SELECT key FROM {_TABLE} WHERE key >= 'composerData:' AND key < 'composerData;' LIMIT "
_VALUE = f"SELECT value FROM {_TABLE} WHERE key=?"


def cursor_chats(path: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the id of each conversation, and it as a document. Raises OSError if the database
    cannot be read; nothing if it is not Cursor's."""
    try:
        with Database(path) as db:
            if {"key", "value"} <= set(db.columns(_TABLE)):
                for (key,) in list(db.query(f"{_KEYS}{CHATS_MAX}")):
                    document = _document(db, str(key).partition(":")[2])
                    if document:
                        yield str(key).partition(":")[2], document
    except apsw.Error as error:
        raise unreadable(path, error) from error


def _document(db: Database, ident: str) -> bytes | None:
    composer = _value(db, f"composerData:{ident}")
    heads = get_list(composer, "fullConversationHeadersOnly")[:_BUBBLES_MAX]
    names = [get_str(as_dict(head), "bubbleId") for head in heads]
    bubbles = [_value(db, f"bubbleId:{ident}:{name}") for name in names]
    found = [bubble for bubble in bubbles if bubble]
    found = found or [as_dict(each) for each in get_list(composer, "conversation")[:_BUBBLES_MAX]]
    if not found:
        return None
    names_kept = ("composerId", "name", "createdAt", "lastUpdatedAt", "workspaceIdentifier")
    about = {name: composer[name] for name in names_kept if name in composer}
    return msgspec.json.encode({"cursor": {"composer": about, "bubbles": found}})


def _value(db: Database, key: str) -> Record:
    for (value,) in db.query(_VALUE, key):
        try:
            return as_dict(msgspec.json.decode(value))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, TypeError):
            return {}
    return {}

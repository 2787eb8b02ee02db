"""The search index: what is asked of it by exact words, and what ranks the answers.

`words` has one document per turn, or per 64k characters of a long one, a column for each kind of
text, and words as they stand: it answers phrases, prefixes, files and tools. What a tool printed
has a column of its own, and of a long result only its head and tail are indexed: a later `git log`
repeats the words of earlier work and must not outrank it.

`passages` has a row for about 1,000 characters of what was said in a turn, and rows of their own
for what was done, with words reduced to their stems: it ranks. The number of a row is the number
of its first event and of the part of that event's text it begins with.

`cards` has one row for each session: its title, prompts, closing words, files, commits and what was
learned, with identifiers also in their parts. It finds a session whose words stand far apart, and
in which no single passage has many of them.

Boundaries depend on the events alone, so a session indexed piece by piece has the same documents
as one indexed at once; an append re-makes only the last document and its passages. A session's
title is a document, and a passage, with seq 0.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from whyfor.model.events import SEQ_BITS
from whyfor.model.memory import SearchCard
from whyfor.model.titles import TITLE_PROMPT
from whyfor.store.sql.database import StoreDatabase

MAX_DOC = 65_536
RESULT_HEAD = 1_500
RESULT_TAIL = 500
PASSAGE = 1_000  # characters
CALL = 400  # characters of a tool call that say what it does; the rest is what it writes
COLUMNS = ("prompts", "answers", "thinking", "tools", "results")
_COLUMN = {"user.prompt": 0, "assistant.message": 1, "assistant.thinking": 2, "tool.result": 4}
_TOOLS = 3
_WORDS = (*COLUMNS, "files", "names")
_PASSAGES = ("prompts", "answers", "calls")
_CARDS = ("title", "prompts", "closing", "files", "commits", "learned")
_SPOKEN = {"user.prompt": 0, "assistant.message": 1}
_DONE = 2
_IDENTIFIER = re.compile(r"\b(?:[A-Za-z]+[a-z][A-Z]|[A-Za-z\d]+_[A-Za-z\d])\w*")
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_CARD_FILES = 200
PART_BITS = 6  # of a passage's number: a text has no more parts than that can count
_PARTS = 1 << PART_BITS


class _Doc:
    __slots__ = ("created_at", "first", "last", "names", "passages", "size", "texts", "turn")

    def __init__(self, seq: int, turn: int, created_at: int | None) -> None:
        self.first = self.last = seq
        self.turn = turn
        self.created_at = created_at
        self.size = 0
        self.texts: tuple[list[str], ...] = ([], [], [], [], [])
        self.names: set[str] = set()
        self.passages = _Passages()


class _Passages:
    """Cuts what was said and done in a document into rows of about the same size."""

    __slots__ = ("_done", "_said", "_sizes", "rows")

    def __init__(self) -> None:
        self.rows: dict[int, tuple[list[str], ...]] = {}
        self._sizes: dict[int, int] = {}  # characters of each row
        self._said = self._done = 0  # the row that what comes next is added to

    def add(self, ident: int, kind: str, text: str) -> None:
        """Add the text of an event; kinds that are not searched for are left out."""
        number = ident << PART_BITS
        if kind in _SPOKEN:
            column = _SPOKEN[kind]
            for part, piece in enumerate(_pieces(text)):
                self._said = self._put(self._said, number + part, column, piece)
        elif kind == "tool.call":
            self._done = self._put(self._done, number, _DONE, text[:CALL])

    def _put(self, row: int, number: int, column: int, text: str) -> int:
        """Put a text into a row if it has room, else into a new one; return which."""
        size = self._sizes.get(row, PASSAGE) + len(text)
        if size > PASSAGE:
            row, size = number, len(text)
            self.rows[row] = ([], [], [])
        self.rows[row][column].append(text)
        self._sizes[row] = size
        return row


def _pieces(text: str) -> Iterator[str]:
    """Cut a text into pieces of at most a passage, between words where it has any."""
    longest = max(PASSAGE, len(text) // (_PARTS // 2))
    begin = 0
    while len(text) - begin > longest:
        space = text.rfind(" ", begin + longest // 2, begin + longest)
        end = space + 1 if space >= 0 else begin + longest
        yield text[begin:end]
        begin = end
    yield text[begin:]


def index_session(db: StoreDatabase, session: int, dirty_from: int) -> None:
    """Bring the documents of a session up to date from a changed event on; what is remembered of
    it, its card too, is made anew by the next ingest's last step."""
    base = session << SEQ_BITS
    top = base + (1 << SEQ_BITS) - 1
    sql = "SELECT max(id) FROM docs WHERE id BETWEEN ? AND ?"
    [(last,)] = _rows(db, sql, (base + 1, base + dirty_from))
    first = base + 1 if last is None else int(last)
    remove_documents(db, first, top)
    db.execute("UPDATE memories SET version=0 WHERE session_id=?", (session,))
    files = _files(db, session, first - base)
    rows: list[tuple[int, int, int, int | None]] = []
    passages: list[tuple[Any, ...]] = []

    def words() -> Iterator[tuple[Any, ...]]:
        for doc in _documents(db, base, first, top):
            ident = base + doc.first
            rows.append((ident, doc.last, doc.turn, doc.created_at))
            for number, texts in sorted(doc.passages.rows.items()):
                passages.append((number, *map("\n".join, texts)))
            paths = {path for seq, path in files if doc.first <= seq <= doc.last} if files else ()
            columns = ("\n".join(texts) for texts in doc.texts)
            yield (ident, *columns, "\n".join(sorted(paths)), "\n".join(sorted(doc.names)))

    db.index.add("words", _WORDS, words())
    db.index.add("passages", _PASSAGES, passages)
    db.executemany("INSERT INTO docs VALUES(?,?,?,?)", rows)


def index_title(db: StoreDatabase, session: int, title: str, created_at: int | None) -> None:
    ident = session << SEQ_BITS
    remove_documents(db, ident, ident)
    db.execute("INSERT INTO docs VALUES(?,0,1,?)", (ident, created_at))
    db.index.add("words", ("title",), [(ident, title)])
    db.index.add("passages", ("title",), [(ident << PART_BITS, title)])


def index_card(db: StoreDatabase, session: int, card: SearchCard) -> None:
    """Write the card of a session that has none."""
    title = _rows(db, "SELECT coalesce(title, '') FROM sessions WHERE id=?", (session,))
    files = _rows(
        db,
        "SELECT DISTINCT path FROM touches WHERE session_id=? AND action='write' LIMIT ?",
        (session, _CARD_FILES),
    )
    subjects = _rows(
        db,
        """
        SELECT c.subject FROM parts p JOIN checkpoints c ON c.sha=p.sha
        WHERE p.session_id=? AND c.superseded_by IS NULL
        ORDER BY c.committed_at
        """,
        (session,),
    )
    columns = (
        _joined(title),
        card.prompts,
        card.closing,
        " ".join(_name(path) for (path,) in files),
        f"{card.commits}\n{_joined(subjects)}",
        card.learned,
    )
    db.index.add("cards", _CARDS, [(session, *map(_spelled, columns))])


def _joined(rows: list[Any]) -> str:
    return "\n".join(text for (text,) in rows)


def _name(path: str) -> str:
    """The end of a path that says which file it is."""
    return "/".join(path.replace("\\", "/").split("/")[-2:])


def _spelled(text: str) -> str:
    """Return a text with the parts of its identifiers after it: parseQuery, parse_query."""
    parts = [part for name in _IDENTIFIER.findall(text) for part in _PART.findall(name)]
    return f"{text} {' '.join(parts)}" if parts else text


def remove_documents(db: StoreDatabase, first: int, last: int) -> None:
    """Take documents out of the index, by the numbers of the first and the last event."""
    docs = _rows(db, "SELECT id FROM docs WHERE id BETWEEN ? AND ?", (first, last))
    if not docs:
        return
    passages = db.index.numbers("passages", first << PART_BITS, ((last + 1) << PART_BITS) - 1)
    db.index.remove("words", [ident for (ident,) in docs])
    db.index.remove("passages", passages)
    db.executemany("DELETE FROM docs WHERE id=?", docs)


def index_all(db: StoreDatabase) -> None:
    """Make the whole index from the stored events."""
    db.index.clear()
    db.execute("DELETE FROM docs")
    sql = "SELECT id, title, title_rank, started_at FROM sessions ORDER BY id"
    for session, title, rank, started_at in _rows(db, sql, ()):
        if title and rank > TITLE_PROMPT:
            index_title(db, session, title, started_at)
        index_session(db, session, 1)


def _documents(db: StoreDatabase, base: int, first: int, top: int) -> Iterator[_Doc]:
    doc: _Doc | None = None
    query = (
        "SELECT id, turn, kind, name, text, created_at FROM event_texts "
        "WHERE id BETWEEN ? AND ? ORDER BY id"
    )
    for ident, turn, kind, name, text, created_at in db.execute(query, (first, top)):
        seq = ident - base
        if doc is None or doc.turn != turn or doc.size >= MAX_DOC:
            if doc is not None:
                yield doc
            doc = _Doc(seq, turn, created_at)
        doc.last = seq
        if doc.created_at is None:
            doc.created_at = created_at
        if text:
            shown = ends(text) if kind == "tool.result" else text
            doc.size += len(shown)
            doc.texts[_COLUMN.get(kind, _TOOLS)].append(shown)
            doc.passages.add(ident, kind, text)
        if name:
            doc.names.add(name)
    if doc is not None:
        yield doc


def ends(text: str) -> str:
    """Return what is indexed of a tool's result: all of it, or its head and tail."""
    if len(text) <= RESULT_HEAD + RESULT_TAIL:
        return text
    return f"{text[:RESULT_HEAD]}\n{text[-RESULT_TAIL:]}"


def _files(db: StoreDatabase, session: int, seq: int) -> list[tuple[int, str]]:
    sql = "SELECT seq, path FROM touches WHERE session_id=? AND seq>=?"
    return [(at, path) for at, path in _rows(db, sql, (session, seq))]


def _rows(db: StoreDatabase, sql: str, values: tuple[int, ...]) -> list[Any]:
    return list(db.execute(sql, values))

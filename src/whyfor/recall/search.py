"""Find the best turns for a query, one hit per turn, and the position of the words in it."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

import msgspec

from whyfor.model.events import StoredEvent
from whyfor.model.query import FIELDS, Atom, Filters, Hit, Match, Query
from whyfor.model.sessions import Session
from whyfor.model.text import one_line
from whyfor.recall.query import phrase
from whyfor.store.protocol import StoreReader

CANDIDATES = 60
_FIELD_OF = {
    "user.prompt": "prompts",
    "assistant.message": "answers",
    "assistant.thinking": "thinking",
}
_ORDER = {"user.prompt": 4, "assistant.message": 3, "assistant.thinking": 2, "tool.call": 1}
_CODE = ("tool.call", "tool.result")
_WHOLE = 1.5  # a turn with all the words, against one with some of them
_ENOUGH = 0.5  # with fewer of a longer query's words a turn is no answer
_SNIPPET = 160
_LEAD = 40
_LINES = 3
_WIDTH = 240  # of one of these
_ACCENTED = re.compile(r"[\u00c0-\u024f\u1e00-\u1eff]")


def search(
    reader: StoreReader, query: Query, filters: Filters, *, limit: int, newest: bool = False
) -> list[Hit]:
    """Return up to `limit` hits, at most one per turn; best first, or newest first."""
    return page(reader, query, filters, limit=limit, newest=newest)[0]


def page(
    reader: StoreReader,
    query: Query,
    filters: Filters,
    *,
    limit: int,
    after: int = 0,
    newest: bool = False,
    lines: bool = False,
) -> tuple[list[Hit], int | None]:
    """Return the hits after a position in the list, and the next position; with `lines`, code
    snippets keep their line breaks."""
    matches = (_newest if newest else _best)(reader, query, filters, after + limit)
    hits: list[Hit] = []
    sessions: dict[int, Session] = {}
    for place, match in enumerate(matches[after:], after):
        if len(hits) >= limit:
            return hits, place
        if match.session not in sessions:  # as many at once as may be needed
            sessions |= reader.by_number(
                sorted({m.session for m in matches[place : place + limit - len(hits)]})
            )
        hit = _resolve(reader, sessions[match.session], match, query, filters.fields, lines)
        if hit is not None:
            hits.append(hit)
    return hits, None


def _newest(reader: StoreReader, query: Query, filters: Filters, limit: int) -> list[Match]:
    found = reader.match(query, filters, max(limit * 4, CANDIDATES), newest=True)
    return _one_per_turn(found)


def _best(reader: StoreReader, query: Query, filters: Filters, limit: int) -> list[Match]:
    """Return turns with all the words; for longer queries also turns with most of them, ranked
    lower."""
    room = max(limit * 3, CANDIDATES)
    found = {(m.session, m.first_seq): m for m in reader.match(query, filters, room)}
    if len(query.clauses) < 3:
        return _one_per_turn(found.values())
    wide = query
    if whole := phrase(query):
        wide = msgspec.structs.replace(query, clauses=(*query.clauses, (whole,)))
    loose = reader.match(wide, filters, room, any_clause=True)
    share = reader.coverage(query, filters.fields, loose)
    ranked: list[Match] = []
    for match in loose:
        key = (match.session, match.first_seq)
        weight = _WHOLE if key in found else share.get(key, 0.0)
        if weight >= _ENOUGH:
            ranked.append(msgspec.structs.replace(match, score=match.score * weight))
            found.pop(key, None)
    # turns with all the words, which a looser query ranked too low because the words are common
    ranked += found.values()
    return _one_per_turn(sorted(ranked, key=lambda m: -m.score))


def _one_per_turn(matches: Iterable[Match]) -> list[Match]:
    seen: dict[tuple[int, int], Match] = {}
    for match in matches:
        seen.setdefault((match.session, match.turn), match)
    return list(seen.values())


# -- position in the turn ------------------------------------------------------------------------


def _resolve(
    reader: StoreReader,
    session: Session,
    match: Match,
    query: Query,
    fields: tuple[str, ...],
    lines: bool,
) -> Hit | None:
    """Return a hit for the event of the matching part that has most of the words; None if no event
    qualifies."""
    if match.first_seq == 0:
        return _title_hit(reader, session, match, query)
    finders = _finders(query)
    best: tuple[float, StoredEvent] | None = None
    calls: set[object] = set()
    for event in reader.events(session.id, match.first_seq, match.last_seq):
        if event.kind == "tool.call" and _is_tool(event.name, query.tools):
            calls.add((event.data or {}).get("id"))
        if not _eligible(event, fields, query, calls):
            continue
        text = _fold(event.text)
        score = sum(1 for finder in finders if finder.spans(text, 1)) * 10 + _ORDER.get(
            event.kind, 0
        )
        if best is None or score > best[0]:
            best = (score, event)
    if best is None or (query.tools and finders and best[0] < 10):
        return None  # the words and the tool are in the same turn, but not in the same call
    event = best[1]
    return _hit(session, match, event, event.text, finders, lines and event.kind in _CODE)


def _eligible(
    event: StoredEvent, fields: tuple[str, ...], query: Query, calls: set[object]
) -> bool:
    if query.tools:
        if event.kind == "tool.call":
            return _is_tool(event.name, query.tools)
        return event.kind == "tool.result" and (event.data or {}).get("id") in calls
    return bool(event.text) and _FIELD_OF.get(event.kind, "tools") in (fields or FIELDS)


def _is_tool(name: str | None, tools: tuple[str, ...]) -> bool:
    return any(tool.lower() in (name or "").lower() for tool in tools)


def _title_hit(reader: StoreReader, session: Session, match: Match, query: Query) -> Hit | None:
    first = next((e for e in reader.events(session.id) if e.kind == "user.prompt"), None)
    first = first or next(reader.events(session.id), None)
    if first is None:
        return None
    title = session.title or first.text
    named = one_line(title).rstrip("…") not in one_line(first.text)
    return msgspec.structs.replace(_hit(session, match, first, title, _finders(query)), named=named)


def _hit(
    session: Session,
    match: Match,
    event: StoredEvent,
    text: str,
    finders: list[_Finder],
    lines: bool = False,
) -> Hit:
    snippet, marks = (_excerpt if lines else _snippet)(text, finders)
    return Hit(
        session=session,
        seq=event.seq,
        turn=event.turn,
        kind=event.kind,
        created_at=event.created_at,
        snippet=snippet,
        marks=marks,
        score=round(match.score, 4),
    )


class _Finder:
    """Finds a term as the index would: whole words, any punctuation between them, no accents."""

    __slots__ = ("lead", "literal", "pattern")

    def __init__(self, atom: Atom) -> None:
        words = re.findall(r"[^\W_]+", _fold(atom.text)) or [_fold(atom.text)]
        self.literal = max(words, key=len)
        body = r"[\W_]+".join(map(re.escape, words))
        self.pattern = re.compile(rf"(?<![^\W_]){body}" + ("" if atom.prefix else r"(?![^\W_])"))
        self.lead = (
            len(atom.text) + _LEAD if len(words) > 1 else 0
        )  # how far before its longest word a phrase may begin

    def spans(self, text: str, most: int) -> list[tuple[int, int]]:
        """Return up to `most` matches. The longest word is searched first, because that is far
        cheaper than the pattern."""
        found: list[tuple[int, int]] = []
        at = text.find(self.literal)
        while at >= 0 and len(found) < most:
            hit = (
                self.pattern.match(text, at)
                if not self.lead
                else self.pattern.search(text, max(0, at - self.lead))
            )
            if hit is None and self.lead:
                break
            found += [hit.span()] if hit else []
            at = text.find(self.literal, max(hit.end() if hit else 0, at + 1))
        return found


def _finders(query: Query) -> list[_Finder]:
    return [_Finder(atom) for clause in query.clauses for atom in clause]


def _fold(text: str) -> str:
    """Fold text as the index does: lower case, no accents; each character stays one character."""
    lowered = text.lower()
    if len(lowered) != len(text):
        lowered = "".join(char.lower()[:1] for char in text)
    return lowered if lowered.isascii() else _ACCENTED.sub(_plain, lowered)


def _plain(found: re.Match[str]) -> str:
    return unicodedata.normalize("NFD", found[0])[0]


def _snippet(text: str, finders: list[_Finder]) -> tuple[str, list[tuple[int, int]]]:
    """Return the part of the text with the most words, on one line, and the positions of the
    words."""
    folded = _fold(text)
    spans = sorted({span for finder in finders for span in finder.spans(folded, 50)})
    start = _densest(spans)
    begin = max(0, start - _SNIPPET // 4)
    piece = text[begin : begin + _SNIPPET]
    line = re.sub(r"\s", " ", piece)  # one for one, so that the marks still fit
    marks = [(a - begin, b - begin) for a, b in spans if a >= begin and b <= begin + len(piece)]
    lead = "…" if begin else ""
    trail = "…" if begin + _SNIPPET < len(text) else ""
    return lead + line + trail, [(a + len(lead), b + len(lead)) for a, b in marks]


def _densest(spans: list[tuple[int, int]]) -> int:
    best, start = 0, spans[0][0] if spans else 0
    for index, (at, _) in enumerate(spans):
        inside = sum(1 for other, _ in spans[index:] if other < at + _SNIPPET * 3 // 4)
        if inside > best:
            best, start = inside, at
    return start


def _excerpt(text: str, finders: list[_Finder]) -> tuple[str, list[tuple[int, int]]]:
    """Return the line with the most words and its neighbours, and the positions of the words."""
    folded = _fold(text)
    spans = sorted({span for finder in finders for span in finder.spans(folded, 50)})
    at = _densest(spans)
    begin = text.rfind("\n", 0, at) + 1
    if at - begin > _WIDTH // 2:
        begin = at - _WIDTH // 4  # one long line: as much of it as fits
    elif begin > 1:
        before = text.rfind("\n", 0, begin - 1) + 1
        begin = before if begin - before <= _WIDTH else begin
    end = begin
    for _ in range(_LINES):
        stop = text.find("\n", end)
        stop = len(text) if stop < 0 else stop
        if stop - end > _WIDTH:
            end += _WIDTH
            break
        end = min(stop + 1, len(text))
    piece = text[begin:end].rstrip("\n")
    return piece, [
        (a - begin, b - begin) for a, b in spans if a >= begin and b <= begin + len(piece)
    ]


def held(text: str, query: Query) -> bool:
    """Return whether a text has all the required words and none of the excluded ones."""
    folded = _fold(text)
    return all(
        any(_Finder(atom).spans(folded, 1) for atom in clause) for clause in query.clauses
    ) and not any(_Finder(atom).spans(folded, 1) for atom in query.without)


def marked(text: str, query: Query) -> tuple[str, list[tuple[int, int]]]:
    """Return the best part of a text and the positions of the words in it."""
    return _snippet(text, _finders(query))

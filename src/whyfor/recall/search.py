"""Find the best turns for a query, one hit per turn, and the position of the words in it."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from itertools import chain

import msgspec

from whyfor.model.events import StoredEvent
from whyfor.model.query import FIELDS, Atom, Filters, Hit, Match, Query
from whyfor.model.sessions import Session
from whyfor.model.text import one_line
from whyfor.recall.query import phrase
from whyfor.store.protocol import Store

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


class HitRange(msgspec.Struct, frozen=True):
    """Which hits of a search, and how they are shown."""

    limit: int
    after: int = 0  # a place in the list
    newest: bool = False  # newest first, else best first
    lines: bool = False  # code keeps the lines it stands on


def search_hits(
    store: Store, query: Query, filters: Filters, *, limit: int, newest: bool = False
) -> list[Hit]:
    """Return at most one hit per turn; best first, or newest first."""
    return hit_page(store, query, filters, HitRange(limit=limit, newest=newest))[0]


def hit_page(
    store: Store, query: Query, filters: Filters, which: HitRange
) -> tuple[list[Hit], int | None]:
    """Return hits, and the place to go on from; None after the last."""
    find = _newest if which.newest else _best
    matches = find(store, query, filters, which.after + which.limit)
    resolver = _Resolver(store, query, filters.fields, which.lines)
    hits: list[Hit] = []
    sessions: dict[int, Session] = {}
    for place, match in enumerate(matches[which.after :], which.after):
        if len(hits) >= which.limit:
            return hits, place
        if match.session not in sessions:  # as many at once as may be needed
            coming = matches[place : place + which.limit - len(hits)]
            sessions |= store.sessions.by_number(sorted({m.session for m in coming}))
        hit = resolver.hit(sessions[match.session], match)
        if hit is not None:
            hits.append(hit)
    return hits, None


def _newest(store: Store, query: Query, filters: Filters, limit: int) -> list[Match]:
    found = store.search.match(query, filters, max(limit * 4, CANDIDATES), newest=True)
    return _one_per_turn(found)


def _best(store: Store, query: Query, filters: Filters, limit: int) -> list[Match]:
    """Return turns with all the words; for longer queries also turns with most of them, lower."""
    room = max(limit * 3, CANDIDATES)
    complete = {_piece(match): match for match in store.search.match(query, filters, room)}
    if len(query.clauses) < 3:
        return _one_per_turn(complete.values())
    wide = query
    whole = phrase(query)
    if whole is not None:
        wide = msgspec.structs.replace(query, clauses=(*query.clauses, (whole,)))
    loose = store.search.match(wide, filters, room, any_clause=True)
    share = store.search.coverage(query, filters.fields, loose)
    ranked: list[Match] = []
    for match in loose:
        key = _piece(match)
        weight = _WHOLE if key in complete else share.get(key, 0.0)
        if weight >= _ENOUGH:
            ranked.append(msgspec.structs.replace(match, score=match.score * weight))
            complete.pop(key, None)
    # all the words, but so common that a looser query ranked them out of sight
    ranked += complete.values()
    return _one_per_turn(sorted(ranked, key=lambda m: -m.score))


def _piece(match: Match) -> tuple[int, int]:
    return match.session, match.first_seq


def _one_per_turn(matches: Iterable[Match]) -> list[Match]:
    seen: dict[tuple[int, int], Match] = {}
    for match in matches:
        seen.setdefault((match.session, match.turn), match)
    return list(seen.values())


# -- position in the turn ------------------------------------------------------------------------


class _Resolver:
    """Finds the event in a matching piece of a turn that holds most of the words."""

    def __init__(self, store: Store, query: Query, fields: tuple[str, ...], lines: bool) -> None:
        self.store = store
        self.tools = query.tools
        self.fields = fields or FIELDS
        self.lines = lines
        self.finders = _finders(query)

    def hit(self, session: Session, match: Match) -> Hit | None:
        """Return the hit of a match; None if no event of it has the words."""
        if match.first_seq == 0:
            return self._title_hit(session, match)
        best: StoredEvent | None = None
        most = -1
        for event in self._eligible(session, match):
            score = self._score(event)
            if score > most:
                best, most = event, score
        if best is None or (self.tools and self.finders and most < 10):
            return None  # the words and the tool are in the same turn, but not in the same call
        return self._make(session, match, best, best.text)

    def _score(self, event: StoredEvent) -> int:
        text = _fold(event.text)
        found = sum(1 for finder in self.finders if finder.spans(text, 1))
        return found * 10 + _ORDER.get(event.kind, 0)

    def _eligible(self, session: Session, match: Match) -> Iterator[StoredEvent]:
        """Yield the events that fields and tools of the query allow."""
        calls: set[object] = set()
        for event in self.store.conversation.events(session.id, match.first_seq, match.last_seq):
            if not self.tools:
                if event.text and _FIELD_OF.get(event.kind, "tools") in self.fields:
                    yield event
            elif event.kind == "tool.call" and _is_tool(event.name, self.tools):
                calls.add((event.data or {}).get("id"))
                yield event
            elif event.kind == "tool.result" and (event.data or {}).get("id") in calls:
                yield event

    def _title_hit(self, session: Session, match: Match) -> Hit | None:
        events = self.store.conversation.events(session.id)
        first = next((event for event in events if event.kind == "user.prompt"), None)
        first = first or next(self.store.conversation.events(session.id), None)
        if first is None:
            return None
        title = session.title or first.text
        named = one_line(title).rstrip("…") not in one_line(first.text)
        hit = self._make(session, match, first, title, title=True)
        return msgspec.structs.replace(hit, named=named)

    def _make(
        self, session: Session, match: Match, event: StoredEvent, text: str, *, title: bool = False
    ) -> Hit:
        in_lines = self.lines and event.kind in _CODE and not title
        snippet, marks = (_excerpt if in_lines else _snippet)(text, self.finders)
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


def _is_tool(name: str | None, tools: tuple[str, ...]) -> bool:
    return any(tool.lower() in (name or "").lower() for tool in tools)


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
        """Return where the atom stands, so many places at most.

        The longest word is looked for first: far cheaper than the pattern, which is tried only
        where that stands.
        """
        found: list[tuple[int, int]] = []
        at = text.find(self.literal)
        while at >= 0 and len(found) < most:
            if self.lead:
                hit = self.pattern.search(text, max(0, at - self.lead))
                if hit is None:
                    break
            else:
                hit = self.pattern.match(text, at)
            at += 1
            if hit is not None:
                found.append(hit.span())
                at = max(hit.end(), at)
            at = text.find(self.literal, at)
        return found


def _finders(query: Query) -> list[_Finder]:
    return [_Finder(atom) for atom in chain.from_iterable(query.clauses)]


def _spans(text: str, finders: list[_Finder]) -> list[tuple[int, int]]:
    """Return where the words stand in a text, in order."""
    folded = _fold(text)
    spans: set[tuple[int, int]] = set()
    for finder in finders:
        spans.update(finder.spans(folded, 50))
    return sorted(spans)


def _marks(spans: list[tuple[int, int]], begin: int, end: int) -> list[tuple[int, int]]:
    """Return those that lie within, counted from `begin`."""
    return [(a - begin, b - begin) for a, b in spans if a >= begin and b <= end]


def _fold(text: str) -> str:
    """Fold text as the index does: lower case, no accents; each character stays one character."""
    lowered = text.lower()
    if len(lowered) != len(text):
        lowered = "".join(char.lower()[:1] for char in text)
    return lowered if lowered.isascii() else _ACCENTED.sub(_plain, lowered)


def _plain(found: re.Match[str]) -> str:
    return unicodedata.normalize("NFD", found[0])[0]


def _snippet(text: str, finders: list[_Finder]) -> tuple[str, list[tuple[int, int]]]:
    """Return the stretch of text with the most words in it, on one line, and where they stand."""
    spans = _spans(text, finders)
    begin = max(0, _densest(spans) - _SNIPPET // 4)
    piece = text[begin : begin + _SNIPPET]
    line = re.sub(r"\s", " ", piece)  # one for one, so that the marks still fit
    lead = "…" if begin else ""
    trail = "…" if begin + _SNIPPET < len(text) else ""
    marks = _marks(spans, begin, begin + len(piece))
    return lead + line + trail, [(a + len(lead), b + len(lead)) for a, b in marks]


def _densest(spans: list[tuple[int, int]]) -> int:
    best, start = 0, spans[0][0] if spans else 0
    for index, (at, _) in enumerate(spans):
        inside = sum(1 for other, _ in spans[index:] if other < at + _SNIPPET * 3 // 4)
        if inside > best:
            best, start = inside, at
    return start


def _excerpt(text: str, finders: list[_Finder]) -> tuple[str, list[tuple[int, int]]]:
    """Return the line with the most words from there on and its neighbours, and where the words
    stand."""
    spans = _spans(text, finders)
    begin = _first_line(text, _densest(spans))
    end = begin
    for _ in range(_LINES):
        stop = text.find("\n", end)
        stop = len(text) if stop < 0 else stop
        if stop - end > _WIDTH:
            end += _WIDTH
            break
        end = min(stop + 1, len(text))
    piece = text[begin:end].rstrip("\n")
    return piece, _marks(spans, begin, begin + len(piece))


def _first_line(text: str, at: int) -> int:
    """Return where an excerpt around a place begins: at the line before, if that is short."""
    begin = text.rfind("\n", 0, at) + 1
    if at - begin > _WIDTH // 2:
        return at - _WIDTH // 4  # one long line: as much of it as fits
    if begin <= 1:
        return begin
    before = text.rfind("\n", 0, begin - 1) + 1
    return before if begin - before <= _WIDTH else begin


def has_all_words(text: str, query: Query) -> bool:
    """Return whether a text has all the words, and none that it must not have."""
    folded = _fold(text)

    def has(atom: Atom) -> bool:
        return bool(_Finder(atom).spans(folded, 1))

    for clause in query.clauses:
        if not any(map(has, clause)):
            return False
    return not any(map(has, query.without))


def mark_words(text: str, query: Query) -> tuple[str, list[tuple[int, int]]]:
    """Return the best part of a text and the positions of the words in it."""
    return _snippet(text, _finders(query))

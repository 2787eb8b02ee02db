"""Find the sessions that a query asks for, best first, and the passages its words stand in."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache

import msgspec

from whyfor.model.events import StoredEvent
from whyfor.model.memory import MemoryFilter, StoredObservation
from whyfor.model.query import (
    FIELDS,
    Filters,
    FoundNote,
    FoundPassage,
    Hit,
    Match,
    Query,
    SessionOwner,
)
from whyfor.model.sessions import Session
from whyfor.model.text import one_line
from whyfor.recall.deep import scan_results
from whyfor.recall.query import content, passage_query
from whyfor.recall.ranked_sessions import Candidate, Ranking, SessionGroups, best_sessions
from whyfor.recall.related import fitting_notes
from whyfor.recall.snippets import excerpt, has_words, snippet, word_finders
from whyfor.store.open import OpenStore
from whyfor.store.protocol import SharedStore
from whyfor.story.threads import SessionThreads

PASSAGES = 3  # at most so many of a session are shown
_STEADY = 100  # sessions that are ranked at least, so that their order is the same on every page
_PIECES = 4  # matches that are asked for, for each turn that is wanted
_NOTES = 2  # of a session are shown
_STRETCH = 50  # events that are read at once
_FIELD_OF = {
    "user.prompt": "prompts",
    "assistant.message": "answers",
    "assistant.thinking": "thinking",
}
_ORDER = {"user.prompt": 4, "assistant.message": 3, "assistant.thinking": 2, "tool.call": 1}
_CODE = ("tool.call", "tool.result")


def field_of(kind: str) -> str:
    """Return the field of FIELDS that events of a kind belong to."""
    return _FIELD_OF.get(kind, "tools")


class HitRange(msgspec.Struct, frozen=True):
    """Which hits of a search, and how they are shown."""

    limit: int
    after: int = 0  # a place in the list
    newest: bool = False  # newest first, else best first
    lines: bool = False  # code keeps the lines it stands on
    deep: bool = False  # also in the whole of long tool results
    turns: bool = False  # one hit for each turn, not for each session


_Finder = Callable[[OpenStore, Query, Filters, int, list[Match]], Ranking]


class HitPage(msgspec.Struct, frozen=True):
    """Hits, and the place to go on from; None after the last."""

    hits: list[Hit]
    following: int | None
    trouble: str = ""  # why sessions were not looked for by meaning, though they could be


def hit_page(store: OpenStore, query: Query, filters: Filters, which: HitRange) -> HitPage:
    """Return one hit per session, or per turn."""
    resolver = _Resolver(store, content(query), filters.fields, which.lines)
    sessions = max(which.after + which.limit + 1, _STEADY)
    results = scan_results(store, query, filters, sessions) if which.deep else []
    for result in results:
        resolver.whole[result.match.session, result.match.first_seq] = result.text
    ranking = _FINDERS[which.turns, which.newest](
        store, query, filters, sessions, [result.match for result in results]
    )
    hits: list[Hit] = []
    resolver.prepare(ranking.candidates[which.after : which.after + which.limit])
    for place, candidate in enumerate(ranking.candidates[which.after :], which.after):
        if len(hits) >= which.limit:
            return HitPage(hits, place, ranking.trouble)
        hit = resolver.hit(candidate)
        if hit is not None:
            hits.append(hit)
    return HitPage(hits, None, ranking.trouble)


# -- which sessions ------------------------------------------------------------------------------


def _newest(
    store: OpenStore, query: Query, filters: Filters, sessions: int, deep: list[Match]
) -> Ranking:
    """Return sessions in which a turn has all the words, by the newest such turn."""
    groups = SessionGroups(store)
    wanted, passages = content(query), passage_query(query, every=True)
    typed = groups.enough(
        lambda room: store.search.match(wanted, filters, room, newest=True), sessions
    )
    groups.learn(deep)
    said = groups.enough(
        lambda room: store.search.passages(passages, filters, room, newest=True), sessions
    )
    by_time = sorted(
        [*said, *typed, *deep],
        key=lambda match: (-(match.created_at or 0), groups.is_copied(match)),
    )
    return Ranking([Candidate(own[0].score, own) for own in groups.grouped(by_time).values()])


def _best_turns(
    store: OpenStore, query: Query, filters: Filters, turns: int, deep: list[Match]
) -> Ranking:
    """Return turns by their best passages, then those with all the words as typed elsewhere."""
    said = store.search.passages(passage_query(query), filters, turns * _PIECES)
    typed = store.search.match(content(query), filters, turns * _PIECES)
    return _apart([*said, *typed, *deep])


def _newest_turns(
    store: OpenStore, query: Query, filters: Filters, turns: int, deep: list[Match]
) -> Ranking:
    """Return turns that have all the words, newest first."""
    wanted = passage_query(query, every=True)
    said = store.search.passages(wanted, filters, turns * _PIECES, newest=True)
    typed = store.search.match(content(query), filters, turns * _PIECES, newest=True)
    return _apart(sorted([*said, *typed, *deep], key=lambda match: -(match.created_at or 0)))


def _apart(matches: list[Match]) -> Ranking:
    """Return each turn once, where it was found first."""
    turns: dict[tuple[int, int], Candidate] = {}
    for match in matches:
        turns.setdefault((match.session, match.turn), Candidate(match.score, [match]))
    return Ranking(list(turns.values()))


_FINDERS: dict[tuple[bool, bool], _Finder] = {
    (False, False): best_sessions,
    (False, True): _newest,
    (True, False): _best_turns,
    (True, True): _newest_turns,
}


# -- where in a session --------------------------------------------------------------------------


class _Resolver:
    """Finds the event in a matching piece of a turn that holds most of the words."""

    def __init__(
        self, store: SharedStore, query: Query, fields: tuple[str, ...], lines: bool
    ) -> None:
        self.store = store
        self.tools = query.tools
        self.fields = fields or FIELDS
        self.lines = lines
        self.threads = SessionThreads(store)
        self.whole: dict[tuple[int, int], str] = {}  # texts that are not stored whole
        self.finders = word_finders(query, cache(store.search.stem))
        self.owners: dict[int, SessionOwner] = {}
        self.sessions: dict[int, Session] = {}
        self.known_notes: dict[tuple[str, str], list[StoredObservation]] = {}

    def prepare(self, candidates: Iterable[Candidate]) -> None:
        """Read what hits need of their sessions, for many at once: a database that is elsewhere is
        asked a few times, not a few times for each."""
        numbers = set()
        for candidate in candidates:
            numbers |= _sessions_of(candidate)
        fresh = numbers - self.owners.keys()
        if not fresh:
            return
        self.owners |= self.store.search.owners(fresh)
        mains = {self.owners[number].main for number in fresh if number in self.owners}
        wanted = sorted((fresh | mains) - self.sessions.keys())
        self.sessions |= self.store.sessions.by_number(wanted)
        if self.tools or not self.finders:
            return
        asked = MemoryFilter(numbers=tuple(wanted), current=True)
        for note in self.store.memory.observations(asked, None):
            self.known_notes.setdefault((note.agent, note.session_id), []).append(note)

    def hit(self, candidate: Candidate) -> Hit | None:
        """Return a session with its best passages; None if no event of it has the words."""
        passages: list[FoundPassage] = []
        self.prepare([candidate])
        numbers = _sessions_of(candidate)
        owners, sessions = self.owners, self.sessions
        mains = {owners[number].main for number in numbers}
        for match in candidate.matches[: 2 * PASSAGES]:
            passage = self.passage(sessions[match.session], match)
            if passage is not None:
                passages.append(passage)
            if len(passages) == PASSAGES:
                break
        if not passages:
            return None
        session = sessions[owners[passages[0].session.id].main]
        thread = self.threads.thread_of(session.name)
        copies = [name for name in thread.names if name != session.name]
        notes = self.notes(sorted(numbers | mains))
        return Hit(session, passages, copies, thread.words, round(candidate.score, 4), notes)

    def notes(self, sessions: list[int]) -> list[FoundNote]:
        """Return the few notes of sessions that have the words."""
        if self.tools or not self.finders:
            return []
        names = [(self.sessions[each].agent, self.sessions[each].session_id) for each in sessions]
        known = [note for name in names for note in self.known_notes.get(name, ())]
        known.sort(key=lambda note: -(note.observation.at or 0))
        found = fitting_notes(known, self.finders)
        notes = [each.observation for each in found[:_NOTES]]
        return [FoundNote(note.key, note.type, note.state, note.title) for note in notes]

    def passage(self, session: Session, match: Match) -> FoundPassage | None:
        """Return where a match stands; None if no event of it has the words."""
        if match.first_seq == 0:
            return self._title(session, match)
        if (whole := self.whole.get((session.id, match.first_seq))) is not None:
            event = next(self.store.conversation.events(session.id, match.first_seq))
            return self._make(session, match, event, whole)
        best: StoredEvent | None = None
        most = -1
        for event in self._eligible(session, match):
            score = has_words(event.text, self.finders) * 10 + _ORDER.get(event.kind, 0)
            if score > most:
                best, most = event, score
        if best is None or (self.tools and self.finders and most < 10):
            return None  # the words and the tool are in the same turn, but not in the same call
        return self._make(session, match, best, best.text)

    def _eligible(self, session: Session, match: Match) -> Iterator[StoredEvent]:
        """Yield the events that fields and tools of the query allow."""
        calls: set[object] = set()
        span = (session.id, match.first_seq, match.last_seq)
        for event in self.store.conversation.events(*span, sizes=False):
            if not self.tools:
                if event.text and field_of(event.kind) in self.fields:
                    yield event
            elif event.kind == "tool.call" and _is_tool(event.name, self.tools):
                calls.add((event.data or {}).get("id"))
                yield event
            elif event.kind == "tool.result" and (event.data or {}).get("id") in calls:
                yield event

    def _title(self, session: Session, match: Match) -> FoundPassage | None:
        first = self._first_event(session.id)
        if first is None:
            return None
        title = session.title or first.text
        named = one_line(title).rstrip("…") not in one_line(first.text)
        found = self._make(session, match, first, title, title=True)
        return msgspec.structs.replace(found, named=named)

    def _first_event(self, session: int) -> StoredEvent | None:
        """Return the first prompt of a session, else its first event."""
        first: StoredEvent | None = None
        after = -1
        while events := self.store.conversation.stretch(session, after, _STRETCH):
            first = first or events[0]
            for event in events:
                if event.kind == "user.prompt":
                    return event
            after = events[-1].seq
        return first

    def _make(
        self, session: Session, match: Match, event: StoredEvent, text: str, *, title: bool = False
    ) -> FoundPassage:
        in_lines = self.lines and event.kind in _CODE and not title
        shown, marks = (excerpt if in_lines else snippet)(text, self.finders)
        return FoundPassage(
            session=session,
            seq=event.seq,
            turn=event.turn,
            kind=event.kind,
            created_at=event.created_at,
            snippet=shown,
            marks=marks,
            score=round(match.score, 4),
        )


def _sessions_of(candidate: Candidate) -> set[int]:
    """Return the sessions whose passages may be shown."""
    return {match.session for match in candidate.matches[: 2 * PASSAGES]}


def _is_tool(name: str | None, tools: tuple[str, ...]) -> bool:
    return any(tool.lower() in (name or "").lower() for tool in tools)

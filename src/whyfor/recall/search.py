"""Find the sessions that a query asks for, best first, and the passages its words stand in."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache

import msgspec

from whyfor.model.events import StoredEvent
from whyfor.model.memory import MemoryFilter
from whyfor.model.query import (
    FIELDS,
    CardMatch,
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
from whyfor.recall.related import fitting_notes
from whyfor.recall.snippets import excerpt, has_words, snippet, word_finders
from whyfor.store.open import OpenStore
from whyfor.store.protocol import Store
from whyfor.story.threads import SessionThreads

PASSAGES = 3  # at most so many of a session are shown
_ROOM = 300  # matches that are asked for first
_MOST = 20_000  # and at most, if they are of too few sessions
_STEADY = 100  # sessions that are ranked at least, so that their order is the same on every page
_CARDS = 200  # that are looked at
_COVERED = 0.95  # share of the words from which on a passage answers the query
_CARD_SHARE = 0.6  # what the best card counts, where the best passages count 1
_CARD_SHARE_COVERED = 0.3  # if a passage answers the query already
_PIECES = 4  # matches that are asked for, for each turn that is wanted
_NOTES = 2  # of a session are shown
_SHARES = (1.0, 0.3, 0.1)  # how much the best passages of a session count
_FIELD_OF = {
    "user.prompt": "prompts",
    "assistant.message": "answers",
    "assistant.thinking": "thinking",
}
_ORDER = {"user.prompt": 4, "assistant.message": 3, "assistant.thinking": 2, "tool.call": 1}
_CODE = ("tool.call", "tool.result")


class HitRange(msgspec.Struct, frozen=True):
    """Which hits of a search, and how they are shown."""

    limit: int
    after: int = 0  # a place in the list
    newest: bool = False  # newest first, else best first
    lines: bool = False  # code keeps the lines it stands on
    deep: bool = False  # also in the whole of long tool results
    turns: bool = False  # one hit for each turn, not for each session


class Candidate(msgspec.Struct):
    """A session with its subagents and copies, and where it matches, best first."""

    score: float
    matches: list[Match]


_Finder = Callable[[Store, Query, Filters, int, list[Match]], list[Candidate]]


def hit_page(
    store: OpenStore, query: Query, filters: Filters, which: HitRange
) -> tuple[list[Hit], int | None]:
    """Return one hit per session, and the place to go on from; None after the last."""
    resolver = _Resolver(store, content(query), filters.fields, which.lines)
    sessions = max(which.after + which.limit + 1, _STEADY)
    results = scan_results(store, query, filters, sessions) if which.deep else []
    for result in results:
        resolver.whole[result.match.session, result.match.first_seq] = result.text
    found = _FINDERS[which.turns, which.newest](
        store, query, filters, sessions, [result.match for result in results]
    )
    hits: list[Hit] = []
    for place, candidate in enumerate(found[which.after :], which.after):
        if len(hits) >= which.limit:
            return hits, place
        hit = resolver.hit(candidate)
        if hit is not None:
            hits.append(hit)
    return hits, None


# -- which sessions ------------------------------------------------------------------------------


class _Sessions:
    """Groups matches by session."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.owners: dict[int, SessionOwner] = {}
        self.seen: set[tuple[str, int, int]] = set()  # turns

    def enough(self, ask: Callable[[int], list[Match]], sessions: int) -> list[Match]:
        """Return matches of so many sessions, or all there are: one long session must not hide
        the others."""
        room = _ROOM
        while True:
            found = ask(room)
            self.learn(found)
            threads = {self.owners[match.session].thread for match in found}
            if len(found) < room or len(threads) >= sessions or room >= _MOST:
                return found
            room *= 8

    def learn(self, matches: Iterable[Match | CardMatch]) -> None:
        fresh = {match.session for match in matches} - self.owners.keys()
        self.owners |= self.store.search.owners(fresh)

    def grouped(self, matches: Iterable[Match]) -> dict[str, list[Match]]:
        """Return matches in their order by the thread they count for; of a turn, and of the
        copies of a turn, only the first that was ever given."""
        found: dict[str, list[Match]] = {}
        for match in matches:
            thread = self.owners[match.session].thread
            turn = (thread, match.session, match.turn)
            if match.created_at is not None:
                turn = (thread, 0, match.created_at)
            if turn not in self.seen:
                self.seen.add(turn)
                found.setdefault(thread, []).append(match)
        return found

    def is_copied(self, match: Match) -> bool:
        """Return whether a match repeats what stands in another session."""
        return match.last_seq < self.owners[match.session].own_from


def _newest(
    store: Store, query: Query, filters: Filters, sessions: int, deep: list[Match]
) -> list[Candidate]:
    """Return sessions in which a turn has all the words, by the newest such turn."""
    groups = _Sessions(store)
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
    return [Candidate(own[0].score, own) for own in groups.grouped(by_time).values()]


def _best_turns(
    store: Store, query: Query, filters: Filters, turns: int, deep: list[Match]
) -> list[Candidate]:
    """Return turns by their best passages, then those with all the words as typed elsewhere."""
    said = store.search.passages(passage_query(query), filters, turns * _PIECES)
    typed = store.search.match(content(query), filters, turns * _PIECES)
    return _apart([*said, *typed, *deep])


def _newest_turns(
    store: Store, query: Query, filters: Filters, turns: int, deep: list[Match]
) -> list[Candidate]:
    """Return turns that have all the words, newest first."""
    wanted = passage_query(query, every=True)
    said = store.search.passages(wanted, filters, turns * _PIECES, newest=True)
    typed = store.search.match(content(query), filters, turns * _PIECES, newest=True)
    return _apart(sorted([*said, *typed, *deep], key=lambda match: -(match.created_at or 0)))


def _apart(matches: list[Match]) -> list[Candidate]:
    """Return each turn once, where it was found first."""
    turns: dict[tuple[int, int], Candidate] = {}
    for match in matches:
        turns.setdefault((match.session, match.turn), Candidate(match.score, [match]))
    return list(turns.values())


def _best(
    store: Store, query: Query, filters: Filters, sessions: int, deep: list[Match]
) -> list[Candidate]:
    """Return sessions by their best passages and their cards, then those whose turns have all the
    words as typed elsewhere: in thoughts and in what tools printed."""
    groups = _Sessions(store)
    wanted, passages = content(query), passage_query(query)
    said = groups.enough(lambda room: store.search.passages(passages, filters, room), sessions)
    typed = groups.enough(lambda room: store.search.match(wanted, filters, room), sessions)
    said.sort(key=lambda match: (-match.score, groups.is_copied(match)))
    found = {thread: Candidate(_score(own), own) for thread, own in groups.grouped(said).items()}
    lowest = min((candidate.score for candidate in found.values()), default=1.0)
    groups.learn(deep)
    typed.sort(key=lambda match: (-match.score, groups.is_copied(match)))
    for thread, own in groups.grouped([*typed, *deep]).items():
        if thread in found:
            found[thread].matches += own
        else:
            found[thread] = Candidate(lowest * own[0].score / (own[0].score + 1), own)
    best = max(found.values(), key=lambda candidate: candidate.score, default=None)
    covered = best is not None and _coverage(store, best.matches[0], wanted) >= _COVERED
    share = _CARD_SHARE_COVERED if covered else _CARD_SHARE
    _add_cards(groups, query, filters, found, share)
    return sorted(found.values(), key=lambda candidate: -candidate.score)


def _add_cards(
    groups: _Sessions, query: Query, filters: Filters, found: dict[str, Candidate], share: float
) -> None:
    """Add what the cards of sessions are worth to their scores, which become shares of the best;
    and the sessions that only their card has the words of."""
    wanted = content(query)
    words = [word for clause in wanted.clauses for atom in clause for word in atom.words]
    every = passage_query(query).every
    cards = groups.store.search.cards(words, filters, _CARDS, every=every)
    groups.learn(cards)
    top = max((candidate.score for candidate in found.values()), default=1.0) or 1.0
    for candidate in found.values():
        candidate.score /= top
    best = cards[0].score if cards else 1.0
    free = _is_free(wanted)
    seen: set[str] = set()
    for card in cards:
        thread = groups.owners[card.session].thread
        if thread in seen:
            continue
        seen.add(thread)
        if thread not in found and free:
            title = Match(card.session, 0, 0, 1, card.started_at, 0.0)
            found[thread] = Candidate(0.0, [title])
        if thread in found:
            found[thread].score += share * card.score / best


def _coverage(store: Store, match: Match, query: Query) -> float:
    """Return which share of a query's words a piece of a turn has, in what was said in it."""
    finders = word_finders(query, cache(store.search.stem))
    events = store.conversation.events(match.session, match.first_seq, match.last_seq)
    said = "\n".join(event.text for event in events if event.kind in _FIELD_OF)
    return has_words(said, finders) / len(finders) if finders else 1.0


def _is_free(query: Query) -> bool:
    """Return whether any session with the words will do: nothing must be there as typed, and
    nothing must not."""
    if query.without or query.files or query.tools:
        return False
    return all(atom.plain for clause in query.clauses for atom in clause)


def _score(matches: list[Match]) -> float:
    """Return what a session's passages are worth together: the best, and a little of the next."""
    return sum(match.score * share for match, share in zip(matches, _SHARES, strict=False))


_FINDERS: dict[tuple[bool, bool], _Finder] = {
    (False, False): _best,
    (False, True): _newest,
    (True, False): _best_turns,
    (True, True): _newest_turns,
}


# -- where in a session --------------------------------------------------------------------------


class _Resolver:
    """Finds the event in a matching piece of a turn that holds most of the words."""

    def __init__(self, store: Store, query: Query, fields: tuple[str, ...], lines: bool) -> None:
        self.store = store
        self.tools = query.tools
        self.fields = fields or FIELDS
        self.lines = lines
        self.threads = SessionThreads(store)
        self.whole: dict[tuple[int, int], str] = {}  # texts that are not stored whole
        self.finders = word_finders(query, cache(store.search.stem))

    def hit(self, candidate: Candidate) -> Hit | None:
        """Return a session with its best passages; None if no event of it has the words."""
        passages: list[FoundPassage] = []
        numbers = {match.session for match in candidate.matches[: 2 * PASSAGES]}
        owners = self.store.search.owners(numbers)
        mains = {owner.main for owner in owners.values()}
        sessions = self.store.sessions.by_number(sorted(numbers | mains))
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
        wanted = MemoryFilter(numbers=tuple(sessions), current=True)
        found = fitting_notes(self.store.memory.observations(wanted, None), self.finders)
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
        for event in self.store.conversation.events(session.id, match.first_seq, match.last_seq):
            if not self.tools:
                if event.text and _FIELD_OF.get(event.kind, "tools") in self.fields:
                    yield event
            elif event.kind == "tool.call" and _is_tool(event.name, self.tools):
                calls.add((event.data or {}).get("id"))
                yield event
            elif event.kind == "tool.result" and (event.data or {}).get("id") in calls:
                yield event

    def _title(self, session: Session, match: Match) -> FoundPassage | None:
        events = self.store.conversation.events(session.id)
        first = next((event for event in events if event.kind == "user.prompt"), None)
        first = first or next(self.store.conversation.events(session.id), None)
        if first is None:
            return None
        title = session.title or first.text
        named = one_line(title).rstrip("…") not in one_line(first.text)
        found = self._make(session, match, first, title, title=True)
        return msgspec.structs.replace(found, named=named)

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


def _is_tool(name: str | None, tools: tuple[str, ...]) -> bool:
    return any(tool.lower() in (name or "").lower() for tool in tools)

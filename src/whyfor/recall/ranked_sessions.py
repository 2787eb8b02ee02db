"""Which sessions a query asks for, best first.

Three opinions are weighed: how well the passages of a session fit the words, how well its card
does, and, where no passage has nearly all of the words, how near its turns are in meaning. The
first two are shares of the best; so is the third, above the likeness that any two texts have.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache

import msgspec

from whyfor.model.query import Atom, CardMatch, Filters, Match, Query, SessionOwner
from whyfor.model.vectors import TurnLikeness
from whyfor.recall.embeddings.likeness import find_like
from whyfor.recall.query import content, passage_query
from whyfor.recall.snippets import WordFinder, which_words
from whyfor.store.open import OpenStore
from whyfor.store.protocol import SharedStore

_SAID = ("user.prompt", "assistant.message", "assistant.thinking")
_CALL = 400  # characters of a tool call that say what it does
_ROOM = 300  # matches that are asked for first
_MOST = 20_000  # and at most, if they are of too few sessions
_CARDS = 200  # that are looked at
_COVERED = 0.95  # share of the words from which on a passage answers the query
_JUDGED = 3  # passages that are looked at for that
_CARD_SHARE = 0.6  # what the best card counts, where the best passages count 1
_CARD_SHARE_COVERED = 0.3  # if a passage answers the query already
_LIKE_SHARE = 0.8  # what the nearest turn counts
_UNLIKE = 0.2  # likeness of texts that have nothing to do with each other, at most
_UNLIKE_FEW = 0.35  # if one or two words were asked for
_LIKE = 200  # sessions that are looked at
_SHARES = (1.0, 0.3, 0.1)  # how much the best passages of a session count


class Candidate(msgspec.Struct):
    """A session with its subagents and copies, and where it matches, best first."""

    score: float
    matches: list[Match]


class Ranking(msgspec.Struct, frozen=True):
    """Candidates, best first; and why the model could not be asked, if it should have been."""

    candidates: list[Candidate]
    trouble: str = ""


class SessionGroups:
    """Groups matches by session."""

    def __init__(self, store: SharedStore) -> None:
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


def best_sessions(
    store: OpenStore, query: Query, filters: Filters, sessions: int, deep: list[Match]
) -> Ranking:
    """Return sessions by their best passages, their cards and their meaning, then those whose turns
    have all the words as typed elsewhere: in thoughts and in what tools printed."""
    groups = SessionGroups(store)
    found, said = _by_words(groups, query, filters, sessions, deep)
    covered = _coverage(store, said[:_JUDGED], content(query)) >= _COVERED
    _to_shares(found)
    _add_cards(groups, query, filters, found, _CARD_SHARE_COVERED if covered else _CARD_SHARE)
    trouble = ""
    if not covered and _is_free(content(query)) and not filters.fields:
        words = " ".join(atom.text for clause in query.clauses for atom in clause)
        like = find_like(store.settings, store, words, filters)
        trouble = like.trouble
        _add_like(groups, like.turns[:_LIKE], _floor(query), found)
    return Ranking(sorted(found.values(), key=lambda candidate: -candidate.score), trouble)


def _by_words(
    groups: SessionGroups, query: Query, filters: Filters, sessions: int, deep: list[Match]
) -> tuple[dict[str, Candidate], list[Match]]:
    """Return sessions by thread, and all passages, best first."""
    search = groups.store.search
    wanted, passages = content(query), passage_query(query)
    said = groups.enough(lambda room: search.passages(passages, filters, room), sessions)
    typed = groups.enough(lambda room: search.match(wanted, filters, room), sessions)
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
    return found, said


def _to_shares(found: dict[str, Candidate]) -> None:
    """Make scores shares of the best."""
    top = max((candidate.score for candidate in found.values()), default=1.0) or 1.0
    for candidate in found.values():
        candidate.score /= top


def _add_cards(
    groups: SessionGroups,
    query: Query,
    filters: Filters,
    found: dict[str, Candidate],
    share: float,
) -> None:
    """Add what the cards of sessions are worth to their scores; and the sessions that only their
    card has the words of."""
    wanted = content(query)
    words = [word for clause in wanted.clauses for atom in clause for word in atom.words]
    every = passage_query(query).every
    cards = groups.store.search.cards(words, filters, _CARDS, every=every)
    groups.learn(cards)
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


def _add_like(
    groups: SessionGroups,
    turns: Sequence[TurnLikeness],
    floor: float,
    found: dict[str, Candidate],
) -> None:
    """Add what the nearness of turns is worth to the scores, which become shares of the best; and
    the sessions that only their meaning speaks for."""
    near = [turn for turn in turns if turn.likeness > floor]
    if not near:
        return
    _to_shares(found)
    groups.owners |= groups.store.search.owners({turn.session for turn in near})
    best = near[0].likeness - floor
    seen: set[str] = set()
    for turn in near:
        thread = groups.owners[turn.session].thread
        if thread in seen:
            continue
        seen.add(thread)
        match = Match(turn.session, turn.seq, turn.seq, turn.turn, None, 0.0)
        candidate = found.setdefault(thread, Candidate(0.0, []))
        if all(
            turn.turn != each.turn or turn.session != each.session for each in candidate.matches
        ):
            candidate.matches.append(match)
        candidate.score += _LIKE_SHARE * (turn.likeness - floor) / best


def _floor(query: Query) -> float:
    """Return the likeness that says nothing: of few words, which may be a name or a slip of the
    pen, more."""
    return _UNLIKE_FEW if passage_query(query).every else _UNLIKE


def _coverage(store: SharedStore, matches: Sequence[Match], query: Query) -> float:
    """Return which share of a query's words, rare ones counting more, a piece of a turn has in what
    was said in it: that of the best of these."""
    stem = cache(store.search.stem)
    words = dict.fromkeys(
        word for clause in query.clauses for atom in clause for word in atom.words
    )
    if not words:
        return 1.0
    finders = [WordFinder(Atom(word), stem) for word in words]
    weights = list(store.search.rarity(words).values())
    best = 0.0
    for match in matches:
        there = which_words(_said_and_done(store, match), finders)
        best = max(best, sum(w for w, has in zip(weights, there, strict=True) if has))
    return best / sum(weights)


def _said_and_done(store: SharedStore, match: Match) -> str:
    texts: list[str] = []
    for event in store.conversation.events(match.session, match.first_seq, match.last_seq):
        if event.kind in _SAID:
            texts.append(event.text)
        elif event.kind == "tool.call":
            texts.append(event.text[:_CALL])
    return "\n".join(texts)


def _is_free(query: Query) -> bool:
    """Return whether any session with the words will do: nothing must be there as typed, and
    nothing must not."""
    if query.without or query.files or query.tools:
        return False
    return all(atom.plain for clause in query.clauses for atom in clause)


def _score(matches: list[Match]) -> float:
    """Return what a session's passages are worth together: the best, and a little of the next."""
    return sum(match.score * share for match, share in zip(matches, _SHARES, strict=False))

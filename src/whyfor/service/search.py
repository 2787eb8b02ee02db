"""The search page: hits, counts per filter, commits, and filters inside the query."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from datetime import datetime
from itertools import chain
from typing import Any

import msgspec

from whyfor.agents import AGENTS, USUAL
from whyfor.config import Settings
from whyfor.model.checkpoints import LinkedCommit
from whyfor.model.errors import BadInput, NotFound
from whyfor.model.memory import StoredObservation
from whyfor.model.query import FIELDS, Filters, Hit, Query, SessionFilter, SessionOwner, TurnMatch
from whyfor.model.sessions import Person, Project
from whyfor.model.times import parse_iso, parse_when
from whyfor.model.wire.sessions import WireCommitHit, WireMarkedHit, WireNoteHit
from whyfor.recall import query as queries
from whyfor.recall.related import commit_texts, fitting_commits
from whyfor.recall.results import COMMITS, SearchResult, result_page
from whyfor.recall.search import HitRange, field_of, hit_page
from whyfor.recall.snippets import WordFinder, snippet, word_finders
from whyfor.store.open import OpenStore, local_store, reading
from whyfor.story.session_lookup import parse_filters
from whyfor.story.tasks.board import spelled_keys

__all__ = [
    "CommitHit",
    "Hit",
    "HitRange",
    "NoteHit",
    "SearchPage",
    "SearchRequest",
    "search",
    "search_page",
    "search_results",
    "with_team_hits",
]

KINDS = ("prompts", "answers", "tools", "thinking", "commits")
WHEN = {"today": "Today", "7d": "7 days", "30d": "30 days", "": "Any time"}
HIT_SORTS = ("rank", "time")
COUNTED = 1000  # the most parts of turns that are counted; above it only "more than" is shown
LONGEST = 500  # characters of a query
MOST = 32  # words of one
DEEPEST = 1000  # hits one can go through
_BEGINNING = 2  # letters
_NEAR = 400  # words that are looked at for one that was meant
_NAMES = "project|agent|branch|task|person|before|after|since|until"
_GIVEN = re.compile(rf'(?<!\S)({_NAMES}):("[^"]*"|[^\s"]+)')


class SearchRequest(msgspec.Struct, frozen=True):
    """The query text and the selected filters."""

    q: str = ""
    kind: str = ""  # of KINDS; empty is everything
    agents: tuple[str, ...] = ()
    project: str = ""  # its whole identity
    when: str = ""  # of WHEN
    committed: bool = False
    sort: str = "rank"
    after: int = 0
    deep: bool = False  # also in the whole of long tool results
    who: str = ""  # a person's number, on a team


class CommitHit(msgspec.Struct, frozen=True):
    sha: str
    subject: str
    subject_marks: list[tuple[int, int]]
    project: str
    committed_at: int
    evidence: str
    confidence: str
    agents: list[str]
    snippet: str
    marks: list[tuple[int, int]]
    person: str | None = None  # whose story it is, on a team server


class NoteHit(msgspec.Struct, frozen=True):
    """A note with the words, that is not told with a session."""

    key: str
    note_type: str
    state: str
    by: str
    agent: str
    session_id: str  # empty: of no session
    turn: int
    project: str | None
    branch: str | None
    at: int | None
    snippet: str
    marks: list[tuple[int, int]]
    person: str | None = None


SearchHit = Hit | NoteHit | CommitHit
TeamHit = WireMarkedHit | WireNoteHit | WireCommitHit  # as a team's server tells them


class SearchResults(msgspec.Struct, frozen=True):
    """What was found; and why sessions were not looked for by meaning, though they could be."""

    hits: list[SearchHit]
    trouble: str = ""


class FacetCounts(msgspec.Struct, frozen=True):
    """Results per filter value, with all other filters applied; None: too many to count, or
    unknown."""

    results: int | None
    kinds: dict[str, int | None]
    agents: dict[str, int | None]
    whens: dict[str, int | None]


class SearchPage(msgspec.Struct, frozen=True):
    hits: list[SearchHit]
    next: int | None
    counts: FacetCounts | None  # on the first page
    projects: list[Project]  # to choose from
    begun: str = ""  # nothing has the last word, so it was taken for the beginning of one
    meant: str = ""  # nothing was found, but something is near
    partly: bool = False  # no session has all the words in one place: these have most
    trouble: str = ""  # what is wrong with the query
    hint: str = ""
    members: list[Person] = []  # to choose from, on a team


def search_page(settings: Settings, wanted: SearchRequest, *, limit: int) -> SearchPage:
    with reading(settings) as library:
        projects = [project for _, project in library.projects.known()]
        members = library.authors()
        if not wanted.q.strip():
            return SearchPage([], None, None, projects, members=members)
        try:
            words, filters = _understood(library, wanted)
            query = _bounded(queries.parse_query(words))
        except (BadInput, NotFound) as error:
            return SearchPage(
                [], None, None, projects, "", "", False, error.message, error.hint, members
            )
        found = _found(_Search(library, wanted, query, filters, limit), projects)
        return msgspec.structs.replace(found, members=members)


class _Search(msgspec.Struct, frozen=True):
    """One search: where, what was asked for, and what it means."""

    library: OpenStore
    wanted: SearchRequest
    query: Query
    filters: Filters
    limit: int

    def commits(self) -> list[LinkedCommit]:
        return fitting_commits(self.library, self.query, self.filters, COMMITS)

    def page(self, commits: list[LinkedCommit]) -> tuple[list[SearchHit], int | None]:
        """Return the hits of a page, and the place to go on from."""
        wanted = self.wanted
        if wanted.kind == "commits":
            stop = wanted.after + self.limit
            shown = list(_shown(self.library, commits[wanted.after : stop], self.query))
            named = _with_people(self.library, [*shown])
            return named, stop if len(commits) > stop else None
        newest = wanted.sort == "time"
        place = HitRange(self.limit, wanted.after, newest=newest, lines=True, deep=wanted.deep)
        found = result_page(self.library, self.query, self.filters, place)
        following = found.following
        if following is not None and following >= DEEPEST:
            following = None
        hits = _as_hits(self.library, found.results, self.query)
        return _with_people(self.library, hits), following


def _found(search: _Search, projects: list[Project]) -> SearchPage:
    wanted = search.wanted
    begun = ""
    commits = search.commits()
    hits, following = search.page(commits)
    longer = _begun(wanted.q)
    if not hits and not wanted.after and longer:
        words, _ = _understood(search.library, msgspec.structs.replace(wanted, q=longer))
        search = msgspec.structs.replace(search, query=queries.parse_query(words))
        commits = search.commits()
        hits, following = search.page(commits)
        begun = longer if hits else ""
    if wanted.after:
        return SearchPage(hits, following, None, projects, begun)
    counts = _counts(search, len(commits))
    nowhere = counts.kinds.get(wanted.kind) == 0
    counts = _without_contradiction(counts, hits)
    partly = nowhere and any(isinstance(hit, Hit) for hit in hits)
    meant = "" if hits else _meant(search.library, wanted.q)
    return SearchPage(hits, following, counts, projects, begun, meant, partly)


# -- what was typed and chosen -------------------------------------------------------------------


def _understood(library: OpenStore, wanted: SearchRequest) -> tuple[str, Filters]:
    """Return the words, and the filters both chosen and typed; what is no filter after all stays
    a word."""
    _check(wanted)
    where = SessionFilter(
        identity=wanted.project or None, since=wanted.when or None, who=wanted.who or None
    )
    filters = msgspec.structs.replace(
        parse_filters(library, where),
        agents=wanted.agents,
        committed=wanted.committed,
        fields=(wanted.kind,) if wanted.kind in FIELDS else (),
    )
    words = wanted.q
    for typed in _GIVEN.finditer(wanted.q):
        narrowed = _narrowed(library, filters, typed[1], typed[2].strip('"'))
        if narrowed is not None:
            filters, words = narrowed, words.replace(typed[0], " ", 1)
    return words, filters


def _check(wanted: SearchRequest) -> None:
    """Raise BadInput for a choice that there is not."""
    if len(wanted.q) > LONGEST:
        raise BadInput(f"more than {LONGEST} characters", "Fewer words find more.")
    choices = (
        ("kind", wanted.kind, ("", *KINDS)),
        ("sort", wanted.sort, HIT_SORTS),
        ("time", wanted.when, tuple(WHEN)),
    )
    for name, value, known in choices:
        if value not in known:
            hint = f"One of: {', '.join(filter(None, known))}."
            raise BadInput(f"no such {name}: {value[:40]!r}", hint)
    for name in wanted.agents:
        if name not in AGENTS:
            raise BadInput(f"no such agent: {name[:40]!r}", f"Agents: {', '.join(AGENTS)}.")


def _bounded(query: Query) -> Query:
    """Return the query; raise BadInput if it would take seconds, for it is asked with every key."""
    atoms = [*query.without, *chain.from_iterable(query.clauses)]
    if len(atoms) + len(query.files) + len(query.tools) > MOST:
        raise BadInput(f"more than {MOST} words", "Fewer words find more.")
    for atom in atoms:
        if atom.prefix and len(atom.text) < _BEGINNING:
            message = f"too short for a beginning: {atom.text}*"
            raise BadInput(message, "Give two letters at least.")
    return query


def _narrowed(library: OpenStore, filters: Filters, name: str, value: str) -> Filters | None:
    """Return the filters with one more that was typed; None if it is no filter."""
    replace = msgspec.structs.replace
    if name == "agent":
        return replace(filters, agents=(value,)) if value in AGENTS else None
    if name == "branch":
        return replace(filters, branch=value)
    if name == "task":
        keys = spelled_keys(library, value)
        return replace(filters, task=keys[0]) if keys else None
    if name == "person":
        found_person = [one.id for one in library.authors() if value.lower() in one.name.lower()]
        return replace(filters, person=found_person[0]) if len(found_person) == 1 else None
    if name == "project":
        found = _projects_called(library, value.lower())
        return replace(filters, projects=found) if found else None
    try:
        when = parse_when(value, datetime.now().astimezone(), end=name == "until")
    except (BadInput, OverflowError):
        return None
    if name == "before":
        when -= 1
    if name in ("before", "until"):
        return replace(filters, until=when if filters.until is None else min(when, filters.until))
    return replace(filters, since=when if filters.since is None else max(when, filters.since))


def _projects_called(library: OpenStore, part: str) -> tuple[int, ...]:
    """Return the projects of this name or identity; if there is none, those with it in theirs."""
    exact: list[int] = []
    partly: list[int] = []
    for number, project in library.projects.known():
        identity = project.identity.lower()
        if part in (identity, project.name.lower()):
            exact.append(number)
        if part in identity:
            partly.append(number)
    return tuple(exact or partly)


def _begun(typed: str) -> str:
    """Return the same with the last word taken for the beginning of one; empty if it cannot be."""
    last = typed.rstrip().rpartition(" ")[2]
    if len(last) < 3 or not last.isalnum() or len(typed) >= LONGEST:
        return ""
    return typed.rstrip() + "*"


def _meant(library: OpenStore, typed: str) -> str:
    """Return the query with each unknown word replaced by a similar one; empty if there is none."""
    better = []
    for word in typed.split():
        plain = word.lower()
        near = (
            library.search.words_like(plain[:3], _NEAR)
            if plain.isalpha() and len(plain) > 4
            else []
        )
        best = [] if plain in near else difflib.get_close_matches(plain, near, n=1, cutoff=0.75)
        better.append(best[0] if best else word)
    return "" if better == typed.split() else " ".join(better)


# -- hits ----------------------------------------------------------------------------------------


def _as_hits(library: OpenStore, results: Iterable[SearchResult], query: Query) -> list[SearchHit]:
    """Return results with what is shown of them."""
    listed = list(results)
    commits = [each for each in listed if isinstance(each, LinkedCommit)]
    shown = {hit.sha: hit for hit in _shown(library, commits, query)}
    finders = word_finders(queries.content(query), library.search.stem)
    hits: list[SearchHit] = []
    for result in listed:
        if isinstance(result, Hit):
            hits.append(result)
        elif isinstance(result, LinkedCommit):
            hits.append(shown[result.sha])
        else:
            hits.append(_note_hit(result, finders))
    return hits


def _note_hit(stored: StoredObservation, finders: list[WordFinder]) -> NoteHit:
    note = stored.observation
    words = note.narrative or note.title
    text, marks = snippet(words, finders)
    return NoteHit(
        key=note.key,
        note_type=note.type,
        state=note.state,
        by=note.by,
        agent=stored.agent,
        session_id=stored.session_id,
        turn=note.turn,
        project=stored.project,
        branch=stored.branch,
        at=note.at,
        snippet=text,
        marks=marks,
    )


def _shown(library: OpenStore, commits: list[LinkedCommit], query: Query) -> Iterable[CommitHit]:
    agents = library.search.agents_of([commit.sha for commit in commits])
    finders = word_finders(queries.content(query), library.search.stem)
    for commit in commits:
        subject, subject_marks = snippet(commit.subject, finders)
        shown, marks = _best_stretch(commit, finders)
        yield CommitHit(
            sha=commit.sha,
            subject=subject,
            subject_marks=subject_marks,
            project=commit.project,
            committed_at=commit.committed_at,
            evidence=commit.evidence,
            confidence=commit.confidence,
            agents=agents.get(commit.sha, []),
            snippet=shown,
            marks=marks,
        )


def _best_stretch(
    commit: LinkedCommit, finders: list[WordFinder]
) -> tuple[str, list[tuple[int, int]]]:
    """Return the first text of a commit, besides its subject, with words of the query in it, or
    the first of all."""
    first: tuple[str, list[tuple[int, int]]] | None = None
    for text in commit_texts(commit)[1:]:
        if text and text != commit.subject:
            stretch = snippet(text, finders)
            if stretch[1]:
                return stretch
            first = first or stretch
    return first or ("", [])


# -- counts --------------------------------------------------------------------------------------


class _Places:
    """The sessions that a search finds, by filter; most filters are not set, so that most of
    these are the same question."""

    def __init__(self, search: _Search) -> None:
        self.search = search
        self.index = search.library.search
        self.query = queries.content(search.query)
        self.passages = queries.passage_query(search.query, every=True)
        self.known: dict[Filters, list[TurnMatch]] = {}
        self.owners: dict[int, SessionOwner] = {}

    def with_filter(self, **changed: Any) -> list[TurnMatch] | None:
        """Return where the words stand; None if in too many places."""
        which = msgspec.structs.replace(self.search.filters, **changed)
        if which not in self.known:
            found = self.index.places(self.query, self.passages, which, COUNTED + 1)
            self.known[which] = found
            fresh = {place.session for place in found} - self.owners.keys()
            self.owners |= self.index.owners(fresh)
        places = self.known[which]
        return None if len(places) > COUNTED else places

    def sessions(self, places: Iterable[TurnMatch] | None) -> int | None:
        """Return how many sessions these are in, copies and subagents counted with theirs."""
        if places is None:
            return None
        return len({self.owners[place.session].thread for place in places})

    def by_kind(self) -> dict[str, int | None]:
        counts = {"": self.sessions(self.with_filter(fields=()))}
        for kind in FIELDS:  # of what is too much altogether the parts are not worth their time
            unknown = counts[""] is None
            counts[kind] = None if unknown else self.sessions(self.with_filter(fields=(kind,)))
        return counts

    def by_agent(self) -> dict[str, int | None]:
        places = self.with_filter(agents=())
        if places is None:
            return dict.fromkeys(AGENTS)
        counts: dict[str, int | None] = {}
        found = {place.agent for place in places}
        for agent in AGENTS:
            if agent in found or agent in USUAL:
                counts[agent] = self.sessions(place for place in places if place.agent == agent)
        return counts

    def by_when(self) -> dict[str, int | None]:
        places = self.with_filter(since=None)
        counts: dict[str, int | None] = dict.fromkeys(WHEN)
        now = datetime.now().astimezone()
        for when in WHEN if places is not None else ():
            since = parse_when(when, now) if when else None
            inside = (p for p in places or () if since is None or (p.created_at or 0) >= since)
            counts[when] = self.sessions(inside)
        return counts


def _counts(search: _Search, commits: int) -> FacetCounts:
    places = _Places(search)
    kinds = places.by_kind()
    kinds["commits"] = commits if commits < COMMITS else None
    sessions, stories = kinds[""], kinds["commits"]
    kinds[""] = None if sessions is None or stories is None else sessions + stories
    only_commits = search.wanted.kind == "commits"
    return FacetCounts(
        results=stories if only_commits else places.sessions(places.with_filter()),
        kinds=kinds,
        agents=places.by_agent(),
        whens=places.by_when(),
    )


def _without_contradiction(counts: FacetCounts, hits: list[SearchHit]) -> FacetCounts:
    """Return the counts without a 0 for a kind of which results are shown: what is counted has all
    the words in one place, and what is shown may have most of them."""
    shown = {
        field_of(passage.kind) for hit in hits if isinstance(hit, Hit) for passage in hit.passages
    }
    kinds = {
        kind: None if number == 0 and kind in shown else number
        for kind, number in counts.kinds.items()
    }
    return msgspec.structs.replace(counts, kinds=kinds)


def search(settings: Settings, words: str, where: SessionFilter, which: HitRange) -> list[Hit]:
    """Return one hit per session, or per turn; best first, or newest first."""
    query = queries.parse_query(words)
    with reading(settings) as library:
        return hit_page(library, query, parse_filters(library, where), which).hits


def search_results(
    settings: Settings, words: str, where: SessionFilter, which: HitRange
) -> SearchResults:
    """Return sessions as `search` does, and among them notes and commits that have the words."""
    query = queries.parse_query(words)
    with reading(settings) as library:
        found = result_page(library, query, parse_filters(library, where), which)
        hits = _as_hits(library, found.results, query)
        return SearchResults(_with_people(library, hits), found.trouble)


def _with_people(library: OpenStore, hits: list[SearchHit]) -> list[SearchHit]:
    """Return hits with whose they are; on a laptop all are its owner's."""
    if local_store(library) is not None:
        return hits
    sessions = [_session_of(library, hit) for hit in hits]
    people = library.people_of([number for number in sessions if number is not None])
    named: list[SearchHit] = []
    for hit, number in zip(hits, sessions, strict=True):
        person = people.get(number) if number is not None else None
        named.append(msgspec.structs.replace(hit, person=person.name) if person else hit)
    return named


def _session_of(library: OpenStore, hit: SearchHit) -> int | None:
    """Return the session that tells whose a hit is."""
    if isinstance(hit, Hit):
        return hit.session.id
    if isinstance(hit, NoteHit):
        name = (hit.agent, hit.session_id)
    else:
        told = library.checkpoints.of_commits([hit.sha]).get(hit.sha)
        first = told.parts[0] if told and told.parts else None
        name = (first.agent, first.session_id) if first else ("", "")
    return library.sessions.numbers([name]).get(name)


def with_team_hits(
    own: list[SearchHit], shared: list[TeamHit], which: HitRange
) -> list[SearchHit | TeamHit]:
    """Return what was found here and what others shared in one list: newest first, or by turns, for
    the ranks of two places cannot be compared."""
    places = [*enumerate(own), *enumerate(shared)]
    if which.newest:
        places.sort(key=lambda place: -(_time_of(place[1]) or 0))
    else:
        places.sort(key=lambda place: place[0])  # own ones first: the sort is stable
    return [hit for _, hit in places[: which.limit]]


def _time_of(hit: SearchHit | TeamHit) -> int | None:
    if isinstance(hit, Hit):
        return hit.best.created_at or hit.session.started_at
    if isinstance(hit, WireMarkedHit):
        return parse_iso(hit.created_at)
    if isinstance(hit, CommitHit):
        return hit.committed_at
    if isinstance(hit, WireCommitHit):
        return parse_iso(hit.committed_at)
    return parse_iso(hit.at) if isinstance(hit, WireNoteHit) else hit.at

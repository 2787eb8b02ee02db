"""Finding: a page of search with all that stands around the hits: counts, commits, what was
typed as a filter."""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Iterable
from datetime import datetime
from typing import Any

import msgspec

from whyfor.agents import AGENTS
from whyfor.config import Settings
from whyfor.model.errors import BadInput, NotFound
from whyfor.model.query import FIELDS, Filters, Hit, Query
from whyfor.model.sessions import Project
from whyfor.model.times import parse_when
from whyfor.recall import query as queries
from whyfor.recall.search import held, marked, page
from whyfor.service.sessions import SessionFilter, understand
from whyfor.store.open import OpenStore, reading
from whyfor.store.sqlite.search_facets import Facets, LinkedCommit, TurnMatch

__all__ = ["CommitHit", "Hit", "SearchPage", "SearchRequest", "find"]

NAMES = tuple(AGENTS)
KINDS = ("prompts", "answers", "tools", "thinking", "commits")
WHEN = {"today": "Today", "7d": "7 days", "30d": "30 days", "": "Any time"}
SORTS = ("rank", "time")
COUNTED = 1000  # pieces of turns that are counted; of more nothing is said but "more than"
LONGEST = 500  # characters of a query
MOST = 32  # words of one
DEEPEST = 1000  # hits one can go through
_BEGINNING = 2  # letters
_COMMITS = 300
_AMONG = 3  # commits among the first hits
_NEAR = 400  # words that are looked at for one that was meant
_GIVEN = re.compile(r'(?<!\S)(project|agent|branch|before|after|since|until):("[^"]*"|[^\s"]+)')
_WORD = re.compile(r"[a-z0-9]{2,}")


class SearchRequest(msgspec.Struct, frozen=True):
    """What a person typed and chose."""

    q: str = ""
    kind: str = ""  # of KINDS; empty is everything
    agents: tuple[str, ...] = ()
    project: str = ""  # its whole identity
    when: str = ""  # of WHEN
    committed: bool = False
    sort: str = "rank"
    after: int = 0


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


class FacetCounts(msgspec.Struct, frozen=True):
    """Turns by filter, each with all other filters kept; none: too many to count, or not known."""

    turns: int | None
    sessions: int | None
    kinds: dict[str, int | None]
    agents: dict[str, int | None]
    whens: dict[str, int | None]


class SearchPage(msgspec.Struct, frozen=True):
    hits: list[Hit | CommitHit]
    next: int | None
    counts: FacetCounts | None  # on the first page
    projects: list[Project]  # to choose from
    begun: str = ""  # nothing has the last word, so it was taken for the beginning of one
    meant: str = ""  # nothing was found, but something is near
    partly: bool = False  # no turn has all the words: these have most
    trouble: str = ""  # what is wrong with the query
    hint: str = ""


def find(settings: Settings, wanted: SearchRequest, *, limit: int) -> SearchPage:
    with reading(settings) as library:
        projects = [project for _, project in library.reader.projects()]
        if not wanted.q.strip():
            return SearchPage([], None, None, projects)
        try:
            words, filters = _understood(library, wanted)
            query = _bounded(queries.parse(words))
        except (BadInput, NotFound) as error:
            return SearchPage([], None, None, projects, trouble=error.message, hint=error.hint)
        return _found(library, wanted, query, filters, projects, limit)


def _found(
    library: OpenStore,
    wanted: SearchRequest,
    query: Query,
    filters: Filters,
    projects: list[Project],
    limit: int,
) -> SearchPage:
    begun = ""
    commits = _commits(library, query, filters)
    hits, following = _page(library, wanted, query, filters, commits, limit)
    if not hits and not wanted.after and (longer := _begun(wanted.q)):
        query = queries.parse(_understood(library, msgspec.structs.replace(wanted, q=longer))[0])
        commits = _commits(library, query, filters)
        hits, following = _page(library, wanted, query, filters, commits, limit)
        begun = longer if hits else ""
    if wanted.after:
        return SearchPage(hits, following, None, projects, begun)
    counts = _counts(library, wanted, query, filters, len(commits))
    partly = counts.kinds.get(wanted.kind) == 0 and any(isinstance(hit, Hit) for hit in hits)
    return SearchPage(
        hits, following, counts, projects, begun, "" if hits else _meant(library, wanted.q), partly
    )


# -- what was typed and chosen -------------------------------------------------------------------


def _understood(library: OpenStore, wanted: SearchRequest) -> tuple[str, Filters]:
    """The words, and the filters both chosen and typed; what is no filter after all stays a
    word."""
    if len(wanted.q) > LONGEST:
        raise BadInput(f"more than {LONGEST} characters", "Fewer words find more.")
    for name, value, known in (("kind", wanted.kind, ("", *KINDS)), ("sort", wanted.sort, SORTS)):
        if value not in known:
            raise BadInput(
                f"no such {name}: {value[:40]!r}", f"One of: {', '.join(filter(None, known))}."
            )
    if wanted.when not in WHEN:
        raise BadInput(
            f"no such time: {wanted.when[:40]!r}", f"One of: {', '.join(filter(None, WHEN))}."
        )
    if unknown := [name for name in wanted.agents if name not in AGENTS]:
        raise BadInput(f"no such agent: {unknown[0][:40]!r}", f"Agents: {', '.join(AGENTS)}.")
    where = SessionFilter(identity=wanted.project or None, since=wanted.when or None)
    filters = msgspec.structs.replace(
        understand(library.reader, where),
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


def _bounded(query: Query) -> Query:
    """What is asked with every key must not take seconds."""
    atoms = [*query.without, *(atom for clause in query.clauses for atom in clause)]
    if len(atoms) + len(query.files) + len(query.tools) > MOST:
        raise BadInput(f"more than {MOST} words", "Fewer words find more.")
    if short := [atom.text for atom in atoms if atom.prefix and len(atom.text) < _BEGINNING]:
        raise BadInput(f"too short for a beginning: {short[0]}*", "Give two letters at least.")
    return query


def _narrowed(library: OpenStore, filters: Filters, name: str, value: str) -> Filters | None:
    replace = msgspec.structs.replace
    if name == "agent":
        return replace(filters, agents=(value,)) if value in AGENTS else None
    if name == "branch":
        return replace(filters, branch=value)
    if name == "project":
        part = value.lower()
        known = library.reader.projects()
        found = [
            number for number, one in known if part in (one.identity.lower(), one.name.lower())
        ]
        found = found or [number for number, one in known if part in one.identity.lower()]
        return replace(filters, projects=tuple(found)) if found else None
    try:
        when = parse_when(value, datetime.now().astimezone(), end=name == "until")
    except (BadInput, OverflowError):
        return None
    if name in ("before", "until"):
        when -= name == "before"
        return replace(filters, until=when if filters.until is None else min(when, filters.until))
    return replace(filters, since=when if filters.since is None else max(when, filters.since))


def _begun(typed: str) -> str:
    """The same with the last word taken for the beginning of one; empty if it cannot be."""
    last = typed.rstrip().rpartition(" ")[2]
    return (
        typed.rstrip() + "*" if len(last) >= 3 and last.isalnum() and len(typed) < LONGEST else ""
    )


def _meant(library: OpenStore, typed: str) -> str:
    """The same with each unknown word replaced by one that is written alike; empty if there is
    none."""
    known = Facets(library.db)
    better = []
    for word in typed.split():
        plain = word.lower()
        near = known.words_like(plain[:3], _NEAR) if plain.isalpha() and len(plain) > 4 else []
        best = [] if plain in near else difflib.get_close_matches(plain, near, n=1, cutoff=0.75)
        better.append(best[0] if best else word)
    return "" if better == typed.split() else " ".join(better)


# -- hits ----------------------------------------------------------------------------------------


def _page(
    library: OpenStore,
    wanted: SearchRequest,
    query: Query,
    filters: Filters,
    commits: list[LinkedCommit],
    limit: int,
) -> tuple[list[Hit | CommitHit], int | None]:
    newest = wanted.sort == "time"
    if wanted.kind == "commits":
        stop = wanted.after + limit
        return [*_shown(library, commits[wanted.after : stop], query)], stop if len(
            commits
        ) > stop else None
    hits: list[Hit | CommitHit] = []
    turns, following = page(
        library.reader, query, filters, limit=limit, after=wanted.after, newest=newest, lines=True
    )
    hits += turns
    if not wanted.kind and not wanted.after:
        among = [*_shown(library, commits[:_AMONG], query)]
        hits = _by_time(hits, among) if newest else [*hits[:1], *among, *hits[1:]]
    return hits, following if following is not None and following < DEEPEST else None


def _by_time(hits: list[Hit | CommitHit], commits: list[CommitHit]) -> list[Hit | CommitHit]:
    return sorted(
        [*hits, *commits],
        key=lambda hit: (
            -((hit.committed_at if isinstance(hit, CommitHit) else hit.created_at) or 0)
        ),
    )


def _commits(library: OpenStore, query: Query, filters: Filters) -> list[LinkedCommit]:
    """With a story, and all the words in what is known of them."""
    if query.tools or query.files or not query.clauses:
        return []
    plain = [clause[0].text.lower() for clause in query.clauses if len(clause) == 1]
    words = [
        max(found, key=len) for text in plain if text.isascii() and (found := _WORD.findall(text))
    ]
    rows = Facets(library.db).commits(words, filters, _COMMITS)
    return [commit for commit in rows if held("\n".join(_told(commit)), query)]


def _told(commit: LinkedCommit) -> list[str]:
    note = commit.note
    return [
        commit.subject,
        *([note.intent, note.title, *note.alternatives, note.summary] if note else []),
    ]


def _shown(library: OpenStore, commits: list[LinkedCommit], query: Query) -> Iterable[CommitHit]:
    agents = Facets(library.db).agents_of([commit.sha for commit in commits])
    for commit in commits:
        subject, subject_marks = marked(commit.subject, query)
        stretches = [
            marked(text, query) for text in _told(commit)[1:] if text and text != commit.subject
        ]
        snippet, marks = next(
            (found for found in stretches if found[1]), stretches[0] if stretches else ("", [])
        )
        yield CommitHit(
            sha=commit.sha,
            subject=subject,
            subject_marks=subject_marks,
            project=commit.project,
            committed_at=commit.committed_at,
            evidence=commit.evidence,
            confidence=commit.confidence,
            agents=agents.get(commit.sha, []),
            snippet=snippet,
            marks=marks,
        )


# -- counts --------------------------------------------------------------------------------------


def _counts(
    library: OpenStore, wanted: SearchRequest, query: Query, filters: Filters, commits: int
) -> FacetCounts:
    replace = msgspec.structs.replace
    facets = Facets(library.db)
    known: dict[Filters, list[TurnMatch]] = {}

    def places(**changed: Any) -> list[TurnMatch]:
        """Most filters are not set, so that most of these are the same question."""
        which = replace(filters, **changed)
        if which not in known:
            known[which] = facets.places(query, which, COUNTED + 1)
        return known[which]

    kinds: dict[str, int | None] = {"": _turns(places(fields=()))}
    for kind in FIELDS:  # of what is too much altogether the parts are not worth their time
        kinds[kind] = _turns(places(fields=(kind,))) if kinds[""] is not None else None
    told = kinds["commits"] = commits if commits < _COMMITS else None
    said = kinds[""]
    kinds[""] = said + told if said is not None and told is not None else None
    here = places()
    return FacetCounts(
        turns=kinds["commits"] if wanted.kind == "commits" else _turns(here),
        sessions=len({place.session for place in here}) if len(here) <= COUNTED else None,
        kinds=kinds,
        agents=_by_agent(places(agents=())),
        whens=_by_when(places(since=None)),
    )


def _turns(places: list[TurnMatch]) -> int | None:
    return (
        len({(place.session, place.turn) for place in places}) if len(places) <= COUNTED else None
    )


def _by_agent(places: list[TurnMatch]) -> dict[str, int | None]:
    if len(places) > COUNTED:
        return dict.fromkeys(AGENTS)
    turns = Counter(
        agent for _, _, agent in {(place.session, place.turn, place.agent) for place in places}
    )
    return {agent: turns[agent] for agent in AGENTS}


def _by_when(places: list[TurnMatch]) -> dict[str, int | None]:
    now = datetime.now().astimezone()
    counts: dict[str, int | None] = {}
    for when in WHEN:
        since = parse_when(when, now) if when else 0
        inside = [place for place in places if not since or (place.created_at or 0) >= since]
        counts[when] = _turns(inside) if len(places) <= COUNTED else None
    return counts

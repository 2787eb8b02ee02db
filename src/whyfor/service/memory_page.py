"""Notes as pages show them: a project's list page by page, and one note with the words it
quotes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, get_args

import msgspec

from whyfor.config import Settings
from whyfor.model.cursor import open_cursor, seal_cursor
from whyfor.model.errors import BadInput, WhyforError
from whyfor.model.listing import ListFilter
from whyfor.model.memory import (
    MemoryFilter,
    NoteCounts,
    NotePlace,
    NoteStatement,
    ObservationType,
    ProjectNotes,
    Quote,
    SessionSummary,
    StoredObservation,
    ToldSession,
)
from whyfor.model.query import Filters, SessionFilter
from whyfor.model.sessions import Person, Session
from whyfor.recall.note_standing import judge_notes, supersede_notes
from whyfor.store.open import OpenStore, local_store, reading
from whyfor.store.protocol import SharedStore
from whyfor.story.injections import note_listeners
from whyfor.story.repositories import repository_of
from whyfor.story.session_lookup import parse_filters, session_named

PAGE = 50
_BRANCHES = 40
_WORDS = 8  # of a text that is looked for
_COMMIT_NOTES = 8
_SHARED_PATHS = 20  # files of a commit whose notes are looked for
_SESSION_NOTES = 50
_SPEAKERS = {"user.prompt": "person", "assistant.message": "agent", "assistant.thinking": "agent"}
_CURRENT = ("verified", "stated", "hypothesis")
NOTE_TYPES: tuple[str, ...] = get_args(ObservationType)
_JUDGED_STATES = (*_CURRENT, "stale", "superseded")  # those that git or later notes decide
_JUDGED_MAX = 2_000  # newest notes of a project that are judged; of older ones it stays unknown
NOTE_STATES = (*_CURRENT, "stale", "superseded", "refuted", "pinned")
_At = Annotated[int, msgspec.Meta(ge=-1, le=1 << 62)]
_Key = Annotated[str, msgspec.Meta(max_length=200)]


class MemoryRequest(msgspec.Struct, frozen=True):
    """Which notes are asked for, as in the page's address."""

    project: str = ""  # identity
    q: str = ""
    type: str = ""
    state: str = ""  # of NOTE_STATES
    file: str = ""
    branch: str = ""
    agent: str = ""
    since: str = ""
    after: str = ""
    who: str = ""  # a person's number, on a team

    @property
    def filters(self) -> dict[str, str]:
        """The filters that are set, in the order in which one would drop them."""
        names = ("q", "state", "type", "file", "branch", "agent", "who", "since")
        return {name: getattr(self, name) for name in names if getattr(self, name)}


class NoteDrop(msgspec.Struct, frozen=True):
    """A filter without which something would be found."""

    name: str
    value: str
    notes: int


class NoteList(msgspec.Struct, frozen=True):
    """A page of notes, newest first."""

    rows: list[StoredObservation]
    fits: int  # how many fit the filters
    totals: NoteCounts  # of the project
    next: str | None  # cursor of the page after
    replacements: dict[str, str]  # by key: the titles of notes that took another's place
    branches: list[str]
    drops: list[NoteDrop]
    members: list[Person] = []  # who has sessions here; of a team


class QuotedWords(msgspec.Struct, frozen=True):
    """What somebody said, with the place in the session."""

    text: str
    seq: int
    turn: int
    at: int | None
    by: str  # person, agent or tool


class NoteView(msgspec.Struct, frozen=True):
    """A note with everything that can be said of it."""

    note: StoredObservation
    session: Session | None  # None if a person wrote it outside of one
    quotes: list[QuotedWords]
    said: list[NoteStatement]  # about it, by people and agents
    replaced: StoredObservation | None  # whose place it took
    replacement: StoredObservation | None  # that took its place
    told: list[ToldSession]  # the sessions that were told it, newest first


def note_list(settings: Settings, asked: MemoryRequest, limit: int = PAGE) -> NoteList:
    """Return a page of notes; raises BadInput for a filter that makes no sense, NotFound for a
    project that is not known."""
    with reading(settings) as store:
        judge = _Judge(store)
        wanted = _filter(store, asked)
        found, fits = _found(store, judge, asked, limit + 1)
        rows = with_people(store, found[:limit])
        taken = {row.superseded_by for row in rows if row.superseded_by}
        return NoteList(
            rows=rows,
            fits=fits,
            totals=_totals(store, judge, asked.project),
            next=seal_cursor(_place(rows[-1])) if len(found) > limit else None,
            replacements={key: _title(store, key) for key in sorted(taken)},
            branches=store.listing.branches(
                ListFilter(projects=wanted.sessions.projects), _BRANCHES
            ),
            drops=[] if fits else _drops(store, judge, asked),
            members=store.authors(),
        )


def with_people(store: OpenStore, rows: list[StoredObservation]) -> list[StoredObservation]:
    """Return notes with whose sessions they were made in; on a laptop all are its owner's."""
    if local_store(store) is not None:
        return rows
    numbers = store.sessions.numbers([(row.agent, row.session_id) for row in rows])
    people = store.people_of(numbers.values())
    named = []
    for row in rows:
        number = numbers.get((row.agent, row.session_id))
        person = people.get(number) if number is not None else None
        named.append(msgspec.structs.replace(row, person=person.name) if person else row)
    return named


def _found(
    store: SharedStore, judge: _Judge, asked: MemoryRequest, limit: int
) -> tuple[list[StoredObservation], int]:
    """Return the notes of a page, judged, and how many fit."""
    place = NotePlace(*open_cursor(asked.after, tuple[_At, _Key])) if asked.after else None
    wanted = _filter(store, asked)
    if asked.state not in _JUDGED_STATES:
        rows = store.memory.note_page(wanted, limit, place)
        return judge.judged(rows), store.memory.count(wanted).notes
    among = judge.judged(store.memory.note_page(wanted, _JUDGED_MAX, None))
    fitting = [row for row in among if row.shown_state == asked.state]
    after = [row for row in fitting if place is None or _comes_after(row, place)]
    return after[:limit], len(fitting)


def _totals(store: SharedStore, judge: _Judge, project: str) -> NoteCounts:
    """Count a project's notes; those that git or later notes speak against are not current."""
    wanted = _filter(store, MemoryRequest(project=project))
    counted = store.memory.count(wanted)
    if not project or counted.notes > _JUDGED_MAX:
        return counted
    judged = judge.judged(store.memory.note_page(wanted, _JUDGED_MAX, None))
    current = sum(1 for row in judged if row.shown_state in _CURRENT)
    return NoteCounts(counted.notes, counted.sessions, current)


class _Judge:
    """Says of notes whether they still hold; each project is looked at once."""

    def __init__(self, store: SharedStore) -> None:
        self.store = store
        self.known: dict[str, StoredObservation] = {}
        self.projects: set[str] = set()

    def judged(self, rows: list[StoredObservation]) -> list[StoredObservation]:
        for row in rows:
            if row.project and row.project not in self.projects:
                self.projects.add(row.project)
                self._read(row.project)
        return [self.known.get(row.observation.key, row) for row in rows]

    def _read(self, identity: str) -> None:
        project = self.store.projects.find(identity)
        if project is None:
            return
        wanted = MemoryFilter(Filters(projects=(project[0],)))
        notes = supersede_notes(self.store.memory.observations(wanted, _JUDGED_MAX))
        if repository := repository_of(self.store, project[0]):
            notes = judge_notes(notes, repository.folder, repository.folders)
        self.known.update({note.observation.key: note for note in notes})


def note_projects(settings: Settings) -> list[ProjectNotes]:
    """Return the projects that something is remembered of, the newest first."""
    with reading(settings) as store:
        return store.memory.projects()


def note_view(settings: Settings, key: str) -> NoteView:
    """Return the note whose id begins so; raises NotFound or Ambiguous."""
    with reading(settings) as store:
        judged = _Judge(store).judged([store.memory.observation(key)])
        (found,) = with_people(store, judged)
        note = found.observation
        name = (found.agent, found.session_id)
        number = store.sessions.numbers([name]).get(name)
        session = store.sessions.by_number([number])[number] if number is not None else None
        return NoteView(
            note=found,
            session=session,
            quotes=_quoted(store, number, note.evidence) if number is not None else [],
            said=store.memory.said(note.key),
            replaced=_maybe(store, note.replaces),
            replacement=_maybe(store, found.superseded_by),
            told=note_listeners(store, note.key),
        )


def session_notes(settings: Settings, agent: str, session_id: str) -> list[StoredObservation]:
    """Return the notes that a session and its subagents led to; NotFound if there is no such
    session."""
    with reading(settings) as store:
        session = session_named(store, agent, session_id)
        children = store.sessions.children([session.session_id])
        numbers = (session.id, *(child.id for child in children if child.agent == agent))
        notes = store.memory.note_page(MemoryFilter(numbers=numbers), _SESSION_NOTES, None)
        return _Judge(store).judged(notes)


def summary_words(settings: Settings, agent: str, session_id: str) -> dict[str, list[QuotedWords]]:
    """Return the parts of a session's summary that have words: request, learned, completed and
    next_steps; NotFound if there is no such session."""
    with reading(settings) as store:
        session = session_named(store, agent, session_id)
        summary = store.memory.summary(session.id) or SessionSummary()
        parts = {
            "request": summary.request,
            "learned": summary.learned,
            "completed": summary.completed,
            "next_steps": summary.next_steps,
        }
        found = {name: _quoted(store, session.id, quotes) for name, quotes in parts.items()}
        return {name: words for name, words in found.items() if words}


def notes_about_files(
    settings: Settings, project: str, paths: Iterable[str]
) -> list[StoredObservation]:
    """Return the newest notes that hold about files of a project, named from its top."""
    with reading(settings) as store:
        known = store.projects.find(project)
        if known is not None and local_store(store) is None:
            return _shared_notes(store, known[0], list(paths))
        repository = repository_of(store, known[0]) if known else None
        if known is None or repository is None:
            return []
        folders = ["", *(f"{folder.rstrip('/')}/" for folder in repository.folders)]
        everywhere = tuple(f"{folder}{path}" for path in paths for folder in folders)
        wanted = MemoryFilter(Filters(projects=(known[0],)), states=_CURRENT, paths=everywhere)
        found = _Judge(store).judged(store.memory.note_page(wanted, _JUDGED_MAX, None))
        held = [row for row in found if not row.superseded_by and not row.standing.gone]
        return held[:_COMMIT_NOTES]


def _shared_notes(store: OpenStore, project: int, paths: list[str]) -> list[StoredObservation]:
    """The same on a team server, which does not know where files were on laptops: whatever ends
    with such a path is meant."""
    judge = _Judge(store)
    found: dict[str, StoredObservation] = {}
    for path in paths[:_SHARED_PATHS]:
        wanted = MemoryFilter(Filters(projects=(project,)), states=_CURRENT, file=path)
        for row in judge.judged(store.memory.note_page(wanted, _COMMIT_NOTES, None)):
            found[row.observation.key] = row
    held = [row for row in found.values() if not row.superseded_by]
    held.sort(key=lambda row: -(row.observation.at or 0))
    return with_people(store, held[:_COMMIT_NOTES])


# -- filters -------------------------------------------------------------------------------------


def _filter(store: SharedStore, asked: MemoryRequest) -> MemoryFilter:
    for what, name, known in (
        ("state", asked.state, NOTE_STATES),
        ("type", asked.type, NOTE_TYPES),
    ):
        if name and name not in known:
            raise BadInput(f"no such {what}: {name[:40]!r}", f"One of: {', '.join(known)}.")
    sessions = SessionFilter(
        identity=asked.project or None,
        agent=asked.agent or None,
        since=asked.since or None,
        branch=asked.branch or None,
        who=asked.who or None,
    )
    known_so = asked.state in (*_CURRENT, "refuted")
    return MemoryFilter(
        sessions=parse_filters(store, sessions),
        types=(asked.type,) if asked.type else (),
        states=(asked.state,) if known_so else (),
        file=asked.file or None,
        pinned=asked.state == "pinned",
        words=tuple(asked.q.split()[:_WORDS]),
    )


def _drops(store: SharedStore, judge: _Judge, asked: MemoryRequest) -> list[NoteDrop]:
    """Which filter to drop, and what that would find; most first."""
    found = []
    for name, value in asked.filters.items():
        fewer = msgspec.structs.replace(asked, **{name: "", "after": ""})
        _, notes = _found(store, judge, fewer, 1)
        if notes:
            found.append(NoteDrop(name, value, notes))
    return sorted(found, key=lambda choice: -choice.notes)


def _place(row: StoredObservation) -> NotePlace:
    at = row.observation.at
    return NotePlace(-1 if at is None else at, row.observation.key)


def _comes_after(row: StoredObservation, place: NotePlace) -> bool:
    own = _place(row)
    return own.at < place.at or (own.at == place.at and own.key > place.key)


# -- one note ------------------------------------------------------------------------------------


def _title(store: SharedStore, key: str) -> str:
    found = _maybe(store, key)
    return found.observation.title if found else ""


def _maybe(store: SharedStore, key: str | None) -> StoredObservation | None:
    try:
        return store.memory.observation(key) if key else None
    except WhyforError:
        return None


def _quoted(store: SharedStore, session: int, quotes: Iterable[Quote]) -> list[QuotedWords]:
    quotes = list(quotes)
    events = {
        event.seq: event
        for event in store.conversation.events_at(session, [quote.seq for quote in quotes], 0)
    }
    found = []
    for quote in quotes:
        event = events.get(quote.seq)
        if event is not None:
            by = _SPEAKERS.get(event.kind, "tool")
            found.append(QuotedWords(quote.text, quote.seq, event.turn, event.created_at, by))
    return found

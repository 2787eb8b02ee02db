"""memory: what is remembered of past sessions."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from secrets import token_hex
from typing import TypeVar, cast, get_args

import msgspec

from whyfor.capture.spool import named_sessions
from whyfor.config import Settings
from whyfor.git.place import GitPlace, name_place
from whyfor.git.run import ask
from whyfor.model.errors import Ambiguous, BadInput, NotFound
from whyfor.model.memory import (
    AskedSession,
    MemoryBlock,
    MemoryFilter,
    ModelRound,
    NoteStatement,
    ObservationState,
    ObservationType,
    SessionSummary,
    StatementAction,
    StoredObservation,
    ToldSession,
)
from whyfor.model.paths import to_text
from whyfor.model.query import SessionFilter
from whyfor.model.sessions import SessionName
from whyfor.model.times import wall_clock
from whyfor.privacy.private import text_spans, without
from whyfor.privacy.redacted_text import redacted
from whyfor.recall.block import TOKENS as TOKENS
from whyfor.recall.block import build_block
from whyfor.recall.cues import type_of
from whyfor.recall.material import collect
from whyfor.recall.model_round import MODEL_LIMIT as MODEL_LIMIT
from whyfor.recall.model_round import ask_about_ended, waiting_questions
from whyfor.recall.note_standing import judge_everywhere, supersede_notes
from whyfor.recall.note_statements import erase_note, know_project, record_note
from whyfor.recall.quoted_output import without_quoted_output
from whyfor.service.statements import author
from whyfor.store.open import reading
from whyfor.store.protocol import SharedStore
from whyfor.story.commit_lookup import checkout_root, require_checkout
from whyfor.story.injections import note_listeners
from whyfor.story.repositories import Repository, repository_at
from whyfor.story.session_lookup import parse_filters

TYPES: tuple[str, ...] = get_args(ObservationType)
STATES: tuple[str, ...] = get_args(ObservationState)
NOTE_MAX = 2_000  # characters of a note that somebody writes
_LOOKED_AT = 4  # times as many notes as are shown: some do not hold any more
T = TypeVar("T")


class MemoryQuery(msgspec.Struct, frozen=True):
    """Which notes a person asks for."""

    sessions: SessionFilter = SessionFilter()
    types: tuple[str, ...] = ()
    states: tuple[str, ...] = ()
    file: str | None = None


class NoteListing(msgspec.Struct, frozen=True):
    """Notes with how they stand now, newest first."""

    rows: list[StoredObservation]
    hidden: int  # of those looked at: that do not hold any more


class NoteDetail(msgspec.Struct, frozen=True):
    """A note with the summary of the session it comes from, and how it read before."""

    note: StoredObservation
    summary: SessionSummary | None
    said: tuple[NoteStatement, ...] = ()  # by people and agents, in order
    told: tuple[ToldSession, ...] = ()  # the sessions that were told it, newest first


class NotesFound(msgspec.Struct, frozen=True):
    """The notes of several ids, in their order, and those ids that fit none or several."""

    notes: list[NoteDetail]
    missing: list[str]


class NewNote(msgspec.Struct, frozen=True, kw_only=True):
    """A note that a person or an agent writes."""

    text: str
    type: str | None = None  # None: as its words tell
    files: tuple[str, ...] = ()
    replaces: str | None = None  # the id of the note it takes the place of
    by: str = "person"  # or: agent
    project: str | None = None  # identity; None: the repository the command runs in
    branch: str | None = None  # None: the one that is checked out there
    session: SessionName | None = None  # that it is written in


def notes(settings: Settings, wanted: MemoryQuery, limit: int) -> list[StoredObservation]:
    """Return at most `limit` notes, newest first; 0 means all. Raises BadInput for a type or a
    state that does not exist."""
    _require(wanted.types, TYPES, "type")
    _require(wanted.states, STATES, "state")
    with reading(settings) as store:
        filters = MemoryFilter(
            parse_filters(store, wanted.sessions), wanted.types, wanted.states, wanted.file
        )
        return store.memory.observations(filters, limit or None)


def standing_notes(
    settings: Settings, cwd: Path, wanted: MemoryQuery, limit: int, *, every: bool = False
) -> NoteListing:
    """Return at most `limit` notes with how they stand now, newest first; with `every` also those
    that do not hold any more. An agent gets them without secrets. 0 means all."""
    _require(wanted.states, STATES, "state")
    asked = msgspec.structs.replace(wanted, states=())  # any of them can replace another
    found = supersede_notes(notes(settings, asked, limit * _LOOKED_AT))
    with reading(settings) as store:
        judged = judge_everywhere(store, found, _here(store, cwd))
    if wanted.states:
        judged = [note for note in judged if note.observation.state in wanted.states]
    rows = [note for note in judged if every or not note.standing.gone]
    hidden = len(judged) - len(rows)
    return NoteListing(_shown(settings, rows[:limit] if limit else rows), hidden)


def _here(store: SharedStore, cwd: Path) -> Repository | None:
    folder = checkout_root(name_place(cwd))
    return repository_at(store, folder) if folder else None


def _shown(settings: Settings, content: T) -> T:
    """Return notes as they are shown here: to an agent without secrets."""
    if who_writes(settings)[0] == "person":
        return content
    return redacted(settings, content, rendered=False)[0]


def shown_detail(settings: Settings, cwd: Path, key: str) -> NoteDetail:
    """Return the note whose id begins so, with how it stands now; to an agent without secrets."""
    with reading(settings) as store:
        found = _detail(store, key)
        judged = judge_everywhere(store, [found.note], _here(store, cwd))
    return _shown(settings, msgspec.structs.replace(found, note=judged[0]))


def note_detail(settings: Settings, key: str) -> NoteDetail:
    """Return the note whose id begins so; raises NotFound or Ambiguous."""
    with reading(settings) as store:
        return _detail(store, key)


def get_notes(settings: Settings, keys: Iterable[str]) -> NotesFound:
    """Return the notes whose ids begin so."""
    found = NotesFound([], [])
    with reading(settings) as store:
        for key in keys:
            try:
                found.notes.append(_detail(store, key))
            except (NotFound, Ambiguous):
                found.missing.append(key)
    return found


def _detail(store: SharedStore, key: str) -> NoteDetail:
    found = store.memory.observation(key)
    name = (found.agent, found.session_id)
    number = store.sessions.numbers([name]).get(name)
    summary = None if number is None else store.memory.summary(number)
    key = found.observation.key
    said = tuple(store.memory.said(key))
    return NoteDetail(found, summary, said, tuple(note_listeners(store, key)))


def short_note_ids(settings: Settings, keys: Iterable[str]) -> dict[str, str]:
    """Map ids of notes to what people can type for each of them."""
    with reading(settings) as store:
        return store.memory.short_keys(keys)


# -- what people and agents write ----------------------------------------------------------------


def who_writes(settings: Settings) -> tuple[str, SessionName | None]:
    """Return who runs this, person or agent, and in which session, if that is known."""
    session = next(iter(named_sessions(settings.env)), None)
    if session is None and author(settings) == "person":
        return "person", None
    return "agent", session


def add_note(settings: Settings, cwd: Path, new: NewNote) -> StoredObservation:
    """Write a note down and return it. Raises BadInput for an empty or too long text or an unknown
    type, NotFound or Ambiguous for `replaces`."""
    text = _public_text(new.text)
    kind = new.type or type_of(text)
    _require((kind,), TYPES, "type")
    replaced = note_detail(settings, new.replaces).note if new.replaces else None
    if replaced and new.by == "agent" and _is_persons(replaced):
        raise BadInput(
            f"a person wrote or pinned {new.replaces}",
            "Write a note without replaces, and tell the user that the two disagree.",
        )
    folder = None if new.project else require_checkout(name_place(cwd), "Go to one.")
    agent, session_id = new.session or ("", "")
    files = tuple(_below(path, cwd, folder) for path in new.files)
    statement = NoteStatement(
        key=token_hex(8),
        at=wall_clock(),
        by=new.by,
        action="write",
        text=text,
        type=cast(ObservationType, kind),
        files=files,
        commit=(folder and _last_change(folder, files)) or None,
        replaces=replaced.observation.key if replaced else None,
        project=new.project or (folder and know_project(settings, folder)) or None,
        branch=new.branch or (folder and _branch(folder)) or None,
        agent=agent,
        session_id=session_id,
    )
    record_note(settings, statement)
    return note_detail(settings, statement.key).note


def pin(settings: Settings, key: str, by: str = "person") -> StoredObservation:
    """Pin a note: it is told first, and stays whatever comes later."""
    return _say(settings, key, "pin", by)


def unpin(settings: Settings, key: str, by: str = "person") -> StoredObservation:
    """Undo `pin`."""
    return _say(settings, key, "unpin", by)


def mark_wrong(settings: Settings, key: str, by: str = "person") -> StoredObservation:
    """Mark a note as refuted: it is not told any more."""
    return _say(settings, key, "wrong", by)


def edit_note(settings: Settings, key: str, text: str, by: str = "person") -> StoredObservation:
    """Replace a note's words; the former ones stay as its history until the note is forgotten."""
    return _say(settings, key, "write", by, _public_text(text))


def forget_note(settings: Settings, key: str, by: str = "person") -> StoredObservation:
    """Delete a note for good and return it as it was. What a person or an agent wrote goes to the
    last byte; a derived note does not come back, but its session stays as it is. An agent may
    delete only what agents wrote and nobody pinned; else raises BadInput."""
    note = note_detail(settings, key).note
    if by == "agent" and (note.observation.by != "agent" or _is_persons(note)):
        raise BadInput(
            "an agent may forget only notes that agents wrote",
            f"Ask the user to run: whyfor memory forget {key} (or: memory wrong {key})",
        )
    erase_note(settings, _statement(note, "forget", by, ""))
    return note


def _is_persons(note: StoredObservation) -> bool:
    """Whether a person wrote a note, or holds on to it."""
    return note.observation.by == "person" or note.observation.pinned


def _say(
    settings: Settings, key: str, action: StatementAction, by: str, text: str = ""
) -> StoredObservation:
    note = note_detail(settings, key).note
    record_note(settings, _statement(note, action, by, text))
    return note_detail(settings, note.observation.key).note


def _statement(
    stored: StoredObservation, action: StatementAction, by: str, text: str
) -> NoteStatement:
    note = stored.observation
    said = NoteStatement(
        key=note.key,
        at=wall_clock(),
        by=by,
        action=action,
        agent=stored.agent,
        session_id=stored.session_id,
    )
    if action != "write":
        return said
    return msgspec.structs.replace(
        said,
        text=text,
        type=note.type,
        files=tuple(dict.fromkeys((*note.files_written, *note.files_read))),
        replaces=note.replaces,
        project=stored.project,
        branch=stored.branch,
        turn=note.turn,
    )


def _public_text(text: str) -> str:
    """Return a note's text without what stands between private tags."""
    raw = text.encode("utf-8", "surrogatepass")
    public = without(raw, text_spans(raw)).decode("utf-8", "replace").strip()
    if not public:
        raise BadInput("the note says nothing", 'Say e.g.: whyfor memory add "Use pnpm, not npm"')
    if len(public) > NOTE_MAX:
        raise BadInput(f"the note has {len(public):,} characters", f"Keep it below {NOTE_MAX:,}.")
    return public


def _below(path: str, cwd: Path, folder: GitPlace | None) -> str:
    """Return a path below the top of the repository, where it is below it."""
    if not isinstance(folder, Path):
        return path
    whole = cwd.resolve() / path
    return to_text(whole.relative_to(folder)) if whole.is_relative_to(folder) else path


def _last_change(folder: GitPlace, files: tuple[str, ...]) -> str | None:
    """Return the last commit that changed one of these files."""
    return ask(folder, "rev-list", "-1", "HEAD", "--", *files) if files else None


def _branch(folder: GitPlace) -> str | None:
    return ask(folder, "symbolic-ref", "--quiet", "--short", "HEAD")


# -- what a model notes --------------------------------------------------------------------------


def ask_model_about_ended(
    settings: Settings,
    since: str | None = None,
    limit: int = MODEL_LIMIT,
    told: Callable[[AskedSession], None] | None = None,
) -> ModelRound:
    """Ask the model of [memory.model] about sessions that ended in the last day, or since then.
    Raises BadInput if no model is set."""
    return ask_about_ended(settings, _since(settings, since), limit, told)


def model_questions(
    settings: Settings, since: str | None = None, limit: int = MODEL_LIMIT
) -> list[str]:
    """Return what the model would be sent, without asking it."""
    found = waiting_questions(settings, _since(settings, since), limit)
    return [f"{each.rules}\n\n{each.text}" for each in found]


def _since(settings: Settings, since: str | None) -> int | None:
    with reading(settings) as store:
        return parse_filters(store, SessionFilter(since=since)).since


# -- what the next session is told ---------------------------------------------------------------


def preview(settings: Settings, cwd: Path, tokens: int | None = None) -> MemoryBlock:
    """Return what the next session in this repository would be told, without secrets; `tokens`:
    how long it may be, else as the settings say."""
    folder = require_checkout(name_place(cwd))
    with reading(settings) as store:
        repository = repository_at(store, folder)
        if repository is None:
            raise NotFound(
                f"no session is known in {folder}", "Read what your agents wrote: whyfor ingest"
            )
        material = collect(store, repository, _branch(folder))
        clean, _ = redacted(settings, material, rendered=False)
        block = build_block(clean, tokens or settings.memory.tokens)
        return without_quoted_output(store, clean, block)


def _require(given: tuple[str, ...], known: tuple[str, ...], what: str) -> None:
    for name in given:
        if name not in known:
            raise BadInput(f"no such {what}: {name}", f"There are: {', '.join(known)}.")

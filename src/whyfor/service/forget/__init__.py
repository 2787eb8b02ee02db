"""forget: sessions, the conversation behind a commit, a text, or all that is older; and what is
kept for how long."""

from __future__ import annotations

import time
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path

import apsw
import msgspec

from whyfor.capture import spool
from whyfor.capture.compare import require_agreement
from whyfor.capture.filters.forgotten import TextPattern
from whyfor.capture.ingest import wall_clock
from whyfor.capture.recover import recover
from whyfor.config import Settings
from whyfor.locks import ingest_lock
from whyfor.model.errors import BadInput, NotFound
from whyfor.model.paths import to_path, to_text
from whyfor.model.progress import Announce
from whyfor.model.times import DAY, parse_when
from whyfor.service.forget.apply import apply_plan, numbers
from whyfor.service.forget.plan import ForgetPlan, ForgetRequest, Name, named_messages
from whyfor.service.ingest import LOCK_WAIT, catch_up, writable
from whyfor.service.log import is_commit, required
from whyfor.service.sessions import find_session
from whyfor.store.blobs import FolderBlobs
from whyfor.store.open import OpenStore, journal, reading
from whyfor.store.sqlite import forget as stones
from whyfor.store.sqlite.checkpoints import Checkpoints
from whyfor.store.sqlite.connection import connect, explained, fetch
from whyfor.store.sqlite.read import StoreRows
from whyfor.store.sqlite.write import EventWriter

RETAINED = "retained"  # when it was last looked what is too old
_SHORTEST = 3  # characters: a text that stands everywhere would take everything with it
_BEGINNING = 60  # characters by which a prompt is known where it is only quoted
_SAYS_SOMETHING = 12


class ForgetArguments(msgspec.Struct, frozen=True):
    """What a person typed: one of these."""

    reference: str | None = None  # a session or a commit
    match: str | None = None
    before: str | None = None
    new_salt: bool = False  # with match


class ForgottenSession(msgspec.Struct, frozen=True):
    agent: str
    session_id: str
    title: str | None
    subagent: bool


class ForgetReport(msgspec.Struct):
    """What goes, or went."""

    sessions: list[ForgottenSession]
    records: int
    bytes: int  # of what the agents and hooks wrote
    notes: int
    commits: list[str]  # that lose their story, or a part of it
    copies: list[str]  # other sessions that hold the same, agent:id
    files: list[str]  # the agents' own, which are not touched
    elsewhere: list[str]  # names that hold the text and stay
    dry_run: bool
    finished: bool = True  # no reader was in the way; else the next ingest removes the last bytes
    seconds: float = 0.0


def forget(
    settings: Settings,
    cwd: Path,
    asked: ForgetArguments,
    *,
    dry_run: bool = False,
    announce: Announce | None = None,
) -> ForgetReport:
    """Forget it; or, in a dry run, say what would go and write nothing."""
    begun = time.monotonic()
    if dry_run:
        with reading(settings) as library:
            wish = _understood(library, cwd, asked)
            draft = _drafted(settings, library.db, wish, write=False, announce=announce)
            report = _report(library.db, draft, dry_run=True)
    else:
        with reading(settings) as library:
            # says so if there is nothing to forget, before anybody waits for a lock
            _understood(library, cwd, asked)
        with writable(settings), ingest_lock(settings.home, LOCK_WAIT):
            recover(settings)
            catch_up(settings)
            db = connect(settings.database)
            try:
                with explained(settings.database):
                    wish = _understood(OpenStore(settings, db), cwd, asked)
                    report = _carried_out(settings, db, wish, announce)
            finally:
                db.close()
    report.seconds = round(time.monotonic() - begun, 3)
    return report


def _carried_out(
    settings: Settings, db: apsw.Connection, wish: ForgetRequest, announce: Announce | None = None
) -> ForgetReport:
    require_agreement(db, journal(settings), FolderBlobs(settings.segments))
    draft = _drafted(settings, db, wish, write=True, announce=announce)
    report = _report(db, draft, dry_run=False)
    # a text may stand where no record does
    if report.records or report.commits or wish.sessions or wish.needle:
        report.finished = apply_plan(settings, db, journal(settings), draft)
    return report


def _drafted(
    settings: Settings,
    db: apsw.Connection,
    wish: ForgetRequest,
    *,
    write: bool,
    announce: Announce | None = None,
) -> ForgetPlan:
    known = stones.load_tombstones(db, settings.home)
    if wish.new_salt and not known.lost:
        raise BadInput("the salt is not lost", "Forget without --new-salt.")
    if write and not wish.new_salt:
        stones.require_salt(known)
    anew = write and known.lost
    known.salt = stones.salt(settings.home, make=write, anew=anew) or b"nothing is kept of it"
    blobs = FolderBlobs(settings.segments)
    titles = {key for (key,) in fetch(db, "SELECT key FROM leaf_titles")}
    wish.titles, wish.leaves = (
        bool(titles),
        _named(blobs, db, wish.sessions) & titles if titles else set(),
    )
    draft = ForgetPlan(wish, blobs, EventWriter(db), known, write=write)
    record = journal(settings)
    draft.read(record, announce(record.bytes()) if announce else None)
    rows = fetch(db, "SELECT path, position FROM sources WHERE agent=?", (spool.HOOK,))
    draft.look_in_spool(settings.home, dict(rows))
    for name in ("config.toml", "hook/installed.json"):
        file = settings.home / name
        if wish.needle is not None and file.exists() and wish.needle.stands_in(file.read_bytes()):
            draft.elsewhere.add(to_text(file))
    return draft


def _named(blobs: FolderBlobs, db: apsw.Connection, names: Iterable[Name]) -> set[int]:
    """Messages of these sessions, as a legacy title would name them."""
    sql = (
        "SELECT DISTINCT g.digest FROM segments g JOIN sources o ON o.id=g.source_id "
        "WHERE o.agent=? AND o.session_id=? AND o.framing='lines'"
    )
    found: set[int] = set()
    for name in names:
        for (digest,) in fetch(db, sql, name):
            found |= named_messages(blobs, name[0], digest)
    return found


# -- what is meant -------------------------------------------------------------------------------


def _understood(library: OpenStore, cwd: Path, asked: ForgetArguments) -> ForgetRequest:
    if asked.match is not None:
        if len(asked.match.strip()) < _SHORTEST:
            raise BadInput(
                "too short: it would stand in almost every record", "Give more of the text."
            )
        return ForgetRequest(needle=TextPattern(asked.match), new_salt=asked.new_salt)
    if asked.before is not None:
        when = parse_when(asked.before, datetime.now().astimezone())
        return ForgetRequest(sessions=_with_children(library.db, _older(library.db, when)))
    assert asked.reference is not None
    if is_commit(library.settings, asked.reference, cwd):
        return _behind(library, required(library, asked.reference, cwd))
    session = find_session(library, asked.reference)
    own = fetch(
        library.db,
        "SELECT 1 FROM sources WHERE agent=? AND session_id=? AND sidecar IS NULL",
        (session.agent, session.session_id),
    )
    if not own and session.parent_session_id:
        raise BadInput(
            f"{session.session_id} has no transcript of its own: another session tells what it did",
            f"Forget that one: whyfor forget {session.parent_session_id}",
        )
    return ForgetRequest(sessions=_with_children(library.db, {(session.agent, session.session_id)}))


def _older(db: apsw.Connection, when: int, *, subagents: bool = False) -> set[Name]:
    """Sessions that ended before; or subagents, those that have a transcript of their own."""
    own = (
        "EXISTS(SELECT 1 FROM sources o WHERE o.agent=s.agent AND o.session_id=s.session_id AND "
        "o.sidecar IS NULL)"
    )
    which = f"parent IS NOT NULL AND {own}" if subagents else "parent IS NULL"
    sql = (
        "SELECT agent, session_id FROM sessions s WHERE coalesce(ended_at, started_at) < ? AND "
        f"{which}"
    )
    return {(agent, ident) for agent, ident in fetch(db, sql, (when,))}


def _with_children(db: apsw.Connection, names: Iterable[Name]) -> set[Name]:
    """Sessions, and the subagents that worked for them."""
    found = set(names)
    todo = list(found)
    while todo:
        agent, ident = todo.pop()
        rows = fetch(
            db,
            "SELECT session_id FROM sessions WHERE agent=?1 AND parent=?2 UNION "
            "SELECT session_id FROM sources WHERE agent=?1 AND parent=?2",
            (agent, ident),
        )
        fresh = {(agent, child) for (child,) in rows} - found
        found |= fresh
        todo += fresh
    return found


def _behind(library: OpenStore, sha: str) -> ForgetRequest:
    """The conversation behind a commit, and behind what it was before it was rewritten, or is
    now."""
    db, store = library.db, Checkpoints(library.db)
    commits = _same_change(db, sha)
    kept = store.of_commits(commits)
    if not any(checkpoint.parts for checkpoint in kept.values()) and not store.said(commits):
        raise NotFound(f"commit {sha[:10]} has no story", f"See: whyfor show {sha[:10]}")
    wish = ForgetRequest(commits=commits, sessions=set(), events={}, words={})
    for part in {part for checkpoint in kept.values() for part in checkpoint.parts}:
        name = (part.agent, part.session_id)
        number = numbers(db, [name])[name]
        keys = {
            key for key, seq in library.reader.keys(number, part.last).items() if seq >= part.first
        }
        wish.events.setdefault(name, set()).update(keys)
        events = list(library.reader.events(number, part.first, part.last))
        asked = [
            e.text.strip()[:_BEGINNING]
            for e in events
            if e.kind in ("user.prompt", "assistant.message")
        ]
        wish.words.setdefault(name, []).extend(
            TextPattern(text) for text in asked if len(text) >= _SAYS_SOMETHING
        )
        times = [event.created_at for event in events if event.created_at is not None]
        if times:
            began = fetch(
                db,
                "SELECT session_id FROM sessions WHERE agent=? AND parent=? AND started_at "
                "BETWEEN ? AND ?",
                (*name, min(times), max(times)),
            )
            wish.sessions |= _with_children(db, {(part.agent, child) for (child,) in began})
    return wish


def _same_change(db: apsw.Connection, sha: str) -> set[str]:
    found = {sha}
    pairs = fetch(db, "SELECT sha, superseded_by FROM checkpoints WHERE superseded_by IS NOT NULL")
    more = True
    while more:
        before = len(found)
        found |= {side for pair in pairs if found & set(pair) for side in pair}
        more = len(found) > before
    return found


# -- what goes -----------------------------------------------------------------------------------


def _report(db: apsw.Connection, draft: ForgetPlan, *, dry_run: bool) -> ForgetReport:
    wish = draft.wish
    gone = numbers(db, wish.sessions)
    sessions = StoreRows(db).by_number(list(gone.values()))
    touched = [
        track for track in draft.tracks if (track.touched and track.session_id) or track.gone
    ]
    count = "SELECT coalesce(sum(records), 0) FROM sources WHERE agent=? AND session_id=?"
    records = sum(row[0] for name in wish.sessions for row in fetch(db, count, name))
    stories = Checkpoints(db).of_sessions(gone.values())
    files = {track.path.split("#")[0] for track in touched}
    return ForgetReport(
        sessions=[
            ForgottenSession(s.agent, s.session_id, s.title, s.parent_session_id is not None)
            for s in sorted(
                sessions.values(),
                key=lambda s: (s.parent_session_id is not None, s.started_at or 0, s.id),
            )
        ],
        records=records + draft.records,
        bytes=draft.bytes,
        notes=draft.notes,
        commits=sorted({*stories, *wish.commits, *(draft.commits if wish.needle else ())}),
        copies=_copies(db, gone),
        files=sorted(path for path in files if to_path(path).exists()),
        elsewhere=sorted(draft.elsewhere),
        dry_run=dry_run,
    )


def _copies(db: apsw.Connection, gone: dict[Name, int]) -> list[str]:
    """Forks, resumed and restored copies: other sessions with the same responses, or that say
    where they come from."""
    _, sharing = stones.sharing(db, gone.values())
    found = {f"{s.agent}:{s.session_id}" for s in StoreRows(db).by_number(sharing).values()}
    for _, ident in gone:
        rows = fetch(db, "SELECT agent, session_id FROM sessions WHERE forked_from=?", (ident,))
        found |= {f"{agent}:{other}" for agent, other in rows if (agent, other) not in gone}
    return sorted(found)


# -- how long things are kept --------------------------------------------------------------------


def retain(settings: Settings, db: apsw.Connection) -> ForgetReport | None:
    """What [retention] says is too old, at most once a day. Under the ingest lock."""
    limits = settings.retention.limits
    now = wall_clock()
    store = Checkpoints(db)
    if not limits or now - store.mark(RETAINED) < DAY:
        return None
    wish = ForgetRequest(sessions=set())
    for kind, days in limits.items():
        when = now - days * DAY
        if kind == "signals":
            old = fetch(db, "SELECT 1 FROM signals WHERE at < ? LIMIT 1", (when,))
            wish.signals_before = when if old else None
        else:
            wish.sessions |= _older(db, when, subagents=kind == "subagents")
    wish.sessions = _with_children(db, wish.sessions)
    report = _carried_out(settings, db, wish) if wish.sessions or wish.signals_before else None
    store.set_mark(RETAINED, now)
    return report

"""forget: sessions, the conversation behind a commit, a text, or all that is older; and what is
kept for how long."""

from __future__ import annotations

import time
from contextlib import closing
from datetime import datetime
from pathlib import Path

import msgspec

from whyfor.capture import spool
from whyfor.capture.compare import require_agreement
from whyfor.capture.faults import writable
from whyfor.capture.filters.forgotten import TextPattern
from whyfor.capture.recover import recover
from whyfor.capture.shell_edits import prune_snapshots
from whyfor.config import Settings
from whyfor.locks import LOCK_WAIT, ingest_lock
from whyfor.model.checkpoints import Part
from whyfor.model.errors import BadInput, NotFound
from whyfor.model.paths import to_path, to_text
from whyfor.model.progress import Announce
from whyfor.model.sessions import SessionName
from whyfor.model.times import DAY, parse_when, wall_clock
from whyfor.recall.block_files import publish_blocks
from whyfor.recall.remember import remember_waiting
from whyfor.service.forget.apply import apply_plan
from whyfor.service.forget.plan import ForgetPlan, ForgetPlanner
from whyfor.service.forget.records import ForgetRequest, RecordFinder, named_messages
from whyfor.store.blobs import FolderBlobs
from whyfor.store.open import LocalStore, journal, reading_local
from whyfor.store.protocol import ForgetStore, Store
from whyfor.store.tombstones import Tombstones, make_salt, require_salt
from whyfor.story.commit_lookup import is_commit, require_commit
from whyfor.story.session_lookup import find_session
from whyfor.story.tasks.scan import scan_tasks

RETAINED = "retained"  # when it was last looked what is too old
_SHORTEST = 3  # characters: a shorter text would match almost everything
_BEGINNING = 60  # characters by which a prompt is recognised where it is quoted
_SAYS_SOMETHING = 12


class ForgetArguments(msgspec.Struct, frozen=True):
    """What a person typed: one of these."""

    reference: str | None = None  # a session or a commit
    match: str | None = None
    before: str | None = None
    new_salt: bool = False  # with match
    sessions: tuple[str, ...] = ()  # several of them
    gone_already: bool = False  # leave out those of `sessions` that are not there any more


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
    everywhere: bool = False,
    announce: Announce | None = None,
) -> ForgetReport:
    """Forget it; or, in a dry run, say what would go and write nothing. `everywhere`: also what the
    team has of it, and nobody can share it again."""
    begun = time.monotonic()
    with reading_local(settings) as library:
        # says so if there is nothing to forget, before anybody waits for a lock
        request = _understand(library, cwd, asked)
        if dry_run:
            plan = _make_plan(settings, library, request, write=False, announce=announce)
            report = _report(library, plan)
    if not dry_run:
        with writable(settings), ingest_lock(settings.home, LOCK_WAIT):
            recover(settings)
            with closing(LocalStore(settings, readonly=False)) as library:
                request = _understand(library, cwd, asked)
                report = carry_out(settings, library, request, announce)
        if settings.shares_anything:
            _drop_copies(settings)
        if everywhere:
            _forget_everywhere(settings, asked, report)
    report.dry_run = dry_run
    report.seconds = round(time.monotonic() - begun, 3)
    return report


def _drop_copies(settings: Settings) -> None:
    from whyfor.sync.forget import drop_copies  # most people share nothing

    drop_copies(settings)


def _forget_everywhere(settings: Settings, asked: ForgetArguments, report: ForgetReport) -> None:
    """Have servers delete what was deleted here."""
    from whyfor.sync.forget import forget_everywhere, send_again  # most people share nothing

    sessions = [f"{gone.agent}:{gone.session_id}" for gone in report.sessions]
    commits = report.commits if asked.reference and not sessions else []
    forget_everywhere(settings, sessions, commits)
    if asked.match is not None:
        send_again(settings)


def carry_out(
    settings: Settings,
    store: Store,
    request: ForgetRequest,
    announce: Announce | None = None,
) -> ForgetReport:
    """Forget what is asked for, under the ingest lock, in a store that recover() has seen."""
    require_agreement(store, journal(settings), FolderBlobs(settings.segments))
    plan = _make_plan(settings, store, request, write=True, announce=announce)
    report = _report(store, plan)
    # a text may stand where no record does
    if report.records or report.commits or request.sessions or request.pattern:
        report.finished = apply_plan(settings, store, plan)
        prune_snapshots(settings.home, everything=True)
        remember_waiting(store)
        scan_tasks(store, settings.tasks.keys)
        publish_blocks(settings, store)
    return report


def _make_plan(
    settings: Settings,
    store: Store,
    request: ForgetRequest,
    *,
    write: bool,
    announce: Announce | None = None,
) -> ForgetPlan:
    facet = store.forget
    blobs = FolderBlobs(settings.segments)
    finder = RecordFinder(request, _salted(settings, facet, request, write=write))
    titles = facet.titles().keys()
    if titles:
        finder.has_titles = True
        for name in request.sessions:
            for digest in facet.line_digests(name):
                finder.leaves |= named_messages(blobs, name[0], digest) & titles
    planner = ForgetPlanner(finder, blobs, store.capture.writer(), write=write)
    record = journal(settings)
    planner.read_journal(record, announce(record.bytes()) if announce else None)
    planner.read_spool(settings.home, facet.source_positions(spool.HOOK))
    for own in ("config.toml", "hook/installed.json"):
        file = settings.home / own
        if file.exists() and request.holds_text(file.read_bytes()):
            planner.plan.elsewhere.add(to_text(file))
    return planner.plan


def _salted(
    settings: Settings, facet: ForgetStore, request: ForgetRequest, *, write: bool
) -> Tombstones:
    """Return the tombstones there are, with a salt to make digests with."""
    known = facet.tombstones(settings.home)
    if request.new_salt and not known.lost:
        raise BadInput("the salt is not lost", "Forget without --new-salt.")
    if not write:
        known.salt = known.salt or b"nothing is kept of it"
        return known
    if not request.new_salt:
        require_salt(known)
    if known.lost or not known.salt:
        known.salt = make_salt(settings.home)
    return known


# -- arguments -----------------------------------------------------------------------------------


def _understand(library: LocalStore, cwd: Path, asked: ForgetArguments) -> ForgetRequest:
    facet = library.forget
    if asked.match is not None:
        if len(asked.match.strip()) < _SHORTEST:
            raise BadInput(
                "too short: it would stand in almost every record", "Give more of the text."
            )
        return ForgetRequest(pattern=TextPattern(asked.match), new_salt=asked.new_salt)
    if asked.before is not None:
        when = parse_when(asked.before, datetime.now().astimezone())
        return ForgetRequest(sessions=facet.descendants(facet.sessions_before(when)))
    if asked.sessions:
        return ForgetRequest(sessions=facet.descendants(_named_sessions(library, asked)))
    assert asked.reference is not None
    if is_commit(library.settings, asked.reference, cwd):
        return _behind_commit(library, require_commit(library, asked.reference, cwd))
    return ForgetRequest(sessions=facet.descendants([_whole_session(library, asked.reference)]))


def _named_sessions(library: LocalStore, asked: ForgetArguments) -> list[SessionName]:
    """Return the sessions named one by one; NotFound for one that is not there, unless such are
    to be left out."""
    names = []
    for reference in asked.sessions:
        try:
            names.append(_whole_session(library, reference))
        except NotFound:
            if not asked.gone_already:
                raise
    return names


def _whole_session(library: LocalStore, reference: str) -> SessionName:
    """Return the session that is meant; BadInput if it is only told of by another."""
    session = find_session(library, reference)
    name = (session.agent, session.session_id)
    if session.parent_session_id and not library.forget.has_transcript(name):
        raise BadInput(
            f"{session.session_id} has no transcript of its own: another session tells what it did",
            f"Forget that one: whyfor forget {session.parent_session_id}",
        )
    return name


def _behind_commit(library: LocalStore, sha: str) -> ForgetRequest:
    """The conversation behind a commit, and behind what it was before it was rewritten, or is
    now."""
    commits = library.forget.rewrites(sha)
    kept = library.checkpoints.of_commits(commits).values()
    parts = {part for checkpoint in kept for part in checkpoint.parts}
    if not parts and not library.checkpoints.said(commits):
        raise NotFound(f"commit {sha[:10]} has no story", f"See: whyfor show {sha[:10]}")
    request = ForgetRequest(commits=commits)
    for part in parts:
        for first, last in part.ranges:
            _add_range(library, request, part, first, last)
    return request


def _add_range(
    library: LocalStore, request: ForgetRequest, part: Part, first: int, last: int
) -> None:
    """Add the events of a range, what they said, and the subagents that began in it."""
    facet = library.forget
    name = (part.agent, part.session_id)
    number = library.sessions.numbers([name])[name]
    keys = library.conversation.keys(number, last)
    request.events.setdefault(name, set()).update(key for key, seq in keys.items() if seq >= first)
    events = list(library.conversation.events(number, first, last))
    said = [e for e in events if e.kind in ("user.prompt", "assistant.message")]
    texts = [event.text.strip()[:_BEGINNING] for event in said]
    patterns = [TextPattern(text) for text in texts if len(text) >= _SAYS_SOMETHING]
    request.words.setdefault(name, []).extend(patterns)
    times = [event.created_at for event in events if event.created_at is not None]
    if times:
        begun = facet.children_begun(name, min(times), max(times))
        request.sessions |= facet.descendants(begun)


# -- what goes -----------------------------------------------------------------------------------


def _report(store: Store, plan: ForgetPlan) -> ForgetReport:
    facet = store.forget
    request = plan.request
    gone = store.sessions.numbers(request.sessions)
    sessions = sorted(
        store.sessions.by_number(list(gone.values())).values(),
        key=lambda s: (s.parent_session_id is not None, s.started_at or 0, s.id),
    )
    own = [source for source in plan.sources if source.session_id]
    files = {source.path.split("#")[0] for source in own if source.touched or source.gone}
    records = plan.found.records + plan.signals_gone
    records += sum(map(facet.record_count, request.sessions))
    commits = {*store.checkpoints.of_sessions(gone.values()), *request.commits}
    if request.pattern is not None:
        commits |= plan.commits
    return ForgetReport(
        sessions=[
            ForgottenSession(s.agent, s.session_id, s.title, s.parent_session_id is not None)
            for s in sessions
        ],
        records=sum(map(facet.record_count, request.sessions))
        + plan.found.records
        + plan.signals_gone,
        bytes=plan.bytes,
        notes=plan.notes,
        commits=sorted(commits),
        copies=_copies(store, gone),
        files=sorted(path for path in files if to_path(path).exists()),
        elsewhere=sorted(plan.elsewhere),
        dry_run=False,
    )


def _copies(store: Store, gone: dict[SessionName, int]) -> list[str]:
    """Forks, resumed and restored copies: other sessions with the same responses, or that say
    where they come from."""
    facet = store.forget
    _, sharing = facet.shared_usage(gone.values())
    sessions = store.sessions.by_number(sharing).values()
    found = {(session.agent, session.session_id) for session in sessions}
    for _, ident in gone:
        found |= facet.forks(ident)
    return sorted(f"{agent}:{ident}" for agent, ident in found - gone.keys())


# -- retention -----------------------------------------------------------------------------------


def retain(settings: Settings, store: Store) -> ForgetReport | None:
    """Forget what [retention] says is too old, at most once a day, under the ingest lock; None if
    there is nothing to do."""
    limits = settings.retention.limits
    now = wall_clock()
    if not limits or now - store.mark(RETAINED) < DAY:
        return None
    facet = store.forget
    request = ForgetRequest()
    for kind, days in limits.items():
        when = now - days * DAY
        if kind == "signals":
            request.signals_before = when if facet.has_signal_before(when) else None
        elif kind == "subagents":
            request.sessions |= facet.subagents_before(when)
        else:
            request.sessions |= facet.sessions_before(when)
    request.sessions = facet.descendants(request.sessions)
    report = None
    if request.sessions or request.signals_before:
        report = carry_out(settings, store, request)
    store.set_mark(RETAINED, now)
    return report

"""One pass over the outbox: what was pushed meanwhile is found, packed and sent.

One process at a time does it, under a lock of its own. Nothing is lost if it dies: an item is
marked as sent after the server said so, and a server that is told the same thing twice changes
nothing.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable
from contextlib import closing, suppress

import msgspec
from msgspec.structs import replace

from whyfor.agents import RECORDED
from whyfor.capture.exclusions import excluded
from whyfor.config import Settings
from whyfor.git.run import ask
from whyfor.locks import hold_lock, ingest_lock
from whyfor.model.checkpoints import Checkpoint
from whyfor.model.errors import Busy, NotFound, NotRedacted, WhyforError
from whyfor.model.sessions import Session
from whyfor.model.sync import (
    COMMIT,
    FORGET,
    HELD,
    LOCAL,
    REFUSED,
    RETRACT,
    SENT,
    SESSION,
    WAITS,
    OutboxItem,
    Remote,
    Retraction,
    SentSource,
    SharedNote,
    SyncTry,
)
from whyfor.store.journal import NoteEntry
from whyfor.store.open import LocalStore, open_store, reading_local
from whyfor.store.protocol import OutboxStore
from whyfor.story.repositories import repository_of
from whyfor.sync.cache import follow_shared_changes
from whyfor.sync.client import USUAL as USUAL_PATIENCE
from whyfor.sync.client import (
    NeedsLogin,
    Patience,
    RemoteDown,
    RemoteFault,
    RemoteRejected,
    RemoteWithdrawn,
    TeamClient,
)
from whyfor.sync.git_remote import GitSender, StoryAuthor, is_git_address, story_repository
from whyfor.sync.package import SourcePackage, StoryPackage, StoryPacker
from whyfor.sync.pushes import find_pushed
from whyfor.sync.remotes import RemoteFile, load_key, load_remotes
from whyfor.sync.selection import SessionSelection, select_session
from whyfor.sync.sender import StorySender
from whyfor.sync.written_lines import with_written_lines, without_parts

AnySender = StorySender | GitSender
FIRST_WAIT = 300  # seconds until an item is tried again
LONGEST_WAIT = 6 * 3600
_DAY = 86_400_000
_WRITE_WAIT = 60.0  # seconds for others who write to the database
_IN_A_ROW = 2  # items that a server may fail at until it counts as down
_LOOK_BACK = 30 * 60_000  # ms in which a push to an address is asked about


class RemoteReport(msgspec.Struct):
    """What came of a pass for one project."""

    project: str
    url: str
    sent: int = 0
    refused: int = 0
    waiting: int = 0
    unconfirmed: int = 0  # that would leave if a person agreed
    error: str | None = None
    hint: str = ""


class SyncReport(msgspec.Struct):
    remotes: list[RemoteReport]
    busy: bool = False  # another process is at it

    @property
    def sent(self) -> int:
        return sum(each.sent for each in self.remotes)


class Clock(msgspec.Struct, frozen=True):
    """Time, as the worker sees it; tests have another."""

    now: Callable[[], int] = lambda: int(time.time() * 1000)
    sleep: Callable[[float], object] = time.sleep
    patience: Patience = USUAL_PATIENCE


SYSTEM_CLOCK = Clock()


def run_sync(
    settings: Settings, why: str, clock: Clock = SYSTEM_CLOCK, *, wait: float = 0.0
) -> SyncReport:
    """Send everything that waits and is due, to every remote that a person agreed to. Another
    process that does so is waited for at most `wait` seconds."""
    decided = load_remotes(settings)
    if not decided.remotes:
        return SyncReport([])
    try:
        lock = hold_lock(settings.home / "sync.lock", wait)
    except Busy:
        return SyncReport([], busy=True)
    with closing(lock):
        found = []
        reconcile(settings, decided, clock.now())
        for remote in decided.remotes:
            found.append(RemotePass(settings, decided, remote, why, clock).run())
            with suppress(WhyforError):  # what was taken back is asked for again next time
                follow_shared_changes(settings, remote)
        return SyncReport(found)


def refresh_outbox(settings: Settings, clock: Clock = SYSTEM_CLOCK) -> None:
    """Find what was pushed meanwhile, and send nothing."""
    decided = load_remotes(settings)
    if not decided.remotes:
        return
    reconcile(settings, decided, clock.now())
    for remote in decided.remotes:
        with suppress(WhyforError):  # what is known already can be shown
            RemotePass(settings, decided, remote, "", clock).look()


def reconcile(settings: Settings, decided: RemoteFile, now: int) -> None:
    """Tell the database which projects are shared; it puts their stories into the outbox."""
    with reading_local(settings) as store:
        shares = {}
        for remote in decided.remotes:
            found = store.projects.find(remote.project)
            if found is not None:
                shares[found[0]] = remote.share
        if store.outbox.shares() == shares:
            return
    change_outbox(settings, lambda outbox: outbox.share_projects(shares, now))


def change_outbox(settings: Settings, change: Callable[[OutboxStore], object]) -> None:
    """Change the outbox in one transaction, when nobody else writes."""
    with (
        ingest_lock(settings.home, _WRITE_WAIT),
        closing(open_store(settings.database)) as store,
        store.transaction(),
    ):
        change(store.outbox)


class RemotePass:
    """One pass for one project."""

    def __init__(
        self, settings: Settings, decided: RemoteFile, remote: Remote, why: str, clock: Clock
    ) -> None:
        self.settings = settings
        self.decided = decided
        self.remote = remote
        self.why = why
        self.clock = clock
        self.report = RemoteReport(remote.project, remote.url)
        self.project = 0
        self._took_back = False
        self._in_a_row = 0  # items that failed

    def look(self) -> bool:
        """Find what is to be sent, and send nothing; return whether the project is shared."""
        with reading_local(self.settings) as store:
            found = store.projects.find(self.remote.project)
            if found is None or excluded(self.settings, store).is_project(self.remote.project):
                return False
            self.project = found[0]
            self._look(store)
        return True

    def run(self) -> RemoteReport:
        begun = self.clock.now()
        try:
            if not self.look():
                return self.report
            due = self._due()
            if self.remote.confirmed_at is None or self.remote.paused:
                # nothing more leaves, but what was sent may be taken back
                stays = [item for item in due if item.kind not in (FORGET, RETRACT)]
                self.report.unconfirmed = len(stays)
                due = [item for item in due if item not in stays]
            if due:
                self._send(due)
        except WhyforError as error:
            self.report.error, self.report.hint = error.message, error.hint
        if self.report.sent or self.report.refused or self.report.error:
            self._note_try(begun)
        return self.report

    # -- what is to be sent ------------------------------------------------------------------------

    def _look(self, store: LocalStore) -> None:
        """Find what was pushed, what grew, and what must be sent again."""
        moves: dict[str, list[int]] = {}
        local = store.outbox.items(self.project, [LOCAL])
        ready = self._ready(store, local)
        if ready:
            moves[WAITS] = [item.id for item in local if item.name in ready]
        again = self._stale(store)
        if again:
            moves[WAITS] = [*moves.get(WAITS, []), *again]
        grown = self._grown(store)

        def change(outbox: OutboxStore) -> None:
            for state, items in moves.items():
                outbox.set_states(items, state)
            for name in grown:
                outbox.put(self.project, SESSION, name, WAITS, self.clock.now())

        if moves or grown:
            change_outbox(self.settings, change)

    def _ready(self, store: LocalStore, local: list[OutboxItem]) -> set[str]:
        names = [item.name for item in local if item.kind == COMMIT]
        if self.remote.share == "all":
            return set(names)
        asked = {name for name in names if name in self.decided.shared}
        if self.remote.share == "ask":
            return asked
        since = self.clock.now() - _LOOK_BACK
        return asked | find_pushed(store, self.project, names, since)

    def _stale(self, store: LocalStore) -> list[int]:
        """Return sent items whose sessions were read on since, or were redacted by other rules: a
        value may be recognised now that was not before."""
        sent = store.outbox.sent(self.project)
        if not sent:
            return []
        rules = _rules(self.settings)[:16]
        writer = store.records.writer()
        names: set[str] = set()
        for (agent, path), known in sent.items():
            source = writer.source(agent, path)
            if source is not None and known.rules != f"{rules}@{source.position}":
                names.add(f"{agent}:{source.parent or source.session_id}")
                names.add(f"{agent}:{source.session_id}")
        if not names:
            return []
        items = store.outbox.items(self.project, [SENT])
        shas = [item.name for item in items if item.kind == COMMIT]
        told = store.checkpoints.of_commits(shas)
        touched = {
            sha for sha, each in told.items() if any(part.name in names for part in each.parts)
        }
        return [item.id for item in items if item.name in touched or item.name in names]

    def _grown(self, store: LocalStore) -> list[str]:
        """Return the sessions to be sent whole that are not in the outbox yet."""
        wanted = [name for name in self.decided.shared if ":" in name]
        if self.remote.share == "all":
            recent = store.sessions.recent(self.project, 0, 100_000)
            numbers = [number for number, _ in recent]
            found = store.sessions.by_number(numbers).values()
            wanted += [each.name for each in found if not each.unopened]
        known = {item.name for item in store.outbox.items(self.project) if item.kind == SESSION}
        return [name for name in dict.fromkeys(wanted) if name not in known]

    def _due(self) -> list[OutboxItem]:
        now = self.clock.now()
        with reading_local(self.settings) as store:
            waiting = store.outbox.items(self.project, [WAITS])
        self.report.waiting = len(waiting)
        due = [item for item in waiting if item.next_at <= now]
        # what failed before comes last, so that it holds up nothing else
        return sorted(due, key=lambda item: (item.kind not in (FORGET, RETRACT), item.next_at))

    # -- sending -----------------------------------------------------------------------------------

    def _send(self, due: list[OutboxItem]) -> None:
        with closing(self._sender()) as sender, reading_local(self.settings) as store:
            packer = StoryPacker(self.settings, store, store.blobs)
            stories = StoryChooser(store, self.decided, self.remote, self.project)
            self._in_a_row = 0
            for item in due:
                try:
                    self._send_item(item, stories, packer, sender)
                    self._in_a_row = 0
                except RemoteFault as fault:
                    self._in_a_row += 1
                    if self._failed(item, fault, due):
                        break
                except WhyforError as error:
                    self._refuse(item, error)
            if self._took_back:
                self._take_back_sessions(store, sender)

    def _sender(self) -> AnySender:
        """Return what sends stories to where the project is shared."""
        if is_git_address(self.remote.url):
            with reading_local(self.settings) as store:
                repository = repository_of(store, self.project)
            name = ask(repository.folder, "config", "user.name") if repository else None
            author = StoryAuthor(name or self.decided.machine, self.decided.machine)
            return GitSender(story_repository(self.settings, self.remote), author)
        key = load_key(self.settings, self.remote.url)
        client = TeamClient(
            self.remote.url, key.token if key else None, self.clock.patience, self.clock.sleep
        )
        return StorySender(client, self.remote, self.decided.machine)

    def _take_back_sessions(self, store: LocalStore, sender: AnySender) -> None:
        """Have the server delete the sessions that no story needs any more."""
        stories = StoryChooser(store, self.decided, self.remote, self.project)
        needed = stories.needed_sessions()
        gone: dict[str, list[SentSource]] = {}
        for (agent, path), known in stories.sent.items():
            source = store.records.writer().source(agent, path)
            main = stories.caller(agent, source.session_id) if source else None
            if main is not None and main.name not in needed:
                gone.setdefault(main.name, []).append(known)
        if not gone:
            return
        try:
            sender.retract(Retraction(sessions=tuple(gone)))
        except RemoteFault as fault:  # they are taken back with the next story that is
            self.report.error, self.report.hint = fault.message, fault.hint
            return

        def change(outbox: OutboxStore) -> None:
            for sources in gone.values():
                for each in sources:
                    outbox.forget_sent(self.project, each.agent, [each.path])

        change_outbox(self.settings, change)

    def _send_item(
        self,
        item: OutboxItem,
        stories: StoryChooser,
        packer: StoryPacker,
        sender: AnySender,
    ) -> None:
        if item.kind in (FORGET, RETRACT):
            sender.retract(_retraction(item))
            change_outbox(self.settings, lambda outbox: self._taken_back(outbox, item))
            self.report.sent += 1
            self._took_back = True
            return
        package = stories.package(item, packer)
        if package is None:
            self._withdraw(item, sender)
            return
        digest = package.digest()
        places = package.redacted.total()
        if item.size is None:  # a person may look at it before it arrives
            item = replace(item, size=package.size, redacted=places)
            self._save(item, [])
        sources: list[SentSource] | None = None
        if digest != item.digest or item.sent_at is None or self._took_back:
            known = stories.sent
            sources = self._sent_twice(
                lambda: sender.send(package, lambda each: known.get(_key(each)))
            )
        else:
            sources = [
                replace(known_source, rules=each.read)
                for each, known_source in _pairs(package, stories.sent)
            ]
        done = replace(
            item,
            state=SENT,
            attempts=0,
            error=None,
            sent_at=self.clock.now() if digest != item.digest else item.sent_at,
            size=package.size,
            redacted=places,
            digest=digest,
        )
        stories.sent.update({(each.agent, each.path): each for each in sources})
        self._save(done, sources)
        self.report.sent += 1

    def _sent_twice(self, send: Callable[[], list[SentSource]]) -> list[SentSource]:
        """Send; if the server finds that bytes are not what they should be, once more."""
        try:
            return send()
        except RemoteRejected:
            return send()

    def _taken_back(self, outbox: OutboxStore, item: OutboxItem) -> None:
        """What the server deleted may have been a part of any story: none counts as sent as it is,
        so that one that is shared again is sent again."""
        outbox.remove(item.id)
        outbox.forget_digests(self.project)

    def _withdraw(self, item: OutboxItem, sender: AnySender) -> None:
        """A story that is no more, or is to stay here: the server forgets it too."""
        if item.sent_at is not None and not self._is_forgotten(item):
            sender.retract(_retraction(item))
            change_outbox(self.settings, lambda outbox: outbox.forget_digests(self.project))
            self._took_back = True
        held = item.name in self.decided.keep_local
        if held or (item.kind == COMMIT and self._exists(item.name)):
            self._save(replace(item, state=HELD, error=None, sent_at=None, digest=None), [])
        else:
            change_outbox(self.settings, lambda outbox: outbox.remove(item.id))

    def _is_forgotten(self, item: OutboxItem) -> bool:
        """What is forgotten on this machine alone stays with the team."""
        with reading_local(self.settings) as store:
            return item.name in store.forget.reasons()

    def _exists(self, sha: str) -> bool:
        with reading_local(self.settings) as store:
            return bool(store.checkpoints.of_commits([sha]))

    def _save(self, item: OutboxItem, sources: Iterable[SentSource]) -> None:
        def change(outbox: OutboxStore) -> None:
            outbox.save(item)
            for source in sources:
                outbox.save_sent(self.project, source)

        change_outbox(self.settings, change)

    # -- what went wrong ---------------------------------------------------------------------------

    def _failed(self, item: OutboxItem, fault: RemoteFault, due: list[OutboxItem]) -> bool:
        """Note why an item was not sent; return whether the others would fail alike."""
        self.report.error, self.report.hint = fault.message, fault.hint
        if isinstance(fault, RemoteWithdrawn):
            self._refuse(item, fault)
            return False
        if isinstance(fault, NeedsLogin):
            self._postpone(due, fault, _DAY)
            return True
        if isinstance(fault, RemoteDown):
            alone = fault.reached and item.kind in (COMMIT, SESSION) and self._in_a_row < _IN_A_ROW
            self._postpone([item] if alone else due, fault, None)
            return not alone
        self._refuse(item, fault)
        return fault.kind in ("not_member", "quota")

    def _postpone(self, items: Iterable[OutboxItem], fault: RemoteFault, wait: int | None) -> None:
        now = self.clock.now()
        left = []
        with reading_local(self.settings) as store:
            for item in items:
                current = store.outbox.find(item.project, item.kind, item.name)
                if current is not None and current.state == WAITS:
                    left.append(current)

        def change(outbox: OutboxStore) -> None:
            for item in left:
                pause = wait if wait is not None else _pause(item.attempts, fault)
                outbox.save(
                    replace(
                        item,
                        attempts=item.attempts + 1,
                        next_at=now + pause,
                        error=fault.message,
                    )
                )

        change_outbox(self.settings, change)

    def _refuse(self, item: OutboxItem, error: WhyforError) -> None:
        self.report.refused += 1
        words = f"{error.message}. {error.hint}".rstrip(". ") + "."
        if isinstance(error, NotRedacted):
            words = f"redaction: {words}"
        self._save(replace(item, state=REFUSED, attempts=item.attempts + 1, error=words), [])

    def _note_try(self, begun: int) -> None:
        tried = SyncTry(
            *(begun, self.why, self.remote.project, self.report.sent, self.report.refused),
            *(self.report.error, self.clock.now() - begun),
        )
        change_outbox(self.settings, lambda outbox: outbox.add_try(tried))


class StoryChooser:
    """Which records and words make a story of the outbox."""

    def __init__(
        self, store: LocalStore, decided: RemoteFile, remote: Remote, project: int
    ) -> None:
        self.store = store
        self.kept = set(decided.keep_local)
        self.remote = remote
        self.project = project
        self.whole = {name for name in decided.shared if ":" in name}
        self.sent = store.outbox.sent(project)
        self.pushed = {
            item.name
            for item in store.outbox.items(project, [WAITS, SENT, REFUSED])
            if item.kind == COMMIT and item.name not in self.kept
        }

    def package(self, item: OutboxItem, packer: StoryPacker) -> StoryPackage | None:
        """Return what an item would send; None if it is to stay here, or is no more."""
        if item.name in self.kept:
            return None
        if item.kind == SESSION:
            return self._session(item.name, packer)
        found = self.store.checkpoints.of_commits([item.name]).get(item.name)
        if found is None or found.evidence is None:
            return None
        sessions = self._sessions(found)
        told = without_parts(found, [*self.kept, *_recorded_parts(found)])
        if not sessions or not told.parts:
            return None
        chosen = [self._selection(each) for each in sessions]
        told = with_written_lines(self.store, told)
        return packer.story(chosen, [told], self._notes(found), self._statements(sessions))

    def needed_sessions(self) -> set[str]:
        """Return the sessions that stories in the outbox are made of, as agent:id."""
        told = self.store.checkpoints.of_commits(self.pushed)
        found = {each.name for one in told.values() for each in self._sessions(one)}
        for item in self.store.outbox.items(self.project, [WAITS, SENT, REFUSED]):
            if item.kind == SESSION and item.name not in self.kept:
                found.add(item.name)
        return found

    def withheld(self, item: OutboxItem) -> int:
        """Return how many ranges of an item's sessions stay here."""
        found = self.store.checkpoints.of_commits([item.name]).get(item.name)
        sessions = self._sessions(found) if found else []
        return sum(len(self._selection(each).withheld) for each in sessions)

    def _session(self, name: str, packer: StoryPacker) -> StoryPackage | None:
        agent, _, session_id = name.partition(":")
        try:
            session = self.store.sessions.find(session_id, agent)
        except NotFound:
            return None
        if session.agent in RECORDED:
            return None
        return packer.story([self._selection(session)], [], (), self._statements([session]))

    def _selection(self, session: Session) -> SessionSelection:
        whole = self.remote.share == "all" or session.name in self.whole
        return select_session(self.store, session, self.pushed, whole=whole)

    def _sessions(self, checkpoint: Checkpoint) -> list[Session]:
        """Return the sessions of a commit; a subagent's records go with its caller's."""
        found: dict[str, Session] = {}
        for part in checkpoint.parts:
            session = self.caller(part.agent, part.session_id)
            if session is None or session.agent in RECORDED:
                continue
            if session.name not in self.kept and part.name not in self.kept:
                found[session.name] = session
        return list(found.values())

    def caller(self, agent: str, session_id: str) -> Session | None:
        """Return the main session that a session belongs to; None if it is not kept."""
        try:
            session = self.store.sessions.find(session_id, agent)
            while session.parent_session_id:
                session = self.store.sessions.find(session.parent_session_id, agent)
        except NotFound:
            return None
        return session

    def _notes(self, checkpoint: Checkpoint) -> list[SharedNote]:
        found = []
        for said in self.store.checkpoints.said([checkpoint.commit]):
            if isinstance(said, NoteEntry):
                note = msgspec.to_builtins(said.note)
                found.append(SharedNote(said.commit, said.by, said.at, note))
        return found

    def _statements(self, sessions: Iterable[Session]) -> list[object]:
        names = {(each.agent, each.session_id) for each in sessions}
        said = self.store.memory.all_said() if names else []
        return [s for s in said if (s.agent, s.session_id) in names and s.action != "asked"]


def _retraction(item: OutboxItem) -> Retraction:
    """Return what an item takes back."""
    forever = item.kind == FORGET
    kind, _, rest = item.name.partition(":")
    if kind == COMMIT or not rest:
        return Retraction(commits=(rest or item.name,), forever=forever)
    return Retraction(sessions=(item.name,), forever=forever)


def _pause(attempts: int, fault: RemoteFault) -> int:
    """Return for how many ms an item waits: 5 minutes, then twice as long each time, to 6 h."""
    told = fault.wait if isinstance(fault, RemoteDown) else None
    if told is not None:
        return int(told * 1000)
    seconds = min(FIRST_WAIT * 2 ** min(attempts, 10), LONGEST_WAIT)
    return int(seconds * 1000 * random.uniform(0.8, 1.2))


def _rules(settings: Settings) -> str:
    from whyfor.sync.package import sharing_rules

    return sharing_rules(settings)


def _key(source: SourcePackage) -> tuple[str, str]:
    return source.local.agent, source.local.path


def _pairs(
    package: StoryPackage, sent: dict[tuple[str, str], SentSource]
) -> list[tuple[SourcePackage, SentSource]]:
    return [(each, sent[_key(each)]) for each in package.sources if _key(each) in sent]


def _recorded_parts(checkpoint: Checkpoint) -> list[str]:
    """Return the names of the recorded terminals in a story. They stay here: a secret may stand
    half in one piece of output and half in the next."""
    return [part.name for part in checkpoint.parts if part.agent in RECORDED]

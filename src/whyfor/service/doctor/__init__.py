"""doctor: is everything read that the agents wrote, and is everything still there that was
stored?"""

from __future__ import annotations

import os
from pathlib import Path

import apsw
import msgspec

from whyfor.agents import AGENTS
from whyfor.agents.base import Agent
from whyfor.capture import tail
from whyfor.capture.compare import HINT, compare
from whyfor.capture.discover import at_home, roots
from whyfor.capture.filters.excluded import Excluded
from whyfor.capture.ingest import wall_clock
from whyfor.capture.permissions import exposures
from whyfor.capture.unreadable import Unreadable, UnreadableFiles
from whyfor.config import Settings
from whyfor.model.errors import CorruptStore, NotFound, StoreError, WhyforError
from whyfor.model.paths import to_path, to_text
from whyfor.model.reports import Paused
from whyfor.model.text import plural
from whyfor.model.times import DAY, to_iso
from whyfor.service.doctor.hooks import HookHealth, notice_silence, probe
from whyfor.service.exclude import excluded, excluded_note, passed_over, stored
from whyfor.service.notify import HINT as NOTIFY_HINT
from whyfor.service.notify import notify_complaints as unsent
from whyfor.service.pause import active_pauses, describe_pause
from whyfor.service.redact.trial import Complaint, rule_complaints
from whyfor.store.blobs import FolderBlobs
from whyfor.store.open import OpenStore, journal, reading
from whyfor.store.sqlite.forget import LOST, LOST_HINT, load_tombstones


class AgentHealth(msgspec.Struct):
    agent: str
    title: str
    folders: list[str]
    found: bool
    files: int = 0
    bytes: int = 0
    records: int = 0
    last_record_at: int | None = None
    waiting: int = 0  # files that are new or have grown since the last ingest
    gone: int = 0  # sources the agent has deleted; what was stored of them stays
    unfinished: int = 0  # files whose last line has no end yet
    unparsed: dict[str, int] = {}  # by reason
    unparsed_files: list[tuple[str, str, int]] = []
    unknown_types: dict[str, int] = {}
    unreadable: list[Unreadable] = []


class StoreHealth(msgspec.Struct):
    sqlite: str
    integrity: list[str] = []
    database_bytes: int = 0
    segment_bytes: int = 0
    journal_bytes: int = 0
    missing_segments: list[str] = []
    disagreements: list[str] = []  # between journal, database and segments
    unlisted_segments: int = 0  # objects that neither journal nor database lists
    set_aside: list[str] = []  # what was damaged and is kept beside


class DoctorProblem(msgspec.Struct, frozen=True):
    dropped: bool  # something is lost or not captured; else only worth knowing
    what: str
    next: str


class DoctorReport(msgspec.Struct):
    home: str
    agents: list[AgentHealth]
    hooks: list[HookHealth]
    store: StoreHealth
    problems: list[DoctorProblem]
    paused: list[Paused] = []

    @property
    def ok(self) -> bool:
        return not any(problem.dropped for problem in self.problems)


def examine(settings: Settings, folder: Path | None = None, *, deep: bool = False) -> DoctorReport:
    """Looks, and fires the installed hooks; writes nothing itself. `deep` reads every segment
    back."""
    hooks = probe(settings, folder)
    store = StoreHealth(sqlite=apsw.sqlite_lib_version())
    # of each agent's files, by path
    sizes: dict[str, dict[str, int]] = {name: {} for name in AGENTS}
    agents = [_on_disk(agent, settings, sizes[agent.name]) for agent in AGENTS.values()]
    problems = [DoctorProblem(False, found.what, found.mend) for found in exposures(settings.home)]
    try:
        with reading(settings) as library:
            out = excluded(settings, library.db)
            for health in agents:
                _in_store(health, library, sizes[health.agent], out)
            problems += _excluded_problems(settings, library)
            if load_tombstones(library.db, settings.home).lost:
                problems.append(DoctorProblem(True, LOST, LOST_HINT))
            _examine_store(store, library, deep)
            notice_silence(settings, hooks, library)
    except CorruptStore as error:
        store.integrity = [error.message]
    except WhyforError as error:
        problems.append(DoctorProblem(not isinstance(error, NotFound), error.message, error.hint))
        for health in agents:
            health.waiting = health.files
    for name in ("database", "journal"):
        path = getattr(settings, name)
        setattr(
            store,
            f"{name}_bytes",
            sum(p.stat().st_size for p in settings.home.glob(f"{path.name}*")),
        )
    store.set_aside = sorted(
        path.name for path in settings.home.glob("*.*-2*") if _is_set_aside(path)
    )
    store.segment_bytes = FolderBlobs(settings.segments).size()
    problems += _store_problems(store) + [p for health in agents for p in _agent_problems(health)]
    problems += [DoctorProblem(hook.dropped, hook.what, hook.next) for hook in hooks if hook.what]
    problems += [_rule_problem(complaint) for complaint in rule_complaints(settings)]
    problems += [DoctorProblem(False, what, NOTIFY_HINT) for what in unsent(settings)]
    paused = [describe_pause(pause) for pause in active_pauses(settings)]
    problems += [_pause_problem(pause, wall_clock()) for pause in paused]
    return DoctorReport(to_text(settings.home), agents, hooks, store, problems, paused)


def _excluded_problems(settings: Settings, library: OpenStore) -> list[DoctorProblem]:
    """What is left out because of [exclude], and what was kept before it said so."""
    found = []
    if left_out := excluded_note(settings):
        how = (
            "Change it there, if you want them. What counts is where a session ran, and the files "
            "its tools name; "
        )
        how += "what a shell command printed in a session that ran elsewhere is stored."
        found.append(DoctorProblem(False, f"{left_out} By [exclude] in config.toml", how))
    if before := stored(settings, library.db):
        what = (
            f"{plural(len(before), 'session')} of excluded projects or agents were stored before "
            "they were excluded"
        )
        found.append(
            DoctorProblem(False, what, f"Remove them, one by one: whyfor forget {before[0]}")
        )
    return found


def _rule_problem(complaint: Complaint) -> DoctorProblem:
    """A rule that does not work keeps everything from leaving, or lets something leave."""
    return DoctorProblem(
        complaint.broken,
        f"config.toml, [redact]: {complaint.what}",
        "Mend it; its fields: docs/redact.md",
    )


def _pause_problem(pause: Paused, now: int) -> DoctorProblem:
    """A pause somebody forgot is silence like any other."""
    days = (now - pause.since) // DAY
    long = f", for {plural(days, 'day')} now: forgotten?" if days else ""
    what = f"nothing is recorded, {pause.where}: paused since {to_iso(pause.since)}{long}"
    return DoctorProblem(False, what, f"Record again: {pause.resume}")


def _on_disk(agent: Agent, settings: Settings, sizes: dict[str, int]) -> AgentHealth:
    folders = roots(agent, settings)
    health = AgentHealth(
        agent.name,
        agent.title,
        [to_text(f) for f in folders],
        any(f.exists() for f in folders),
        unreadable=[],
    )
    failed = UnreadableFiles(settings.home).reasons()
    for found in at_home([agent], settings, health.unreadable):
        try:
            sizes[to_text(found.path)] = tail.stat(found.path).size
            why = failed.get(to_text(found.path))
            if not os.access(found.path, os.R_OK):
                why = "Permission denied"
        except FileNotFoundError:
            continue  # gone since it was listed, or a link to nowhere: there is nothing to read
        except OSError as error:
            why = error.strerror or str(error)
        health.files += 1
        health.bytes += sizes.get(to_text(found.path), 0)
        if why:
            health.unreadable.append(Unreadable(to_text(found.path), why))
    parts = [(path, why) for path, why in failed.items() if "#" in path and path not in sizes]
    health.unreadable += [
        Unreadable(path, why) for path, why in parts if path.rsplit("#", 1)[0] in sizes
    ]
    return health


def _in_store(
    health: AgentHealth, library: OpenStore, sizes: dict[str, int], out: Excluded
) -> None:
    reader = library.reader
    known: dict[str, int | None] = {}
    for path, size, records, _, unfinished, error, _, _ in reader.sources(health.agent):
        known[path] = size
        health.records += records
        health.unfinished += bool(unfinished)
        health.gone += not to_path(path.split("#")[0]).exists()
        if error:
            health.unreadable.append(Unreadable(path, error))
    changed = [path for path, now in sizes.items() if now and known.get(path, -1) != now]
    unreadable = {item.path for item in health.unreadable}
    changed = [path for path in changed if path not in unreadable]
    health.waiting = sum(
        1 for path in changed if not passed_over(out, AGENTS[health.agent], to_path(path))
    )
    health.last_record_at = reader.last_record(health.agent)
    health.unparsed_files = reader.unparsed(health.agent)
    for _, reason, number in health.unparsed_files:
        health.unparsed = {**health.unparsed, reason: health.unparsed.get(reason, 0) + number}
    health.unknown_types = reader.unknown_types(health.agent)


def _examine_store(store: StoreHealth, library: OpenStore, deep: bool) -> None:
    store.integrity = library.reader.integrity()
    for digest, path in library.reader.digests():
        try:
            if deep:
                library.blobs.get(digest)
            elif not library.blobs.has(digest):
                raise StoreError("missing")
        except StoreError:
            store.missing_segments.append(path)
    found = compare(library.db, journal(library.settings), library.blobs)
    store.disagreements = found.complaints()
    store.unlisted_segments = found.unlisted


def _is_set_aside(path: Path) -> bool:
    return (".damaged-" in path.name or ".unlisted-" in path.name) and not path.name.endswith(
        ("-wal", "-shm")
    )


def _store_problems(store: StoreHealth) -> list[DoctorProblem]:
    found = []
    if store.integrity:
        what = f"the database is damaged: {store.integrity[0]}"
        found.append(
            DoctorProblem(True, what, "Your segments are safe. Rebuild it: whyfor rebuild")
        )
    if store.missing_segments:
        what = (
            f"{len(store.missing_segments)} segments are missing or damaged, of "
            f"{store.missing_segments[0]} first"
        )
        found.append(
            DoctorProblem(True, what, "Bring them back from a backup of the segments folder.")
        )
    for what in store.disagreements:
        found.append(DoctorProblem(True, what, HINT))
    if store.unlisted_segments:
        what = (
            f"{plural(store.unlisted_segments, 'segment')} that neither the journal nor the "
            "database lists"
        )
        found.append(
            DoctorProblem(
                False,
                what,
                "A killed process leaves them; they are kept until something is forgotten.",
            )
        )
    for name in store.set_aside:
        what = (
            f"{name} was damaged, or listed nowhere, and was set aside when the store was repaired"
        )
        found.append(
            DoctorProblem(False, what, "Delete it when you are sure that nothing is missing.")
        )
    return found


def _agent_problems(health: AgentHealth) -> list[DoctorProblem]:
    found = []
    for item in health.unreadable:
        found.append(
            DoctorProblem(
                True,
                f"{health.title}: cannot read {item.path}: {item.reason}",
                "Fix it, then: whyfor ingest",
            )
        )
    if health.unparsed:
        number = sum(health.unparsed.values())
        reasons = ", ".join(f"{count} {reason}" for reason, count in health.unparsed.items())
        what = (
            f"{health.title}: {number} lines could not be parsed ({reasons}); kept raw, not shown"
        )
        found.append(
            DoctorProblem(
                False,
                what,
                f"See which: whyfor doctor --json (worst: {health.unparsed_files[0][0]})",
            )
        )
    if health.unknown_types:
        names = ", ".join(list(health.unknown_types)[:6])
        what = (
            f"{health.title}: {sum(health.unknown_types.values())} records of types this version "
            f"does not know: {names}"
        )
        found.append(
            DoctorProblem(
                False, what, "Kept raw. A newer Whyfor reads them: upgrade, then whyfor rebuild"
            )
        )
    if health.waiting:
        what = f"{health.title}: {health.waiting} files have something new"
        found.append(DoctorProblem(False, what, "Read it: whyfor ingest"))
    return found

"""doctor: check that everything the agents wrote is read, and that everything stored is still
there."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import msgspec

from whyfor.agents import AGENTS, USUAL
from whyfor.agents.base import Agent
from whyfor.agents.declared.registry import definition_problems
from whyfor.capture import tail
from whyfor.capture.compare import HINT, compare_store
from whyfor.capture.discover import agents_here, files_at_home, roots
from whyfor.capture.exclusions import excluded, excluded_note, passed_over, stored
from whyfor.capture.filters.excluded import Excluded
from whyfor.capture.pauses import active_pauses, describe_pause
from whyfor.capture.permissions import exposures
from whyfor.capture.unreadable import Unreadable, UnreadableFiles
from whyfor.config import Settings
from whyfor.live.notify import HINT as NOTIFY_HINT
from whyfor.live.notify import notify_complaints as unsent
from whyfor.model.errors import CorruptStore, NotFound, StoreError, WhyforError
from whyfor.model.paths import to_path, to_text
from whyfor.model.reports import Paused
from whyfor.model.sync import REFUSED, WAITS
from whyfor.model.text import plural
from whyfor.model.times import DAY, to_iso, wall_clock
from whyfor.privacy.rule_check import Complaint, rule_complaints
from whyfor.recall.embeddings.index import VectorIndexState as VectorIndexState
from whyfor.recall.embeddings.index import check_model, index_state
from whyfor.service.doctor.hooks import HookHealth, notice_silence, probe
from whyfor.service.doctor.mcp import McpHealth, McpProbe
from whyfor.store.blobs import FolderBlobs
from whyfor.store.open import DRIVER, LocalStore, journal, reading_local
from whyfor.store.tombstones import LOST, LOST_HINT


class UnparsedFile(NamedTuple):
    path: str
    reason: str
    lines: int


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
    unparsed_files: list[UnparsedFile] = []
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
    mcp: McpHealth = McpHealth()
    semantic: VectorIndexState | None = None  # None: the settings were not looked at

    @property
    def ok(self) -> bool:
        return not any(problem.dropped for problem in self.problems)


def examine(settings: Settings, folder: Path | None = None, *, deep: bool = False) -> DoctorReport:
    """Check everything and run the installed hooks; write nothing. With `deep`, read every
    segment."""
    server = McpProbe(settings, folder)
    hooks = probe(settings, folder)
    store = StoreHealth(sqlite=DRIVER)
    # before anything is opened, which makes files of its own
    problems = [DoctorProblem(False, found.what, found.mend) for found in exposures(settings.home)]
    problems += [DoctorProblem(True, one.message, one.hint) for one in definition_problems()]
    disk = [_on_disk(agent, settings) for agent in _looked_at(settings)]
    agents = [found.health for found in disk]
    semantic = check_model(settings, index_state(settings, None))
    try:
        with reading_local(settings) as library:
            out = excluded(settings, library)
            for found in disk:
                _in_store(found, library, out)
            problems += _excluded_problems(settings, library)
            problems += _sharing_problems(library)
            problems += _shell_problems(library)
            if library.forget.tombstones(settings.home).lost:
                problems.append(DoctorProblem(True, LOST, LOST_HINT))
            _examine_store(store, library, deep)
            semantic = check_model(settings, index_state(settings, library))
            notice_silence(settings, hooks, library)
    except CorruptStore as error:
        store.integrity = [error.message]
    except WhyforError as error:
        problems.append(DoctorProblem(not isinstance(error, NotFound), error.message, error.hint))
        for health in agents:
            health.waiting = health.files
    _measure_files(store, settings)
    paused = [describe_pause(pause) for pause in active_pauses(settings)]
    problems += _store_problems(store)
    for health in agents:
        problems += _agent_problems(health)
    problems += _setting_problems(settings, hooks, paused)
    mcp = server.health()
    if mcp.what:
        what = f"whyfor mcp, the server for agents, does not answer: {mcp.what}"
        problems.append(DoctorProblem(False, what, "See more: WHYFOR_DEBUG=1 whyfor mcp"))
    if semantic.trouble:
        what = f"search by meaning is off: {semantic.trouble}"
        problems.append(DoctorProblem(False, what, semantic.hint))
    return DoctorReport(
        to_text(settings.home), agents, hooks, store, problems, paused, mcp, semantic
    )


def _looked_at(settings: Settings) -> list[Agent]:
    """Return the agents that are told of: the usual ones, those found here, and those whose
    sessions are kept though their files are gone."""
    names = {agent.name for agent in agents_here(settings)} | set(USUAL)
    try:
        with reading_local(settings) as library:
            names |= {name for name in AGENTS if library.sessions.last_ended(name) is not None}
    except WhyforError:
        pass  # what is wrong with the store is told elsewhere
    return [AGENTS[name] for name in AGENTS if name in names]


def _measure_files(store: StoreHealth, settings: Settings) -> None:
    """Add the sizes of the store's files, and the files that were set aside."""
    store.database_bytes = _size_with_companions(settings.database)
    store.journal_bytes = _size_with_companions(settings.journal)
    store.segment_bytes = FolderBlobs(settings.segments).size()
    aside = [path.name for path in settings.home.glob("*.*-2*") if _is_set_aside(path)]
    store.set_aside = sorted(aside)


def _size_with_companions(path: Path) -> int:
    """Return the size of a file with those that SQLite or a repair put beside it."""
    return sum(beside.stat().st_size for beside in path.parent.glob(f"{path.name}*"))


def _setting_problems(
    settings: Settings, hooks: list[HookHealth], paused: list[Paused]
) -> list[DoctorProblem]:
    found = [DoctorProblem(hook.dropped, hook.what, hook.next) for hook in hooks if hook.what]
    found += [_rule_problem(complaint) for complaint in rule_complaints(settings)]
    found += [DoctorProblem(False, what, NOTIFY_HINT) for what in unsent(settings)]
    found += [_pause_problem(pause, wall_clock()) for pause in paused]
    return found


def _sharing_problems(library: LocalStore) -> list[DoctorProblem]:
    """What does not reach the team: how much, since when, and why."""
    found = []
    refused = library.outbox.items(states=[REFUSED])
    unredacted = [item for item in refused if (item.error or "").startswith("redaction:")]
    if unredacted:
        what = f"{plural(len(unredacted), 'story', 'stories')} not shared: {unredacted[0].error}"
        found.append(DoctorProblem(True, what, "See which: whyfor sync --preview"))
    if len(refused) > len(unredacted):
        other = next(item for item in refused if item not in unredacted)
        number = plural(len(refused) - len(unredacted), "story", "stories")
        what = f"{number} refused by the team's server: {other.error}"
        found.append(DoctorProblem(False, what, "Try again: whyfor sync"))
    failing = [item for item in library.outbox.items(states=[WAITS]) if item.error]
    if failing:
        since = (to_iso(min(item.added_at for item in failing)) or "")[:16].replace("T", " ")
        number = plural(len(failing), "story", "stories")
        what = f"{number} waiting for the team's server since {since}: {failing[0].error}"
        found.append(DoctorProblem(False, what, "Nothing is lost. Try now: whyfor sync"))
    return found


def _shell_problems(library: LocalStore) -> list[DoctorProblem]:
    """Commands of the last week whose changes were not looked at, and why."""
    skipped = library.signals.skipped_shells(wall_clock() - 7 * DAY)
    if not skipped:
        return []
    told = skipped[0][1]
    number = plural(len(skipped), "shell command")
    what = f"the changes of {number} were not looked at; the last in {told.top}: {told.skipped}"
    hint = "Lines that they wrote may be unknown; see: whyfor blame --help"
    return [DoctorProblem(False, what, hint)]


def _excluded_problems(settings: Settings, library: LocalStore) -> list[DoctorProblem]:
    """Return what [exclude] leaves out, and what was stored before it was set."""
    found = []
    left_out = excluded_note(settings)
    if left_out:
        hint = (
            "Change it there, if you want them. What counts is where a session ran, and the files "
            "its tools name; "
            "what a shell command printed in a session that ran elsewhere is stored."
        )
        found.append(DoctorProblem(False, f"{left_out} By [exclude] in config.toml", hint))
    before = stored(settings, library)
    if before:
        what = (
            f"{plural(len(before), 'session')} of excluded projects or agents were stored before "
            "they were excluded"
        )
        hint = f"Remove them, one by one: whyfor forget {before[0]}"
        found.append(DoctorProblem(False, what, hint))
    return found


def _rule_problem(complaint: Complaint) -> DoctorProblem:
    """Return the problem of a rule that does not work: it stops all exports, or misses a secret."""
    return DoctorProblem(
        complaint.broken,
        f"config.toml, [redact]: {complaint.what}",
        "Mend it; its fields: docs/redact.md",
    )


def _pause_problem(pause: Paused, now: int) -> DoctorProblem:
    """Return the problem of a pause, with a reminder if it may have been forgotten."""
    days = (now - pause.since) // DAY
    long = f", for {plural(days, 'day')} now: forgotten?" if days else ""
    what = f"nothing is recorded, {pause.where}: paused since {to_iso(pause.since)}{long}"
    return DoctorProblem(False, what, f"Record again: {pause.resume}")


class _AgentFiles(msgspec.Struct, frozen=True):
    """An agent's health, and the sizes of its files by path."""

    health: AgentHealth
    sizes: dict[str, int]


def _on_disk(agent: Agent, settings: Settings) -> _AgentFiles:
    folders = roots(agent, settings)
    there = any(folder.exists() for folder in folders)
    names = [to_text(folder) for folder in folders]
    health = AgentHealth(agent.name, agent.title, names, there, unreadable=[])
    sizes: dict[str, int] = {}
    failed = UnreadableFiles(settings.home).reasons()
    for found in files_at_home([agent], settings, health.unreadable):
        name = to_text(found.path)
        try:
            sizes[name] = tail.stat(found.path).size
            why = failed.get(name)
            if not os.access(found.path, os.R_OK):
                why = "Permission denied"
        except FileNotFoundError:
            continue  # gone since it was listed, or a link to nowhere: there is nothing to read
        except OSError as error:
            why = error.strerror or str(error)
        health.files += 1
        health.bytes += sizes.get(name, 0)
        if why:
            health.unreadable.append(Unreadable(name, why))
    for path, why in failed.items():
        file, part, _ = path.rpartition("#")
        if part and file in sizes and path not in sizes:
            health.unreadable.append(Unreadable(path, why))
    return _AgentFiles(health, sizes)


def _in_store(found: _AgentFiles, library: LocalStore, out: Excluded) -> None:
    """Add what the store knows about an agent's files to its health."""
    health = found.health
    known: dict[str, int | None] = {}
    for source in library.capture.health(health.agent):
        known[source.path] = source.size
        health.records += source.records
        health.unfinished += bool(source.tail)
        health.gone += not to_path(source.path.split("#")[0]).exists()
        if source.error:
            health.unreadable.append(Unreadable(source.path, source.error))
    unreadable = {item.path for item in health.unreadable}
    agent = AGENTS[health.agent]
    if found.sizes.keys() - known.keys():
        known = {**_read_as_others(health.agent, library), **known}
    for path, now in found.sizes.items():
        changed = now and known.get(path, -1) != now and path not in unreadable
        if changed and not passed_over(out, agent, to_path(path)):
            health.waiting += 1
    health.last_record_at = library.sessions.last_ended(health.agent)
    unparsed_rows = library.capture.unparsed(health.agent)
    health.unparsed_files = [UnparsedFile(*row) for row in unparsed_rows]
    unparsed: Counter[str] = Counter()
    for _, reason, number in health.unparsed_files:
        unparsed[reason] += number
    health.unparsed = dict(unparsed)
    health.unknown_types = library.capture.unknown_types(health.agent)


def _read_as_others(agent: str, library: LocalStore) -> dict[str, int | None]:
    """Return the sizes of other agents' files: one may lie in this agent's directory."""
    others = [name for name in AGENTS if name != agent]
    return {one.path: one.size for name in others for one in library.capture.health(name)}


def _examine_store(store: StoreHealth, library: LocalStore, deep: bool) -> None:
    store.integrity = library.check(quick=not deep)
    for digest, path in library.capture.digests():
        try:
            if deep:
                library.blobs.get(digest)
            elif not library.blobs.has(digest):
                raise StoreError("missing")
        except StoreError:
            store.missing_segments.append(path)
    found = compare_store(library, journal(library.settings), library.blobs)
    store.disagreements = found.complaints()
    store.unlisted_segments = found.unlisted


def _is_set_aside(path: Path) -> bool:
    if path.name.endswith(("-wal", "-shm")):
        return False
    return ".damaged-" in path.name or ".unlisted-" in path.name


def _store_problems(store: StoreHealth) -> list[DoctorProblem]:
    found = []
    if store.integrity:
        what = f"the database is damaged: {store.integrity[0]}"
        hint = "Your segments are safe. Rebuild it: whyfor rebuild"
        found.append(DoctorProblem(True, what, hint))
    if store.missing_segments:
        number, first = len(store.missing_segments), store.missing_segments[0]
        what = f"{number} segments are missing or damaged, of {first} first"
        hint = "Bring them back from a backup of the segments folder."
        found.append(DoctorProblem(True, what, hint))
    for what in store.disagreements:
        found.append(DoctorProblem(True, what, HINT))
    if store.unlisted_segments:
        segments = plural(store.unlisted_segments, "segment")
        what = f"{segments} that neither the journal nor the database lists"
        hint = "A killed process leaves them; they are kept until something is forgotten."
        found.append(DoctorProblem(False, what, hint))
    for name in store.set_aside:
        what = (
            f"{name} was damaged, or listed nowhere, and was set aside when the store was repaired"
        )
        hint = "Delete it when you are sure that nothing is missing."
        found.append(DoctorProblem(False, what, hint))
    return found


def _agent_problems(health: AgentHealth) -> list[DoctorProblem]:
    found = []
    for item in health.unreadable:
        what = f"{health.title}: cannot read {item.path}: {item.reason}"
        found.append(DoctorProblem(True, what, "Fix it, then: whyfor ingest"))
    if health.unparsed:
        number = sum(health.unparsed.values())
        reasons = ", ".join(f"{count} {reason}" for reason, count in health.unparsed.items())
        what = (
            f"{health.title}: {number} lines could not be parsed ({reasons}); kept raw, not shown"
        )
        hint = f"See which: whyfor doctor --json (worst: {health.unparsed_files[0].path})"
        found.append(DoctorProblem(False, what, hint))
    if health.unknown_types:
        number = sum(health.unknown_types.values())
        names = ", ".join(list(health.unknown_types)[:6])
        what = f"{health.title}: {number} records of types this version does not know: {names}"
        hint = "Kept raw. A newer Whyfor reads them: upgrade, then whyfor rebuild"
        found.append(DoctorProblem(False, what, hint))
    if health.waiting:
        what = f"{health.title}: {health.waiting} files have something new"
        found.append(DoctorProblem(False, what, "Read it: whyfor ingest"))
    return found

"""Makes the runs of sessions that have something new, on a laptop and on a server alike."""

from __future__ import annotations

import zlib
from collections.abc import Iterable

from whyfor.model.checkpoints import Checkpoint
from whyfor.model.events import StoredEvent
from whyfor.model.memory import WaitingSession
from whyfor.model.sessions import Session
from whyfor.model.tasks import TaskRun
from whyfor.store.protocol import SharedStore
from whyfor.story.tasks.names import TaskNames
from whyfor.story.tasks.runs import CallResult, TaskMaterial, derive_runs

_RULES = 2  # rises when other rules make other runs
_BATCH = 200  # sessions in one transaction
_RESULT_MAX = 4_000  # characters of what a tracker printed


def rules_version(keys: Iterable[str]) -> int:
    """Return the version of the rules with these configured keys."""
    return (_RULES << 32) + zlib.crc32("\n".join(sorted(keys)).encode())


def scan_tasks(store: SharedStore, keys: Iterable[str] = ()) -> list[int]:
    """Make the runs of every session that has something new; return their numbers. Under the
    ingest lock."""
    given = tuple(keys)
    version = rules_version(given)
    waiting = store.tasks.waiting(version)
    for start in range(0, len(waiting), _BATCH):
        batch = waiting[start : start + _BATCH]
        with store.transaction():
            _scan(store, batch, given, version)
    return [each.number for each in waiting]


def _scan(
    store: SharedStore, batch: list[WaitingSession], keys: tuple[str, ...], version: int
) -> None:
    sessions = store.sessions.by_number([each.number for each in batch])
    commits = _commits_of(store, batch)
    known: dict[str, TaskNames] = {}
    for waiting in batch:
        session = sessions[waiting.number]
        project = session.project or ""
        if project not in known:
            issues = store.tasks.issues(project) if project else []
            known[project] = TaskNames(keys, frozenset(issue.key for issue in issues), project)
        runs = _runs_of(store, waiting, session, known[project], commits.get(session.name, ()))
        store.tasks.save(waiting, runs, version)


def _commits_of(
    store: SharedStore, batch: list[WaitingSession]
) -> dict[str, tuple[Checkpoint, ...]]:
    found: dict[str, tuple[Checkpoint, ...]] = {}
    linked = store.checkpoints.of_sessions([each.number for each in batch])
    for commit in linked.values():
        for name in dict.fromkeys(part.name for part in commit.parts):
            found[name] = (*found.get(name, ()), commit)
    return found


def _runs_of(
    store: SharedStore,
    waiting: WaitingSession,
    session: Session,
    names: TaskNames,
    commits: tuple[Checkpoint, ...],
) -> list[TaskRun]:
    events = store.tasks.events(waiting)
    material = TaskMaterial(
        waiting,
        events,
        _results(store, waiting.number, events),
        names,
        branch=None if waiting.subagent else session.branch,
        ended_at=session.ended_at,
        commits=commits,
        said=tuple(store.tasks.said(session=(session.agent, session.session_id))),
        closed=tuple(store.tasks.closed_by(session.session_id)),
    )
    return derive_runs(
        material, lambda first, last: store.conversation.turns(waiting.number, first, last)
    )


def _results(store: SharedStore, session: int, events: list[StoredEvent]) -> dict[str, CallResult]:
    """Return how the calls among these events ended, by their ids."""
    idents = [str(each.get("id")) for each in events if each.kind == "tool.call" and each.get("id")]
    if not idents:
        return {}
    refs = store.conversation.result_refs(session, 0, idents)
    by_seq = {ref.seq: ref.ident for ref in refs if ref.kind == "tool.result"}
    found = {}
    for event in store.conversation.events_at(session, sorted(by_seq), _RESULT_MAX):
        failed = event.get("failed") is True or event.get("rejected") is True
        found[by_seq[event.seq]] = CallResult(event.seq, event.text, failed)
    return found

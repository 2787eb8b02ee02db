"""Tasks on the machine that the agents run on: beside what sessions say, what beads and commit
messages say. What is read there is kept in the journal, because it is not there for ever."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import msgspec

from whyfor.agents import AGENTS
from whyfor.git.run import ask
from whyfor.model.checkpoints import Checkpoint
from whyfor.model.listing import ListFilter
from whyfor.model.paths import to_path, to_text
from whyfor.model.tasks import TaskIssue, TaskStatement
from whyfor.store.journal import IssueEntry, Journal, TaskEntry
from whyfor.store.protocol import Store
from whyfor.store.tombstones import Tombstones
from whyfor.story.tasks import beads
from whyfor.story.tasks.names import TaskNames, trailer_tasks
from whyfor.story.tasks.scan import scan_tasks

_RECENT = 30 * 24 * 3_600_000  # ms since a project was last worked in: of others nothing is read
_EXPORT_MAX = 64 << 20  # bytes
_READ = "tasks-messages"  # a mark, by project: the last commit whose message was read, by time
_COMMITS = 2_000  # newest, whose messages are read at once
_LOG = ("log", "--no-walk=unsorted", "--format=%H%n%B%x00", "--ignore-missing")
_PASSES = 3  # what one reads may name tasks of what was read before


class TaskReader:
    """Reads what there is of tasks on this machine, under the ingest lock."""

    def __init__(
        self,
        store: Store,
        record: Journal,
        keys: Iterable[str],
        now: int,
        tombstones: Callable[[], Tombstones],
    ) -> None:
        self.store = store
        self.record = record
        self.keys = tuple(keys)
        self.now = now
        self.tombstones = tombstones

    def renew(self) -> list[int]:
        """Make the runs of sessions that have something new; return their numbers."""
        scanned = scan_tasks(self.store, self.keys)
        again = scanned
        for _ in range(_PASSES):
            self._read_exports(again=bool(again))
            self._read_messages(again)
            again = scan_tasks(self.store, self.keys)
            if not again:
                break
            scanned = [*scanned, *again]
        return scanned

    # -- beads -----------------------------------------------------------------------------------

    def _read_exports(self, *, again: bool) -> None:
        """Read the exports of the projects that were worked in lately. An export that is as it
        was is read only `again`."""
        for identity, folders in self._folders().items():
            for path in dict.fromkeys(filter(None, map(_export_above, folders))):
                mark = f"tasks-beads-{zlib.crc32(to_text(path).encode(errors='replace'))}"
                stamp = _stamp(path)
                if not stamp or (stamp == self.store.mark(mark) and not again):
                    continue
                self._read_export(path, identity)
                with self.store.transaction():
                    self.store.set_mark(mark, stamp)

    def _folders(self) -> dict[str, list[str]]:
        """Return, by identity, the folders of the projects that were worked in lately."""
        known = dict(self.store.projects.known())
        recent = {
            number
            for number, (_, last) in self.store.projects.active().items()
            if last is not None and last >= self.now - _RECENT
        }
        found: dict[str, list[str]] = {}
        for folder, number in self.store.projects.places().items():
            if number in recent:
                found.setdefault(known[number].identity, []).append(folder)
        return found

    def _read_export(self, path: Path, identity: str) -> None:
        try:
            told = beads.read_export(path.read_bytes(), identity, self.now)
        except OSError:
            return  # it is being written, or not ours to read
        before = {issue.key: issue for issue in self.store.tasks.issues(identity)}
        changed = []
        for issue in self._wanted(told, identity):
            merged = beads.merge_issue(before.get(issue.key), self._without_forgotten(issue))
            if merged is not None:
                changed.append(merged)
        if changed:
            with self.store.transaction(self.record):
                for issue in changed:
                    self.record.add(IssueEntry(issue))
                    self.store.tasks.save_issue(issue)

    def _wanted(self, told: list[TaskIssue], identity: str) -> list[TaskIssue]:
        """Return the issues that a session worked on, as far as is known."""
        project = self.store.projects.find(identity)
        numbers = [project[0]] if project else []
        worked = {each.run.key for each in self.store.tasks.runs(projects=numbers)}
        worked |= {said.key for said in self.store.tasks.said()}
        closers = {issue.closed_by for issue in told if issue.closed_by}
        ours = self.store.sessions.numbers(
            (agent, closer) for closer in closers for agent in AGENTS
        )
        names = {session_id for _, session_id in ours}
        branches = self._branches(numbers)
        return [
            issue
            for issue in told
            if issue.key in worked or issue.closed_by in names or issue.key in branches
        ]

    def _branches(self, projects: list[int]) -> str:
        """Return the names of the branches of a project, to look for tasks in."""
        which = ListFilter(projects=tuple(projects))
        return "\n".join(self.store.listing.branches(which, 1_000))

    def _without_forgotten(self, issue: TaskIssue) -> TaskIssue:
        stones = self.tombstones()
        if not stones.strings:
            return issue
        texts = {
            name: ""
            for name in ("title", "close_reason", "assignee")
            if stones.string(getattr(issue, name)) in stones.strings
        }
        return msgspec.structs.replace(issue, **texts)

    # -- commit messages -------------------------------------------------------------------------

    def _read_messages(self, sessions: list[int]) -> None:
        """Read what the messages of these sessions' commits say of tasks, each once."""
        by_project: dict[str, list[Checkpoint]] = {}
        for commit in self.store.checkpoints.of_sessions(sessions).values():
            by_project.setdefault(commit.project, []).append(commit)
        folders = self._folders() if by_project else {}
        for identity, commits in by_project.items():
            known = self.store.projects.find(identity)
            if known is None or identity not in folders:
                continue
            mark = f"{_READ}-{known[0]}"
            since = self.store.mark(mark)
            fresh = [commit for commit in commits if commit.committed_at > since][-_COMMITS:]
            if fresh:
                self._read_commits(fresh, folders[identity], mark)

    def _read_commits(self, commits: list[Checkpoint], folders: list[str], mark: str) -> None:
        messages = _messages(folders, [commit.commit for commit in commits])
        with self.store.transaction(self.record):
            for commit in commits:
                for statement in self._said_by(commit, messages.get(commit.commit, "")):
                    self.record.add(TaskEntry(statement))
                    self.store.tasks.state(statement)
            self.store.set_mark(mark, commits[-1].committed_at)

    def _said_by(self, commit: Checkpoint, message: str) -> Iterator[TaskStatement]:
        """Yield that the session which made a commit closed the tasks that its message names."""
        _, _, body = message.partition("\n")  # the subject is in the checkpoint
        maker = next((part for part in commit.parts if part.role == "made"), None)
        for key in trailer_tasks(body, TaskNames(self.keys, project=commit.project)):
            part = maker or commit.parts[0]
            yield TaskStatement(
                key=key,
                at=commit.committed_at,
                action="done",
                project=commit.project,
                agent=part.agent,
                session_id=part.session_id,
                by="trailer",
                text=commit.commit,
            )


def _export_above(folder: str) -> Path | None:
    """Return the export of beads that holds in a folder: in it or above it, up to the top of its
    repository."""
    here = to_path(folder)
    for each in (here, *here.parents):
        export = each / ".beads" / beads.EXPORT
        if export.is_file():
            return export
        if (each / ".git").exists():
            return None
    return None


def _stamp(path: Path) -> int:
    """Return a number that differs when a file has changed; 0 if it cannot be read."""
    try:
        found = path.stat()
    except OSError:
        return 0
    return found.st_mtime_ns ^ found.st_size if found.st_size <= _EXPORT_MAX else 0


def _messages(folders: list[str], shas: list[str]) -> dict[str, str]:
    """Return the whole messages of commits, from the first of these folders where git has them."""
    for folder in folders:
        if not to_path(folder).is_dir():
            continue
        listed = ask(to_path(folder), *_LOG, *shas)
        if listed:
            pairs = (entry.partition("\n") for entry in listed.split("\x00"))
            return {sha.strip(): body for sha, _, body in pairs}
    return {}

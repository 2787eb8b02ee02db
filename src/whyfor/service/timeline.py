"""A project's commits for its page: stories in groups, sessions as lanes, figures, what is not
in a commit yet.

The list is asked of git once per branch tip and kept, since it never changes; its stories come
from the store. Where there is no repository any more, what the store knows is told.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path

import msgspec

from whyfor.config import Settings
from whyfor.git import history
from whyfor.git.run import ask
from whyfor.model.checkpoints import EVIDENCE, Checkpoint, Part
from whyfor.model.errors import BadInput, NotFound
from whyfor.model.paths import to_text
from whyfor.model.sessions import Project, Session
from whyfor.model.stories import CommitStory
from whyfor.service.browse import CommitFilter
from whyfor.service.log import as_commit
from whyfor.service.story_budget import stories_within
from whyfor.service.timeline_lanes import LaneSlice, SessionSpan, lanes
from whyfor.store.open import OpenStore, reading
from whyfor.store.sqlite.checkpoints import Checkpoints
from whyfor.store.sqlite.ranges import CommitMark, Ranges, SpokenWord
from whyfor.story.repositories import ALL, Repository, repository_of

WINDOW = 4000  # commits of a branch that are looked through at a time
PAGE = 40
_BRANCHES = 300
_PENDING = 12  # sessions that are not in a commit yet
_PLACE = re.compile(r"(\*|[0-9a-f]{40}|[0-9a-f]{64})\.(\d{1,9})")
_FRESH = 10.0  # seconds a repository's place is taken for granted


class LinkedShare(msgspec.Struct, frozen=True):
    """Of the commits that fit: how many, linked how."""

    commits: int
    more: bool  # there are older ones that were not counted
    evidence: dict[str, int]

    @property
    def told(self) -> int:
        return sum(self.evidence.values())


class TimelineEntry(msgspec.Struct):
    """One row: a commit, and what of its story fits into two lines."""

    told: CommitStory
    agents: list[str] = []
    said: SpokenWord | None = None  # the request it comes from
    answered: bool = False  # what was said answers the agent's own question
    prompts: int = 0
    answers: int = 0
    tools: int = 0
    was: list[str] = []
    child: bool = False
    group: int = 0  # commits in it, told at its root
    root: str | None = None  # of a group that begins on another page: its first commit
    sessions: list[str] = []


class PendingWork(msgspec.Struct, frozen=True):
    """What sessions did that no commit holds yet."""

    sessions: list[Session]
    files: int


class TimelineRow(msgspec.Struct, frozen=True):
    kind: str  # open | day | story | quiet
    at: int | None
    entry: TimelineEntry | None
    lanes: list[LaneSlice]


class TimelineView(msgspec.Struct, frozen=True):
    project: Project
    folder: str | None
    worktrees: int
    sessions: int
    branches: list[str]
    branch: str  # whose commits these are; "*": all
    authors: list[tuple[str, str]]  # name and address
    since: int | None
    share: LinkedShare
    rows: list[TimelineRow]
    pending: PendingWork | None
    shown: int  # how many of the commits that fit are on this page and those before it
    next: str | None


def timeline(
    settings: Settings,
    identity: str,
    which: CommitFilter,
    *,
    after: str | None = None,
    open_sessions: Iterable[str] = (),
    limit: int = PAGE,
) -> TimelineView:
    """`open_sessions` are those known to be running, as agent:id."""
    with reading(settings) as library:
        known = Checkpoints(library.db).project(identity)
        if known is None:
            raise NotFound(
                f"no project is called {identity[:200]!r}", "See which there are: whyfor projects"
            )
        return _Page(library, known[0], known[1], which, frozenset(open_sessions)).page(
            after, limit
        )


def related(settings: Settings, sha: str) -> tuple[Checkpoint, list[tuple[Part, list[SpokenWord]]]]:
    """What was said for a commit, session by session."""
    with reading(settings) as library:
        found = Checkpoints(library.db).of_commits([sha]).get(sha)
        if found is None:
            raise NotFound(f"{sha[:10]} has no story", "Commits with one: whyfor log")
        ranges = Ranges(library.db)
        told = []
        numbers = ranges.numbers((part.agent, part.session_id) for part in found.parts)
        for part in found.parts:
            session = numbers[part.agent, part.session_id]
            first = (
                part.first
                if part.prompts
                else library.reader.prompt_before(session, part.first) or part.first
            )
            words = ranges.words(session, first, part.last)
            begun = next((n for n, word in enumerate(words) if word.seq >= part.first), len(words))
            # Of what lies before the range, only the request it stems from.
            told.append(
                (
                    part,
                    [*(word for word in words[:begun] if word.role == "request"), *words[begun:]],
                )
            )
        return found, told


# -- which commits -------------------------------------------------------------------------------


class _Line(msgspec.Struct, frozen=True):
    """Commits of a branch from a place on, newest first."""

    commits: list[history.Commit]
    more: bool


@lru_cache(maxsize=8)
def _listed(
    folder: str, tip: str, stamp: str, skip: int, since: int | None, until: int | None
) -> _Line:
    """`stamp` tells one list from another where the tip alone does not: it stands for all refs."""
    ages = [f"--min-age={until // 1000}"] if until is not None else []
    revisions = [*(ALL if tip == "*" else [tip]), f"--skip={skip}", *ages]
    found = history.commits(Path(folder), revisions, limit=WINDOW + 1, since=since)[::-1]
    return _Line(
        [msgspec.structs.replace(commit, body="") for commit in found[:WINDOW]], len(found) > WINDOW
    )


_places: dict[tuple[str, int], tuple[float, Repository | None]] = {}


def _repository(library: OpenStore, number: int) -> Repository | None:
    """Asking git whether a folder is still the project costs more than all else."""
    key = (str(library.settings.home), number)
    known = _places.get(key)
    if (
        known is None
        or time.monotonic() - known[0] > _FRESH
        or (known[1] and not Path(known[1].folder).is_dir())
    ):
        known = _places[key] = (time.monotonic(), repository_of(library.db, number))
    return known[1]


class _Page:
    def __init__(
        self,
        library: OpenStore,
        number: int,
        project: Project,
        which: CommitFilter,
        open_sessions: frozenset[str],
    ) -> None:
        self.library = library
        self.ranges = Ranges(library.db)
        self.store = Checkpoints(library.db)
        self.number = number
        self.project = project
        self.which = which
        self.open = open_sessions
        self.repository = _repository(library, number)
        self.folder = self.repository.folder if self.repository else None
        self.sessions: dict[str, Session] = {}

    def page(self, after: str | None, limit: int) -> TimelineView:
        branches, refs = self._refs()
        branch, tip = self._tip(refs)
        start = 0
        if after:
            found = _PLACE.fullmatch(after)
            if found is None:
                raise BadInput("not a cursor of this list", "Begin again without one.")
            tip, start = found[1], int(found[2])
        base = start // WINDOW * WINDOW
        line = self._line(tip, refs.get("", ""), base)
        known = self.ranges.known(commit.sha for commit in line.commits)
        fits = [
            n for n, commit in enumerate(line.commits) if self._fits(commit, known.get(commit.sha))
        ]
        chosen = [n for n in fits if base + n >= start][:limit]
        rest = chosen[-1] + 1 if chosen else len(line.commits)
        more = rest < len(line.commits) and any(n >= rest for n in fits)
        place = base + rest if more else base + WINDOW if line.more else None
        entries = self._entries([line.commits[n] for n in chosen])
        which = self.which
        first = not (
            after or which.author or which.tag or which.until is not None or which.story is False
        )
        pending = (
            self._pending(line.commits[0].committed_at if line.commits else 0) if first else None
        )
        before = sum(base + n < start for n in fits)
        return TimelineView(
            project=self.project,
            folder=to_text(self.folder) if self.folder else None,
            worktrees=self._worktrees(),
            sessions=self.ranges.sessions_since(self.number, self.which.since or 0),
            branches=branches,
            branch=branch,
            authors=_authors(line.commits),
            since=self.which.since,
            share=_share([line.commits[n] for n in fits], known, more=line.more),
            rows=self._rows(entries, pending),
            pending=pending,
            shown=before + len(chosen),
            next=f"{tip}.{place}" if place is not None and tip else None,
        )

    def _refs(self) -> tuple[list[str], dict[str, str]]:
        """Branches, the latest first, and where each is; under no name, a word that changes when
        any of them does."""
        if self.folder is None:
            return [], {}
        form = "--format=%(objectname) %(refname:lstrip=2)"
        listed = ask(
            self.folder,
            "for-each-ref",
            form,
            "--sort=-committerdate",
            f"--count={_BRANCHES}",
            "refs/heads",
        )
        pairs = [line.split(" ", 1) for line in (listed or "").splitlines()]
        refs = {name: sha for sha, name in pairs}
        return list(refs), {**refs, "": str(hash(listed))}

    def _tip(self, refs: dict[str, str]) -> tuple[str, str]:
        """The branch that is shown and its commit, so that all pages are of one list; nothing if
        there is none yet."""
        if self.folder is None:
            return "", ""
        asked = self.which.branch
        if asked == "*":
            return "*", "*"
        if asked and asked not in refs:
            raise NotFound(f"no branch is called {asked[:200]!r}", "See: git branch")
        if asked:
            return asked, refs[asked]
        found = (ask(self.folder, "rev-parse", "HEAD", "--abbrev-ref", "HEAD") or "").split()
        return (found[1], found[0]) if len(found) == 2 else ("", "")

    def _line(self, tip: str, stamp: str, skip: int) -> _Line:
        since, until = self.which.since, self.which.until
        if self.folder is None:
            kept = self.store.of_commits(self.ranges.kept(self.number, since or 0, WINDOW))
            found = [
                as_commit(c)
                for c in reversed(kept.values())
                if until is None or c.committed_at <= until
            ]
            return _Line(found, more=False)
        if not tip:
            return _Line([], more=False)
        return _listed(str(self.folder), tip, stamp if tip == "*" else "", skip, since, until)

    def _fits(self, commit: history.Commit, known: CommitMark | None) -> bool:
        which = self.which
        return (
            (not which.author or which.author.lower() in f"{commit.author} {commit.email}".lower())
            and (not which.agent or (known is not None and which.agent in known.agents))
            and (not which.tag or (known is not None and known.tag == which.tag))
            and (which.story is None or which.story == (known is not None))
        )

    def _worktrees(self) -> int:
        """Those that are there; a repository without one has none."""
        return sum(Path(top).is_dir() for top in self.repository.tops) if self.repository else 0

    # -- stories ---------------------------------------------------------------------------------

    def _entries(self, commits: Sequence[history.Commit]) -> list[TimelineEntry]:
        """Groups stand where their newest commit does, the root first."""
        told = stories_within(self.library, self.folder, commits, self.ranges.begun(self.number))
        self._meet(part for one in told if one.checkpoint for part in one.checkpoint.parts)
        was = self.ranges.before(self.number, [commit.sha for commit in commits])
        entries = [self._entry(one, was.get(one.commit.sha, [])) for one in told]
        groups: dict[str, list[TimelineEntry]] = {}
        for entry in entries:
            if (kept := entry.told.checkpoint) and kept.parts:
                groups.setdefault(kept.group_root, []).append(entry)
        sizes = self.ranges.group_sizes(groups)
        for root, members in groups.items():
            members.sort(key=lambda entry: entry.told.commit.committed_at)
            members.sort(key=lambda entry: _kept(entry).id != root)
            self._join(root, members, sizes.get(root, len(members)))
        placed: list[TimelineEntry] = []
        for entry in entries:
            kept = entry.told.checkpoint
            own = groups.pop(kept.group_root, []) if kept and kept.parts else [entry]
            placed += own
        return placed

    def _join(self, root: str, members: list[TimelineEntry], size: int) -> None:
        here = _kept(members[0]).id == root
        for number, entry in enumerate(members):
            entry.child = number > 0
        if size > 1:
            members[0].group = max(size, len(members)) if here else 0
            if not here:
                first = next(iter(self.store.beginning("id", root)), None)
                members[0].root = first

    def _entry(self, told: CommitStory, was: list[str]) -> TimelineEntry:
        parts = told.checkpoint.parts if told.checkpoint else []
        entry = TimelineEntry(
            told, was=was, agents=list(dict.fromkeys(part.agent for part in parts))
        )
        entry.sessions = [part.name for part in parts]
        entry.prompts = sum(part.prompts for part in parts)
        for number, part in enumerate(parts):
            session = self.sessions[part.name].id
            tools, questions = self.ranges.done(session, part.first, part.last)
            entry.tools += tools
            asked = (
                self.ranges.last_request(session, part.first, part.last) if part.prompts else None
            )
            if questions:
                answers = [
                    word
                    for word in self.ranges.words(session, part.first, part.last)
                    if word.role == "answer"
                ]
                entry.answers += len(answers)
                if asked is None and answers and number == 0:
                    asked, entry.answered = answers[-1], True
            if number == 0 and asked is None:
                before = self.library.reader.prompt_before(session, part.first)
                asked = self.ranges.last_request(session, before, before) if before else None
            entry.said = entry.said or asked
        return entry

    def _meet(self, parts: Iterable[Part]) -> None:
        """The sessions of these, all at once."""
        numbers = self.ranges.numbers((part.agent, part.session_id) for part in parts)
        for session in self.library.reader.by_number(list(numbers.values())).values():
            self.sessions[f"{session.agent}:{session.session_id}"] = session

    def _pending(self, since: int) -> PendingWork | None:
        """Sessions that wrote something since their last commit, or are still open, later than
        the newest one."""
        numbers = dict(self.ranges.lately(self.number, since, _PENDING))
        if not numbers:
            return None
        found: list[Session] = []
        files: set[str] = set()
        sessions = self.library.reader.by_number(list(numbers))
        for number, last in numbers.items():
            session = sessions[number]
            name = f"{session.agent}:{session.session_id}"
            written = self.ranges.written(number, last)
            if (written or name in self.open) and (
                not self.which.agent or session.agent == self.which.agent
            ):
                found.append(session)
                files |= written
                self.sessions.setdefault(name, session)
        return PendingWork(found, len(files)) if found else None

    # -- rows and lanes --------------------------------------------------------------------------

    def _rows(self, entries: list[TimelineEntry], pending: PendingWork | None) -> list[TimelineRow]:
        rows: list[tuple[str, int | None, TimelineEntry | None]] = []
        if pending is not None:
            rows.append(("open", int(time.time() * 1000), None))
        day = ""
        for entry in entries:
            at = entry.told.commit.committed_at
            today = time.strftime("%Y-%m-%d", time.localtime(at / 1000))
            if today != day and not entry.child:
                rows.append(("day", at, None))
                day = today
            story = bool(entry.told.checkpoint and entry.told.checkpoint.parts)
            rows.append(("story" if story else "quiet", at, entry))
        times = [at if kind != "day" else None for kind, at, _ in rows]
        drawn = lanes(times, self._spans(rows, pending))
        return [
            TimelineRow(kind, at, entry, pieces)
            for (kind, at, entry), pieces in zip(rows, drawn, strict=True)
        ]

    def _spans(
        self,
        rows: Sequence[tuple[str, int | None, TimelineEntry | None]],
        pending: PendingWork | None,
    ) -> list[SessionSpan]:
        tied: dict[str, set[int]] = {}
        for number, (_, _, entry) in enumerate(rows):
            for name in entry.sessions if entry else ():
                tied.setdefault(name, set()).add(number)
        waiting = {f"{s.agent}:{s.session_id}" for s in pending.sessions} if pending else set()
        for name in waiting:
            tied.setdefault(name, set())
        times = [at for kind, at, _ in rows if at is not None and kind != "day"]
        if not times:
            return []
        spans = []
        for name, own in tied.items():
            session = self.sessions[name]
            active = self.ranges.active(session.id, max(times))
            start = session.started_at or min((since for since, _ in active), default=min(times))
            end = session.ended_at or start
            spans.append(
                SessionSpan(
                    name, session.agent, start, end, active, frozenset(own), open=name in waiting
                )
            )
        return spans


def _kept(entry: TimelineEntry) -> Checkpoint:
    assert entry.told.checkpoint is not None  # only commits with a story are in a group
    return entry.told.checkpoint


def _authors(commits: Sequence[history.Commit]) -> list[tuple[str, str]]:
    """By how much they committed."""
    count: dict[str, int] = {}
    names: dict[str, str] = {}
    for commit in commits:
        count[commit.email] = count.get(commit.email, 0) + 1
        names.setdefault(commit.email, commit.author)
    return [(names[email], email) for email in sorted(count, key=lambda email: -count[email])[:100]]


def _share(
    commits: Sequence[history.Commit], known: dict[str, CommitMark], *, more: bool
) -> LinkedShare:
    evidence = dict.fromkeys(EVIDENCE[:-1], 0)
    for commit in commits:
        if (found := known.get(commit.sha)) and found.evidence in evidence:
            evidence[found.evidence] += 1
    return LinkedShare(
        len(commits), more, {name: number for name, number in evidence.items() if number}
    )

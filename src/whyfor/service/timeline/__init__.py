"""The timeline page of a project: commits with stories in groups, sessions as lanes, counts, and
uncommitted work.

The list of commits is read from git once per branch tip and cached, since it never changes; stories
come from the store. Without a repository, the page shows what the store knows.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path

import msgspec

from whyfor.config import Settings
from whyfor.git import history
from whyfor.git.run import ask
from whyfor.git.worktree import find_changes
from whyfor.model.checkpoints import EVIDENCE, NO_SESSION, NOT_THEN, Checkpoint, CommitMark, Part
from whyfor.model.errors import BadInput, NotFound
from whyfor.model.events import EventRef, SpokenWord
from whyfor.model.listing import ListFilter
from whyfor.model.paths import to_text
from whyfor.model.query import Filters
from whyfor.model.sessions import Project, Session
from whyfor.model.stories import MERGE, CommitFilter, CommitStory, stored_commit
from whyfor.service.timeline.lanes import LaneSlice, SessionSpan, lanes
from whyfor.store.open import OpenStore, reading
from whyfor.story.repositories import ALL, Repository, repository_of
from whyfor.story.story_budget import stories_within
from whyfor.story.tasks.board import with_task

WINDOW = 4000  # commits of a branch that are looked through at a time
PAGE = 40
_BRANCHES = 300
_PENDING = 12  # sessions that are not in a commit yet
_COMPARED = 1000  # files of theirs that are compared with the last commit
_PLACE = re.compile(r"(\*|[0-9a-f]{40}|[0-9a-f]{64})\.(\d{1,9})")
_FRESH = 10.0  # seconds a repository's place is taken for granted
SHORT_REASONS = {  # in a row there is room for few words; the whole reason is in its title
    NO_SESSION: "no agent took part",
    NOT_THEN: "before the first session kept here",
    MERGE: "merge, no conversation of its own",
}


class LinkedShare(msgspec.Struct, frozen=True):
    """How many of the matching commits are linked, by evidence."""

    commits: int
    more: bool  # there are older ones that were not counted
    evidence: dict[str, int]

    @property
    def told(self) -> int:
        return sum(self.evidence.values())


class TimelineEntry(msgspec.Struct):
    """One row: a commit with a short form of its story."""

    told: CommitStory
    agents: list[str] = []
    said: SpokenWord | None = None  # the request it comes from
    answered: bool = False  # the request is an answer to the agent's own question
    prompts: int = 0
    answers: int = 0
    tools: int = 0
    was: list[str] = []
    child: bool = False
    group: int = 0  # number of commits in it, set on its root
    root: str | None = None  # of a group that begins on another page: its first commit
    sessions: list[str] = []


class PendingWork(msgspec.Struct, frozen=True):
    """Sessions whose work is in no commit yet."""

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
    """Return one page of the timeline; `open_sessions` are those known to be running, as
    agent:id."""
    with reading(settings) as library:
        known = library.projects.find(identity)
        if known is None:
            raise NotFound(
                f"no project is called {identity[:200]!r}", "See which there are: whyfor projects"
            )
        which = with_task(library, which)
        page = _Page(library, known[0], known[1], which, frozenset(open_sessions))
        return page.page(after, limit)


def newest_story_project(settings: Settings) -> str | None:
    """Return the project with the newest commit that has a story; None if no commit has one."""
    with reading(settings) as library:
        found = library.search.commits([], Filters(), 1)
    return found[0].project if found else None


def related(settings: Settings, sha: str) -> tuple[Checkpoint, list[tuple[Part, list[SpokenWord]]]]:
    """Return a commit's checkpoint and what was said for it, by session."""
    with reading(settings) as library:
        found = library.checkpoints.of_commits([sha]).get(sha)
        if found is None:
            raise NotFound(f"{sha[:10]} has no story", "Commits with one: whyfor log")
        numbers = library.sessions.numbers((part.agent, part.session_id) for part in found.parts)
        told = []
        for part in found.parts:
            session = numbers[part.agent, part.session_id]
            told.append((part, _words_for(library, session, part)))
        return found, told


def _words_for(library: OpenStore, session: int, part: Part) -> list[SpokenWord]:
    """Return what was said in a range; if it has no prompt, also the request it stems from."""
    first = part.first
    if not part.prompts:
        first = library.conversation.prompt_before(session, part.first) or part.first
    words = []
    for word in library.conversation.words(session, first, part.last):
        inside = any(begin <= word.seq <= end for begin, end in part.ranges)
        if inside or (word.seq < part.first and word.role == "request"):
            words.append(word)
    return words


# -- which commits -------------------------------------------------------------------------------


class _Line(msgspec.Struct, frozen=True):
    """Commits of a branch from a position on, newest first."""

    commits: list[history.Commit]
    more: bool


class _ListKey(msgspec.Struct, frozen=True):
    """Identifies a list of commits in the cache."""

    folder: str
    tip: str
    stamp: str  # distinguishes lists with the same tip: a value for all refs
    skip: int
    since: int | None
    until: int | None


@lru_cache(maxsize=8)
def _listed(key: _ListKey) -> _Line:
    revisions = [*(ALL if key.tip == "*" else [key.tip]), f"--skip={key.skip}"]
    if key.until is not None:
        revisions.append(f"--min-age={key.until // 1000}")
    found = history.commits(Path(key.folder), revisions, limit=WINDOW + 1, since=key.since)[::-1]
    shown = [msgspec.structs.replace(commit, body="") for commit in found[:WINDOW]]
    return _Line(shown, more=len(found) > WINDOW)


_places: dict[tuple[str, int], tuple[float, Repository | None]] = {}


def _repository(library: OpenStore, number: int) -> Repository | None:
    """Return a project's repository; None if it is gone. Cached for _FRESH, because asking git
    whether a folder is still the project is the most expensive step."""
    key = (str(library.settings.home), number)
    if key in _places:
        asked_at, found = _places[key]
        gone = found is not None and not Path(found.folder).is_dir()
        if time.monotonic() - asked_at <= _FRESH and not gone:
            return found
    found = repository_of(library, number)
    _places[key] = (time.monotonic(), found)
    return found


class _Window(msgspec.Struct, frozen=True):
    """The commits examined for one page, and which of them match the filter."""

    tip: str
    base: int  # how many commits of the branch come before them
    start: int  # where the page begins, counted from the branch's tip
    line: _Line
    known: dict[str, CommitMark]
    fits: list[int]  # places in `line`

    def chosen(self, limit: int) -> list[int]:
        return [n for n in self.fits if self.base + n >= self.start][:limit]

    def next(self, chosen: list[int]) -> str | None:
        """Return the cursor of the next page; None at the end."""
        rest = chosen[-1] + 1 if chosen else len(self.line.commits)
        if any(n >= rest for n in self.fits):
            place = self.base + rest
        elif self.line.more:
            place = self.base + WINDOW
        else:
            return None
        return f"{self.tip}.{place}" if self.tip else None


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
        window = self._window(tip, refs.get("", ""), after)
        line = window.line
        chosen = window.chosen(limit)
        entries = self._entries([line.commits[n] for n in chosen])
        pending = None
        if not after and self._shows_pending():
            pending = self._pending(line.commits[0].committed_at if line.commits else 0)
        before = sum(window.base + n < window.start for n in window.fits)
        return TimelineView(
            project=self.project,
            folder=to_text(self.folder) if self.folder else None,
            worktrees=self._worktrees(),
            sessions=self.library.sessions.count_since(self.number, self.which.since or 0),
            branches=branches,
            branch=branch,
            authors=_authors(line.commits),
            since=self.which.since,
            share=_share([line.commits[n] for n in window.fits], window.known, more=line.more),
            rows=self._rows(entries, pending),
            pending=pending,
            shown=before + len(chosen),
            next=window.next(chosen),
        )

    def _window(self, tip: str, stamp: str, after: str | None) -> _Window:
        start = 0
        if after:
            found = _PLACE.fullmatch(after)
            if found is None:
                raise BadInput("not a cursor of this list", "Begin again without one.")
            tip, start = found[1], int(found[2])
        base = start // WINDOW * WINDOW
        line = self._line(tip, stamp, base)
        known = self.library.checkpoints.known(commit.sha for commit in line.commits)
        fits = []
        for number, commit in enumerate(line.commits):
            if self._fits(commit, known.get(commit.sha)):
                fits.append(number)
        return _Window(tip, base, start, line, known, fits)

    def _shows_pending(self) -> bool:
        """Return whether the filter allows uncommitted work."""
        which = self.which
        if which.author or which.tag or which.task:
            return False
        return which.until is None and which.story is not False

    def _refs(self) -> tuple[list[str], dict[str, str]]:
        """Return the branches, latest first, and the commit of each; under the empty name, a value
        that changes when any branch does. Without a repository, branches are those of sessions."""
        if self.folder is None:
            rows = ListFilter(projects=(self.number,))
            return self.library.listing.branches(rows, _BRANCHES), {}
        form = "--format=%(objectname) %(refname:lstrip=2)"
        options = ("--sort=-committerdate", f"--count={_BRANCHES}")
        listed = ask(self.folder, "for-each-ref", form, *options, "refs/heads") or ""
        refs = {}
        for line in listed.splitlines():
            sha, name = line.split(" ", 1)
            refs[name] = sha
        return list(refs), {**refs, "": str(hash(listed))}

    def _tip(self, refs: dict[str, str]) -> tuple[str, str]:
        """Return the branch and its commit, so that all pages use one list; empty if there is no
        commit yet."""
        asked = self.which.branch
        if self.folder is None:
            return asked or "", ""
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
            kept = self.library.checkpoints.of_commits(
                self.library.checkpoints.kept_since(self.number, since or 0, WINDOW)
            )
            found = []
            for checkpoint in reversed(kept.values()):
                if until is None or checkpoint.committed_at <= until:
                    found.append(stored_commit(checkpoint))
            return _Line(found, more=False)
        if not tip:
            return _Line([], more=False)
        stamp = stamp if tip == "*" else ""
        return _listed(_ListKey(str(self.folder), tip, stamp, skip, since, until))

    def _fits(self, commit: history.Commit, known: CommitMark | None) -> bool:
        which = self.which
        if which.story is not None and which.story != (known is not None):
            return False
        if which.agent and (known is None or which.agent not in known.agents):
            return False
        if which.tag and (known is None or which.tag != known.tag):
            return False
        if which.commits is not None and commit.sha not in which.commits:
            return False
        if not self._is_on_branch(known):
            return False
        if not which.author:
            return True
        return which.author.lower() in f"{commit.author} {commit.email}".lower()

    def _is_on_branch(self, known: CommitMark | None) -> bool:
        """Return whether a commit's sessions were on the branch that is asked for; where there is a
        repository, git has chosen the commits."""
        branch = self.which.branch
        if self.folder is not None or branch in (None, "*"):
            return True
        return known is not None and branch in known.branches

    def _worktrees(self) -> int:
        """Return the number of existing work trees; 0 without a repository."""
        return sum(Path(top).is_dir() for top in self.repository.tops) if self.repository else 0

    # -- stories ---------------------------------------------------------------------------------

    def _entries(self, commits: Sequence[history.Commit]) -> list[TimelineEntry]:
        """Return the rows of the commits; a group stands where its newest commit is, root first."""
        told = stories_within(
            self.library, self.folder, commits, self.library.sessions.first_started(self.number)
        )
        self._load_sessions(told)
        was = self.library.checkpoints.rewritten_from(
            self.number, [commit.sha for commit in commits]
        )
        groups: dict[str, list[TimelineEntry]] = {}
        for one in told:
            entry = self._entry(one, was.get(one.commit.sha, []))
            key = one.commit.sha
            if one.checkpoint and one.checkpoint.parts:
                key = one.checkpoint.group_root
            groups.setdefault(key, []).append(entry)
        stories = [root for root, members in groups.items() if members[0].sessions]
        sizes = self.library.checkpoints.group_sizes(stories)
        placed: list[TimelineEntry] = []
        for root, members in groups.items():
            if members[0].sessions:
                members.sort(key=lambda entry: entry.told.commit.committed_at)
                members.sort(key=lambda entry: _checkpoint(entry).id != root)
                self._join(root, members, sizes.get(root, len(members)))
            placed += members
        return placed

    def _join(self, root: str, members: list[TimelineEntry], size: int) -> None:
        """Mark the followers of a group's first commit, and on that the group's size or root."""
        first, *children = members
        for entry in children:
            entry.child = True
        if size > 1:
            if _checkpoint(first).id == root:
                first.group = max(size, len(members))
            else:
                first.root = next(iter(self.library.checkpoints.beginning("id", root)), None)

    def _entry(self, told: CommitStory, was: list[str]) -> TimelineEntry:
        parts = told.checkpoint.parts if told.checkpoint else []
        entry = TimelineEntry(
            told, was=was, agents=list(dict.fromkeys(part.agent for part in parts))
        )
        entry.sessions = [part.name for part in parts]
        entry.prompts = sum(part.prompts for part in parts)
        for number, part in enumerate(parts):
            asked = self._count(entry, part, first=number == 0)
            entry.said = entry.said or asked
        return entry

    def _count(self, entry: TimelineEntry, part: Part, *, first: bool) -> SpokenWord | None:
        """Add a range's tools and answers to its commit, and return the request it comes from.

        Only for the first range can this be an answer, or a prompt before it.
        """
        session = self.sessions[part.name].id
        tools, questions = self.library.conversation.work_counts(session, part.first, part.last)
        entry.tools += tools
        asked = None
        if part.prompts:
            asked = self.library.conversation.last_request(session, part.first, part.last)
        answers: list[SpokenWord] = []
        if questions:
            words = self.library.conversation.words(session, part.first, part.last)
            answers = [word for word in words if word.role == "answer"]
            entry.answers += len(answers)
        if asked is not None or not first:
            return asked
        if answers:
            entry.answered = True
            return answers[-1]
        before = self.library.conversation.prompt_before(session, part.first)
        return self.library.conversation.last_request(session, before, before) if before else None

    def _load_sessions(self, told: Iterable[CommitStory]) -> None:
        """Load the sessions of all stories at once."""
        names: list[tuple[str, str]] = []
        for one in told:
            if one.checkpoint:
                names += [(part.agent, part.session_id) for part in one.checkpoint.parts]
        numbers = self.library.sessions.numbers(names)
        for session in self.library.sessions.by_number(list(numbers.values())).values():
            self.sessions[f"{session.agent}:{session.session_id}"] = session

    def _pending(self, since: int) -> PendingWork | None:
        """Return sessions that wrote files which differ from the last commit now, or are still
        open, later than the newest commit; None if there are none."""
        numbers = dict(self.library.sessions.recent(self.number, since, _PENDING))
        sessions = self.library.sessions.by_number(list(numbers))
        written: dict[str, set[str]] = {}
        for number, last in numbers.items():
            session = sessions[number]
            if self.which.agent and session.agent != self.which.agent:
                continue
            last_at = self.library.conversation.time_of(EventRef(number, last)) or 0
            name = f"{session.agent}:{session.session_id}"
            written[name] = self.library.sessions.files_since(session, last, last_at)
            self.sessions.setdefault(name, session)
        changed = self._changed(set().union(*written.values()))
        found = [name for name, files in written.items() if files & changed or name in self.open]
        return PendingWork([self.sessions[name] for name in found], len(changed)) if found else None

    def _changed(self, written: set[str]) -> set[str]:
        """Return which of these files differ from the last commit of their work tree. Without a
        repository nobody can tell: all of them."""
        if self.repository is None:
            return written
        found: set[str] = set()
        asked = sorted(written)[:_COMPARED]
        for top in map(Path, self.repository.tops):
            inside = [path for path in asked if path.startswith(f"{top}/")]
            if inside and top.is_dir():
                head = ask(top, "rev-parse", "--verify", "--quiet", "HEAD")
                found |= find_changes(top, head, inside).changed
        return found

    # -- rows and lanes --------------------------------------------------------------------------

    def _rows(self, entries: list[TimelineEntry], pending: PendingWork | None) -> list[TimelineRow]:
        rows = list(_plain_rows(entries, pending))
        times = [row.at if row.kind != "day" else None for row in rows]
        drawn = lanes(times, self._spans(rows, pending))
        return [
            msgspec.structs.replace(row, lanes=pieces)
            for row, pieces in zip(rows, drawn, strict=True)
        ]

    def _spans(self, rows: Sequence[TimelineRow], pending: PendingWork | None) -> list[SessionSpan]:
        tied: dict[str, set[int]] = {}
        for number, row in enumerate(rows):
            for name in row.entry.sessions if row.entry else ():
                tied.setdefault(name, set()).add(number)
        waiting = {f"{s.agent}:{s.session_id}" for s in pending.sessions} if pending else set()
        for name in waiting:
            tied.setdefault(name, set())
        times = [row.at for row in rows if row.at is not None and row.kind != "day"]
        if not times:
            return []
        spans = []
        for name, own in tied.items():
            span = self._span(self.sessions[name], times)
            spans.append(msgspec.structs.replace(span, rows=frozenset(own), open=name in waiting))
        return spans

    def _span(self, session: Session, times: list[int]) -> SessionSpan:
        # what a copy begins with happened in another session
        first = session.own_from
        active = self.library.conversation.active_times(session.id, max(times), first)
        begun = session.started_at
        if first > 1:
            begun = self.library.conversation.time_from(session.id, first)
        start = begun or min((since for since, _ in active), default=min(times))
        end = session.ended_at or start
        name = f"{session.agent}:{session.session_id}"
        return SessionSpan(name, session.agent, start, end, active)


def _plain_rows(entries: list[TimelineEntry], pending: PendingWork | None) -> Iterator[TimelineRow]:
    """Yield the rows of a page without lanes: uncommitted work, then each day's heading and
    commits."""
    if pending is not None:
        yield TimelineRow("open", int(time.time() * 1000), None, [])
    day = ""
    for entry in entries:
        at = entry.told.commit.committed_at
        today = time.strftime("%Y-%m-%d", time.localtime(at / 1000))
        if today != day and not entry.child:
            yield TimelineRow("day", at, None, [])
            day = today
        yield TimelineRow("story" if entry.sessions else "quiet", at, entry, [])


def _checkpoint(entry: TimelineEntry) -> Checkpoint:
    assert entry.told.checkpoint is not None  # only commits with a story are in a group
    return entry.told.checkpoint


def _authors(commits: Sequence[history.Commit]) -> list[tuple[str, str]]:
    """Return the authors, most commits first."""
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

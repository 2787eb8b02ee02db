"""The page Map: which session wrote into which commit of a branch, and which files that changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cached_property

import msgspec

from whyfor.config import Settings
from whyfor.git import history
from whyfor.git.line_changes import read_line_changes
from whyfor.git.place import shallow_edge
from whyfor.git.run import ask
from whyfor.model.branch_map import (
    BRANCHES,
    BY_HAND,
    COMMITS,
    FILES,
    SOURCES,
    BranchMap,
    MapBand,
    MapCommit,
    MapSource,
    TrailCommit,
)
from whyfor.model.errors import NotFound
from whyfor.model.lines import CommitLines, LineWriter
from whyfor.model.query import Filters
from whyfor.model.sessions import Project, Session
from whyfor.model.stories import CommitStory
from whyfor.recall.branch_context import branch_base
from whyfor.service.shared_map import shared_map
from whyfor.store.open import LocalStore, reading, reading_local
from whyfor.story.commit_stories import stories_of
from whyfor.story.lines.known_lines import lines_of_stories, story_parts
from whyfor.story.lines.turn_authors import TurnReader
from whyfor.story.repositories import Repository, repository_of

_OPEN = 3  # sessions without a commit that are shown


class MapQuery(msgspec.Struct, frozen=True):
    """What is asked: a branch of a project, since another one; the session to follow."""

    project: str = ""
    branch: str = ""
    against: str = ""
    session: str = ""  # agent:id, or by-hand


def map_page(settings: Settings, query: MapQuery) -> BranchMap:
    """Return the map of a branch. Raises NotFound for an unknown project or branch, and if there
    is no project at all."""
    if settings.lend is not None:
        with reading(settings) as lent:
            return shared_map(lent, query.project, query.branch, query.session)
    with reading_local(settings) as library:
        known = library.projects.known()
        identities = [project.identity for _, project in known if project.evidence != "path"]
        identity = query.project or _latest_project(library, identities)
        number = next((n for n, project in known if project.identity == identity), None)
        if number is None:
            raise NotFound(f"no project is called {identity[:80]!r}", "See: whyfor projects")
        project = dict(known)[number]
        repository = repository_of(library, number)
        if repository is None:
            return BranchMap(project, identities, state="no-git")
        return _MapReader(library, repository, project, identities, query).map()


def _latest_project(library: LocalStore, identities: Sequence[str]) -> str:
    for session in library.sessions.matching(Filters(), limit=50, subagents=False):
        if session.project in identities:
            return str(session.project)
    return identities[0] if identities else ""


class _MapReader:
    def __init__(
        self,
        library: LocalStore,
        repository: Repository,
        project: Project,
        identities: list[str],
        query: MapQuery,
    ) -> None:
        self.library = library
        self.repository = repository
        self.folder = repository.folder
        self.project = project
        self.identities = identities
        self.query = query
        self.turns = TurnReader(library)
        self.wrote: dict[tuple[str, str], list[LineWriter]] = {}  # by source and commit
        self.unknown: Counter[str] = Counter()  # lines by commit
        self.sessions: dict[int, Session] = {}
        self.edge = shallow_edge(self.folder)

    @cached_property
    def branches(self) -> list[str]:
        options = ("--sort=-committerdate", f"--count={BRANCHES}", "--format=%(refname:lstrip=2)")
        return (ask(self.folder, "for-each-ref", *options, "refs/heads") or "").splitlines()

    def map(self) -> BranchMap:
        current = ask(self.folder, "symbolic-ref", "--quiet", "--short", "HEAD")
        branch = self.query.branch or current or ""
        for name in (self.query.branch, self.query.against):
            if name and name not in self.branches:
                raise NotFound(f"no branch is called {name[:200]!r}", "See: git branch")
        empty = BranchMap(self.project, self.identities, branch, self.branches)
        if not branch or branch not in self.branches:
            return msgspec.structs.replace(empty, state="no-branch")
        base, against = self._base(branch)
        commits, older = self._commits(base, branch)
        empty = msgspec.structs.replace(empty, against=against, older=older)
        if not commits:
            return msgspec.structs.replace(empty, state="no-commits")
        return self._drawn(empty, commits)

    def _base(self, branch: str) -> tuple[str | None, str]:
        """Where the branch began, and the name of the one it is compared with."""
        if self.query.against:
            base = ask(self.folder, "merge-base", "--end-of-options", self.query.against, branch)
            return base, self.query.against
        base = branch_base(self.folder, branch)
        names = [name for name in ("main", "master") if name in self.branches and name != branch]
        return base, names[0] if base and names else ""

    def _commits(self, base: str | None, branch: str) -> tuple[list[history.Commit], int]:
        """The newest commits of the branch that are no merges, oldest first, and how many older
        ones are left out; of a main branch nobody counts them."""
        tip = f"refs/heads/{branch}"
        revisions = [f"{base}..{tip}" if base else tip, "--no-merges"]
        found = history.commits(self.folder, revisions, limit=COMMITS + 1)
        if len(found) <= COMMITS:
            return found, 0
        if base is None:
            return found[1:], 0
        total = ask(self.folder, "rev-list", "--count", "--no-merges", f"{base}..{tip}")
        return found[1:], int(total or COMMITS) - COMMITS

    # -- lines -----------------------------------------------------------------------------------

    def _drawn(self, page: BranchMap, commits: list[history.Commit]) -> BranchMap:
        shas = [commit.sha for commit in commits]
        stories = {told.commit.sha: told for told in stories_of(self.library, self.folder, shas)}
        lines = lines_of_stories(self.library, self.repository, stories.values())
        counts: Counter[tuple[str, str, str]] = Counter()
        added: Counter[str] = Counter()
        for sha, changes in read_line_changes(self.folder, shas):
            known = lines.get(sha)
            for change in changes:
                if change.plain:
                    added[sha] += change.plus
                    self._count(counts, sha, change.path, change.added_lines, known)
        bands = [MapBand(*key, number) for key, number in counts.items() if number]
        sources, left = self._sources(bands, commits[0].committed_at, page.branch)
        drawn = {source.name for source in sources}
        files, more_files = _files(bands, drawn)
        kept = [band for band in bands if band.source in drawn and band.path in files]
        selected = self._selected(sources)
        marks = {sha: _commit(stories[sha], added[sha]) for sha in shas}
        return msgspec.structs.replace(
            page,
            state="" if kept else "no-story",
            sources=sources,
            commits=[marks[sha] for sha in shas],
            files=files,
            bands=kept,
            selected=selected,
            trail=self._trail(selected, bands, stories, marks),
            unplaced=sum(self.unknown.values()),
            more_sources=left,
            more_files=more_files,
        )

    def _count(
        self,
        counts: Counter[tuple[str, str, str]],
        sha: str,
        path: str,
        added: set[int],
        known: CommitLines | None,
    ) -> None:
        files = {file.path: file for file in known.files} if known else {}
        by_line = files[path].by_line() if path in files else {}
        for line in added:
            told = by_line.get(line)
            name = self._name(told[0].session) if told else None
            if told and name:
                counts[name, sha, path] += 1
                self.wrote.setdefault((name, sha), []).append(told[0])
            elif known is not None and known.inferred and sha not in self.edge:
                counts[BY_HAND, sha, path] += 1
            else:
                self.unknown[sha] += 1

    def _name(self, number: int) -> str | None:
        if number not in self.sessions:
            self.sessions.update(self.library.sessions.by_number([number]))
        session = self.sessions.get(number)
        return session.name if session else None

    # -- sources ---------------------------------------------------------------------------------

    def _sources(
        self, bands: Sequence[MapBand], since: int, branch: str
    ) -> tuple[list[MapSource], int]:
        lines: Counter[str] = Counter()
        for band in bands:
            lines[band.source] += band.lines
        kept = [name for name, _ in lines.most_common(SOURCES)]
        by_name = {session.name: session for session in self.sessions.values()}
        found = [self._source(by_name[name], lines[name]) for name in kept if name in by_name]
        room = SOURCES - len(kept)
        found += self._open_sessions(lines, since, branch)[: min(_OPEN, max(0, room))]
        found.sort(key=lambda source: (source.lines == 0, source.at or 0))
        if BY_HAND in kept:
            hand = MapSource(BY_HAND, "", "", "By hand", None, 0, lines[BY_HAND])
            place = sum(1 for source in found if source.lines)
            found.insert(place, hand)
        return found, len(lines) - len(kept)

    def _source(self, session: Session, lines: int) -> MapSource:
        writers = [
            writer
            for (name, _), own in self.wrote.items()
            if name == session.name
            for writer in own
        ]
        self.turns.expect_writers(writers)
        asked = {self.turns.asked(w.session, w.seq, w.at) for w in set(writers)}
        turns = {word.turn for word in asked if word is not None}
        at = session.started_at
        agent, ident = session.agent, session.session_id
        return MapSource(session.name, agent, ident, session.title or "", at, len(turns), lines)

    def _open_sessions(self, lines: Counter[str], since: int, branch: str) -> list[MapSource]:
        """Sessions of the branch that nothing is committed of, the newest first."""
        within = Filters(projects=(self.repository.id,), since=since, branch=branch)
        found = self.library.sessions.matching(within, limit=SOURCES, subagents=False)
        committed = self.library.checkpoints.of_sessions([session.id for session in found])
        named = {part.name for one in committed.values() for part in one.parts}
        return [
            MapSource(s.name, s.agent, s.session_id, s.title or "", s.started_at, s.prompts, 0)
            for s in found
            if s.name not in lines and s.name not in named
        ]

    def _selected(self, sources: Sequence[MapSource]) -> str:
        names = [source.name for source in sources]
        if self.query.session in names:
            return self.query.session
        best = max(sources, key=lambda source: source.lines, default=None)
        return best.name if best else ""

    def _trail(
        self,
        selected: str,
        bands: Sequence[MapBand],
        stories: dict[str, CommitStory],
        marks: dict[str, MapCommit],
    ) -> list[TrailCommit]:
        found = []
        for sha, commit in marks.items():
            own = [band for band in bands if band.commit == sha and band.source == selected]
            if own:
                found.append(self._trail_commit(selected, commit, stories[sha], own, bands))
        return found

    def _trail_commit(
        self,
        selected: str,
        commit: MapCommit,
        told: CommitStory,
        own: Sequence[MapBand],
        bands: Sequence[MapBand],
    ) -> TrailCommit:
        rest: Counter[str] = Counter()
        for band in bands:
            if band.commit == commit.sha and band.source != selected:
                rest["person" if band.source == BY_HAND else band.source.split(":")[0]] += (
                    band.lines
                )
        if self.unknown[commit.sha]:
            rest["unknown"] = self.unknown[commit.sha]
        part = next((part for part in story_parts(told) if part.name == selected), None)
        files = {band.path: band.lines for band in sorted(own, key=lambda band: -band.lines)}
        return TrailCommit(
            commit=commit,
            lines=sum(band.lines for band in own),
            rest=dict(rest),
            files=files,
            asked=self._asked(selected, commit.sha),
            evidence=part.evidence if part else "",
            confidence=part.confidence if part else "",
        )

    def _asked(self, selected: str, sha: str) -> str:
        """What a person had said last before the first line that a session wrote for a commit."""
        writers = self.wrote.get((selected, sha), [])
        if not writers:
            return ""
        first = min(writers, key=lambda writer: writer.at)
        self.turns.expect_writers([first])
        asked = self.turns.asked(first.session, first.seq, first.at)
        return asked.text if asked else ""


def _commit(told: CommitStory, added: int) -> MapCommit:
    commit, note = told.commit, told.annotation
    tag = note.tag if note else ""
    return MapCommit(commit.sha, commit.subject, tag, commit.committed_at, added)


def _files(bands: Sequence[MapBand], drawn: set[str]) -> tuple[dict[str, int], int]:
    """The files with the most lines, by folder, and how many others there are."""
    lines: Counter[str] = Counter()
    for band in bands:
        if band.source in drawn:
            lines[band.path] += band.lines
    kept = [path for path, _ in lines.most_common(FILES)]
    kept.sort(key=lambda path: (path.rpartition("/")[0] == "", path.rpartition("/")))
    return {path: lines[path] for path in kept}, len(lines) - len(kept)

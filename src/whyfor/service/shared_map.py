"""The page Map on a team server: what laptops counted of the commits that members shared.

Of each commit a server knows how many lines each session wrote, in all and in each file. Which
lines those are is known where the repository is, and not here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterator, Sequence

import msgspec

from whyfor.model.branch_map import (
    BRANCHES,
    COMMITS,
    FILES,
    SOURCES,
    BranchMap,
    MapBand,
    MapCommit,
    MapSource,
    TrailCommit,
)
from whyfor.model.checkpoints import ChangedFile, Checkpoint, Part
from whyfor.model.errors import NotFound
from whyfor.model.lines import LineWriter
from whyfor.model.listing import ListFilter
from whyfor.model.sessions import Project, Session
from whyfor.store.open import OpenStore
from whyfor.story.lines.turn_authors import TurnReader

_LOOKED = 2_000  # commits with a story among which those of a branch are looked for


def shared_map(library: OpenStore, identity: str, branch: str, session: str) -> BranchMap:
    """Return the map of a branch that sessions were on, else of all commits. Raises NotFound for an
    unknown project."""
    number, project = _project(library, identity)
    branches = library.listing.branches(ListFilter(projects=(number,)), BRANCHES)
    newest = library.checkpoints.kept_since(number, 0, _LOOKED)
    if branch:
        marks = library.checkpoints.known(newest)
        newest = [sha for sha in newest if sha in marks and branch in marks[sha].branches]
    kept = library.checkpoints.of_commits(newest)
    told = [kept[sha] for sha in newest if sha in kept and not kept[sha].is_merge]
    shown = told[:COMMITS][::-1]
    if not shown:
        return BranchMap(project, [project.identity], branch, branches, state="no-shared")
    empty = BranchMap(project, [project.identity], branch, branches)
    drawn = _drawn(library, empty, shown, session)
    return msgspec.structs.replace(drawn, older=len(told) - len(shown))


def _project(library: OpenStore, identity: str) -> tuple[int, Project]:
    known = library.projects.known()
    for number, project in known:
        if project.identity == identity or not identity:
            return number, project
    raise NotFound(f"no project is called {identity[:80]!r}", "Open it from Projects.")


def _drawn(
    library: OpenStore, empty: BranchMap, shown: Sequence[Checkpoint], session: str
) -> BranchMap:
    sources, left = _sources(library, shown)
    names = [source.name for source in sources]
    selected = session if session in names else _widest(sources)
    files, more_files = _files(shown)
    marks = {one.commit: _commit(one) for one in shown}
    return msgspec.structs.replace(
        empty,
        sources=sources,
        commits=list(marks.values()),
        files=files,
        left=[band for one in shown for band in _written(one, names)],
        right=[band for one in shown for band in _changed(one, names, files)],
        selected=selected,
        trail=[
            _trail(library, one, part, marks[one.commit])
            for one in shown
            for part in one.parts
            if part.name == selected and part.lines
        ],
        unplaced=sum(_rest(one) for one in shown),
        more_sources=left,
        more_files=more_files,
    )


def _sources(library: OpenStore, shown: Sequence[Checkpoint]) -> tuple[list[MapSource], int]:
    """Return the sessions that wrote most, by time, and how many others there are."""
    lines: Counter[tuple[str, str]] = Counter()
    for part in (part for one in shown for part in one.parts if part.lines):
        lines[part.agent, part.session_id] += part.lines
    found = []
    for (agent, session_id), number in lines.most_common(SOURCES):
        one: Session = library.sessions.find(session_id, agent)
        title, at = one.title or "", one.started_at
        found.append(MapSource(one.name, agent, session_id, title, at, one.prompts, number))
    return sorted(found, key=lambda source: source.at or 0), max(0, len(lines) - SOURCES)


def _widest(sources: Sequence[MapSource]) -> str:
    best = max(sources, key=lambda source: source.lines, default=None)
    return best.name if best else ""


def _files(shown: Sequence[Checkpoint]) -> tuple[dict[str, int], int]:
    lines: Counter[str] = Counter()
    for changed in (changed for one in shown for changed in one.files):
        lines[changed.path] += changed.added
    kept = [path for path, _ in lines.most_common(FILES)]
    kept.sort(key=lambda path: (path.rpartition("/")[0] == "", path.rpartition("/")))
    return {path: lines[path] for path in kept}, len(lines) - len(kept)


def _added(one: Checkpoint) -> int:
    return sum(changed.added for changed in one.files)


def _rest(one: Checkpoint) -> int:
    """Return the lines that no session wrote."""
    return max(0, _added(one) - sum(part.lines for part in one.parts))


def _commit(one: Checkpoint) -> MapCommit:
    tag = one.annotation.tag if one.annotation else ""
    return MapCommit(one.commit, one.subject, tag, one.committed_at, _added(one))


def _written(one: Checkpoint, names: Sequence[str]) -> list[MapBand]:
    """Return what sessions wrote for a commit."""
    parts = [part for part in one.parts if part.lines and part.name in names]
    return [MapBand(part.name, one.commit, "", part.lines) for part in parts]


def _changed(one: Checkpoint, names: Sequence[str], files: dict[str, int]) -> Iterator[MapBand]:
    """Yield what a commit added to files, and whose it is: as it was counted, or if one session
    alone wrote all of it."""
    writers = [part.name for part in one.parts if part.lines]
    alone = len(writers) == 1 and writers[0] in names and not _rest(one)
    for each in one.files:
        if not each.added or each.path not in files:
            continue
        if alone:
            yield MapBand(writers[0], one.commit, each.path, each.added)
            continue
        own = _counted(each, names)
        for name, lines in own.items():
            yield MapBand(name, one.commit, each.path, lines)
        if each.added > own.total():
            yield MapBand("", one.commit, each.path, each.added - own.total())


def _counted(changed: ChangedFile, names: Container[str]) -> Counter[str]:
    """Return how many of the lines that come to a file are of which of these sessions."""
    found: Counter[str] = Counter()
    for one in changed.written:
        if one.session in names:
            found[one.session] += one.lines
    return found


def _asked(library: OpenStore, one: Checkpoint, part: Part, number: int) -> str:
    """Return what a person had said last before the first line that a session wrote."""
    counted = [each for file in one.files for each in file.written if each.session == part.name]
    if not counted:
        last = library.conversation.last_request(number, part.first, part.last)
        return last.text if last else ""
    first = min(counted, key=lambda each: each.seq or part.first)
    turns = TurnReader(library)
    turns.expect_writers([LineWriter(number, first.seq, first.at, None, number)])
    asked = turns.asked(number, first.seq, first.at)
    return asked.text if asked else ""


def _trail(library: OpenStore, one: Checkpoint, part: Part, mark: MapCommit) -> TrailCommit:
    rest: Counter[str] = Counter()
    for other in one.parts:
        if other.lines and other.name != part.name:
            rest[other.agent] += other.lines
    if left := _rest(one):
        rest["unknown"] = left
    counted = {each.path: _counted(each, [part.name])[part.name] for each in one.files}
    if not any(counted.values()):  # of a story that was shared without counts
        counted = {each.path: each.added for each in one.files}
    number = library.sessions.find(part.session_id, part.agent).id
    asked = _asked(library, one, part, number)
    return TrailCommit(
        commit=mark,
        lines=part.lines,
        rest=dict(rest),
        files={path: lines for path, lines in counted.items() if lines},
        asked=asked,
        evidence=part.evidence,
        confidence=part.confidence,
    )

"""Sessions, commits and files of a branch, and how many lines go from one to the other."""

from __future__ import annotations

import msgspec

from whyfor.model.sessions import Project

SOURCES, COMMITS, FILES = 12, 20, 40  # that are drawn at most
BRANCHES = 100  # that are offered
BY_HAND = "by-hand"


class MapBand(msgspec.Struct, frozen=True):
    """Lines of one file that one session (or a person) wrote for one commit."""

    source: str  # agent:id, or by-hand
    commit: str
    path: str
    lines: int


class MapSource(msgspec.Struct, frozen=True):
    """A session that wrote lines of the branch, or a person."""

    name: str  # agent:id, or by-hand
    agent: str  # empty: a person
    session_id: str
    title: str
    at: int | None
    turns: int
    lines: int  # 0: nothing of it is committed


class MapCommit(msgspec.Struct, frozen=True):
    sha: str
    subject: str
    tag: str
    at: int
    added: int  # lines, as git counts them


class TrailCommit(msgspec.Struct, frozen=True):
    """What one source did for one commit."""

    commit: MapCommit
    lines: int
    rest: dict[str, int]  # lines of others, by agent; "person" and "unknown" too
    files: dict[str, int]
    asked: str
    evidence: str = ""
    confidence: str = ""


class BranchMap(msgspec.Struct, frozen=True):
    """All that the page shows. Without commits, `state` says why."""

    project: Project
    projects: list[str]
    branch: str = ""
    branches: list[str] = []
    against: str = ""
    state: str = ""  # no-git | no-branch | no-commits | no-story | no-shared
    sources: list[MapSource] = []
    commits: list[MapCommit] = []
    files: dict[str, int] = {}  # lines by path, in the order they are shown
    bands: list[MapBand] = []
    # on a team, in their place: from sessions to commits (no path), from commits to files (no
    # session if there were several)
    left: list[MapBand] = []
    right: list[MapBand] = []
    selected: str = ""
    trail: list[TrailCommit] = []
    unplaced: int = 0  # lines that nobody can place
    older: int = 0  # commits that are left out
    more_sources: int = 0
    more_files: int = 0

    @property
    def lines(self) -> int:
        return sum(band.lines for band in self.right or self.bands)

"""Excluded projects and agents: their sessions are not stored, and hooks there write nothing.

A session of another project may still touch files of an excluded one. Calls that name such a file,
and their results, are stored without their text.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from pathlib import Path

from whyfor.agents import AGENTS
from whyfor.agents import paths as agent_paths
from whyfor.agents.base import as_dict, as_str
from whyfor.capture.filters.private import PrivateFilter
from whyfor.capture.filters.record import ReadRecord, Verdict
from whyfor.config import Exclude, Settings
from whyfor.files import make_folders, replace
from whyfor.git.identity import identify, normalise
from whyfor.model.errors import BadInput
from whyfor.model.paths import to_name, to_text

FILE = "hook/excluded"
_ABSOLUTE = re.compile(rb"/[^\x00-\x1f\"'`<>|:*?\\]{2,1000}")
Known = Callable[[str], str | None]  # the identity of the project a folder was known to belong to


class Excluded:
    """Decides whether a folder is excluded; each folder is examined once."""

    def __init__(self, exclude: Exclude, known: Known = lambda _cwd: None) -> None:
        unknown = [name for name in exclude.agents if name not in AGENTS]
        if unknown:
            raise BadInput(
                f"config.toml excludes an agent nobody knows: {unknown[0]}",
                f"Agents: {', '.join(AGENTS)}.",
            )
        for item in exclude.projects:
            if not _clear(item):  # excluding nothing without a word would be the worst of all
                raise BadInput(
                    f"config.toml excludes {item!r}, which is neither a path nor a project",
                    'Write e.g. "~/code/client-x", "*/client-x" or "github.com/acme/shop".',
                )
        self.agents = frozenset(exclude.agents)
        self.paths = [path for item in exclude.projects if (path := _as_path(item))]
        self.projects = [_as_project(item) for item in exclude.projects if not item.startswith("/")]
        self._by_path = [_pattern(spelling) for path in self.paths for spelling in spellings(path)]
        self._by_project = [_pattern(item) for item in self.projects]
        self._known = known
        self._judged: dict[str, bool] = {}
        self._files: dict[str, bool] = {}  # by folder

    @property
    def by_place(self) -> bool:
        """Whether any exclusion depends on where a session ran."""
        return bool(self.paths or self.projects)

    def covers(self, cwd: str | None) -> bool:
        if cwd is None or not self.by_place:
            return False
        if cwd not in self._judged:
            self._judged[cwd] = self._covers(cwd)
        return self._judged[cwd]

    def covers_file(self, path: str, cwd: str | None = None) -> bool:
        """Return whether a file or folder lies in an excluded project; a relative path is taken
        from `cwd`."""
        if not self.by_place:
            return False
        whole = os.path.normpath(os.path.join(cwd or "", path))  # noqa: PTH118 - as it is written, `..` resolved
        if not whole.startswith("/") or "\0" in whole:
            return False
        if any(
            pattern.match(spelling) for spelling in spellings(whole) for pattern in self._by_path
        ):
            return True
        if not self._by_project:
            return False
        folder = whole if _is_top(whole) else whole.rpartition("/")[0] or "/"
        if folder not in self._files:
            self._files[folder] = self._in_project(folder)
        return self._files[folder]

    def _in_project(self, folder: str) -> bool:
        """Return whether a folder belongs to an excluded project: by the repository around it, or
        by the folders the project had."""
        around = [folder, *map(str, Path(folder).parents)]
        if any(self.is_project(identity) for place in around if (identity := self._known(place))):
            return True
        top = next((place for place in around if _is_top(place)), None)
        return self.covers(top)

    def is_project(self, identity: str) -> bool:
        return any(pattern.match(identity.lower()) for pattern in self._by_project)

    def _covers(self, cwd: str) -> bool:
        if any(pattern.match(spelling) for spelling in spellings(cwd) for pattern in self._by_path):
            return True
        if not self._by_project:
            return False
        found = {identify(cwd).identity, self._known(cwd)}
        return any(self.is_project(identity) for identity in found if identity)


class ExcludedFileFilter:
    """Examines the records of sources that are not excluded themselves."""

    def __init__(self, excluded: Excluded, cwd: str | None, memory: PrivateFilter) -> None:
        self.excluded = excluded
        self.cwd = cwd  # where the session is now
        self.memory = memory  # of the calls that named such a file
        self.records = 0  # that went

    def judge(self, read: ReadRecord) -> Verdict | None:
        """Return what to do with the record; None if it does not concern an excluded project."""
        if not self._concerns(read):
            return None
        self.records += 1
        if read.events or any(stamp.is_link for stamp in read.stamps):
            return Verdict.HOLLOW
        return Verdict.DROP

    def _concerns(self, read: ReadRecord) -> bool:
        """Return whether a record names an excluded file or is about a call that did; remember its
        calls."""
        for event in read.events:
            self.cwd = as_str(as_dict(event.data).get("cwd")) or self.cwd
        calls = [*agent_paths.call_ids(read.records), *read.call_names()]
        if any(self.memory.knows(f"elsewhere {name}") for name in calls):
            return True
        told = [read.records, [as_dict(event.data).get("input") for event in read.events]]
        named = {*agent_paths.named_paths(told)}
        for bucket in read.sink.buckets.values():
            named.update(touch.path for touch in bucket.touches)
        if not any(self.excluded.covers_file(path, self.cwd) for path in named if path):
            return False
        self.memory.learn(f"elsewhere {name}" for name in calls)
        return True

    def may_concern(self, line: bytes) -> bool:
        """Return whether a line that cannot be parsed contains the path of an excluded file."""
        named = (found.decode("utf-8", "surrogateescape") for found in _ABSOLUTE.findall(line))
        return any(self.excluded.covers_file(path) for path in named)


def _is_top(folder: str) -> bool:
    try:
        return Path(folder, ".git").exists()
    except OSError:  # a name no file system takes
        return False


def spellings(path: str) -> set[str]:
    """Return a path as written and with its links resolved; in a pattern, only the part before the
    first star is resolved."""
    fixed = path.partition("*")[0]
    if not fixed.startswith("/"):
        return {path}
    if fixed == path:
        return {path, to_text(os.path.realpath(to_name(path)))}
    folder, slash, rest = fixed.rpartition("/")
    real = to_text(os.path.realpath(to_name(folder or "/")))
    return {path, real.rstrip("/") + slash + rest + path[len(fixed) :]}


def _clear(item: str) -> bool:
    if "\n" in item or not item.strip("*/ "):
        return False
    host = item.partition("/")[0]
    return item.startswith(("/", "*", "git:")) or (
        "/" in item and any(sign in host for sign in ".:@")
    )


def _as_path(item: str) -> str:
    """Return a pattern for paths. A relative one that begins with a star may match anywhere."""
    return item.rstrip("/") if item.startswith(("/", "*")) else ""


def _as_project(item: str) -> str:
    """Return a project's identity from any form of its address; patterns are returned unchanged."""
    return (
        item.lower()
        if "*" in item or item.startswith("git:")
        else normalise(_with_scheme(item)).lower()
    )


def _with_scheme(item: str) -> str:
    return item if "://" in item or "@" in item else f"https://{item}"


def _pattern(glob: str) -> re.Pattern[str]:
    """Return a regular expression: `*` matches anything, and everything below a match matches
    too."""
    return re.compile(
        "(?s:" + ".*".join(re.escape(piece) for piece in re.split(r"\*+", glob)) + r")(?:/|\Z)"
    )


def write_exclusions(settings: Settings, excluded: Excluded, folders: Iterable[str]) -> None:
    """Write the file that hooks read: patterns, and the known folders of excluded projects."""
    paths = {spelling for path in excluded.paths for spelling in spellings(path)} | set(folders)
    # hooks compare bytes
    lines = [f"path {to_name(path)}" for path in sorted(paths) if "\n" not in path]
    lines += [f"project {item}" for item in excluded.projects]
    lines += [f"agent {name}" for name in sorted(excluded.agents)]
    content = "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogateescape")
    file = settings.home / FILE
    if not content:
        file.unlink(missing_ok=True)
    elif not file.exists() or file.read_bytes() != content:
        make_folders(file.parent)
        replace(Path(file), content)

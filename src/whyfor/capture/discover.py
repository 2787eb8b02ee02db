"""Find the files to read: in the agents' own directories, or at the paths given."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from whyfor.agents import AGENTS, left_traces
from whyfor.agents.base import MAX_DECODED, Agent, Framing, SourceShape
from whyfor.capture.tail import head, stat
from whyfor.capture.unreadable import Unreadable as Unreadable
from whyfor.capture.unreadable import reason_of
from whyfor.config import Settings
from whyfor.model.errors import BadInput, NotFound
from whyfor.model.paths import escape_surrogates, to_text

PATIENCE = 3_600_000_000_000  # ns a file may take to write its first line


class FoundFile(NamedTuple):
    agent: Agent  # whose folder it is in; sniffing shows what it really is
    path: Path
    given: bool = False  # named by a person: not knowing it is an error worth telling


def chosen(agent: str | None, settings: Settings | None = None) -> list[Agent]:
    """Return the agent of this name, or all of them; with settings, those that may have files
    here."""
    if agent is None and settings is not None:
        return agents_here(settings)
    if agent is None:
        return list(AGENTS.values())
    if agent not in AGENTS:
        raise BadInput(f"no such agent: {agent}", f"Agents: {', '.join(AGENTS)}.")
    return [AGENTS[agent]]


def agents_here(settings: Settings) -> list[Agent]:
    """Return the agents that left traces here, or whose folders the settings name. Those that never
    ran cost one look each."""
    home, env = settings.user_home, settings.env
    names = [n for n in AGENTS if settings.roots.get(n) or left_traces(n, home, env)]
    return [AGENTS[name] for name in names]


def roots(agent: Agent, settings: Settings) -> list[Path]:
    """Return an agent's own directories and those from the configuration, without duplicates."""
    found = [*agent.roots(settings.user_home, settings.env), *settings.roots.get(agent.name, [])]
    return list(dict.fromkeys(found))


def files_at_home(
    agents: Iterable[Agent], settings: Settings, unreadable: list[Unreadable]
) -> Iterator[FoundFile]:
    for agent in agents:
        for root in roots(agent, settings):
            yield from _below(agent, root, unreadable)


def at_paths(
    paths: Iterable[Path], agents: list[Agent], unreadable: list[Unreadable]
) -> Iterator[FoundFile]:
    """Yield the sources at these paths: every agent is asked about a file; in a directory with
    agents' homes, each agent searches its own."""
    for given in paths:
        path = Path(os.path.abspath(given))  # noqa: PTH100 - resolve() would follow links, and the link is the name
        if os.path.isfile(path):  # noqa: PTH113 - never raises, whatever the path is
            yield FoundFile(agents[0], path, given=True)
        elif os.path.isdir(path):  # noqa: PTH112
            yield from _in_folder(path, agents, unreadable)
        else:
            what = f"no such file or folder: {to_text(path)}"
            raise NotFound(what, "Give a transcript, a folder of them, or nothing at all.")


def _in_folder(
    folder: Path, agents: list[Agent], unreadable: list[Unreadable]
) -> Iterator[FoundFile]:
    homes: list[tuple[Agent, Path]] = []
    for agent in agents:
        homes += [(agent, root) for root in agent.roots(folder, {}) if root.exists()]
    for agent, root in homes:
        yield from _below(agent, root, unreadable)
    if not homes:
        for base, folders, files in os.walk(folder, onerror=lambda e: unreadable.append(_told(e))):
            folders.sort()
            for name in sorted(files):
                yield FoundFile(agents[0], Path(base, name))


def _below(agent: Agent, root: Path, unreadable: list[Unreadable]) -> Iterator[FoundFile]:
    """Yield the files below a root; one that cannot be listed is counted as an error, and the
    others are still read."""
    try:
        if root.is_file():
            yield FoundFile(agent, root)
        elif root.is_dir():
            for path in agent.find(root, lambda error: unreadable.append(_told(error))):
                yield FoundFile(agent, path)
    except Exception as error:  # noqa: BLE001 - an agent's own; other roots are read all the same
        unreadable.append(Unreadable(to_text(root), reason_of(error)))


def _told(error: OSError) -> Unreadable:
    return Unreadable(to_text(str(error.filename)), error.strerror or str(error))


def sniff(found: FoundFile, now: int) -> tuple[Agent, SourceShape] | None:
    """Return what a file is, from its content: the directory's agent is asked first, then all
    others. None if it is not a transcript, or not yet recognisable."""
    data = head(found.path)
    if not data:
        return None
    for agent in (found.agent, *(a for a in AGENTS.values() if a is not found.agent)):
        shape = agent.sniff(found.path, data)
        if shape:
            return agent, _in_text(shape)
    name = found.path.name.removesuffix(".zst")
    if found.given or not name.endswith((".jsonl", ".json")):
        return None
    if found.agent.name not in _own(found.path):
        return None
    unfinished = b"\n" not in data and len(data) <= MAX_DECODED
    if unfinished and now * 1_000_000 - stat(found.path).mtime < PATIENCE:
        return None  # its first line is still being written: whose it is shows when it is whole
    # Its own agent put it here, but nothing in it makes sense: keep it all the same.
    framing: Framing = "lines" if name.endswith(".jsonl") else "document"
    return found.agent, SourceShape(framing, escape_surrogates(name.rsplit(".", 1)[0]))


def _in_text(shape: SourceShape) -> SourceShape:
    """Return the shape with ids from the file's name as text that can be stored."""
    session_id = escape_surrogates(shape.session_id)
    parent = escape_surrogates(shape.parent) if shape.parent else shape.parent
    if (session_id, parent) == (shape.session_id, shape.parent):
        return shape
    return replace(shape, session_id=session_id, parent=parent)


def _own(path: Path) -> set[str]:
    """Return the agents in whose home a path is, by the usual name of the directory."""
    names = {part.lstrip(".") for part in path.parts}
    return {name for name in AGENTS if name in names}

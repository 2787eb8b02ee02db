"""The exclusions of config.toml: for hooks, for ingest and for doctor."""

from __future__ import annotations

from pathlib import Path

from whyfor.agents.base import Agent
from whyfor.capture import session_cwd, tail
from whyfor.capture.filters import excluded as exclude
from whyfor.capture.filters.excluded import Excluded
from whyfor.config import Settings
from whyfor.model.paths import to_text
from whyfor.model.sources import Source
from whyfor.model.text import plural
from whyfor.store.open import reading
from whyfor.store.protocol import Store


def excluded(settings: Settings, store: Store | None = None) -> Excluded:
    """Return the exclusions. With a database, folders are also matched by the project they once
    belonged to."""
    if store is None or not settings.exclude.projects:
        return Excluded(settings.exclude)
    places, projects = store.projects.places(), dict(store.projects.known())

    def known(cwd: str) -> str | None:
        number = places.get(cwd)
        return projects[number].identity if number in projects else None

    return Excluded(settings.exclude, known)


def tell_hooks(settings: Settings, found: Excluded, store: Store) -> None:
    """Write the excluded folders for the hooks, which cannot find out a folder's project
    themselves."""
    folders: list[str] = []
    if found.projects:
        numbers = {
            number: project
            for number, project in store.projects.known()
            if found.is_project(project.identity)
        }
        folders = [
            project.path
            for project in numbers.values()
            if project.path and project.path.startswith("/")
        ]
        folders += [cwd for cwd, number in store.projects.places().items() if number in numbers]
    exclude.write_exclusions(settings, found, folders)


def passed_over(found: Excluded, agent: Agent, path: Path) -> bool:
    """Return whether ingest skips a file because it is excluded, so that it does not count as
    waiting."""
    if agent.name in found.agents:
        return True
    if not found.by_place:
        return False
    try:
        shape = agent.sniff(path, tail.head(path))
        if shape is None or shape.framing == "rows":
            return False
        source = Source(
            0, agent.name, to_text(path), shape.session_id, shape.framing, cwd=shape.cwd
        )
        place = session_cwd.of_file(source, path)
    except Exception:  # noqa: BLE001 - ingest says why it cannot be read
        return False
    return place is None or found.covers(place)


def stored(settings: Settings, store: Store) -> list[str]:
    """Return the sessions that were stored before their project or agent was excluded, with their
    subagents."""
    found = excluded(settings, store)
    if not found.agents and not found.by_place:
        return []
    return [
        place.session_id
        for place in store.sessions.places()
        if place.agent in found.agents or found.covers(place.cwd)
    ]


def excluded_note(settings: Settings) -> str:
    """Return in words how many sessions the last ingest left out; empty if none."""
    if not settings.exclude.projects and not settings.exclude.agents:
        return ""
    with reading(settings) as library:
        number, unsure = (library.mark(name) for name in ("excluded", "unplaced"))
    parts = [f"{plural(number, 'session')} of excluded projects or agents"] if number else []
    parts += [f"{plural(unsure, 'session')} that do not say where they ran"] if unsure else []
    return f"Not stored: {', '.join(parts)}." if parts else ""

"""mcp: what agents ask about earlier sessions, in three layers: find lines, look around one, read
it whole. Every answer has passed the redactor."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path
from typing import TypeVar

from whyfor.config import Settings
from whyfor.git.identity import identify
from whyfor.git.place import name_place
from whyfor.model.agent_answers import (
    Detail,
    MemoryLine,
    MemoryLines,
    MemoryText,
    MemoryTexts,
    RecallRequest,
)
from whyfor.model.errors import NotFound
from whyfor.model.paths import to_text
from whyfor.model.query import Filters
from whyfor.privacy.redacted_text import redacted
from whyfor.service.mcp.get import GetRequest, get_texts, paged
from whyfor.service.mcp.recall import RecallPlace, recall_lines
from whyfor.service.mcp.timeline import timeline_lines
from whyfor.store.open import OpenStore, local_store, reading, reading_local
from whyfor.story.commit_lookup import checkout_root
from whyfor.story.lines.location import parse_location
from whyfor.story.repositories import Repository, repository_at

__all__ = ["AgentMemory"]

Answer = TypeVar("Answer", MemoryLines, MemoryTexts)
_PLACE_LASTS = 60.0  # seconds: git is not asked again for every question


class AgentMemory:
    """Answers an agent that works in a folder, for as long as it asks."""

    def __init__(self, settings: Settings, folder: Path) -> None:
        self.settings = settings
        self.folder = folder
        self._place: Repository | None = None
        self._asked: float | None = None

    def recall(self, wanted: RecallRequest) -> MemoryLines:
        """Return what fits a query, best first."""
        with reading(self.settings) as store:
            projects = None if wanted.everywhere else self._projects(store)
            place = RecallPlace(store, Filters(projects=projects), self._repository(store))
            found = recall_lines(place, wanted)
        return self._clean(found)

    def timeline(self, around: str, limit: int) -> MemoryLines:
        """Return what happened before and after something, oldest first."""
        with reading(self.settings) as store:
            own = partial(self._projects, store)
            found = timeline_lines(store, around, limit, self.folder, own)
        return self._clean(found)

    def why(self, location: str) -> MemoryTexts | None:
        """Return why lines are there; None if a text names no line of a file (path:12)."""
        place = parse_location(location, self.folder)
        if place.first is None:
            return None
        from whyfor.service.mcp.why import line_texts  # here: it replays, and agents start often

        with reading(self.settings) as store:
            found = line_texts(store, self.folder, place)
        return self._clean(found)

    def review(self) -> MemoryTexts:
        """Return what the changes that are not committed undo of what was decided."""
        from whyfor.service.mcp.review import review_texts  # here: few ask

        with reading_local(self.settings) as store:
            found = review_texts(store, self.folder)
        return self._clean(found)

    def others(self, own: str) -> MemoryTexts:
        """Return what the other open sessions of this project do; `own` is who asks."""
        from whyfor.service.mcp.others import other_sessions  # here: few ask

        with reading_local(self.settings) as store:
            repository = self._repository(store)
        project = repository.project if repository else identify(to_text(self.folder))
        return self._clean(other_sessions(self.settings, project.identity, own))

    def get(self, ids: list[str], detail: Detail, after: int) -> MemoryTexts:
        """Return sessions, turns, notes and commits by their ids, one page of it."""
        with reading(self.settings) as store:
            wanted = GetRequest(ids, detail, self.folder, self._repository(store))
            texts = get_texts(store, wanted)
        return paged(self._clean(texts), after)

    def read(self, ident: str) -> MemoryText:
        """Return one session, note or commit, all of it in the usual detail."""
        with reading(self.settings) as store:
            found = get_texts(
                store, GetRequest([ident], "normal", self.folder, self._repository(store))
            )
        return self._clean(found).items[0]

    def last_sessions(self, limit: int) -> MemoryLines:
        """Return the last sessions of the project, newest first."""
        with reading(self.settings) as store:
            within = Filters(projects=self._projects(store))
            found = store.sessions.matching(within, limit=limit, subagents=False)
        lines = [
            MemoryLine(each.name, each.started_at, "session", each.title or "") for each in found
        ]
        return self._clean(MemoryLines(lines))

    def _clean(self, answer: Answer) -> Answer:
        return redacted(self.settings, answer, rendered=True)[0]

    def _projects(self, store: OpenStore) -> tuple[int, ...]:
        """Return the project that the folder belongs to; all that a team server lends. Raises
        NotFound if nothing is known of it."""
        if local_store(store) is None:
            return tuple(number for number, _ in store.projects.known())
        repository = self._repository(store)
        project = repository.project if repository else identify(to_text(self.folder))
        found = store.projects.find(project.identity)
        if found is None:
            raise NotFound(
                "no session of this folder is recorded", "Look in every project: recall with all"
            )
        return (found[0],)

    def _repository(self, store: OpenStore) -> Repository | None:
        """Return the repository that the folder is in, as it was a moment ago; None if nothing is
        known of it."""
        if local_store(store) is None:
            return None
        now = time.monotonic()
        if self._asked is None or now - self._asked > _PLACE_LASTS:
            top = checkout_root(name_place(self.folder))
            self._place = repository_at(store, top) if top else None
            self._asked = now
        return self._place

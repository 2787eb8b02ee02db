"""Measures what is remembered of an ingested home, in one process: what notes cost to derive, which
are verified, and how much of what a session then looked for it would have been told. The home is
the environment's."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Sequence
from contextlib import closing

import apsw
import msgspec
from whyfor import config
from whyfor.agents.edits import path_in
from whyfor.agents.tools import command_of, tool_kind
from whyfor.model.memory import BlockMaterial, CommandCount, MemoryFilter, TouchedFile
from whyfor.model.query import Filters
from whyfor.model.sessions import Project, Session
from whyfor.recall.block import build_block
from whyfor.recall.material import past_sessions, worth_naming
from whyfor.recall.project_paths import below_top
from whyfor.recall.remember import remember_waiting
from whyfor.recall.session_memory import derive_memory
from whyfor.store.open import open_store
from whyfor.store.protocol import Store
from whyfor.story.command_families import check_in

TOKENS = 1_250
_TITLES = 60  # of the newest sessions, as others tell them
_READS = 20  # files that a session reads first
_FILES = 400
_NOTES = 200


class Rediscovered(msgspec.Struct):
    """Shares of what a session looked for: named in the block, in the newest titles, or at all in
    an earlier session."""

    files: float | None
    commands: float | None
    files_of_titles: float | None
    commands_of_titles: float | None
    ceiling: float | None  # files
    tokens: int


class Remembered(msgspec.Struct):
    """All that was measured."""

    derived: list[float]  # CPU seconds for each session
    whole: float  # CPU seconds to derive and store all of them again
    verified: list[str]  # keys of notes
    rediscovered: list[Rediscovered]


class _Wanted(msgspec.Struct):
    """What a session looked for."""

    files: list[str]
    families: set[str]


def main() -> None:
    settings = config.load()
    with closing(open_store(settings.database)) as store:
        found = Remembered(
            derived=[_derive(store, session) for session in _sessions(store)],
            whole=_again(store, settings.database),
            verified=_verified(store),
            rediscovered=list(_rediscovered(store, settings.database)),
        )
    sys.stdout.buffer.write(msgspec.json.encode(found))


def _sessions(store: Store) -> list[Session]:
    return store.sessions.matching(Filters(), limit=None, subagents=True)


def _derive(store: Store, session: Session) -> float:
    begun = time.process_time()
    events = store.conversation.events(session.id)
    derive_memory(f"{session.agent}:{session.session_id}", session.agent, events)
    return time.process_time() - begun


def _again(store: Store, database: object) -> float:
    db = apsw.Connection(str(database))
    db.execute("DELETE FROM memories")
    db.close()
    with store.transaction():
        for session in _sessions(store):
            store.memory.delete(session.id)
    begun = time.process_time()
    remember_waiting(store)
    return time.process_time() - begun


def _verified(store: Store) -> list[str]:
    notes = store.memory.observations(MemoryFilter(states=("verified",)), None)
    return sorted(note.observation.key for note in notes)


# -- what a session then looked for --------------------------------------------------------------


def _rediscovered(store: Store, database: object) -> Iterable[Rediscovered]:
    db = apsw.Connection(str(database), apsw.SQLITE_OPEN_READONLY)
    places: dict[int, list[str]] = {}
    for cwd, number in store.projects.places().items():
        places.setdefault(number, []).append(cwd)
    for number, project in store.projects.known():
        folders = [*places.get(number, []), *([project.path] if project.path else [])]
        listed = store.sessions.matching(Filters(projects=(number,)), limit=None, subagents=False)
        begun = sorted((each for each in listed if each.started_at), key=_start)
        for session in begun:
            before = [each for each in begun if (each.ended_at or 0) < _start(session)]
            if before:
                before.sort(key=lambda each: -(each.ended_at or 0))
                past = _Past(store, db, number, project, folders, before)
                yield past.judge(session)


def _start(session: Session) -> int:
    return session.started_at or 0


class _Past:
    """What was known of a project before a session began."""

    def __init__(
        self,
        store: Store,
        db: apsw.Connection,
        number: int,
        project: Project,
        folders: Sequence[str],
        before: Sequence[Session],
    ) -> None:
        self.store, self.db, self.number, self.project = store, db, number, project
        self.folders, self.before = folders, before
        children = store.sessions.children([each.session_id for each in before])
        self.ids = [each.id for each in (*before, *children)]

    def judge(self, session: Session) -> Rediscovered:
        wanted = self._wanted(session)
        files = self._files()
        block = build_block(self._material(session, files), TOKENS)
        named = {line.source.removeprefix("run:") for line in block.lines}
        seen = {below_top(file.path, self.folders) for file in files}
        titles = self._titles()
        shown = {path for line in block.lines for path in line.files}
        return Rediscovered(
            files=_share(wanted.files, lambda path: path in shown or path in block.text),
            commands=_share(wanted.families, lambda family: family in named),
            files_of_titles=_share(wanted.files, lambda path: path in titles),
            commands_of_titles=_share(wanted.families, lambda family: family in titles),
            ceiling=_share(wanted.files, lambda path: path in seen),
            tokens=block.tokens,
        )

    def _wanted(self, session: Session) -> _Wanted:
        prompt = ""
        reads: dict[str, None] = {}
        families: set[str] = set()
        for event in self.store.conversation.events(session.id):
            if event.kind == "user.prompt":
                prompt = prompt or event.text
            if event.kind != "tool.call":
                continue
            given = (event.data or {}).get("input")
            kind = tool_kind(event.name or "", session.agent, given)
            if kind == "read":
                path = below_top(path_in(given) or "", self.folders)
                if path:
                    reads[path] = None
            elif kind == "shell" and (check := check_in(command_of(given))):
                families.add(check.family)
        first = list(reads)[:_READS]
        unnamed = [path for path in first if path.rpartition("/")[2] not in prompt]
        return _Wanted(unnamed, families)

    def _files(self) -> list[TouchedFile]:
        rows = self.db.execute(
            """
            SELECT t.path, max(s.ended_at), count(DISTINCT s.id), max(t.action = 'write')
            FROM sessions s JOIN touches t ON t.session_id = s.id
            WHERE s.id IN (SELECT value FROM json_each(?))
            GROUP BY t.path ORDER BY 2 DESC, 3 DESC, 1 LIMIT ?
            """,
            (msgspec.json.encode(self.ids).decode(), _FILES),
        )
        return [TouchedFile(str(p), at, n, bool(w)) for p, at, n, w in rows]

    def _material(self, session: Session, files: list[TouchedFile]) -> BlockMaterial:
        rows = self.db.execute(
            """
            SELECT family, command, sum(runs), sum(ok), sum(failed), max(last_ok)
            FROM session_commands WHERE session_id IN (SELECT value FROM json_each(?))
            GROUP BY family ORDER BY 4 DESC, 3 DESC, family
            """,
            (msgspec.json.encode(self.ids).decode(),),
        )
        until = Filters(projects=(self.number,), until=_start(session))
        notes = self.store.memory.observations(MemoryFilter(until), _NOTES)

        def of(*types: str) -> tuple[object, ...]:
            return tuple(note for note in notes if note.observation.type in types)

        return BlockMaterial(
            project=self.project.name,
            branch=session.branch,
            rules=of("rule"),  # type: ignore[arg-type]
            sessions=tuple(past_sessions(self.store, self.before[:12], set())),
            findings=of("decision", "discovery", "gotcha"),  # type: ignore[arg-type]
            failures=of("correction"),  # type: ignore[arg-type]
            commands=tuple(CommandCount(*row) for row in rows),
            files=tuple(worth_naming(files, self.folders, set())),
        )

    def _titles(self) -> str:
        """The newest titles and the last summary, as others tell them, within the same budget."""
        lines = [each.title or "" for each in self.before[:_TITLES]]
        last = self.store.memory.summary(self.before[0].id)
        if last:
            lines[:0] = [quote.text for quote in (*last.request, *last.completed, *last.learned)]
        return "\n".join(lines)[: TOKENS * 4]


def _share(wanted: Iterable[str], found: object) -> float | None:
    items = list(wanted)
    assert callable(found)
    return sum(map(bool, map(found, items))) / len(items) if items else None


if __name__ == "__main__":
    main()

"""What the next session in a project is told, line by line, with the source of each line."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from whyfor.agents import AGENTS
from whyfor.capture.manifest import load_manifest
from whyfor.config import Settings
from whyfor.git.run import ask
from whyfor.model.errors import NotFound
from whyfor.model.memory import BlockLine, MemoryBlock
from whyfor.model.query import Filters
from whyfor.privacy.redacted_text import redacted
from whyfor.recall.block import build_block, token_estimate
from whyfor.recall.material import collect
from whyfor.recall.quoted_output import without_quoted_output
from whyfor.store.open import reading
from whyfor.store.protocol import SharedStore
from whyfor.story.repositories import Repository, repository_of

_SESSIONS = 50  # whose branches can be chosen
_BRANCHES = 20


class LineSource(msgspec.Struct, frozen=True):
    """The session that a line comes from, and the note if it is one."""

    agent: str
    session_id: str
    title: str
    turn: int | None = None
    seq: int | None = None  # the first event that is quoted
    note: str | None = None


class ToldLine(msgspec.Struct, frozen=True):
    """One line of the text. `tokens` is of a section, and stands with its heading."""

    text: str
    tokens: int | None = None
    source: LineSource | None = None
    where: str = ""  # in the place of a source: what it was counted from
    why: str = ""


class ToldBlock(msgspec.Struct, frozen=True):
    """What the next session is told, and what is not."""

    branch: str | None
    branches: list[str]
    block: MemoryBlock | None  # None: no session can start here
    lines: list[ToldLine]
    sections: dict[str, int]  # tokens, by heading
    secrets: int  # removed before it is told
    told: list[str]  # agents that are told it
    silent: list[str]  # agents with hooks that are not


def told_block(settings: Settings, project: str, branch: str, tokens: int) -> ToldBlock:
    """Return what the next session in a project would be told on a branch, the one that is checked
    out if it is empty; raises NotFound for a project that is not known."""
    with reading(settings) as store:
        known = store.projects.find(project)
        if known is None:
            raise NotFound(f"no project is called {project[:200]!r}", "See: whyfor projects")
        told, silent = _told_agents(settings)
        repository = repository_of(store, known[0])
        if repository is None:
            return ToldBlock(None, [], None, [], {}, 0, told, silent)
        here = ask(repository.folder, "symbolic-ref", "--quiet", "--short", "HEAD")
        material = collect(store, repository, branch or here)
        clean, secrets = redacted(settings, material, rendered=False)
        block = without_quoted_output(store, clean, build_block(clean, tokens))
        sections = _sections(block)
        return ToldBlock(
            branch=branch or here,
            branches=_branches(store, repository, here),
            block=block,
            lines=list(_lines(store, block, sections)),
            sections=sections,
            secrets=sum(secrets.values.values()),
            told=told,
            silent=silent,
        )


def _branches(store: SharedStore, repository: Repository, here: str | None) -> list[str]:
    """The branch that is checked out, then those of the last sessions that still exist."""
    listed = ask(repository.folder, "for-each-ref", "--format=%(refname:lstrip=2)", "refs/heads")
    there = set((listed or "").split("\n"))
    filters = Filters(projects=(repository.id,))
    recent = store.sessions.matching(filters, limit=_SESSIONS, subagents=False)
    names = [session.branch for session in recent if session.branch in there]
    return list(dict.fromkeys(name for name in (here, *names) if name))[:_BRANCHES]


def _told_agents(settings: Settings) -> tuple[list[str], list[str]]:
    """Return the agents whose sessions are told of earlier ones, and those that have hooks but are
    not."""
    changed = [each for each in load_manifest(settings).files.values() if each.agent in AGENTS]
    told = {each.agent for each in changed if each.memory}
    hooked = {each.agent for each in changed if each.kind == "agent"}
    return sorted(told), sorted(hooked - told)


# -- lines ---------------------------------------------------------------------------------------


def _sections(block: MemoryBlock) -> dict[str, int]:
    """Return how many tokens each section has, heading included, about."""
    sizes: dict[str, int] = {}
    heading = ""
    for line in block.text.split("\n"):
        if line.startswith("## "):
            heading = line
        if heading and (line == heading or line.startswith("- ")):
            sizes[heading] = sizes.get(heading, 0) + len(line) + 1
    return {heading: token_estimate("x" * size) for heading, size in sizes.items()}


def _lines(store: SharedStore, block: MemoryBlock, sections: dict[str, int]) -> Iterator[ToldLine]:
    """Yield the lines of the text as they are, each with what it comes from."""
    origins = _Origins(store)
    sources = iter(block.lines)
    for text in block.text.split("\n") if block.text else ():
        if text.startswith("- "):
            line = next(sources)
            yield ToldLine(text, source=origins.of(line), where=_counted_from(line), why=line.why)
        else:
            yield ToldLine(text, tokens=sections.get(text))


def _counted_from(line: BlockLine) -> str:
    return {"commands": "runs in all sessions here", "files": "files of all sessions here"}.get(
        line.section, ""
    )


class _Origins:
    """Where lines come from: notes and sessions, each looked up once."""

    def __init__(self, store: SharedStore) -> None:
        self.store = store
        self.titles: dict[tuple[str, str], str] = {}

    def of(self, line: BlockLine) -> LineSource | None:
        if line.section in ("commands", "files"):
            return None
        if line.section in ("threads", "sessions"):
            agent, _, ident = line.source.partition(":")
            return LineSource(agent, ident, self._title(agent, ident))
        try:
            found = self.store.memory.observation(line.source)
        except NotFound:
            return None
        note = found.observation
        return LineSource(
            found.agent,
            found.session_id,
            self._title(found.agent, found.session_id),
            turn=note.turn,
            seq=note.evidence[0].seq if note.evidence else None,
            note=note.key,
        )

    def _title(self, agent: str, session_id: str) -> str:
        name = (agent, session_id)
        if name not in self.titles:
            try:
                self.titles[name] = self.store.sessions.find(session_id, agent).title or ""
            except NotFound:
                self.titles[name] = ""
        return self.titles[name]

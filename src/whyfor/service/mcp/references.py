"""What an agent means by an id."""

from __future__ import annotations

import re

import msgspec

from whyfor.agents import AGENTS
from whyfor.git.place import GitPlace
from whyfor.model.errors import BadInput, NotFound
from whyfor.model.memory import StoredObservation
from whyfor.model.sessions import Session
from whyfor.service.mcp.lines import COMMIT, NOTE
from whyfor.store.open import OpenStore
from whyfor.story.commit_lookup import resolve_commit
from whyfor.story.repositories import repository_at

_LEAST = 4  # characters of an id without a prefix: a shorter word is more likely something else
_HEX = re.compile(r"[0-9a-f]+")
_HINT = "Find ids with recall or timeline."


class SessionRef(msgspec.Struct, frozen=True):
    session: Session
    turn: int | None = None


class NoteRef(msgspec.Struct, frozen=True):
    note: StoredObservation


class CommitRef(msgspec.Struct, frozen=True):
    sha: str


Referenced = SessionRef | NoteRef | CommitRef


def resolve_reference(store: OpenStore, text: str, folder: GitPlace) -> Referenced:
    """Return what `note:KEY`, `commit:SHA`, `agent:ID`, `agent:ID/TURN` or a bare id means, and for
    `file:PATH` or `run:COMMAND` the last session that used it; raises NotFound, or Ambiguous if it
    means several things."""
    given = text.strip().strip("[]")
    prefix, _, rest = given.partition(":")
    if given.startswith(NOTE):
        return NoteRef(store.memory.observation(rest))
    if given.startswith(COMMIT):
        return CommitRef(_commit(store, rest, folder))
    if prefix in ("file", "run") and rest:
        return SessionRef(_last_user(store, prefix, rest, folder))
    if prefix in AGENTS and rest:
        return _session(store, rest, prefix)
    if len(given) < _LEAST:
        raise BadInput(f"not an id: {given!r}", _HINT)
    return _bare(store, given, folder)


def _last_user(store: OpenStore, kind: str, name: str, folder: GitPlace) -> Session:
    """Return the last session here that used a file or a folder, or ran a command."""
    repository = repository_at(store, folder)
    projects = (repository.id,) if repository else ()
    number = store.memory.last_user(kind, name, projects)
    if number is None:
        raise NotFound(f"no session here has {kind}:{name}", _HINT)
    return store.sessions.by_number([number])[number]


def _bare(store: OpenStore, given: str, folder: GitPlace) -> Referenced:
    if _HEX.fullmatch(given):
        try:
            return NoteRef(store.memory.observation(given))
        except NotFound:
            pass  # a commit or a session, then
    sha = resolve_commit(store, given, folder)
    if sha is not None:
        return CommitRef(sha)
    try:
        return _session(store, given, None)
    except NotFound:
        raise NotFound(f"nothing is called {given!r}", _HINT) from None


def _session(store: OpenStore, given: str, agent: str | None) -> SessionRef:
    ident, slash, turn = given.partition("/")
    session = store.sessions.find(ident, agent)
    if not slash:
        return SessionRef(session)
    if not turn.isdecimal():
        raise BadInput(f"not a turn: {turn!r}", "Give its number: agent:id/4.")
    return SessionRef(session, int(turn))


def _commit(store: OpenStore, given: str, folder: GitPlace) -> str:
    sha = resolve_commit(store, given, folder)
    if sha is None:
        raise NotFound(f"no commit is called {given!r}", _HINT)
    return sha

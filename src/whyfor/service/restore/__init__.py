"""restore: the conversation of a commit, or a session, as a new session that the agent itself
resumes."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterable
from pathlib import Path

import msgspec

from whyfor.agents import AGENTS
from whyfor.agents.conversation import NewFile, NewSession, SessionWriter
from whyfor.config import Settings
from whyfor.files import make_folders, replace
from whyfor.git.place import name_place
from whyfor.live.open_sessions import sessions_here
from whyfor.model.errors import BadInput, Busy, NotFound, StoreError
from whyfor.model.paths import to_path, to_text
from whyfor.model.sessions import Session
from whyfor.service.ingest import ingest
from whyfor.service.restore.brief import BriefSize
from whyfor.service.restore.records import assembled, ended, files_beside
from whyfor.store.open import reading
from whyfor.story.commit_lookup import checkout_root, is_commit
from whyfor.story.session_lookup import find_session, printed_session_ids

READ_WAIT = 10.0  # seconds for another process that reads what sessions wrote


class RestoredSource(msgspec.Struct, frozen=True):
    """A session to restore, whole or up to one of its events."""

    agent: str
    session_id: str
    last: int | None = None
    size: int = 1  # how much of the commit it is


class RestoreRequest(msgspec.Struct, frozen=True):
    """What is to be restored, and as what."""

    taken: list[RestoredSource]
    title: str
    agent: str
    cwd: Path
    warnings: list[str] = []
    turns: int | None = None  # only so many word for word, after a summary of the others


class RestoreReport(msgspec.Struct, frozen=True):
    agent: str
    session_id: str
    path: str
    command: str
    cwd: str
    sessions: list[dict[str, str | int]]
    warnings: list[str]
    brief: BriefSize | None = None  # if turns were left out


# -- what is wanted ------------------------------------------------------------------------------


def wanted(
    settings: Settings, commit: str | None, session: str | None, agent: str | None, cwd: Path
) -> RestoreRequest:
    """Return what is to be restored. `commit` may name a session, if `session` names none."""
    if commit is not None and session is None and _is_session(settings, commit, cwd):
        commit, session = None, commit
    if agent is not None:
        _check_agent(agent)
    taken, title = _taken(settings, commit, session, cwd)
    warnings = []
    if news := _unread(settings, taken):
        try:
            ingest(settings, news, wait=READ_WAIT)
        except Busy:
            warnings.append("what was said last may be missing: another process reads it just now")
        taken, title = _taken(settings, commit, session, cwd)
    target = agent or _main_agent(taken)
    if agent is None and len({t.agent for t in taken}) > 1:
        others = ", ".join(sorted({AGENTS[t.agent].title for t in taken if t.agent != target}))
        warnings.append(
            f"most of it was said in {AGENTS[target].title}; what was said in {others} is told as "
            "text"
        )
    if shutil.which(target, path=settings.env.get("PATH")) is None:
        warnings.append(f"{AGENTS[target].title} is not installed here (no `{target}` in PATH)")
    return RestoreRequest(taken, title, target, cwd, warnings)


def _resumable() -> list[str]:
    """The agents that go on from a file that is written for them."""
    return [name for name in AGENTS if AGENTS[name].writer()]


def _check_agent(agent: str) -> None:
    """Raise BadInput if nothing can be restored into an agent."""
    if agent in _resumable():
        return
    known = (
        f"{AGENTS[agent].title} cannot be resumed from a file"
        if agent in AGENTS
        else f"no such agent: {agent}"
    )
    raise BadInput(known, f"Restore into one of: {', '.join(_resumable())}.")


def _main_agent(taken: list[RestoredSource]) -> str:
    """Return the agent in which most of it was said. Raises BadInput if it cannot go on from a
    file."""
    agents = dict.fromkeys(part.agent for part in taken)
    found = max(agents, key=lambda agent: _size(taken, agent))
    if found not in _resumable():
        raise BadInput(
            f"{AGENTS[found].title} cannot be resumed from a file",
            f"Go on in another agent: --agent {_resumable()[0]}",
        )
    return found


def _is_session(settings: Settings, name: str, cwd: Path) -> bool:
    try:
        return not is_commit(settings, name, cwd)
    except NotFound:
        return False  # its error is told where commits are looked up


def _unread(settings: Settings, taken: list[RestoredSource]) -> list[Path]:
    """Transcripts of these sessions that were written to since they were read: a turn may have
    ended a moment ago."""
    found: dict[Path, None] = {}
    with reading(settings) as library:
        for item in taken:
            session = library.sessions.find(item.session_id, item.agent)
            for source in library.records.sources_of(session):
                path = to_path(source.path)
                if path.is_file() and path.stat().st_size != source.size:
                    found[path] = None
    return list(found)


def _size(taken: list[RestoredSource], agent: str) -> int:
    return sum(item.size for item in taken if item.agent == agent)


def _taken(
    settings: Settings, commit: str | None, session: str | None, cwd: Path
) -> tuple[list[RestoredSource], str]:
    """The sessions, and what the new one is called."""
    if session is not None:
        with reading(settings) as library:
            chosen = find_session(library, session)
            names = printed_session_ids(library, [(chosen.agent, chosen.session_id)])
        (ident,) = names.values()
        if commit is None:
            only = [RestoredSource(chosen.agent, chosen.session_id)]
            return only, f"Restored: {chosen.title or ident}"
    from whyfor.story.commit_stories import require_checkpoint

    checkpoint = require_checkpoint(settings, commit, cwd)
    parts = checkpoint.parts
    if session is not None:
        parts = [
            part
            for part in parts
            if (part.agent, part.session_id) == (chosen.agent, chosen.session_id)
        ]
    if not parts:
        raise NotFound(
            f"session {ident} has no part in {checkpoint.commit[:10]}",
            f"See which have: whyfor show {checkpoint.commit[:10]}",
        )
    taken = [
        RestoredSource(p.agent, p.session_id, p.last, max(1, p.last - p.first + 1)) for p in parts
    ]
    return taken, f"Restored {checkpoint.commit[:8]}: {checkpoint.subject}"


def open_sessions(settings: Settings, cwd: Path) -> list[Session]:
    """Sessions that are open in the same work tree."""
    top = checkout_root(name_place(cwd))
    return sessions_here(settings, top if isinstance(top, Path) else cwd).open


# -- writing it ----------------------------------------------------------------------------------


def restore(settings: Settings, wish: RestoreRequest) -> RestoreReport:
    """Write the new session; existing ones are only read, from the store."""
    try:
        return _restore(settings, wish)
    except OSError as error:
        raise StoreError(
            f"cannot restore: {error.strerror or error}: {error.filename}",
            "Nothing was written; check permissions.",
        ) from None


def _restore(settings: Settings, wish: RestoreRequest) -> RestoreReport:
    pen, now = _writer(wish.agent), _now()
    with reading(settings) as library:
        parts = ended(
            [(library.sessions.find(t.session_id, t.agent), t.last) for t in wish.taken], library
        )
        own = [session for session, _ in parts if session.agent == wish.agent]
        origin = (own or [session for session, _ in parts])[0]
        place = NewSession(
            session_id=pen.new_id(now),
            cwd=to_text(wish.cwd),
            title=wish.title,
            now=now,
            home=settings.user_home,
            env=settings.env,
            copy_of=f"{origin.agent}:{origin.session_id}",
            origin=origin.session_id if own else None,
        )
        made = assembled(library, pen, wish.agent, parts, place, wish.turns)
        session, *others = pen.files(made.records, place)
        moved = {
            old: file
            for one in own
            for old, file in files_beside(library, pen, one, session.content, place)
        }
    content = session.content
    for old, file in moved.items():  # the agent finds a large result by its path
        content = content.replace(old.encode(), to_text(file.path).encode())
    _write([*moved.values(), NewFile(session.path, content), *others])
    return RestoreReport(
        wish.agent,
        place.session_id,
        to_text(session.path),
        pen.command(place.session_id, to_text(session.path)),
        place.cwd,
        [{"agent": one.agent, "session_id": one.session_id, "up_to": last} for one, last in parts],
        _warnings(wish, made.size),
        made.size,
    )


def _warnings(wish: RestoreRequest, size: BriefSize | None) -> list[str]:
    if wish.turns is None or size is not None:
        return wish.warnings
    return [*wish.warnings, "it has no more turns than that, so it is restored whole"]


def _writer(agent: str) -> SessionWriter:
    found = AGENTS[agent].writer()
    assert found is not None  # `wanted` lets no other agent pass
    return found


def _write(files: Iterable[NewFile]) -> None:
    """All of them or none."""
    made: list[Path] = []
    try:
        for file in files:
            made += reversed(make_folders(file.path.parent))
            if not file.path.exists():
                made.append(file.path)
            replace(file.path, file.content)
    except BaseException:
        for path in reversed(made):
            _remove(path)
        raise


def _remove(path: Path) -> None:
    try:
        path.rmdir() if path.is_dir() else path.unlink(missing_ok=True)
    except OSError:
        return  # somebody else put something there meanwhile


def _now() -> int:
    return time.time_ns() // 1_000_000

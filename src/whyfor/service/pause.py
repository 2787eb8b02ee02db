"""pause and resume: nothing is recorded for a while, of everything, of a repository or of one
session."""

from __future__ import annotations

import os
import re
from pathlib import Path

import msgspec

from whyfor.agents import AGENTS
from whyfor.capture import spool
from whyfor.capture.filters import pauses
from whyfor.capture.pauses import (
    _with_new_trees,
    active_pauses,
    describe_pause,
    now_ms,
    settle_pauses,
)
from whyfor.capture.recover import writing
from whyfor.config import Settings
from whyfor.hook import FILES
from whyfor.model.errors import BadInput, Busy, NotFound, StoreError
from whyfor.model.paths import to_path, to_text
from whyfor.model.reports import Paused, PauseReport
from whyfor.model.signals import Process
from whyfor.store.journal import PauseEntry
from whyfor.store.open import journal, reading

_UNITS = {"s": 1, "sec": 1, "m": 60, "min": 60, "h": 3600, "d": 86_400, "w": 604_800}
_LONGEST = 366 * 86_400
_WHOLE_ID = 30  # characters: a session that is not stored yet is named by all of its id
_INSIDE = (
    "Inside an agent's session its id is known; elsewhere say which: whyfor pause --session ID"
)


class Scope(msgspec.Struct, frozen=True):
    """What is paused: neither a session nor a repository is everything."""

    agent: str = ""
    session_id: str = ""
    repository: str = ""
    folders: list[str] = []

    def is_of(self, pause: PauseEntry) -> bool:
        if self.session_id:
            return self.session_id == pause.session_id and (
                not self.agent or pause.agent in ("", self.agent)
            )
        return not pause.session_id and self.repository == pause.repository


# -- the verbs -----------------------------------------------------------------------------------


def pause(settings: Settings, scope: Scope, seconds: int | None = None) -> PauseReport:
    """From now on; a pause that is longer already stays as it is."""
    from secrets import token_hex

    now = now_ms()
    until = None if seconds is None else now + seconds * 1000
    before = next((found for found in active_pauses(settings) if scope.is_of(found)), None)
    if before is None:
        begun = PauseEntry(
            f"{now}-{token_hex(4)}",
            now,
            until,
            scope.agent,
            scope.session_id,
            scope.repository,
            scope.folders,
        )
    elif before.until is not None and (until is None or until > before.until):
        begun = msgspec.structs.replace(before, until=until)
    else:
        return PauseReport([], _told_all(settings))
    _write(settings, begun)
    _current_hook(settings)
    _settle_soon(settings)
    return PauseReport([describe_pause(begun)], _told_all(settings))


def resume(settings: Settings, scope: Scope) -> PauseReport:
    now = now_ms()
    ended = [
        msgspec.structs.replace(found, until=now, folders=_with_new_trees(found))
        for found in active_pauses(settings)
        if scope.is_of(found)
    ]
    for found in ended:
        _write(settings, found)
    _settle_soon(settings)
    return PauseReport([describe_pause(found) for found in ended], _told_all(settings))


def _told_all(settings: Settings) -> list[Paused]:
    return [describe_pause(found) for found in active_pauses(settings)]


# -- what is paused ------------------------------------------------------------------------------


def scope_of(settings: Settings, cwd: Path, repository: str | None, session: str | None) -> Scope:
    """What the options name; neither is everything."""
    if repository is not None and session is not None:
        raise BadInput("a repository or a session, not both", "Give --repo or --session.")
    if session is not None:
        return _session(settings, session)
    return (
        Scope()
        if repository is None
        else _repository(settings, cwd / Path(repository).expanduser())
    )


def _repository(settings: Settings, folder: Path) -> Scope:
    for known in active_pauses(settings):  # it may be gone by now
        if known.repository and to_text(os.path.normpath(folder)) in (
            known.repository,
            *known.folders,
        ):
            return Scope(repository=known.repository, folders=known.folders)
    from whyfor.git import hooks as git_hooks

    found = git_hooks.find_hooked(folder)
    if found is None:
        raise NotFound(f"{folder} is in no repository", "Name one: whyfor pause --repo PATH")
    trees = pauses.work_trees(to_text(found.common))
    folders = list(dict.fromkeys([to_text(found.top), *(to_text(Path(tree)) for tree in trees)]))
    if any("\n" in name for name in (to_text(found.common), *folders)):
        raise BadInput("its path has a line break in it", "Pause everything instead: whyfor pause")
    if main := next(
        (tree for tree in folders if os.path.realpath(to_path(tree) / ".git") == str(found.common)),
        None,
    ):
        folders = [main, *(folder for folder in folders if folder != main)]
    return Scope(repository=to_text(found.common), folders=folders)


def _session(settings: Settings, given: str) -> Scope:
    if not given:
        if not (
            around := next(iter(spool.named_sessions(settings.env)), None) or _by_process(settings)
        ):
            raise BadInput("in no agent's session here", _INSIDE)
        return Scope(*around)
    agent, colon, ident = given.partition(":")
    if colon and agent in AGENTS and ident:
        return Scope(agent, _plain(ident))
    for known in active_pauses(settings):
        if known.session_id.startswith(given):
            return Scope(known.agent, known.session_id)
    from whyfor.story.session_lookup import find_session

    try:
        with reading(settings) as library:
            found = find_session(library, given)
        return Scope(found.agent, found.session_id)
    except NotFound:
        if len(given) < _WHOLE_ID:
            raise NotFound(
                f"no session begins with {given}",
                "Of one that is not read yet, give the whole id: agent:ID",
            ) from None
        return Scope("", _plain(given))


def _by_process(settings: Settings) -> tuple[str, str] | None:
    """The session that one of the processes above us announced by a hook last: not every agent
    names it to commands."""
    from whyfor.hook import announce

    chain = msgspec.json.decode(b"[%s]" % announce.chain(), type=list[Process])
    above = {(process.pid, process.start) for process in chain if process.start}
    found = None
    for path in spool.files(settings.home):
        for envelope in spool.envelopes(path.read_bytes(), 0):
            if isinstance(envelope, spool.Envelope) and above & {
                (p.pid, p.start) for p in envelope.chain
            }:
                said = spool.signal(envelope, lambda _chain, _at: None)
                if (
                    tuple(said.data.get("process", ())) in above
                    and said.session_agent
                    and said.session_id
                ):
                    found = said.session_agent, said.session_id
    return found


def _plain(ident: str) -> str:
    if re.search(r"\s", ident):
        raise BadInput(f"not a session's id: {ident!r}", "See: whyfor sessions")
    return ident


def seconds_of(text: str) -> int:
    """30m, 2h, 90min, 1h30m, 3d."""
    plain = "".join(text.lower().split())
    pieces = re.findall(r"(\d+)([a-z]+)", plain)
    if (
        not pieces
        or "".join(map("".join, pieces)) != plain
        or any(unit not in _UNITS for _, unit in pieces)
    ):
        raise _not_a_time(text)
    seconds = sum(int(number) * _UNITS[unit] for number, unit in pieces)
    if not 0 < seconds <= _LONGEST:
        raise _not_a_time(text)
    return seconds


def _not_a_time(text: str) -> BadInput:
    return BadInput(f"not a length of time: {text!r}", "Use 30m, 2h, 1h30m or 3d; at most a year.")


# -- keeping it ----------------------------------------------------------------------------------


def _settle_soon(settings: Settings) -> None:
    """At once if nobody else is writing; else the next ingest does it. Hooks know already."""
    if not settings.database.exists():
        return
    try:
        with writing(settings, 0) as store:
            settle_pauses(settings, store, journal(settings))
    except (Busy, StoreError):
        pass  # said by whoever reads or writes the store next; the pause itself is in effect


def _write(settings: Settings, found: PauseEntry) -> None:
    try:
        pauses.write_pause(settings.home, found)
    except OSError as error:
        raise StoreError(
            f"cannot write to {settings.home}: {error.strerror}",
            "Nothing is paused. Check its permissions.",
        ) from None


def _current_hook(settings: Settings) -> None:
    """A hook installed by an older version knows nothing of pauses."""
    if (settings.home / "hook" / FILES[0]).exists():
        from whyfor.capture.hook_files import place_hook

        place_hook(settings)

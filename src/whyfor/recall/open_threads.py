"""Which of the things that sessions left open a later session has taken up since."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import msgspec

from whyfor.model.memory import CommandCount, PastSession
from whyfor.recall.session_memory import failed_command
from whyfor.story.command_families import check_in

_WORD = re.compile(r"\w{4,}")
_ENOUGH = 4  # words of an open thread: with fewer it cannot be known again
_SHARE = 0.8  # of them that a later session has to say


def drop_closed_threads(
    sessions: Sequence[PastSession], commands: Iterable[CommandCount]
) -> list[PastSession]:
    """Return sessions without what was done since: a check that failed and has passed in another
    session, a request or a task that a later session says in much the same words. `commands` are
    those of the project."""
    passed = {each.family: each.last_ok for each in commands}
    said = [(each.at or 0, _words(f"{each.request} {each.outcome}")) for each in sessions]
    kept = []
    for session in sessions:
        later = [words for at, words in said if at > (session.at or 0)]
        steps = tuple(step for step in session.next_steps if _is_open(step, session, passed, later))
        kept.append(msgspec.structs.replace(session, next_steps=steps))
    return kept


def _is_open(
    step: str, session: PastSession, passed: dict[str, int | None], later: list[set[str]]
) -> bool:
    command = failed_command(step)
    if command is not None:
        check = check_in(command)
        last_ok = passed.get(check.family) if check else None
        return last_ok is None or session.at is None or last_ok <= session.at
    words = _words(step)
    if len(words) < _ENOUGH:
        return True
    return all(len(words & said) < _SHARE * len(words) for said in later)


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text.lower()))

"""Who else works here now, in words for an agent."""

from __future__ import annotations

from collections.abc import Iterator

from whyfor.config import Settings
from whyfor.live.at_work import SessionAtWork, sessions_at_work
from whyfor.model.agent_answers import MemoryText, MemoryTexts
from whyfor.model.paths import path_within
from whyfor.model.text import clean, one_line

_FILES = 12
_SAID = 300
_ALONE = "No other session is open in this repository."
_SHARE = "Do not edit a file that another session is changing; tell the person instead."


def other_sessions(settings: Settings, project: str, own: str) -> MemoryTexts:
    """Return the open sessions of a project but one's own (agent:id): what each does, what it was
    asked, and which files it wrote within an hour."""
    items = []
    for each in sessions_at_work(settings):
        if each.standing.session.project == project and each.name != own:
            items.append(MemoryText(each.name, "session", list(_blocks(each))))
    if not items:
        return MemoryTexts([MemoryText("others", "sessions", [_ALONE])])
    return MemoryTexts(items, hint=_SHARE)


def _blocks(each: SessionAtWork) -> Iterator[str]:
    session, status = each.standing.session, each.standing.status
    branch = f" on {one_line(session.branch)}" if session.branch else ""
    doing = f": {one_line(status.activity)}" if status.activity else ""
    yield f"{status.phase}{branch}{doing}"
    if session.title:
        yield f"Title: {clean(session.title)[:_SAID]}"
    summary = each.standing.summary
    if summary is not None and summary.prompt:
        yield f"Asked: {clean(summary.prompt)[:_SAID]}"
    if each.files:
        shown = [path_within(path, session.cwd or "") for path in each.files[:_FILES]]
        more = f" and {len(each.files) - _FILES} more" if len(each.files) > _FILES else ""
        yield f"Wrote: {', '.join(shown)}{more}"
    for firing in each.firings:
        yield f"{firing.word}: {clean(firing.found.fact)[:_SAID]}"

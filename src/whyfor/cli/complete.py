"""What a shell completes beside commands and options: agents, projects, sessions, branches and
settings. Whatever fails completes nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from whyfor.model.errors import WhyforError

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

_MOST = 50

Completer = Callable[[click.Context, click.Parameter, str], "list[CompletionItem]"]


def _completer(known: Callable[[], Iterable[tuple[str, str]]]) -> Completer:
    """Return a completion from words and what each of them is."""

    def complete(
        _ctx: click.Context, _param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem

        found: list[CompletionItem] = []
        with suppress(WhyforError, OSError):
            for word, what in known():
                if word.startswith(incomplete) and len(found) < _MOST:
                    found.append(CompletionItem(word, help=what))
        return found

    return complete


def _agents() -> Iterable[tuple[str, str]]:
    from whyfor.service.agents import agent_names, agent_title

    return [(name, agent_title(name)) for name in agent_names()]


def _projects() -> Iterable[tuple[str, str]]:
    from whyfor import config
    from whyfor.service.projects import projects

    return [(known.project.name, known.project.path or "") for known in projects(config.load())]


def _sessions() -> Iterable[tuple[str, str]]:
    from whyfor import config
    from whyfor.model.query import SessionFilter
    from whyfor.model.text import one_line
    from whyfor.service.sessions import sessions, short_ids

    settings = config.load()
    found = sessions(settings, SessionFilter(), limit=200, everything=False)
    listed = [family.session for family in found]
    ids = short_ids(settings, [(each.agent, each.session_id) for each in listed])
    return [(ids[each.name], one_line(each.title)) for each in listed]


def _references() -> Iterable[tuple[str, str]]:
    from whyfor.service.commits import branch_names

    return [*((name, "branch") for name in branch_names(Path.cwd())), *_sessions()]


def _settings() -> Iterable[tuple[str, str]]:
    from whyfor import config
    from whyfor.service.config import list_settings

    return [(each.name, "") for each in list_settings(config.load())]


complete_agent = _completer(_agents)
complete_project = _completer(_projects)
complete_session = _completer(_sessions)
complete_reference = _completer(_references)
complete_setting = _completer(_settings)

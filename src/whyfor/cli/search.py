"""whyfor search"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from whyfor import config
from whyfor.cli.filters import agent_option, project_option, since_option, until_option
from whyfor.cli.render import (
    age_text,
    agent,
    console,
    json_option,
    print_json,
    print_note,
    printed_ids,
    project_text,
)
from whyfor.model.query import Hit, SessionFilter
from whyfor.model.text import clean, label, one_line
from whyfor.model.wire.sessions import wire_hit
from whyfor.service.search import search

_LABEL = {
    "user.prompt": "prompt",
    "assistant.message": "answer",
    "assistant.thinking": "thinking",
    "tool.call": "call",
    "tool.result": "result",
}

if TYPE_CHECKING:
    from rich.text import Text


# No short options here: -word means "without this word".
@click.command(context_settings={"ignore_unknown_options": True, "help_option_names": ["--help"]})
@click.argument("words", nargs=-1, required=True)
@click.option("--in", "fields", metavar="F,…", help="Only in: prompts, answers, thinking, tools.")
@agent_option
@project_option
@since_option
@until_option
@click.option("--limit", type=click.IntRange(min=1), default=20, show_default=True)
@click.option("--sort", type=click.Choice(["rank", "time"]), default="rank", show_default=True)
@json_option
def command(
    words: tuple[str, ...],
    fields: str | None,
    agent: str | None,
    project: str | None,
    since: str | None,
    until: str | None,
    limit: int,
    sort: str,
    as_json: bool,
) -> None:
    """Find words in prompts, answers, thinking and tool calls; shows the best hit of each turn.

    Words match in any order. "A phrase" matches words next to each other. retr* matches a
    beginning. Either OR other. -this excludes a word. Paths and identifiers match as typed:
    src/app.py, parse_when(). file:PATH is a file that a turn read or wrote, tool:NAME a tool it
    used.

    \b
    Examples:
      whyfor search retry backoff
      whyfor search '"connection reset" -test' --since 2w
      whyfor search file:auth/login.py token --project .
      whyfor search tool:Bash 'git push' --in tools --sort time
    """
    for word in words:
        if word.startswith("--") and " " not in word and len(word) > 2:
            raise click.NoSuchOption(word, ctx=click.get_current_context())
    where = SessionFilter(project=project, agent=agent, since=since, until=until, fields=fields)
    hits = search(config.load(), " ".join(words), where, limit=limit, newest=sort == "time")
    if as_json:
        print_json([wire_hit(hit) for hit in hits])
        return
    if not hits:
        print_note("Nothing found. Fewer words, a prefix*, or fewer filters.")
        return
    _render(hits)


def _render(hits: list[Hit]) -> None:
    from rich.text import Text

    out = console()
    ids = printed_ids(hit.session for hit in hits)
    for hit in hits:
        session = hit.session
        head = agent(session.agent)
        head.append(f" {ids[session.name]}", style="bold")
        when = age_text(hit.created_at or session.started_at)
        head.append(f"  {when}  {project_text(session.project)}  ", style="dim")
        head.append(one_line(session.title)[:90])
        out.print(head, soft_wrap=False, no_wrap=True, overflow="ellipsis")
        where = (f"   {_LABEL.get(hit.kind) or label(hit.kind)} · turn {hit.turn}  ", "dim")
        out.print(Text.assemble(where, _marked(hit)), no_wrap=True, overflow="ellipsis")
    print_note(f"\nRead one: whyfor show {ids[hits[0].session.name]}")


def _marked(hit: Hit) -> Text:
    from rich.text import Text

    text = Text()
    at = 0
    for start, stop in hit.marks:
        if start < at:
            continue
        text.append(clean(hit.snippet[at:start]))
        text.append(clean(hit.snippet[start:stop]), style="bold yellow")
        at = stop
    text.append(clean(hit.snippet[at:]))
    return text

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
from whyfor.model.query import FoundPassage, Hit, SessionFilter
from whyfor.model.text import clean, label, one_line
from whyfor.model.wire.sessions import wire_hit
from whyfor.service.search import CommitHit, HitRange, search, search_commits

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
@click.option("--turns", is_flag=True, help="Each turn that matches, not each session.")
@click.option("--deep", is_flag=True, help="Also read the whole of long tool results: slow.")
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
    turns: bool,
    deep: bool,
    as_json: bool,
) -> None:
    """Find sessions by words in prompts, answers, thinking and tool calls.

    Each session appears once, with its best passages. Words match in any order and form: encrypt
    finds encryption. "A phrase" matches words as typed, next to each other. retr* matches a
    beginning. Either OR other. -this excludes a word. Paths and identifiers match as typed:
    src/app.py, parse_when(). file:PATH is a file that a turn read or wrote, tool:NAME a tool it
    used. With the extra `semantic`, sessions that say the same in other words are found too: see
    whyfor memory index.

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
    which = HitRange(limit, newest=sort == "time", deep=deep, turns=turns)
    settings = config.load()
    hits = search(settings, " ".join(words), where, which)
    if as_json:
        print_json([wire_hit(hit) for hit in hits])
        return
    commits = [] if turns else search_commits(settings, " ".join(words), where)
    if not hits and not commits:
        more = "" if deep else " Or look into long tool results: --deep."
        print_note(f"Nothing found. Fewer words, a prefix*, or fewer filters.{more}")
        return
    _render(hits, commits)


def _render(hits: list[Hit], commits: list[CommitHit]) -> None:
    from rich.text import Text

    out = console()
    ids = printed_ids(passage.session for hit in hits for passage in hit.passages)
    ids |= printed_ids(hit.session for hit in hits)
    for hit in hits:
        session = hit.session
        head = agent(session.agent)
        head.append(f" {ids[session.name]}", style="bold")
        when = age_text(hit.best.created_at or session.started_at)
        head.append(f"  {when}  {project_text(session.project)}  ", style="dim")
        head.append(one_line(session.title)[:90])
        if hit.folded:
            head.append(f"  {hit.folded}", style="dim")
        out.print(head, soft_wrap=False, no_wrap=True, overflow="ellipsis")
        for passage in hit.passages:
            line = Text.assemble((_place(hit, passage, ids), "dim"), _marked(passage))
            out.print(line, no_wrap=True, overflow="ellipsis")
        for note in hit.notes:
            line = Text.assemble(
                (f"   note {note.key[:8]} · {note.type}  ", "dim"), clean(note.title)
            )
            out.print(line, no_wrap=True, overflow="ellipsis")
    for commit in commits:
        when = age_text(commit.committed_at)
        head = Text.assemble("commit ", (commit.sha[:9], "bold"))
        head.append(f"  {when}  {project_text(commit.project)}  ", style="dim")
        head.append(one_line(commit.subject)[:90])
        out.print(head, no_wrap=True, overflow="ellipsis")
    first = ids[hits[0].session.name] if hits else commits[0].sha[:9]
    print_note(f"\nRead one: whyfor show {first}")


def _place(hit: Hit, passage: FoundPassage, ids: dict[str, str]) -> str:
    """Say what kind of text it is, and where."""
    kind = _LABEL.get(passage.kind) or label(passage.kind)
    session = passage.session
    if session.id == hit.session.id:
        return f"   {kind} · turn {passage.turn}  "
    whose = "subagent " if session.parent_session_id else ""
    return f"   {kind} · turn {passage.turn} of {whose}{ids[session.name]}  "


def _marked(found: FoundPassage) -> Text:
    from rich.text import Text

    text = Text()
    at = 0
    for start, stop in found.marks:
        if start < at:
            continue
        text.append(clean(found.snippet[at:start]))
        text.append(clean(found.snippet[start:stop]), style="bold yellow")
        at = stop
    text.append(clean(found.snippet[at:]))
    return text

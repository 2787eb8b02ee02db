"""whyfor search"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from whyfor import config
from whyfor.cli.filters import (
    agent_option,
    project_option,
    since_option,
    task_option,
    until_option,
)
from whyfor.cli.render import (
    age_text,
    agent,
    console,
    json_option,
    print_json,
    print_note,
    printed_ids,
    projects_apart,
)
from whyfor.model.query import FoundPassage, Hit, SessionFilter
from whyfor.model.text import clean, label, one_line
from whyfor.model.times import parse_iso
from whyfor.model.wire.base import copy_fields
from whyfor.model.wire.sessions import (
    WireCommitHit,
    WireHit,
    WireMarkedHit,
    WireNoteHit,
    wire_commit_hit,
    wire_hit,
    wire_note_hit,
)
from whyfor.service.search import (
    CommitHit,
    HitRange,
    NoteHit,
    SearchHit,
    TeamHit,
    search_results,
    with_team_hits,
)
from whyfor.service.shared import SharedSearch, shared_hits

_LABEL = {
    "user.prompt": "prompt",
    "assistant.message": "answer",
    "assistant.thinking": "thinking",
    "tool.call": "call",
    "tool.result": "result",
}

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text


# No short options here: -word means "without this word".
@click.command(context_settings={"ignore_unknown_options": True, "help_option_names": ["--help"]})
@click.argument("words", nargs=-1, required=True)
@click.option("--in", "fields", metavar="F,…", help="Only in: prompts, answers, thinking, tools.")
@agent_option
@project_option
@since_option
@until_option
@task_option
@click.option("--limit", type=click.IntRange(min=1), default=20, show_default=True)
@click.option("--sort", type=click.Choice(["rank", "time"]), default="rank", show_default=True)
@click.option("--turns", is_flag=True, help="Each turn that matches, not each session.")
@click.option("--deep", is_flag=True, help="Also read the whole of long tool results: slow.")
@click.option("--local", is_flag=True, help="Only what is kept here: no team server is asked.")
@json_option
def command(
    words: tuple[str, ...],
    fields: str | None,
    agent: str | None,
    project: str | None,
    since: str | None,
    until: str | None,
    task: str | None,
    limit: int,
    sort: str,
    turns: bool,
    deep: bool,
    local: bool,
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
    where = SessionFilter(
        project=project, agent=agent, since=since, until=until, fields=fields, task=task
    )
    which = HitRange(limit, newest=sort == "time", deep=deep, turns=turns)
    settings = config.load()
    found = search_results(settings, " ".join(words), where, which)
    if found.trouble:
        print_note(f"Searched by words alone: {found.trouble}. See: whyfor doctor")
    hits: list[SearchHit | TeamHit] = [*found.hits]
    if not local:
        hits = _with_team(settings, " ".join(words), where, which, found.hits)
    if as_json:
        print_json([_wire(hit) for hit in hits])
        return
    if not hits:
        more = "" if deep else " Or look into long tool results: --deep."
        print_note(f"Nothing found. Fewer words, a prefix*, or fewer filters.{more}")
        return
    _render(hits)


def _with_team(
    settings: config.Settings,
    words: str,
    where: SessionFilter,
    which: HitRange,
    own: list[SearchHit],
) -> list[SearchHit | TeamHit]:
    wanted = SharedSearch(words, where, which.limit, which.newest, which.deep)
    shared = shared_hits(settings, wanted)
    if shared.trouble:
        print_note(f"Searched here alone; the team's server: {label(shared.trouble)}")
    return with_team_hits(own, shared.hits, which)


def _wire(hit: SearchHit | TeamHit) -> WireHit | WireNoteHit | WireCommitHit:
    if isinstance(hit, NoteHit):
        return wire_note_hit(hit, hit.key)
    if isinstance(hit, CommitHit):
        return wire_commit_hit(hit)
    if isinstance(hit, Hit):
        return wire_hit(hit)
    return copy_fields(WireHit, hit) if isinstance(hit, WireMarkedHit) else hit


def _render(hits: list[SearchHit | TeamHit]) -> None:
    out = console()
    sessions = [hit for hit in hits if isinstance(hit, Hit)]
    ids = printed_ids(passage.session for hit in sessions for passage in hit.passages)
    ids |= printed_ids(hit.session for hit in sessions)
    own = [hit for hit in hits if isinstance(hit, NoteHit | CommitHit)]
    places = projects_apart([*(hit.session.project for hit in sessions), *(h.project for h in own)])
    for hit in hits:
        if isinstance(hit, Hit):
            _render_session(hit, ids, places[hit.session.project], out)
        elif isinstance(hit, NoteHit):
            _render_note(hit, places[hit.project], out)
        elif isinstance(hit, CommitHit):
            _render_commit(hit, places[hit.project], out)
        else:
            _render_shared(hit, out)
    print_note(f"\nRead one: whyfor {_read_one(hits[0], ids)}")


def _read_one(first: SearchHit | TeamHit, ids: dict[str, str]) -> str:
    if isinstance(first, Hit):
        return f"show {ids[first.session.name]}"
    if isinstance(first, NoteHit):
        return f"memory show {first.key[:8]}"
    if isinstance(first, WireMarkedHit | WireNoteHit):
        return f"show {label(first.session_id)}"
    return f"show {label(first.sha[:9])}"


def _render_shared(hit: TeamHit, out: Console) -> None:
    """Something that somebody else shared: whose it is, and how to read it."""
    from rich.text import Text

    if isinstance(hit, WireMarkedHit):
        head = agent(label(hit.agent))
        head.append(f" {label(hit.session_id)}", style="bold")
        at, title = hit.created_at, hit.title or ""
    elif isinstance(hit, WireCommitHit):
        head = Text.assemble("commit ", (label(hit.sha[:9]), "bold"))
        at, title = hit.committed_at, hit.subject
    else:
        head = Text.assemble("note of ", (label(hit.session_id), "bold"))
        at, title = hit.at, hit.note_type
    head.append(f"  {age_text(parse_iso(at))}  ", style="dim")
    head.append(f"from {label(hit.person or 'the team')}  ", style="cyan")
    head.append(one_line(title)[:90])
    out.print(head, no_wrap=True, overflow="ellipsis")
    line = Text.assemble("   ", _marked_text(hit.snippet, hit.marks))
    out.print(line, no_wrap=True, overflow="ellipsis")


def _render_session(hit: Hit, ids: dict[str, str], place: str, out: Console) -> None:
    from rich.text import Text

    session = hit.session
    head = agent(session.agent)
    head.append(f" {ids[session.name]}", style="bold")
    when = age_text(hit.best.created_at or session.started_at)
    head.append(f"  {when}  {place}  ", style="dim")
    head.append(one_line(session.title)[:90])
    if hit.folded:
        head.append(f"  {hit.folded}", style="dim")
    out.print(head, soft_wrap=False, no_wrap=True, overflow="ellipsis")
    for passage in hit.passages:
        line = Text.assemble(
            (_place(hit, passage, ids), "dim"), _marked_text(passage.snippet, passage.marks)
        )
        out.print(line, no_wrap=True, overflow="ellipsis")
    for note in hit.notes:
        line = Text.assemble((f"   note {note.key[:8]} · {note.type}  ", "dim"), clean(note.title))
        out.print(line, no_wrap=True, overflow="ellipsis")


def _render_note(hit: NoteHit, place: str, out: Console) -> None:
    from rich.text import Text

    head = Text.assemble("note ", (hit.key[:8], "bold"))
    head.append(f"  {age_text(hit.at)}  {place}  ", style="dim")
    head.append(f"{hit.note_type}, {hit.state}", style="dim")
    out.print(head, no_wrap=True, overflow="ellipsis")
    out.print(
        Text.assemble("   ", _marked_text(hit.snippet, hit.marks)),
        no_wrap=True,
        overflow="ellipsis",
    )


def _render_commit(hit: CommitHit, place: str, out: Console) -> None:
    from rich.text import Text

    head = Text.assemble("commit ", (hit.sha[:9], "bold"))
    head.append(f"  {age_text(hit.committed_at)}  {place}  ", style="dim")
    head.append(one_line(hit.subject)[:90])
    out.print(head, no_wrap=True, overflow="ellipsis")


def _place(hit: Hit, passage: FoundPassage, ids: dict[str, str]) -> str:
    """Say what kind of text it is, and where."""
    kind = _LABEL.get(passage.kind) or label(passage.kind)
    session = passage.session
    if session.id == hit.session.id:
        return f"   {kind} · turn {passage.turn}  "
    whose = "subagent " if session.parent_session_id else ""
    return f"   {kind} · turn {passage.turn} of {whose}{ids[session.name]}  "


def _marked_text(snippet: str, marks: list[tuple[int, int]]) -> Text:
    from rich.text import Text

    text = Text()
    at = 0
    for start, stop in marks:
        if start < at:
            continue
        text.append(clean(snippet[at:start]))
        text.append(clean(snippet[start:stop]), style="bold yellow")
        at = stop
    text.append(clean(snippet[at:]))
    return text

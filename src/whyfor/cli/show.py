"""whyfor show"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from rich.console import Console, Group, RenderableType
from rich.markdown import Markdown
from rich.padding import Padding
from rich.text import Text

from whyfor import config
from whyfor.cli.render import (
    agent,
    console,
    duration,
    json_option,
    moment,
    note,
    print_json,
    project,
)
from whyfor.model.characters import show_code
from whyfor.model.events import StoredEvent
from whyfor.model.reports import Conversation
from whyfor.model.text import clean, count, label, one_line, plural, spent
from whyfor.model.turns import Turn
from whyfor.model.wire.commits import wire_whole_story
from whyfor.model.wire.sessions import wire_transcript, wire_turns
from whyfor.service.log import conversation_lines, is_commit, read
from whyfor.service.sessions import conversation, raw
from whyfor.story.conversation.calls import argument, diff, failed
from whyfor.terminal import data_stream, write_data

_FOLDED_LINES = 12
_RUN = 5  # more calls than this in a row fold to one line


@click.command()
@click.argument("reference", metavar="SESSION|COMMIT")
@json_option
@click.option("--markdown", "as_markdown", is_flag=True, help="A commit's story as Markdown.")
@click.option("--raw", "as_raw", is_flag=True, help="A session's stored records, byte for byte.")
@click.option(
    "--turns",
    "as_turns",
    is_flag=True,
    help="One paragraph per turn: prompt, tools, closing words.",
)
@click.option("--thinking", is_flag=True, help="Unfold the agent's thinking.")
@click.option("--tools", is_flag=True, help="Unfold every tool call and its result.")
def command(
    reference: str,
    as_json: bool,
    as_markdown: bool,
    as_raw: bool,
    as_turns: bool,
    thinking: bool,
    tools: bool,
) -> None:
    """Show one session, or the story of one commit.

    Ids and hashes can be abbreviated. If two agents use the same id, write agent:id. A commit can
    be a hash, HEAD~2, a branch, or a checkpoint's id (ctx-…).

    \b
    Examples:
      whyfor show HEAD
      whyfor show 4be07d1 --markdown
      whyfor show 3f05 --thinking --tools
      whyfor show claude:3f05 --raw > session.jsonl
    """
    settings = config.load()
    if is_commit(settings, reference, Path.cwd()):
        for name, given in {
            "--raw": as_raw,
            "--turns": as_turns,
            "--thinking": thinking,
            "--tools": tools,
        }.items():
            if given:
                raise click.UsageError(f"{name} is for sessions; {reference} is a commit")
        _commit(settings, reference, as_json, as_markdown)
        return
    if as_markdown:
        raise click.UsageError("--markdown is for commits; for a session: whyfor export SESSION")
    if as_raw:
        stdout = data_stream()
        for piece in raw(settings, reference):
            stdout.write(piece)
        return
    found = conversation(settings, reference)
    if as_json:
        print_json(wire_turns(found) if as_turns else wire_transcript(found))
    elif as_turns:
        _turns(console(), found)
    else:
        _conversation(console(), found, thinking, tools)


def _commit(settings: config.Settings, reference: str, as_json: bool, as_markdown: bool) -> None:
    story = read(settings, reference, Path.cwd())
    if as_json:
        lines = conversation_lines(settings, story.told)
        print_json(wire_whole_story(story, lines))
    elif as_markdown:
        from whyfor.service.export import commit_markdown, encoded

        write_data(encoded(commit_markdown(story)))
    else:
        from whyfor.cli.story import tell

        tell(console(), story)


# -- head and turns ------------------------------------------------------------------------------


def _head(out: Console, found: Conversation) -> None:
    session = found.session
    line = agent(session.agent)
    line.append(f" {one_line(session.title) or '(no title)'}", style="bold")
    out.print(line)
    facts = [
        session.session_id,
        project(session.project),
        label(session.branch),
        moment(session.started_at),
    ]
    if session.started_at and session.ended_at:
        facts.append(duration(session.ended_at - session.started_at))
    out.print("   " + "  ·  ".join(fact for fact in facts if fact), style="dim")
    counts = (
        f"{plural(session.prompts, 'prompt')}, {plural(session.tool_calls, 'tool call')}, "
        f"{spent(session.tokens)}"
    )
    out.print(f"   {counts}  ·  {', '.join(session.models) or 'model unknown'}", style="dim")
    if session.parent_session_id:
        out.print(f"   subagent of {session.parent_session_id}", style="dim")
    if found.children:
        out.print(
            f"   {plural(len(found.children), 'subagent')}: see whyfor sessions --all", style="dim"
        )
    if session.unparsed:
        out.print(
            f"   {plural(session.unparsed, 'line')} could not be parsed (kept raw)", style="yellow"
        )


def _turns(out: Console, found: Conversation) -> None:
    _head(out, found)
    for turn in found.turns:
        if turn.turn == 0 and not turn.closing:
            continue
        out.print()
        _prompt(out, turn.prompt or "", turn, turn.turn in found.abandoned)
        tools = ", ".join(f"{label(name)} ×{number}" for name, number in turn.tools.items())
        facts = [tools, plural(turn.failures, "failure") if turn.failures else "", _took(turn)]
        facts.append(spent(turn.tokens) if turn.tokens else "")
        out.print("   " + "  ·  ".join(fact for fact in facts if fact), style="dim")
        if turn.closing:
            out.print(Padding(_markdown(turn.closing), (0, 0, 0, 3), expand=False))
        if turn.interrupted:
            out.print("   interrupted by you", style="yellow")


def _took(turn: Turn) -> str:
    return duration(turn.ended_at - turn.started_at) if turn.started_at and turn.ended_at else ""


def _prompt(out: Console, text: str, turn: Turn | None, left: bool) -> None:
    head = Text.assemble(("▌ ", "bold #6f7ee0"))
    number = f"{turn.turn}  " if turn else ""
    when = moment(turn.started_at) if turn else ""
    head.append(
        f"{number}{when}{'  (abandoned: the conversation went on elsewhere)' if left else ''}",
        style="dim",
    )
    out.print(head)
    style = "dim" if left else "bold"
    for line in clean(text).splitlines() or ["(no prompt)"]:
        for piece in Text(line, style=style).wrap(out, max(20, out.width - 2)) or [Text("")]:
            out.print(Text.assemble(("▌ ", "bold #6f7ee0"), piece))


# -- the conversation ----------------------------------------------------------------------------


def _conversation(out: Console, found: Conversation, thinking: bool, tools: bool) -> None:
    _head(out, found)
    results = {(e.data or {}).get("id"): e for e in found.events if e.kind == "tool.result"}
    turns = {turn.turn: turn for turn in found.turns}
    run: list[StoredEvent] = []
    cwd = f"{found.session.cwd}/" if found.session.cwd else ""
    for event in found.events:
        if event.kind == "tool.call" and event.name != "AskUserQuestion":
            run.append(event)
            continue
        shown = _event(event, found, turns, results, thinking)
        if shown is None:
            continue
        _calls(out, run, results, tools, cwd)
        run = []
        if isinstance(shown, tuple):
            out.print()
            _prompt(out, event.text or "(image)", shown[0], event.turn in found.abandoned)
        else:
            out.print(shown)
    _calls(out, run, results, tools, cwd)
    if not thinking and any(e.kind == "assistant.thinking" and e.text for e in found.events):
        note("Thinking is folded: --thinking. Tool results: --tools.")


def _event(
    event: StoredEvent,
    found: Conversation,  # noqa: ARG001 - given to every kind of event
    turns: dict[int, Turn],
    results: dict[Any, StoredEvent],
    thinking: bool,
) -> RenderableType | tuple[Turn | None] | None:
    """Render an event; a prompt returns its turn, None means nothing to show."""
    data = event.data or {}
    match event.kind:
        case "user.prompt":
            return (turns.get(event.turn),)
        case "assistant.message":
            return Padding(_markdown(event.text), (1, 0, 0, 3), expand=False)
        case "assistant.thinking" if thinking and event.text:
            return Padding(Text(clean(event.text), style="italic dim"), (1, 0, 0, 3), expand=False)
        case "question.asked":
            answer = (results.get(data.get("id")) or event).data or {}
            said = "; ".join(map(str, (answer.get("answers") or {}).values()))
            chosen = (f"  → {one_line(said)}" if said else "", "bold")
            return Text.assemble((f"   ? {one_line(event.text)}", "dim"), chosen)
        case "error":
            return Text(f"   ✕ {one_line(event.text)[:300]}", style="red")
        case "compaction" if not data.get("summary"):
            return Text(f"   ┄┄ conversation compacted ({_compacted(data)}) ┄┄", style="dim")
        case "turn.completed" if data.get("interrupted"):
            return Text("   ■ interrupted by you", style="yellow")
        case "status.changed" if data.get("command"):
            return Text(f"   {one_line(event.text)}", style="dim")
        case "status.changed" if data.get("rolled_back_turns") or data.get("rewound_to"):
            return Text("   ↶ rewound", style="yellow")
    return None


def _compacted(data: dict[str, Any]) -> str:
    before, after = data.get("preTokens"), data.get("postTokens")
    return (
        f"{count(before)} → {count(after)} tokens"
        if before
        else label(str(data.get("trigger") or "summary"))
    )


def _markdown(text: str) -> Markdown:
    return Markdown(clean(text), code_theme="ansi_dark", hyperlinks=False)


def _calls(
    out: Console, run: list[StoredEvent], results: dict[Any, StoredEvent], tools: bool, cwd: str
) -> None:
    edits = [call for call in run if diff(call, _result(call, results))]
    if len(run) > _RUN and not tools:
        kinds: dict[str, int] = {}
        for call in run:
            kinds[call.name or "?"] = kinds.get(call.name or "?", 0) + 1
        told = ", ".join(f"{label(name)} ×{number}" for name, number in kinds.items())
        out.print(Text(f"   ▸ {told}", style="dim"))
        run = [call for call in run if call in edits or failed(_result(call, results))]
    for call in run:
        out.print(_call(call, results, tools, cwd))


def _result(call: StoredEvent, results: dict[Any, StoredEvent]) -> StoredEvent | None:
    return results.get((call.data or {}).get("id"))


def _call(
    call: StoredEvent, results: dict[Any, StoredEvent], tools: bool, cwd: str
) -> RenderableType:
    result = _result(call, results)
    line = Text.assemble(("   ▸ ", "dim"))
    line.append(label(call.name) or "?", style="bold")
    line.append("  " + one_line(_short(argument(call), cwd))[:120], style="dim")
    if result is None:
        line.append("  no result recorded", style="dim italic")
    elif failed(result):
        code = (result.data or {}).get("exit_code")
        line.append(f"  ✕ {'exit ' + str(code) if code is not None else 'failed'}", style="red")
    elif result.text:
        line.append(f"  → {plural(result.text.count(chr(10)) + 1, 'line')}", style="dim")
    parts: list[RenderableType] = [line]
    if changed := diff(call, result):
        parts.append(
            Padding(
                _coloured(changed, None if tools else _FOLDED_LINES), (0, 0, 0, 7), expand=False
            )
        )
    if result is not None and result.text and (tools or failed(result)):
        parts.append(
            Padding(
                _folded(result.text, None if tools else _FOLDED_LINES), (0, 0, 0, 7), expand=False
            )
        )
    return Group(*parts)


def _short(text: str, cwd: str) -> str:
    """Shorten paths inside the session's own directory."""
    return text.replace(cwd, "") if cwd else text


def _coloured(lines: list[str], most: int | None) -> Text:
    text = Text()
    for line in lines[:most]:
        style = {"+": "green", "-": "red"}.get(line[:1], "dim")
        text.append(show_code(line.removesuffix("\r")).replace("\n", " ") + "\n", style=style)
    if most is not None and len(lines) > most:
        text.append(f"… {len(lines) - most} more lines\n", style="dim")
    text.rstrip()
    return text


def _folded(text: str, most: int | None) -> Text:
    lines = clean(text).splitlines()
    shown = Text("\n".join(lines[:most]), style="dim")
    if most is not None and len(lines) > most:
        shown.append(f"\n… {len(lines) - most} more lines")
    return shown

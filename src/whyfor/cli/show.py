"""whyfor show"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec.structs import replace
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from whyfor import config
from whyfor.cli.complete import complete_reference
from whyfor.cli.markdown import markdown
from whyfor.cli.render import (
    agent,
    barred_lines,
    console,
    duration_text,
    json_option,
    moment_text,
    print_json,
    print_note,
    project_text,
)
from whyfor.model.characters import show_code
from whyfor.model.conversation import TranscriptCall, TranscriptEntry
from whyfor.model.errors import NotFound
from whyfor.model.memory import Injection
from whyfor.model.reports import Conversation
from whyfor.model.text import clean, label, one_line, plural, tokens_text
from whyfor.model.turns import Turn
from whyfor.model.wire.commits import wire_whole_story
from whyfor.model.wire.sessions import wire_transcript, wire_turns
from whyfor.service.replay import play
from whyfor.service.shared import shared_session, shared_story
from whyfor.service.show import (
    TranscriptFilter,
    conversation_lines,
    is_commit,
    is_task,
    load_conversation,
    raw_records,
    show_commit,
    transcript,
)
from whyfor.terminal import data_stream, is_terminal, options, say, write_data, write_screen

if TYPE_CHECKING:
    from whyfor.service.shared import SharedReading

_FOLDED_LINES = 12
_KINDS = frozenset(
    "prompt task said thinking question error compaction interrupted command rewound".split()
)
_AT_ONCE = 50  # texts that are laid out before they are printed
_RUN = 5  # more calls than this in a row fold to one line


@click.command()
@click.argument("reference", metavar="SESSION|COMMIT|TASK", shell_complete=complete_reference)
@json_option
@click.option("--markdown", "as_markdown", is_flag=True, help="A commit's story as Markdown.")
@click.option("--raw", "as_raw", is_flag=True, help="A session's stored records, byte for byte.")
@click.option(
    "--turns",
    "as_turns",
    is_flag=True,
    help="One paragraph per turn: prompt, tools, closing words.",
)
@click.option("--replay", "as_replay", is_flag=True, help="Play a recorded terminal here.")
@click.option("--speed", type=click.FloatRange(0.1, 100), default=1.0, help="How fast to play it.")
@click.option("--link", "as_link", is_flag=True, help="Only its address on the team's server.")
@click.option("--thinking", is_flag=True, help="Unfold the agent's thinking.")
@click.option("--tools", is_flag=True, help="Unfold every tool call and its result.")
def command(
    reference: str,
    as_json: bool,
    as_markdown: bool,
    as_raw: bool,
    as_turns: bool,
    as_replay: bool,
    speed: float,
    as_link: bool,
    thinking: bool,
    tools: bool,
) -> None:
    """Show one session, the story of one commit, or one task.

    Ids and hashes can be abbreviated. If two agents use the same id, write agent:id. A commit can
    be a hash, HEAD~2, a branch, or a checkpoint's id (ctx-…). A task is written out.

    \b
    Examples:
      whyfor show HEAD
      whyfor show 4be07d1 --markdown
      whyfor show 3f05 --thinking --tools
      whyfor show HEAD --link
      whyfor show 5cc9 --replay --speed 4
      whyfor show SHOP-12
      whyfor show claude:3f05 --raw > session.jsonl
    """
    settings = config.load()
    if as_link:
        from whyfor.service.team_link import team_link  # here: few ask for a link

        _print_link(team_link(settings, reference, Path.cwd()), as_json)
        return
    if as_replay:
        _replay(settings, reference, speed)
        return
    if is_task(settings, reference):
        from whyfor.cli.tasks import print_task  # here: most of what is shown is no task

        print_task(settings, reference, as_json=as_json)
        return
    of_commit, shared = _meant(settings, reference)
    if of_commit:
        given = {"--raw": as_raw, "--turns": as_turns, "--thinking": thinking, "--tools": tools}
        _refuse_for_commit(reference, given)
        _commit(settings, reference, as_json, as_markdown)
        return
    if as_markdown:
        raise click.UsageError("--markdown is for commits; for a session: whyfor export SESSION")
    person = shared.source if shared else None
    if shared is not None:
        settings, reference = shared.settings, shared.name
    if as_raw:
        stdout = data_stream()
        for piece in raw_records(settings, reference):
            stdout.write(piece)
        return
    found = load_conversation(settings, reference, whole=(as_json or tools) and not as_turns)
    found = replace(found, person=person)
    if as_json:
        print_json(wire_turns(found) if as_turns else wire_transcript(found))
    elif as_turns:
        _turns(console(), found)
    else:
        _conversation(console(), found, thinking, tools)


def _refuse_for_commit(reference: str, given: dict[str, bool]) -> None:
    """Raise if an option was given that only sessions have."""
    for name, is_given in given.items():
        if is_given:
            raise click.UsageError(f"{name} is for sessions; {reference} is a commit")


def _meant(settings: config.Settings, reference: str) -> tuple[bool, SharedReading | None]:
    """Return whether a commit is meant; if not, what somebody shared of a session that is not kept
    here."""
    missing = None
    try:
        if is_commit(settings, reference, Path.cwd()):
            return True, None
    except NotFound as error:
        missing = error
    shared, trouble = shared_session(settings, reference)
    if trouble:
        print_note(f"Not here; the team's server could not be asked: {label(trouble)}")
    if shared is not None:
        print_note(label(shared.label))
    elif missing is not None:
        raise missing
    return False, shared


def _replay(settings: config.Settings, reference: str, speed: float) -> None:
    """Play a recorded terminal."""
    options.pager = False
    if not is_terminal():
        raise click.UsageError("--replay needs a terminal; for the bytes: whyfor show ID --raw")
    played = play(settings, reference, write_screen, speed)
    print_note(f"Played {duration_text(round(played.seconds * 1000))}.")


def _print_link(address: str, as_json: bool) -> None:
    if as_json:
        print_json({"link": address})
    else:
        say(address)


def _commit(settings: config.Settings, reference: str, as_json: bool, as_markdown: bool) -> None:
    story = show_commit(settings, reference, Path.cwd())
    if story.told.checkpoint is None or not story.told.checkpoint.parts:
        shared, trouble = shared_story(settings, reference, Path.cwd())
        if shared is not None:
            settings = shared.settings
            story = show_commit(settings, shared.name, Path.cwd())
            story = replace(story, told=replace(story.told, person=shared.source))
            print_note(label(shared.label))
        elif trouble:
            print_note(f"Not here; the team's server could not be asked: {label(trouble)}")
    if as_json:
        lines = conversation_lines(settings, story.told)
        print_json(wire_whole_story(story, lines))
    elif as_markdown:
        from whyfor.service.export import commit_markdown, encoded

        write_data(encoded(commit_markdown(story)))
    else:
        from whyfor.cli.story import print_story

        print_story(console(), story)


# -- head and turns ------------------------------------------------------------------------------


def _head(out: Console, found: Conversation) -> None:
    session = found.session
    line = agent(session.agent)
    line.append(f" {one_line(session.title) or '(no title)'}", style="bold")
    out.print(line)
    facts = [
        session.session_id,
        project_text(session.project),
        label(session.branch),
        moment_text(session.started_at),
    ]
    if session.started_at and session.ended_at:
        facts.append(duration_text(session.ended_at - session.started_at))
    out.print("   " + "  ·  ".join(fact for fact in facts if fact), style="dim")
    counts = (
        f"{plural(session.prompts, 'prompt')}, {plural(session.tool_calls, 'tool call')}, "
        f"{tokens_text(session.tokens)}"
    )
    out.print(f"   {counts}  ·  {', '.join(session.models) or 'model unknown'}", style="dim")
    if session.parent_session_id:
        out.print(f"   subagent of {session.parent_session_id}", style="dim")
    if found.imported_from:
        name = found.imported_from.rpartition("-")[0]
        out.print(f"   imported from {label(name)}", style="dim")
    if found.children:
        out.print(
            f"   {plural(len(found.children), 'subagent')}: see whyfor sessions --all", style="dim"
        )
    for told in found.told:
        out.print(f"   {_told_text(told)}", style="dim")
    if session.unparsed:
        out.print(
            f"   {plural(session.unparsed, 'line')} could not be parsed (kept raw)", style="yellow"
        )


_TOLD_WHEN = {"threads": "after a compaction", "prompt": "with a prompt"}


def _told_text(told: Injection) -> str:
    when = _TOLD_WHEN.get(told.part, "at its start")
    parts = [f"told {when} of {plural(len(told.sources), 'source')}, {told.tokens:,} tokens"]
    if told.files:
        parts.append(f"{len(told.files_used)} of {plural(len(told.files), 'file')} named were used")
    if told.fetched:
        parts.append(f"{len(told.fetched)} looked up")
    return "  ·  ".join(parts)


def _turns(out: Console, found: Conversation) -> None:
    _head(out, found)
    for turn in found.turns:
        if turn.turn == 0 and not turn.closing:
            continue
        out.print()
        out.print(Group(*_prompt(out, turn.prompt or "", turn, turn.turn in found.abandoned)))
        tools = ", ".join(f"{label(name)} ×{number}" for name, number in turn.tools.items())
        facts = [tools, plural(turn.failures, "failure") if turn.failures else "", _took(turn)]
        facts.append(tokens_text(turn.tokens) if turn.tokens else "")
        out.print("   " + "  ·  ".join(fact for fact in facts if fact), style="dim")
        if turn.closing:
            out.print(Padding(markdown(turn.closing), (0, 0, 0, 3), expand=False))
        if turn.interrupted:
            out.print("   interrupted by you", style="yellow")


def _took(turn: Turn) -> str:
    return (
        duration_text(turn.ended_at - turn.started_at) if turn.started_at and turn.ended_at else ""
    )


def _prompt(out: Console, text: str, turn: Turn | None, left: bool) -> Iterator[Text]:
    head = Text.assemble(("▌ ", "bold #6f7ee0"))
    number = f"{turn.turn}  " if turn else ""
    when = moment_text(turn.started_at) if turn else ""
    head.append(
        f"{number}{when}{'  (abandoned: the conversation went on elsewhere)' if left else ''}",
        style="dim",
    )
    yield head
    style = "dim" if left else "bold"
    yield from barred_lines(out, text if text.strip() else "(no prompt)", style)


# -- the conversation ----------------------------------------------------------------------------


def _conversation(out: Console, found: Conversation, thinking: bool, tools: bool) -> None:
    _head(out, found)
    shown = _shown(out, found, thinking, tools)
    while batch := list(islice(shown, _AT_ONCE)):
        out.print(Group(*batch), crop=False)  # nothing is wider
    if not thinking and any(e.kind == "assistant.thinking" and e.text for e in found.events):
        print_note("Thinking is folded: --thinking. Tool results: --tools.")


def _shown(
    out: Console, found: Conversation, thinking: bool, tools: bool
) -> Iterator[RenderableType]:
    """Yield what is printed of a conversation."""
    turns = {turn.turn: turn for turn in found.turns}
    wanted = TranscriptFilter(_KINDS if thinking else _KINDS - {"thinking"})
    for entry in transcript(found.events, found.session, wanted, found.abandoned):
        if entry.calls:
            yield from _calls(entry.calls, tools)
        elif entry.kind in ("prompt", "task"):
            yield Text("")
            yield from _prompt(out, entry.text, turns.get(entry.turn), entry.left)
        else:
            yield _entry(entry)


def _entry(entry: TranscriptEntry) -> RenderableType:
    """How something looks that is neither a prompt nor a call."""
    match entry.kind:
        case "said":
            return Padding(markdown(entry.text), (1, 0, 0, 3), expand=False)
        case "thinking":
            return Padding(Text(clean(entry.text), style="italic dim"), (1, 0, 0, 3), expand=False)
        case "question":
            chosen = (f"  → {one_line(entry.reply)}" if entry.reply else "", "bold")
            return Text.assemble((f"   ? {one_line(entry.text)}", "dim"), chosen)
        case "error":
            return Text(f"   ✕ {one_line(entry.text)[:300]}", style="red")
        case "compaction":
            return Text(f"   ┄┄ conversation compacted ({entry.text}) ┄┄", style="dim")
        case "interrupted":
            return Text("   ■ interrupted by you", style="yellow")
        case "rewound":
            return Text("   ↶ rewound", style="yellow")
    return Text(f"   {one_line(entry.text)}", style="dim")


def _calls(run: list[TranscriptCall], tools: bool) -> Iterator[RenderableType]:
    if len(run) > _RUN and not tools:
        names = Counter(call.name for call in run)
        told = ", ".join(f"{name} ×{number}" for name, number in names.items())
        yield Text(f"   ▸ {told}", style="dim")
        run = [call for call in run if call.diff or call.outcome]
    for call in run:
        yield from _call(call, tools)


def _call(call: TranscriptCall, tools: bool) -> Iterator[RenderableType]:
    most = None if tools else _FOLDED_LINES
    line = Text.assemble(("   ▸ ", "dim"))
    line.append(call.name, style="bold")
    line.append("  " + one_line(call.argument)[:120], style="dim")
    line.append_text(_outcome(call))
    yield line
    if call.diff:
        yield Padding(_coloured(call.diff, most), (0, 0, 0, 7), expand=False)
    if call.result and (tools or call.outcome == "failed"):
        yield Padding(_folded(call.result, most), (0, 0, 0, 7), expand=False)


def _outcome(call: TranscriptCall) -> Text:
    if call.result is None:
        return Text("  no result recorded", style="dim italic")
    if call.outcome == "denied":
        return Text("  denied", style="yellow")
    if call.outcome == "failed":
        code = call.exit_code
        return Text(f"  ✕ {'failed' if code is None else f'exit {code}'}", style="red")
    if call.result:
        return Text(f"  → {plural(call.result.count(chr(10)) + 1, 'line')}", style="dim")
    return Text("")


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

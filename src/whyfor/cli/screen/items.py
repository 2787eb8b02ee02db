"""One thing said or done in a conversation, as it looks in a terminal."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from whyfor.cli.markdown import markdown
from whyfor.cli.render import count, duration_text, moment_text
from whyfor.cli.screen.words import exact_text, short, shown_name
from whyfor.model.characters import show_code
from whyfor.model.conversation import (
    CommitItem,
    Compaction,
    Decision,
    ErrorItem,
    Item,
    MessageItem,
    NoticeItem,
    Prompt,
    Question,
    Run,
    ShownEdit,
    SubagentItem,
    Thought,
    ToolCallItem,
)
from whyfor.model.text import clean, one_line, plural

EDITED = 12  # lines of a diff, unless it is unfolded
_IN = (0, 0, 0, 2)


def render_item(item: Item, unfolded: bool) -> RenderableType:
    """Words first, machinery folded to one line each."""
    render = _RENDER.get(type(item))
    return render(item, unfolded) if render else Text(f"  {item.kind}", "dim")


def _message(item: MessageItem, _unfolded: bool) -> RenderableType:
    return Padding(Group(markdown(item.text), *_more(item.more)), (1, 0, 1, 2))


def _run(item: Run, unfolded: bool) -> RenderableType:
    head = _line("▸", "", item.text, _took(item.took))
    if not unfolded:
        return head
    return Group(head, *(Padding(render_item(each, False), _IN) for each in item.items))


def _decision(item: Decision, _unfolded: bool) -> RenderableType:
    word = "allowed" if item.approved else "denied"
    by = "a rule" if item.by_rule else "you"
    after = f" after {duration_text(item.after)}" if item.after is not None else ""
    return Text.assemble((f"  {by} {word}{after}: ", "dim"), exact_text(item.what))


def _compaction(item: Compaction, unfolded: bool) -> RenderableType:
    sizes = f": {count(item.before)} → {count(item.after)} tokens" if item.before else ""
    head = Text(f"┄┄ conversation compacted{sizes} ┄┄", "dim")
    if not unfolded or not item.summary:
        return head
    return Group(head, Padding(Text(clean(item.summary), "dim"), _IN))


def _error(item: ErrorItem, _unfolded: bool) -> RenderableType:
    times = f" ×{item.number}" if item.number > 1 else ""
    return Text(f"  ✕ {short(item.text) or 'an error without words'}{times}", "red")


def _notice(item: NoticeItem, _unfolded: bool) -> RenderableType:
    return Text(f"  {short(item.text)}", "dim")


def _commit(item: CommitItem, _unfolded: bool) -> RenderableType:
    line = f"● {item.checkpoint.commit[:8]} {short(item.checkpoint.subject)}"
    evidence = f"  {item.part.evidence}, {item.part.confidence}"
    return Text.assemble((line, "bold"), (evidence, "dim"))


def _prompt(item: Prompt, _unfolded: bool) -> RenderableType:
    head = Text(moment_text(item.at) if item.at else "", "dim")
    if item.by_agent:
        head.append("  asked by the agent that started it")
    if item.queued:
        head.append("  typed while it worked")
    pictures = f"({plural(len(item.pictures), 'picture')})" if item.pictures else ""
    words = "\n".join(filter(None, (clean(item.text).strip("\n"), pictures))) or "(no words)"
    return Group(head, Text(words, "bold", overflow="fold"), *_more(item.more))


def _thought(item: Thought, unfolded: bool) -> RenderableType:
    first = one_line(item.text)
    if not unfolded or not first:
        return _line("▸", "Thought", short(first, 120), _took(item.took), style="dim italic")
    words = Padding(Text(clean(item.text).strip(), "italic dim"), _IN)
    return Group(
        _line("▾", "Thought", "", _took(item.took), style="dim italic"), words, *_more(item.more)
    )


def _call(item: ToolCallItem, unfolded: bool) -> RenderableType:
    open_ = unfolded or item.unfolded
    end = "  ".join(filter(None, (*map(one_line, item.meta), _took(item.took))))
    bad = item.failed and not item.denied
    if bad:
        end = f"✕ {end}"
    head = _line("▾" if open_ else "▸", item.verb, short(item.argument, 400), end, bad=bad)
    parts: list[RenderableType] = [head]
    for edit in item.edits:
        parts.append(Padding(_edit(edit, unfolded), _IN))
    if open_:
        parts += [Padding(exact_text(item.given), _IN)] if item.given else []
        parts += [Padding(Text(clean(item.output), "dim"), _IN)] if item.output else []
        if item.more:
            parts.append(Padding(Text(f"… {plural(item.more, 'more line')}", "dim"), _IN))
    return Group(*parts)


def _edit(edit: ShownEdit, unfolded: bool) -> Text:
    made = Text.assemble(
        (shown_name(edit.path, 200), "bold"),
        (f"  +{edit.added}", "green"),
        (f" −{edit.removed}", "red"),
    )
    shown = edit.rows if unfolded else edit.rows[:EDITED]
    for row in shown:
        style = {"+": "green", "-": "red"}.get(row.sign, "dim")
        made.append(f"\n{row.sign or ' '} {show_code(row.text.removesuffix(chr(13)))}", style)
    if left := len(edit.rows) - len(shown) + edit.more:
        made.append(f"\n… {plural(left, 'more line')}", "dim")
    return made


def _sub(item: SubagentItem, unfolded: bool) -> RenderableType:
    end = "at work" if item.open else "✕ failed" if item.failed else ""
    head = _line(
        "▸",
        item.role or "Subagent",
        short(item.title),
        f"{end}  {_took(item.took)}".strip(),
        bad=item.failed,
    )
    parts: list[RenderableType] = [head]
    if unfolded:
        parts += [Padding(render_item(call, False), _IN) for call in item.calls]
        parts += (
            [Padding(Text(f"… {plural(item.more, 'more call')}", "dim"), _IN)] if item.more else []
        )
    if item.result:
        parts.append(Padding(Text(short(item.result, 600), "dim"), _IN))
    return Group(*parts)


def _question(item: Question, _unfolded: bool) -> RenderableType:
    parts: list[RenderableType] = []
    for each in item.asked:
        parts.append(Text(f"? {short(each.question, 1000)}", "bold" if item.open else "dim"))
        if each.chosen:
            parts.append(Text(f"  → {short(each.chosen, 1000)}", "bold blue"))
        parts += [Text(f"  – {short(other)}", "dim") for other in each.others]
    return Group(*parts)


def _line(
    sign: str, verb: str, argument: str, end: str, *, style: str = "", bad: bool = False
) -> Text:
    made = Text.assemble((f"{sign} ", "dim"))
    if verb:
        made.append(f"{shown_name(verb, 60)}  ", style or "bold")
    made.append(argument, style or "dim")
    if end:
        made.append(f"  {short(end, 120)}", "red" if bad else "dim")
    return made


def _took(millis: int | None) -> str:
    return duration_text(millis) if millis is not None else ""


def _more(characters: int) -> list[RenderableType]:
    return [Text(f"… {plural(characters, 'more character')}", "dim")] if characters else []


_RENDER: dict[type[Item], Callable[[Any, bool], RenderableType]] = {
    Prompt: _prompt,
    MessageItem: _message,
    Thought: _thought,
    ToolCallItem: _call,
    Run: _run,
    SubagentItem: _sub,
    Question: _question,
    Decision: _decision,
    Compaction: _compaction,
    ErrorItem: _error,
    NoticeItem: _notice,
    CommitItem: _commit,
}

"""A session at a glance, in lines of text: the same for the live screen and for a plain table."""

from __future__ import annotations

from itertools import chain

from rich.text import Text

from whyfor.cli.render import age_text, agent, project_text
from whyfor.live.board import NowBoard, SessionCard
from whyfor.model.attention import Firing
from whyfor.model.characters import split_code
from whyfor.model.text import label, one_line, plural

TITLE_MAX = 200
LINE_MAX = 300
# Shape, word and colour: none of them speaks alone.
SHAPE = {
    "waiting_approval": ("◆", "Needs approval", "bold yellow"),
    "waiting": ("■", "Waiting for you", "bold blue"),
    "running": ("●", "Running", "bold green"),
    "rest": ("○", "Idle and ended", "dim"),
    "idle": ("○", "Idle", "dim"),
    "exited": ("□", "Exited", "dim"),
    "unknown": ("?", "Unknown", "dim"),
    "failed": ("✕", "Failed", "red"),
}
LEVEL = {"act": ("▲", "bold red"), "look": ("▲", "yellow"), "know": ("✓", "green")}
ATTENTION_MAX = 6  # lines
WANTS = {
    "shell": "Wants to run a command",
    "edit": "Wants to change a file",
    "read": "Wants to read a file",
    "search": "Wants to search files",
    "web": "Wants to go to the web",
    "subagent": "Wants to start a subagent",
    "plan": "Wants you to agree to its plan",
}


def exact_text(text: str) -> Text:
    """What a person must judge: nothing in it is hidden, moved or taken away; what has no shape
    is named."""
    made = Text(overflow="fold")
    for piece, hidden in split_code(text):
        if hidden:
            made.append(f"<U+{ord(piece):04X}>", style="reverse")
        else:
            made.append(piece)
    return made


def short(text: str | None, limit: int = LINE_MAX) -> str:
    """Prose on one line, cut where it is too long."""
    return _cut(one_line(text), limit)


def shown_name(text: str | None, limit: int = LINE_MAX) -> str:
    """A name on one line: what is hidden in it is named."""
    return _cut(label(text), limit)


def _cut(line: str, limit: int) -> str:
    return line if len(line) <= limit else line[: limit - 1] + "…"


def lede(board: NowBoard) -> str:
    """Who needs you, in one line."""
    number = {phase: len(cards) for phase, cards in board.groups.items()}
    told = []
    if count := number["waiting_approval"]:
        told.append(f"{count} {'needs' if count == 1 else 'need'} approval")
    if count := number["waiting"]:
        told.append(f"{count} {'waits' if count == 1 else 'wait'} for you")
    if count := number["running"]:
        told.append(f"{count} {'is' if count == 1 else 'are'} running")
    if not board.open:
        return "No session is open."
    projects = len({card.where for card in board.open})
    where = f"{plural(len(board.open), 'open session')} in {plural(projects, 'project')}."
    return f"{', '.join(told) or 'None waits for you, none is running'}. {where}"


def attention_lines(firings: list[Firing], board: NowBoard) -> list[Text]:
    """What needs you, the most urgent first, in at most so many lines."""
    told = [each for each in firings if not each.muted]
    titles = {card.name: title(card) for card in chain.from_iterable(board.groups.values())}
    lines = []
    for each in told[:ATTENTION_MAX]:
        shape, style = LEVEL[each.level]
        line = Text(no_wrap=True, overflow="ellipsis")
        line.append(f"{shape} {each.word}", style=style)
        name = titles.get(each.session, each.session)
        line.append(f"  {short(name, 40)}", style="bold")
        line.append(f"  {short(each.found.fact)}")
        lines.append(line)
    if len(told) > ATTENTION_MAX:
        more = f"  {len(told) - ATTENTION_MAX} more: whyfor attention"
        lines.append(Text(more, style="dim"))
    return lines


def title(card: SessionCard) -> str:
    return (
        short(card.session.title, TITLE_MAX) or short(card.prompt, TITLE_MAX) or "Nothing asked yet"
    )


def where(card: SessionCard) -> str:
    place = project_text(card.session.project) if card.session.project else card.place
    return "  ".join(
        filter(None, (shown_name(place, 60) or "no project", shown_name(card.session.branch, 60)))
    )


def mark(card: SessionCard) -> Text:
    return agent(card.session.agent)


def old(card: SessionCard) -> str:
    """How long it has been so; of what works, when it was last heard."""
    status = card.status
    at = (
        status.since
        if status.phase in ("waiting_approval", "waiting")
        else status.heard_at or card.session.ended_at
    )
    return age_text(at)


def activity(card: SessionCard) -> str:
    """What it does, or what it waits for, on one line."""
    status = card.status
    if status.approval is not None:
        return short(
            f"{wants(card)}: {status.approval.action or status.approval.path or 'not told yet'}"
        )
    if status.questions:
        return short("Asks: " + " ".join(status.questions))
    if status.failed:
        return short(f"Failed: {status.failed}")
    if status.phase == "running":
        return short(" ".join(card.doing))
    if status.interrupted:
        return "You interrupted it"
    if status.phase == "waiting":
        return short(card.glance.said)
    return short(status.evidence if status.phase == "unknown" else _done(card))


def _done(card: SessionCard) -> str:
    if not card.session.prompts:
        return "nothing was asked"
    commits = f", {plural(card.glance.commits, 'commit')}" if card.glance.commits else ""
    return plural(card.session.prompts, "turn") + commits


def wants(card: SessionCard) -> str:
    asked = card.status.approval
    known = (
        WANTS.get(card.asks)
        or f"Wants to use {shown_name(asked.tool if asked else None, 60) or 'a tool'}"
    )
    outside = {
        "edit": "Wants to write outside its folder",
        "read": "Wants to read outside its folder",
    }
    return outside.get(card.asks, known) if card.outside else known


def request(card: SessionCard) -> list[Text]:
    """What it asks to be allowed: whole, however long."""
    asked = card.status.approval
    if asked is None:
        return []
    made = [Text(wants(card), "bold")]
    untold = Text("It has not told yet what exactly. Its terminal shows it.")
    made.append(exact_text(asked.action) if asked.action else untold)
    if asked.path and asked.path not in (asked.action or ""):
        made.append(exact_text(asked.path))
    if asked.cut:
        made.append(
            Text(
                "! There is more of it than is kept here. Read all of it in its terminal.", "yellow"
            )
        )
    if asked.action and not asked.certain:
        made.append(Text("! Several of its calls could be meant; this is the likeliest.", "yellow"))
    by = "asked by a subagent " if asked.subagent else ""
    place = f"in {shown_name(card.place, 120)} · " if card.place else ""
    made.append(
        Text(
            f"{by}{place}answer in its terminal" + (f", pid {card.pid}" if card.pid else ""), "dim"
        )
    )
    return made


def card_lines(card: SessionCard) -> list[Text]:
    """What follows a card's title: where, and what one wants to know of it."""
    made = [Text(where(card), "dim")]
    status = card.status
    if status.approval is not None:
        return made + request(card)
    if status.questions:
        options = [Text(f"  – {short(option)}") for option in card.glance.options]
        return [*made, Text(f"? {short(' '.join(status.questions), 2000)}", "bold"), *options]
    if status.phase == "running":
        made.append(Text(activity(card)))
        if status.subagent:
            made.append(Text("a subagent is at work", "dim"))
    elif activity(card):
        made.append(Text(activity(card), "red" if status.failed else ""))
    if prompt := short(card.prompt):
        made.append(Text.assemble(("▌ ", "blue"), (prompt, "")))
    return made


def sought(card: SessionCard) -> str:
    """What a filter looks in, in small letters."""
    session, status = card.session, card.status
    shape = SHAPE["failed" if status.failed else status.phase][1]
    facts = (
        session.agent,
        session.session_id,
        session.project,
        session.branch,
        title(card),
        activity(card),
        shape,
    )
    return " ".join(fact for fact in facts if fact).casefold()

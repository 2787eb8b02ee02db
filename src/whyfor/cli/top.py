"""whyfor top"""

from __future__ import annotations

import os
import sys
from itertools import chain
from typing import TYPE_CHECKING

import click

from whyfor import config
from whyfor.cli.extras import missing_extra
from whyfor.cli.render import (
    age_text,
    console,
    json_option,
    print_json,
    print_note,
    project_text,
)
from whyfor.cli.tables import AgentCell, FittedTable
from whyfor.config import Settings
from whyfor.live.board import NowBoard, PreviewCache, SessionCard
from whyfor.model.attention import ListedFiring
from whyfor.model.status import LiveStatus
from whyfor.model.wire.status import WireStatuses, wire_status
from whyfor.service.attention import attention_now
from whyfor.service.top import standings

if TYPE_CHECKING:
    from rich.text import Text


@click.command()
@click.option("--once", is_flag=True, help="Print the current state once, and exit.")
@json_option
def command(once: bool, as_json: bool) -> None:
    """Watch in this terminal which sessions are running, and which wait for you and why.

    j and k select a session, Enter opens it, / filters, ? shows all keys, q quits. You answer in
    the session's own terminal. Without a terminal, it prints a table once.

    \b
    Examples:
      whyfor top
      whyfor top --once
      whyfor top --json
    """
    settings = config.load()
    if as_json:
        found = standings(settings)
        print_json(WireStatuses([wire_status(each) for each in _ordered(settings, found)]))
    elif once or not _is_terminal():
        _print(PreviewCache(settings).board(standings(settings)), attention_now(settings))
    else:
        _run_screen(settings)


def _run_screen(settings: Settings) -> None:
    try:
        # Textual takes longer to import than most commands take to run
        from whyfor.cli.screen.app import run_screen
    except ModuleNotFoundError as error:
        raise missing_extra("top", error) from None
    run_screen(settings)


def _is_terminal() -> bool:
    return (
        sys.stdin.isatty()
        and sys.stdout.isatty()
        and os.environ.get("TERM") not in ("dumb", "unknown")
    )


def _ordered(settings: Settings, found: list[LiveStatus]) -> list[LiveStatus]:
    """Return them as they are shown: who waits for an answer first."""
    by_name = {each.name: each for each in found}
    groups = PreviewCache(settings).board(found).groups
    return [by_name[card.name] for card in chain.from_iterable(groups.values())]


def _print(board: NowBoard, attention: list[ListedFiring]) -> None:
    from whyfor.cli.screen import words

    out = console()
    for pause in board.paused:
        paused = f"Capture is paused: nothing is recorded {pause.where}."
        out.print(f"{paused} Record again: {pause.resume}", style="yellow")
    if board.empty:
        print_note("Nothing captured yet. In a repository: whyfor init")
        return
    out.print(words.lede(board), style="bold")
    for line in words.attention_lines([one.firing for one in attention], board):
        out.print(line)
    cards = list(chain.from_iterable(board.groups.values()))
    if not cards:
        return
    rows = FittedTable(
        *("status", "agent", "project", "branch", "title", "doing", "age"),
        title="title",
        drop=("branch",),
        fold=("doing", "project"),
    )
    for card in cards:
        rows.add(*_row(card))
    out.print()
    rows.print(out)
    for card in board.groups["waiting_approval"]:
        _print_request(card)


def _row(card: SessionCard) -> list[Text | str | AgentCell]:
    from rich.text import Text

    from whyfor.cli.screen import words

    status, session = card.status, card.session
    shape, word, style = words.SHAPE["failed" if status.failed else status.phase]
    place = project_text(session.project) if session.project else card.place
    return [
        Text(f"{shape} {word}", style=style),
        AgentCell(session.agent),
        words.shown_name(place, 24),
        words.shown_name(session.branch, 24),
        words.short(words.title(card), 60),
        "" if status.approval else words.short(words.activity(card), 60),
        age_text(status.since if status.phase.startswith("waiting") else status.heard_at),
    ]


def _print_request(card: SessionCard) -> None:
    from rich.padding import Padding
    from rich.text import Text

    from whyfor.cli.screen import words

    out = console()
    out.print()
    out.print(Text.assemble(words.mark(card), f" {words.title(card)}"), style="bold")
    for line in words.request(card):
        out.print(Padding(line, (0, 0, 0, 3), expand=False), soft_wrap=False)

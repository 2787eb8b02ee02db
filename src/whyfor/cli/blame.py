"""whyfor blame"""

from __future__ import annotations

import re
import shlex
import sys
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from whyfor import config
from whyfor.cli.render import agent, console, json_option, print_json, print_note
from whyfor.model.blame import NOT_COMMITTED, BlameRow, FileBlame
from whyfor.model.characters import show_code
from whyfor.model.lines import AGENT, MODIFIED_LINE, PERSON
from whyfor.model.text import label, plural
from whyfor.model.wire.lines import wire_blame
from whyfor.service.blame import (
    LINE_PORCELAIN,
    PORCELAIN,
    BlameOptions,
    BlameTarget,
    annotated_porcelain,
    blame_file,
    parse_location,
)
from whyfor.terminal import write_data

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.console import Console
    from rich.text import Text

_MOVES = re.compile(r"-([MC])(\d*)")
_FOUND_MOVES = "whyfor.blame.moves"
_DOTS = {"high": "●●●", "medium": "●●○", "low": "●○○"}


class BlameCommand(click.Command):
    """`-M` and `-C` may have a number, as in git: -M20."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        end = args.index("--") if "--" in args else len(args)
        moves = [match for word in args[:end] if (match := _MOVES.fullmatch(word))]
        ctx.meta[_FOUND_MOVES] = [(match[1], match[2]) for match in moves]
        kept = [word for word in args[:end] if not _MOVES.fullmatch(word)]
        return super().parse_args(ctx, [*kept, *args[end:]])


@click.command(cls=BlameCommand)
@click.argument("location", metavar="FILE[:LINE|:A-B]")
@click.argument("revision", required=False, metavar="[REV]")
@click.option("-L", "ranges", multiple=True, metavar="A,B", help="Only these lines, as in git.")
@click.option("-w", "ignore_space", is_flag=True, help="Look through changes of white space.")
@click.option(
    "-M", is_flag=True, expose_value=False, help="Look through moves in the file; -M20 as in git."
)
@click.option(
    "-C", is_flag=True, expose_value=False, help="Also between files of a commit; may be repeated."
)
@click.option("--ignore-rev", "ignored", multiple=True, metavar="REV", help="Look through it.")
@click.option(
    "--ignore-revs-file", "ignored_files", multiple=True, metavar="FILE", help="Through these."
)
@click.option("--contents", metavar="FILE", help="Its text instead; - reads standard input.")
@click.option("--porcelain", is_flag=True, help="As git prints it for programs, with tags.")
@click.option("--line-porcelain", is_flag=True, help="The same with all details for each line.")
@json_option
@click.pass_context
def command(
    ctx: click.Context,
    location: str,
    revision: str | None,
    ranges: tuple[str, ...],
    ignore_space: bool,
    ignored: tuple[str, ...],
    ignored_files: tuple[str, ...],
    contents: str | None,
    porcelain: bool,
    line_porcelain: bool,
    as_json: bool,
) -> None:
    """Show which turn wrote each line of a file.

    Without a revision, the file as it is now; lines that are not committed are marked with +.

    \b
    Examples:
      whyfor blame src/app.py
      whyfor blame src/app.py:40-60
      whyfor blame src/app.py HEAD~3 -w -M
      whyfor blame src/app.py --line-porcelain HEAD
      whyfor blame src/app.py --contents - --json < buffer.txt
    """
    if len([given for given in (porcelain, line_porcelain, as_json) if given]) > 1:
        raise click.UsageError("give one of --porcelain, --line-porcelain and --json")
    if contents is not None and revision is not None:
        raise click.UsageError("--contents is the file now: give no revision")
    cwd = Path.cwd()
    place = parse_location(location, cwd)
    if place.first is not None:
        ranges = (*ranges, f"{place.first},{place.last}")
    moves = ctx.meta.get(_FOUND_MOVES, [])
    options = BlameOptions(
        ranges=ranges,
        ignore_space=ignore_space,
        moved=next((number for letter, number in moves if letter == "M"), None),
        copied=tuple(number for letter, number in moves if letter == "C"),
        ignored=ignored,
        ignored_files=ignored_files,
    )
    target = BlameTarget(place.file, cwd, revision, _contents(contents))
    if porcelain or line_porcelain:
        form = PORCELAIN if porcelain else LINE_PORCELAIN
        for piece in annotated_porcelain(config.load(), target, options, form):
            write_data(piece)
        return
    found = blame_file(config.load(), target, options)
    if as_json:
        print_json(wire_blame(found))
    else:
        _print(console(), found, _why_command(place.file, revision, contents))


def _why_command(file: str, revision: str | None, contents: str | None) -> Callable[[int], str]:
    """Return what to type for a line of the file, as the user named it; nothing for a text that is
    not saved."""

    def command_of(line: int) -> str:
        words = ["whyfor", "why", f"{file}:{line}", *([revision] if revision else [])]
        return f" Why: {shlex.join(words)}" if contents is None else ""

    return command_of


def _contents(name: str | None) -> str | None:
    if name is None:
        return None
    if name == "-":
        return sys.stdin.buffer.read().decode("utf-8", "replace")
    try:
        return Path(name).read_bytes().decode("utf-8", "replace")
    except OSError as error:
        raise click.UsageError(f"{name} cannot be read: {error.strerror}") from None


def _print(out: Console, found: FileBlame, why: Callable[[int], str]) -> None:
    width = len(str(found.rows[-1].line)) if found.rows else 1
    now = datetime.now()
    for row in found.rows:
        out.print(_line(row, width, now), no_wrap=True, overflow="ellipsis", crop=True)
    counts: dict[str, int] = {}
    for row in found.rows:
        counts[row.who.kind] = counts.get(row.who.kind, 0) + 1
    for note in found.notes:
        print_note(label(note))
    people = sorted({row.who.person for row in found.rows if row.who.person})
    if people:
        print_note(f"* shared by {label('; '.join(people))}.")
    print_note(_summary(counts, found, why))


def _line(row: BlameRow, width: int, now: datetime) -> Text:
    from rich.text import Text

    new = row.commit == NOT_COMMITTED
    line = Text(f"{'+' if new else row.commit[:8]:8} ", style="dim")
    who = row.who
    if who.kind in (AGENT, MODIFIED_LINE):
        line.append_text(agent(who.agent))
        turn = f"T{who.turn if who.turn is not None else '?'}"
        changed = "~" if who.kind == MODIFIED_LINE else ""
        changed += "*" if who.person else ""
        line.append(f" {turn + changed:5} {_DOTS.get(who.confidence or '', ''):3} ")
    else:
        word = "person?" if who.kind == PERSON else "·"
        line.append(f"{word:8}     ", style="dim")
    when = "" if new else _day(row.time, now)
    line.append(f"{when:9} {row.line:>{width}}│ ", style="dim")
    line.append(show_code(row.text).replace("\t", "    "))
    return line


def _day(seconds: int, now: datetime) -> str:
    at = datetime.fromtimestamp(seconds)
    return f"{at:%d %b}" if at.year == now.year else f"{at:%b %Y}"


def _summary(counts: dict[str, int], found: FileBlame, why: Callable[[int], str]) -> str:
    words = {
        AGENT: "by agents",
        MODIFIED_LINE: "modified since (~)",
        PERSON: "a person's (inferred)",
        "unknown": "unknown",
    }
    told = [f"{counts[kind]:,} {word}" for kind, word in words.items() if kind in counts]
    if not told:
        return "The file is empty."
    first = next((row for row in found.rows if row.who.agent), None)
    ask = why(first.line) if first else ""
    return f"{plural(len(found.rows), 'line')}: {', '.join(told)}.{ask}"

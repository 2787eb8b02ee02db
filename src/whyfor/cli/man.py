"""whyfor man: the manual page, made from the help of every command."""

from __future__ import annotations

import re
from collections.abc import Iterator
from inspect import cleandoc

import click

from whyfor import __version__
from whyfor.cli.render import json_option, print_json
from whyfor.model.wire.answers import WireText
from whyfor.terminal import write_data

_NAME = "whyfor \\- keeps the conversation behind every commit"
_ENVIRONMENT = {
    "WHYFOR_HOME": "Whyfor's directory. Default: the platform's data directory.",
    "PAGER": "The program that shows long output. Default: less.",
    "NO_COLOR": "If set, no colors are used.",
    "WHYFOR_DEBUG": "Show the traceback of an unexpected error.",
}
_EXITS = {
    "0": "It worked.",
    "1": "It worked, and found something wrong (doctor), or was declined.",
    "2": "It did not work; the message says why, and what to do.",
    "3": "An unexpected error.",
    "130": "Interrupted.",
}


@click.command()
@json_option
def command(as_json: bool) -> None:
    """Print the manual page.

    Read it, or install it for `man whyfor`:

    \b
    Examples:
      whyfor man | man -l -
      whyfor man > ~/.local/share/man/man1/whyfor.1
    """
    page = "".join(f"{line}\n" for line in manual_lines())
    if as_json:
        print_json(WireText(page))
    else:
        write_data(page.encode())


def manual_lines() -> Iterator[str]:
    """Yield the page as roff, line by line."""
    from whyfor.cli import COMMANDS, root

    ctx = click.Context(root, info_name="whyfor")
    yield f'.TH WHYFOR 1 "" "whyfor {__version__}" "User Commands"'
    yield from (".SH NAME", _NAME, ".SH SYNOPSIS", ".B whyfor")
    yield _plain("[OPTION]... [COMMAND] [ARGUMENT]...")
    yield ".SH DESCRIPTION"
    yield from _prose(root)
    yield ".SH OPTIONS"
    yield from _options(root, ctx)
    yield ".SH COMMANDS"
    for name in COMMANDS:
        made = root.get_command(ctx, name)
        assert made is not None
        yield from _command(made, click.Context(made, ctx, info_name=name))
    yield ".SH ENVIRONMENT"
    yield from _terms(_ENVIRONMENT)
    yield ".SH EXIT STATUS"
    yield from _terms(_EXITS)


def _command(made: click.Command, ctx: click.Context) -> Iterator[str]:
    usage = " ".join(made.collect_usage_pieces(ctx))
    yield f".SS {_plain(f'{ctx.command_path} {usage}')}"
    yield from _prose(made)
    yield from _options(made, ctx)
    if isinstance(made, click.Group):
        for name, below in made.commands.items():
            yield from _command(below, click.Context(below, ctx, info_name=name))


def _prose(made: click.Command) -> Iterator[str]:
    """Yield a command's help; paragraphs after a backspace keep their lines."""
    for number, paragraph in enumerate(cleandoc(made.help or "").split("\n\n")):
        if number:
            yield ".PP"
        lines = paragraph.split("\n")
        if lines[0] != "\b":
            yield _plain(" ".join(lines))
            continue
        yield ".nf"
        yield from (_plain(line) for line in lines[1:])
        yield ".fi"


def _options(made: click.Command, ctx: click.Context) -> Iterator[str]:
    for param in made.get_params(ctx):
        record = param.get_help_record(ctx)
        if isinstance(param, click.Option) and record is not None:
            yield from _term(*record)


def _terms(words: dict[str, str]) -> Iterator[str]:
    for word, meaning in words.items():
        yield from _term(word, meaning)


def _term(word: str, meaning: str) -> Iterator[str]:
    yield ".TP"
    yield f".B {_plain(word)}"
    yield _plain(meaning)


def _plain(text: str) -> str:
    """Return text that roff takes as it is: no escape, no request, dashes that can be copied."""
    safe = text.replace("\\", "\\e").replace("-", "\\-")
    return re.sub(r"^(?=[.'])", r"\\&", safe)

"""Options that every command has: how it prints, and how much it says."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import click

from whyfor.terminal import options

_LOG_SIZE = 1 << 20  # bytes of the debug log before it begins anew
_SHORT = {"-q", "-v"}


def _set_colour(_ctx: click.Context, _param: click.Parameter, value: str | None) -> None:
    if value is not None:
        options.colour = value


def _set_pager(_ctx: click.Context, _param: click.Parameter, value: bool) -> None:
    if value:
        options.pager = options.pager_wanted = False


def _set_quiet(_ctx: click.Context, _param: click.Parameter, value: bool) -> None:
    if value:
        options.quiet = True


def _set_verbose(_ctx: click.Context, _param: click.Parameter, value: bool) -> None:
    if value and not options.verbose:
        options.verbose = True
        _open_log()


def _open_log() -> None:
    """Write the debug log too, if Whyfor's directory is there."""
    from whyfor.config import own_home

    path = own_home(os.environ) / "debug.log"
    if not path.parent.is_dir():
        return
    try:
        small = path.exists() and path.stat().st_size < _LOG_SIZE
        options.log = path.open("a" if small else "w", encoding="utf-8")
    except OSError:  # the debug log is no reason to fail
        return


def _common(*, hidden: bool) -> list[click.Option]:
    def option(*names: str, **more: Any) -> click.Option:
        return click.Option(names, expose_value=False, is_eager=True, hidden=hidden, **more)

    return [
        option(
            "--color",
            type=click.Choice(["auto", "always", "never"]),
            callback=_set_colour,
            help="When to use colors. Default: on a terminal, unless NO_COLOR is set.",
        ),
        option(
            "--no-pager",
            is_flag=True,
            callback=_set_pager,
            help="Print long output directly instead of through $PAGER.",
        ),
        option(
            "-q",
            "--quiet",
            is_flag=True,
            callback=_set_quiet,
            help="Print no notes and no progress, only the answer and errors.",
        ),
        option(
            "-v",
            "--verbose",
            is_flag=True,
            callback=_set_verbose,
            help="Print what is done and how long it takes; also to debug.log.",
        ),
    ]


def common_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Declare the options for the whole program."""
    made = getattr(command, "__click_params__", [])
    command.__click_params__ = [*made, *reversed(_common(hidden=False))]  # type: ignore[attr-defined]
    return command


def add_common_options(command: click.Command) -> None:
    """Let them stand after a command, too; where a command has such an option, its own counts."""
    taken = {name for param in command.params for name in param.opts}
    if "--no-pager" in taken:
        return
    for option in _common(hidden=True):
        option.opts = [name for name in option.opts if name not in taken]
        if command.context_settings.get(
            "ignore_unknown_options"
        ):  # search: -v means without this word
            option.opts = [name for name in option.opts if name not in _SHORT]
        command.params.append(option)
    if isinstance(command, click.Group):
        for below in command.commands.values():
            add_common_options(below)

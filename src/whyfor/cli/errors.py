"""Errors as two lines and exit code 2; with --json as one document on stdout."""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path

import click

from whyfor.cli import UnknownCommand, closest, root
from whyfor.model.errors import WhyforError
from whyfor.model.wire.errors import WireError, WireProblem
from whyfor.terminal import clean_streams, debug, own_options, say, write_json

_FEW_FILES = 64  # with fewer, SQLite, git and imports fail in ways of their own
_ENOUGH_FILES = 1024
_MORE_FILES = "Nothing was lost. Allow more, then run it again: ulimit -n 1024"


def run_command(args: list[str]) -> int:
    """Run a command and return its exit code, whatever happens in it."""
    as_json = "--json" in args
    if sys.stdout is None:  # started with it closed, by a service manager
        sys.stdout = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - for as long as we run
    limit = _file_limit()
    asks_help = "-h" in args or "--help" in args
    if limit is not None and limit < _FEW_FILES and not asks_help:
        return 2 if "--background" in args else _tell_limit(limit, as_json)
    with clean_streams(), own_options():
        try:
            code = _run(args, as_json)
            debug(f"exit code {code}")
            return code
        finally:
            _stop_pager()


def _run(args: list[str], as_json: bool) -> int:
    try:
        result = root.main(args=args, prog_name="whyfor", standalone_mode=False)
        sys.stdout.flush()
        return result if isinstance(result, int) else 0
    except WhyforError as error:
        return _tell(error.kind, error.message, error.hint, as_json)
    except click.UsageError as error:
        return _tell("usage", _usage_message(error), _usage_hint(error), as_json)
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except (KeyboardInterrupt, click.Abort):
        return _tell(
            "interrupted", "interrupted", "Nothing was lost; run it again to go on.", as_json, 130
        )
    except BrokenPipeError:  # `| head` has seen enough; `clean_streams` lets go of the pipe
        return 0
    except SystemExit:
        raise
    except BaseException as error:  # a panic in a Rust library is not an Exception
        if _is_exhausted(error):
            return _tell_limit(_file_limit(), as_json)
        if os.environ.get("WHYFOR_DEBUG"):
            raise
        _debug_traceback(error)
        message = f"unexpected: {type(error).__name__}: {error}"
        return _tell("internal", message, "This is a bug. WHYFOR_DEBUG=1 shows where.", as_json, 3)


def _debug_traceback(error: BaseException) -> None:
    import traceback

    for line in "".join(traceback.format_exception(error)).splitlines():
        debug(line)


def _stop_pager() -> None:
    pager = sys.modules.get("whyfor.cli.pager")
    if pager is not None:  # only those that show something need it
        pager.stop_pager()


def _file_limit() -> int | None:
    """Return how many files this process may open, after raising a very low limit if possible; None
    if unknown."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return None
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    unlimited = resource.RLIM_INFINITY
    if soft == unlimited:
        return None
    if soft < _FEW_FILES and (hard == unlimited or hard > soft):
        soft = _ENOUGH_FILES if hard == unlimited else min(hard, _ENOUGH_FILES)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return soft


def _is_exhausted(error: BaseException) -> bool:
    """Return whether too many files were open; libraries written in Rust report this in their own
    words."""
    if isinstance(error, OSError):
        return error.errno in (errno.EMFILE, errno.ENFILE)
    return "TooManyOpenFiles" in str(error)


def _tell_limit(limit: int | None, as_json: bool) -> int:
    return _tell("limit", f"this process may have only {limit} files open", _MORE_FILES, as_json)


def _tell(kind: str, message: str, hint: str, as_json: bool, code: int = 2) -> int:
    if as_json:
        write_json(WireError(WireProblem(kind, message, hint)))
    else:
        say(f"error: {message}", stderr=True, fg="red")
        if hint:
            say(hint, stderr=True)
    return code


def _usage_message(error: click.UsageError) -> str:
    """Return what is wrong; what was meant instead is in the hint, once."""
    is_unknown = isinstance(error, click.NoSuchOption) or error.message.startswith(
        "No such command"
    )
    return error.message if is_unknown else error.format_message()


def _usage_hint(error: click.UsageError) -> str:
    if isinstance(error, UnknownCommand):
        return error.hint
    if error.ctx is None:
        return "See: whyfor --help"
    path = error.ctx.command_path
    if meant := _meant(error, error.ctx.command):
        return f"Did you mean {meant}? See: {path} --help"
    return f"See: {path} --help"


def _meant(error: click.UsageError, command: click.Command) -> str | None:
    """Return the option or command that was probably meant."""
    if isinstance(error, click.NoSuchOption):
        known = [name for param in command.params for name in param.opts if name.startswith("--")]
        return closest(error.option_name, known)
    if isinstance(command, click.Group) and error.message.startswith("No such command"):
        return closest(error.message.split("'")[1], command.commands)
    return None

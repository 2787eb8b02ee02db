"""Errors as two lines and exit code 2; with --json as one document on stdout."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from backstory.cli import COMMANDS, root
from backstory.model.errors import BackstoryError
from backstory.terminal import clean_streams, say, write_json


def run(args: list[str]) -> int:
    as_json = "--json" in args
    if sys.stdout is None:  # started with it closed, by a service manager
        sys.stdout = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - for as long as we run
    with clean_streams():
        return _run(args, as_json)


def _run(args: list[str], as_json: bool) -> int:
    try:
        result = root.main(args=args, prog_name="backstory", standalone_mode=False)
        sys.stdout.flush()
        return result if isinstance(result, int) else 0
    except BackstoryError as error:
        return _tell(error.kind, error.message, error.hint, as_json)
    except click.UsageError as error:
        return _tell("usage", error.format_message(), _usage_hint(error), as_json)
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except (KeyboardInterrupt, click.Abort):
        return _tell("interrupted", "interrupted", "Nothing was lost; run it again to go on.", as_json, 130)
    except BrokenPipeError:  # `| head` has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        if os.environ.get("BACKSTORY_DEBUG"):
            raise
        message = f"unexpected: {type(error).__name__}: {error}"
        return _tell("internal", message, "This is a bug. BACKSTORY_DEBUG=1 shows where.", as_json, 3)


def _tell(kind: str, message: str, hint: str, as_json: bool, code: int = 2) -> int:
    if as_json:
        body = {"error": {"kind": kind, "message": message, "hint": hint}}
        write_json(body)
    else:
        say(f"error: {message}", stderr=True, fg="red")
        if hint:
            say(hint, stderr=True)
    return code


def _usage_hint(error: click.UsageError) -> str:
    if isinstance(error, click.NoSuchOption) and error.possibilities:
        return f"Did you mean {' or '.join(sorted(error.possibilities))}?"
    if error.ctx is not None and error.ctx.info_name in COMMANDS:
        return f"See: backstory {error.ctx.info_name} --help"
    return "See: backstory --help"

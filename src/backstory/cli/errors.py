"""Errors as two lines and exit code 2; with --json as one document on stdout."""

from __future__ import annotations

import codecs
import errno
import io
import os
import sys
from pathlib import Path

import click
import msgspec

from backstory.cli import COMMANDS, root
from backstory.model.errors import BackstoryError
from backstory.model.paths import escape_surrogates

_FEW_FILES = 64  # fewer than that, and nothing here can be relied on
_MORE_FILES = "Nothing was lost. Allow more, then run it again: ulimit -n 1024"


def run(args: list[str]) -> int:
    as_json = "--json" in args
    if sys.stdout is None:  # started with it closed, by a service manager
        sys.stdout = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - for as long as we run
    _show_odd_names()
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
    except SystemExit:
        raise
    except BaseException as error:  # a library written in Rust panics with what is no Exception
        if limit := _open_files(error):
            return _tell("limit", f"this process may have {limit} files open, too few", _MORE_FILES, as_json)
        if os.environ.get("BACKSTORY_DEBUG"):
            raise
        message = f"unexpected: {type(error).__name__}: {error}"
        return _tell("internal", message, "This is a bug. BACKSTORY_DEBUG=1 shows where.", as_json, 3)


def _show_odd_names() -> None:
    """A path that is not UTF-8 is shown with its bytes escaped, wherever it is printed."""
    codecs.register_error("backstory", _escaped)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.errors in ("strict", "backslashreplace"):
            stream.reconfigure(errors="backstory")


def _escaped(error: UnicodeError) -> tuple[str, int]:
    """For codecs: what cannot be encoded, in characters that can."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    odd = error.object[error.start : error.end]
    shown = escape_surrogates(odd) if error.encoding.startswith("utf") else odd
    if shown == odd or not error.encoding.startswith("utf"):
        shown = odd.encode("ascii", "backslashreplace").decode()
    return shown, error.end


def _open_files(error: BaseException) -> int | None:
    """The number of files we may have open, if that is what failed; an import may fail in any way then."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return None
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    said = error.errno if isinstance(error, OSError) else None
    exhausted = said in (errno.EMFILE, errno.ENFILE) or "TooManyOpenFiles" in str(error)
    return limit if exhausted or limit < _FEW_FILES else None


def _tell(kind: str, message: str, hint: str, as_json: bool, code: int = 2) -> int:
    if as_json:
        body = {"error": {"kind": kind, "message": message, "hint": hint}}
        sys.stdout.write(msgspec.json.encode(body).decode() + "\n")
    else:
        click.secho(f"error: {message}", fg="red", err=True)
        if hint:
            click.echo(hint, err=True)
    return code


def _usage_hint(error: click.UsageError) -> str:
    if isinstance(error, click.NoSuchOption) and error.possibilities:
        return f"Did you mean {' or '.join(sorted(error.possibilities))}?"
    if error.ctx is not None and error.ctx.info_name in COMMANDS:
        return f"See: backstory {error.ctx.info_name} --help"
    return "See: backstory --help"

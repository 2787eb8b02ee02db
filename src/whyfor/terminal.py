"""The one place where text leaves for a terminal: nothing that comes from elsewhere can act
there.

Whatever is written to sys.stdout or sys.stderr passes `CleanStream`, also tracebacks, warnings
and the lines of libraries. Styled output is made by `say` and by the console of
`cli/console.py`, which clean the words before they add their own sequences. Data (JSON,
Markdown, a transcript) goes through `write_data` and `write_json`: byte for byte into a file or
a pipe, cleaned where a terminal would obey it.
"""

from __future__ import annotations

import codecs
import io
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, BinaryIO, TextIO, cast

import msgspec

from whyfor.model.characters import escape_json, show_hidden
from whyfor.model.paths import escape_surrogates

_ODD = "whyfor"  # how codecs calls our way of writing what cannot be encoded
_PIPED_WIDTH = 200  # of what is not a terminal: nothing is cut that could be searched for


class OutputOptions:
    """How this run prints: from --color, --no-pager, -q and -v."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self.colour = "auto"  # or always, never
        self.pager_wanted = True
        self.pager = False  # whether this command has long output, and may use one
        self.quiet = False
        self.verbose = False
        self.paged_width: int | None = None  # of the terminal, while a pager has its output
        self.began = time.monotonic()
        self.log: TextIO | None = None


options = OutputOptions()


@contextmanager
def own_options() -> Iterator[None]:
    """Let one run have options of its own: a command may run others."""
    before = dict(vars(options))
    options.reset()
    try:
        yield
    finally:
        if options.log is not None:
            options.log.close()
        vars(options).update(before)


def is_terminal(*, stderr: bool = False) -> bool:
    """Return whether a person reads this, be it through a pager."""
    return options.paged_width is not None or raw_stream(stderr=stderr).isatty()


def is_coloured(*, stderr: bool = False) -> bool:
    """Return whether colours and styles may be written: as --color says, else NO_COLOR and
    FORCE_COLOR, else on a terminal."""
    if options.colour != "auto":
        return options.colour == "always"
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return is_terminal(stderr=stderr) and os.environ.get("TERM") != "dumb"


def output_width(*, stderr: bool = False) -> int:
    """Return how many columns a line may have: $COLUMNS, else the terminal's."""
    given = os.environ.get("COLUMNS", "")
    if given.isdecimal() and int(given) > 0:
        return int(given)
    if options.paged_width is not None:
        return options.paged_width
    stream = raw_stream(stderr=stderr)
    if not stream.isatty():
        return _PIPED_WIDTH
    try:
        return os.get_terminal_size(stream.fileno()).columns or 80
    except (OSError, ValueError):
        return 80


def debug(line: str) -> None:
    """With -v, say what happens: on stderr, and in the debug log."""
    if not options.verbose:
        return
    words = f"{time.monotonic() - options.began:8.3f}  {on_one_line(line)}"
    say(words, stderr=True, dim=True)
    if options.log is not None:
        options.log.write(words + "\n")
        options.log.flush()


class CleanStream:
    """A text stream that shows hidden characters and escape sequences by number instead of sending
    them."""

    def __init__(self, raw: TextIO) -> None:
        self.raw = raw

    def __getattr__(self, name: str) -> Any:
        return getattr(self.raw, name)

    def __iter__(self) -> Iterator[str]:
        return iter(self.raw)

    def write(self, text: str) -> int:
        self.raw.write(show_hidden(text))
        return len(text)

    def writelines(self, lines: list[str]) -> None:
        for line in lines:
            self.write(line)


class CleanBytes:
    """A byte stream for a terminal that shows text and replaces what would act on the terminal."""

    def __init__(self, raw: BinaryIO) -> None:
        self.raw = raw
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._held = ""  # a carriage return whose line feed may follow

    def __getattr__(self, name: str) -> Any:
        return getattr(self.raw, name)

    def write(self, data: bytes) -> int:
        text = self._held + self._decoder.decode(bytes(data))
        self._held = "\r" if text.endswith("\r") else ""
        whole = text.removesuffix("\r") if self._held else text
        self.raw.write(show_hidden(whole).encode())
        return len(data)


@contextmanager
def clean_streams() -> Iterator[None]:
    """Clean sys.stdout and sys.stderr inside the block, including the traceback of an exception
    that ends the program."""
    before = sys.stdout, sys.stderr
    sys.excepthook = _tell_exception
    sys.stdout, sys.stderr = _clean(before[0]), _clean(before[1])
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before
        for stream in before:
            _let_go(stream)


def _let_go(stream: TextIO | None) -> None:
    """Discard unread output, so that Python does not report a broken pipe at exit."""
    if stream is None:
        return
    try:
        stream.flush()
    except BrokenPipeError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
    except (OSError, ValueError):  # a full disk, or already closed: the writer has reported it
        return


def raw_stream(*, stderr: bool = False) -> TextIO:
    """Return the original stream, for callers that clean their own output."""
    stream = sys.stderr if stderr else sys.stdout
    return stream.raw if isinstance(stream, CleanStream) else stream


def on_one_line(text: str) -> str:
    """Return one of our lines with hidden characters shown by number, so that a name in it cannot
    start another line.

    Line feeds at its beginning and end are our own and stay.
    """
    words = show_hidden(text)
    body = words.strip("\n")
    if "\n" not in body:
        return words
    return words.replace(body, " ".join(body.split("\n")))


def say(line: str, *, stderr: bool = False, **style: Any) -> None:
    """Print one line with a click style; the style is used only where colours are."""
    import click

    words = on_one_line(line)
    if style and is_coloured(stderr=stderr):
        words = click.style(words, **style)
    # our own sequences alone: the words are clean
    click.echo(words, file=raw_stream(stderr=stderr), color=True)


def confirm(question: str, *, stderr: bool = False) -> bool:
    """Ask a yes-or-no question; the default is no."""
    import click

    return click.confirm(on_one_line(question), err=stderr)


def data_stream() -> BinaryIO:
    """Return the stream for data: stdout unchanged, or cleaned if it is a terminal."""
    stream = raw_stream()
    stream.flush()
    if is_terminal():
        return cast(BinaryIO, CleanBytes(stream.buffer))
    return stream.buffer


def write_screen(text: str) -> None:
    """Write a recorded program's output to the terminal. It must be clean of all but what moves the
    cursor and colours text: see `model/terminal_output.py`."""
    stream = raw_stream()
    stream.buffer.write(text.encode("utf-8", "replace"))
    stream.buffer.flush()


def write_data(data: bytes) -> None:
    data_stream().write(data)


def write_json(value: Any) -> None:
    """Write a value as one JSON document; characters that act on a terminal are always escaped."""
    try:
        document = msgspec.json.encode(value)
    except UnicodeEncodeError:  # a byte of an argument or a file's name that is no UTF-8
        document = msgspec.json.encode(_encodable(msgspec.to_builtins(value)))
    raw_stream().buffer.write(escape_json(document.decode()).encode() + b"\n")


def _encodable(value: Any) -> Any:
    if isinstance(value, dict):
        return {_encodable(key): _encodable(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_encodable(each) for each in value]
    return escape_surrogates(value) if isinstance(value, str) else value


def _clean(stream: TextIO) -> TextIO:
    # closed by a service manager, or a command inside a command
    if stream is None or isinstance(stream, CleanStream):
        return stream
    if isinstance(stream, io.TextIOWrapper):
        codecs.register_error(_ODD, _escaped)
        stream.reconfigure(errors=_ODD)
    return cast(TextIO, CleanStream(stream))


def _escaped(error: UnicodeError) -> tuple[str | bytes, int]:
    """Codec error handler: escape what the terminal's encoding lacks, such as bytes of a path that
    is not UTF-8."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    odd = error.object[error.start : error.end]
    if error.encoding.lower().startswith("utf"):
        return escape_surrogates(odd).encode(error.encoding), error.end
    return odd.encode("ascii", "backslashreplace"), error.end


def _tell_exception(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    import traceback

    told = "".join(traceback.format_exception(kind, error, trace))
    if sys.stderr is not None:
        sys.stderr.write(show_hidden(told))

"""redact: remove secrets from a text or a transcript, or list their positions."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import msgspec

from whyfor.config import Settings
from whyfor.files import replacing
from whyfor.model.errors import StoreError
from whyfor.model.text import plural
from whyfor.privacy import incremental as growing
from whyfor.privacy.engine import Engine
from whyfor.privacy.own_rules import engine_for, redact_settings, rules_for
from whyfor.privacy.private_text import PRIVATE
from whyfor.privacy.stream import Text
from whyfor.service.redact.inputs import Input, open_input

__all__ = [
    "RedactionResult",
    "SecretSpan",
    "Task",
    "describe_counts",
    "engine_for",
    "redact",
    "redact_settings",
    "rules_for",
]

_IN_MEMORY = 16 << 20


class SecretSpan(msgspec.Struct, frozen=True):
    """The position of a secret: start and end in characters of the whole text, and the line and
    column of its start."""

    rule: str
    start: int
    end: int
    line: int
    column: int


class RedactionResult(msgspec.Struct, frozen=True):
    counts: dict[str, int]  # what was replaced, by rule
    values: dict[str, int]  # how many different ones
    bytes: int  # of the input
    # the offset where reading started: more than 0 if an earlier run redacted what is before
    read_from: int
    spans: list[SecretSpan] = []


class Task(msgspec.Struct, frozen=True):
    """The input, output and options of one run."""

    source: Path | None = None  # stdin if none
    output: Path | None = None
    personal: bool = False
    from_scratch: bool = False
    spans: bool = False  # where they stand
    text: bool = True  # write the redacted text, to stdout unless there is an output


def redact(settings: Settings, task: Task, stdin: BinaryIO, stdout: BinaryIO) -> RedactionResult:
    """Redact an input; on any error nothing has been written."""
    engine = engine_for(settings, personal=task.personal)
    with open_input(task.source, stdin) as given:
        path, rules = _mark(settings, task, given)
        if path is not None and task.output is not None and not (task.from_scratch or task.spans):
            mark = growing.load_progress(path, rules, given.file, given.size, task.output)
            if mark is not None and (text := _grown(engine, given, mark)) is not None:
                growing.save_progress(
                    path, text, mark, rules, task.output, _go_on(text, task.output, mark)
                )
                return _outcome(text)
        text = Text(engine, given.file, 0, given.size)
        text.read()
        tail = _write(text, task, stdout)
        if path is not None and task.output is not None:
            growing.save_progress(path, text, None, rules, task.output, tail)
        return _outcome(text, list(_spans(text)) if task.spans else [])


def _grown(engine: Engine, given: Input, mark: growing.RedactionProgress) -> Text | None:
    """Return what is new since the last run; None if it affects what was written before."""
    text = Text(engine, given.file, mark.position, given.size, growing.known(given.file, mark))
    text.read()
    return None if growing.stands_before(engine, text) else text


def describe_counts(counts: dict[str, int], values: dict[str, int]) -> str:
    """Return a summary, `3 secrets redacted: 2 github-token, 1 password`; empty if there was
    none."""
    if not counts:
        return ""
    number, places = sum(values.values()), sum(counts.values())
    where = f" in {places:,} places" if places > number else ""
    each = ", ".join(
        f"{values[rule]:,} {rule}"
        for rule in sorted(values, key=lambda rule: (-values[rule], rule))
    )
    return f"{plural(number, 'secret')} redacted{where}: {each}"


def _outcome(text: Text, spans: list[SecretSpan] | None = None) -> RedactionResult:
    counts = Counter(item.rule for item in text.found)
    values = {
        rule: text.values[rule] if rule != PRIVATE else number
        for rule, number in sorted(counts.items())
    }
    return RedactionResult(dict(sorted(counts.items())), values, text.stop, text.start, spans or [])


# -- writing -------------------------------------------------------------------------------------


def _mark(settings: Settings, task: Task, given: Input) -> tuple[Path | None, str]:
    """Return the file that records the progress for this input and output, and the digest of the
    rules; None as the file if the run cannot be continued."""
    if given.path is None or task.output is None or not task.text:
        return None, ""
    if task.output.exists() and (not task.output.is_file() or task.output.samefile(given.path)):
        return None, ""
    wished = redact_settings(settings)
    rules = growing.rules_digest(
        msgspec.json.encode([task.personal or wished.personal, wished.allow]),
        msgspec.json.encode(wished.rule),
    )
    return growing.mark_path(settings, given.path, task.output), rules


def _write(text: Text, task: Task, stdout: BinaryIO) -> int:
    """Write the whole text after it was built and checked; return the length of an unfinished last
    line."""
    if not task.text:
        for _ in text.redacted():
            pass
        return 0
    if task.output is None:
        with tempfile.SpooledTemporaryFile(_IN_MEMORY) as made:
            tail = _fill(text, made.write)
            made.seek(0)
            shutil.copyfileobj(made, stdout, 1 << 20)
        return tail
    with _said_of(task.output):
        # a pipe or a device is written to, not replaced
        if task.output.exists() and not task.output.is_file():
            with task.output.open("wb") as device:
                return _write(text, msgspec.structs.replace(task, output=None), device)
        with replacing(task.output) as file:
            return _fill(text, file.write)


def _fill(text: Text, write: Callable[[bytes], object]) -> int:
    tail, parts = 0, []
    for _, clean in text.redacted():
        write(clean)
        cut = clean.rfind(b"\n") + 1
        tail = len(clean) - cut if cut else tail + len(clean)
        if text.document:
            parts.append(clean)
    if text.document:
        text.check_document(b"".join(parts))
    return tail


def _go_on(text: Text, output: Path, mark: growing.RedactionProgress) -> int:
    """Append to the output; if that fails, restore it."""
    with _said_of(output), tempfile.SpooledTemporaryFile(_IN_MEMORY) as made:
        tail = _fill(text, made.write)
        made.seek(0)
        with output.open("r+b") as file:
            file.seek(mark.out_position)
            before = file.read()
            try:
                file.seek(mark.out_position)
                shutil.copyfileobj(made, file, 1 << 20)
                file.truncate()
                file.flush()
                os.fsync(file.fileno())
            except BaseException:
                file.seek(mark.out_position)
                file.write(before)
                file.truncate()
                raise
    return tail


@contextmanager
def _said_of(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StoreError(
            f"cannot write {path}: {error.strerror}", "Give another place with --output."
        ) from None


# -- places --------------------------------------------------------------------------------------


def _spans(text: Text) -> Iterator[SecretSpan]:
    """Yield positions in characters of the decoded text; a byte that is not UTF-8 counts as one."""
    edges = (edge for item in text.found for edge in (item.start, item.end))
    places: list[tuple[int, int, int]] = []
    edge, at = next(edges, None), _Place()
    for passage in text.passages():
        done = passage.start
        while edge is not None and edge <= passage.stop:
            at.pass_by(passage.data[done - passage.at : edge - passage.at])
            places.append((at.chars, at.line, at.column))
            done, edge = edge, next(edges, None)
        at.pass_by(passage.data[done - passage.at : passage.high])
    for item, start, end in zip(text.found, places[::2], places[1::2], strict=True):
        yield SecretSpan(item.rule, start[0], end[0], start[1], start[2])


class _Place:
    def __init__(self) -> None:
        self.chars, self.line, self.column = 0, 1, 1

    def pass_by(self, data: bytes) -> None:
        text = data.decode("utf-8", "surrogateescape")
        self.chars += len(text)
        lines = data.count(b"\n")
        self.line += lines
        self.column = len(text) - text.rfind("\n") if lines else self.column + len(text)

"""A tool call with its result as one item: what it was given, what it changed, how it ended."""

from __future__ import annotations

import re
from typing import Any

from whyfor.model.conversation import FileDiff, Picture, ShownEdit, ToolCallItem
from whyfor.model.events import StoredEvent, result_ends
from whyfor.model.paths import path_within
from whyfor.model.sessions import Session
from whyfor.model.text import one_line, plain, plural
from whyfor.story.conversation import tools
from whyfor.story.conversation.calls import call_outcome
from whyfor.story.conversation.diffs import file_diffs, mark_differences
from whyfor.story.conversation.kinds import PageContext

_EXIT = re.compile(r"Exit code (\d{1,9})(?:\n|$)")  # as Claude Code writes it before the output
_SLOW = {"run": 1000, "web": 1000, "other": 1000}  # ms from which the duration is shown
_SLOW_ELSE = 10_000
_SHORT = 36  # characters of an output that is shown in the call's own line


def call_item(event: StoredEvent, result: StoredEvent | None, around: PageContext) -> ToolCallItem:
    kind = tools.call_kind(event, around.session.agent)
    failed = bool(result and result.get("failed"))
    denied = call_outcome(result) == "denied"
    changes = file_diffs(event, result) if kind != "read" else []
    edits = [_shown_edit(change, around) for change in changes]
    output, more = "", 0
    if result and (failed or not edits):  # an edit's output only says that the file was changed
        output, more = shown(result, around, failed=failed)
    argument = _argument(event, kind, edits, around.session)
    call = ToolCallItem(
        seq=event.seq,
        last=max(event.seq, result.seq if result else 0),
        at=event.created_at,
        family=kind,
        verb=tools.verb(event, kind, around.session.agent),
        icon=tools.icon(kind),
        argument=argument[:400],
        path=argument if kind in ("read", "edit", "write") else "",
        given=plain(tools.whole_input(event, kind))[: around.limits.given],
        edits=edits,
        output=output,
        more=more,
        pictures=pictures(result) if result else [],
        meta=[],
        took=_took(event, result, kind),
        failed=failed,
        denied=denied,
        open=result is None,
        by_user=event.actor == "user",
        unfolded=failed and not denied,
    )
    ended = _ended(call, event, result)
    call.meta = [ended] if ended else []
    return call


def _argument(event: StoredEvent, kind: str, edits: list[ShownEdit], session: Session) -> str:
    """What a call was given, on one line; of a patch the files it changes."""
    argument = tools.argument_line(event, kind, session.cwd)
    if (edits and not argument.strip()) or tools.is_patch(event, session.agent):
        return ", ".join(dict.fromkeys(edit.path for edit in edits)) or argument
    return argument


def _took(event: StoredEvent, result: StoredEvent | None, kind: str) -> int | None:
    """The ms it took; None if that is not long for its kind, or not known."""
    took = time_between(event, result)
    is_long = took is not None and took >= _SLOW.get(kind, _SLOW_ELSE)
    return took if is_long else None


def _ended(call: ToolCallItem, event: StoredEvent, result: StoredEvent | None) -> str:
    """How it ended, in a word or two; empty if there is nothing to tell."""
    total = call.more + (call.output.count("\n") + 1 if call.output else 0)
    if result is None:
        return "no result yet"
    if call.denied:
        return "you denied or stopped it"  # the transcript has one word for both
    if call.failed:
        return _failure(result)
    if call.edits:
        return ""  # the diff shows the numbers of lines
    if call.family == "read":
        return tools.lines_read(event) or _lines(total)
    if call.family == "search":
        none = not total or call.output.lower().startswith("no ")
        return "no match" if none else plural(total, "match", "matches")
    if total == 1 and len(call.output) <= _SHORT:
        return call.output.strip()
    return _lines(total) if total else ""


def _failure(result: StoredEvent) -> str:
    code = result.get("exit_code")
    if isinstance(code, int) and code:
        return f"exit {code}"
    said = _EXIT.match(result.text)
    return f"exit {said[1]}" if said else "failed"


def _lines(number: int) -> str:
    return plural(number, "line") if number else "empty"


def shown(result: StoredEvent, around: PageContext, *, failed: bool) -> tuple[str, int]:
    """Return the part of an output that is shown, and how many more lines there are: its beginning;
    of a failure its end."""
    text = result.text
    if result.whole_size:
        head, end = result_ends(text)
        text = end if failed else head
    text = plain(text).strip("\n")
    limits = around.limits
    if failed:
        text = _EXIT.sub("", text, count=1)
    if not text.strip():
        return "", 0
    all_lines = text.split("\n")
    total = max(around.lines.get(result.seq, 0), len(all_lines))
    most = limits.failed_lines if failed else limits.lines
    if failed and (result.whole_size or total == len(all_lines)):
        all_lines = all_lines[-most:]
    kept, size = [], 0
    for line in all_lines[:most]:
        size += len(line) + 1
        if size > limits.chars:
            kept.append(line[: max(0, limits.chars - size + len(line))] + "…")
            break
        kept.append(line)
    return "\n".join(kept), total - len(kept)


def _shown_edit(change: FileDiff, around: PageContext) -> ShownEdit:
    rows = change.rows[: around.limits.rows]
    mark_differences(rows)
    path = one_line(path_within(change.path, around.session.cwd))
    old = one_line(path_within(change.old_path, around.session.cwd)) if change.old_path else None
    return ShownEdit(
        path, change.what, old, change.added, change.removed, rows, len(change.rows) - len(rows)
    )


def pictures(event: StoredEvent) -> list[Picture]:
    found = event.get("images")
    made = []
    for index, image in enumerate(found if isinstance(found, list) else []):
        if isinstance(image, dict):
            size = image.get("bytes") if isinstance(image.get("bytes"), int) else None
            drawn = str(image.get("media_type") or "").startswith("image/")
            made.append(Picture(event.seq, index, _named(image), size, drawn and bool(size)))
    return made


def _named(image: dict[str, Any]) -> str:
    """Return a file's own name, else its type."""
    for name in ("filename", "displayName", "path"):
        if isinstance(image.get(name), str) and one_line(image[name]):
            return one_line(image[name]).replace("\\", "/").rstrip("/").rsplit("/", 1)[-1]
    kind, _, form = one_line(str(image.get("media_type") or "")).partition("/")
    return f"{form.upper()} image" if kind == "image" and form else kind or "file"


def time_between(one: StoredEvent | None, other: StoredEvent | None) -> int | None:
    """Return the ms from one event to the other; None if a time is unknown."""
    if one is None or other is None or one.created_at is None or other.created_at is None:
        return None
    return max(0, other.created_at - one.created_at)

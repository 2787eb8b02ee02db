"""What a session did that a commit may show: lines it wrote and took away, commits it made or
named."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec

from whyfor.agents.edits import PATCH, first_text, is_edit
from whyfor.agents.tools import argument_names, command_of, tool_kind, was_denied
from whyfor.model.events import StoredEvent
from whyfor.model.printed import printed, reported
from whyfor.story.links.edits import Contents, Edit, by_shell, by_tool
from whyfor.story.shell import absolute

OPEN_MAX = 200  # calls without a result that are remembered; older ones are never answered
# characters kept of a command that may have made a commit: enough for its message
COMMAND_MAX = 8000
_WORD = r"(?:[^\s\"']|\"[^\"]*\"|'[^']*')+"
_GIT = rf"\bgit(?:\s+(?:-[cC]\s+{_WORD}|-(?![cC]\s)-?[\w-]+(?:={_WORD})?))*\s+"
_MAKES = re.compile(_GIT + r"(?:commit|merge|revert|am|rebase|cherry-pick|pull)\b")
_COMMIT = re.compile(_GIT + r"commit\b")
_REWRITES = re.compile(_GIT + r"(?:rebase|cherry-pick|am\b|pull\b[^;&|\n]*--rebase)")


class WrittenEdit(msgspec.Struct, frozen=True, array_like=True):
    """One edit of one file, as edits.Edit tells it, and when it was."""

    at: int
    seq: int
    call: str | None  # the call's own id: a fork's copy has the same
    path: str
    added: bytes = b""
    removed: bytes = b""
    kind: str = "edit"
    old: str | None = None


class CommitCommand(msgspec.Struct, frozen=True, array_like=True):
    """One command that may have made commits, from its start to its result."""

    called_at: int
    done_at: int
    seq: int
    call: str | None
    command: str
    printed: tuple[tuple[str, str], ...] = ()  # abbreviated sha and subject, as git prints them
    commits: bool = False  # it runs `git commit`
    rewrites: bool = False  # it replays commits that may be somebody else's
    failed: bool = False

    @property
    def at(self) -> int:
        return self.done_at


class OpenCall(msgspec.Struct, frozen=True, array_like=True):
    """A call whose result has not come yet."""

    at: int | None
    name: str
    cwd: str
    given: Any


class SessionActivity(msgspec.Struct):
    written: list[WrittenEdit] = msgspec.field(default_factory=list)
    made: list[CommitCommand] = msgspec.field(default_factory=list)
    first_at: int | None = None
    last_at: int | None = None
    cwd: str = ""  # where the session is now
    open: dict[str, OpenCall] = msgspec.field(default_factory=dict)
    contents: Contents = msgspec.field(default_factory=dict)
    copied: bool = False  # it begins with another session's conversation

    def since(self, seq: int) -> list[WrittenEdit | CommitCommand]:
        """What was done after an event."""
        return [act for acts in (self.written, self.made) for act in acts if act.seq > seq]

    def after(self, seq: int) -> SessionActivity:
        """Only what was done after an event: what was restored before it is somebody else's."""
        written = [act for act in self.written if act.seq > seq]
        made = [act for act in self.made if act.seq > seq]
        return msgspec.structs.replace(self, written=written, made=made)

    def placed(self, seq_at: Callable[[int], int]) -> SessionActivity:
        """A subagent's acts, each at the event its main session was at by then."""
        replace = msgspec.structs.replace
        written = [replace(act, seq=seq_at(act.at)) for act in self.written]
        return replace(
            self, written=written, made=[replace(act, seq=seq_at(act.at)) for act in self.made]
        )


def acts(events: Iterable[StoredEvent], before: SessionActivity | None = None) -> SessionActivity:
    """All acts in these events; `before` holds those of earlier ones, and the calls that were
    still open."""
    found = before or SessionActivity()
    for event in events:
        if event.created_at is not None:
            found.first_at = min(event.created_at, found.first_at or event.created_at)
            found.last_at = max(event.created_at, found.last_at or event.created_at)
        data = event.data or {}
        if event.kind == "tool.call":
            _call(found, event, data)
        elif event.kind == "tool.result":
            _result(found, event, data)
        elif isinstance(data.get("cwd"), str):
            found.cwd = data["cwd"]
        found.copied = found.copied or "forked_from" in data
    return found


def merge_activity(parts: Sequence[SessionActivity]) -> SessionActivity:
    """A session's own acts and its subagents', in one."""
    return SessionActivity(
        sorted((act for part in parts for act in part.written), key=lambda act: act.at),
        sorted((act for part in parts for act in part.made), key=lambda act: act.at),
        min((part.first_at for part in parts if part.first_at is not None), default=None),
        max((part.last_at for part in parts if part.last_at is not None), default=None),
        copied=any(part.copied for part in parts),
    )


# -- calls and their results ---------------------------------------------------------------------


def _call(found: SessionActivity, event: StoredEvent, data: dict[str, Any]) -> None:
    given = data.get("input") or event.text  # a person's `!` line has only its text
    name = (event.name or "").lower()
    if tool_kind(name) == "shell" or is_edit(given, event.text):
        # Nor has it an id: its output is what comes next.
        found.open[str(data.get("id") or "")] = OpenCall(event.created_at, name, found.cwd, given)
        while len(found.open) > OPEN_MAX:
            del found.open[next(iter(found.open))]


def _result(found: SessionActivity, event: StoredEvent, data: dict[str, Any]) -> None:
    ident = str(data.get("id") or "")
    call = found.open.pop(ident, None)
    at = event.created_at or (call.at if call else None)
    if at is None or was_denied(data, event.text):
        return
    if call is None:
        # The end of something that ran in the background: what git printed still counts.
        if names := _printed(event, data):
            found.made.append(CommitCommand(at, at, event.seq, ident or None, "", names))
        return
    is_shell = tool_kind(call.name) == "shell"
    command = command_of(call.given) if is_shell else ""
    if is_shell:
        _ran(found, call, command, event, data, at)
    by_hand = is_shell and PATCH not in command
    for edit in _edits(found.contents, call, data, command if by_hand else None):
        found.written.append(
            WrittenEdit(
                at=at,
                seq=event.seq,
                call=ident or None,
                path=edit.path,
                added=edit.added,
                removed=edit.removed,
                kind=edit.kind,
                old=edit.old,
            )
        )


def _edits(
    contents: Contents, call: OpenCall, data: dict[str, Any], command: str | None
) -> Iterable[Edit]:
    """What a call wrote: a command of a shell, else a tool that edits."""
    cwd = absolute(first_text(call.given, *argument_names().folder), call.cwd) or call.cwd
    failed = bool(data.get("failed"))
    if command is not None:
        return by_shell(command, cwd, contents, failed=failed)
    return () if failed else by_tool(call.given, data, cwd, contents)


def _ran(
    found: SessionActivity,
    call: OpenCall,
    command: str,
    event: StoredEvent,
    data: dict[str, Any],
    at: int,
) -> None:
    names = _printed(event, data)
    makes = _MAKES.search(command)
    if names or makes:
        start = makes.start() if makes and len(command) > COMMAND_MAX else 0
        found.made.append(
            CommitCommand(
                called_at=min(call.at or at, at),
                done_at=at,
                seq=event.seq,
                call=str(data["id"]) if data.get("id") else None,
                command=command[start : start + COMMAND_MAX],
                printed=names,
                commits=bool(_COMMIT.search(command)),
                rewrites=bool(_REWRITES.search(command)),
                failed=bool(data.get("failed")),
            )
        )


def _printed(event: StoredEvent, data: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    known = data.get("printed")  # of a text that is not all here
    found = tuple((str(sha), str(subject)) for sha, subject in known) if known else ()
    found = found or printed(event.text)
    sha = reported(data.get("git"))
    if sha is not None and not any(known.startswith(sha[:7]) for known, _ in found):
        found = (*found, (sha, ""))
    return found

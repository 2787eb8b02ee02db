"""Read a session of Mistral Vibe: entries, which hold a call with its result, and totals."""

from __future__ import annotations

from collections.abc import Callable

from whyfor.agents.base import flatten, get_dict, get_int, get_str
from whyfor.agents.chat import (
    CallOutcome,
    ChatReader,
    count_tokens,
    joined_text,
    text_diff,
    uncached,
)
from whyfor.agents.record_place import RecordPlace
from whyfor.model.findings import Record, Sink
from whyfor.model.ids import fold, fold_bytes
from whyfor.model.times import parse_iso
from whyfor.model.titles import TITLE_AGENT, TITLE_PERSON

_REPLACED = "mistralai.vibe.sdk.search_replace"
_OPEN = ("pending", "running", "awaiting_approval")
_SILENT = ("checkpoint", "notice", "turn_boundary")


class AboutReader(ChatReader):
    """What is known of a session: where it runs, and what it is called."""

    def read(self, record: Record, offset: int, line: bytes, out: Sink) -> None:
        at = RecordPlace(out.main, parse_iso(record.get("start_time")))
        self.locate(
            at,
            out.main.session_id,
            cwd=get_dict(record, "environment").get("working_directory"),
            branch=record.get("git_branch"),
        )
        is_auto = record.get("title_source") in (None, "auto")
        out.main.title(TITLE_AGENT if is_auto else TITLE_PERSON, record.get("title"))


class SnapshotTotalsReader:
    """The tokens of a session so far; the input includes what came from the cache."""

    def __init__(self, state: Record) -> None:
        self.state = state

    def read(self, record: Record, offset: int, line: bytes, out: Sink) -> None:
        session = get_dict(get_dict(record, "snapshot"), "session")
        usage = get_dict(session, "tokenUsage")
        cached = get_int(usage, "cachedInputTokens")
        counts = {
            "input": uncached(get_int(usage, "inputTokens"), cached),
            "cache_read": cached,
            "output": get_int(usage, "outputTokens"),
        }
        at = RecordPlace(out.main, parse_iso(session.get("createdAt")))
        count_tokens(at, fold("vibe", out.main.session_id), None, counts, lump=True)


class EntryReader(ChatReader):
    """The entries of one piece of a snapshot."""

    def read(self, record: Record, offset: int, line: bytes, out: Sink) -> None:
        kind = get_str(record, "type")
        at = RecordPlace(out.main, parse_iso(record.get("createdAt")))
        base = get_str(record, "id") or str(fold_bytes(offset, line))
        if handler := _ENTRIES.get(kind):
            handler(self, record, base, at)
        elif kind not in _SILENT:
            out.unknown_type(record.get("type"))

    def _message(self, record: Record, base: str, at: RecordPlace) -> None:
        text = joined_text(record.get("content"))
        if record.get("role") == "assistant":
            self.say(at, fold(base, "text"), text)
        elif record.get("source") in ("turn_start", "user", "queue"):
            self.prompt(at, fold(base, "text"), text)
        else:
            at.add("status.changed", fold(base, "text"), "system", text)

    def _reasoning(self, record: Record, base: str, at: RecordPlace) -> None:
        self.think(at, fold(base, "thought"), get_str(record, "text"))

    def _effect(self, record: Record, base: str, at: RecordPlace) -> None:
        detail, state = get_dict(record, "detail"), get_dict(record, "state")
        name = get_str(detail, "toolName") or get_str(record, "title")
        given = get_dict(detail, "input")
        self.call(at, base, name, given)
        if state.get("status") in _OPEN:
            return
        done = RecordPlace(at.bucket, parse_iso(record.get("updatedAt")) or at.when)
        output = get_dict(state, "output")
        told = get_dict(output, "structured_content")
        shown = get_str(told, "stdout") + get_str(told, "stderr")
        text = shown or get_str(state, "outputText") or joined_text(output.get("content"))
        outcome = _outcome(state, output, told, given)
        self.result(done, base, text or flatten(told), outcome)

    def _compaction(self, record: Record, base: str, at: RecordPlace) -> None:
        text = get_str(record, "summary") or get_str(record, "text")
        about = {"summary": True} if text else None
        at.add("compaction", fold(base, "compaction"), "system", text, data=about)


def _outcome(state: Record, output: Record, told: Record, given: Record) -> CallOutcome:
    """A command that failed counts as a success: its exit code says it. An edit has all of the file
    before it."""
    replaced = get_dict(get_dict(output, "_meta"), _REPLACED)
    before = get_str(replaced, "previous_content")
    path = get_str(told, "file") or get_str(told, "path")
    diff = text_diff(before, _after(before, given), path) if before else ""
    is_denied = state.get("decision") in ("reject", "deny", "skip")
    return CallOutcome(
        failed=state.get("status") == "failed" or output.get("type") == "error" or is_denied,
        exit_code=get_int(told, "returncode"),
        diff=diff,
        path=path,
        rejected=is_denied,
    )


def _after(before: str, given: Record) -> str:
    """Return a file after the edits that a call asked for."""
    text = before
    blocks = given.get("content")
    for block in blocks if isinstance(blocks, list) else []:
        if not isinstance(block, dict):
            continue
        old, new = get_str(block, "old_str"), get_str(block, "new_str")
        count = -1 if block.get("replace_all") is True else 1
        text = text.replace(old, new, count) if old else text
    return text


Handler = Callable[[EntryReader, Record, str, RecordPlace], None]
_ENTRIES: dict[str, Handler] = {
    "message": EntryReader._message,
    "reasoning": EntryReader._reasoning,
    "effect": EntryReader._effect,
    "compaction": EntryReader._compaction,
}

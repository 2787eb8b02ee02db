"""Read the documents of a Cline session."""

from __future__ import annotations

import re

from whyfor.agents.base import (
    as_dict,
    as_list,
    flatten,
    get_dict,
    get_int,
    get_list,
    get_str,
)
from whyfor.agents.chat import (
    CallOutcome,
    ChatReader,
    count_tokens,
    decoded_object,
    exit_code_in,
    uncached,
)
from whyfor.agents.record_place import RecordPlace
from whyfor.model.findings import Record, Sink
from whyfor.model.ids import fold
from whyfor.model.times import parse_iso
from whyfor.model.titles import TITLE_AGENT, TITLE_PROMPT

_TYPED = re.compile(r"\A\s*<user_input[^>]*>(.*)</user_input>\s*\Z", re.S)
_ADDED = ("<hook_context", "<environment_details", "<system-reminder>")
_EXIT = re.compile(r"\[Command exited with code (-?\d{1,9})\]")


class ManifestReader(ChatReader):
    """What is known of a session: where it runs, and what it is called."""

    def read(self, record: Record, offset: int, line: bytes, out: Sink) -> None:
        about = get_dict(record, "metadata")
        at = RecordPlace(out.main, parse_iso(record.get("started_at")))
        self.locate(
            at,
            out.main.session_id,
            cwd=record.get("cwd"),
            branch=get_dict(about, "git").get("branch"),
            version=get_dict(about, "sessionHistoryOrigin").get("version"),
        )
        title = get_str(about, "title")
        is_prompt = title == get_str(record, "prompt")
        out.main.title(TITLE_PROMPT if is_prompt else TITLE_AGENT, title)


class MessagesReader(ChatReader):
    """The conversation, whole each time it is read."""

    def read(self, record: Record, offset: int, line: bytes, out: Sink) -> None:
        if "messages" not in record:
            out.unknown_type(record.get("type"))
            return
        for index, message in enumerate(map(as_dict, get_list(record, "messages"))):
            base = get_str(message, "id") or f"{out.main.session_id}:{index}"
            at = RecordPlace(out.main, parse_iso(message.get("ts")))
            role = message.get("role")
            if role == "assistant":
                self._assistant(message, base, at)
            elif role == "user":
                self._user(message, base, at)
            else:
                out.unknown_type(f"message {role}")

    def _user(self, message: Record, base: str, at: RecordPlace) -> None:
        texts = []
        for index, block in enumerate(_blocks(message)):
            if block.get("type") == "tool_result":
                self._result(block, get_str(block, "tool_use_id") or f"{base}:{index}", at)
            elif block.get("type") == "text":
                texts.append(_typed(get_str(block, "text")))
        self.prompt(at, fold(base, "text"), "\n".join(filter(None, texts)))

    def _assistant(self, message: Record, base: str, at: RecordPlace) -> None:
        model = get_dict(message, "modelInfo").get("id")
        self._count(get_dict(message, "metrics"), base, model, at)
        for index, block in enumerate(_blocks(message)):
            kind = block.get("type")
            if kind == "thinking":
                self.think(at, fold(base, "thought", index), get_str(block, "thinking"), model)
            elif kind == "text":
                self.say(at, fold(base, "text", index), get_str(block, "text"), model)
            elif kind == "tool_use":
                ident = get_str(block, "id") or f"{base}:{index}"
                self.call(at, ident, get_str(block, "name"), _given(block), model)

    def _count(self, metrics: Record, base: str, model: object, at: RecordPlace) -> None:
        """Its input includes what came from the cache."""
        cached = get_int(metrics, "cacheReadTokens")
        counts = {
            "input": uncached(get_int(metrics, "inputTokens"), cached),
            "cache_read": cached,
            "cache_write": get_int(metrics, "cacheWriteTokens"),
            "output": get_int(metrics, "outputTokens"),
        }
        count_tokens(at, fold("cline", at.bucket.session_id, base), model, counts)

    def _result(self, block: Record, ident: str, at: RecordPlace) -> None:
        """A result is an object in a text, or a list with one object for each command."""
        content = block.get("content")
        several = [as_dict(part) for part in as_list(content)] or [decoded_object(content)]
        text = "\n".join(filter(None, map(_told, several)))
        failed = any(part.get("success") is False for part in several)
        outcome = CallOutcome(
            failed=failed or block.get("is_error") is True,
            exit_code=exit_code_in(text, _EXIT),
        )
        self.result(at, ident, text or flatten(content), outcome)


def _blocks(message: Record) -> list[Record]:
    content = message.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [as_dict(block) for block in as_list(content)]


def _typed(text: str) -> str:
    """Return what a person typed of a text; empty if the program wrote it."""
    if text.lstrip().startswith(_ADDED):
        return ""
    found = _TYPED.match(text)
    return found[1] if found else text


def _given(block: Record) -> Record:
    """Return a call's arguments; a list of commands as the one that they are together."""
    given = get_dict(block, "input")
    commands = [each for each in get_list(given, "commands") if isinstance(each, str)]
    if not commands:
        return given
    others = {name: value for name, value in given.items() if name != "commands"}
    return {**others, "command": "\n".join(commands)}


def _told(part: Record) -> str:
    return get_str(part, "result") or get_str(part, "text") or get_str(part, "error")

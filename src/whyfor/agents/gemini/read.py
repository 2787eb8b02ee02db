"""From a session's records to events, in either dialect."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from whyfor.agents.base import SourceShape, as_dict, as_int, as_list, as_str, flatten
from whyfor.agents.facts import MARKER
from whyfor.model.events import Event, Touch, Usage
from whyfor.model.findings import TITLE_AGENT, Bucket, Record, Sink
from whyfor.model.ids import fold, fold_bytes
from whyfor.model.times import parse_iso

# What the program itself says in the user's name.
NOT_TYPED = (
    MARKER,
    "<hook_context>",
    "System: Please continue.",
    "Here is the user's editor context as a JSON object",
    "Here is a summary of changes in the user's editor context",
)
# to a subagent that ran out of turns or time
LAST_CHANCE = "You have one final chance to complete the task"
# put into the model's mouth after a compression
ACKNOWLEDGED = "Got it. Thanks for the additional context!"
# what `@file` in a prompt was expanded to follows it
REFERENCED = "\n--- Content from referenced files ---"
WRITERS = ("write_file", "replace")
READERS = ("read_file",)
SUBAGENT_TOOLS = (
    "invoke_agent",
    "delegate_to_agent",
    "codebase_investigator",
    "cli_help",
    "generalist",
)
# Metadata that says nothing about the conversation, or is read elsewhere.
METADATA = {
    "sessionId",
    "projectHash",
    "startTime",
    "lastUpdated",
    "kind",
    "messages",
    "summary",
    "directories",
    "memoryScratchpad",
    "activeExtensionName",
}
_WORKSPACE = r"(?:Workspace Directories:\*\*|Current workspace directories:)\n\s*- (.+)"
_WORKING_IN = r"currently working in the directory: (.+)"
_EXIT = r"(?m)^Exit Code: (-?\d{1,9})$"
# messages, texts and calls that are remembered, to know them again in a replayed history
_SEEN_MAX = 8000


class SessionReader:
    """One session, in either dialect: a message that comes again with more in it replaces its
    events."""

    def __init__(self, state: Record, shape: SourceShape) -> None:
        self.state = state
        self.cwd = shape.cwd
        self.parent = shape.parent
        self.seen: dict[str, int] = state.setdefault("seen", {})

    def read(self, record: Record, offset: int, line: bytes, out: Sink) -> None:
        bucket, changes, target = out.main, record.get("$set"), record.get("$rewindTo")
        self._begin(record, bucket)
        if isinstance(changes, dict):
            self._change(changes, out)
            if origin := as_str(record.get("restoredFrom")):
                bucket.mark_copied(origin)
        elif isinstance(target, str):
            data = {"rewound_to": target}
            bucket.events.append(
                Event("status.changed", fold_bytes(offset, line), None, "user", "", None, data)
            )
        elif "type" in record:
            self._message(record, out)
        elif "sessionId" in record:
            self._header(record, out)
        else:
            out.unknown_type(next(iter(record), "empty"))

    def _begin(self, record: Record, bucket: Bucket) -> None:
        if record.get("kind") == "subagent" or self.parent is not None:
            self.state["subagent"] = True
        if self.state.get("begun"):
            return
        self.state["begun"] = True
        when = parse_iso(record.get("startTime") or record.get("timestamp"))
        key = fold(bucket.session_id, "started")
        data: Record = {"cwd": self.cwd} if self.cwd else {}
        # the agent has no word for it; a restored session has
        if origin := as_str(record.get("forkedFrom")):
            data["forked_from"] = bucket.facts["forked_from"] = origin
        bucket.events.append(Event("session.started", key, when, "system", "", None, data))
        self._place(self.cwd, bucket)

    def _place(self, cwd: object, bucket: Bucket) -> None:
        if isinstance(cwd, str) and cwd.strip() and not self.cwd and "cwd" not in self.state:
            self.state["cwd"] = cwd.strip()
        if known := self.cwd or self.state.get("cwd"):
            bucket.facts.setdefault("cwd", known)

    def _header(self, record: Record, out: Sink) -> None:
        """The first line, repeated on each resume; or the whole session, if it is a document."""
        out.main.title(TITLE_AGENT, record.get("summary"))
        self._place(next(iter(as_list(record.get("directories"))), None), out.main)
        for message in as_list(record.get("messages")):
            if isinstance(message, dict):
                self._message(message, out)

    def _change(self, changes: Record, out: Sink) -> None:
        out.main.title(TITLE_AGENT, changes.get("summary"))
        self._place(next(iter(as_list(changes.get("directories"))), None), out.main)
        # A resume or a compression writes the history anew, but poorer: without times, tools and
        # tokens, and with new ids for what it kept. What is known already is better as it is.
        messages = [m for m in as_list(changes.get("messages")) if isinstance(m, dict)]
        for message in [m for m in messages if not self._known(m)]:
            self._message(message, out)
        for name in changes.keys() - METADATA:
            out.unknown_type(f"$set.{name}")

    # -- what was there before -------------------------------------------------------------------

    def _known(self, message: Record) -> bool:
        parts = _parts(message.get("content"))
        return any(token in self.seen for token in _tokens(message, parts, _text(parts)))

    def _remember(self, *tokens: str) -> None:
        self.seen.update(dict.fromkeys(tokens, 1))
        while len(self.seen) > _SEEN_MAX:
            del self.seen[next(iter(self.seen))]

    # -- messages --------------------------------------------------------------------------------

    def _message(self, message: Record, out: Sink) -> None:
        kind, bucket = message.get("type"), out.main
        when = parse_iso(message.get("timestamp"))
        parts = _parts(message.get("content"))
        text = _text(parts)
        base = as_str(message.get("id")) or str(fold(message.get("timestamp"), kind, text))
        if kind == "gemini":
            self._gemini(message, parts, text, bucket, when, base)
        elif kind == "user":
            self._user(message, parts, bucket, when, base)
        elif kind == "error":
            bucket.events.append(Event("error", fold(base, "text"), when, "system", text))
        elif kind in ("info", "warning"):
            self._notice(text, bucket, when, fold(base, "text"))
        else:
            out.unknown_type(kind)
        self._remember(*_tokens(message, parts, text))

    def _notice(self, text: str, bucket: Bucket, when: int | None, key: int) -> None:
        if text.strip() == "Request cancelled.":
            data = {"interrupted": True}
            bucket.events.append(Event("turn.completed", key, when, "user", text, None, data))
            return
        if found := re.search(_WORKSPACE, text):
            self._place(found[1], bucket)
        bucket.events.append(Event("status.changed", key, when, "system", text))

    def _user(
        self, message: Record, parts: list[Record], bucket: Bucket, when: int | None, base: str
    ) -> None:
        answers = [
            as_dict(part["functionResponse"]) for part in parts if "functionResponse" in part
        ]
        for answer in answers:
            self._answer(answer, bucket, when)
        shown = _parts(message.get("displayContent")) or parts
        text = _text(shown).split(REFERENCED, 1)[0]
        images = _images(parts)
        if answers or not (text.strip() or images):
            return
        key, start = fold(base, "text"), text.lstrip()
        if start.startswith("<session_context>"):
            found = re.search(_WORKSPACE, text) or re.search(_WORKING_IN, text)
            self._place(found and found[1].removesuffix("."), bucket)
        elif "<state_snapshot>" in text and "</state_snapshot>" in text:
            bucket.events.append(
                Event("compaction", key, when, "system", text, None, {"summary": True})
            )
        elif start.startswith(NOT_TYPED) or LAST_CHANCE in start[:300]:
            bucket.events.append(Event("status.changed", key, when, "system", text))
        else:
            actor = "assistant" if self.state.get("subagent") else "user"
            data: Record | None = {"images": images} if images else None
            bucket.events.append(Event("user.prompt", key, when, actor, text, None, data))

    def _gemini(
        self,
        message: Record,
        parts: list[Record],
        text: str,
        bucket: Bucket,
        when: int | None,
        base: str,
    ) -> None:
        model = as_str(message.get("model")) or None
        data: Record | None = {"model": model} if model else None
        self._tokens_used(message, model, bucket, when, base)
        for index, (thought, at) in enumerate(_thoughts(message, parts)):
            if thought.strip():
                key = fold(base, "thought", index)
                bucket.events.append(
                    Event("assistant.thinking", key, at or when, "assistant", thought, None, data)
                )
        if text.strip() and text != ACKNOWLEDGED:
            bucket.events.append(
                Event("assistant.message", fold(base, "text"), when, "assistant", text, None, data)
            )
        calls = [call for call in as_list(message.get("toolCalls")) if isinstance(call, dict)]
        done = {as_str(call.get("id")) for call in calls}
        for part in parts:  # a replayed history has its calls here, without their outcome
            call = as_dict(part.get("functionCall"))
            if (
                call
                and as_str(call.get("id")) not in done
                and f"call {call.get('id')}" not in self.seen
            ):
                calls.append(call)
        for index, call in enumerate(calls):
            self._call(call, bucket, when, f"{base}:{index}", data)

    def _tokens_used(
        self, message: Record, model: str | None, bucket: Bucket, when: int | None, base: str
    ) -> None:
        tokens = message.get("tokens")
        if not isinstance(tokens, dict):
            return
        given, cached = as_int(tokens.get("input")), as_int(tokens.get("cached"))
        if given is not None and cached is not None:
            given = max(0, given - cached)  # its input includes what came from the cache
        output, thoughts = as_int(tokens.get("output")), as_int(tokens.get("thoughts"))
        key = fold("gemini", bucket.session_id, base)
        bucket.usage.append(Usage(key, when, model, given, cached, None, output, thoughts))

    # -- tools -----------------------------------------------------------------------------------

    def _call(
        self, call: Record, bucket: Bucket, when: int | None, spare: str, link: Record | None
    ) -> None:
        name, given = as_str(call.get("name")) or "unknown", as_dict(call.get("args"))
        ident = as_str(call.get("id")) or spare
        key = fold(ident)
        data = {**(link or {}), "id": ident, "input": given}
        bucket.events.append(Event("tool.call", key, when, "assistant", flatten(given), name, data))
        child = as_str(call.get("agentId")) or None
        if child or name in SUBAGENT_TOOLS:
            task = as_str(given.get("prompt")) or as_str(given.get("objective")) or flatten(given)
            kind = as_str(given.get("agent_name")) or (None if name == "invoke_agent" else name)
            started = {"id": ident, "prompt": task} | ({"subagent": child} if child else {})
            bucket.events.append(
                Event("subagent.started", fold(key, "sub"), when, "assistant", task, kind, started)
            )
        elif name == "ask_user":
            asked = "\n".join(
                as_str(as_dict(q).get("question")) for q in as_list(given.get("questions"))
            )
            data = {"id": ident, "questions": given.get("questions")}
            bucket.events.append(
                Event("question.asked", fold(key, "ask"), when, "assistant", asked, None, data)
            )
        if call.get("status") in ("success", "error", "cancelled") or call.get("result"):
            self._result(call, name, given, ident, bucket, parse_iso(call.get("timestamp")) or when)

    def _result(
        self, call: Record, name: str, given: Record, ident: str, bucket: Bucket, when: int | None
    ) -> None:
        parts = _parts(call.get("result"))
        shown = call.get("resultDisplay")
        text = _outputs(parts) or as_str(shown) or as_str(as_dict(shown).get("summary"))
        data: Record = {"id": ident, **_outcome(name, as_dict(shown), text)}
        if call.get("status") in ("error", "cancelled"):
            data["failed"] = True
        if images := _images(parts):
            data["images"] = images
        key = fold(ident, "result")
        self._remember(f"result {ident}")
        bucket.events.append(Event("tool.result", key, when, "tool", text, None, data))
        if child := as_str(call.get("agentId")):
            data["subagent"] = child
        if child or name in SUBAGENT_TOOLS:
            bucket.events.append(
                Event(
                    "subagent.stopped", fold(key, "sub"), when, "subagent", "", None, {"id": ident}
                )
            )
        if call.get("status") == "cancelled" and "User denied" in text:
            data["rejected"] = True
            decision = {"id": ident, "decision": "denied"}
            bucket.events.append(
                Event("approval.resolved", fold(ident, "denied"), when, "user", "", None, decision)
            )
        if not data.get("failed"):
            _touch(name, given, data, key, bucket)

    def _answer(self, answer: Record, bucket: Bucket, when: int | None) -> None:
        """A result in a message of its own: news only if no call says the same, and better."""
        ident = as_str(answer.get("id"))
        if not ident or f"result {ident}" in self.seen:
            return
        self._remember(f"result {ident}")
        data: Record = {"id": ident}
        if as_dict(answer.get("response")).get("error"):
            data["failed"] = True
        text = _outputs([{"functionResponse": answer}])
        bucket.events.append(
            Event("tool.result", fold(ident, "result"), when, "tool", text, None, data)
        )


def _outcome(name: str, shown: Record, text: str) -> Record:
    """What the program kept of a result beside the model's copy: the diff, the exit code."""
    data: Record = {}
    if isinstance(diff := shown.get("fileDiff"), str):
        data["diff"] = diff
        if path := as_str(shown.get("filePath")):
            data["path"] = path
        if as_dict(shown.get("diffStat")).get("user_added_lines"):
            data["user_modified"] = True
    if name == "run_shell_command" and "Exit Code: " in text and (codes := re.findall(_EXIT, text)):
        data["exit_code"] = int(codes[-1])
        if data["exit_code"]:
            data["failed"] = True
    return data


def _touch(name: str, given: Record, data: Record, key: int, bucket: Bucket) -> None:
    path = (
        as_str(given.get("file_path"))
        or as_str(given.get("absolute_path"))
        or as_str(data.get("path"))
    )
    if path and (name in WRITERS or name in READERS):
        bucket.touches.append(Touch(key, path, "write" if name in WRITERS else "read"))


def _tokens(message: Record, parts: list[Record], text: str) -> Iterator[str]:
    """By what a message is known again: its id, its words, the calls in it."""
    if ident := as_str(message.get("id")):
        yield ident
    if (words := text.strip()) and not words.startswith("<session_context>"):
        yield f"{message.get('type')} {fold(words):x}"
    calls = [*as_list(message.get("toolCalls")), *(part.get("functionCall") for part in parts)]
    yield from (f"call {ident}" for call in calls if (ident := as_str(as_dict(call).get("id"))))


def _parts(content: Any) -> list[Record]:
    """Content is a string, a part, or a list of both."""
    items = content if isinstance(content, list) else [content]
    return [
        {"text": item} if isinstance(item, str) else item
        for item in items
        if isinstance(item, str | dict)
    ]


def _text(parts: list[Record]) -> str:
    return "".join(as_str(part.get("text")) for part in parts if not part.get("thought"))


def _thoughts(message: Record, parts: list[Record]) -> Iterator[tuple[str, int | None]]:
    thoughts = as_list(message.get("thoughts"))
    for thought in map(as_dict, thoughts):
        words = [as_str(thought.get("subject")), as_str(thought.get("description"))]
        yield "\n".join(filter(None, words)), parse_iso(thought.get("timestamp"))
    if not thoughts:
        yield from ((as_str(part.get("text")), None) for part in parts if part.get("thought"))


def _images(parts: list[Record]) -> list[Record]:
    """Their bytes stay in the segment; the event says that there is one, of which kind and size."""
    found: list[Record] = []
    for index, part in enumerate(parts):
        inline, file = part.get("inlineData"), part.get("fileData")
        if isinstance(inline, dict):
            size = len(as_str(inline.get("data"))) * 3 // 4
            found.append(
                {
                    "block": index,
                    "type": "inline",
                    "media_type": inline.get("mimeType"),
                    "bytes": size,
                }
            )
        elif isinstance(file, dict):
            uri = file.get("fileUri")
            found.append(
                {"block": index, "type": "file", "media_type": file.get("mimeType"), "uri": uri}
            )
    return found


def _outputs(parts: list[Record]) -> str:
    """The text of a tool's answer, whichever of its wrappings it came in."""
    texts = []
    for part in parts:
        response = as_dict(part.get("functionResponse")).get("response")
        if isinstance(response, dict):
            told = [
                response[name]
                for name in ("output", "error", "content")
                if isinstance(response.get(name), str)
            ]
            texts.append("\n".join(told) or flatten(response))
        else:
            texts.append(as_str(response) or as_str(part.get("text")))
    return "\n".join(filter(None, texts))

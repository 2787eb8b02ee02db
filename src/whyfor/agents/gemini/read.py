"""Read sessions of Gemini CLI in both formats."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from whyfor.agents.base import (
    SourceShape,
    as_dict,
    as_str,
    flatten,
    get_dict,
    get_int,
    get_list,
    get_str,
)
from whyfor.agents.facts import MARKER
from whyfor.agents.record_place import RecordPlace, remember
from whyfor.model.events import Usage
from whyfor.model.findings import Bucket, Record, Sink
from whyfor.model.ids import fold, fold_bytes
from whyfor.model.memory_fence import without_memory
from whyfor.model.times import parse_iso
from whyfor.model.titles import TITLE_AGENT

# How text begins that the program puts into user messages.
NOT_TYPED = (
    MARKER,
    "<hook_context>",
    "System: Please continue.",
    "Here is the user's editor context as a JSON object",
    "Here is a summary of changes in the user's editor context",
)
# to a subagent that ran out of turns or time
LAST_CHANCE = "You have one final chance to complete the task"
# an answer that the program adds after a compression
ACKNOWLEDGED = "Got it. Thanks for the additional context!"
# what `@file` in a prompt was expanded to follows it
REFERENCED = "\n--- Content from referenced files ---"
WRITERS = ("write_file", "replace")
READERS = ("read_file",)
FINISHED = ("success", "error", "cancelled")
SUBAGENT_TOOLS = (
    "invoke_agent",
    "delegate_to_agent",
    "codebase_investigator",
    "cli_help",
    "generalist",
)
# Metadata without conversation, or read elsewhere.
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
_HOOK_CONTEXT = re.compile(r"<hook_context>.*?</hook_context>", re.S)
_EXIT = r"(?m)^Exit Code: (-?\d{1,9})$"
# messages, texts and calls that are remembered, to recognise them in a replayed history
_SEEN_MAX = 8000


class SessionReader:
    """One session. A message that is written again with more in it replaces its events."""

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
            if origin := get_str(record, "restoredFrom"):
                bucket.mark_copied(origin)
        elif isinstance(target, str):
            RecordPlace(bucket, None).add(
                "status.changed", fold_bytes(offset, line), "user", data={"rewound_to": target}
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
        data: Record = {"cwd": self.cwd} if self.cwd else {}
        # the agent has no word for it; a restored session has
        if origin := get_str(record, "forkedFrom"):
            data["forked_from"] = bucket.facts["forked_from"] = origin
        at = RecordPlace(bucket, parse_iso(record.get("startTime") or record.get("timestamp")))
        at.add("session.started", fold(bucket.session_id, "started"), "system", data=data)
        self._place(self.cwd, bucket)

    def _place(self, cwd: object, bucket: Bucket) -> None:
        if isinstance(cwd, str) and cwd.strip() and not self.cwd and "cwd" not in self.state:
            self.state["cwd"] = cwd.strip()
        if known := self.cwd or self.state.get("cwd"):
            bucket.facts.setdefault("cwd", known)

    def _header(self, record: Record, out: Sink) -> None:
        """Read the first line, which is repeated on each resume; in a document, the whole
        session."""
        out.main.title(TITLE_AGENT, record.get("summary"))
        self._place(next(iter(get_list(record, "directories")), None), out.main)
        for message in get_list(record, "messages"):
            if isinstance(message, dict):
                self._message(message, out)

    def _change(self, changes: Record, out: Sink) -> None:
        # A resume or a compression writes the history anew, but poorer: without times, tools and
        # tokens, and with new ids for what it kept. What is known already is better as it is.
        messages = [m for m in get_list(changes, "messages") if isinstance(m, dict)]
        fresh = [message for message in messages if not self._known(message)]
        self._header({**changes, "messages": fresh}, out)
        for name in changes.keys() - METADATA:
            out.unknown_type(f"$set.{name}")

    # -- what was there before -------------------------------------------------------------------

    def _known(self, message: Record) -> bool:
        parts = _parts(message.get("content"))
        return any(token in self.seen for token in _tokens(message, parts, _text(parts)))

    def _remember(self, token: str) -> None:
        remember(self.seen, token, 1, _SEEN_MAX)

    # -- messages --------------------------------------------------------------------------------

    def _message(self, message: Record, out: Sink) -> None:
        kind = message.get("type")
        parts = _parts(message.get("content"))
        text = _text(parts)
        base = get_str(message, "id") or str(fold(message.get("timestamp"), kind, text))
        at = RecordPlace(out.main, parse_iso(message.get("timestamp")))
        if kind == "gemini":
            self._gemini(message, parts, base, at)
        elif kind == "user":
            self._user(message, parts, base, at)
        elif kind == "error":
            at.add("error", fold(base, "text"), "system", text)
        elif kind in ("info", "warning"):
            self._notice(text, fold(base, "text"), at)
        else:
            out.unknown_type(kind)
        for token in _tokens(message, parts, text):
            self._remember(token)

    def _notice(self, text: str, key: int, at: RecordPlace) -> None:
        if text.strip() == "Request cancelled.":
            at.add("turn.completed", key, "user", text, data={"interrupted": True})
            return
        if found := re.search(_WORKSPACE, text):
            self._place(found[1], at.bucket)
        at.add("status.changed", key, "system", text)

    def _user(self, message: Record, parts: list[Record], base: str, at: RecordPlace) -> None:
        answers = [
            as_dict(part["functionResponse"]) for part in parts if "functionResponse" in part
        ]
        for answer in answers:
            self._answer(answer, at)
        shown = _parts(message.get("displayContent")) or parts
        text = _typed(_text(shown).split(REFERENCED, 1)[0])
        images = _images(parts)
        if answers or not (text.strip() or images):
            return
        key, start = fold(base, "text"), text.lstrip()
        if start.startswith("<session_context>"):
            found = re.search(_WORKSPACE, text) or re.search(_WORKING_IN, text)
            self._place(found and found[1].removesuffix("."), at.bucket)
        elif "<state_snapshot>" in text and "</state_snapshot>" in text:
            at.add("compaction", key, "system", text, data={"summary": True})
        elif start.startswith(NOT_TYPED) or LAST_CHANCE in start[:300]:
            at.add("status.changed", key, "system", text)
        else:
            actor = "assistant" if self.state.get("subagent") else "user"
            at.add("user.prompt", key, actor, text, data={"images": images} if images else None)

    def _gemini(self, message: Record, parts: list[Record], base: str, at: RecordPlace) -> None:
        model = get_str(message, "model")
        link: Record = {"model": model} if model else {}
        self._tokens_used(message, base, at)
        for index, (thought, when) in enumerate(_thoughts(message, parts)):
            if thought.strip():
                key = fold(base, "thought", index)
                then = RecordPlace(at.bucket, when or at.when)
                then.add("assistant.thinking", key, "assistant", thought, data=link)
        text = _text(parts)
        if text.strip() and text != ACKNOWLEDGED:
            at.add("assistant.message", fold(base, "text"), "assistant", text, data=link)
        for index, call in enumerate(self._calls(message, parts)):
            self._call(call, get_str(call, "id") or f"{base}:{index}", link, at)

    def _calls(self, message: Record, parts: list[Record]) -> list[Record]:
        calls = [call for call in get_list(message, "toolCalls") if isinstance(call, dict)]
        done = {get_str(call, "id") for call in calls}
        for part in parts:  # a replayed history has its calls here, without their outcome
            call = get_dict(part, "functionCall")
            known = get_str(call, "id") in done or f"call {call.get('id')}" in self.seen
            if call and not known:
                calls.append(call)
        return calls

    def _tokens_used(self, message: Record, base: str, at: RecordPlace) -> None:
        tokens = message.get("tokens")
        if not isinstance(tokens, dict):
            return
        given, cached = get_int(tokens, "input"), get_int(tokens, "cached")
        if given is not None and cached is not None:
            given = max(0, given - cached)  # its input includes what came from the cache
        output, thoughts = get_int(tokens, "output"), get_int(tokens, "thoughts")
        key = fold("gemini", at.bucket.session_id, base)
        model = get_str(message, "model") or None
        billed = None if output is None else output + (thoughts or 0)
        counts = (given, cached, None, output, thoughts)
        at.bucket.usage.append(Usage(key, at.when, model, *counts, billed=billed))

    # -- tools -----------------------------------------------------------------------------------

    def _call(self, call: Record, ident: str, link: Record, at: RecordPlace) -> None:
        name, given = get_str(call, "name") or "unknown", get_dict(call, "args")
        key = fold(ident)
        at.call(key, ident, name, given, **link)
        child = get_str(call, "agentId")
        if child or name in SUBAGENT_TOOLS:
            task = get_str(given, "prompt") or get_str(given, "objective") or flatten(given)
            kind = get_str(given, "agent_name") or (None if name == "invoke_agent" else name)
            data = {"id": ident, "prompt": task} | ({"subagent": child} if child else {})
            at.add("subagent.started", fold(key, "sub"), "assistant", task, kind, data)
        elif name == "ask_user":
            at.question(key, ident, given.get("questions"))
        if call.get("status") in FINISHED or call.get("result"):
            when = parse_iso(call.get("timestamp")) or at.when
            self._result(call, name, ident, RecordPlace(at.bucket, when))

    def _result(self, call: Record, name: str, ident: str, at: RecordPlace) -> None:
        parts = _parts(call.get("result"))
        shown = call.get("resultDisplay")
        text = _outputs(parts) or as_str(shown) or get_str(as_dict(shown), "summary")
        data: Record = {"id": ident, **_outcome(name, as_dict(shown), text)}
        if call.get("status") in ("error", "cancelled"):
            data["failed"] = True
        if images := _images(parts):
            data["images"] = images
        child = get_str(call, "agentId")
        if child:
            data["subagent"] = child
        denied = call.get("status") == "cancelled" and "User denied" in text
        if denied:
            data["rejected"] = True
        key = fold(ident, "result")
        self._remember(f"result {ident}")
        at.add("tool.result", key, "tool", text, data=data)
        if child or name in SUBAGENT_TOOLS:
            at.add("subagent.stopped", fold(key, "sub"), "subagent", data={"id": ident})
        if denied:
            at.denied(ident)
        if not data.get("failed"):
            _touch(name, get_dict(call, "args"), data, key, at)

    def _answer(self, answer: Record, at: RecordPlace) -> None:
        """Add a result in a message of its own, unless its call already has a better one."""
        ident = get_str(answer, "id")
        if not ident or f"result {ident}" in self.seen:
            return
        self._remember(f"result {ident}")
        data: Record = {"id": ident}
        if get_dict(answer, "response").get("error"):
            data["failed"] = True
        text = _outputs([{"functionResponse": answer}])
        at.add("tool.result", fold(ident, "result"), "tool", text, data=data)


def _outcome(name: str, shown: Record, text: str) -> Record:
    """Return what the program recorded about a result besides its text: the diff, the exit code."""
    data: Record = {}
    if isinstance(diff := shown.get("fileDiff"), str):
        data["diff"] = diff
        if path := get_str(shown, "filePath"):
            data["path"] = path
        if get_dict(shown, "diffStat").get("user_added_lines"):
            data["user_modified"] = True
    if name == "run_shell_command" and "Exit Code: " in text and (codes := re.findall(_EXIT, text)):
        data["exit_code"] = int(codes[-1])
        if data["exit_code"]:
            data["failed"] = True
    return data


def _touch(name: str, given: Record, data: Record, key: int, at: RecordPlace) -> None:
    names = (given.get("file_path"), given.get("absolute_path"), data.get("path"))
    path = next(filter(None, map(as_str, names)), None)
    if path and (name in WRITERS or name in READERS):
        at.touch(key, [path], "write" if name in WRITERS else "read")


def _typed(text: str) -> str:
    """Return a prompt without what hooks added to it; a message that is nothing else stays."""
    if "</hook_context>" not in text:
        return text
    return _HOOK_CONTEXT.sub("", text).strip() or without_memory(text)


def _tokens(message: Record, parts: list[Record], text: str) -> Iterator[str]:
    """Yield what identifies a message when it is written again: its id, its text, its calls."""
    if ident := get_str(message, "id"):
        yield ident
    if (words := text.strip()) and not words.startswith("<session_context>"):
        yield f"{message.get('type')} {fold(words):x}"
    calls = [*get_list(message, "toolCalls"), *(part.get("functionCall") for part in parts)]
    yield from (f"call {ident}" for call in calls if (ident := get_str(as_dict(call), "id")))


def _parts(content: Any) -> list[Record]:
    """Content is a string, a part, or a list of both."""
    items = content if isinstance(content, list) else [content]
    return [
        {"text": item} if isinstance(item, str) else item
        for item in items
        if isinstance(item, str | dict)
    ]


def _text(parts: list[Record]) -> str:
    return "".join(get_str(part, "text") for part in parts if not part.get("thought"))


def _thoughts(message: Record, parts: list[Record]) -> Iterator[tuple[str, int | None]]:
    thoughts = get_list(message, "thoughts")
    for thought in map(as_dict, thoughts):
        words = [get_str(thought, "subject"), get_str(thought, "description")]
        yield "\n".join(filter(None, words)), parse_iso(thought.get("timestamp"))
    if not thoughts:
        yield from ((get_str(part, "text"), None) for part in parts if part.get("thought"))


def _images(parts: list[Record]) -> list[Record]:
    """Describe images: type and size. The bytes stay in the segment."""
    found: list[Record] = []
    for index, part in enumerate(parts):
        inline, file = part.get("inlineData"), part.get("fileData")
        if isinstance(inline, dict):
            size = len(get_str(inline, "data")) * 3 // 4
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
    """Return the text of a tool's answer, in whichever form it is wrapped."""
    texts = []
    for part in parts:
        response = get_dict(part, "functionResponse").get("response")
        if isinstance(response, dict):
            told = [
                response[name]
                for name in ("output", "error", "content")
                if isinstance(response.get(name), str)
            ]
            texts.append("\n".join(told) or flatten(response))
        else:
            texts.append(as_str(response) or get_str(part, "text"))
    return "\n".join(filter(None, texts))

"""Read rows of OpenCode: sessions, messages and their parts."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from whyfor.agents.base import (
    as_dict,
    as_str,
    get_dict,
    get_dollars,
    get_int,
    get_list,
    get_str,
)
from whyfor.agents.facts import MARKER
from whyfor.agents.record_place import RecordPlace, known_values, remember
from whyfor.model.events import Usage
from whyfor.model.findings import Bucket, Record, Sink
from whyfor.model.ids import fold
from whyfor.model.times import parse_iso
from whyfor.model.titles import TITLE_AGENT

WRITERS = ("edit", "write", "multiedit")
SILENT_PARTS = ("step-start", "step-finish", "snapshot", "agent")
_NO_TITLE = r"(New|Child) session - \d{4}-\d\d-\d\dT"
_NICKNAME = r"\(@(\S+) subagent\)$"
_MESSAGES_MAX = 200
_CALLS_MAX = 500


def under(record: Record) -> tuple[str, str]:
    """Return a row's own message id, and the id of the message it belongs to: the prompt it
    answers, or the message it is a part of."""
    row = get_dict(record, "row")
    if record.get("type") == "message":
        return get_str(row, "id"), get_str(decoded_column(row.get("data")), "parentID")
    return "", get_str(row, "message_id")


class _Part(RecordPlace):
    """One part of a message while it is read."""

    __slots__ = ("data", "ident", "key", "message", "message_id")

    def __init__(
        self, bucket: Bucket, when: int | None, row: Record, data: Record, message: Record
    ) -> None:
        super().__init__(bucket, when)
        self.ident = get_str(row, "id")
        self.key = fold(self.ident)
        self.data = data
        self.message_id = get_str(row, "message_id")
        self.message = message  # what is known of it

    @property
    def is_added(self) -> bool:
        """Whether the program added this text, and the person need not see it."""
        return bool(self.data.get("synthetic") or self.data.get("ignored"))


class RowReader:
    """One session's rows. The parts of messages carry everything said and done."""

    def __init__(self, state: Record, *, subagent: bool) -> None:
        self.state = state
        self.subagent = subagent
        self.messages: dict[str, Record] = state.setdefault("messages", {})
        self.calls: dict[str, str] = state.setdefault("calls", {})

    def read(self, record: Record, offset: int, line: bytes, out: Sink) -> None:
        kind, row = record.get("type"), get_dict(record, "row")
        if kind == "session":
            self._session(row, out.main)
        elif kind == "message":
            self._message(row, decoded_column(row.get("data")), out)
        elif kind == "part":
            self._part(row, decoded_column(row.get("data")), out)
        else:
            out.unknown_type(kind)

    # -- the session -----------------------------------------------------------------------------

    def _session(self, row: Record, bucket: Bucket) -> None:
        ident = get_str(row, "id") or bucket.session_id
        cwd, version = get_str(row, "directory"), get_str(row, "version")
        title = get_str(row, "title")
        if not re.match(_NO_TITLE, title):
            bucket.title(TITLE_AGENT, title)
        if version:
            bucket.facts["version"] = version
        if self.subagent:
            named = re.search(_NICKNAME, title)
            bucket.facts["subagent"] = get_str(row, "agent") or (named[1] if named else None)
        if not self.state.get("begun"):
            self.state["begun"] = True
            data = {name: value for name, value in (("cwd", cwd), ("version", version)) if value}
            created = RecordPlace(bucket, parse_iso(row.get("time_created")))
            created.add("session.started", fold(ident, "started"), "system", data=data)
        at = RecordPlace(bucket, parse_iso(row.get("time_updated")))
        if cwd != self.state.get("directory"):  # not where it is now: its messages know that better
            self.state["directory"] = cwd
            self._place(cwd, ident, at)
        if target := get_str(decoded_column(row.get("revert")), "messageID"):
            key = fold(ident, "revert", target)
            at.add("status.changed", key, "user", data={"rewound_to": target})

    def _place(self, cwd: str, base: str, at: RecordPlace) -> None:
        """Add where the session runs, whenever it changes."""
        before = self.state.get("cwd")
        if not cwd or cwd == before:
            return
        self.state["cwd"] = cwd
        if before is None:
            at.bucket.facts.setdefault("cwd", cwd)
        else:
            at.add("status.changed", fold(base, "place", cwd), "system", data={"cwd": cwd})

    # -- messages --------------------------------------------------------------------------------

    def _message(self, row: Record, data: Record, out: Sink) -> None:
        ident, role = get_str(row, "id"), data.get("role")
        times = get_dict(data, "time")
        when = parse_iso(times.get("created")) or parse_iso(row.get("time_created"))
        known: Record = {"role": role, "at": when, "until": parse_iso(times.get("completed"))}
        if role == "assistant":
            known["model"] = get_str(data, "modelID") or None
            if data.get("summary") is True:
                known["summary"] = True
            at = RecordPlace(out.main, when)
            if ident not in self.messages:  # an old one that changed says where the session was
                self._place(get_str(get_dict(data, "path"), "cwd"), ident, at)
            self._usage(data, times, at)
            at.when = known["until"] or when
            self._error(data.get("error"), fold(ident, "error"), at)
        elif role == "user":
            self.state["said"] = {"id": ident, "texts": {}, "images": {}}
        else:
            out.unknown_type(f"message {role}")
        self.messages.pop(ident, None)
        remember(self.messages, ident, known, _MESSAGES_MAX)

    def _usage(self, data: Record, times: Record, at: RecordPlace) -> None:
        """Add the usage of a response. A fork copies messages under new ids but with their times,
        so the times identify a response."""
        tokens = get_dict(data, "tokens")
        cache = get_dict(tokens, "cache")
        model = get_str(data, "modelID") or None
        created, completed = get_int(times, "created"), get_int(times, "completed")
        output, reasoning = get_int(tokens, "output"), get_int(tokens, "reasoning")
        used = Usage(
            fold("opencode", created, completed, data.get("providerID"), model),
            at.when,
            model,
            input=get_int(tokens, "input"),
            cache_read=get_int(cache, "read"),
            cache_write=get_int(cache, "write"),
            output=output,
            reasoning=reasoning,
            billed=None if output is None else output + (reasoning or 0),
            reported=get_dollars(data, "cost"),
        )
        counts = (used.input, used.cache_read, used.cache_write, output, reasoning)
        if completed is not None and any(counts):  # all zero while it runs, and when it failed
            at.bucket.usage.append(used)

    def _error(self, error: Any, key: int, at: RecordPlace) -> None:
        if not isinstance(error, dict):
            return
        name, about = get_str(error, "name"), get_dict(error, "data")
        text = get_str(about, "message") or get_str(error, "message")
        if name == "MessageAbortedError":
            at.add("turn.completed", key, "user", text, data={"interrupted": True})
        else:
            data = {"error": name, "status": get_int(about, "statusCode")}
            at.add("error", key, "system", text or name, data=known_values(data))

    # -- parts -----------------------------------------------------------------------------------

    def _part(self, row: Record, data: Record, out: Sink) -> None:
        kind = data.get("type")
        message = self.messages.get(get_str(row, "message_id"), {})
        when = parse_iso(get_dict(data, "time").get("start")) or parse_iso(row.get("time_created"))
        if when and message.get("until"):
            # in a fork a part is as old as its copy, but its message is not
            when = min(when, message["until"])
        part = _Part(out.main, when, row, data, message)
        if kind in ("text", "file") and message.get("role") == "user":
            self._said(part)
        elif handler := _PARTS.get(get_str(data, "type")):
            handler(self, part)
        elif kind != "file" and kind not in SILENT_PARTS:
            out.unknown_type(f"part {kind}")
        if origin := get_str(get_dict(get_dict(data, "metadata"), "whyfor"), "restoredFrom"):
            out.main.mark_copied(origin)

    def _patch(self, part: _Part) -> None:
        files = [path for path in get_list(part.data, "files") if isinstance(path, str)]
        about = {"files": files, "hash": part.data.get("hash")}
        part.add("status.changed", part.key, "system", data=about)
        part.touch(part.key, files, "write")

    def _compaction(self, part: _Part) -> None:
        about = {name: part.data.get(name) for name in ("auto", "overflow")}
        part.add("compaction", part.key, "system", data=known_values(about))

    def _retry(self, part: _Part) -> None:
        part.when = parse_iso(get_dict(part.data, "time").get("created")) or part.when
        self._error(part.data.get("error"), part.key, part)

    def _subtask(self, part: _Part) -> None:
        data, task = part.data, part.data.get("prompt")
        text = get_str(data, "description") or as_str(task)
        name = get_str(data, "agent")
        part.add("subagent.started", part.key, "user", text, name, {"prompt": task})

    def _said(self, part: _Part) -> None:
        """Add a prompt. Its parts come one by one; each time the whole prompt replaces the earlier
        version."""
        if part.is_added:
            return
        message = part.message_id
        said = get_dict(self.state, "said")
        if said.get("id") != message:
            said = self.state["said"] = {"id": message, "texts": {}, "images": {}}
        if part.data.get("type") == "file":
            said["images"][part.ident] = _reference(part.data, len(said["images"]))
        else:
            said["texts"][part.ident] = _typed(get_str(part.data, "text"))
        text = "\n".join(said["texts"].values())
        images = list(said["images"].values())
        if text.lstrip().startswith(MARKER):  # what a restore added
            part.add("status.changed", fold(message, "said"), "system", text)
        elif text.strip() or images:
            actor = "assistant" if self.subagent else "user"
            part.when = part.message.get("at") or part.when
            about: Record | None = {"images": images} if images else None
            part.add("user.prompt", fold(message, "said"), actor, text, data=about)

    def _words(self, part: _Part) -> None:
        text = get_str(part.data, "text")
        if not text.strip() or part.is_added:
            return
        about = known_values({"model": part.message.get("model")})
        if part.data.get("type") == "reasoning":
            part.add("assistant.thinking", part.key, "assistant", text, data=about)
        elif part.message.get("summary"):
            part.add("compaction", part.key, "system", text, data={**about, "summary": True})
        else:
            part.add("assistant.message", part.key, "assistant", text, data=about)

    # -- tools -----------------------------------------------------------------------------------

    def _identity(self, call: str, part: str) -> str:
        """Return a call's id. Some models reuse ids after a compaction; the second call with an id
        gets its part's id."""
        known = self.calls.get(call, part)
        if known != part:
            return part
        remember(self.calls, call, part, _CALLS_MAX)
        return call

    def _tool(self, at: _Part) -> None:
        state = get_dict(at.data, "state")
        given, times = get_dict(state, "input"), get_dict(state, "time")
        meta = get_dict(state, "metadata")
        name = get_str(at.data, "tool") or "unknown"
        if name == "invalid":  # what a call to a tool that does not exist is turned into
            name = get_str(given, "tool") or name
        at.when = parse_iso(times.get("start")) or at.when
        call = self._identity(get_str(at.data, "callID") or at.ident, at.ident)
        key = fold(call)
        at.call(key, call, name, given)
        if name == "task":
            task = given.get("prompt")
            text = get_str(given, "description") or as_str(task)
            about = known_values({"id": call, "prompt": task, "subagent": meta.get("sessionId")})
            kind = get_str(given, "subagent_type")
            at.add("subagent.started", fold(key, "sub"), "assistant", text, kind, about)
        elif name == "question":
            at.question(key, call, given.get("questions"))
        if state.get("status") in ("completed", "error"):
            at.when = parse_iso(times.get("end")) or at.when
            self._result(name, call, state, meta, at)

    def _result(self, name: str, call: str, state: Record, meta: Record, at: RecordPlace) -> None:
        failed, code = state.get("status") == "error", get_int(meta, "exit")
        text = get_str(state, "error") if failed else get_str(state, "output")
        data = known_values(
            {
                "id": call,
                "exit_code": code,
                "diff": meta.get("diff"),
                "answers": meta.get("answers"),
            }
        )
        if failed or code:
            data["failed"] = True
        attached = map(as_dict, get_list(state, "attachments"))
        if images := [_reference(file, index) for index, file in enumerate(attached)]:
            data["images"] = images
        if name == "task":
            data["subagent"] = meta.get("sessionId")
        rejected = failed and "rejected permission" in text[:80]
        if rejected:
            data["rejected"] = True
        key = fold(call, "result")
        at.add("tool.result", key, "tool", text, data=data)
        if name == "task":
            at.add("subagent.stopped", fold(key, "sub"), "subagent", data={"id": call})
        if rejected:
            at.denied(call)
        if not data.get("failed"):
            for path, action in _touched(name, get_dict(state, "input"), meta):
                at.touch(key, [path], action)


# What is read of each kind of part, unless it is a prompt's.
_PARTS: dict[str, Callable[[RowReader, _Part], None]] = {
    "tool": RowReader._tool,
    "text": RowReader._words,
    "reasoning": RowReader._words,
    "patch": RowReader._patch,
    "compaction": RowReader._compaction,
    "retry": RowReader._retry,
    "subtask": RowReader._subtask,
}


def _typed(text: str) -> str:
    """Return a prompt without the quotes that `run` puts around one of several words."""
    inner = text[1:-1]
    quoted = len(text) > 2 and text[0] == text[-1] == '"'
    return inner if quoted and " " in inner and '"' not in inner else text


def _touched(name: str, given: Record, meta: Record) -> Iterator[tuple[str, str]]:
    path = get_str(given, "filePath")
    if path and (name == "read" or name in WRITERS):
        yield path, "read" if name == "read" else "write"
    if name in ("apply_patch", "patch"):
        for file in map(as_dict, get_list(meta, "files")):
            for path in (get_str(file, "filePath"), get_str(file, "movePath")):
                if path:
                    yield path, "write"


def _reference(file: Record, index: int) -> Record:
    """Describe a file: its type and place. Its bytes stay in the segment."""
    url = get_str(file, "url")
    inline = url.startswith("data:")
    about = {
        "block": index,
        "type": "file",
        "media_type": file.get("mime"),
        "filename": file.get("filename"),
    }
    return known_values(
        {**about, "url": None if inline else url, "bytes": len(url) * 3 // 4 if inline else None}
    )


def decoded_column(text: object) -> Record:
    """Decode a column that holds JSON; empty if it is damaged."""
    if not isinstance(text, str):
        return as_dict(text)
    try:
        return as_dict(msgspec.json.decode(text))
    except (msgspec.DecodeError, RecursionError):
        return as_dict(_salvaged(text))


def _salvaged(text: str) -> object:
    """Decode JSON with half a surrogate pair in it, as output that was cut inside an emoji has;
    None if that fails too."""
    import json  # lenient where msgspec is not

    try:
        halves = json.dumps(json.loads(text, strict=False), ensure_ascii=False)
        return json.loads(
            halves.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        )
    except (ValueError, RecursionError):
        return None

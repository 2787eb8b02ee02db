"""Read rows of OpenCode: sessions, messages and their parts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from whyfor.agents.base import (
    as_dict,
    as_str,
    get_dict,
    get_int,
    get_list,
    get_str,
)
from whyfor.agents.record_place import RecordPlace, known_values, remember
from whyfor.model.events import Usage
from whyfor.model.findings import TITLE_AGENT, Bucket, Record, Sink
from whyfor.model.ids import fold
from whyfor.model.times import parse_iso

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
        return get_str(row, "id"), get_str(_json(row.get("data")), "parentID")
    return "", get_str(row, "message_id")


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
            self._message(row, _json(row.get("data")), out)
        elif kind == "part":
            self._part(row, _json(row.get("data")), out)
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
        if target := get_str(_json(row.get("revert")), "messageID"):
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
        counts = [
            get_int(tokens, "input"),
            get_int(cache, "read"),
            get_int(cache, "write"),
            get_int(tokens, "output"),
            get_int(tokens, "reasoning"),
        ]
        if completed is not None and any(counts):  # all zero while it runs, and when it failed
            key = fold("opencode", created, completed, data.get("providerID"), model)
            at.bucket.usage.append(Usage(key, at.when, model, *counts))

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
        kind, ident = data.get("type"), get_str(row, "id")
        times = get_dict(data, "time")
        message = self.messages.get(get_str(row, "message_id"), {})
        when = parse_iso(times.get("start")) or parse_iso(row.get("time_created"))
        if when and message.get("until"):
            # in a fork a part is as old as its copy, but its message is not
            when = min(when, message["until"])
        key, at = fold(ident), RecordPlace(out.main, when)
        if kind == "tool":
            self._tool(ident, data, get_dict(data, "state"), at)
        elif kind in ("text", "file") and message.get("role") == "user":
            at.when = message.get("at") or when
            self._said(get_str(row, "message_id"), ident, data, at)
        elif kind in ("text", "reasoning"):
            self._words(data, message, key, at)
        elif kind == "patch":
            files = [path for path in get_list(data, "files") if isinstance(path, str)]
            about = {"files": files, "hash": data.get("hash")}
            at.add("status.changed", key, "system", data=about)
            at.touch(key, files, "write")
        elif kind == "compaction":
            about = known_values({"auto": data.get("auto"), "overflow": data.get("overflow")})
            at.add("compaction", key, "system", data=about)
        elif kind == "retry":
            at.when = parse_iso(times.get("created")) or when
            self._error(data.get("error"), key, at)
        elif kind == "subtask":
            text = get_str(data, "description") or get_str(data, "prompt")
            about = {"prompt": data.get("prompt")}
            at.add("subagent.started", key, "user", text, get_str(data, "agent"), about)
        elif kind not in SILENT_PARTS and kind != "file":
            out.unknown_type(f"part {kind}")

    def _said(self, message: str, ident: str, data: Record, at: RecordPlace) -> None:
        """Add a prompt. Its parts come one by one; each time the whole prompt replaces the earlier
        version."""
        if data.get("synthetic") or data.get("ignored"):
            return
        said = get_dict(self.state, "said")
        if said.get("id") != message:
            said = self.state["said"] = {"id": message, "texts": {}, "images": {}}
        if data.get("type") == "file":
            said["images"][ident] = _reference(data, len(said["images"]))
        else:
            said["texts"][ident] = get_str(data, "text")
        text = "\n".join(said["texts"].values())
        images = list(said["images"].values())
        if text.strip() or images:
            actor = "assistant" if self.subagent else "user"
            about: Record | None = {"images": images} if images else None
            at.add("user.prompt", fold(message, "said"), actor, text, data=about)

    def _words(self, data: Record, message: Record, key: int, at: RecordPlace) -> None:
        text = get_str(data, "text")
        if not text.strip() or data.get("synthetic") or data.get("ignored"):
            return
        about = known_values({"model": message.get("model")})
        if data.get("type") == "reasoning":
            at.add("assistant.thinking", key, "assistant", text, data=about)
        elif message.get("summary"):
            at.add("compaction", key, "system", text, data={**about, "summary": True})
        else:
            at.add("assistant.message", key, "assistant", text, data=about)

    # -- tools -----------------------------------------------------------------------------------

    def _identity(self, call: str, part: str) -> str:
        """Return a call's id. Some models reuse ids after a compaction; the second call with an id
        gets its part's id."""
        known = self.calls.get(call, part)
        if known != part:
            return part
        remember(self.calls, call, part, _CALLS_MAX)
        return call

    def _tool(self, part: str, data: Record, state: Record, at: RecordPlace) -> None:
        given, times = get_dict(state, "input"), get_dict(state, "time")
        meta = get_dict(state, "metadata")
        name = get_str(data, "tool") or "unknown"
        if name == "invalid":  # what a call to a tool that does not exist is turned into
            name = get_str(given, "tool") or name
        at.when = parse_iso(times.get("start")) or at.when
        call = self._identity(get_str(data, "callID") or part, part)
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


def _json(text: object) -> Record:
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

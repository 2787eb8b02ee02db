"""From rows to events: a session's own, its messages' and their parts'."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from whyfor.agents.base import as_dict, as_int, as_list, as_str, flatten
from whyfor.model.events import Event, Touch, Usage
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
    """A row's own message, and the message it belongs to: the prompt it answers, or the one it
    is a part of."""
    row = as_dict(record.get("row"))
    if record.get("type") == "message":
        return as_str(row.get("id")), as_str(_json(row.get("data")).get("parentID"))
    return "", as_str(row.get("message_id"))


class RowReader:
    """One session's rows: its own, its messages' and their parts', which carry all that was said
    and done."""

    def __init__(self, state: Record, *, subagent: bool) -> None:
        self.state = state
        self.subagent = subagent
        self.messages: dict[str, Record] = state.setdefault("messages", {})
        self.calls: dict[str, str] = state.setdefault("calls", {})

    def read(self, record: Record, offset: int, line: bytes, out: Sink) -> None:
        kind, row = record.get("type"), as_dict(record.get("row"))
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
        ident, when = as_str(row.get("id")) or bucket.session_id, parse_iso(row.get("time_created"))
        cwd, version = as_str(row.get("directory")), as_str(row.get("version"))
        title = as_str(row.get("title"))
        if not re.match(_NO_TITLE, title):
            bucket.title(TITLE_AGENT, title)
        if version:
            bucket.facts["version"] = version
        if self.subagent:
            named = re.search(_NICKNAME, title)
            bucket.facts["subagent"] = as_str(row.get("agent")) or (named[1] if named else None)
        if not self.state.get("begun"):
            self.state["begun"] = True
            data = {name: value for name, value in (("cwd", cwd), ("version", version)) if value}
            bucket.events.append(
                Event("session.started", fold(ident, "started"), when, "system", "", None, data)
            )
        if cwd != self.state.get("directory"):  # not where it is now: its messages know that better
            self.state["directory"] = cwd
            self._place(cwd, bucket, ident, parse_iso(row.get("time_updated")))
        if target := as_str(_json(row.get("revert")).get("messageID")):
            key, data = fold(ident, "revert", target), {"rewound_to": target}
            bucket.events.append(
                Event(
                    "status.changed",
                    key,
                    parse_iso(row.get("time_updated")),
                    "user",
                    "",
                    None,
                    data,
                )
            )

    def _place(self, cwd: str, bucket: Bucket, base: str, when: int | None) -> None:
        """Where the session is: known from its start, and told when it changes."""
        before = self.state.get("cwd")
        if not cwd or cwd == before:
            return
        self.state["cwd"] = cwd
        if before is None:
            bucket.facts.setdefault("cwd", cwd)
        else:
            key = fold(base, "place", cwd)
            bucket.events.append(
                Event("status.changed", key, when, "system", "", None, {"cwd": cwd})
            )

    # -- messages --------------------------------------------------------------------------------

    def _message(self, row: Record, data: Record, out: Sink) -> None:
        ident, role, bucket = as_str(row.get("id")), data.get("role"), out.main
        times = as_dict(data.get("time"))
        when = parse_iso(times.get("created")) or parse_iso(row.get("time_created"))
        known: Record = {"role": role, "at": when, "until": parse_iso(times.get("completed"))}
        if role == "assistant":
            known["model"] = as_str(data.get("modelID")) or None
            if data.get("summary") is True:
                known["summary"] = True
            if ident not in self.messages:  # an old one that changed says where the session was
                self._place(as_str(as_dict(data.get("path")).get("cwd")), bucket, ident, when)
            self._usage(data, times, bucket, when)
            self._error(data.get("error"), bucket, known["until"] or when, fold(ident, "error"))
        elif role == "user":
            self.state["said"] = {"id": ident, "texts": {}, "images": {}}
        else:
            out.unknown_type(f"message {role}")
        self.messages.pop(ident, None)
        self.messages[ident] = known
        while len(self.messages) > _MESSAGES_MAX:
            del self.messages[next(iter(self.messages))]

    def _usage(self, data: Record, times: Record, bucket: Bucket, when: int | None) -> None:
        """A fork copies messages under new ids, but with their times: by these a response is
        counted once."""
        tokens = as_dict(data.get("tokens"))
        cache = as_dict(tokens.get("cache"))
        model = as_str(data.get("modelID")) or None
        created, completed = as_int(times.get("created")), as_int(times.get("completed"))
        usage = Usage(
            fold("opencode", created, completed, data.get("providerID"), model),
            when,
            model,
            as_int(tokens.get("input")),
            as_int(cache.get("read")),
            as_int(cache.get("write")),
            as_int(tokens.get("output")),
            as_int(tokens.get("reasoning")),
        )
        answered = (
            usage.input or usage.cache_read or usage.cache_write or usage.output or usage.reasoning
        )
        if completed is not None and answered:  # all zero while it runs, and when it failed
            bucket.usage.append(usage)

    def _error(self, error: Any, bucket: Bucket, when: int | None, key: int) -> None:
        if not isinstance(error, dict):
            return
        name, about = as_str(error.get("name")), as_dict(error.get("data"))
        text = as_str(about.get("message")) or as_str(error.get("message"))
        if name == "MessageAbortedError":
            bucket.events.append(
                Event("turn.completed", key, when, "user", text, None, {"interrupted": True})
            )
        else:
            data = {"error": name, "status": as_int(about.get("statusCode"))}
            bucket.events.append(
                Event("error", key, when, "system", text or name, None, _known(data))
            )

    # -- parts -----------------------------------------------------------------------------------

    def _part(self, row: Record, data: Record, out: Sink) -> None:
        kind, bucket, ident = data.get("type"), out.main, as_str(row.get("id"))
        message = self.messages.get(as_str(row.get("message_id")), {})
        when = parse_iso(as_dict(data.get("time")).get("start")) or parse_iso(
            row.get("time_created")
        )
        if when and message.get("until"):
            # in a fork a part is as old as its copy, but its message is not
            when = min(when, message["until"])
        key = fold(ident)
        if kind == "tool":
            self._tool(ident, data, as_dict(data.get("state")), bucket, when)
        elif kind in ("text", "file") and message.get("role") == "user":
            self._said(
                as_str(row.get("message_id")), ident, data, bucket, message.get("at") or when
            )
        elif kind in ("text", "reasoning"):
            self._words(kind, data, message, bucket, when, key)
        elif kind == "patch":
            files = [path for path in as_list(data.get("files")) if isinstance(path, str)]
            about = {"files": files, "hash": data.get("hash")}
            bucket.events.append(Event("status.changed", key, when, "system", "", None, about))
            bucket.touches.extend(Touch(key, path, "write") for path in files)
        elif kind == "compaction":
            about = _known({"auto": data.get("auto"), "overflow": data.get("overflow")})
            bucket.events.append(Event("compaction", key, when, "system", "", None, about))
        elif kind == "retry":
            at = parse_iso(as_dict(data.get("time")).get("created")) or when
            self._error(data.get("error"), bucket, at, key)
        elif kind == "subtask":
            text = as_str(data.get("description")) or as_str(data.get("prompt"))
            about = {"prompt": data.get("prompt")}
            name = as_str(data.get("agent")) or None
            bucket.events.append(Event("subagent.started", key, when, "user", text, name, about))
        elif kind not in SILENT_PARTS and kind != "file":
            out.unknown_type(f"part {kind}")

    def _said(
        self, message: str, ident: str, data: Record, bucket: Bucket, when: int | None
    ) -> None:
        """A prompt's parts come one by one; each time the whole of it replaces what was known of
        it."""
        if data.get("synthetic") or data.get("ignored"):
            return
        said = as_dict(self.state.get("said"))
        if said.get("id") != message:
            said = self.state["said"] = {"id": message, "texts": {}, "images": {}}
        if data.get("type") == "file":
            said["images"][ident] = _reference(data, len(said["images"]))
        else:
            said["texts"][ident] = as_str(data.get("text"))
        text = "\n".join(said["texts"].values())
        images = list(said["images"].values())
        if text.strip() or images:
            actor = "assistant" if self.subagent else "user"
            about: Record | None = {"images": images} if images else None
            bucket.events.append(
                Event("user.prompt", fold(message, "said"), when, actor, text, None, about)
            )

    def _words(
        self, kind: str, data: Record, message: Record, bucket: Bucket, when: int | None, key: int
    ) -> None:
        text = as_str(data.get("text"))
        if not text.strip() or data.get("synthetic") or data.get("ignored"):
            return
        about = _known({"model": message.get("model")})
        if kind == "reasoning":
            bucket.events.append(
                Event("assistant.thinking", key, when, "assistant", text, None, about)
            )
        elif message.get("summary"):
            bucket.events.append(
                Event("compaction", key, when, "system", text, None, {**about, "summary": True})
            )
        else:
            bucket.events.append(
                Event("assistant.message", key, when, "assistant", text, None, about)
            )

    # -- tools -----------------------------------------------------------------------------------

    def _identity(self, call: str, part: str) -> str:
        """Some models number their calls anew after a compaction: the second of a name goes by
        its part."""
        if self.calls.setdefault(call, part) != part:
            return part
        while len(self.calls) > _CALLS_MAX:
            del self.calls[next(iter(self.calls))]
        return call

    def _tool(
        self, part: str, data: Record, state: Record, bucket: Bucket, when: int | None
    ) -> None:
        given, times = as_dict(state.get("input")), as_dict(state.get("time"))
        meta = as_dict(state.get("metadata"))
        name = as_str(data.get("tool")) or "unknown"
        if name == "invalid":  # what a call to a tool that does not exist is turned into
            name = as_str(given.get("tool")) or name
        when = parse_iso(times.get("start")) or when
        call = self._identity(as_str(data.get("callID")) or part, part)
        key = fold(call)
        about: Record = {"id": call, "input": given}
        bucket.events.append(
            Event("tool.call", key, when, "assistant", flatten(given), name, about)
        )
        if name == "task":
            text = as_str(given.get("description")) or as_str(given.get("prompt"))
            about = _known(
                {"id": call, "prompt": given.get("prompt"), "subagent": meta.get("sessionId")}
            )
            kind = as_str(given.get("subagent_type")) or None
            bucket.events.append(
                Event("subagent.started", fold(key, "sub"), when, "assistant", text, kind, about)
            )
        elif name == "question":
            asked = "\n".join(
                as_str(as_dict(q).get("question")) for q in as_list(given.get("questions"))
            )
            about = {"id": call, "questions": given.get("questions")}
            bucket.events.append(
                Event("question.asked", fold(key, "ask"), when, "assistant", asked, None, about)
            )
        if state.get("status") in ("completed", "error"):
            self._result(
                name, call, given, state, meta, bucket, parse_iso(times.get("end")) or when
            )

    def _result(  # noqa: PLR0913 - one record, taken apart once
        self,
        name: str,
        call: str,
        given: Record,
        state: Record,
        meta: Record,
        bucket: Bucket,
        when: int | None,
    ) -> None:
        failed, code = state.get("status") == "error", as_int(meta.get("exit"))
        text = as_str(state.get("error")) if failed else as_str(state.get("output"))
        data = _known(
            {
                "id": call,
                "exit_code": code,
                "diff": meta.get("diff"),
                "answers": meta.get("answers"),
            }
        )
        if failed or code:
            data["failed"] = True
        if attached := [
            _reference(as_dict(a), i) for i, a in enumerate(as_list(state.get("attachments")))
        ]:
            data["images"] = attached
        key = fold(call, "result")
        bucket.events.append(Event("tool.result", key, when, "tool", text, None, data))
        if name == "task":
            data["subagent"] = meta.get("sessionId")
            bucket.events.append(
                Event(
                    "subagent.stopped", fold(key, "sub"), when, "subagent", "", None, {"id": call}
                )
            )
        if failed and "rejected permission" in text[:80]:
            data["rejected"] = True
            decision = {"id": call, "decision": "denied"}
            bucket.events.append(
                Event("approval.resolved", fold(call, "denied"), when, "user", "", None, decision)
            )
        if not data.get("failed"):
            bucket.touches.extend(
                Touch(key, path, action) for path, action in _touched(name, given, meta)
            )


def _touched(name: str, given: Record, meta: Record) -> Iterator[tuple[str, str]]:
    path = as_str(given.get("filePath"))
    if path and (name == "read" or name in WRITERS):
        yield path, "read" if name == "read" else "write"
    if name in ("apply_patch", "patch"):
        for file in map(as_dict, as_list(meta.get("files"))):
            for path in (as_str(file.get("filePath")), as_str(file.get("movePath"))):
                if path:
                    yield path, "write"


def _reference(file: Record, index: int) -> Record:
    """A file's bytes stay in the segment; the event says that there is one, of which kind and
    where."""
    url = as_str(file.get("url"))
    inline = url.startswith("data:")
    about = {
        "block": index,
        "type": "file",
        "media_type": file.get("mime"),
        "filename": file.get("filename"),
    }
    return _known(
        {**about, "url": None if inline else url, "bytes": len(url) * 3 // 4 if inline else None}
    )


def _known(data: Record) -> Record:
    return {name: value for name, value in data.items() if value is not None}


def _json(text: object) -> Record:
    """A column that holds JSON; damaged, it says nothing."""
    if not isinstance(text, str):
        return as_dict(text)
    try:
        return as_dict(msgspec.json.decode(text))
    except (msgspec.DecodeError, RecursionError):
        return as_dict(_salvaged(text))


def _salvaged(text: str) -> object:
    """Output that was cut in the middle of an emoji leaves half a surrogate pair, which no
    database takes."""
    import json  # lenient where msgspec is not

    try:
        halves = json.dumps(json.loads(text, strict=False), ensure_ascii=False)
        return json.loads(
            halves.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        )
    except (ValueError, RecursionError):
        return None

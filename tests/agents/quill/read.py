from __future__ import annotations

from whyfor.agents.base import as_dict, as_str, flatten
from whyfor.model.events import Event, Touch
from whyfor.model.findings import Record, Sink
from whyfor.model.ids import fold
from whyfor.model.times import parse_iso


class ScrollReader:
    def __init__(self, state: Record) -> None:
        self.state = state

    def read(self, record: Record, offset: int, line: bytes, out: Sink) -> None:
        at, bucket, words = (
            parse_iso(record.get("timestamp")),
            out.main,
            as_str(record.get("words")),
        )
        call, given = as_str(record.get("call")), as_dict(record.get("with"))
        key = fold(bucket.session_id, offset)
        match record.get("verb"):
            case "opens":
                where = {"cwd": record.get("cwd")}
                bucket.events.append(Event("session.started", key, at, "system", data=where))
            case "asks":
                bucket.events.append(Event("user.prompt", key, at, "user", words))
            case "says":
                bucket.events.append(Event("assistant.message", key, at, "assistant", words))
            case "uses":
                name, data = as_str(record.get("tool")), {"id": call, "input": given}
                text = flatten(given)
                bucket.events.append(Event("tool.call", key, at, "assistant", text, name, data))
                if path := as_str(given.get("onto")):
                    bucket.touches.append(Touch(key, path, "write"))
            case "got":
                bucket.events.append(
                    Event("tool.result", key, at, "tool", words, data={"id": call})
                )
            case unknown:
                out.unknown_type(unknown)

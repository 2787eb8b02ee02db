"""Write a thread of Codex: a rollout in the directory of its day."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from whyfor.agents.base import (
    as_dict,
    as_list,
    as_str,
    get_dict,
    get_int,
    get_list,
    get_str,
)
from whyfor.agents.codex.places import session_folders
from whyfor.agents.codex.prompts import INJECTED
from whyfor.agents.codex.records import CALLS, OUTPUTS, unwrapped
from whyfor.agents.conversation import NewFile, NewSession, SpokenLine, json_lines
from whyfor.model.findings import Record
from whyfor.model.times import to_iso

# Of a head: where the thread came from, which is no longer so.
_BEGINNINGS = (
    "history_base",
    "forked_from_ordinal_exclusive",
    "parent_thread_id",
    "subagent_history_start_ordinal",
)


class CodexWriter:
    def new_id(self, now: int) -> str:
        """Return a UUIDv7, because the agent sorts threads by the time in their ids."""
        value = now << 80 | 7 << 76 | int.from_bytes(os.urandom(2)) >> 4 << 64 | 2 << 62
        value |= int.from_bytes(os.urandom(8)) >> 2
        text = f"{value:032x}"
        return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))

    def command(self, session_id: str, path: str = "") -> str:
        return f"codex resume {session_id}"

    # -- the content of a record -----------------------------------------------------------------

    def opens(self, record: Record) -> list[str]:
        item = _item(record)
        return (
            [get_str(item, "call_id")] if item.get("type") in CALLS and item.get("call_id") else []
        )

    def answers(self, record: Record) -> list[str]:
        item = _item(record)
        return [get_str(item, "call_id")] if item.get("type") in OUTPUTS else []

    def asks(self, record: Record) -> bool:
        item = _item(record)
        return item.get("type") == "message" and item.get("role") == "user" and not _injected(item)

    def without(self, record: Record, calls: set[str]) -> Record | None:
        return None if calls.intersection(self.opens(record)) else record

    def ident(self, record: Record) -> str | None:
        item = _item(record)
        name = get_str(item, "id") or get_str(item, "call_id")
        return f"{item.get('type')} {name}" if name else None

    def continues(self, records: Sequence[Record]) -> tuple[str, int] | None:
        """A fork's file holds only its own records, and names the thread that has the others."""
        base = get_dict(_head(records), "history_base")
        thread, end = get_str(base, "thread_id"), get_int(base, "end_byte_offset")
        return (thread, end) if thread and end is not None else None

    # -- one thread ------------------------------------------------------------------------------

    def exact(self, records: Sequence[Record], place: NewSession) -> list[Record]:
        head = _head(records)
        wrapped = [_wrapped(record) for record in records]
        heads = [
            get_dict(record, "payload")
            for record in wrapped
            if record.get("type") == "session_meta"
        ]
        former = {get_str(meta, name) for meta in heads for name in ("id", "session_id")}
        starts = {get_str(meta, "cwd") for meta in heads}
        rest = [
            _moved(r, former, starts, place) for r in wrapped if r.get("type") != "session_meta"
        ]
        first = next((r["timestamp"] for r in wrapped if r.get("timestamp")), None)
        numbered = _numbered(
            [_meta(head, first, place), *rest], any("ordinal" in r for r in records)
        )
        return [*numbered, _named(place)]

    # -- several ---------------------------------------------------------------------------------

    def live(self, records: Sequence[Record]) -> list[Record]:
        """Return the items of the conversation; the program adds its own context again when the
        thread is resumed."""
        found: list[Record] = []
        for record in map(_wrapped, records):
            payload, when = get_dict(record, "payload"), record.get("timestamp")
            if record.get("type") == "compacted":
                found = [{"timestamp": when, **_response(item)} for item in _replacement(payload)]
            elif payload.get("type") == "thread_rolled_back":
                prompts = [index for index, item in enumerate(found) if self.asks(item)]
                turns = min(get_int(payload, "num_turns") or 0, len(prompts))
                del found[prompts[-turns] if turns else len(found) :]
            elif record.get("type") == "response_item" and not _injected(payload):
                found.append({"timestamp": when, **_response(payload)})
        return found

    def spoken(self, said: Iterable[SpokenLine]) -> list[Record]:
        return [
            {"timestamp": to_iso(item.at), **_response(_message(item.role, item.text))}
            for item in said
        ]

    def joined(self, records: Sequence[Record], place: NewSession) -> list[Record]:
        """Return a thread in the older format, which needs only a head; each item is followed by
        what the screen shows."""
        written = [_meta({}, records[0].get("timestamp") if records else None, place)]
        for record in records:
            written.append(record)
            written += _shown(record)
        return [*written, _named(place)]

    # -- files -----------------------------------------------------------------------------------

    def files(self, records: Sequence[Record], place: NewSession) -> list[NewFile]:
        when = datetime.fromtimestamp(place.now / 1000)
        folder = (
            session_folders(place.home, place.env)[0] / f"{when:%Y}" / f"{when:%m}" / f"{when:%d}"
        )
        return [
            NewFile(
                folder / f"rollout-{when:%Y-%m-%dT%H-%M-%S}-{place.session_id}.jsonl",
                json_lines(records),
            )
        ]

    def beside(
        self, path: str, records: Sequence[Record] | None, session_id: str, place: NewSession
    ) -> NewFile | None:
        return None  # a subagent's thread is independent; its report is in the conversation


def _wrapped(record: Record) -> Record:
    if isinstance(record.get("payload"), dict):
        return record
    kind, payload = unwrapped(record)
    return {"timestamp": record.get("timestamp"), "type": kind, "payload": payload}


def _item(record: Record) -> Record:
    record = _wrapped(record)
    return get_dict(record, "payload") if record.get("type") == "response_item" else {}


def _head(records: Sequence[Record]) -> Record:
    metas = (
        get_dict(r, "payload") for r in map(_wrapped, records) if r.get("type") == "session_meta"
    )
    return next(metas, {})


def _injected(item: Record) -> bool:
    """Return whether the program, not the person, wrote this user or developer message."""
    if item.get("type") != "message" or item.get("role") == "assistant":
        return False
    content = item.get("content")
    parts = (
        [content]
        if isinstance(content, str)
        else [as_dict(part).get("text") for part in as_list(content)]
    )
    return item.get("role") != "user" or all(
        as_str(text).lstrip().startswith(INJECTED) for text in parts
    )


def _replacement(payload: Record) -> list[Record]:
    """Return what was left in the model's context after a compaction."""
    history = payload.get("replacement_history")
    if isinstance(history, list):
        return [item for item in history if isinstance(item, dict) and not _injected(item)]
    return [_message("user", text)] if (text := get_str(payload, "message")) else []


def _meta(head: Record, when: Any, place: NewSession) -> Record:
    when = when or to_iso(place.now)
    kept = {name: value for name, value in head.items() if name not in _BEGINNINGS}
    kept["source"] = "cli"  # whatever it was: somebody talks to it now
    kept.setdefault("originator", "whyfor")
    kept.setdefault("cli_version", "0.0.0")
    kept |= {
        "id": place.session_id,
        "session_id": place.session_id,
        "cwd": place.cwd,
        "thread_source": "user",
    }
    kept["timestamp"] = when
    if "runtime_workspace_roots" in kept:
        kept["runtime_workspace_roots"] = [place.cwd]
    if place.origin:
        kept["forked_from_id"] = place.origin
    return {"timestamp": when, "type": "session_meta", "payload": kept}


def _moved(record: Record, former: set[str], starts: set[str], place: NewSession) -> Record:
    payload = dict(get_dict(record, "payload"))
    payload |= {
        name: place.session_id
        for name in ("thread_id", "session_id")
        if payload.get(name) in former
    }
    settings = get_dict(payload, "thread_settings")
    if settings.get("cwd") in starts:
        payload["thread_settings"] = {
            **settings,
            "cwd": place.cwd,
            "runtime_workspace_roots": [place.cwd],
        }
    if payload.get("cwd") in starts:
        payload["cwd"] = place.cwd
    return {**record, "payload": payload}


def _numbered(records: list[Record], paginated: bool) -> list[Record]:
    if not paginated:
        return records
    return [{**record, "ordinal": number} for number, record in enumerate(records)]


def _named(place: NewSession) -> Record:
    named = {
        "type": "thread_name_updated",
        "thread_id": place.session_id,
        "thread_name": place.title,
        "restored_from": place.copy_of,  # stands behind all that was copied
    }
    return {"timestamp": to_iso(place.now), "type": "event_msg", "payload": named}


def _response(payload: Record) -> Record:
    return {"type": "response_item", "payload": payload}


def _message(role: str, text: str) -> Record:
    kind = "output_text" if role == "assistant" else "input_text"
    return {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}


def _shown(record: Record) -> list[Record]:
    item = get_dict(record, "payload")
    if item.get("type") != "message":
        return []
    kind = "agent_message" if item.get("role") == "assistant" else "user_message"
    text = "\n".join(get_str(as_dict(part), "text") for part in get_list(item, "content"))
    return [
        {
            "timestamp": record.get("timestamp"),
            "type": "event_msg",
            "payload": {"type": kind, "message": text},
        }
    ]


WRITER = CodexWriter()

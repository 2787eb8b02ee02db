"""Write a session of Grok Build: its updates under a new id, and what the model is sent, which the
agent keeps in a file of its own and reads when it resumes."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Sequence
from urllib.parse import quote

import msgspec

from whyfor.agents.base import as_dict, get_dict, get_list, get_str
from whyfor.agents.conversation import NewFile, NewSession, SpokenLine, json_lines
from whyfor.agents.grok.facts import own_folder
from whyfor.agents.grok.read import DONE, call_name, result_text
from whyfor.model.findings import Record
from whyfor.model.times import to_iso

_SAID = ("user_message_chunk", "agent_message_chunk", "agent_thought_chunk")
_CONVERSATION = (*_SAID, "tool_call", "tool_call_update")


class GrokWriter:
    def new_id(self, now: int) -> str:
        return str(uuid.uuid4())

    def command(self, session_id: str, path: str = "") -> str:
        return f"grok --resume {session_id}"

    # -- the content of a record -----------------------------------------------------------------

    def opens(self, record: Record) -> list[str]:
        return [_call(record)] if _kind(record) == "tool_call" else []

    def answers(self, record: Record) -> list[str]:
        return [_call(record)] if _is_result(record) else []

    def asks(self, record: Record) -> bool:
        return _kind(record) == "user_message_chunk" and not _is_added(record)

    def without(self, record: Record, calls: set[str]) -> Record | None:
        return None if _call(record) in calls else record

    def ident(self, record: Record) -> str | None:
        """A fork's copy has the same number under its own session's id."""
        given = get_dict(record, "params")
        event = get_str(get_dict(given, "_meta"), "eventId")
        number = event.removeprefix(get_str(given, "sessionId"))
        return f"{number} {_at(record)}" if number else None

    def continues(self, records: Sequence[Record]) -> tuple[str, int] | None:
        return None

    # -- sessions --------------------------------------------------------------------------------

    def exact(self, records: Sequence[Record], place: NewSession) -> list[Record]:
        return self.joined(self.live(records), place)

    def live(self, records: Sequence[Record]) -> list[Record]:
        return [one for one in records if _kind(one) in _CONVERSATION and not _is_added(one)]

    def spoken(self, said: Iterable[SpokenLine]) -> list[Record]:
        return [_update(item) for item in said]

    def joined(self, records: Sequence[Record], place: NewSession) -> list[Record]:
        chain = [_moved(record, place) for record in _numbered(records)]
        if chain:
            chain[-1] = {**chain[-1], "restoredFrom": place.copy_of}
        return chain

    # -- files -----------------------------------------------------------------------------------

    def files(self, records: Sequence[Record], place: NewSession) -> list[NewFile]:
        project = quote(place.cwd, safe="")
        folder = own_folder(place.home, place.env) / "sessions" / project / place.session_id
        sent = _sent(records)
        summary = {
            "info": {"id": place.session_id, "cwd": place.cwd},
            "session_summary": place.title,
            "generated_title": place.title,
            "created_at": to_iso(place.now),
            "updated_at": to_iso(place.now),
            "num_messages": len(sent),
            "num_chat_messages": len(sent),
            "current_model_id": _model(records),
            "chat_format_version": 1,
        }
        return [
            NewFile(folder / "updates.jsonl", json_lines(records)),
            NewFile(folder / "chat_history.jsonl", json_lines(sent)),
            NewFile(folder / "summary.json", msgspec.json.encode(summary)),
        ]

    def beside(
        self, path: str, records: Sequence[Record] | None, session_id: str, place: NewSession
    ) -> NewFile | None:
        return None  # a subagent is a session of its own


def _told(record: Record) -> Record:
    return get_dict(get_dict(record, "params"), "update")


def _kind(record: Record) -> str:
    return get_str(_told(record), "sessionUpdate")


def _call(record: Record) -> str:
    return get_str(_told(record), "toolCallId")


def _is_result(record: Record) -> bool:
    return _kind(record) == "tool_call_update" and _told(record).get("status") in DONE


def _is_added(record: Record) -> bool:
    """Return whether the program added a prompt; it adds it anew."""
    own = get_dict(_told(record), "_meta")
    return bool(own.get("synthetic_reason") or own.get("syntheticReason"))


def _at(record: Record) -> object:
    return get_dict(get_dict(record, "params"), "_meta").get("agentTimestampMs")


def _numbered(records: Sequence[Record]) -> Iterator[Record]:
    """Number the prompts anew. Pieces with one number are one prompt."""
    number, last = -1, object()
    for record in records:
        if _kind(record) != "user_message_chunk":
            last = object()
            yield record
            continue
        given, update = get_dict(record, "params"), _told(record)
        index = get_dict(update, "_meta").get("promptIndex")
        if index is None or index != last:
            number += 1
        last = object() if index is None else index
        update = {**update, "_meta": {**get_dict(update, "_meta"), "promptIndex": number}}
        yield {**record, "params": {**given, "update": update}}


def _moved(record: Record, place: NewSession) -> Record:
    given = get_dict(record, "params")
    before, about = get_str(given, "sessionId"), get_dict(given, "_meta")
    event = get_str(about, "eventId")
    if before and event.startswith(before):
        about = {**about, "eventId": place.session_id + event[len(before) :]}
    return {**record, "params": {**given, "sessionId": place.session_id, "_meta": about}}


def _update(said: SpokenLine) -> Record:
    kind = "user_message_chunk" if said.role == "user" else "agent_message_chunk"
    update: Record = {"sessionUpdate": kind, "content": {"type": "text", "text": said.text}}
    about = {"agentTimestampMs": said.at, "streamStartMs": said.at}
    given = {"sessionId": "", "update": update, "_meta": about}
    return {"timestamp": said.at // 1000, "method": "session/update", "params": given}


# -- what the model is sent ----------------------------------------------------------------------


def _sent(records: Sequence[Record]) -> list[Record]:
    """Return the conversation as messages: pieces are joined, and calls belong to what was said
    before them."""
    sent: list[Record] = []
    last: object = None
    for record in records:
        kind, text = _kind(record), get_str(get_dict(_told(record), "content"), "text")
        about = get_dict(get_dict(record, "params"), "_meta")
        index = get_dict(_told(record), "_meta").get("promptIndex")
        stream = (kind, index, about.get("promptId"), about.get("streamStartMs"))
        if kind == "user_message_chunk":
            _ask(sent, text, is_same=stream == last)
        elif kind == "agent_message_chunk":
            _say(sent, text)
        elif kind == "tool_call":
            _add_call(sent, record)
        elif _is_result(record):
            update = _told(record)
            parts = [as_dict(part) for part in get_list(update, "content")]
            told = result_text(get_dict(update, "rawOutput"), parts)
            answer = {"type": "tool_result", "tool_call_id": _call(record), "content": told}
            sent.append(answer)
        last = stream
    for message in sent:
        if message["type"] == "user":
            told = f"<user_query>\n{message['content']}\n</user_query>"
            message["content"] = [{"type": "text", "text": told}]
    return sent


def _ask(sent: list[Record], text: str, *, is_same: bool) -> None:
    if is_same and sent and sent[-1]["type"] == "user":
        sent[-1]["content"] += text
    else:
        number = sum(message["type"] == "user" for message in sent)
        sent.append({"type": "user", "content": text, "prompt_index": number})


def _say(sent: list[Record], text: str) -> None:
    if sent and sent[-1]["type"] == "assistant" and "tool_calls" not in sent[-1]:
        sent[-1]["content"] += text
    else:
        sent.append({"type": "assistant", "content": text})


def _add_call(sent: list[Record], record: Record) -> None:
    if not (sent and sent[-1]["type"] == "assistant"):
        sent.append({"type": "assistant", "content": ""})
    update = _told(record)
    given = msgspec.json.encode(get_dict(update, "rawInput")).decode()
    call = {"id": _call(record), "name": call_name(update), "arguments": given}
    sent[-1].setdefault("tool_calls", []).append(call)


def _model(records: Sequence[Record]) -> str | None:
    """Return the model of the last prompt that names one."""
    named = (get_str(get_dict(_told(one), "_meta"), "modelId") for one in reversed(records))
    return next(filter(None, named), None)


WRITER = GrokWriter()

"""Write a session of OpenCode: a document as its `export` makes it. The program takes it into its
database itself, when the person runs the command; nothing else writes there."""

from __future__ import annotations

import shlex
import uuid
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from whyfor.agents.base import as_dict, get_dict, get_list, get_str
from whyfor.agents.conversation import NewFile, NewSession, SpokenLine
from whyfor.agents.opencode.facts import config_folder, data_folder, state_folder
from whyfor.agents.opencode.reader import decoded_column
from whyfor.model.findings import Record

_VERSION = "1.18.33"  # whose form the document has
_FREE: Record = {"input": 0, "output": 0, "reasoning": 0, "cache": {"read": 0, "write": 0}}
_UNKNOWN = {"providerID": "unknown", "modelID": "unknown"}


class OpenCodeWriter:
    """Records are rows of messages and of their parts; a later row of the same name replaces an
    earlier one."""

    def __init__(self, program: str) -> None:
        self.program = program

    def new_id(self, now: int) -> str:
        return f"ses_{uuid.uuid4().hex[:26]}"

    def command(self, session_id: str, path: str = "") -> str:
        resume = f"{self.program} --session {session_id}"
        return f"{self.program} import {shlex.quote(path)} && {resume}" if path else resume

    # -- the content of a record -----------------------------------------------------------------

    def opens(self, record: Record) -> list[str]:
        return []  # a call and its result are one part

    def answers(self, record: Record) -> list[str]:
        return []

    def asks(self, record: Record) -> bool:
        return record.get("type") == "message" and _data(record).get("role") == "user"

    def without(self, record: Record, calls: set[str]) -> Record | None:
        return record

    def ident(self, record: Record) -> str | None:
        return get_str(get_dict(record, "row"), "id") or None

    def continues(self, records: Sequence[Record]) -> tuple[str, int] | None:
        return None

    # -- sessions --------------------------------------------------------------------------------

    def exact(self, records: Sequence[Record], place: NewSession) -> list[Record]:
        return self.joined(self.live(records), place)

    def live(self, records: Sequence[Record]) -> list[Record]:
        """Return the last version of each row, without messages that were taken back."""
        last: dict[str, Record] = {}
        reverted = ""
        for record in records:
            row = get_dict(record, "row")
            if record.get("type") == "session":
                reverted = get_str(decoded_column(row.get("revert")), "messageID")
            elif record.get("type") in ("message", "part") and self.ident(record):
                last[get_str(row, "id")] = record
        kept = last.values()
        return [one for one in kept if not reverted or _message_id(one) < reverted]

    def spoken(self, said: Iterable[SpokenLine]) -> list[Record]:
        return [row for item in said for row in _rows(item)]

    def joined(self, records: Sequence[Record], place: NewSession) -> list[Record]:
        return list(records)

    # -- files -----------------------------------------------------------------------------------

    def files(self, records: Sequence[Record], place: NewSession) -> list[NewFile]:
        session = place.session_id
        info = {
            "id": session,
            "slug": session[4:16],
            "projectID": "global",
            "directory": place.cwd,
            "title": place.title,
            "version": _VERSION,
            "time": {"created": place.now, "updated": place.now},
        }
        document = {"info": info, "messages": self._messages(records, place)}
        folder = data_folder(self.program, place.home, place.env) / "restored"
        return [NewFile(folder / f"{session}.json", msgspec.json.encode(document))]

    def beside(
        self, path: str, records: Sequence[Record] | None, session_id: str, place: NewSession
    ) -> NewFile | None:
        return None  # a subagent is a session of its own

    def _messages(self, records: Sequence[Record], place: NewSession) -> list[Record]:
        """Names must be new, and tell the order."""
        names = _Names(len(records), place.now)
        model = self._model(place)
        found: dict[str, Record] = {}
        for record in records:
            if record.get("type") == "message":
                info = {**_data(record), "sessionID": place.session_id, "id": names.next("msg")}
                found[_message_id(record)] = {"info": info, "parts": []}
        asked = ""
        for message in found.values():
            info = message["info"]
            if info.get("role") == "user":
                asked = info["id"]
                if get_dict(info, "model") == _UNKNOWN:
                    info["model"] = model
            else:
                path = {"cwd": place.cwd, "root": place.cwd}
                # what was spent is told by the session it was spent in
                info |= {"parentID": asked, "path": path, "cost": 0, "tokens": _FREE}
        for record in records:
            message = found.get(_message_id(record), {})
            if record.get("type") == "part" and message:
                own = {"sessionID": place.session_id, "messageID": message["info"]["id"]}
                part = {**_data(record), **own, "id": names.next("prt")}
                message["parts"].append(_without_tokens(part))
        messages = [message for message in found.values() if message["parts"]]
        _mark(messages, place.copy_of)
        return messages

    def _model(self, place: NewSession) -> Record:
        """Return the model of the settings, else the one that was used last."""
        settings = _file(config_folder(self.program, place.home, place.env), f"{self.program}.json")
        provider, _, model = get_str(settings, "model").partition("/")
        if model:
            return {"providerID": provider, "modelID": model}
        state = _file(state_folder(self.program, place.home, place.env), "model.json")
        last = as_dict(next(iter(get_list(state, "recent")), None))
        return last if last.get("providerID") and last.get("modelID") else _UNKNOWN


class _Names:
    """Names in the program's form: the time with a number, then chance. All are before now."""

    def __init__(self, count: int, now: int) -> None:
        self.number = (now << 12) - 2 * count

    def next(self, kind: str) -> str:
        self.number += 1
        return f"{kind}_{self.number & 0xFFFFFFFFFFFF:012x}{uuid.uuid4().hex[:14]}"


def _data(record: Record) -> Record:
    return decoded_column(get_dict(record, "row").get("data"))


def _message_id(record: Record) -> str:
    row = get_dict(record, "row")
    return get_str(row, "message_id") or get_str(row, "id")


def _without_tokens(part: Record) -> Record:
    return {**part, "cost": 0, "tokens": _FREE} if part.get("type") == "step-finish" else part


def _mark(messages: list[Record], origin: str) -> None:
    """Say in the last part that everything up to it is a copy."""
    parts = [part for message in messages for part in message["parts"]]
    able = [part for part in parts if part.get("type") in ("text", "tool", "reasoning")]
    if able:
        mark = {"whyfor": {"restoredFrom": origin}}
        able[-1]["metadata"] = {**get_dict(able[-1], "metadata"), **mark}


def _rows(said: SpokenLine) -> list[Record]:
    message, part = (f"{kind}_{uuid.uuid4().hex}" for kind in ("msg", "prt"))
    data: dict[str, Any] = {"role": said.role, "agent": "build", "time": {"created": said.at}}
    if said.role == "user":
        data["model"] = _UNKNOWN
    else:
        data |= {"mode": "build", "finish": "stop", "providerID": "unknown"}
        data["modelID"] = said.model or "unknown"
        data["time"]["completed"] = said.at
    text = {"type": "text", "text": said.text}
    return [
        {"type": "message", "row": {"id": message, "time_created": said.at, "data": data}},
        {"type": "part", "row": {"id": part, "message_id": message, "data": text}},
    ]


def _file(folder: Path, name: str) -> Record:
    try:
        return as_dict(msgspec.json.decode((folder / name).read_bytes()))
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return {}

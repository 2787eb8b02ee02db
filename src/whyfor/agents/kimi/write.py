"""Write a session of Kimi Code: its records under a new id, in its project's folder. A session of
Kimi CLI is written as one of Kimi Code."""

from __future__ import annotations

import tomllib
import uuid
from collections.abc import Iterable, Sequence
from hashlib import sha256
from pathlib import Path

import msgspec

from whyfor.agents.base import as_dict, get_dict, get_str
from whyfor.agents.chat import decoded_object
from whyfor.agents.conversation import NewFile, NewSession, SpokenLine, json_lines
from whyfor.agents.kimi.facts import own_folder
from whyfor.model.findings import Record
from whyfor.model.times import parse_iso

_VERSION = "1.5"  # of the format
_EVENT = "context.append_loop_event"
_CONVERSATION = (
    _EVENT,
    "turn.prompt",
    "turn.steer",
    "context.append_message",
    "context.apply_compaction",
    "context.clear",
    "context.undo",
)
_SPENT = ("usage",)  # of a step's end: what was spent is told by the session it was spent in


class KimiWriter:
    def new_id(self, now: int) -> str:
        return f"session_{uuid.uuid4()}"

    def command(self, session_id: str, path: str = "") -> str:
        return f"kimi --session {session_id}"

    # -- the content of a record -----------------------------------------------------------------

    def opens(self, record: Record) -> list[str]:
        return _calls(record, "tool.call", "ToolCall", "id")

    def answers(self, record: Record) -> list[str]:
        return _calls(record, "tool.result", "ToolResult", "tool_call_id")

    def asks(self, record: Record) -> bool:
        kind = record.get("type") or get_dict(record, "message").get("type")
        return kind in ("turn.prompt", "TurnBegin")

    def without(self, record: Record, calls: set[str]) -> Record | None:
        return None if calls.intersection(self.opens(record)) else record

    def ident(self, record: Record) -> str | None:
        """A prompt's id stands in two records, each of its own kind."""
        event, message = get_dict(record, "event"), get_dict(record, "message")
        told = event.get("uuid") or message.get("id") or record.get("promptId")
        told = told or event.get("toolCallId")
        return f"{record.get('type')} {event.get('type')} {told}" if told else None

    def continues(self, records: Sequence[Record]) -> tuple[str, int] | None:
        return None

    # -- sessions --------------------------------------------------------------------------------

    def exact(self, records: Sequence[Record], place: NewSession) -> list[Record]:
        return self.joined(self.live(records), place)

    def live(self, records: Sequence[Record]) -> list[Record]:
        plain = (each for record in records for each in _current(record))
        return [record for record in plain if _is_said(record)]

    def spoken(self, said: Iterable[SpokenLine]) -> list[Record]:
        return [record for item in said for record in _turn(item)]

    def joined(self, records: Sequence[Record], place: NewSession) -> list[Record]:
        head: list[Record] = [
            {"type": "metadata", "protocol_version": _VERSION, "created_at": place.now},
            _profile(place),
        ]
        chain = [_without_tokens(record) for record in records]
        if chain:
            chain[-1] = {**chain[-1], "restoredFrom": place.copy_of}
        return [*head, *chain]

    # -- files -----------------------------------------------------------------------------------

    def files(self, records: Sequence[Record], place: NewSession) -> list[NewFile]:
        hashed = sha256(place.cwd.encode("utf-8", "replace")).hexdigest()[:12]
        project = f"wd_{Path(place.cwd).name}_{hashed}"
        folder = own_folder(place.home, place.env) / "sessions" / project / place.session_id
        main = folder / "agents" / "main"
        state = {
            "id": place.session_id,
            "version": 2,
            "cwd": place.cwd,
            "createdAt": place.now,
            "updatedAt": place.now,
            "archived": False,
            "agents": {"main": {"homedir": str(main), "type": "main"}},
            "custom": {},
            "title": place.title,
            "isCustomTitle": True,
        }
        return [
            NewFile(main / "wire.jsonl", json_lines(records)),
            NewFile(folder / "state.json", msgspec.json.encode(state)),
        ]

    def beside(
        self, path: str, records: Sequence[Record] | None, session_id: str, place: NewSession
    ) -> NewFile | None:
        return None  # a subagent's report is in the conversation


def _calls(record: Record, kind: str, former: str, name: str) -> list[str]:
    """Return the call in a record of Kimi Code, or of Kimi CLI."""
    event, message = get_dict(record, "event"), get_dict(record, "message")
    if event.get("type") == kind:
        return [get_str(event, "toolCallId")]
    if message.get("type") == former:
        return [get_str(get_dict(message, "payload"), name)]
    return []


def _is_said(record: Record) -> bool:
    """Return whether a record belongs to the conversation. What the program adds to a prompt it
    adds anew."""
    origin = get_dict(get_dict(record, "message"), "origin").get("kind")
    return record.get("type") in _CONVERSATION and origin != "injection"


def _without_tokens(record: Record) -> Record:
    event = {name: v for name, v in get_dict(record, "event").items() if name not in _SPENT}
    return {**record, "event": event} if event else record


def _profile(place: NewSession) -> Record:
    """A session names the model by the word of the settings; without it, it does not start."""
    model = _model(own_folder(place.home, place.env) / "config.toml")
    return {
        "type": "profile.bind",
        "agentId": "main",
        **({"modelAlias": model} if model else {}),
        "profileName": "agent",
        "thinkingEffort": "off",
        "systemPrompt": "",
        "environmentDisclosure": {"cwd": place.cwd},
        "disallowedTools": [],
        "time": place.now,
    }


def _model(path: Path) -> str:
    try:
        settings = tomllib.loads(path.read_text())
    except (OSError, ValueError):
        return ""
    return get_str(settings, "default_model")


# -- records -------------------------------------------------------------------------------------


def _asked(text: str, at: int) -> list[Record]:
    ident = f"msg_{uuid.uuid4().hex}"
    content, origin = [{"type": "text", "text": text}], {"kind": "user"}
    prompt = {"input": content, "origin": origin, "promptId": ident, "turnId": 0}
    message = {"role": "user", "content": content, "id": ident, "toolCalls": [], "origin": origin}
    return [
        {"type": "turn.prompt", "agentId": "main", **prompt, "time": at},
        {"type": "context.append_message", "agentId": "main", "message": message, "time": at},
    ]


def _step(at: int, *events: Record) -> list[Record]:
    """Return one step of the model: what it said and called."""
    step = str(uuid.uuid4())
    begin = {"type": "step.begin", "uuid": step, "turnId": "0", "step": 1}
    end = {"type": "step.end", "uuid": step, "turnId": "0", "step": 1}
    inner = [_within(event, step) for event in events]
    return [_looped(event, at) for event in (begin, *inner, end)]


def _within(event: Record, step: str) -> Record:
    told = {"uuid": str(uuid.uuid4()), "turnId": "0", "step": 1, "stepUuid": step}
    return {**event, **told}


def _looped(event: Record, at: int) -> Record:
    return {"type": _EVENT, "agentId": "main", "event": event, "time": at}


def _turn(said: SpokenLine) -> list[Record]:
    if said.role == "user":
        return _asked(said.text, said.at)
    return _step(said.at, {"type": "content.part", "part": {"type": "text", "text": said.text}})


def _current(record: Record) -> list[Record]:
    """Return a record of Kimi CLI as records of Kimi Code; those of Kimi Code as they are."""
    message = get_dict(record, "message")
    given = get_dict(message, "payload")
    if "timestamp" not in record or "payload" not in message:
        return [record]
    at = parse_iso(record.get("timestamp")) or 0
    match message.get("type"):
        case "TurnBegin":
            return _asked(_text(given.get("user_input")), at)
        case "ContentPart":
            return _step(at, {"type": "content.part", "part": given})
        case "ToolCall":
            asked = get_dict(given, "function")
            call = {"toolCallId": get_str(given, "id"), "name": get_str(asked, "name")}
            args = decoded_object(asked.get("arguments"))
            return _step(at, {"type": "tool.call", **call, "args": args})
        case "ToolResult":
            value = get_dict(given, "return_value")
            told = "\n".join(filter(None, (_text(value.get("output")), get_str(value, "message"))))
            result = {"output": told, "isError": value.get("is_error") is True}
            ident = get_str(given, "tool_call_id")
            return [_looped({"type": "tool.result", "toolCallId": ident, "result": result}, at)]
    return []


def _text(content: object) -> str:
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "\n".join(filter(None, (get_str(as_dict(part), "text") for part in parts)))


WRITER = KimiWriter()

"""The tools: parse what an agent gives, call one service, render the answer."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec

from whyfor.mcp.protocol import (
    INVALID_PARAMS,
    RESOURCE_NOT_FOUND,
    McpServer,
    Params,
    ProtocolError,
)
from whyfor.mcp.schemas import INSTRUCTIONS, PROMPT, PROMPTS, RESOURCE_TEMPLATES, TOOLS

if TYPE_CHECKING:
    from whyfor.model.memory import SessionSummary
    from whyfor.model.wire.mcp import WireMemoryLines, WireMemoryTexts
    from whyfor.service.feature_context import FeatureContext
    from whyfor.service.mcp import AgentMemory

_LIMIT = 12
_QUOTED = 200  # characters of a summary's part
_SCHEME = "whyfor://"
# path:12 or path:12-20; an id (claude:3f05) and a time (10:30) have no dot or slash before it
_LINE = re.compile(r".*[./][^:]*:\d+(-\d+)?")
_CHANGES = "changes"  # those that are not committed
_OTHERS = "others"  # sessions that are open here now
_ADDRESSED = {"session": "", "commit": "commit:"}  # what stands before the id


class RecallArguments(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    query: str = ""
    kind: Literal["session", "note", "commit", ""] = ""
    since: str | None = None
    all: bool = False
    cursor: str = ""


class TimelineArguments(msgspec.Struct, forbid_unknown_fields=True):
    around: str = ""
    limit: Annotated[int, msgspec.Meta(ge=1, le=50)] = _LIMIT


class GetArguments(msgspec.Struct, forbid_unknown_fields=True):
    ids: list[str]
    detail: Literal["brief", "normal", "full"] = "normal"
    cursor: str = ""


class RememberArguments(msgspec.Struct, forbid_unknown_fields=True):
    text: str
    type: Literal["decision", "discovery", "gotcha", "rule"] | None = None
    files: list[str] = []
    replaces: str | None = None


class ForgetNoteArguments(msgspec.Struct, forbid_unknown_fields=True):
    id: str


class AgentTools:
    """The tools of one server, which works in one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._memory: AgentMemory | None = None
        self._calls: dict[str, Callable[[Params], dict[str, Any]]] = {
            "recall": self._recall,
            "timeline": self._timeline,
            "get": self._get,
            "remember": self._remember,
            "forget": self._forget,
        }

    def list_tools(self, _params: Params) -> dict[str, Any]:
        return {"tools": TOOLS}

    def call_tool(self, params: Params) -> dict[str, Any]:
        """Return a tool's answer; what the agent can mend itself is an answer too, marked as an
        error."""
        from whyfor.model.errors import WhyforError

        name, given = params.get("name"), params.get("arguments")
        if not isinstance(name, str) or name not in self._calls:
            known = ", ".join(self._calls)
            raise ProtocolError(INVALID_PARAMS, f"no such tool: {name!r:.80}. There are: {known}")
        if not isinstance(given, dict | None):
            raise ProtocolError(INVALID_PARAMS, "arguments is an object")
        try:
            return self._calls[name](given or {})
        except msgspec.ValidationError as error:
            return _failed(str(error), f"Arguments of {name}: {_usage(name)}")
        except WhyforError as error:
            return _failed(error.message, error.hint)

    @property
    def memory(self) -> AgentMemory:
        """The service, with the settings as they are now."""
        from whyfor import config
        from whyfor.service.mcp import AgentMemory

        settings = config.load()
        if self._memory is None:
            self._memory = AgentMemory(settings, self.folder)
        self._memory.settings = settings
        return self._memory

    def _recall(self, given: Params) -> dict[str, Any]:
        from whyfor.model.agent_answers import RecallRequest
        from whyfor.model.wire.mcp import wire_memory_lines

        asked = msgspec.convert(given, RecallArguments)
        if not asked.query.strip() and asked == RecallArguments(asked.query):
            return self._context()
        wanted = RecallRequest(
            asked.query, asked.all, asked.kind, asked.since, _position(asked.cursor)
        )
        return _told_lines(wire_memory_lines(self.memory.recall(wanted)))

    def _context(self) -> dict[str, Any]:
        from whyfor.model.wire.memory import wire_memory_block
        from whyfor.service.context import ContextRequest, branch_context

        block = branch_context(self.memory.settings, self.folder, ContextRequest())
        text = block.text or "Nothing is remembered of this repository yet."
        structured = msgspec.to_builtins(wire_memory_block(block))
        return {
            "content": [{"type": "text", "text": text}],
            "structuredContent": {"text": structured["text"], "tokens": structured["tokens"]},
        }

    def _timeline(self, given: Params) -> dict[str, Any]:
        from whyfor.model.wire.mcp import wire_memory_lines, wire_memory_texts

        asked = msgspec.convert(given, TimelineArguments)
        if asked.around == _CHANGES:
            return _told_texts(wire_memory_texts(self.memory.review()))
        if asked.around == _OTHERS:
            return _told_texts(wire_memory_texts(self.memory.others(_own_session())))
        if _LINE.fullmatch(asked.around):
            reasons = self.memory.why(asked.around)
            if reasons is not None:
                return _told_texts(wire_memory_texts(reasons))
        return _told_lines(wire_memory_lines(self.memory.timeline(asked.around, asked.limit)))

    def _get(self, given: Params) -> dict[str, Any]:
        from whyfor.model.wire.mcp import wire_memory_texts

        asked = msgspec.convert(given, GetArguments)
        found = self.memory.get(asked.ids, asked.detail, _position(asked.cursor))
        return _told_texts(wire_memory_texts(found))

    def _remember(self, given: Params) -> dict[str, Any]:
        from whyfor.service.memory import NewNote, add_note, who_writes

        asked = msgspec.convert(given, RememberArguments)
        settings = self.memory.settings
        note = NewNote(
            text=asked.text,
            type=asked.type,
            files=tuple(asked.files),
            replaces=_note_key(asked.replaces) if asked.replaces else None,
            by="agent",
            session=who_writes(settings)[1],
        )
        made = add_note(settings, self.folder, note)
        ident = f"note:{made.observation.key[:8]}"
        return _done(f"Noted as {ident}. Later sessions can recall it.", ident)

    def _forget(self, given: Params) -> dict[str, Any]:
        from whyfor.service.memory import forget_note

        asked = msgspec.convert(given, ForgetNoteArguments)
        key = _note_key(asked.id)
        forget_note(self.memory.settings, key, by="agent")
        return _done(f"Forgotten: note:{key}.", f"note:{key}")


class AgentResources:
    """What a person attaches in the agent: sessions and commits by address, and a prompt."""

    def __init__(self, tools: AgentTools) -> None:
        self.tools = tools

    def list_resources(self, _params: Params) -> dict[str, Any]:
        from whyfor.model.errors import WhyforError

        try:
            found = self.tools.memory.last_sessions(_LIMIT).lines
        except WhyforError:
            found = []  # nothing is recorded yet
        listed = [
            {"uri": _SCHEME + "session/" + each.id, "name": each.id, "title": each.title[:100]}
            for each in found
        ]
        return {"resources": [{**each, "mimeType": "text/markdown"} for each in listed]}

    def list_templates(self, _params: Params) -> dict[str, Any]:
        return {"resourceTemplates": RESOURCE_TEMPLATES}

    def read_resource(self, params: Params) -> dict[str, Any]:
        from urllib.parse import unquote

        from whyfor.model.errors import WhyforError
        from whyfor.model.fence import fence_text

        uri = params.get("uri")
        kind, _, rest = unquote(str(uri)).removeprefix(_SCHEME).partition("/")
        if not isinstance(uri, str) or not uri.startswith(_SCHEME) or kind not in _ADDRESSED:
            raise ProtocolError(RESOURCE_NOT_FOUND, f"no such resource: {uri!r:.120}")
        try:
            found = self.tools.memory.read(_ADDRESSED[kind] + rest)
        except WhyforError as error:
            told = f"{error.message}. {error.hint}"
            raise ProtocolError(RESOURCE_NOT_FOUND, told, {"uri": uri}) from None
        text = fence_text("\n".join(found.blocks))
        return {"contents": [{"uri": uri, "mimeType": "text/markdown", "text": text}]}

    def list_prompts(self, _params: Params) -> dict[str, Any]:
        return {"prompts": PROMPTS}

    def get_prompt(self, params: Params) -> dict[str, Any]:
        from whyfor.model.errors import WhyforError
        from whyfor.service.context import ContextRequest, branch_context

        given = params.get("arguments") or {}
        if params.get("name") != PROMPT or not isinstance(given, dict):
            raise ProtocolError(INVALID_PARAMS, f"no such prompt. There is: {PROMPT}")
        files = [name.strip() for name in str(given.get("files") or "").split(",")]
        wanted = ContextRequest(given.get("branch") or None, tuple(filter(None, files)))
        try:
            block = branch_context(self.tools.memory.settings, self.tools.folder, wanted)
        except WhyforError as error:
            raise ProtocolError(INVALID_PARAMS, f"{error.message}. {error.hint}") from None
        told = block.text or "Nothing is remembered of this repository yet."
        text = f"{told}\n\nSay in a few lines what happened here before and what is still open."
        message = {"role": "user", "content": {"type": "text", "text": text}}
        return {"description": PROMPTS[0]["description"], "messages": [message]}


def make_server(folder: Path) -> McpServer:
    tools = AgentTools(folder)
    pages = AgentResources(tools)
    handlers = {
        "tools/list": tools.list_tools,
        "tools/call": tools.call_tool,
        "resources/list": pages.list_resources,
        "resources/templates/list": pages.list_templates,
        "resources/read": pages.read_resource,
        "prompts/list": pages.list_prompts,
        "prompts/get": pages.get_prompt,
    }
    capabilities: dict[str, Any] = {"tools": {}, "resources": {}, "prompts": {}}
    return McpServer(handlers, capabilities=capabilities, instructions=INSTRUCTIONS)


def _position(cursor: str) -> int:
    from whyfor.model.errors import BadInput

    if not cursor:
        return 0
    if not cursor.isdecimal() or len(cursor) > 9:
        raise BadInput(
            f"not a cursor: {cursor[:40]!r}", "Give the one of the last answer, or none."
        )
    return int(cursor)


def _own_session() -> str:
    """The session that this server works for, as agent:id; empty if nothing says so."""
    from whyfor import config
    from whyfor.service.memory import who_writes

    session = who_writes(config.load())[1]
    return ":".join(session) if session else ""


def _note_key(ident: str) -> str:
    return ident.strip().removeprefix("note:")


def _usage(name: str) -> str:
    schema = next(tool["inputSchema"] for tool in TOOLS if tool["name"] == name)
    required = schema.get("required", [])
    return ", ".join(
        key if key in required else f"{key} (optional)" for key in schema["properties"]
    )


def _told_lines(found: WireMemoryLines) -> dict[str, Any]:
    lines = [
        f"{each.id}  {each.date or 'unknown date'}  {each.kind}  {each.title}"
        + (f"  ({each.why})" if each.why else "")
        for each in found.items
    ]
    return _answer("\n".join(lines), found)


def _told_texts(found: WireMemoryTexts) -> dict[str, Any]:
    parts = [f"## {each.kind} {each.id}\n{each.text}" for each in found.items]
    return _answer("\n\n".join(parts), found)


def told_context(found: FeatureContext) -> dict[str, Any]:
    """Render what is known of a branch: each session with whose it is, then what was decided."""
    from whyfor.model.fence import fence_text
    from whyfor.model.times import to_iso
    from whyfor.model.wire.context import wire_feature_context, wire_feature_session

    lines = []
    for one in found.sessions:
        date = (to_iso(one.session.started_at) or "unknown date")[:10]
        who = f"  {one.who.name}" if one.who else ""
        lines.append(f"{one.session.name}  {date}{who}  {one.session.title or ''}".rstrip())
        for part in _summary_parts(one.summary):
            lines.append(f"  {part}")
    if found.decisions:
        lines.append("")
    for each in found.decisions:
        note = each.observation
        lines.append(f"note:{note.key[:8]}  {note.type}  {note.title}")
    wired = [wire_feature_session(one.session, one.who, one.summary) for one in found.sessions]
    structured = msgspec.to_builtins(wire_feature_context(found.branch, wired, found.decisions))
    text = "\n".join(lines)
    told = fence_text(text) if text else "Nothing was shared of this branch yet."
    return {"content": [{"type": "text", "text": told}], "structuredContent": structured}


def _summary_parts(summary: SessionSummary | None) -> list[str]:
    """Return the first words of what was asked, done and left open."""
    if summary is None:
        return []
    named = {
        "asked": summary.request,
        "learned": summary.learned,
        "done": summary.completed,
        "next": summary.next_steps,
    }
    return [
        f"{name}: {' '.join(quotes[0].text.split())[:_QUOTED]}"
        for name, quotes in named.items()
        if quotes
    ]


def _answer(text: str, found: WireMemoryLines | WireMemoryTexts) -> dict[str, Any]:
    from whyfor.model.fence import fence_text

    parts = [fence_text(text)] if text else []
    if found.next_step:
        parts.append(found.next_step)
    if found.cursor:
        parts.append(f"More: cursor {found.cursor}")
    return {
        "content": [{"type": "text", "text": "\n".join(parts)}],
        "structuredContent": msgspec.to_builtins(found),
    }


def _done(text: str, ident: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}], "structuredContent": {"id": ident}}


def _failed(message: str, hint: str) -> dict[str, Any]:
    from whyfor.model.fence import defuse_text

    text = f"{message}\n{hint}".strip()
    return {"content": [{"type": "text", "text": defuse_text(text)}], "isError": True}

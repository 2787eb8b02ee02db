"""Claude on the web and in its desktop app: conversations of the data export."""

from __future__ import annotations

from whyfor.agents.base import (
    RecordReader,
    RecordStamp,
    SourceShape,
    as_dict,
    flatten,
    get_dict,
    get_list,
    get_str,
)
from whyfor.agents.chat import CallOutcome, ChatReader, joined_text
from whyfor.agents.facts import AgentFacts, kinds, split_words
from whyfor.agents.imports.base import ImportedAgent
from whyfor.agents.record_place import RecordPlace
from whyfor.model.findings import Record, Sink
from whyfor.model.ids import fold
from whyfor.model.times import parse_iso
from whyfor.model.titles import TITLE_AGENT

FACTS = AgentFacts(
    mark="Cw",
    colour="#c08a6a",
    tools=kinds(shell="repl bash_tool", web="web_search", fetch="web_fetch", write="artifacts"),
    untold=("exit codes", "branch", "model", "tokens per answer"),
    structure=frozenset(split_words("uuid type id tool_use_id")),
    identities=frozenset(split_words("uuid id type")),
)


class ClaudeWeb(ImportedAgent):
    name = "claude-web"
    title = "Claude (web)"
    facts = FACTS
    keys = (b'"chat_messages"', b'"uuid"')

    def stamp(self, record: Record) -> RecordStamp:
        began = parse_iso(record.get("created_at"))
        return RecordStamp(at=began, since=began, until=parse_iso(record.get("updated_at")))

    def reader(self, shape: SourceShape, state: Record) -> RecordReader:
        return ChatMessagesReader(state, shape, FACTS)


class ChatMessagesReader(ChatReader):
    def read(self, record: Record, offset: int, line: bytes, out: Sink) -> None:
        if "chat_messages" not in record:
            out.unknown_type(record.get("type"))
            return
        began = parse_iso(record.get("created_at"))
        self.locate(RecordPlace(out.main, began), out.main.session_id)
        out.main.title(TITLE_AGENT, record.get("name"))
        for index, message in enumerate(map(as_dict, get_list(record, "chat_messages"))):
            base = get_str(message, "uuid") or f"{out.main.session_id}:{index}"
            at = RecordPlace(out.main, parse_iso(message.get("created_at")) or began)
            self._message(message, base, at, out)

    def _message(self, message: Record, base: str, at: RecordPlace, out: Sink) -> None:
        sender = get_str(message, "sender")
        parts = [as_dict(part) for part in get_list(message, "content")]
        if sender == "human":
            text = joined_text(parts) or get_str(message, "text")
            self.prompt(at, fold(base, "text"), "\n".join([text, *_attached(message)]).strip())
        elif sender == "assistant":
            for index, part in enumerate(parts):
                self._part(part, f"{base}:{index}", at)
            if not parts:
                self.say(at, fold(base, "text"), get_str(message, "text"))
        else:
            out.unknown_type(f"message {sender}")

    def _part(self, part: Record, base: str, at: RecordPlace) -> None:
        kind = part.get("type")
        if kind == "text":
            self.say(at, fold(base, "text"), get_str(part, "text"))
        elif kind == "thinking":
            self.think(at, fold(base, "thought"), get_str(part, "thinking"))
        elif kind == "tool_use":
            ident = get_str(part, "id") or base
            self.state["asked"] = ident
            self.call(at, ident, get_str(part, "name"), get_dict(part, "input"))
        elif kind == "tool_result":
            ident = get_str(part, "tool_use_id") or str(self.state.get("asked") or base)
            found = part.get("content")
            text = joined_text(found) or flatten(found)
            self.result(at, ident, text, CallOutcome(failed=part.get("is_error") is True))


def _attached(message: Record) -> list[str]:
    """Return a line for each file that was attached."""
    given = [*get_list(message, "attachments"), *get_list(message, "files")]
    names = [get_str(as_dict(each), "file_name") for each in given]
    return [f"[attached: {name}]" for name in names if name]


AGENT = ClaudeWeb()

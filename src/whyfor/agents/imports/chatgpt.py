"""ChatGPT: conversations of its data export, each a tree of messages of which one path counts."""

from __future__ import annotations

from whyfor.agents.base import (
    RecordReader,
    RecordStamp,
    SourceShape,
    as_dict,
    as_str,
    get_dict,
    get_list,
    get_str,
)
from whyfor.agents.chat import CallOutcome, ChatReader
from whyfor.agents.facts import AgentFacts, kinds, split_words
from whyfor.agents.imports.base import ImportedAgent
from whyfor.agents.record_place import RecordPlace
from whyfor.model.findings import Record, Sink
from whyfor.model.ids import fold
from whyfor.model.times import parse_iso
from whyfor.model.titles import TITLE_AGENT

_LONGEST = 20_000  # messages on one path

FACTS = AgentFacts(
    mark="Gp",
    colour="#3f9e86",
    tools=kinds(shell="python container.exec", web="browser web web.run", write="canmore"),
    untold=("exit codes", "branch", "tokens per answer"),
    structure=frozenset(split_words("id role")),
    identities=frozenset(split_words("id role")),
)


class ChatGpt(ImportedAgent):
    name = "chatgpt"
    title = "ChatGPT"
    facts = FACTS
    keys = (b'"mapping"', b'"current_node"')

    def stamp(self, record: Record) -> RecordStamp:
        """The newest time counts: a conversation is imported whole or not at all."""
        began = parse_iso(record.get("create_time"))
        return RecordStamp(at=began, since=began, until=parse_iso(record.get("update_time")))

    def reader(self, shape: SourceShape, state: Record) -> RecordReader:
        return MappingReader(state, shape, FACTS)


class MappingReader(ChatReader):
    def read(self, record: Record, offset: int, line: bytes, out: Sink) -> None:
        if "mapping" not in record:
            out.unknown_type(record.get("type"))
            return
        began = parse_iso(record.get("create_time"))
        self.locate(RecordPlace(out.main, began), out.main.session_id)
        out.main.title(TITLE_AGENT, record.get("title"))
        for message in _shown_messages(record):
            self._message(message, began, out)

    def _message(self, message: Record, began: int | None, out: Sink) -> None:
        at = RecordPlace(out.main, parse_iso(message.get("create_time")) or began)
        ident = get_str(message, "id")
        role = get_str(get_dict(message, "author"), "role")
        content = get_dict(message, "content")
        if role == "user":
            self.prompt(at, fold(ident, "text"), _text(content))
        elif role == "assistant":
            self._assistant(message, content, ident, at)
        elif role == "tool":
            asked = as_str(self.state.get("asked")) or ident
            self.result(at, asked, _text(content), CallOutcome())
        elif role != "system":
            out.unknown_type(f"message {role}")

    def _assistant(self, message: Record, content: Record, ident: str, at: RecordPlace) -> None:
        model = get_dict(message, "metadata").get("model_slug")
        kind = get_str(content, "content_type")
        recipient = get_str(message, "recipient") or "all"
        if kind in ("thoughts", "reasoning_recap"):
            self.think(at, fold(ident, "thought"), _thoughts(content), model)
        elif recipient != "all":
            self.state["asked"] = ident
            self.call(at, ident, recipient, {"text": _text(content)}, model)
        else:
            self.say(at, fold(ident, "text"), _text(content), model)


def _shown_messages(record: Record) -> list[Record]:
    """Return the messages on the path to the one shown last, the first one first; hidden ones are
    the program's own."""
    nodes = get_dict(record, "mapping")
    found: list[Record] = []
    name = get_str(record, "current_node")
    for _ in range(_LONGEST):
        node = as_dict(nodes.get(name))
        if not node:
            break
        message = get_dict(node, "message")
        if message and not get_dict(message, "metadata").get(
            "is_visually_hidden_from_conversation"
        ):
            found.append(message)
        name = get_str(node, "parent")
    return found[::-1]


def _text(content: Record) -> str:
    parts = get_list(content, "parts")
    texts = [part for part in parts if isinstance(part, str)]
    texts += [get_str(as_dict(part), "text") for part in parts if isinstance(part, dict)]
    return "\n".join(text for text in [*texts, get_str(content, "text")] if text)


def _thoughts(content: Record) -> str:
    found = [as_dict(each) for each in get_list(content, "thoughts")]
    texts = [get_str(each, "content") or get_str(each, "summary") for each in found]
    return "\n\n".join(text for text in [*texts, get_str(content, "content")] if text)


AGENT = ChatGpt()

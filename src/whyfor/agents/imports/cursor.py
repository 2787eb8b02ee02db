"""Cursor: conversations in its editor's database, imported as one document each."""

from __future__ import annotations

from whyfor.agents.base import (
    RecordReader,
    RecordStamp,
    SourceShape,
    as_dict,
    get_dict,
    get_int,
    get_list,
    get_str,
)
from whyfor.agents.chat import CallOutcome, ChatReader, decoded_object
from whyfor.agents.facts import AgentFacts, ArgumentNames, kinds, split_words
from whyfor.agents.imports.base import ImportedAgent
from whyfor.agents.record_place import RecordPlace
from whyfor.model.findings import Record, Sink
from whyfor.model.ids import fold
from whyfor.model.times import parse_iso
from whyfor.model.titles import TITLE_AGENT

_PERSON, _MODEL = 1, 2  # types of its bubbles

FACTS = AgentFacts(
    mark="Cu",
    colour="#6f6f7a",
    tools=kinds(
        shell="run_terminal_cmd run_terminal_command_v2",
        read="read_file read_file_v2",
        list="list_dir list_dir_v2",
        search="grep grep_search ripgrep_raw_search codebase_search glob_file_search file_search",
        edit="search_replace edit_file edit_file_v2",
        write="write",
        web="web_search",
        todo="todo_write",
    ),
    arguments=ArgumentNames(
        path=("target_file", "file_path", "relative_workspace_path", "path"),
        command=("command",),
        old=("old_string",),
        new=("new_string", "code_edit"),
        whole=("contents",),
    ),
    untold=("exit codes", "branch", "tokens per answer"),
    structure=frozenset(split_words("type createdAt")),
    identities=frozenset(split_words("type createdat")),
)


class CursorEditor(ImportedAgent):
    name = "cursor"
    title = "Cursor"
    facts = FACTS
    keys = (b'"cursor"', b'"composer"')

    def stamp(self, record: Record) -> RecordStamp:
        composer = get_dict(get_dict(record, "cursor"), "composer")
        began = get_int(composer, "createdAt")
        until = get_int(composer, "lastUpdatedAt")
        return RecordStamp(at=began, since=began, until=until, cwd=_folder(composer))

    def reader(self, shape: SourceShape, state: Record) -> RecordReader:
        return BubbleReader(state, shape, FACTS)


class BubbleReader(ChatReader):
    def read(self, record: Record, offset: int, line: bytes, out: Sink) -> None:
        told = get_dict(record, "cursor")
        if not told:
            out.unknown_type(record.get("type"))
            return
        composer = get_dict(told, "composer")
        began = get_int(composer, "createdAt")
        self.locate(RecordPlace(out.main, began), out.main.session_id, cwd=_folder(composer))
        out.main.title(TITLE_AGENT, composer.get("name"))
        for index, bubble in enumerate(map(as_dict, get_list(told, "bubbles"))):
            ident = get_str(bubble, "bubbleId") or f"{out.main.session_id}:{index}"
            at = RecordPlace(out.main, _time(bubble) or began)
            if bubble.get("type") == _PERSON:
                self.prompt(at, fold(ident, "text"), get_str(bubble, "text"))
            elif bubble.get("type") == _MODEL:
                self._answer(bubble, ident, at)
            else:
                out.unknown_type(f"bubble {bubble.get('type')}")

    def _answer(self, bubble: Record, ident: str, at: RecordPlace) -> None:
        model = get_dict(bubble, "modelInfo").get("modelName")
        thought = get_str(get_dict(bubble, "thinking"), "text")
        self.think(at, fold(ident, "thought"), thought, model)
        self.say(at, fold(ident, "text"), get_str(bubble, "text"), model)
        tool = get_dict(bubble, "toolFormerData")
        name = get_str(tool, "name")
        if not name:
            return
        call = get_str(tool, "toolCallId") or ident
        given = decoded_object(tool.get("rawArgs")) or decoded_object(tool.get("params"))
        self.call(at, call, name, given, model)
        status = get_str(tool, "status")
        if status and status != "loading":
            failed = status in ("error", "cancelled")
            self.result(at, call, get_str(tool, "result"), CallOutcome(failed=failed))


def _folder(composer: Record) -> str | None:
    place = get_dict(get_dict(composer, "workspaceIdentifier"), "uri")
    return get_str(place, "fsPath") or None


def _time(bubble: Record) -> int | None:
    """Return when a bubble was made; most do not say."""
    timing = get_dict(bubble, "timingInfo")
    return parse_iso(bubble.get("createdAt")) or get_int(timing, "clientStartTime")


AGENT = CursorEditor()

"""Read a log of Qwen Code. A response is told up to three times; it is counted once."""

from __future__ import annotations

import re
from collections.abc import Callable

from whyfor.agents.base import as_dict, as_str, flatten, get_dict, get_int, get_list, get_str
from whyfor.agents.chat import (
    CallOutcome,
    ChatReader,
    count_tokens,
    exit_code_in,
    image_reference,
    uncached,
)
from whyfor.agents.record_place import RecordPlace, known_values
from whyfor.model.findings import Record, Sink
from whyfor.model.ids import fold, fold_bytes
from whyfor.model.times import parse_iso
from whyfor.model.titles import TITLE_AGENT, TITLE_PERSON

_EXIT = re.compile(r"(?m)^Exit Code: (-?\d{1,9})$")
# what a hook added to a prompt, in a part of its own
_ADDED = ("<qwen:user-prompt-submit-context>", "<system-reminder>")
# said elsewhere, or of no interest to people
_SILENT = frozenset(
    """
    attribution_snapshot at_command notification cron parent_session session_source session_model
    file_history_snapshot branch_checkpoint turn_result mid_turn_user_message slash_command
    agent_start agent_end goal_start goal_end
    """.split()
)


class QwenReader(ChatReader):
    def read(self, record: Record, offset: int, line: bytes, out: Sink) -> None:
        kind = get_str(record, "type")
        handler = _RECORDS.get(kind)
        if handler is None:
            out.unknown_type(record.get("type"))
            return
        at = RecordPlace(out.main, parse_iso(record.get("timestamp")))
        base = get_str(record, "uuid") or str(fold_bytes(offset, line))
        self.locate(
            at,
            base,
            cwd=record.get("cwd"),
            branch=record.get("gitBranch"),
            version=record.get("version"),
            forked_from=get_dict(record, "forkedFrom").get("sessionId"),
        )
        handler(self, record, base, at, out)
        if origin := get_str(record, "restoredFrom"):
            out.main.mark_copied(origin)

    def _user(self, record: Record, base: str, at: RecordPlace, out: Sink) -> None:
        parts = _parts(record)
        texts = [get_str(part, "text") for part in parts]
        typed = [text for text in texts if text and not text.lstrip().startswith(_ADDED)]
        if record.get("provenance") in (None, "real_user"):
            self.prompt(at, fold(base, "text"), "\n".join(typed), _images(parts))
        elif typed:
            at.add("status.changed", fold(base, "text"), "system", "\n".join(typed))

    def _assistant(self, record: Record, base: str, at: RecordPlace, out: Sink) -> None:
        model = record.get("model")
        self._count(get_dict(record, "usageMetadata"), base, model, at)
        for index, part in enumerate(_parts(record)):
            text = get_str(part, "text")
            asked = get_dict(part, "functionCall")
            if part.get("thought"):
                self.think(at, fold(base, "thought", index), text, model)
            elif text:
                self.say(at, fold(base, "text", index), text, model)
            elif asked:
                ident = get_str(asked, "id") or f"{base}:{index}"
                self.call(at, ident, get_str(asked, "name"), get_dict(asked, "args"), model)

    def _count(self, usage: Record, base: str, model: object, at: RecordPlace) -> None:
        """Its input includes what came from the cache, its output the thoughts."""
        cached = get_int(usage, "cachedContentTokenCount")
        counts = {
            "input": uncached(get_int(usage, "promptTokenCount"), cached),
            "cache_read": cached,
            "output": get_int(usage, "candidatesTokenCount"),
            "reasoning": get_int(usage, "thoughtsTokenCount"),
        }
        count_tokens(at, fold("qwen", base), model, counts)

    def _tool_result(self, record: Record, base: str, at: RecordPlace, out: Sink) -> None:
        told = get_dict(record, "toolCallResult")
        for index, part in enumerate(_parts(record)):
            answer = get_dict(part, "functionResponse")
            if not answer:
                continue
            ident = get_str(answer, "id") or get_str(told, "callId") or f"{base}:{index}"
            own = told if get_str(told, "callId") in ("", ident) else {}
            text = _output(answer)
            self.result(at, ident, text, _outcome(own, answer, text))

    def _system(self, record: Record, base: str, at: RecordPlace, out: Sink) -> None:
        subtype, payload = get_str(record, "subtype"), get_dict(record, "systemPayload")
        if subtype == "ui_telemetry":
            self._telemetry(get_dict(payload, "uiEvent"), base, at)
        elif subtype == "custom_title":
            title = get_str(payload, "title") or get_str(payload, "customTitle")
            rank = TITLE_PERSON if payload.get("titleSource") == "manual" else TITLE_AGENT
            at.bucket.title(rank, title)
        elif subtype == "chat_compression":
            text = get_str(payload, "summary")
            about = {"summary": True} if text else None
            at.add("compaction", fold(base, "compaction"), "system", text, data=about)
        elif subtype == "rewind":
            target = payload.get("targetUuid") or payload.get("uuid")
            about = known_values({"rewound_to": target})
            at.add("status.changed", fold(base, "rewind"), "user", data=about)
        elif subtype not in _SILENT:
            out.unknown_type(f"system {subtype}")

    def _telemetry(self, told: Record, base: str, at: RecordPlace) -> None:
        """Count what only telemetry tells: responses to a subagent, which have no record."""
        name = get_str(told, "event.name")
        if not name.endswith("api_response") or not get_str(told, "subagent_name"):
            return
        cached = get_int(told, "cached_content_token_count")
        counts = {
            "input": uncached(get_int(told, "input_token_count"), cached),
            "cache_read": cached,
            "output": get_int(told, "output_token_count"),
            "reasoning": get_int(told, "thoughts_token_count"),
        }
        count_tokens(at, fold("qwen", base), told.get("model"), counts)


Handler = Callable[[QwenReader, Record, str, RecordPlace, Sink], None]
_RECORDS: dict[str, Handler] = {
    "user": QwenReader._user,
    "assistant": QwenReader._assistant,
    "tool_result": QwenReader._tool_result,
    "system": QwenReader._system,
}


def _parts(record: Record) -> list[Record]:
    return [as_dict(part) for part in get_list(get_dict(record, "message"), "parts")]


def _images(parts: list[Record]) -> list[Record]:
    found = []
    for index, part in enumerate(parts):
        inline = get_dict(part, "inlineData")
        if inline:
            size = len(get_str(inline, "data")) * 3 // 4
            found.append(image_reference(index, inline.get("mimeType"), size))
    return found


def _output(answer: Record) -> str:
    response = answer.get("response")
    told = as_dict(response)
    return (
        get_str(told, "output") or get_str(told, "error") or as_str(response) or flatten(response)
    )


def _outcome(told: Record, answer: Record, text: str) -> CallOutcome:
    shown = get_dict(told, "resultDisplay")
    code = get_int(shown, "exitCode")
    if code is None:
        code = exit_code_in(text, _EXIT)
    status = get_str(told, "status")
    failed = status in ("error", "cancelled") or "error" in get_dict(answer, "response")
    return CallOutcome(
        failed=failed,
        exit_code=code,
        diff=get_str(shown, "fileDiff"),
        path=get_str(shown, "filePath"),
        rejected=status == "cancelled" or told.get("errorType") == "execution_denied",
    )

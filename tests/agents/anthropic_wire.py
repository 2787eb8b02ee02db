"""The Anthropic Messages API, as Claude Code, Copilot CLI and OpenCode speak it."""

from __future__ import annotations

import json
from typing import Any

from .dialects import in_words_of, speaker
from .script import Call, Json, Message, Part, Reply, Say, Think, Usage
from .wire import Payload, as_events, as_json, fresh, text_of

# Claude Code sends some two dozen tools in its main loop, and hardly any when it asks for a title.
FEW_TOOLS = 5


def claims(path: str) -> bool:
    return "/v1/messages" in path


def is_main(path: str, body: Json) -> bool:
    return "count_tokens" not in path and len(body.get("tools") or ()) > FEW_TOOLS


def history(body: Json) -> list[Message]:
    return [
        Message(message["role"], _text(message["content"])) for message in body.get("messages", ())
    ]


def payload(path: str, body: Json, reply: Reply) -> Payload:
    if "count_tokens" in path:
        return as_json({"input_tokens": reply.usage.prompt})
    message = _message(speaker(path) or "claude", body.get("model", "unknown"), reply)
    return as_events(_events(message)) if body.get("stream") else as_json(message)


def error(status: int, message: str) -> Payload:
    kind = "invalid_request_error" if status < 500 else "api_error"
    return as_json({"type": "error", "error": {"type": kind, "message": message}})


def _text(content: Any) -> str:
    return content if isinstance(content, str) else "\n".join(map(text_of, content))


def _message(agent: str, model: str, reply: Reply) -> Json:
    return {
        "id": fresh("msg_"),
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [_block(agent, part) for part in reply.parts],
        "stop_reason": "tool_use" if reply.calls else "end_turn",
        "stop_sequence": None,
        "usage": _usage(reply.usage),
    }


def _block(agent: str, part: Part) -> Json:
    match part:
        case Say(text):
            return {"type": "text", "text": text}
        case Think(text):
            return {"type": "thinking", "thinking": text, "signature": fresh("sig")}
        case Call():
            name, args = in_words_of(agent, part)
            return {"type": "tool_use", "id": fresh("toolu_"), "name": name, "input": args}


def _usage(usage: Usage) -> Json:
    return {
        "input_tokens": usage.input,
        "cache_read_input_tokens": usage.cache_read,
        "cache_creation_input_tokens": usage.cache_write,
        "cache_creation": {
            "ephemeral_5m_input_tokens": usage.cache_write,
            "ephemeral_1h_input_tokens": 0,
        },
        "output_tokens": usage.completion,
        "service_tier": "standard",
    }


def _events(message: Json) -> list[Json]:
    # As on the real wire, output tokens and the stop reason are known only when the stream ends.
    usage = {**message["usage"], "output_tokens": 1}
    opening = {**message, "content": [], "stop_reason": None, "usage": usage}
    events: list[Json] = [{"type": "message_start", "message": opening}]
    for index, block in enumerate(message["content"]):
        events += _block_events(index, block)
    delta = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    spent = {"output_tokens": message["usage"]["output_tokens"]}
    return [
        *events,
        {"type": "message_delta", "delta": delta, "usage": spent},
        {"type": "message_stop"},
    ]


def _block_events(index: int, block: Json) -> list[Json]:
    start, deltas = _streamed(block)
    return [
        {"type": "content_block_start", "index": index, "content_block": start},
        *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": index},
    ]


def _streamed(block: Json) -> tuple[Json, list[Json]]:
    """A block as the empty block it starts with and the deltas that fill it."""
    match block["type"]:
        case "text":
            return {**block, "text": ""}, [{"type": "text_delta", "text": block["text"]}]
        case "thinking":
            return {**block, "thinking": "", "signature": ""}, [
                {"type": "thinking_delta", "thinking": block["thinking"]},
                {"type": "signature_delta", "signature": block["signature"]},
            ]
        case _:
            args = json.dumps(block["input"])
            return {**block, "input": {}}, [{"type": "input_json_delta", "partial_json": args}]

"""The OpenAI chat completions API, which most agents speak to a model of one's own."""

from __future__ import annotations

import json
import time

from .dialects import in_words_of, speaker
from .script import Call, Json, Message, Reply, Say, Think, Usage
from .wire import Payload, as_events, as_json, fresh, text_of


def claims(path: str) -> bool:
    return path.endswith("/chat/completions")


def is_main(path: str, body: Json) -> bool:
    # A title or a summary is asked for without tools, or with one to answer by.
    return len(body.get("tools") or ()) > 2


def history(body: Json) -> list[Message]:
    return [_message(message) for message in body.get("messages", ())]


def payload(path: str, body: Json, reply: Reply) -> Payload:
    agent = speaker(path)
    head = {"id": fresh("chatcmpl-"), "created": int(time.time()), "model": body.get("model")}
    if not body.get("stream"):
        choice = {"index": 0, "message": _said(agent, reply), "finish_reason": _end(reply)}
        whole = {**head, "object": "chat.completion", "choices": [choice]}
        return as_json({**whole, "usage": _usage(reply.usage)})
    head["object"] = "chat.completion.chunk"
    deltas: list[Json] = [{"role": "assistant", "content": ""}, *_deltas(agent, reply)]
    chunks: list[Json] = [_chunk(head, delta, None) for delta in deltas]
    chunks.append(_chunk(head, {}, _end(reply)))
    chunks.append({**head, "choices": [], "usage": _usage(reply.usage)})
    kind, data = as_events(chunks)
    return Payload(kind, data + b"data: [DONE]\n\n")


def error(status: int, message: str) -> Payload:
    return as_json({"error": {"type": "invalid_request_error", "code": None, "message": message}})


def _message(message: Json) -> Message:
    content = message.get("content") or ""
    text = content if isinstance(content, str) else "\n".join(map(text_of, content))
    calls = [json.dumps(call) for call in message.get("tool_calls") or ()]
    role = "user" if message.get("role") == "tool" else str(message.get("role"))
    return Message(role, "\n".join([text, *calls]))


def _end(reply: Reply) -> str:
    return "tool_calls" if reply.calls else "stop"


def _said(agent: str, reply: Reply) -> Json:
    said = {"role": "assistant", "content": _joined(reply, Say)}
    if thought := _joined(reply, Think):
        said["reasoning_content"] = thought
    if reply.calls:
        said["tool_calls"] = [_call(agent, call) for call in reply.calls]  # type: ignore[assignment]
    return said


def _joined(reply: Reply, kind: type[Say] | type[Think]) -> str:
    return "".join(part.text for part in reply.parts if isinstance(part, kind))


def _call(agent: str, call: Call) -> Json:
    name, args = in_words_of(agent, call)
    function = {"name": name, "arguments": json.dumps(args)}
    return {"id": fresh("call_"), "type": "function", "function": function}


def _deltas(agent: str, reply: Reply) -> list[Json]:
    calls = iter(range(len(reply.calls)))
    found: list[Json] = []
    for part in reply.parts:
        match part:
            case Say(text):
                found.append({"content": text})
            case Think(text):
                found.append({"reasoning_content": text})
            case Call():
                found.append({"tool_calls": [{"index": next(calls), **_call(agent, part)}]})
    return found


def _chunk(head: Json, delta: Json, end: str | None) -> Json:
    return {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": end}]}


def _usage(usage: Usage) -> Json:
    return {
        "prompt_tokens": usage.prompt,
        "completion_tokens": usage.completion,
        "total_tokens": usage.total,
        "prompt_tokens_details": {"cached_tokens": usage.cache_read},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning},
    }

"""The OpenAI Responses API, as Codex speaks it."""

from __future__ import annotations

import json
import shlex

from .script import Call, Json, Message, Part, Reply, Say, Think, Usage
from .wire import Payload, as_events, as_json, fresh, text_of


def claims(path: str) -> bool:
    return path.endswith("/responses")


def is_main(path: str, body: Json) -> bool:
    return bool(body.get("tools"))


def history(body: Json) -> list[Message]:
    return [_message(item) for item in body.get("input", ())]


def payload(path: str, body: Json, reply: Reply) -> Payload:
    response = {
        "id": fresh("resp_"),
        "object": "response",
        "model": body.get("model"),
        "output": [_item(part) for part in reply.parts],
        "usage": _usage(reply.usage),
    }
    return as_events(_events(response)) if body.get("stream") else as_json(response)


def error(status: int, message: str) -> Payload:
    return as_json({"error": {"type": "invalid_request_error", "code": None, "message": message}})


def _message(item: Json) -> Message:
    if item.get("type", "message") == "message":
        content = item["content"]
        text = content if isinstance(content, str) else "\n".join(map(text_of, content))
        return Message(item["role"], text)
    # Calls and reasoning are the model's own words; what a tool printed comes from the user's side.
    return Message("user" if item["type"].endswith("_output") else "assistant", text_of(item))


def _item(part: Part) -> Json:
    match part:
        case Say(text):
            content = [{"type": "output_text", "text": text, "annotations": []}]
            return {"type": "message", "id": fresh("msg_"), "role": "assistant", "content": content}
        case Think(text):
            summary = [{"type": "summary_text", "text": text}]
            opaque = fresh("enc")
            return {
                "type": "reasoning",
                "id": fresh("rs_"),
                "summary": summary,
                "encrypted_content": opaque,
            }
        case Call():
            return _call(part)


def _call(call: Call) -> Json:
    name, args = _tool(call)
    if name == "apply_patch":
        return {
            "type": "custom_tool_call",
            "call_id": fresh("call_"),
            "name": name,
            "input": args["input"],
        }
    if name == "tool_search":
        found = {"type": "tool_search_call", "call_id": fresh("call_"), "execution": "client"}
        return {**found, "status": "completed", "arguments": args}
    namespace, _, name = name.rpartition("::")
    return {
        "type": "function_call",
        "call_id": fresh("call_"),
        "name": name,
        **({"namespace": namespace} if namespace else {}),
        "arguments": json.dumps(args),
    }


def _tool(call: Call) -> tuple[str, Json]:
    args = dict(call.args)
    match call.tool:
        case "shell":
            return "exec_command", {"cmd": args.pop("command"), **args}
        case "write":
            return _patch(f"*** Add File: {args['path']}", _marked("+", args["content"]))
        case "edit":
            hunk = ["@@", *_marked("-", args["old"]), *_marked("+", args["new"])]
            return _patch(f"*** Update File: {args['path']}", hunk)
        case "read":
            return "exec_command", {"cmd": f"cat {shlex.quote(str(args['path']))}"}
        case name:
            return name, args


def _patch(target: str, lines: list[str]) -> tuple[str, Json]:
    return "apply_patch", {"input": "\n".join(["*** Begin Patch", target, *lines, "*** End Patch"])}


def _marked(mark: str, text: str) -> list[str]:
    return [mark + line for line in text.removesuffix("\n").split("\n")]


def _usage(usage: Usage) -> Json:
    return {
        "input_tokens": usage.prompt,
        "input_tokens_details": {
            "cached_tokens": usage.cache_read,
            "cache_write_tokens": usage.cache_write,
        },
        "output_tokens": usage.completion,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning},
        "total_tokens": usage.total,
    }


def _events(response: Json) -> list[Json]:
    opening = {"type": "response.created", "response": {"id": response["id"]}}
    items = [
        {"type": "response.output_item.done", "output_index": index, "item": item}
        for index, item in enumerate(response["output"])
    ]
    return [opening, *items, {"type": "response.completed", "response": response}]

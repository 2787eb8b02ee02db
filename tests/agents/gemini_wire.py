"""The Gemini generateContent API, as Gemini CLI speaks it."""

from __future__ import annotations

from .script import Call, Json, Message, Part, Reply, Say, Think, Usage
from .wire import Payload, as_events, as_json, fresh, text_of


def claims(path: str) -> bool:
    return "/models/" in path


def is_main(path: str, body: Json) -> bool:
    return ":streamGenerateContent" in path and bool(body.get("tools"))


def history(body: Json) -> list[Message]:
    return [_message(content) for content in body.get("contents", ())]


def payload(path: str, body: Json, reply: Reply) -> Payload:
    if ":countTokens" in path:
        return as_json({"totalTokens": reply.usage.prompt})
    chunk = {
        "responseId": fresh(""),
        "candidates": [
            {
                "index": 0,
                "content": {"role": "model", "parts": [_part(part) for part in reply.parts]},
                "finishReason": "STOP",
            }
        ],
        "usageMetadata": _usage(reply.usage),
    }
    return as_events([chunk]) if ":stream" in path else as_json(chunk)


def error(status: int, message: str) -> Payload:
    return as_json({"error": {"code": status, "message": message, "status": "INVALID_ARGUMENT"}})


def _message(content: Json) -> Message:
    role = "assistant" if content.get("role") == "model" else "user"
    return Message(role, "\n".join(map(text_of, content.get("parts", ()))))


def _part(part: Part) -> Json:
    match part:
        case Say(text):
            return {"text": text}
        case Think(text):
            return {"text": text, "thought": True}
        case Call():
            name, args = _tool(part)
            return {"functionCall": {"id": fresh("call_"), "name": name, "args": args}}


def _tool(call: Call) -> tuple[str, Json]:
    args = dict(call.args)
    match call.tool:
        case "shell":
            return "run_shell_command", {"description": "run a command", **args}
        case "write":
            return "write_file", {"file_path": str(args["path"]), "content": args["content"]}
        case "edit":
            texts = {"old_string": args["old"], "new_string": args["new"]}
            return "replace", {
                "file_path": str(args["path"]),
                "instruction": "edit the file",
                **texts,
            }
        case "read":
            return "read_file", {"file_path": str(args["path"])}
        case name:
            return name, args


def _usage(usage: Usage) -> Json:
    return {
        "promptTokenCount": usage.prompt,
        "cachedContentTokenCount": usage.cache_read,
        "candidatesTokenCount": usage.output,
        "thoughtsTokenCount": usage.reasoning,
        "totalTokenCount": usage.total,
    }

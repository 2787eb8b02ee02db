"""Read tool calls: what was asked, how it ended, which files it touched, who allowed it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from whyfor.agents.base import (
    as_dict,
    as_list,
    as_str,
    flatten,
    get_dict,
    get_int,
    get_list,
    get_str,
)
from whyfor.agents.codex.content import decode_arguments, image_data
from whyfor.agents.codex.outcomes import outcome
from whyfor.agents.codex.record_place import RolloutPlace
from whyfor.agents.edits import PATCH, patched_paths
from whyfor.agents.record_place import remember
from whyfor.model.findings import Record
from whyfor.model.ids import fold

HOSTED = {"web_search_call": "web_search", "image_generation_call": "image_generation"}
_CALLS_MAX = 500  # tool calls that are remembered; what comes later than that is taken as new


class Calls:
    def __init__(self, state: Record) -> None:
        self.known: dict[str, Record] = state.setdefault("calls", {})

    # -- items -----------------------------------------------------------------------------------

    def call(self, item: Record, at: RolloutPlace) -> None:
        ident = get_str(item, "call_id") or get_str(item, "id")
        name, given = _name(item), _given(item)
        text = flatten(given)
        key = at.key(ident)
        data: Record = {"id": ident or None, "input": given}
        if isinstance(space := item.get("namespace"), str):
            data["namespace"] = space
        at.add("tool.call", key, "assistant", text, name, data)
        known: Record = {}
        if PATCH in text and (name == "apply_patch" or "apply_patch" in text):
            known["write"] = list(dict.fromkeys(patched_paths(text)))
        elif name == "view_image" and (path := get_str(as_dict(given), "path")):
            known["read"] = [path]
        self._remember(ident, known)
        if name == "spawn_agent":
            self._spawned(ident, key, as_dict(given), at)
        elif name == "request_user_input":
            at.question(key, ident, get_list(as_dict(given), "questions"))

    def _spawned(self, ident: str, key: int, given: Record, at: RolloutPlace) -> None:
        kind = get_str(given, "agent_type") or get_str(given, "task_name")
        task = get_str(given, "message")
        data = {"id": ident, "prompt": task}
        at.add("subagent.started", fold(key, "sub"), "assistant", task, kind, data)

    def hosted(self, item: Record, at: RolloutPlace) -> None:
        """Add a call of a tool that the model's provider runs; its result is not recorded."""
        given = get_dict(item, "action") or {"prompt": get_str(item, "revised_prompt")}
        at.call(at.key(item.get("id")), item.get("id"), HOSTED[item["type"]], given)

    def output(self, item: Record, at: RolloutPlace) -> None:
        ident, output = get_str(item, "call_id"), item.get("output")
        text, code, failed = outcome(item.get("tools") if "output" not in item else output)
        known = self.known.get(ident, {})
        code = known.get("exit", code)
        data: Record = {"id": ident or None}
        if code is not None:
            data["exit_code"] = code
        if failed or code or known.get("failed"):
            data["failed"] = True
        images = [part for part in as_list(output) if as_dict(part).get("type") == "input_image"]
        if images:
            data["images"] = [image_data(part, index) for index, part in enumerate(images)]
        own = get_str(item, "id") or at.offset
        mark = known.get("mark", own)
        # A script's call may be answered piece by piece.
        key = at.key(ident, "result") if mark == own else at.key(ident, "result", own)
        at.add("tool.result", key, "tool", text, data=data)
        if "failed" not in data:
            _touch(ident, known.get("write", ()), "write", at)
            _touch(ident, known.get("read", ()), "read", at)
        running = code is None and "Process running with session ID" in as_str(output)[:2000]
        self._remember(ident, {"mark": mark, "running": True} if running else {"mark": mark})

    def _remember(self, ident: str, known: Record) -> None:
        if ident:
            remember(self.known, ident, known, _CALLS_MAX)

    # -- events that say how a call ended --------------------------------------------------------

    def ran(self, call: object, event: Record, at: RolloutPlace) -> None:
        """Add how a command ended. Usually this comes before its output; after it if the command
        ran in the background."""
        ident = as_str(call)
        # `<user_shell_command>` tells it
        if not ident or event.get("source") in ("user_shell", "userShell"):
            return
        code, status = get_int(event, "exit_code"), event.get("status")
        failed = bool(code) or status in ("failed", "declined")
        result: Record = {"exit_code": code} if code is not None else {}
        if failed:
            result["failed"] = True
        known = self.known.get(ident)
        output = get_str(event, "aggregated_output")
        if known is None:
            given = {
                "cmd": _command(event.get("command")),
                "workdir": get_str(event, "cwd").removeprefix("file://"),
            }
            self._nested(ident, "exec_command", given, output, result, at)
        elif known.pop("running", False):
            data = {"id": ident, **result, "late": True}
            at.add("tool.result", at.key(ident, "end"), "tool", output, data=data)
        elif "mark" not in known:
            if code is not None:
                known["exit"] = code
            if failed:
                known["failed"] = True
        if status == "declined":
            at.denied(ident)
        if code == 0:
            parsed = map(as_dict, get_list(event, "parsed_cmd"))
            paths = [get_str(part, "path") for part in parsed if part.get("type") == "read"]
            _touch(ident, dict.fromkeys(filter(None, paths)), "read", at)

    def patched(self, call: object, event: Record, at: RolloutPlace) -> None:
        ident = as_str(call)
        changes = get_dict(event, "changes")
        status = event.get("status")
        done = status == "completed" if isinstance(status, str) else bool(event.get("success"))
        if not ident:
            return
        known = self.known.get(ident)
        if known is None:
            output = get_str(event, "stdout") or get_str(event, "stderr")
            result: Record = {} if done else {"failed": True}
            self._nested(ident, "apply_patch", {"changes": changes}, output, result, at)
        elif not done:
            known["failed"] = True
        if status == "declined":
            at.denied(ident)
        if done:
            if known is not None:
                known.pop("write", None)  # the event's paths are the exact ones
            moved = [get_str(as_dict(change), "move_path") for change in changes.values()]
            _touch(ident, [*changes, *filter(None, moved)], "write", at)

    def asked_server(self, call: object, event: Record, at: RolloutPlace) -> None:
        ident = as_str(call)
        result = get_dict(event, "result")
        failed = "Err" in result or event.get("status") == "failed"
        failed = failed or bool(as_dict(result.get("Ok", result)).get("isError"))
        known = self.known.get(ident)
        if known is None and ident:
            asked = get_dict(event, "invocation") or event
            name = f"mcp__{get_str(asked, 'server')}__{get_str(asked, 'tool')}"
            outcome: Record = {"failed": True} if failed else {}
            answer = result or event.get("error")
            self._nested(ident, name, get_dict(asked, "arguments"), flatten(answer), outcome, at)
        elif known is not None and failed:
            known["failed"] = True

    def _nested(
        self, ident: str, name: str, given: Record, output: str, result: Record, at: RolloutPlace
    ) -> None:
        """Add a tool call that a script of the model made; only its end is recorded."""
        data = {"id": ident, "input": given, "nested": True}
        at.add("tool.call", at.key(ident), "assistant", flatten(given), name, data)
        at.add("tool.result", at.key(ident, "result"), "tool", output, data={"id": ident, **result})
        self._remember(ident, {"mark": ident})

    # -- subagents and approvals -----------------------------------------------------------------

    def activity(self, item: Record, at: RolloutPlace) -> None:
        ident = get_str(item, "id") or get_str(item, "event_id")
        kind, thread = item.get("kind"), item.get("agent_thread_id")
        name = get_str(item, "agent_path")
        if kind == "started" or item.get("tool") in ("spawn_agent", "spawnAgent"):
            if ident not in self.known:  # else its call was read already
                thread = thread or next(iter(get_list(item, "receiver_thread_ids")), None)
                task = get_str(item, "prompt")
                data = {"id": ident, "session": thread, "prompt": task}
                at.add("subagent.started", at.key(ident, "sub"), "assistant", task, name, data)
        elif kind in ("completed", "interrupted", "failed", "errored", "shutdown", "closed"):
            data = {"session": thread, "status": kind}
            at.add("subagent.stopped", at.key(ident, "stopped"), "subagent", "", name, data)

    def approval(self, event: Record, at: RolloutPlace) -> None:
        ident = get_str(event, "call_id")
        text = _command(event.get("command")) or get_str(event, "reason")
        key = at.key(ident, "approval")
        at.add("approval.requested", key, "assistant", text, data={"id": ident or None})

    def assessed(self, event: Record, at: RolloutPlace) -> None:
        ident = get_str(event, "target_item_id") or get_str(event, "id")
        status = event.get("status")
        if status in ("approved", "denied"):
            data = {"id": ident, "decision": status}
            at.add("approval.resolved", at.key(ident, "assessed"), "system", data=data)


def _touch(ident: str, paths: Iterable[str], action: str, at: RolloutPlace) -> None:
    at.touch(fold(ident), (path.removeprefix("file://") for path in paths), action)


def _name(item: Record) -> str:
    name, space = get_str(item, "name"), get_str(item, "namespace")
    if space.startswith("mcp__"):
        return f"{space.rstrip('_')}__{name}"
    return name or get_str(item, "type").removesuffix("_call")


def _given(item: Record) -> Any:
    for key in ("arguments", "input", "action"):
        given = item.get(key)
        if given is not None:
            break
    else:
        return {}
    if isinstance(given, str) and item.get("type") == "function_call":
        arguments = decode_arguments(given)
        return arguments if isinstance(arguments, dict) else given
    return given


def _command(command: object) -> str:
    """Return the command without the `bash -lc "…"` that the program puts around it."""
    words = [str(word) for word in as_list(command)]
    if len(words) == 3 and words[1] in ("-c", "-lc"):
        return words[2]
    if not words:
        return as_str(command)
    import shlex  # for the few that are no shell's

    return shlex.join(words)

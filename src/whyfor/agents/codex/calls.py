"""Tool calls: what was asked, how it ended, which files it touched, who allowed it."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

from whyfor.agents.base import as_dict, as_int, as_list, as_str, flatten
from whyfor.agents.codex.content import decode_arguments, image_data
from whyfor.agents.codex.here import RecordPlace
from whyfor.agents.codex.outcomes import outcome
from whyfor.model.events import Touch
from whyfor.model.findings import Record
from whyfor.model.ids import fold

HOSTED = {"web_search_call": "web_search", "image_generation_call": "image_generation"}
# The line's start is checked after `*** `: beginning with a literal, the search is four times as
# fast.
_PATCHED = re.compile(
    r"\*\*\* (?<![^\n]....)(?:(?:Add|Update|Delete) File|Move to): (.+?)\s*$", re.M
)
_CALLS_MAX = 500  # tool calls that are remembered; what comes later than that is taken as new


class Calls:
    def __init__(self, state: Record) -> None:
        self.known: dict[str, Record] = state.setdefault("calls", {})

    # -- items -----------------------------------------------------------------------------------

    def call(self, item: Record, at: RecordPlace) -> None:
        ident = as_str(item.get("call_id")) or as_str(item.get("id"))
        name, given = _name(item), _given(item)
        text = flatten(given)
        key = at.key(ident)
        data: Record = {"id": ident or None, "input": given}
        if isinstance(space := item.get("namespace"), str):
            data["namespace"] = space
        at.add("tool.call", key, "assistant", text, name, data)
        known: Record = {}
        if "*** Begin Patch" in text and (name == "apply_patch" or "apply_patch" in text):
            known["write"] = list(dict.fromkeys(_PATCHED.findall(text)))
        elif name == "view_image" and (path := as_str(as_dict(given).get("path"))):
            known["read"] = [path]
        self._remember(ident, known)
        if name == "spawn_agent":
            self._spawned(ident, key, as_dict(given), at)
        elif name == "request_user_input":
            questions = as_list(as_dict(given).get("questions"))
            asked = "\n".join(as_str(as_dict(question).get("question")) for question in questions)
            data = {"id": ident, "questions": questions}
            at.add("question.asked", fold(key, "ask"), "assistant", asked, data=data)

    def _spawned(self, ident: str, key: int, given: Record, at: RecordPlace) -> None:
        kind = as_str(given.get("agent_type")) or as_str(given.get("task_name"))
        task = as_str(given.get("message"))
        at.add(
            "subagent.started",
            fold(key, "sub"),
            "assistant",
            task,
            kind,
            {"id": ident, "prompt": task},
        )

    def hosted(self, item: Record, at: RecordPlace) -> None:
        """A tool that the model's provider runs: its result is not written down."""
        given = as_dict(item.get("action")) or {"prompt": as_str(item.get("revised_prompt"))}
        data = {"id": item.get("id"), "input": given}
        at.add(
            "tool.call",
            at.key(item.get("id")),
            "assistant",
            flatten(given),
            HOSTED[item["type"]],
            data,
        )

    def output(self, item: Record, at: RecordPlace) -> None:
        ident, output = as_str(item.get("call_id")), item.get("output")
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
        own = as_str(item.get("id")) or at.offset
        mark = known.get("mark", own)
        # A script's call may be answered piece by piece.
        key = at.key(ident, "result") if mark == own else at.key(ident, "result", own)
        at.add("tool.result", key, "tool", text, data=data)
        if "failed" not in data:
            self._touch(ident, known.get("write", ()), "write", at)
            self._touch(ident, known.get("read", ()), "read", at)
        running = code is None and "Process running with session ID" in as_str(output)[:2000]
        self._remember(ident, {"mark": mark, "running": True} if running else {"mark": mark})

    def _remember(self, ident: str, known: Record) -> None:
        if ident:
            self.known[ident] = known
            while len(self.known) > _CALLS_MAX:
                del self.known[next(iter(self.known))]

    def _touch(self, ident: str, paths: Collection[str], action: str, at: RecordPlace) -> None:
        if paths:
            key = fold(ident)
            at.bucket.touches.extend(
                Touch(key, path.removeprefix("file://"), action) for path in paths
            )

    # -- events that say how a call ended --------------------------------------------------------

    def ran(self, call: object, event: Record, at: RecordPlace) -> None:
        """How a command ended: mostly known before its output, later when it ran in the
        background."""
        ident = as_str(call)
        # `<user_shell_command>` tells it
        if not ident or event.get("source") in ("user_shell", "userShell"):
            return
        code, status = as_int(event.get("exit_code")), event.get("status")
        failed = bool(code) or status in ("failed", "declined")
        result: Record = {"exit_code": code} if code is not None else {}
        if failed:
            result["failed"] = True
        known = self.known.get(ident)
        output = as_str(event.get("aggregated_output"))
        if known is None:
            given = {
                "cmd": _command(event.get("command")),
                "workdir": as_str(event.get("cwd")).removeprefix("file://"),
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
            self._declined(ident, at)
        if code == 0:
            parsed = map(as_dict, as_list(event.get("parsed_cmd")))
            paths = [as_str(part.get("path")) for part in parsed if part.get("type") == "read"]
            self._touch(ident, dict.fromkeys(filter(None, paths)), "read", at)

    def patched(self, call: object, event: Record, at: RecordPlace) -> None:
        ident = as_str(call)
        changes = as_dict(event.get("changes"))
        status = event.get("status")
        done = status == "completed" if isinstance(status, str) else bool(event.get("success"))
        if not ident:
            return
        known = self.known.get(ident)
        if known is None:
            output = as_str(event.get("stdout")) or as_str(event.get("stderr"))
            result: Record = {} if done else {"failed": True}
            self._nested(ident, "apply_patch", {"changes": changes}, output, result, at)
        elif not done:
            known["failed"] = True
        if status == "declined":
            self._declined(ident, at)
        if done:
            if known is not None:
                known.pop("write", None)  # the event's paths are the exact ones
            moved = [as_str(as_dict(change).get("move_path")) for change in changes.values()]
            self._touch(ident, [*changes, *filter(None, moved)], "write", at)

    def asked_server(self, call: object, event: Record, at: RecordPlace) -> None:
        ident = as_str(call)
        result = as_dict(event.get("result"))
        failed = "Err" in result or event.get("status") == "failed"
        failed = failed or bool(as_dict(result.get("Ok", result)).get("isError"))
        known = self.known.get(ident)
        if known is None and ident:
            asked = as_dict(event.get("invocation")) or event
            name = f"mcp__{as_str(asked.get('server'))}__{as_str(asked.get('tool'))}"
            outcome: Record = {"failed": True} if failed else {}
            answer = result or event.get("error")
            self._nested(ident, name, as_dict(asked.get("arguments")), flatten(answer), outcome, at)
        elif known is not None and failed:
            known["failed"] = True

    def _nested(
        self, ident: str, name: str, given: Record, output: str, result: Record, at: RecordPlace
    ) -> None:
        """A tool that a script of the model called: only its end is written down."""
        data = {"id": ident, "input": given, "nested": True}
        at.add("tool.call", at.key(ident), "assistant", flatten(given), name, data)
        at.add("tool.result", at.key(ident, "result"), "tool", output, data={"id": ident, **result})
        self._remember(ident, {"mark": ident})

    # -- subagents and approvals -----------------------------------------------------------------

    def activity(self, item: Record, at: RecordPlace) -> None:
        ident = as_str(item.get("id")) or as_str(item.get("event_id"))
        kind, thread = item.get("kind"), item.get("agent_thread_id")
        name = as_str(item.get("agent_path"))
        if kind == "started" or item.get("tool") in ("spawn_agent", "spawnAgent"):
            if ident not in self.known:  # else the call itself told
                thread = thread or next(iter(as_list(item.get("receiver_thread_ids"))), None)
                task = as_str(item.get("prompt"))
                data = {"id": ident, "session": thread, "prompt": task}
                at.add("subagent.started", at.key(ident, "sub"), "assistant", task, name, data)
        elif kind in ("completed", "interrupted", "failed", "errored", "shutdown", "closed"):
            data = {"session": thread, "status": kind}
            at.add("subagent.stopped", at.key(ident, "stopped"), "subagent", "", name, data)

    def approval(self, event: Record, at: RecordPlace) -> None:
        ident = as_str(event.get("call_id"))
        text = _command(event.get("command")) or as_str(event.get("reason"))
        at.add(
            "approval.requested",
            at.key(ident, "approval"),
            "assistant",
            text,
            data={"id": ident or None},
        )

    def assessed(self, event: Record, at: RecordPlace) -> None:
        ident, status = (
            as_str(event.get("target_item_id")) or as_str(event.get("id")),
            event.get("status"),
        )
        if status in ("approved", "denied"):
            data = {"id": ident, "decision": status}
            at.add("approval.resolved", at.key(ident, "assessed"), "system", data=data)

    def _declined(self, ident: str, at: RecordPlace) -> None:
        at.add(
            "approval.resolved",
            at.key(ident, "denied"),
            "user",
            data={"id": ident, "decision": "denied"},
        )


def _name(item: Record) -> str:
    name, space = as_str(item.get("name")), as_str(item.get("namespace"))
    if space.startswith("mcp__"):
        return f"{space.rstrip('_')}__{name}"
    return name or as_str(item.get("type")).removesuffix("_call")


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
    """`bash -lc "…"` is how the program starts what the model asked for."""
    words = [str(word) for word in as_list(command)]
    if len(words) == 3 and words[1] in ("-c", "-lc"):
        return words[2]
    if not words:
        return as_str(command)
    import shlex  # for the few that are no shell's

    return shlex.join(words)

"""From what an agent tells its hook to what the hook prints. Loaded by the hook, which knows no
other module of this package."""

import json
from os.path import lexists, realpath

from whyfor.story.rules.bash_parser import load_parser
from whyfor.story.rules.decide import (
    ALLOW,
    DENY,
    CommandRequest,
    DecisionRule,
    judge_command,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_PLAN = "plan"
_MESSAGE = "A rule of the person you work for denies this: {}"


class HookReply:
    """What a hook prints, and what it writes down of it."""

    __slots__ = ("agent", "facts", "printed")

    def __init__(self, agent: str, facts: "dict[str, Any]", printed: bytes) -> None:
        self.agent = agent
        self.facts = facts
        self.printed = printed


def answer_request(agent: str, payload: bytes, kept: "dict[str, Any]") -> "HookReply | None":
    """Return the reply to a request; None if it is not about a command."""
    form = kept["formats"].get(agent)
    told = json.loads(payload)
    if form is None or not isinstance(told, dict) or told.get(form["tool"]) not in form["shells"]:
        return None
    given = told.get(form["given"])
    command = given.get("command") if isinstance(given, dict) else None
    if not isinstance(command, str):
        return None
    cwd = told.get("cwd")
    if not isinstance(cwd, str) or not cwd.startswith("/"):
        return None
    answer, rule, reason = _judged(agent, command, cwd, told, kept)
    facts = {"by": "rule", "answer": answer, "rule": rule, "dry": kept["dry"], "reason": reason}
    return HookReply(agent, facts, _printed(form, answer, rule))


def _judged(
    agent: str, command: str, cwd: str, told: "dict[str, Any]", kept: "dict[str, Any]"
) -> "tuple[str, str, str]":
    form = kept["formats"][agent]
    if any(name not in told for name in form["required"]):
        return "ask", "", "your own settings want you to be asked"
    if any(told[form["given"]].get(name) for name in form["alarming"]):
        return "ask", "", "it asks for more than to run the command"
    if told.get(form["mode"]) == _PLAN:
        return "ask", "", "it only plans"
    top = work_tree(realpath(cwd)) or realpath(cwd)
    rules = [DecisionRule(*fields) for fields in kept["rules"]]
    request = CommandRequest(
        command, agent, kept["places"].get(top, ""), top, realpath(cwd), today()
    )
    request.real_path, request.exists, request.names = realpath, lexists, folder_names
    found = judge_command(request, rules, load_parser(kept["libraries"]))
    return found.answer, found.rule, found.reason


def _printed(form: "dict[str, Any]", answer: str, rule: str) -> bytes:
    """Return an answer as the agent reads it; empty for all but allow and deny."""
    if answer not in (ALLOW, DENY):
        return b""
    decision = {"behavior": answer}
    if answer == DENY:
        decision["message"] = _MESSAGE.format(rule)
    if not form["wrapped"]:
        return encode_reply(decision)
    return encode_reply(
        {"hookSpecificOutput": {"hookEventName": form["event"], "decision": decision}}
    )


def encode_reply(value: "dict[str, Any]") -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def work_tree(folder: str) -> str:
    """Return the nearest folder at or above this one that has a `.git`; empty if none has."""
    from posix import stat

    while folder:
        try:
            stat(folder + "/.git")
        except OSError:
            folder = folder.rpartition("/")[0]
        else:
            return folder
    return ""


def folder_names(folder: str) -> list[str]:
    """Return the names of the files in a folder; none if it cannot be read."""
    from posix import listdir

    try:
        return listdir(folder)
    except OSError:
        return []


def today() -> str:
    from time import localtime

    now = localtime()
    return f"{now.tm_year:04}-{now.tm_mon:02}-{now.tm_mday:02}"

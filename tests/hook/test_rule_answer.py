"""The hook answers by a person's rules, in each agent's words, and is silent whenever it is not
sure."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.cases import check_each
from tests.hook import Installed
from whyfor import config
from whyfor.story.rules.prepare import prepare_rules

RULES = """
mode = "on"
limit_ms = 5000
[[rule]]
id = "r1"
run = ["make", "test"]
[[rule]]
id = "r2"
run = ["git", "push"]
decision = "deny"
[[rule]]
id = "r3"
project = "github.com/acme/shop"
run = ["npm", "test"]
"""
UNSAFE = {"dangerouslyDisableSandbox": True}
ALLOW = {"hookEventName": "PermissionRequest", "decision": {"behavior": "allow"}}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "shop"
    (folder / "src").mkdir(parents=True)
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
    return folder


def write_rules(hook: Installed, text: str = RULES) -> Path:
    path = hook.home / "rules.toml"
    path.write_text(text)
    path.chmod(0o600)
    hook.home.chmod(0o700)
    prepare_rules(config.load({"WHYFOR_HOME": str(hook.home), "HOME": str(hook.home)}), None)
    return path


def asks(command: str, cwd: Path, **more: Any) -> dict[str, Any]:
    return {
        "session_id": "s-1",
        "cwd": str(cwd),
        "hook_event_name": "PermissionRequest",
        "permission_mode": "default",
        "tool_name": "Bash",
        "tool_input": {"command": command},
        "permission_suggestions": [],
        **more,
    }


def run(hook: Installed, payload: Any, agent: str = "claude") -> bytes:
    event = "permissionRequest" if agent == "copilot" else "PermissionRequest"
    raw = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    done = hook.run(agent, "--rules", event, payload=raw, cwd=hook.home)
    assert (done.returncode, done.stderr) == (0, b"")
    return done.stdout


def recorded(hook: Installed) -> dict[str, Any]:
    """Return what the last line of the spool says was answered."""
    return dict(hook.lines()[-1].header.get("answer", {}))


def test_a_rule_answers_in_each_agents_words_and_that_is_written_down(
    hook: Installed, project: Path
) -> None:
    write_rules(hook)
    for agent in ("claude", "codex"):
        assert (
            json.loads(run(hook, asks("make test", project), agent))["hookSpecificOutput"] == ALLOW
        )
        assert recorded(hook) | {"ms": 0} == {
            "by": "rule",
            "answer": "allow",
            "rule": "r1",
            "dry": False,
            "reason": "every program of it is allowed",
            "ms": 0,
        }
    told = {"sessionId": "s-1", "cwd": str(project), "toolName": "bash"}
    request = {**told, "toolInput": {"command": "make test"}}
    assert json.loads(run(hook, request, "copilot")) == {"behavior": "allow"}
    refused = json.loads(run(hook, asks("git push", project)))["hookSpecificOutput"]["decision"]
    assert refused["behavior"] == "deny" and "r2" in refused["message"]


def test_whatever_is_not_certain_prints_nothing(hook: Installed, project: Path) -> None:
    write_rules(hook)
    sure = asks("make test", project)
    without = {name: value for name, value in sure.items() if name != "permission_suggestions"}
    cases: list[tuple[str, Any]] = [
        ("another command", asks("make deploy", project)),
        ("a part of it", asks("make test; touch x", project)),
        ("a project that is not known", asks("npm test", project)),
        ("the person's own ask rule", without),
        ("plan mode", {**sure, "permission_mode": "plan"}),
        (
            "outside its sandbox",
            asks("make test", project, tool_input={**sure["tool_input"], **UNSAFE}),
        ),
        ("another tool", {**sure, "tool_name": "Write"}),
        ("no command", {**sure, "tool_input": {}}),
        ("no folder", {**sure, "cwd": None}),
        ("half a payload", json.dumps(sure).encode()[:-10]),
        ("no JSON", b"\xff\xfe"),
        ("a list", b"[1]"),
        ("private text", asks("make test <private>x</private>", project)),
        ("too deep", b"[" * 100_000),
    ]

    def check(payload: Any) -> None:
        assert run(hook, payload) == b""

    check_each(cases, check)
    assert json.loads(run(hook, sure)), "the same rules answer what they are sure of"


def test_rules_that_others_could_have_written_answer_nothing(
    hook: Installed, project: Path
) -> None:
    path = write_rules(hook)
    request = asks("make test", project)
    assert run(hook, request)
    path.chmod(0o622)
    assert run(hook, request) == b""
    path.chmod(0o600)
    assert run(hook, request)
    (hook.folder / "rules.bin").chmod(0o666)
    assert run(hook, request) == b""
    (hook.folder / "rules.bin").chmod(0o600)
    path.write_text(RULES.replace("test", "deploy"))
    assert run(hook, request) == b"", "changed since it was prepared"
    write_rules(hook)
    assert run(hook, request)
    path.rename(hook.home / "elsewhere")
    path.symlink_to(hook.home / "elsewhere")
    assert run(hook, request) == b"", "a link"


def test_a_dry_run_writes_down_what_it_would_have_said(hook: Installed, project: Path) -> None:
    write_rules(hook, RULES.replace('"on"', '"dry-run"'))
    assert run(hook, asks("make test", project)) == b""
    assert (recorded(hook)["answer"], recorded(hook)["dry"]) == ("allow", True)
    assert run(hook, asks("ls *", project)) == b""
    assert (recorded(hook)["answer"], recorded(hook)["dry"]) == ("abstain", True)
    write_rules(hook, RULES.replace('"on"', '"off"'))
    assert run(hook, asks("make test", project)) == b""
    assert recorded(hook) == {}


def test_without_the_package_or_its_libraries_the_hook_is_silent(
    hook: Installed, project: Path
) -> None:
    import marshal

    write_rules(hook)
    path = hook.folder / "rules.bin"
    form, kept = marshal.loads(path.read_bytes())
    broken = [
        ("no package", {**kept, "package": str(hook.home)}),
        ("no library", {**kept, "libraries": ["/nowhere.so", "/nowhere.so"]}),
        ("a text for a library", {**kept, "libraries": [str(hook.home / "rules.toml")] * 2}),
        ("no rules", {name: kept[name] for name in ("file", "stamp", "package")}),
    ]

    def check(content: dict[str, Any]) -> None:
        path.write_bytes(marshal.dumps((form, content)))
        assert run(hook, asks("make test", project)) == b""

    check_each(broken, check)
    path.write_bytes(b"\x00garbage")
    assert run(hook, asks("make test", project)) == b""
    assert len(hook.lines()) == len(broken) + 1, "all are written down"

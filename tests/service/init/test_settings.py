"""Agents' settings: merged, kept, and put back byte for byte."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.conftest import Result
from whyfor.agents.claude.facts import HOOKS as CLAUDE
from whyfor.agents.codex.facts import HOOKS as CODEX
from whyfor.agents.copilot.facts import HOOKS as COPILOT
from whyfor.agents.facts import Hookable
from whyfor.agents.gemini.facts import HOOKS as GEMINI
from whyfor.agents.hooks import (
    MARK,
    Unmergeable,
    commands,
    hookable,
    merge,
    remove,
    same_but_for_ours,
)
from whyfor.config import Settings
from whyfor.service.init import InitOptions, init, uninstall

Cli = Callable[..., Result]
AGENTS = st.sampled_from(list(hookable().values()))
SCALARS = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=8)
JSON = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner)
)
HANDLER = st.fixed_dictionaries(
    {"type": st.just("command"), "command": st.text(max_size=20)}, optional={"timeout": JSON}
)
GROUP = st.fixed_dictionaries(
    {"hooks": st.lists(HANDLER, max_size=2)}, optional={"matcher": st.text(max_size=5)}
)
EVENTS = st.sampled_from(
    "Stop SessionStart PostToolUse AfterTool agentStop PreToolUse Unheard".split()
)
HOOKS = st.dictionaries(EVENTS, st.lists(GROUP | HANDLER | JSON, max_size=3))
LAYOUTS = st.sampled_from([None, 0, 1, 2, 4, "\t", "   "])


@st.composite
def settings_files(draw: st.DrawFn) -> bytes:
    """What a settings file may hold, in any manner of writing it."""
    data: dict[str, Any] = draw(
        st.dictionaries(st.text(max_size=6).filter(lambda key: key != "hooks"), JSON, max_size=4)
    )
    keys = list(data)
    if draw(st.booleans()):
        data["hooks"] = draw(HOOKS)
        keys.insert(draw(st.integers(0, len(keys))), "hooks")
    text = json.dumps(
        {key: data[key] for key in keys}, indent=draw(LAYOUTS), ensure_ascii=draw(st.booleans())
    )
    # hypothesis takes words from our own source; what bears our mark is ours
    assume(MARK not in text)
    text += draw(st.sampled_from(["", "\n", "\n\n", "  \n"]))
    if draw(st.booleans()):
        text = text.replace("\n", "\r\n")
    return draw(st.sampled_from([b"", b"\xef\xbb\xbf"])) + text.encode("utf-8", "surrogatepass")


def added(content: bytes, agent: Hookable) -> bytes:
    return merge(content, agent, lambda on: f"run {on.event} {MARK}")


@given(settings_files() | st.sampled_from([b"", b"\n", b"{}"]), AGENTS)
def test_what_was_there_stays_in_its_order_and_ours_come_after(
    content: bytes, agent: Hookable
) -> None:
    before = (
        json.loads(content.decode("utf-8-sig") or "{}") if content.strip() else dict(agent.empty)
    )
    after = json.loads(added(content, agent).decode("utf-8-sig"))
    assert [key for key in after if key in before] == list(before)
    assert {key: value for key, value in after.items() if key != "hooks"} == {
        key: value for key, value in before.items() if key != "hooks"
    }
    for event, entries in before.get("hooks", {}).items():
        assert after["hooks"][event][: len(entries)] == entries
    wanted = {on.event for on in agent.events if not on.only_snapshot}
    assert set(commands(added(content, agent), agent)) == wanted


@given(settings_files(), AGENTS)
def test_a_second_time_changes_nothing(content: bytes, agent: Hookable) -> None:
    once = added(content, agent)
    assert added(once, agent) == once


@given(settings_files() | st.sampled_from([b"", b"{}"]), AGENTS)
def test_taken_out_again_it_says_what_it_said(content: bytes, agent: Hookable) -> None:
    assert same_but_for_ours(added(content, agent), content, agent)
    out = json.loads(remove(added(content, agent), agent).decode("utf-8-sig"))
    before = json.loads(content.decode("utf-8-sig")) if content.strip() else dict(agent.empty)
    hooks = {event: entries for event, entries in before.pop("hooks", {}).items() if entries}
    kept = {event: entries for event, entries in out.pop("hooks", {}).items() if entries}
    assert (out, kept) == (before, hooks)


def test_an_entry_of_an_older_version_is_replaced_where_it_stands() -> None:
    other = {"hooks": [{"type": "command", "command": "theirs"}]}
    old = {"hooks": [{"type": "command", "command": f"old {MARK}"}]}
    content = json.dumps({"hooks": {"Stop": [old, other], "Forgotten": [old]}}).encode()
    after = json.loads(added(content, CLAUDE))["hooks"]
    assert [group["hooks"][0]["command"] for group in after["Stop"]] == [
        f"run Stop {MARK}",
        "theirs",
    ]
    assert "Forgotten" not in after


def test_a_command_somebody_put_into_our_group_stays() -> None:
    group = {
        "hooks": [
            {"type": "command", "command": f"old {MARK}"},
            {"type": "command", "command": "theirs"},
        ]
    }
    content = json.dumps({"hooks": {"Stop": [group]}}).encode()
    after = json.loads(added(content, CLAUDE))["hooks"]["Stop"]
    assert [[handler["command"] for handler in entry["hooks"]] for entry in after] == [
        ["theirs"],
        [f"run Stop {MARK}"],
    ]


@pytest.mark.parametrize("indent", ["  ", "    ", "\t"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_the_files_own_manner_is_kept(indent: str, end: str) -> None:
    content = f'{{{end}{indent}"model": "größer"{end}}}{end}'.encode()
    text = added(content, CLAUDE).decode()
    assert (
        f'{{{end}{indent}"model": "größer",{end}{indent}"hooks": {{{end}{indent * 2}"SessionStart"'
        in text
    )
    assert text.endswith(f"}}{end}")
    assert end == "\n" or text.count("\n") == text.count("\r\n")


@pytest.mark.parametrize(
    "content",
    [
        b"{",
        b"[]",
        b'{"hooks": []}',
        b'{"hooks": {"Stop": {}}}',
        b'{"a": 1, "a": 2}',
        b'{"a": 1e5}',
        b'{"a": -0}',
        b'{"a": NaN}',
        b'{"a": "\\ud800"}',
        b'{"a": "\xff"}',
        b'{"a": // comment\n 1}',
        b"[" * 100_000,
    ],
)
def test_what_could_not_be_kept_as_it_is_is_left_alone(content: bytes) -> None:
    with pytest.raises(Unmergeable):
        added(content, CLAUDE)


def test_each_agent_has_its_own_unit_and_shape() -> None:
    made = {agent.agent: json.loads(added(b"", agent))["hooks"] for agent in hookable().values()}
    assert made["claude"]["PostToolUse"][0]["matcher"] == "Bash|AskUserQuestion|Task|Agent"
    assert made["claude"]["Stop"][0]["hooks"][0]["timeout"] == 5
    assert made["gemini"]["AfterTool"][0]["hooks"][0]["timeout"] == 5000
    assert "matcher" not in made["codex"]["Stop"][0]
    assert made["copilot"]["agentStop"] == [
        {"type": "command", "bash": f"run agentStop {MARK}", "timeoutSec": 5}
    ]
    assert json.loads(added(b"", COPILOT))["version"] == 1


@pytest.mark.parametrize("agent", hookable().values(), ids=lambda agent: agent.agent)
def test_an_agents_own_variable_moves_its_folder(agent: Hookable, tmp_path: Path) -> None:
    variable = {
        "claude": "CLAUDE_CONFIG_DIR",
        "codex": "CODEX_HOME",
        "gemini": "GEMINI_CLI_HOME",
        "copilot": "COPILOT_HOME",
        "qwen": "QWEN_HOME",
        "grok": "GROK_HOME",
        "droid": "",  # it has none
    }[agent.agent]
    assert agent.folder(tmp_path, {}).parent == tmp_path
    if not variable:
        return
    elsewhere = agent.folder(tmp_path, {variable: "/code/elsewhere"})
    assert elsewhere == Path("/code/elsewhere/.gemini" if agent is GEMINI else "/code/elsewhere")


# -- the files themselves ------------------------------------------------------------------------

CONTENTS = [
    None,
    b"",
    b"{}",
    b'{"model":"x"}\r\n',
    b'\xef\xbb\xbf{\n\t"hooks": {"Stop": []}\n}',
    b'{"hooks":{}}',
]


def snapshot(folder: Path) -> dict[str, tuple[int, bytes]]:
    return {
        str(path.relative_to(folder)): (
            path.lstat().st_mode,
            path.read_bytes() if path.is_file() else b"",
        )
        for path in folder.rglob("*")
    }


@pytest.mark.parametrize("content", CONTENTS)
@pytest.mark.parametrize("mode", [0o600, 0o644])
def test_uninstall_puts_every_byte_and_mode_back(
    home: Path, tmp_path: Path, settings: Settings, content: bytes | None, mode: int
) -> None:
    for agent in hookable().values():
        path = agent.folder(home, {}) / agent.file
        agent.folder(home, {}).mkdir()
        if content is not None:
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(content)
            path.chmod(mode)
    before = snapshot(home)
    first = init(settings, tmp_path, InitOptions(annotate=True))
    assert [step.state for step in first.steps if step.kind == "agent" and step.file] == [
        "installed"
    ] * len(hookable())
    installed = snapshot(home)
    again = init(settings, tmp_path)
    assert {step.state for step in again.steps if step.file} == {"unchanged"}
    assert snapshot(home) == installed
    if content is not None:
        assert installed[".claude/settings.json"][0] & 0o777 == mode
    uninstall(settings, tmp_path)
    assert snapshot(home) == before


def test_a_link_stays_a_link(home: Path, tmp_path: Path, settings: Settings) -> None:
    target = tmp_path / "dotfiles" / "claude.json"
    target.parent.mkdir()
    target.write_text('{"model": "x"}')
    (home / ".claude").mkdir()
    link = home / ".claude" / "settings.json"
    link.symlink_to(target)
    init(settings, tmp_path)
    assert link.is_symlink()
    assert b"# whyfor" in target.read_bytes()
    uninstall(settings, tmp_path)
    assert link.is_symlink()
    assert target.read_text() == '{"model": "x"}'


def test_what_somebody_changed_since_stays_when_ours_go(
    home: Path, tmp_path: Path, settings: Settings
) -> None:
    path = home / ".claude" / "settings.json"
    path.parent.mkdir()
    path.write_text('{"model": "x"}')
    init(settings, tmp_path)
    data = json.loads(path.read_text())
    data["theme"] = "dark"
    data["hooks"]["Stop"].insert(0, {"hooks": [{"type": "command", "command": "mine"}]})
    path.write_text(json.dumps(data))
    (step,) = [step for step in uninstall(settings, tmp_path).steps if step.name == "claude"]
    assert "changed since" in step.note
    assert json.loads(path.read_text()) == {
        "model": "x",
        "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "mine"}]}]},
        "theme": "dark",
    }


def test_a_file_we_made_stays_when_somebody_uses_it(
    home: Path, tmp_path: Path, settings: Settings
) -> None:
    (home / ".codex").mkdir()
    init(settings, tmp_path)
    path = home / ".codex" / "hooks.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "description": "mine"}))
    uninstall(settings, tmp_path)
    assert json.loads(path.read_text()) == {"description": "mine"}


def test_settings_that_are_not_json_are_left_alone_and_the_others_go_on(
    home: Path, tmp_path: Path, cli: Cli
) -> None:
    for name in (".claude", ".gemini"):
        (home / name).mkdir()
    (home / ".claude" / "settings.json").write_text('{"model": "x",}')
    result = cli("init", "--json").json
    steps = {step["name"]: step for step in result["steps"]}
    assert steps["claude"]["state"] == "failed"
    assert "not valid JSON (line 1" in steps["claude"]["note"]
    assert steps["gemini"]["state"] == "installed"
    assert (home / ".claude" / "settings.json").read_text() == '{"model": "x",}'
    assert "not valid JSON" in cli("init").out


def test_the_original_survives_a_lost_record(
    home: Path, tmp_path: Path, settings: Settings
) -> None:
    path = home / ".claude" / "settings.json"
    path.parent.mkdir()
    path.write_text('{\n  "model": "x"\n}\n')
    init(settings, tmp_path)
    (settings.home / "hook" / "installed.json").unlink()
    init(settings, tmp_path)
    uninstall(settings, tmp_path)
    assert path.read_text() == '{\n  "model": "x"\n}\n'


def test_uninstall_finds_ours_when_our_folder_was_deleted(
    home: Path, tmp_path: Path, settings: Settings
) -> None:
    for name in (".claude", ".gemini"):
        (home / name).mkdir()
    (home / ".claude" / "settings.json").write_text('{\n  "model": "x"\n}\n')
    before = snapshot(home)
    init(settings, tmp_path)
    shutil.rmtree(settings.home)
    uninstall(settings, tmp_path)
    assert snapshot(home) == before


def test_dry_run_says_the_same_and_writes_nothing(
    home: Path, tmp_path: Path, cli: Cli, settings: Settings
) -> None:
    (home / ".claude").mkdir()
    (home / ".gemini").mkdir()
    before = snapshot(tmp_path)
    told = cli("init", "--dry-run", "--annotate", "--json").json
    assert snapshot(tmp_path) == before
    done = cli("init", "--annotate", "--json").json
    assert told["steps"] == done["steps"]
    assert told["ingest"] is None
    between = snapshot(tmp_path)
    told = cli("uninstall", "--dry-run", "--json").json
    assert snapshot(tmp_path) == between
    assert told["steps"] == cli("uninstall", "--json").json["steps"]
    assert not any((settings.home / "hook").iterdir())


def test_annotation_is_asked_for_only_where_an_answer_counts_and_until_told_otherwise(
    home: Path, cli: Cli
) -> None:
    (home / ".claude").mkdir()
    (home / ".codex").mkdir()
    path = home / ".claude" / "settings.json"
    skill = home / ".claude" / "skills" / "whyfor-note" / "SKILL.md"
    cli("init", "--annotate")
    asking = {
        event
        for event, command in commands(path.read_bytes(), CLAUDE).items()
        if "--annotate" in command
    }
    assert asking == {"PostToolUse"}
    assert skill.read_text().startswith("---\nname: whyfor-note\n")
    assert (
        "--annotate PostToolUse"
        in commands((home / ".codex" / "hooks.json").read_bytes(), CODEX)["PostToolUse"]
    )
    cli("init")
    assert "--annotate" in path.read_text()
    cli("init", "--no-annotate")
    assert "--annotate" not in path.read_text()
    assert not skill.exists()
    assert not (home / ".claude" / "skills").exists()


def test_only_agents_that_are_there_get_hooks_unless_named(home: Path, cli: Cli) -> None:
    (home / ".gemini").mkdir()
    states = {
        step["name"]: step["state"]
        for step in cli("init", "--json").json["steps"]
        if step["kind"] == "agent"
    }
    assert states["gemini"] == "installed"
    assert states["copilot"] == states["opencode"] == "absent"
    cli("init", "--agent", "copilot", "--no-git")
    assert (home / ".copilot" / "hooks" / "whyfor.json").exists()
    assert cli("init", "--agent", "nobody").code == 2


def test_twice_uninstalled_there_is_nothing_to_do(home: Path, cli: Cli) -> None:
    (home / ".claude").mkdir()
    cli("init")
    assert cli("uninstall").code == 0
    again = cli("uninstall")
    assert (again.code, again.out) == (0, "Nothing to do: no hooks of ours here.\n")

"""Rules in agents' own settings: added once, beside what is there, and never for what no rule can
allow."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cases import check_each
from whyfor import config
from whyfor.model.errors import BadInput
from whyfor.service.rules import add_native_rule

RUN = ["npm", "test"]


@pytest.fixture
def settings(tmp_path: Path) -> config.Settings:
    home = tmp_path / "home"
    home.mkdir(exist_ok=True)
    return config.load({"HOME": str(home), "WHYFOR_HOME": str(tmp_path / "whyfor")})


def test_a_rule_is_written_in_each_agents_own_words(settings: config.Settings) -> None:
    cases = [
        ("claude", (".claude/settings.json", '"Bash(npm test:*)"')),
        ("codex", (".codex/rules/default.rules", 'pattern=["npm", "test"], decision="allow"')),
        ("gemini", (".gemini/policies/whyfor.toml", 'commandPrefix = "npm test"')),
        ("opencode", (".config/opencode/opencode.json", '"npm test*": "allow"')),
    ]

    def check(case: tuple[str, str]) -> None:
        agent = next(name for name, each in cases if each == case)
        path = add_native_rule(settings, agent, RUN)
        assert path == settings.user_home / case[0]
        once = path.read_text()
        assert case[1] in once
        assert add_native_rule(settings, agent, RUN).read_text() == once
        assert case[1] in add_native_rule(settings, agent, ["make", "lint"]).read_text()

    check_each(cases, check)


def test_what_is_there_stays_and_what_cannot_be_read_is_left(settings: config.Settings) -> None:
    claude = settings.user_home / ".claude" / "settings.json"
    claude.parent.mkdir()
    claude.write_text('{\n    "theme": "x",\n    "permissions": {"deny": ["Read(.env)"]}\n}\n')
    add_native_rule(settings, "claude", RUN)
    found = json.loads(claude.read_text())
    assert found == {
        "theme": "x",
        "permissions": {"deny": ["Read(.env)"], "allow": ["Bash(npm test:*)"]},
    }
    opencode = settings.user_home / ".config" / "opencode" / "opencode.json"
    opencode.parent.mkdir(parents=True)
    opencode.write_text('{"permission": {"bash": "ask"}}')
    add_native_rule(settings, "opencode", RUN)
    assert json.loads(opencode.read_text())["permission"]["bash"] == {
        "*": "ask",
        "npm test*": "allow",
    }
    claude.write_text('{"permissions": // mine\n{}}')
    with pytest.raises(BadInput, match="was not changed"):
        add_native_rule(settings, "claude", RUN)
    assert "// mine" in claude.read_text()


def test_no_agent_is_told_to_allow_what_no_rule_can(settings: config.Settings) -> None:
    for run in (["rm"], ["git", "push"], ["python3"], ["git"]):
        with pytest.raises(BadInput, match="cannot be"):
            add_native_rule(settings, "claude", run)
    with pytest.raises(BadInput, match="no rules of its own"):
        add_native_rule(settings, "copilot", RUN)
    assert not (settings.user_home / ".claude").exists()

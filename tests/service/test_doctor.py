"""doctor fires what init installed, and says what does not work."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Result
from tests.service.init.tools import Spool, git, script
from tests.service.restore.test_codex import planted
from tests.transcripts import Transcript
from whyfor.agents.codex.facts import HOOKS as CODEX
from whyfor.agents.gemini.facts import HOOKS as GEMINI
from whyfor.agents.hooks import commands
from whyfor.capture import hook_files
from whyfor.config import Settings

Cli = Callable[..., Result]


@pytest.fixture
def installed(home: Path, repo: Path, cli: Cli) -> None:
    for name in (".claude", ".gemini", ".copilot"):
        (home / name).mkdir()
    assert cli("init").code == 0


def hooks(result: Result) -> dict[str, dict[str, Any]]:
    return {hook["name"]: hook for hook in result.json["hooks"]}


@pytest.mark.usefixtures("installed")
def test_every_installed_hook_is_fired_and_arrives(
    cli: Cli, tmp_path: Path, repo: Path, settings: Settings
) -> None:
    script(repo / ".git" / "hooks" / "post-commit.whyfor-chained", f"touch {tmp_path}/ran")
    result = cli("doctor", "--json")
    found = hooks(result)
    assert result.code == 0
    assert {name: hook["state"] for name, hook in found.items()} == dict.fromkeys(
        ("ingest", "claude", "gemini", "copilot", "git"), "ok"
    )
    assert len(found["claude"]["arrived"]) == 11
    assert sorted(found["gemini"]["arrived"]) == sorted(
        on.event for on in GEMINI.events if not on.only_snapshot
    )
    assert sorted(found["git"]["arrived"]) == [
        "post-checkout",
        "post-commit",
        "post-merge",
        "post-rewrite",
        "pre-push",
    ]
    assert not (tmp_path / "ran").exists()  # a probe is no commit: nobody else's hook runs
    assert not (settings.home / "hook" / "pending").exists()  # and no ingest is started for it
    assert "git" in cli("doctor").out


def test_without_init_nothing_is_fired(cli: Cli, settings: Settings) -> None:
    assert cli("doctor", "--json").json["hooks"] == []
    assert not (settings.home / "spool").exists()


@pytest.mark.usefixtures("installed")
def test_an_entry_somebody_took_out_is_missed(cli: Cli, home: Path) -> None:
    path = home / ".claude" / "settings.json"
    data = json.loads(path.read_text())
    del data["hooks"]["Stop"]
    path.write_text(json.dumps(data))
    result = cli("doctor", "--json")
    assert result.code == 1
    assert hooks(result)["claude"]["state"] == "missing"
    assert "no hook of ours for Stop" in hooks(result)["claude"]["what"]
    assert "whyfor init" in hooks(result)["claude"]["next"]
    path.unlink()
    assert hooks(cli("doctor", "--json"))["claude"]["state"] == "missing"
    path.write_text("{")
    assert hooks(cli("doctor", "--json"))["claude"]["state"] == "broken"


def test_an_interpreter_that_moved_is_named(
    home: Path, repo: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / ".gemini").mkdir()
    with monkeypatch.context() as patch:
        patch.setattr(hook_files, "interpreter", lambda: "/code/gone/python3")
        cli("init")
    result = cli("doctor", "--json")
    assert result.code == 1
    assert hooks(result)["gemini"]["state"] == "broken"
    assert hooks(result)["gemini"]["arrived"] == []
    assert hooks(result)["git"]["state"] == "broken"
    cli("init")
    assert {hook["state"] for hook in cli("doctor", "--json").json["hooks"]} == {"ok"}


def test_another_interpreter_that_still_works_is_only_worth_knowing(
    home: Path, cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / ".gemini").mkdir()
    other = tmp_path / "python"
    other.symlink_to(hook_files.interpreter())
    with monkeypatch.context() as patch:
        patch.setattr(hook_files, "interpreter", lambda: str(other))
        cli("init")
    result = cli("doctor", "--json")
    assert (result.code, hooks(result)["gemini"]["state"]) == (0, "stale")
    assert "interpreter is another" in hooks(result)["gemini"]["what"]


@pytest.mark.usefixtures("installed")
def test_hooks_that_something_else_replaced_are_missed_until_init(cli: Cli, repo: Path) -> None:
    git(repo, "config", "core.hooksPath", ".husky/_")
    result = cli("doctor", "--json")
    assert (result.code, hooks(result)["git"]["state"]) == (1, "missing")
    cli("init")
    assert hooks(cli("doctor", "--json"))["git"]["state"] == "ok"
    script(repo / ".git" / "whyfor-hooks" / "post-commit", "true")
    assert "post-commit" in hooks(cli("doctor", "--json"))["git"]["what"]


@pytest.mark.usefixtures("installed")
def test_files_of_ours_that_are_gone_or_old_are_named(cli: Cli, settings: Settings) -> None:
    folder = settings.home / "hook"
    (folder / "hook.py").write_text((folder / "hook.py").read_text() + "# old\n")
    result = cli("doctor", "--json")
    assert (result.code, hooks(result)["ingest"]["state"]) == (0, "stale")
    (folder / "launch").write_text("/code/gone/python\n-I\n")
    result = cli("doctor", "--json")
    assert (result.code, hooks(result)["ingest"]["state"]) == (1, "broken")
    assert "/code/gone/python" in hooks(result)["ingest"]["what"]
    (folder / "announce.py").unlink()
    result = cli("doctor", "--json")
    assert hooks(result)["claude"]["state"] == hooks(result)["git"]["state"] == "broken"
    cli("init")
    assert cli("doctor").code == 0


@pytest.mark.usefixtures("installed")
def test_a_hook_that_speaks_is_broken(cli: Cli, home: Path) -> None:
    path = home / ".gemini" / "settings.json"
    path.write_text(
        path.read_text().replace(
            "--agent gemini SessionEnd 2>/dev/null", "--agent gemini SessionEnd; echo hi"
        )
    )
    result = cli("doctor", "--json")
    assert hooks(result)["gemini"]["state"] == "broken"
    assert "SessionEnd ended with 0 and said: hi" in hooks(result)["gemini"]["what"]


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    ("agent", "file", "setting"),
    [
        ("claude", ".claude/settings.json", {"disableAllHooks": True}),
        ("gemini", ".gemini/settings.json", {"hooksConfig": {"enabled": False}}),
        ("copilot", ".copilot/hooks/whyfor.json", {"disableAllHooks": True}),
    ],
)
def test_hooks_a_person_turned_off_are_told(
    cli: Cli, home: Path, agent: str, file: str, setting: dict[str, Any]
) -> None:
    path = home / file
    path.write_text(json.dumps({**json.loads(path.read_text()), **setting}))
    found = hooks(cli("doctor", "--json"))
    assert (found[agent]["state"], found["git"]["state"]) == ("silent", "ok")
    assert "turned off" in found[agent]["what"]


def test_codex_hooks_nobody_trusted_are_named_with_the_missing_step(home: Path, cli: Cli) -> None:
    (home / ".codex").mkdir()
    assert "/hooks" in cli("init").out
    result = cli("doctor", "--json")
    assert (result.code, hooks(result)["codex"]["state"]) == (0, "untrusted")
    assert "/hooks" in hooks(result)["codex"]["next"]
    path = home / ".codex" / "hooks.json"
    names = {
        "SessionStart": "session_start",
        "UserPromptSubmit": "user_prompt_submit",
        "PostToolUse": "post_tool_use",
        "PermissionRequest": "permission_request",
        "SubagentStop": "subagent_stop",
        "PreCompact": "pre_compact",
        "SessionEnd": "session_end",
    }
    trusted = [
        f'[hooks.state."{path}:{name}:0:0"]\ntrusted_hash = "sha256:00"\n'
        for name in names.values()
    ]
    (home / ".codex" / "config.toml").write_text("".join(trusted))
    assert set(commands(path.read_bytes(), CODEX)) == {*names, "Stop"}
    assert hooks(cli("doctor", "--json"))["codex"]["what"].startswith(
        "Codex was not told to trust our hooks for Stop;"
    )
    (home / ".codex" / "config.toml").write_text(
        "".join([*trusted, f'[hooks.state."{path}:stop:0:0"]\n'])
    )
    assert hooks(cli("doctor", "--json"))["codex"]["state"] == "ok"


def test_codex_hooks_nobody_trusted_stay_untrusted_once_codex_has_run(home: Path, cli: Cli) -> None:
    (home / ".codex").mkdir()
    cli("init")
    planted(day="2099-01-01").save(home)
    cli("ingest")
    result = cli("doctor", "--json")
    found = hooks(result)["codex"]
    assert (result.code, found["state"], found["unheard"]) == (1, "untrusted", True)
    assert "was not told to trust our hooks" in found["what"] and "/hooks" in found["next"]
    assert "estart it" not in found["next"]

    path = home / ".codex" / "hooks.json"
    names = [
        re.sub("(?<!^)([A-Z])", r"_\1", name).lower() for name in commands(path.read_bytes(), CODEX)
    ]
    state = "".join(f'[hooks.state."{path}:{name}:0:0"]\n' for name in names)
    (home / ".codex" / "config.toml").write_text(state)
    found = hooks(cli("doctor", "--json"))["codex"]
    assert found["state"] == "silent"
    assert found["next"].startswith("Start codex, type /hooks"), "a changed hook is skipped, too"


def test_an_agent_whose_hooks_are_never_heard_is_named(
    home: Path, cli: Cli, spool: Spool, settings: Settings
) -> None:
    (home / ".claude").mkdir()
    cli("init")
    Transcript("before", day="2020-01-01").prompt("Hello")
    old = Transcript("before", day="2020-01-01")
    old.prompt("Hello")
    old.save(home)
    cli("ingest")
    assert hooks(cli("doctor", "--json"))["claude"]["state"] == "ok"
    new = Transcript("after", day="2099-01-01")
    new.prompt("Hello")
    new.save(home)
    cli("ingest")
    result = cli("doctor", "--json")
    assert (result.code, hooks(result)["claude"]["state"]) == (1, "silent")
    assert "none was heard" in hooks(result)["claude"]["what"]
    envelope = {"v": 1, "at": 4_102_444_800_000, "agent": "claude", "event": "Stop"}
    path = next(iter((settings.home / "spool").iterdir()))
    with path.open("a") as file:
        file.write(f"\n{json.dumps(envelope)}\t{{}}\n")
    assert hooks(cli("doctor", "--json"))["claude"]["state"] == "ok"
    cli("ingest")
    assert hooks(cli("doctor", "--json"))["claude"]["state"] == "ok"


@pytest.mark.usefixtures("installed")
def test_a_repository_that_moved_or_was_never_installed_is_told(
    cli: Cli, repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    repo.rename(tmp_path / "moved")
    result = cli("doctor", "--json")
    assert (result.code, hooks(result)["git"]["state"]) == (0, "stale")
    os.chdir(tmp_path / "moved")
    told = [hook["what"] for hook in cli("doctor", "--json").json["hooks"] if hook["name"] == "git"]
    assert "this repository has no hooks of ours" in told


# -- who else can reach it -----------------------------------------------------------------------


def warnings(result: Result) -> list[tuple[str, str]]:
    return [
        (problem["what"], problem["next"])
        for problem in result.json["problems"]
        if not problem["dropped"]
    ]


@pytest.fixture
def stored(home: Path, cli: Cli) -> None:
    said = Transcript("one")
    said.prompt("hello")
    said.save(home)
    assert cli("ingest").code == 0


@pytest.mark.usefixtures("stored")
def test_a_home_of_our_own_making_draws_no_word(cli: Cli) -> None:
    assert warnings(cli("doctor", "--json")) == []


@pytest.mark.parametrize(
    ("mode", "what"),
    [
        (0o777, "change what is recorded"),
        (0o770, "change what"),
        (0o755, "read what is in it"),
        (0o711, "enter it"),
    ],
)
def test_a_home_that_was_open_before_we_came_is_named_until_it_is_closed(
    mode: int, what: str, cli: Cli, home: Path, settings: Settings
) -> None:
    settings.home.mkdir()
    settings.home.chmod(mode)
    cli("ingest")
    ((said, mend),) = warnings(cli("doctor", "--json"))
    assert str(settings.home) in said
    assert what in said
    assert mend == f"Close it: chmod 700 {settings.home}"
    subprocess.run(mend.partition(": ")[2], shell=True, check=True)
    assert warnings(cli("doctor", "--json")) == []


@pytest.mark.usefixtures("stored")
@pytest.mark.parametrize(
    "name", ["whyfor.db", "journal.jsonl", "segments", "spool", "hook", "config.toml"]
)
def test_what_others_can_reach_in_the_home_is_named_and_closed_by_ingest(
    name: str, cli: Cli, settings: Settings
) -> None:
    path = settings.home / name
    if name in ("spool", "hook"):
        path.mkdir(exist_ok=True)
    elif not path.exists():
        path.touch()
    before = path.stat().st_mode & 0o777
    path.chmod(before | 0o066)
    ((said, mend),) = warnings(cli("doctor", "--json"))
    assert str(path) in said
    assert mend == f"Close it: chmod -R go-rwx {path}"
    assert cli("doctor", "--json").code == 0
    cli("ingest")
    assert path.stat().st_mode & 0o777 == before & 0o700
    assert warnings(cli("doctor", "--json")) == []


@pytest.mark.usefixtures("stored")
def test_a_key_others_may_have_read_is_to_be_made_anew(cli: Cli, settings: Settings) -> None:
    token = settings.home / "serve.token"
    token.write_text("key")
    token.chmod(0o644)
    cli("ingest")  # closing it would only hide that it was open
    said = warnings(cli("doctor", "--json"))
    assert [mend for _, mend in said][1:] == [
        f"Delete it, and the next serve makes a new one: rm {token}"
    ]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
@pytest.mark.usefixtures("stored")
def test_a_home_that_belongs_to_somebody_else_is_named(cli: Cli, settings: Settings) -> None:
    os.chown(settings.home, 12345, -1)
    ((said, mend),) = warnings(cli("doctor", "--json"))
    assert "another user (uid 12345)" in said
    assert mend == f"Take it over: sudo chown -R 0 {settings.home}"


@pytest.mark.usefixtures("stored")
def test_a_folder_above_that_everybody_may_write_to_is_named_unless_it_is_sticky(
    cli: Cli, settings: Settings, tmp_path: Path
) -> None:
    try:
        tmp_path.chmod(0o777)
        ((said, mend),) = warnings(cli("doctor", "--json"))
        assert f"{tmp_path}, above {settings.home}" in said
        assert mend.endswith(f": chmod o-w {tmp_path}")
        tmp_path.chmod(0o1777)
        assert warnings(cli("doctor", "--json")) == []
    finally:
        tmp_path.chmod(0o700)


def test_the_server_for_agents_is_started_and_a_tool_is_called(cli: Cli) -> None:
    found = cli("doctor", "--json").json
    assert found["mcp"]["called"] == "timeline"
    assert {"recall", "timeline", "get"} <= set(found["mcp"]["tools"])
    assert "timeline was called and answered" in cli("doctor").out


def test_a_server_for_agents_that_does_not_answer_is_named(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.executable", "/bin/false")
    problems = cli("doctor", "--json").json["problems"]
    assert ["whyfor mcp" in problem["what"] for problem in problems].count(True) == 1

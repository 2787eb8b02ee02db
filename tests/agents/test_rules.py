"""Rules and answers from the browser with the real Claude Code, and its dialog when the server that
should answer is broken in every way."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from tests.server.test_approvals import Office
from tests.server.wire import served, watching
from whyfor import config
from whyfor.service.ingest import ingest
from whyfor.service.serve import announce_server

from . import Call, Reply, Say
from .agent import ALL_AGENTS, Codex
from .broken_server import BROKEN, BrokenServer, broken_server
from .process import run_clean
from .terminal import Terminal
from .test_status import in_terminal
from .test_stories import PATIENCE, TRUST, Desk, bare, desk, shell

__all__ = ["bare", "desk"]  # fixtures
QUOKKA, WOMBAT = Reply(Say("The quokka sits.")), Reply(Say("The wombat sits."))


def await_that(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def turn_on(desk: Desk, port: int | None = None) -> bytes:
    """Install hooks that may answer; return Claude's settings as they were."""
    path = desk.home / ".claude" / "settings.json"
    before = path.read_bytes() if path.exists() else b""
    desk.whyfor("init", "--rules", "--agent", "claude", "--no-git")
    if port is not None:
        path.write_text(re.sub(r"127\.0\.0\.1:\d+", f"127.0.0.1:{port}", path.read_text()))
    return before


def test_a_rule_answers_claude_and_uninstall_restores_everything(bare: Desk) -> None:
    before = turn_on(bare)
    bare.whyfor("rules", "add", "--everywhere", "--", "touch", "quokka.txt")
    bare.whyfor("rules", "mode", "on", "--anyway")
    bare.model.add(shell("touch quokka.txt"), QUOKKA, shell("touch wombat.txt"), WOMBAT)
    with in_terminal(bare) as terminal:
        terminal.see("for shortcuts")
        terminal.enter("Touch the quokka")
        terminal.see("quokka sits")
        assert (bare.repo / "quokka.txt").exists()
        terminal.see("for shortcuts")
        terminal.enter("Touch the wombat")
        terminal.see("Do you want to")  # what no rule names is asked as ever
        terminal.press("1")
        terminal.see("wombat sits")
        terminal.see("for shortcuts")
        terminal.enter("/exit")
        terminal.leave()
    bare.whyfor("ingest")
    log = {row["action"]: row for row in bare.read("approvals")}
    quokka, wombat = log["touch quokka.txt"], log["touch wombat.txt"]
    assert (quokka["decision"], quokka["by"], quokka["rule"]) == ("allowed", "rule", "r1")
    assert (wombat["decision"], wombat["by"]) == ("allowed", "terminal")
    bare.whyfor("uninstall", "--all")
    path = bare.home / ".claude" / "settings.json"
    assert (path.read_bytes() if path.exists() else b"") == before
    assert not (bare.kept / "hook" / "answer.key").exists()


def test_the_browser_answers_claude_and_its_dialog_survives_a_broken_server(bare: Desk) -> None:
    settings = config.load({**bare.env, "WHYFOR_HOME": str(bare.kept)})
    ingest(settings)
    with (
        served(settings, beside=True) as server,
        broken_server(server.port) as between,
        in_broken_terminal(bare, between) as terminal,
    ):
        office = Office(Path(bare.repo), server, settings)
        between.how = "pass"
        bare.model.add(shell("touch quokka.txt"), QUOKKA)
        terminal.enter("Touch the quokka")
        terminal.see("Do you want to")
        path, digest = office.request()
        assert office.post(path, {"word": "allow", "digest": digest}).status == 303
        terminal.see("quokka sits")
        assert (bare.repo / "quokka.txt").exists()
        terminal.see("for shortcuts")
        for how in BROKEN:
            asked = between.asked
            between.break_it(how)
            bare.model.add(shell(f"touch {how[:2]}.txt"), Reply(Say(f"It was {how}.")))
            terminal.enter(f"Touch {how}")
            terminal.see("Do you want to")
            await_that(lambda how=how, asked=asked: how == "down" or between.asked > asked)  # type: ignore[misc]
            assert not (bare.repo / f"{how[:2]}.txt").exists()
            terminal.press("1")
            terminal.see(f"It was {how}.")
            terminal.see("for shortcuts")  # the turn is over: what is typed is not queued
            assert (bare.repo / f"{how[:2]}.txt").exists()
        terminal.enter("/exit")
        terminal.leave()
    ingest(settings)
    log = {row["action"]: (row["decision"], row["by"]) for row in bare.read("approvals")}
    assert log.pop("touch quokka.txt") == ("allowed", "browser")
    assert set(log.values()) == {("allowed", "terminal")}


def in_broken_terminal(bare: Desk, server: BrokenServer) -> Terminal:
    turn_on(bare, server.port)
    terminal = in_terminal(bare)
    terminal.see("for shortcuts")
    return terminal


def test_a_server_on_another_port_is_asked_and_a_dead_one_changes_nothing(bare: Desk) -> None:
    settings = config.load({**bare.env, "WHYFOR_HOME": str(bare.kept)})
    ingest(settings)
    turn_on(bare)  # the settings name the default port, where nobody is
    with in_terminal(bare) as terminal:
        terminal.see("for shortcuts")
        with (
            served(settings, beside=True) as server,
            announce_server(settings, server.port),
            watching(settings, server.hub),
        ):
            office = Office(Path(bare.repo), server, settings)
            bare.model.add(shell("touch quokka.txt"), QUOKKA)
            terminal.enter("Touch the quokka")
            terminal.see("Do you want to")
            path, digest = office.request()
            assert not (bare.repo / "quokka.txt").exists()
            assert office.post(path, {"word": "allow", "digest": digest}).status == 303
            terminal.see("quokka sits")
            terminal.see("for shortcuts")
            bare.model.add(shell("touch wombat.txt"), Reply(Say("The wombat digs.")))
            terminal.enter("Touch the wombat")
            terminal.see("Do you want to")
            office.request()
            assert asking(bare), "the hook waits for the browser"
            terminal.press("1")
            terminal.see("wombat digs")
            await_that(lambda: not asking(bare))
        with broken_server() as broken, announce_server(settings, broken.port):
            for how in ("hang", "garbage"):  # the others: tests/hook/test_browser_answer.py
                broken.break_it(how)
                bare.model.add(shell(f"touch {how[:2]}.txt"), Reply(Say(f"It was {how}.")))
                terminal.enter(f"Touch {how}")
                terminal.see("Do you want to")
                assert not (bare.repo / f"{how[:2]}.txt").exists()
                terminal.press("1")
                terminal.see(f"It was {how}.")
                terminal.see("for shortcuts")
        terminal.enter("/exit")
        terminal.leave()
    ingest(settings)
    log = {row["action"]: (row["decision"], row["by"]) for row in bare.read("approvals")}
    assert log.pop("touch quokka.txt") == ("allowed", "browser")
    assert set(log.values()) == {("allowed", "terminal")}


def asking(bare: Desk) -> list[bytes]:
    """The hooks of this home that wait for an answer."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            found.append(path.read_bytes())
    mine = str(bare.kept).encode()
    return [words for words in found if mine in words and b"PermissionRequest" in words]


def test_a_rule_answers_copilot_and_what_it_does_not_name_is_not_run(bare: Desk) -> None:
    bare.whyfor("init", "--rules", "--agent", "copilot", "--no-git")
    bare.whyfor("rules", "add", "--everywhere", "--", "touch", "quokka.txt")
    rules = bare.kept / "rules.toml"
    rules.write_text(f"limit_ms = 5000\n{rules.read_text()}")  # this machine may be busy
    bare.whyfor("rules", "mode", "on", "--anyway")
    copilot = ALL_AGENTS["copilot"](bare.home, bare.repo, bare.model)
    both = [
        Call("bash", {"command": f"touch {animal}.txt", "description": "Touch it"})
        for animal in ("quokka", "wombat")
    ]
    bare.model.add(*both, QUOKKA)
    done = run_clean(["copilot", "-p", "Touch both"], bare.repo, copilot.env, 90, PATIENCE)
    assert done.code == 0, done
    assert (bare.repo / "quokka.txt").exists()
    assert not (bare.repo / "wombat.txt").exists(), "nobody was there to allow it"
    bare.whyfor("ingest")
    log = {row["action"]: (row["decision"], row["by"]) for row in bare.read("approvals")}
    assert log == {
        "touch quokka.txt": ("allowed", "rule"),
        "touch wombat.txt": ("denied", "nobody"),
    }


def test_a_rule_answers_codex_before_its_dialog_is_shown(bare: Desk) -> None:
    bare.whyfor("init", "--rules", "--agent", "codex", "--no-git")
    bare.whyfor("rules", "add", "--everywhere", "--", "touch", "quokka.txt")
    rules = bare.kept / "rules.toml"
    rules.write_text(f"limit_ms = 5000\n{rules.read_text()}")  # this machine may be busy
    bare.whyfor("rules", "mode", "on", "--anyway")
    asked = {"sandbox_permissions": "require_escalated", "justification": "Touch it"}
    bare.model.add(Call("exec_command", {"cmd": "touch quokka.txt", **asked}))
    with codex_terminal(bare) as terminal:
        terminal.see("for shortcuts")
        terminal.press("Touch it")
        terminal.see("it")
        terminal.press("\r")
        terminal.see("Ran touch quokka.txt")  # its dialog would have waited for a key
        assert (bare.repo / "quokka.txt").exists()
        terminal.patience = 1.0  # it is ended, whether or not it would leave by itself
    told = (line.split("\t")[0] for line in spooled(bare) if "PermissionRequest" in line)
    assert ['"answer":"allow"' in line for line in told] == [True]


def spooled(bare: Desk) -> list[str]:
    return "\n".join(path.read_text() for path in (bare.kept / "spool").iterdir()).split("\n")


def codex_terminal(bare: Desk) -> Terminal:
    codex = bare.agent("codex")
    assert isinstance(codex, Codex)
    config_file = bare.home / ".codex" / "config.toml"
    config_file.parent.mkdir(exist_ok=True)
    with config_file.open("a") as file:
        file.write(f'\n[projects."{bare.repo}"]\ntrust_level = "trusted"\n{codex.keeps_model}')
    policy = ['approval_policy="on-request"', 'sandbox_mode="read-only"', *codex._settings()]
    words = [word for setting in policy for word in ("-c", setting)]
    argv = ["codex", "--no-daemon", *TRUST["codex"], *words]
    return Terminal(argv, bare.repo, codex.env, PATIENCE)

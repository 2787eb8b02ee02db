"""Answers from the browser with the real Codex and OpenCode, and their dialogs when what should
answer is broken in every way."""

from __future__ import annotations

import hashlib
import json
import os
import re
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.server.test_approvals import Office
from tests.server.wire import served, watching
from whyfor import config
from whyfor.service.ingest import ingest

from . import Call, Reply, Say
from .agent import ALL_AGENTS, Codex
from .broken_server import WORST, BrokenServer, broken_server
from .process import run_clean
from .terminal import Terminal
from .test_stories import PATIENCE, Desk, bare

__all__ = ["bare"]  # fixture


def await_that(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


@contextmanager
def serving(bare: Desk) -> Iterator[tuple[Office, BrokenServer]]:
    """Serve the desk's pages, behind a server that breaks when it is told to."""
    settings = config.load({**bare.env, "WHYFOR_HOME": str(bare.kept)})
    ingest(settings)
    with (
        served(settings, beside=True) as server,
        broken_server(server.port) as between,
        watching(settings, server.hub),
    ):
        yield Office(Path(bare.repo), server, settings), between


# -- OpenCode ------------------------------------------------------------------------------------


class OpenCodeDesk:
    """OpenCode in a terminal, which asks before it runs a command."""

    def __init__(self, bare: Desk, between: BrokenServer) -> None:
        folder = bare.home / ".config" / "opencode"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "opencode.json").write_text('{"permission": {"bash": "ask"}}')
        bare.whyfor("init", "--rules", "--agent", "opencode", "--no-git")
        plugin = folder / "plugins" / "whyfor.js"
        text = re.sub(r"127\.0\.0\.1:\d+", f"127.0.0.1:{between.port}", plugin.read_text())
        plugin.write_text(text)
        agent = ALL_AGENTS["opencode"](bare.home, bare.repo, bare.model)
        self.bare = bare
        self.terminal = Terminal(["opencode"], bare.repo, agent.env, 2 * PATIENCE)

    def ask(self, name: str) -> None:
        """Let the agent ask for something, and wait for its dialog."""
        call = Call("bash", {"command": f"touch {name}.txt", "description": "Touch it"})
        self.bare.model.add(call, Reply(Say(f"The {name} sits.")))
        self.terminal.press(f"Touch the {name}")
        self.terminal.see(f"the {name}")
        self.terminal.press("\r")
        self.terminal.see("Permission required")

    def made(self, name: str) -> bool:
        return (self.bare.repo / f"{name}.txt").exists()


def test_opencode_is_answered_from_the_browser_and_its_dialog_survives_everything(
    bare: Desk,
) -> None:
    with serving(bare) as (office, between):
        desk = OpenCodeDesk(bare, between)
        with desk.terminal as terminal:
            terminal.see("Ask anything")
            between.how = "pass"
            desk.ask("quokka")
            path, digest = office.request()
            assert not desk.made("quokka")
            assert office.post(path, {"word": "allow", "digest": digest}).status == 303
            terminal.see("quokka sits")
            assert desk.made("quokka")

            desk.ask("wombat")
            office.request()
            terminal.press("\r")  # the person is faster
            terminal.see("wombat sits")
            await_that(lambda: "/answer" not in office.page())

            for how in WORST:
                name = how.replace(" ", "")
                asked = between.asked
                between.break_it(how)
                desk.ask(name)
                await_that(lambda how=how, asked=asked: how == "down" or between.asked > asked)  # type: ignore[misc]
                assert not desk.made(name)
                terminal.press("\r")
                terminal.see(f"{name} sits")
                assert desk.made(name)
            terminal.press("\x03")
            terminal.patience = 2.0
        ingest(office.settings)
    log = {row["action"]: row for row in bare.read("approvals")}
    told = {action: (row["decision"], row["by"], row["exact"]) for action, row in log.items()}
    assert told.pop("touch quokka.txt") == ("allowed", "browser", True)
    assert set(told.values()) == {("allowed", "terminal", True)}
    assert len(told) == 1 + len(WORST)
    assert all(row["cwd"] == str(bare.repo) and row["tool"] == "bash" for row in log.values())
    bare.whyfor("uninstall", "--all")
    assert not (bare.home / ".config" / "opencode" / "plugins").exists()


# -- Codex ---------------------------------------------------------------------------------------


def codex_settings(bare: Desk) -> Codex:
    """Write Codex's settings to its file: with settings in its arguments it starts no daemon."""
    codex = bare.agent("codex")
    assert isinstance(codex, Codex)
    provider = f'base_url = "{bare.model.url}/v1"\nwire_api = "responses"\nenv_key = "MOCKKEY"\n'
    file = bare.home / ".codex" / "config.toml"
    file.parent.mkdir(exist_ok=True)
    file.write_text(
        'approval_policy = "on-request"\nsandbox_mode = "read-only"\nmodel_provider = "mock"\n'
        f'model = "{codex.model_name}"\ncheck_for_update_on_startup = false\n'
        f'[model_providers.mock]\nname = "mock"\n{provider}'
        "[analytics]\nenabled = false\n[features]\nplugins = false\n"
        f'[projects."{bare.repo}"]\ntrust_level = "trusted"\n{trusted_hooks(file.parent)}'
        f"{codex.keeps_model}"
    )
    return codex


def trusted_hooks(folder: Path) -> str:
    """Return what Codex writes when a person approves our hooks in it."""
    file = folder / "hooks.json"
    told = []
    for event, groups in json.loads(file.read_text())["hooks"].items():
        name = re.sub(r"(?<!^)(?=[A-Z])", "_", event).lower()
        for at, group in enumerate(groups):
            hooks = [{"async": False, **hook} for hook in group["hooks"]]
            if name == "session_end":
                hooks = [{**hook, "timeout": min(3, hook["timeout"])} for hook in hooks]
            whole = {**group, "event_name": name, "hooks": hooks}
            plain = json.dumps(whole, sort_keys=True, separators=(",", ":")).encode()
            hashed = hashlib.sha256(plain).hexdigest()
            told.append(f'[hooks.state."{file}:{name}:{at}:0"]\ntrusted_hash = "sha256:{hashed}"\n')
    return "".join(told)


class CodexDesk:
    """Codex in a terminal, which asks before it runs a command outside its sandbox."""

    def __init__(self, bare: Desk, *arguments: str) -> None:
        codex = codex_settings(bare)
        self.bare = bare
        argv = ["codex", *arguments]
        self.terminal = Terminal(argv, bare.repo, codex.env, PATIENCE)
        self.asked = 0

    def ask(self, name: str) -> None:
        self.asked += 1
        asked = {"sandbox_permissions": "require_escalated", "justification": "Touch it"}
        call = Call("exec_command", {"cmd": f"touch {name}.txt", **asked})
        self.bare.model.answer_prompt(f"Touch the {name}", call)
        self.terminal.press(f"Touch the {name}")
        self.terminal.see(f"the {name}")
        self.terminal.press("\r")
        self.terminal.see("Would you like to run")
        self.terminal.see("enter to confirm")

    def made(self, name: str) -> bool:
        return (self.bare.repo / f"{name}.txt").exists()

    def approve(self) -> None:
        """Press the key for yes; the dialog is drawn before it takes one."""
        patience, self.terminal.patience = self.terminal.patience, 2.0
        for _ in range(15):
            self.terminal.press("y")
            with suppress(AssertionError):
                self.terminal.see("You approved")
                break
        self.terminal.patience = patience

    def await_made(self, name: str) -> None:
        """Wait for the file, and for the end of the turn: what is typed before it is queued."""
        end = time.monotonic() + PATIENCE
        while not self.made(name) or self.ended() < self.asked:
            self.terminal._read()
            assert time.monotonic() < end, self.terminal._plain[-1500:]

    def ended(self) -> int:
        """Return how many turns Codex wrote down as over."""
        rollouts = (self.bare.home / ".codex" / "sessions").rglob("rollout-*.jsonl")
        return sum(path.read_text().count('"type":"task_complete"') for path in rollouts)


@contextmanager
def daemons_ended(home: Path) -> Iterator[None]:
    """End the daemon and the updater that Codex starts, by their process ids."""
    try:
        yield
    finally:
        for path in (home / ".codex" / "app-server-daemon").glob("*.pid"):
            with suppress(OSError, ValueError, KeyError):
                os.kill(int(json.loads(path.read_text())["pid"]), signal.SIGKILL)


def test_codex_is_answered_through_its_daemon_and_the_first_answer_counts(bare: Desk) -> None:
    bare.whyfor("init", "--rules", "--agent", "codex", "--no-git")
    with serving(bare) as (office, _), daemons_ended(bare.home):
        desk = CodexDesk(bare)
        with desk.terminal as terminal:
            terminal.see("for shortcuts")
            desk.ask("quokka")
            path, digest = office.request()
            assert not desk.made("quokka")
            assert office.post(path, {"word": "allow", "digest": digest}).status == 303
            desk.await_made("quokka")
            desk.ask("wombat")
            path, digest = office.request()
            desk.approve()
            desk.await_made("wombat")
            late = office.post(path, {"word": "deny", "digest": digest})
            assert late.status == 400, "nobody waits for it any more"
            terminal.patience = 0.5
        ingest(office.settings)
    told = {row["action"]: (row["decision"], row["by"]) for row in bare.read("approvals")}
    assert told == {
        "touch quokka.txt": ("allowed", "browser"),
        "touch wombat.txt": ("allowed", "terminal"),
    }


# -- hooks that are broken -----------------------------------------------------------------------

HOOKS = {
    "garbage": "#!/bin/sh\necho 'allow {{'; exit 0\n",
    "killed": "#!/bin/sh\nkill -9 $$\n",
    "fails": "#!/bin/sh\necho allow >&2; exit 2\n",
    "hangs": "#!/bin/sh\nexec sleep 60\n",
}


def break_hook(bare: Desk, how: str) -> None:
    """Put something broken in the place of the interpreter that runs our hook."""
    folder = bare.kept / "hook"
    if how == "gone":
        (folder / "hook.py").unlink()
        return
    (folder / "hook.py").write_text(
        "import os, sys\n"
        "if sys.argv[-1].lower() == 'permissionrequest':\n"
        f"    os.execv('/bin/sh', ['sh', '-c', {HOOKS[how]!r}])\n"
    )


def test_codex_shows_its_dialog_whatever_is_wrong_with_the_hook(bare: Desk) -> None:
    bare.whyfor("init", "--rules", "--agent", "codex", "--no-git")
    bare.whyfor("rules", "add", "--everywhere", "--", "touch", "quokka.txt")
    bare.whyfor("rules", "mode", "on", "--anyway")
    desk = CodexDesk(bare, "--no-daemon")
    with desk.terminal as terminal:
        terminal.see("for shortcuts")
        for how in (*HOOKS, "gone"):
            break_hook(bare, how)
            desk.ask(how)
            assert not desk.made(how)
            desk.approve()
            desk.await_made(how)
        terminal.patience = 0.5


def test_copilot_asks_as_ever_whatever_is_wrong_with_the_hook(bare: Desk) -> None:
    bare.whyfor("init", "--rules", "--agent", "copilot", "--no-git")
    bare.whyfor("rules", "add", "--everywhere", "--", "touch", "quokka.txt")
    bare.whyfor("rules", "mode", "on", "--anyway")
    copilot = ALL_AGENTS["copilot"](bare.home, bare.repo, bare.model)
    for how in ("garbage", "hangs"):
        break_hook(bare, how)
        call = {"command": "touch quokka.txt", "description": "Touch it"}
        bare.model.add(Call("bash", call), Reply(Say("It was asked.")))
        done = run_clean(["copilot", "-p", "Touch it"], bare.repo, copilot.env, 90, PATIENCE)
        assert done.code == 0, done
        assert "It was asked." in done.stdout, "the turn goes on"
        assert not (bare.repo / "quokka.txt").exists(), "nobody was there to allow it"

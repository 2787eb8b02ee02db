"""Check that the hooks are still where init put them, and that their events arrive."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec

from whyfor.agents.facts import Hookable
from whyfor.agents.hooks import Unmergeable, commands, hookable, turned_off, wanted_events
from whyfor.agents.plugins import plugin_content, plugin_files
from whyfor.agents.servers import add_server, listed_server, server_command, server_places
from whyfor.capture import manifest as prints
from whyfor.capture import spool
from whyfor.capture.hook_files import (
    HookAnswers,
    caller,
    hook_command,
    hook_files,
    interpreter,
    plugin_words,
    server_variables,
)
from whyfor.capture.manifest import ChangedByInit, hook_folder
from whyfor.config import Settings
from whyfor.git import hooks as git_hooks
from whyfor.live.answer_address import answers_address, asked_port, read_answer_key
from whyfor.model.paths import to_path, to_text
from whyfor.store.open import LocalStore

ARRIVES = 2.0  # seconds an announcement may take
FIRED = 10.0  # and a command, before it is given up
STATES = ("ok", "untrusted", "stale", "silent", "missing", "broken")
_DOCTOR = {"name": "whyfor doctor", "version": "1"}
_TIMELINE = {"name": "timeline", "arguments": {"limit": 1}}
_AGAIN = "Put it right: whyfor init"


class HookHealth(msgspec.Struct):
    """The state of the hooks in one settings file, or in one repository."""

    kind: str  # agent | server | git | launch
    name: str
    file: str
    state: str = "ok"  # one of STATES, the worst there is
    arrived: list[str] = []  # events whose probe reached the spool
    lost: list[str] = []
    what: str = ""
    next: str = ""
    unheard: bool = False  # the agent began a session since, and no event arrived

    def say(self, state: str, what: str, then: str = _AGAIN) -> None:
        """Set the state if it is worse than the current one; of equal ones the first stays, because
        it explains the others."""
        if STATES.index(state) > STATES.index(self.state):
            self.state, self.what, self.next = state, what, then

    @property
    def dropped(self) -> bool:
        return self.unheard or STATES.index(self.state) >= STATES.index("silent")


class _Shot(msgspec.Struct):
    health: HookHealth
    event: str
    argv: list[str]
    cwd: Path
    env: dict[str, str] = {}
    nonce: str = ""
    said: str = ""


def probe(settings: Settings, here: Path | None) -> list[HookHealth]:
    """Check and run every hook that init installed; return the state of each file."""
    installed = prints.load_manifest(settings)
    if not installed.files and not installed.repositories:
        return []
    shots: list[_Shot] = []
    found = [_launch(settings)]
    for path, changed in installed.files.items():
        if changed.kind == "agent":
            found.append(_settings_file(settings, to_path(path), changed, shots))
        elif changed.kind == "plugin":
            found.append(_plugin(settings, to_path(path), changed, shots))
    servers = [_server(settings, path, each) for path, each in installed.files.items()]
    found += [health for health in servers if health]
    for common in installed.repositories:
        found.append(_repository(settings, to_path(common), shots))
    repository = git_hooks.find_hooked(here) if here else None
    if repository and to_text(repository.common) not in installed.repositories:
        health = HookHealth("git", "git", to_text(repository.common))
        health.say("stale", "this repository has no hooks of ours", "Install them: whyfor init")
        found.append(health)
    _fire(settings, shots)
    return found


# -- looked at -----------------------------------------------------------------------------------


def _launch(settings: Settings) -> HookHealth:
    """Check what every hook runs, and the ingest it starts."""
    folder = hook_folder(settings)
    health = HookHealth("launch", "ingest", to_text(folder))
    for name, content in hook_files().items():
        try:
            now = (folder / name).read_bytes()
        except OSError as error:
            health.say("broken", f"{folder / name}: {error.strerror}")
            continue
        if name != "launch" and now != content:
            health.say("stale", f"{folder / name} is of another version")
        if name == "launch" and (why := _cannot_start(now)):
            health.say("broken", f"no hook can start an ingest: {why}")
    return health


def _cannot_start(launch: bytes) -> str:
    python = os.fsdecode(launch).partition("\n")[0]
    try:
        done = subprocess.run(
            [python, "-I", "-c", "import whyfor"],
            capture_output=True,
            timeout=FIRED,
            text=True,
            cwd="/",
        )
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        return f"{python}: {getattr(error, 'strerror', None) or error}"
    return f"{python}: {done.stderr.strip().splitlines()[-1]}" if done.returncode else ""


def _settings_file(
    settings: Settings, path: Path, changed: ChangedByInit, shots: list[_Shot]
) -> HookHealth:
    """Return the state of our hooks in an agent's settings; add those to run to `shots`."""
    agent = hookable()[changed.agent]
    health = HookHealth("agent", agent.agent, to_text(path))
    try:
        content = path.read_bytes()
        found, off = commands(content, agent), turned_off(content, agent)
    except FileNotFoundError:
        health.say("missing", f"{agent.title}: {path} is gone")
        return health
    except (OSError, Unmergeable) as error:
        what = f"{agent.title}: {path}: {prints.error_reason(error)}"
        health.say("broken", what, "Repair it, then: whyfor init")
        return health
    if off:
        what = f"{agent.title}: all hooks are turned off by {off} in {path}"
        health.say("silent", what, "Turn them on there, if you want its sessions announced.")
    answers = HookAnswers(
        annotate=changed.annotate,
        memory=changed.memory,
        prompts=changed.prompts,
        rules=changed.rules,
        ask=asked_port(agent.agent, changed.rules),
        shell_edits=changed.shell_edits,
    )
    wanted = {}
    for on in wanted_events(agent, snapshots=changed.shell_edits):
        wanted[on.event] = hook_command(settings, agent.agent, on, answers)
    _compare_commands(health, agent, wanted, found)
    own = agent.folder(settings.user_home, settings.env)
    untrusted = agent.untrusted(own, path, list(found)) if agent.untrusted else []
    if untrusted:
        what = (
            f"{agent.title} was not told to trust our hooks for {', '.join(untrusted)}; until then "
            "it skips them"
        )
        health.say("untrusted", what, agent.trust or _AGAIN)
    for event, command in found.items():
        shots.append(_Shot(health, event, ["/bin/sh", "-c", command], settings.user_home))
    return health


def _plugin(
    settings: Settings, path: Path, changed: ChangedByInit, shots: list[_Shot]
) -> HookHealth:
    """Return the state of the file that an agent without command hooks loads."""
    plugin = plugin_files()[changed.agent]
    answers = None
    if changed.rules:
        answers = answers_address(settings, changed.agent, read_answer_key(settings))
    words = plugin_words(settings, changed.agent, memory=changed.memory, answers=answers)
    health = HookHealth("plugin", changed.agent, to_text(path))
    again = "Write it again: whyfor init"
    try:
        content = path.read_bytes()
        if plugin_content(plugin, words, content) != content:
            health.say("stale", f"{plugin.title}: {path} is of another version", again)
    except FileNotFoundError:
        health.say("missing", f"{plugin.title}: {path} is gone", again)
    except (OSError, Unmergeable) as error:
        health.say("broken", f"{plugin.title}: {path}: {prints.error_reason(error)}", again)
    event = "SessionStart" if words.hook else "PermissionRequest"
    command = words.hook or [*words.tell, event]
    shots.append(_Shot(health, event, command, settings.user_home))
    return health


def _server(settings: Settings, path: str, changed: ChangedByInit) -> HookHealth | None:
    """Return the state of our MCP server in an agent's list; None if it is not to be there."""
    if not changed.server:
        return None
    place = server_places()[changed.agent]
    health = HookHealth("server", changed.agent, path)
    again = "List it again: whyfor init --memory"
    command = server_command(sys.executable)
    try:
        content = to_path(path).read_bytes()
        if not listed_server(content, place)[0]:
            health.say("missing", f"{place.title}: our MCP server is not listed in {path}", again)
        elif add_server(content, place, command, server_variables(settings)) != content:
            what = f"{place.title}: not the MCP server that this version would list in {path}"
            health.say("stale", what, again)
    except FileNotFoundError:
        health.say("missing", f"{place.title}: {path} is gone", again)
    except (OSError, ValueError) as error:
        health.say("broken", f"{place.title}: {path}: {prints.error_reason(error)}", again)
    if why := _cannot_serve(settings, command):
        health.say("broken", f"whyfor mcp does not answer: {why}", "Run it: whyfor mcp")
    return health


def _cannot_serve(settings: Settings, command: list[str]) -> str:
    """Start our MCP server and call a tool; return what went wrong."""
    opening = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": _DOCTOR}
    asked = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": opening},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": _TIMELINE},
    ]
    given = b"".join(msgspec.json.encode(each) + b"\n" for each in asked)
    env = {**os.environ, **server_variables(settings)}
    try:
        done = subprocess.run(
            command, input=given, capture_output=True, timeout=FIRED, cwd=settings.home, env=env
        )
        answers = [msgspec.json.decode(line) for line in done.stdout.splitlines()]
    except (OSError, msgspec.DecodeError, subprocess.TimeoutExpired) as error:
        return getattr(error, "strerror", None) or str(error)
    if not any(each.get("id") == 2 and "result" in each for each in answers):
        return (done.stderr or done.stdout)[-200:].decode(errors="replace").strip()
    return ""


def _compare_commands(
    health: HookHealth, agent: Hookable, wanted: dict[str, str], found: dict[str, str]
) -> None:
    """Report commands that are missing, and those that this version would install differently."""
    missing = [event for event in wanted if event not in found]
    if missing:
        events = ", ".join(missing)
        health.say("missing", f"{agent.title}: no hook of ours for {events} in {health.file}")
    stale = [event for event, command in found.items() if command != wanted.get(event)]
    if stale:
        what = f"{agent.title}: not what this version would install for {', '.join(stale)}"
        if not all(interpreter() in found[event] for event in stale):
            what += ": the interpreter is another now"
        health.say("stale", what)


def _repository(settings: Settings, common: Path, shots: list[_Shot]) -> HookHealth:
    """Return the state of our hooks in a repository; add those to run to `shots`."""
    health = HookHealth("git", "git", to_text(common))
    if not common.is_dir():
        what = f"the repository of {common} is gone"
        health.say("stale", what, "If it moved, go there and run: whyfor init")
        return health
    top = common.parent if common.name == ".git" else common
    repository = git_hooks.HookedRepository(common, top)
    scripts = git_hooks.in_effect(repository)
    missing = [name for name in git_hooks.OURS if name not in scripts]
    if missing:
        names = ", ".join(missing)
        health.say("missing", f"something else took the place of our hooks {names} in {top}")
    if not git_hooks.is_current(repository, scripts, caller(settings)):
        health.say("stale", f"the hooks in {top} are not what this version would install")
    for name, path in scripts.items():
        shots.append(_Shot(health, name, [str(path)], top, {"GIT_DIR": str(common)}))
    return health


# -- fired ---------------------------------------------------------------------------------------


def _fire(settings: Settings, shots: list[_Shot]) -> None:
    """Run all hooks with a probe, and report whether each probe reached the spool."""
    from concurrent.futures import ThreadPoolExecutor  # here: only with hooks

    run = os.urandom(8).hex()
    before = {path: path.stat().st_size for path in spool.files(settings.home)}
    for number, shot in enumerate(shots):
        shot.nonce = f"{run}.{number}."
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(_shoot, shots))
    there = _arrivals(settings, before, {shot.nonce for shot in shots})
    for shot in shots:
        events = shot.health.arrived if shot.nonce in there else shot.health.lost
        events.append(shot.event)
        if shot.said:
            shot.health.say("broken", f"{shot.health.name}: the hook for {shot.event} {shot.said}")
    for shot in shots:
        lost = ", ".join(shot.health.lost)
        if lost:
            what = f"{shot.health.name}: what was announced for {lost} did not arrive"
            shot.health.say("broken", what)


def _shoot(shot: _Shot) -> None:
    env = {**os.environ, **shot.env, "WHYFOR_PROBE": shot.nonce}
    payload = msgspec.json.encode({"probe": shot.nonce, "of": shot.event})
    try:
        done = subprocess.run(
            shot.argv, cwd=shot.cwd, env=env, input=payload, capture_output=True, timeout=FIRED
        )
    except subprocess.TimeoutExpired:
        shot.said = f"took more than {FIRED:.0f} s"
    except OSError as error:
        shot.said = f"cannot run: {error.strerror}"
    else:
        if done.returncode or done.stdout or done.stderr:
            said = (done.stderr or done.stdout)[:200].decode(errors="replace")
            shot.said = f"ended with {done.returncode} and said: {said}"


def _arrivals(settings: Settings, before: dict[Path, int], nonces: set[str]) -> set[str]:
    end = time.monotonic() + ARRIVES
    while True:
        text = b"".join(_grown(settings, before)).decode("utf-8", "replace")
        found = {nonce for nonce in nonces if nonce in text}
        if found == nonces or time.monotonic() > end:
            return found
        time.sleep(0.02)


def _grown(settings: Settings, before: dict[Path, int]) -> Iterator[bytes]:
    for path in spool.files(settings.home):
        with path.open("rb") as file:
            file.seek(before.get(path, 0))
            yield file.read()


# -- silent --------------------------------------------------------------------------------------


def notice_silence(settings: Settings, found: list[HookHealth], library: LocalStore) -> None:
    """Report each agent that started a session after its hooks were installed, without any hook
    event since."""
    heard = _last_heard(settings)
    by_file = {item.file: item for item in reversed(found)}
    for path, changed in prints.load_manifest(settings).files.items():
        health = by_file.get(path)
        if health is None or changed.repository:
            continue
        started = library.sessions.last_started(changed.agent)
        at = max(heard.get(changed.agent, 0), library.signals.last_heard(changed.agent) or 0)
        if started and started > changed.at and at < started:
            health.unheard = True
            agent = hookable()[changed.agent]
            what = (
                f"{agent.title} began a session after its hooks were installed, and none was heard"
            )
            hint = "Are hooks turned off in its settings? Was it running before init? Restart it."
            if agent.trust:  # it skips changed hooks, too, until they are approved again
                hint = f"{agent.trust} {hint}"
            if health.state != "untrusted":  # else that is why
                health.say("silent", what, hint)


def _last_heard(settings: Settings) -> dict[str, int]:
    """Return when each agent's last hook event arrived, as far as the spool goes back."""
    heard = {}
    for path in spool.files(settings.home):
        for envelope in spool.envelopes(path.read_bytes(), 0):
            if isinstance(envelope, spool.Envelope) and "WHYFOR_PROBE" not in envelope.env:
                heard[envelope.agent] = envelope.at
    return heard

"""The files and commands that agents and git run, as `whyfor init` installs them."""

from __future__ import annotations

import os
import shlex
import sys
from importlib.resources import files

import msgspec

from whyfor.agents import AGENTS
from whyfor.agents.facts import HookEvent
from whyfor.agents.hooks import MARK
from whyfor.agents.plugins import PluginWords
from whyfor.capture.manifest import SNAPSHOT, hook_folder
from whyfor.config import Settings
from whyfor.files import make_folders, replace
from whyfor.git import hooks as git_hooks
from whyfor.hook import FILES
from whyfor.model.errors import StoreError
from whyfor.model.paths import to_text


def interpreter() -> str:
    """Return the real path of the interpreter, not a link in a virtual environment or a shim that
    may disappear."""
    return os.path.realpath(getattr(sys, "_base_executable", None) or sys.executable)


def launcher() -> bytes:
    """Return the command that starts an ingest, one word per line."""
    return os.fsencode(
        "\n".join([sys.executable, "-I", "-m", "whyfor", "ingest", "--background", ""])
    )


def snapshot_command() -> bytes:
    """Return the command that looks at a work tree, one word per line."""
    return os.fsencode("\n".join([sys.executable, "-I", "-m", "whyfor.capture.shell_edits", ""]))


class HookAnswers(msgspec.Struct, frozen=True):
    """When a hook may print something: nothing unless the person asked for it."""

    annotate: bool = False  # after a commit
    memory: bool = False  # at a session's start
    prompts: bool = False  # with a prompt
    rules: bool = False  # when the agent asks the person
    ask: int = 0  # the port where the agent asks for an answer from the browser; 0: nowhere
    shell_edits: bool = False  # nothing printed: the work tree is looked at around shell commands


def hook_command(settings: Settings, agent: str, on: HookEvent, answers: HookAnswers) -> str:
    python, hook = quote_word(interpreter()), quote_word(str(hook_folder(settings) / "hook.py"))
    asks = "--annotate " if answers.annotate and on.annotate else ""
    asks += "--remember " if answers.memory and on.remember else ""
    asks += "--recall " if answers.prompts and on.prompt else ""
    asks += "--rules " if answers.rules and on.approve else ""
    asks += f"--ask {answers.ask} " if answers.ask and on.approve else ""
    asks += f"--snapshot {on.snapshot} " if answers.shell_edits and on.snapshot else ""
    return (
        f"test -x {python} && {python} -I -S {hook} --agent {agent} {asks}{on.event} 2>/dev/null; "
        f"exit 0 {MARK}"
    )


def plugin_words(
    settings: Settings, agent: str, *, memory: bool, answers: dict[str, str] | None
) -> PluginWords:
    """Return what a plugin runs: the hook, at a session's start only if it is told something."""
    hook = str(hook_folder(settings) / "hook.py")
    tell = [to_text(word) for word in (interpreter(), "-I", "-S", hook, "--agent", agent)]
    asks = [*tell, "--remember", "SessionStart"] if memory else None
    return PluginWords(tell=tell, hook=asks, answers=answers)


def server_variables(settings: Settings) -> dict[str, str]:
    """Return what our MCP server must be told of the environment: agents pass little of it on."""
    given = settings.env.get("WHYFOR_HOME")
    return {"WHYFOR_HOME": to_text(settings.home)} if given else {}


def quote_word(word: str) -> str:
    """Quote a word for a shell. Settings are JSON, so bytes that are not UTF-8 are written as
    printf's octal escapes."""
    if to_text(word) == word:
        return shlex.quote(word)
    safe = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-"
    escaped = "".join(chr(byte) if byte in safe else f"\\{byte:03o}" for byte in os.fsencode(word))
    return f"\"$(printf '{escaped}')\""


def hook_files() -> dict[str, bytes]:
    """Return the files of our hook directory, by name."""
    copied = {name: files("whyfor").joinpath("hook", name).read_bytes() for name in FILES}
    return {**copied, "launch": launcher(), SNAPSHOT: snapshot_command()}


def caller(settings: Settings, notice: bool = True) -> git_hooks.Caller:
    awaited = (agent.facts.awaited_variable for agent in AGENTS.values())
    return git_hooks.Caller(
        interpreter(),
        hook_folder(settings) / "hook.py",
        notice,
        tuple(filter(None, awaited)),
    )


def place_hook(settings: Settings) -> None:
    folder = hook_folder(settings)
    try:
        make_folders(folder)
        for name, content in hook_files().items():
            replace(folder / name, content)
    except OSError as error:
        hint = "Check its permissions, or set WHYFOR_HOME. Nothing was installed."
        raise StoreError(f"cannot write to {folder}: {error.strerror}", hint) from None

"""What init changed outside our own directory, stored with the original bytes so that it can be
restored."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import msgspec

from whyfor.agents.hooks import Unmergeable, hookable, remove, same_but_for_ours
from whyfor.agents.servers import remove_server, same_but_for_server, server_places
from whyfor.config import Settings
from whyfor.files import make_folders, replace
from whyfor.hook import FILES
from whyfor.hook.rule_form import PREPARED
from whyfor.model.errors import BadInput, WhyforError
from whyfor.model.paths import to_path, to_text

ANSWER_KEY = "answer.key"  # what an agent shows when it asks our server
BLOCKS = "memory"  # the folder of what next sessions are told, below that of the hook
TOLD = "told"  # and of the sessions that were
SNAPSHOT = "snapshot"  # the command that looks at a work tree, below the folder of the hook


class Rewrite(msgspec.Struct, frozen=True):
    """How a file is changed, and which part of it belongs to others."""

    to: Callable[[bytes], bytes]
    without: Callable[[bytes], bytes] = lambda content: content


class InstallStep(msgspec.Struct):
    """One step that was done, or in a dry run would be done."""

    kind: str  # agent | server | skill | exclude | git
    name: str
    state: str  # installed | updated | unchanged | removed | restored | absent | failed
    file: str | None = None
    events: list[str] = []
    note: str = ""


class ChangedByInit(msgspec.Struct, omit_defaults=True):
    """A file of others that we changed, or one that we created."""

    kind: str  # agent | server | skill | plugin | plugin-settings | exclude
    agent: str
    at: int
    original: bytes | None = None  # none: there was no such file
    folders: list[str] = []  # made for it, deepest first
    repository: str | None = None  # its git folder, if the file is for that one only
    annotate: bool = False
    memory: bool = False
    prompts: bool = False  # sessions are told of notes with a prompt, too
    server: bool = False  # our MCP server is listed in it
    rules: bool = False  # rules may answer the agent's requests
    shell_edits: bool = False  # the work tree is looked at around shell commands
    lines: list[str] = []  # for exclude: those we added


class InstallManifest(msgspec.Struct, omit_defaults=True):
    version: int = 1
    files: dict[str, ChangedByInit] = {}
    repositories: dict[str, bool] = {}  # git folder → whether we made the folder of hooks in it
    memory: bool | None = None  # whether sessions are told of earlier ones; None: nobody was asked
    prompts: bool = False  # whether also with a prompt
    rules: bool = False  # whether rules may answer agents' requests
    shell_edits: bool = False  # whether the work tree is looked at around shell commands


def hook_folder(settings: Settings) -> Path:
    return settings.home / "hook"


def load_manifest(settings: Settings) -> InstallManifest:
    path = hook_folder(settings) / "installed.json"
    try:
        return msgspec.json.decode(path.read_bytes(), type=InstallManifest)
    except (FileNotFoundError, NotADirectoryError):
        return InstallManifest()
    except (OSError, msgspec.DecodeError) as error:
        hint = (
            "It says what init changed. Bring it back from a backup, or move it away and run: "
            "whyfor init"
        )
        raise BadInput(f"cannot read {path}: {error}", hint) from None


def save_manifest(settings: Settings, footprint: InstallManifest) -> None:
    """Save the manifest; with its last entry, remove the files that hooks run as well."""
    folder = hook_folder(settings)
    if footprint.files or footprint.repositories:
        make_folders(folder)
        replace(folder / "installed.json", msgspec.json.format(msgspec.json.encode(footprint)))
        return
    for name in (*FILES, "launch", SNAPSHOT, "installed.json", PREPARED, ANSWER_KEY):
        (folder / name).unlink(missing_ok=True)
    for made in ("__pycache__", BLOCKS, TOLD):
        shutil.rmtree(folder / made, ignore_errors=True)


def change(
    footprint: InstallManifest,
    path: Path,
    record: ChangedByInit,
    step: InstallStep,
    rewrite: Rewrite,
    *,
    keep: Callable[[], None] | None = None,
) -> None:
    """Change a file after `keep` has saved the original. Without `keep`, only describe the change
    in `step`."""
    try:
        before = path.read_bytes() if path.exists() else None
        after = rewrite.to(before or b"")
        foreign = rewrite.without(before or b"")
        known = footprint.files.get(to_text(path))
        if before == after:
            step.state = "unchanged"
        elif known or foreign != (before or b""):
            step.state = "updated"
        else:
            step.state = "installed"
        if known is None:
            record.original = None if before is None else foreign
            record.folders = _missing_folders(path)
            footprint.files[to_text(path)] = record
        else:
            known.annotate = record.annotate
            known.memory, known.prompts = record.memory, record.prompts
            known.server, known.rules = record.server, record.rules
            known.shell_edits = record.shell_edits
            known.lines = list(dict.fromkeys([*known.lines, *record.lines]))
        if keep:
            keep()
            make_folders(path.parent)
            _write(path, before, after)
    except (OSError, Unmergeable) as error:
        step.state, step.note = "failed", f"left alone: {error_reason(error)}"


def _missing_folders(path: Path) -> list[str]:
    """Return the folders above a path that are not there, deepest first."""
    return [to_text(folder) for folder in path.parents if not folder.exists()]


def put_back(path: Path, changed: ChangedByInit, *, dry_run: bool) -> InstallStep:
    """Undo our change; if others have changed the file since, remove only our part."""
    step = InstallStep(changed.kind, changed.agent, "removed", to_text(path))
    try:
        now = path.read_bytes() if path.exists() else None
        after = None if now is None else _without_us(now, changed)
        if not dry_run:
            _write(path, now, after)
            _remove_empty(changed.folders if after is None else [])
    except (OSError, Unmergeable) as error:
        step.state, step.note = "failed", f"left alone: {error_reason(error)}"
        return step
    if after is None:
        return step
    if after == changed.original:
        step.state = "restored"
    else:
        step.note = "changed since: only what is ours was taken out"
    return step


def _write(path: Path, now: bytes | None, after: bytes | None) -> None:
    if after is None:
        path.unlink(missing_ok=True)
    elif now != after:
        replace(path, after)


def _without_us(now: bytes, changed: ChangedByInit) -> bytes | None:
    """Return the original content, or, if others have changed the file since, the content without
    our part."""
    if changed.kind in ("skill", "plugin"):
        return changed.original
    if changed.kind in ("exclude", "plugin-settings"):
        ours = {line.encode() for line in changed.lines}
        kept = b"".join(line for line in now.splitlines(keepends=True) if line.strip() not in ours)
        same = kept.rstrip(b"\n") == (changed.original or b"").rstrip(b"\n")
        return changed.original if same else kept
    if changed.server:
        place = server_places()[changed.agent]
        if changed.kind == "server" and same_but_for_server(now, changed.original or b"", place):
            return changed.original
        now = remove_server(now, place)
        if changed.kind == "server":
            return now
    agent = hookable()[changed.agent]
    if same_but_for_ours(now, changed.original or b"", agent):
        return changed.original
    return remove(now, agent)


def _remove_empty(folders: list[str]) -> None:
    for folder in folders:
        try:
            to_path(folder).rmdir()
        except OSError:
            return  # others have put something there


def error_reason(error: Exception) -> str:
    if isinstance(error, WhyforError):
        return f"{error.message}. {error.hint}"
    return (isinstance(error, OSError) and error.strerror) or str(error)

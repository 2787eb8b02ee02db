"""init and uninstall: hooks in agents' settings and in repositories, and everything back as it
was."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterable
from contextlib import suppress
from importlib.resources import files
from pathlib import Path

import msgspec

from whyfor.agents import AGENTS
from whyfor.agents.hooks import (
    HOOKABLE,
    MARK,
    Hookable,
    HookEvent,
    Unmergeable,
    commands,
    merge,
    remove,
    same_but_for_ours,
)
from whyfor.capture.ingest import wall_clock
from whyfor.config import Settings
from whyfor.files import make_folders, replace
from whyfor.git import hooks as git_hooks
from whyfor.hook import FILES
from whyfor.model import former_name
from whyfor.model.errors import BadInput, StoreError, WhyforError
from whyfor.model.paths import to_path, to_text
from whyfor.model.progress import Announce
from whyfor.service.ingest import IngestReport, ingest
from whyfor.service.init import manifest as prints
from whyfor.service.init.manifest import ChangedByInit, InstallStep, hook_folder, reason

SKILL = "whyfor-note"


class InitReport(msgspec.Struct):
    repository: str | None
    dry_run: bool
    steps: list[InstallStep]
    todo: list[str]
    ingest: IngestReport | None = None


class UninstallReport(msgspec.Struct):
    repository: str | None
    dry_run: bool
    steps: list[InstallStep]
    todo: list[str]


# -- what runs -----------------------------------------------------------------------------------


def interpreter() -> str:
    """The interpreter itself, not a link in a virtual environment nor a shim that may go away."""
    return os.path.realpath(getattr(sys, "_base_executable", None) or sys.executable)


def launcher() -> bytes:
    """The command that starts an ingest, one word per line."""
    return os.fsencode(
        "\n".join([sys.executable, "-I", "-m", "whyfor", "ingest", "--background", ""])
    )


def hook_command(settings: Settings, agent: str, on: HookEvent, annotate: bool) -> str:
    python, hook = _quoted(interpreter()), _quoted(str(hook_folder(settings) / "hook.py"))
    asks = "--annotate " if annotate and on.annotate else ""
    return (
        f"test -x {python} && {python} -I -S {hook} --agent {agent} {asks}{on.event} 2>/dev/null; "
        f"exit 0 {MARK}"
    )


def _quoted(word: str) -> str:
    """Return a word for a shell; settings are JSON, so what is not UTF-8 is written as printf's
    octal escapes."""
    if to_text(word) == word:
        return shlex.quote(word)
    safe = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-"
    escaped = "".join(chr(byte) if byte in safe else f"\\{byte:03o}" for byte in os.fsencode(word))
    return f"\"$(printf '{escaped}')\""


def hook_files() -> dict[str, bytes]:
    """What lies in our folder of hooks, by name."""
    copied = {name: files("whyfor").joinpath("hook", name).read_bytes() for name in FILES}
    return {**copied, "launch": launcher()}


def caller(settings: Settings, notice: bool = True) -> git_hooks.Caller:
    return git_hooks.Caller(interpreter(), hook_folder(settings) / "hook.py", notice)


# -- init ----------------------------------------------------------------------------------------


def init(
    settings: Settings,
    folder: Path,
    *,
    agents: Iterable[str] = (),
    with_git: bool = True,
    local: bool = False,
    annotate: bool | None = None,
    notice: bool = True,
    dry_run: bool = False,
    announce: Announce | None = None,
    linking: Announce | None = None,
) -> InitReport:
    """Install hooks for the agents present and for the repository a folder is in, then read and
    link what is there."""
    repository = git_hooks.find(folder)
    if local and repository is None:
        raise BadInput("--local needs a repository", "Run it inside one, or leave --local away.")
    work = _Init(settings, repository, annotate, dry_run)
    chosen = work.choose(list(agents))
    if not dry_run:
        place_hook(settings)
    work.steps += _remove_former_files(settings, repository, dry_run)
    for agent in chosen:
        work.settle(agent, local)
    if local:
        work.exclude([agent.local for agent in chosen])
    else:
        work.skills(chosen)
    if with_git:
        work.git(folder, notice)
    steps = sorted(work.steps, key=lambda step: step.state == "absent")
    report = InitReport(to_text(repository.top) if repository else None, dry_run, steps, work.todo)
    if not dry_run:
        report.ingest = ingest(settings, announce=announce, linking=linking)
    return report


def place_hook(settings: Settings) -> None:
    folder = hook_folder(settings)
    try:
        make_folders(folder)
        for name, content in hook_files().items():
            replace(folder / name, content)
    except OSError as error:
        hint = "Check its permissions, or set WHYFOR_HOME. Nothing was installed."
        raise StoreError(f"cannot write to {folder}: {error.strerror}", hint) from None


class _Init:
    def __init__(
        self,
        settings: Settings,
        repository: git_hooks.HookedRepository | None,
        annotate: bool | None,
        dry_run: bool,
    ) -> None:
        self.settings = settings
        self.repository = repository
        self.dry_run = dry_run
        self.footprint = prints.load_manifest(settings)
        before = any(changed.annotate for changed in self.footprint.files.values())
        self.annotate = before if annotate is None else annotate
        self.steps: list[InstallStep] = []
        self.todo: list[str] = []

    def choose(self, wanted: list[str]) -> list[Hookable]:
        for name in wanted:
            if name not in AGENTS:
                raise BadInput(f"no agent is called {name}", f"Choose from: {', '.join(AGENTS)}.")
        found = []
        for name in wanted or AGENTS:
            agent = HOOKABLE.get(name)
            if agent is None:
                note = "has no command hooks; its sessions are read all the same"
                self.steps.append(InstallStep("agent", name, "absent", note=note))
            elif not wanted and not agent.present(self.settings.user_home, self.settings.env):
                self.steps.append(InstallStep("agent", name, "absent", note="not on this machine"))
            else:
                found.append(agent)
        return found

    def settle(self, agent: Hookable, local: bool) -> None:
        """Our entries in an agent's settings."""
        path = (
            self.repository.top / agent.local
            if local and self.repository
            else self._below(agent, agent.file)
        )
        step = InstallStep(
            "agent", agent.agent, "failed", to_text(path), [on.event for on in agent.events]
        )
        self.steps.append(step)
        if local and self.repository and git_hooks.tracked(self.repository, path):
            step.note = "left alone: git tracks it, so our hooks would reach your colleagues"
            return
        record = ChangedByInit("agent", agent.agent, wall_clock(), annotate=self.annotate)
        record.repository = to_text(self.repository.common) if local and self.repository else None
        self._change(
            path,
            record,
            step,
            lambda content: merge(
                content,
                agent,
                lambda on: hook_command(self.settings, agent.agent, on, self.annotate),
            ),
            lambda content: remove(content, agent),
        )
        if agent.consent and step.state in ("installed", "updated"):
            self.todo.append(agent.consent)

    def skills(self, agents: list[Hookable]) -> None:
        """How to write down a commit's story, for agents that are asked to."""
        text = files("whyfor").joinpath("agents", "skill.md").read_bytes()
        for agent in agents:
            path = self._below(agent, f"{agent.skills}/{SKILL}/SKILL.md")
            known = self.footprint.files.get(to_text(path))
            if self.annotate and agent.skills:
                self.steps.append(
                    step := InstallStep("skill", agent.agent, "failed", to_text(path))
                )
                self._change(
                    path, ChangedByInit("skill", agent.agent, wall_clock()), step, lambda _: text
                )
            elif known:
                self.steps.append(prints.put_back(path, known, dry_run=self.dry_run))
                self.footprint.files.pop(to_text(path))
                self._keep()

    def exclude(self, names: list[str]) -> None:
        """Local settings are nobody else's business; what the project tracks is not touched for
        it."""
        assert self.repository
        top = self.repository.top
        lines = [f"/{name}" for name in names if not git_hooks.ignored(self.repository, top / name)]
        lines = [line for line in lines if not git_hooks.tracked(self.repository, top / line[1:])]
        if not lines:
            return
        path = git_hooks.exclude_file(self.repository)
        self.steps.append(
            step := InstallStep("exclude", "git", "failed", to_text(path), note=", ".join(lines))
        )
        record = ChangedByInit(
            "exclude", "git", wall_clock(), repository=to_text(self.repository.common), lines=lines
        )
        added = "".join(f"{line}\n" for line in lines).encode()
        self._change(
            path, record, step, lambda was: was + b"\n" * (was[-1:] not in (b"", b"\n")) + added
        )

    def git(self, folder: Path, notice: bool) -> None:
        if self.repository is None:
            note = (
                "a bare repository: nobody commits in it"
                if git_hooks.is_bare(folder)
                else "not in a repository"
            )
            self.steps.append(
                InstallStep("git", "git", "absent", note=f"{note}; agents' hooks only")
            )
            return
        common = to_text(self.repository.common)
        self.footprint.repositories.setdefault(common, not self.repository.plain.exists())
        beside = git_hooks.beside(self.repository)
        try:
            self._keep()
            done = git_hooks.install(
                self.repository, caller(self.settings, notice), dry_run=self.dry_run
            )
        except (OSError, WhyforError) as error:
            self.steps.append(InstallStep("git", "git", "failed", common, note=reason(error)))
            return
        for state in dict.fromkeys(done.values()):
            paths = [path for path, was in done.items() if was == state]
            self.steps.append(
                InstallStep(
                    "git",
                    "git",
                    state,
                    to_text(paths[0].parent),
                    [path.name for path in paths],
                    note=beside,
                )
            )

    def _below(self, agent: Hookable, name: str) -> Path:
        return agent.folder(self.settings.user_home, self.settings.env) / name

    def _change(
        self, path: Path, record: ChangedByInit, step: InstallStep, *how: prints.Rewrite
    ) -> None:
        prints.change(
            self.footprint, path, record, step, *how, keep=None if self.dry_run else self._keep
        )

    def _keep(self) -> None:
        if not self.dry_run:
            prints.save_manifest(self.settings, self.footprint)


# -- uninstall -----------------------------------------------------------------------------------


def uninstall(
    settings: Settings, folder: Path, *, everything: bool = False, dry_run: bool = False
) -> UninstallReport:
    """This repository's hooks; with the last repository, or with everything, those in agents'
    settings too."""
    repository = git_hooks.find(folder)
    footprint = prints.load_manifest(settings)
    report = UninstallReport(to_text(repository.top) if repository else None, dry_run, [], [])
    here = to_text(repository.common) if repository else None
    for common in dict.fromkeys([here, *(footprint.repositories if everything else ())]):
        if common:
            report.steps += _out_of(
                to_path(common), footprint.repositories.pop(common, False), dry_run
            )
    _recall(settings, footprint)
    report.steps += _remove_former_files(settings, repository, dry_run)
    left = {
        common: made for common, made in footprint.repositories.items() if to_path(common).is_dir()
    }
    footprint.repositories = left
    for path, changed in list(footprint.files.items()):
        goes = changed.repository == here if changed.repository else not left
        if goes or everything:
            report.steps.append(step := prints.put_back(to_path(path), changed, dry_run=dry_run))
            if step.state != "failed":
                del footprint.files[path]
    if left and footprint.files:
        report.todo.append(
            "Agents' hooks stay for your other repositories; take them out: whyfor uninstall --all"
        )
    if not dry_run:
        prints.save_manifest(settings, footprint)
    return report


def _recall(settings: Settings, footprint: prints.InstallManifest) -> None:
    """Entries of ours in agents' own settings that are on no record: somebody has deleted our
    folder."""
    for agent in HOOKABLE.values():
        path = agent.folder(settings.user_home, settings.env) / agent.file
        if to_text(path) in footprint.files or not path.is_file():
            continue
        with suppress(OSError, Unmergeable):
            content = path.read_bytes()
            ours = _quoted(str(hook_folder(settings) / "hook.py"))
            found = commands(content, agent).values()
            if any(
                ours in command or command.rstrip().endswith(former_name.COMMAND_MARK)
                for command in found
            ):
                bare = None if same_but_for_ours(content, b"", agent) else remove(content, agent)
                footprint.files[to_text(path)] = ChangedByInit(
                    "agent", agent.agent, 0, original=bare
                )


def _remove_former_files(
    settings: Settings, repository: git_hooks.HookedRepository | None, dry_run: bool
) -> list[InstallStep]:
    """Files that carry the name this program had before, and nothing of anybody else's."""
    found: list[tuple[str, Path]] = []
    copilot = HOOKABLE["copilot"]
    places = [copilot.folder(settings.user_home, settings.env)]
    places += [repository.top / ".github"] if repository else []
    for path in (place / former_name.COPILOT_FILE for place in places):
        with suppress(OSError, Unmergeable):
            if same_but_for_ours(path.read_bytes(), b"", copilot):
                found.append(("copilot", path))
    for agent in HOOKABLE.values():
        skill = (
            agent.folder(settings.user_home, settings.env)
            / f"{agent.skills}/{former_name.SKILL}/SKILL.md"
        )
        if agent.skills and skill.is_file():
            found.append((agent.agent, skill))
    steps = []
    for name, path in found:
        if not dry_run:
            path.unlink()
            if path.parent.name == former_name.SKILL and not any(path.parent.iterdir()):
                path.parent.rmdir()
        steps.append(
            InstallStep("agent", name, "removed", to_text(path), note="of our former name")
        )
    return steps


def _out_of(common: Path, made: bool, dry_run: bool) -> list[InstallStep]:
    if not common.is_dir():
        return []
    try:
        taken = git_hooks.uninstall(
            git_hooks.HookedRepository(common, common), made_folder=made, dry_run=dry_run
        )
    except (OSError, WhyforError) as error:
        return [InstallStep("git", "git", "failed", to_text(common), note=reason(error))]
    folders = dict.fromkeys(path.parent for path in taken)
    return [
        InstallStep(
            "git", "git", "removed", to_text(at), [path.name for path in taken if path.parent == at]
        )
        for at in folders
    ]

"""init and uninstall: install hooks in agents' settings and in repositories, and restore
everything."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from importlib.resources import files
from pathlib import Path

import msgspec

from whyfor.agents import AGENTS
from whyfor.agents.facts import Hookable, HookEvent, PluginFile, ServerPlace
from whyfor.agents.hooks import (
    Unmergeable,
    commands,
    hookable,
    is_present,
    merge,
    remove,
    same_but_for_ours,
    wanted_events,
)
from whyfor.agents.plugins import plugin_content, plugin_files, plugin_path
from whyfor.agents.servers import (
    add_server,
    listed_server,
    remove_server,
    same_but_for_server,
    server_command,
    server_file,
    server_places,
)
from whyfor.capture import manifest as prints
from whyfor.capture.block_folder import switch_blocks
from whyfor.capture.hook_files import (
    HookAnswers,
    caller,
    hook_command,
    place_hook,
    plugin_words,
    quote_word,
    server_variables,
)
from whyfor.capture.manifest import ChangedByInit, error_reason, hook_folder
from whyfor.capture.manifest import InstallStep as InstallStep
from whyfor.capture.shell_edits import prune_snapshots
from whyfor.config import Settings
from whyfor.git import hooks as git_hooks
from whyfor.live.answer_address import ANSWER_SECONDS, answer_key, answers_address, asked_port
from whyfor.model import former_name
from whyfor.model.errors import BadInput, WhyforError
from whyfor.model.paths import to_path, to_text
from whyfor.model.progress import Announce
from whyfor.model.times import wall_clock
from whyfor.service.ingest import IngestReport, ingest
from whyfor.service.init.telemetry import (
    switch_telemetry_off,
    switch_telemetry_on,
    telemetry_files_to_name,
)

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


# -- init ----------------------------------------------------------------------------------------


class InitOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of init."""

    agents: Sequence[str] = ()  # those on this machine, if none is named
    with_git: bool = True
    local: bool = False
    annotate: bool | None = None  # None: as it was before
    memory: bool | None = None  # None: as it was before
    prompts: bool | None = None  # None: as it was before; never without memory
    rules: bool | None = None  # None: as it was before
    telemetry: bool | None = None  # None: as it was before
    shell_edits: bool | None = None  # None: as it was before
    notice: bool = True
    dry_run: bool = False


def init(
    settings: Settings,
    folder: Path,
    options: InitOptions | None = None,
    *,
    announce: Announce | None = None,
    linking: Announce | None = None,
) -> InitReport:
    """Install hooks for the agents on this machine and for the repository of a folder, then read
    and link the history."""
    options = _whole_choice(options or InitOptions())
    repository = git_hooks.find_hooked(folder)
    if options.local and repository is None:
        raise BadInput("--local needs a repository", "Run it inside one, or leave --local away.")
    work = _Init(settings, repository, options)
    chosen = work.choose()
    if not options.dry_run:
        place_hook(settings)
    work.steps += _remove_former_files(settings, repository, options.dry_run)
    for agent in chosen:
        work.settle(agent)
    if options.local:
        work.exclude([agent.local for agent in chosen])
    else:
        work.skills(chosen)
        work.servers(chosen)
        work.plugins()
    if options.telemetry:
        names = {agent.agent for agent in chosen}
        work.steps += switch_telemetry_on(settings, names, dry_run=options.dry_run)
        work.todo += telemetry_files_to_name(settings, names)
    elif options.telemetry is False:
        work.steps += switch_telemetry_off(settings, dry_run=options.dry_run)
    if options.with_git:
        work.git(folder)
    work.remember()
    steps = sorted(work.steps, key=lambda step: step.state == "absent")
    top = to_text(repository.top) if repository else None
    report = InitReport(top, options.dry_run, steps, work.todo)
    if not options.dry_run:
        report.ingest = ingest(settings, announce=announce, linking=linking)
    return report


def _whole_choice(options: InitOptions) -> InitOptions:
    """Return the options with what they imply; raise BadInput for those that exclude each other."""
    if options.prompts and options.memory is False:
        raise BadInput("--memory-prompts needs --memory", "Leave --no-memory away.")
    if options.prompts:
        return msgspec.structs.replace(options, memory=True)
    return options


def memory_choice(settings: Settings) -> bool | None:
    """Return whether the person wants sessions to be told of earlier ones; None if nobody was
    asked."""
    return prints.load_manifest(settings).memory


def hooked_repository(settings: Settings, folder: Path) -> tuple[str | None, bool]:
    """Return the work tree around a folder, and whether init installed hooks in its repository."""
    repository = git_hooks.find_hooked(folder)
    if repository is None:
        return None, False
    installed = prints.load_manifest(settings).repositories
    return to_text(repository.top), to_text(repository.common) in installed


class _Init:
    """One run of init, step by step."""

    def __init__(
        self,
        settings: Settings,
        repository: git_hooks.HookedRepository | None,
        options: InitOptions,
    ) -> None:
        self.settings = settings
        self.repository = repository
        self.options = options
        self.dry_run = options.dry_run
        self.footprint = prints.load_manifest(settings)
        self.annotate = options.annotate
        if self.annotate is None:
            self.annotate = any(changed.annotate for changed in self.footprint.files.values())
        self.steps: list[InstallStep] = []
        self.todo: list[str] = []

    def choose(self) -> list[Hookable]:
        """Return the named agents, or those on this machine; raise BadInput for an unknown one."""
        wanted = self.options.agents
        for name in wanted:
            if name not in AGENTS:
                raise BadInput(f"no agent is called {name}", f"Choose from: {', '.join(AGENTS)}.")
        found = []
        for name in wanted or AGENTS:
            agent = hookable().get(name)
            if agent is None:
                note = "has no command hooks; its sessions are read all the same"
                self.steps.append(InstallStep("agent", name, "absent", note=note))
            elif not wanted and not is_present(agent, self.settings.user_home, self.settings.env):
                self.steps.append(InstallStep("agent", name, "absent", note="not on this machine"))
            else:
                found.append(agent)
        return found

    def settle(self, agent: Hookable) -> None:
        """Add our entries to an agent's settings."""
        here = self.repository if self.options.local else None
        path = here.top / agent.local if here else self._below(agent, agent.file)
        watched = self._watches_shell(path)
        events = [on.event for on in wanted_events(agent, snapshots=watched)]
        step = InstallStep("agent", agent.agent, "failed", to_text(path), events)
        self.steps.append(step)
        if here and git_hooks.tracked(here, path):
            step.note = "left alone: git tracks it, so our hooks would reach your colleagues"
            return
        remembers = self._remembers(path)
        answers = HookAnswers(
            annotate=bool(self.annotate),
            memory=remembers,
            prompts=remembers and self._prompts(path),
            rules=self._rules(path),
            ask=asked_port(agent.agent, self._rules(path)),
            shell_edits=watched,
        )
        record = ChangedByInit("agent", agent.agent, wall_clock(), annotate=answers.annotate)
        record.memory, record.prompts = answers.memory, answers.prompts
        record.rules, record.shell_edits = answers.rules, answers.shell_edits
        known = self.footprint.files.get(to_text(path))
        record.server = known is not None and known.server
        record.repository = to_text(here.common) if here else None

        def command(on: HookEvent) -> str:
            return hook_command(self.settings, agent.agent, on, answers)

        rewrite = prints.Rewrite(
            to=lambda content: merge(
                content,
                agent,
                command,
                self._asked(agent, answers.rules),
                snapshots=answers.shell_edits,
            ),
            without=lambda content: remove(content, agent),
        )
        self._change(path, record, step, rewrite)
        if agent.consent and step.state in ("installed", "updated"):
            self.todo.append(agent.consent)

    def _remembers(self, path: Path) -> bool:
        """Whether sessions of these settings are told of earlier ones."""
        known = self.footprint.files.get(to_text(path))
        if self.options.memory is not None:
            return self.options.memory
        return known.memory if known else bool(self.footprint.memory)

    def _prompts(self, path: Path) -> bool:
        """Whether sessions of these settings are told of notes with a prompt."""
        known = self.footprint.files.get(to_text(path))
        if self.options.prompts is not None:
            return self.options.prompts
        return known.prompts if known else self.footprint.prompts

    def _asked(self, agent: Hookable, rules: bool) -> dict[str, object] | None:
        """The entry by which an agent asks our server, so that its requests can be answered in a
        browser; None where it cannot."""
        form = AGENTS[agent.agent].facts.approvals
        if not rules or form is None or not form.over_http:
            return None
        address = answers_address(self.settings, agent.agent, self._key())
        return {
            "type": "http",
            "url": address["url"],
            "timeout": ANSWER_SECONDS,
            "headers": {"Authorization": f"Bearer {address['key']}"},
        }

    def _key(self) -> str:
        return "" if self.dry_run else answer_key(self.settings)

    def _rules(self, path: Path) -> bool:
        """Whether rules may answer what these settings' agent asks."""
        known = self.footprint.files.get(to_text(path))
        if self.options.rules is not None:
            return self.options.rules
        return known.rules if known else self.footprint.rules

    def _watches_shell(self, path: Path) -> bool:
        """Whether the work tree is looked at around shell commands of these settings' agent."""
        known = self.footprint.files.get(to_text(path))
        if self.options.shell_edits is not None:
            return self.options.shell_edits
        return known.shell_edits if known else self.footprint.shell_edits

    def remember(self) -> None:
        """Keep the person's choices, and have blocks made or removed."""
        if self.options.rules is not None:
            self.footprint.rules = self.options.rules
            self._keep()
        if self.options.shell_edits is not None:
            self.footprint.shell_edits = self.options.shell_edits
            self._keep()
            if not self.options.shell_edits and not self.dry_run:
                prune_snapshots(self.settings.home, everything=True)
        if self.options.memory is not None:
            self.footprint.memory = self.options.memory
            self.footprint.prompts = self.footprint.prompts and self.options.memory
        if self.options.prompts is not None:
            self.footprint.prompts = self.options.prompts
        if (self.options.memory, self.options.prompts) != (None, None):
            self._keep()
        if not self.dry_run:
            told = any(changed.memory for changed in self.footprint.files.values())
            switch_blocks(self.settings, told)

    def servers(self, agents: list[Hookable]) -> None:
        """List our MCP server with agents whose sessions are told of earlier ones, and take it out
        of the others' lists."""
        chosen = {agent.agent for agent in agents}
        for name, place in server_places().items():
            path = server_file(place, self.settings.user_home, self.settings.env)
            known = self.footprint.files.get(to_text(path))
            if name not in chosen and not (name not in hookable() and self._is_chosen(place)):
                continue
            hooks = hookable().get(name)
            if hooks is not None:
                wanted = self._remembers(self._below(hooks, hooks.file))
            else:
                wanted = self._remembers(path)
            if wanted or (known is not None and known.server):
                self._list_server(place, path, wanted)

    def plugins(self) -> None:
        """Install our plugin for agents without command hooks."""
        for name, plugin in plugin_files().items():
            if not self._is_chosen(plugin):
                continue
            path = plugin_path(plugin, self.settings.user_home, self.settings.env)
            step = InstallStep("plugin", name, "failed", to_text(path))
            self.steps.append(step)
            record = ChangedByInit("plugin", name, wall_clock())
            record.memory, record.rules = self._remembers(path), self._rules(path)
            key = self._key() if record.rules else ""
            answers = answers_address(self.settings, name, key) if record.rules else None
            words = plugin_words(self.settings, name, memory=record.memory, answers=answers)
            rewrite = prints.Rewrite(to=partial(plugin_content, plugin, words))
            self._change(path, record, step, rewrite)
            if plugin.settings:
                self._plugin_settings(plugin)

    def _plugin_settings(self, plugin: PluginFile) -> None:
        """Write the settings a plugin needs beside it, unless the user has a file of that name."""
        path = plugin.folder(self.settings.user_home, self.settings.env) / plugin.settings_file
        if path.exists() and to_text(path) not in self.footprint.files:
            return
        step = InstallStep("plugin-settings", plugin.agent, "failed", to_text(path))
        self.steps.append(step)
        lines = list(plugin.settings)
        record = ChangedByInit("plugin-settings", plugin.agent, wall_clock(), lines=lines)
        text = "".join(f"{line}\n" for line in lines).encode()
        self._change(path, record, step, prints.Rewrite(to=lambda was: was or text))

    def _is_chosen(self, place: ServerPlace | PluginFile) -> bool:
        if self.options.agents:
            return place.agent in self.options.agents
        return place.folder(self.settings.user_home, self.settings.env).is_dir()

    def _list_server(self, place: ServerPlace, path: Path, wanted: bool) -> None:
        known = self.footprint.files.get(to_text(path))
        if not wanted and known is not None and known.kind == "server":
            self.steps.append(prints.put_back(path, known, dry_run=self.dry_run))
            del self.footprint.files[to_text(path)]
            self._keep()
            return
        step = InstallStep("server", place.agent, "failed", to_text(path))
        self.steps.append(step)
        record = ChangedByInit("server", place.agent, wall_clock())
        if known is not None:
            record.annotate, record.memory = known.annotate, known.memory
            record.prompts = known.prompts
        record.server = wanted
        if known is None:
            record.memory = wanted
        command = server_command(sys.executable)
        variables = server_variables(self.settings)

        def change(content: bytes) -> bytes:
            if wanted:
                return add_server(content, place, command, variables)
            return remove_server(content, place)

        rewrite = prints.Rewrite(to=change, without=lambda was: remove_server(was, place))
        self._change(path, record, step, rewrite)

    def skills(self, agents: list[Hookable]) -> None:
        """Install the skill that explains `whyfor note`, for agents that are asked to annotate."""
        text = files("whyfor").joinpath("agents", "skill.md").read_bytes()
        for agent in agents:
            path = self._below(agent, f"{agent.skills}/{SKILL}/SKILL.md")
            known = self.footprint.files.get(to_text(path))
            if self.annotate and agent.skills:
                step = InstallStep("skill", agent.agent, "failed", to_text(path))
                self.steps.append(step)
                record = ChangedByInit("skill", agent.agent, wall_clock())
                self._change(path, record, step, prints.Rewrite(to=lambda _: text))
            elif known:
                self.steps.append(prints.put_back(path, known, dry_run=self.dry_run))
                self.footprint.files.pop(to_text(path))
                self._keep()

    def exclude(self, names: list[str]) -> None:
        """Let git ignore local settings, in this repository's own exclude file."""
        assert self.repository
        lines = []
        for name in names:
            path = self.repository.top / name
            known = git_hooks.ignored(self.repository, path)
            if not known and not git_hooks.tracked(self.repository, path):
                lines.append(f"/{name}")
        if not lines:
            return
        path = git_hooks.exclude_file(self.repository)
        note = ", ".join(lines)
        step = InstallStep("exclude", "git", "failed", to_text(path), note=note)
        self.steps.append(step)
        common = to_text(self.repository.common)
        record = ChangedByInit("exclude", "git", wall_clock(), repository=common, lines=lines)
        added = "".join(f"{line}\n" for line in lines).encode()
        self._change(path, record, step, prints.Rewrite(to=lambda was: _whole_lines(was) + added))

    def git(self, folder: Path) -> None:
        """Install git's hooks in the repository, if there is one with a work tree."""
        if self.repository is None:
            note = "not in a repository"
            if git_hooks.is_bare(folder):
                note = "a bare repository: nobody commits in it"
            note = f"{note}; agents' hooks only"
            self.steps.append(InstallStep("git", "git", "absent", note=note))
            return
        common = to_text(self.repository.common)
        self.footprint.repositories.setdefault(common, not self.repository.plain.exists())
        beside = git_hooks.describe_chain(self.repository)
        ours = caller(self.settings, self.options.notice)
        try:
            self._keep()
            done = git_hooks.install(self.repository, ours, dry_run=self.dry_run)
        except (OSError, WhyforError) as error:
            self.steps.append(InstallStep("git", "git", "failed", common, note=error_reason(error)))
            return
        for state in dict.fromkeys(done.values()):
            paths = [path for path, was in done.items() if was == state]
            names = [path.name for path in paths]
            folder_name = to_text(paths[0].parent)
            self.steps.append(InstallStep("git", "git", state, folder_name, names, note=beside))

    def _below(self, agent: Hookable, name: str) -> Path:
        return agent.folder(self.settings.user_home, self.settings.env) / name

    def _change(
        self, path: Path, record: ChangedByInit, step: InstallStep, rewrite: prints.Rewrite
    ) -> None:
        keep = None if self.dry_run else self._keep
        prints.change(self.footprint, path, record, step, rewrite, keep=keep)

    def _keep(self) -> None:
        if not self.dry_run:
            prints.save_manifest(self.settings, self.footprint)


def _whole_lines(text: bytes) -> bytes:
    """Return a text that ends with a newline."""
    return text if text[-1:] in (b"", b"\n") else text + b"\n"


# -- uninstall -----------------------------------------------------------------------------------


def uninstall(
    settings: Settings, folder: Path, *, everything: bool = False, dry_run: bool = False
) -> UninstallReport:
    """Remove this repository's hooks; with the last repository, or with `everything`, also those in
    agents' settings."""
    repository = git_hooks.find_hooked(folder)
    footprint = prints.load_manifest(settings)
    report = UninstallReport(to_text(repository.top) if repository else None, dry_run, [], [])
    here = to_text(repository.common) if repository else None
    for common in dict.fromkeys([here, *(footprint.repositories if everything else ())]):
        if common:
            made = footprint.repositories.pop(common, False)
            report.steps += _out_of(to_path(common), made, dry_run)
    _recall(settings, footprint)
    report.steps += _remove_former_files(settings, repository, dry_run)
    for common in list(footprint.repositories):
        if not to_path(common).is_dir():
            del footprint.repositories[common]
    left = bool(footprint.repositories)
    if everything or not left:  # before our hooks go, so that files are what they were
        report.steps += switch_telemetry_off(settings, dry_run=dry_run)
    for path, changed in list(footprint.files.items()):
        goes = changed.repository == here if changed.repository else not left
        if goes or everything:
            step = prints.put_back(to_path(path), changed, dry_run=dry_run)
            report.steps.append(step)
            if step.state != "failed":
                del footprint.files[path]
    if left and footprint.files:
        report.todo.append(
            "Agents' hooks stay for your other repositories; take them out: whyfor uninstall --all"
        )
    if not dry_run:
        prints.save_manifest(settings, footprint)
        if not footprint.files:
            prune_snapshots(settings.home, everything=True)
    return report


def _recall(settings: Settings, footprint: prints.InstallManifest) -> None:
    """Record our entries in agents' settings that the manifest lacks, because somebody deleted our
    directory."""
    ours = quote_word(str(hook_folder(settings) / "hook.py"))
    for agent in hookable().values():
        path = agent.folder(settings.user_home, settings.env) / agent.file
        if to_text(path) in footprint.files or not path.is_file():
            continue
        with suppress(OSError, Unmergeable):
            content = path.read_bytes()
            if any(_is_ours(command, ours) for command in commands(content, agent).values()):
                bare = None if same_but_for_ours(content, b"", agent) else remove(content, agent)
                record = ChangedByInit("agent", agent.agent, 0, original=bare)
                footprint.files[to_text(path)] = record
    for name, place in server_places().items():
        path = server_file(place, settings.user_home, settings.env)
        with suppress(OSError, Unmergeable, ValueError):
            if listed_server(path.read_bytes(), place)[1]:
                _recall_server(footprint, name, place, path)


def _recall_server(
    footprint: prints.InstallManifest, name: str, place: ServerPlace, path: Path
) -> None:
    record = footprint.files.get(to_text(path))
    if record is None:
        content = path.read_bytes()
        empty = same_but_for_server(content, b"", place)
        bare = None if empty else remove_server(content, place)
        record = footprint.files[to_text(path)] = ChangedByInit("server", name, 0, original=bare)
    elif not record.server and record.original is not None:
        empty = same_but_for_server(record.original, b"", place)
        record.original = None if empty else remove_server(record.original, place)
    record.server = True


def _is_ours(command: str, hook: str) -> bool:
    return hook in command or command.rstrip().endswith(former_name.COMMAND_MARK)


def _remove_former_files(
    settings: Settings, repository: git_hooks.HookedRepository | None, dry_run: bool
) -> list[InstallStep]:
    """Remove files with this program's former name, and nothing else."""
    steps = []
    for name, path in _former_files(settings, repository):
        if not dry_run:
            path.unlink()
            if path.parent.name == former_name.SKILL and not any(path.parent.iterdir()):
                path.parent.rmdir()
        note = "of our former name"
        steps.append(InstallStep("agent", name, "removed", to_text(path), note=note))
    return steps


def _former_files(
    settings: Settings, repository: git_hooks.HookedRepository | None
) -> list[tuple[str, Path]]:
    """Return the agents and paths of files with the former name."""
    found: list[tuple[str, Path]] = []
    for agent in hookable().values():
        for path in _former_settings(settings, repository, agent):
            with suppress(OSError, Unmergeable):
                if same_but_for_ours(path.read_bytes(), b"", agent):
                    found.append((agent.agent, path))
    for agent in hookable().values():
        folder = agent.folder(settings.user_home, settings.env)
        skill = folder / f"{agent.skills}/{former_name.SKILL}/SKILL.md"
        if agent.skills and skill.is_file():
            found.append((agent.agent, skill))
    return found


def _former_settings(
    settings: Settings, repository: git_hooks.HookedRepository | None, agent: Hookable
) -> list[Path]:
    """Where settings may be that were ours alone under our former name."""
    own = agent.folder(settings.user_home, settings.env)
    found = [own / agent.former_file] if agent.former_file else []
    if repository and agent.former_local:
        found.append(repository.top / agent.former_local)
    return found


def _out_of(common: Path, made: bool, dry_run: bool) -> list[InstallStep]:
    """Remove our hooks from a repository; `made` if we created its hooks directory."""
    if not common.is_dir():
        return []
    repository = git_hooks.HookedRepository(common, common)
    try:
        taken = git_hooks.uninstall_hooks(repository, made_folder=made, dry_run=dry_run)
    except (OSError, WhyforError) as error:
        return [InstallStep("git", "git", "failed", to_text(common), note=error_reason(error))]
    names: dict[Path, list[str]] = {}
    for path in taken:
        names.setdefault(path.parent, []).append(path.name)
    return [
        InstallStep("git", "git", "removed", to_text(folder), hooks)
        for folder, hooks in names.items()
    ]

"""whyfor init"""

from __future__ import annotations

import sys
from pathlib import Path

import click

from whyfor import config
from whyfor.cli.render import console, home_text, json_option, print_json, progress_bars
from whyfor.cli.tables import AgentCell, FittedTable
from whyfor.model.text import plural
from whyfor.model.wire.reports import wire_report
from whyfor.service.init import InitOptions, InitReport, InstallStep, init, memory_choice
from whyfor.terminal import say

SIGN = {
    "installed": ("✓", "green"),
    "updated": ("✓", "green"),
    "unchanged": ("✓", "dim"),
    "removed": ("✓", "green"),
    "restored": ("✓", "green"),
    "absent": ("–", "dim"),
    "failed": ("✕", "red"),
}


_ABOUT_MEMORY = (
    "Whyfor can tell each new session what earlier sessions in the same repository found, decided"
    " and left open (about 1,500 tokens; see: whyfor memory preview)."
)
WITHOUT_EVENTS = {
    "skill": "skill",
    "exclude": "excluded",
    "server": "MCP server",
    "plugin": "plugin",
    "plugin-settings": "plugin's settings",
    "telemetry": "telemetry",
}


@click.command()
@click.option("--agent", "agents", multiple=True, help="Only this agent's hooks; can be repeated.")
@click.option("--no-git", is_flag=True, help="Do not install git hooks.")
@click.option(
    "--local",
    is_flag=True,
    help="Agents' hooks for this directory only, in untracked settings.",
)
@click.option(
    "--annotate/--no-annotate",
    default=None,
    help="Ask agents to explain each commit they make.",
)
@click.option(
    "--memory/--no-memory",
    default=None,
    help="Tell each new session what earlier sessions found in its repository.",
)
@click.option(
    "--memory-prompts/--no-memory-prompts",
    "prompts",
    default=None,
    help="Tell a session with each prompt which notes it is about; turns --memory on.",
)
@click.option(
    "--rules/--no-rules",
    default=None,
    help="Let your rules and the browser answer what agents ask; see: whyfor rules.",
)
@click.option(
    "--telemetry/--no-telemetry",
    default=None,
    help="Let agents send their telemetry to `whyfor serve`: costs, decisions, times.",
)
@click.option(
    "--shell-edits/--no-shell-edits",
    default=None,
    help="See what agents' shell commands change in files, by comparing the work tree.",
)
@click.option(
    "--no-notice", is_flag=True, help="Print no line at checkout when the commit has a story."
)
@click.option("--dry-run", is_flag=True, help="Show what would be done, and change nothing.")
@json_option
def command(
    agents: tuple[str, ...],
    no_git: bool,
    local: bool,
    annotate: bool | None,
    memory: bool | None,
    prompts: bool | None,
    rules: bool | None,
    telemetry: bool | None,
    shell_edits: bool | None,
    no_notice: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Install hooks for the agents on this machine and for this repository, and read the existing
    history.

    Agents' hooks go into your own settings, git's into the repository's git directory; your
    colleagues never see them. Existing hooks stay and still run. You can run it again at any time.

    \b
    Examples:
      whyfor init
      whyfor init --dry-run
      whyfor init --agent claude --no-git
      whyfor init --annotate
      whyfor init --memory
      whyfor init --memory-prompts
      whyfor init --rules
      whyfor init --telemetry
      whyfor init --shell-edits
    """
    settings = config.load()
    if memory is None and not prompts and not as_json and not dry_run:
        memory = _ask_about_memory(settings)
    asked = InitOptions(
        agents=agents,
        with_git=not no_git,
        local=local,
        annotate=annotate,
        memory=memory,
        prompts=prompts,
        rules=rules,
        telemetry=telemetry,
        shell_edits=shell_edits,
        notice=not no_notice,
        dry_run=dry_run,
    )
    if as_json:
        print_json(wire_report(init(settings, Path.cwd(), asked)))
        return
    with progress_bars("Reading", "Linking") as (announce, linking):
        report = init(settings, Path.cwd(), asked, announce=announce, linking=linking)
    _render(report)


def _ask_about_memory(settings: config.Settings) -> bool | None:
    """Ask once, where somebody can answer; None if it was asked before or nobody is there."""
    there = sys.stdin.isatty() and sys.stdout.isatty()
    if not there or memory_choice(settings) is not None:
        return None
    say(_ABOUT_MEMORY)
    return click.confirm("Turn it on?", default=False)


def _render(report: InitReport) -> None:
    out = console()
    if report.dry_run:
        out.print("Nothing is changed; this is what would be done.\n", style="dim")
    show_steps(report.steps)
    out.print()
    for item in report.todo:
        out.print(f"! {item}", style="yellow")
    if report.ingest:
        sessions = plural(report.ingest.sessions, "session")
        out.print(f"Kept so far: {sessions}, {plural(report.ingest.events, 'event')}.")
    if not report.dry_run:
        out.print("Check that it works:  whyfor doctor")
        out.print("See what was said:    whyfor log")
        out.print("Take it out again:    whyfor uninstall")


def show_steps(steps: list[InstallStep]) -> None:
    """Print what was done to each file, and its hooks below it."""
    from rich.text import Text

    out = console()
    rows = FittedTable("", "agent", "state", "file and hooks", title="file and hooks", wrap=True)
    for step in steps:
        mark, style = SIGN[step.state]
        name = AgentCell(step.name) if step.kind not in ("git", "exclude") else Text(step.name)
        where = Text(home_text(step.file)) if step.file else Text(step.note, style="dim")
        rows.add(Text(mark, style=style), name, step.state, where)
        failed = step.state == "failed"
        what = ", ".join(step.events) or WITHOUT_EVENTS.get(step.kind)
        if what and not failed:
            rows.add("", "", "", Text(what, style="dim"))
        if step.file and step.note:
            rows.add("", "", "", Text(step.note, style="red" if failed else "dim"))
    rows.print(out)

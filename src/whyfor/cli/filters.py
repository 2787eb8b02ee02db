"""Options that several commands filter by."""

from __future__ import annotations

import click

from whyfor.cli.complete import complete_agent, complete_project
from whyfor.service.agents import AGENT_CHOICE

agent_option = click.option("--agent", help=f"{AGENT_CHOICE}.", shell_complete=complete_agent)
project_option = click.option(
    "--project",
    help="A directory, a remote URL, a name, or part of one.",
    shell_complete=complete_project,
)
since_option = click.option("--since", metavar="D", help="2026-05-31, yesterday, 12h, 3d, 2w …")
until_option = click.option(
    "--until", metavar="D", help="As --since; a date without a time means its end."
)
task_option = click.option("--task", metavar="ID", help="Sessions that worked on this task.")

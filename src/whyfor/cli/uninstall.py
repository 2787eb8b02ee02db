"""whyfor uninstall"""

from __future__ import annotations

from pathlib import Path

import click

from whyfor import config
from whyfor.cli.init import show_steps
from whyfor.cli.render import console, json_option, print_json
from whyfor.service.init import uninstall


@click.command()
@click.option("--all", "everything", is_flag=True, help="Every repository, and the agents' hooks.")
@click.option("--dry-run", is_flag=True, help="Show what would be done, and change nothing.")
@json_option
def command(everything: bool, dry_run: bool, as_json: bool) -> None:
    """Remove this repository's hooks; with the last repository, also those in the agents' settings.

    Every file is restored byte for byte; if somebody has changed it since, only Whyfor's part is
    removed. Captured data stays.

    \b
    Examples:
      whyfor uninstall
      whyfor uninstall --all --dry-run
    """
    report = uninstall(config.load(), Path.cwd(), everything=everything, dry_run=dry_run)
    if as_json:
        print_json(report)
        return
    out = console()
    if dry_run:
        out.print("Nothing is changed; this is what would be done.\n", style="dim")
    if report.steps:
        show_steps(report.steps)
    else:
        out.print("Nothing to do: no hooks of ours here.")
    for item in report.todo:
        out.print(item)

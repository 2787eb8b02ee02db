"""whyfor import"""

from __future__ import annotations

from pathlib import Path

import click

from whyfor import config
from whyfor.cli.render import console, json_option, print_json, progress_bars, size_text
from whyfor.model.text import label, plural
from whyfor.model.wire.reports import wire_report
from whyfor.service.imports import ImportReport, import_path

_PROBLEMS_SHOWN = 5


@click.command()
@click.argument("path", metavar="FILE|FOLDER|ZIP", type=click.Path(path_type=Path))
@json_option
def command(path: Path, as_json: bool) -> None:
    """Read conversations that come from elsewhere.

    Transcripts of any known agent from another machine, a copy of a home directory, data exports of
    ChatGPT and Claude, SpecStory's Markdown, and what `whyfor export --all` wrote. What a file is
    shows in its content. Importing the same again changes nothing.

    \b
    Examples:
      whyfor import ~/backup/old-laptop          agents' files of another machine
      whyfor import ~/Downloads/chatgpt.zip
      whyfor import ~/code/shop/.specstory/history
      whyfor import home.zip                     made by: whyfor export --all --output home.zip
    """
    settings = config.load()
    if as_json:
        print_json(wire_report(import_path(settings, path)))
        return
    with progress_bars("Reading", "Linking") as (announce, linking):
        report = import_path(settings, path, announce, linking)
    _render(report)


def _render(report: ImportReport) -> None:
    out = console()
    what = plural(report.files, "source" if report.from_home else "file")
    out.print(
        f"{plural(report.sessions, 'new session')} from {what}, "
        f"{size_text(report.bytes)}, {report.seconds:.1f} s."
    )
    if report.new_records == 0:
        out.print("All of it was here already.")
    if report.skipped:
        out.print(f"{plural(report.skipped, 'file')} that hold no conversation: left out.")
    for problem in report.unreadable[:_PROBLEMS_SHOWN]:
        out.print(f"Not read: {label(problem)}", style="yellow", markup=False)
    if len(report.unreadable) > _PROBLEMS_SHOWN:
        out.print(f"… and {len(report.unreadable) - _PROBLEMS_SHOWN} more: --json lists them")

"""whyfor forget"""

from __future__ import annotations

import sys
from pathlib import Path

import click
import msgspec

from whyfor import config
from whyfor.cli.complete import complete_reference
from whyfor.cli.render import console, json_option, print_json, print_note, progress_bar, size_text
from whyfor.model.errors import BadInput
from whyfor.model.text import one_line, plural
from whyfor.service.forget import ForgetArguments, ForgetReport, forget
from whyfor.terminal import confirm

_LISTED = 10


@click.command()
@click.argument(
    "references", nargs=-1, metavar="[SESSION...|COMMIT]", shell_complete=complete_reference
)
@click.option(
    "--match",
    metavar="TEXT",
    help="Strings with this text, in every session; - reads it from stdin.",
)
@click.option("--before", metavar="DATE", help="Sessions that ended before: 2026-01-31, 90d, 1y.")
@click.option(
    "--new-salt", is_flag=True, help="With --match: create a new `salt` file after it was lost."
)
@click.option(
    "--everywhere", is_flag=True, help="Also what the team has of it; nobody can share it again."
)
@click.option("--dry-run", is_flag=True, help="Show what would be deleted, and change nothing.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@json_option
def command(
    references: tuple[str, ...],
    match: str | None,
    before: str | None,
    new_salt: bool,
    everywhere: bool,
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Delete sessions, the conversation behind a commit, a text, or old sessions, for good.

    It is deleted from everything Whyfor stores, and reading the same file again does not bring it
    back. The agent's own file is not touched.

    \b
    Examples:
      whyfor forget 3f05a2c1 --dry-run
      whyfor forget 3f05a2c1 019d6f23
      whyfor forget HEAD
      whyfor forget --match "Jane Roe"
      whyfor forget --before 1y --yes
    """
    asked = _arguments(references, match, before, new_salt)
    settings, cwd = config.load(), Path.cwd()
    if not dry_run and not yes:
        _confirm(forget(settings, cwd, asked, dry_run=True), as_json)
    if as_json:
        print_json(
            msgspec.to_builtins(
                forget(settings, cwd, asked, dry_run=dry_run, everywhere=everywhere)
            )
        )
        return
    with progress_bar("Forgetting") as announce:
        report = forget(
            settings, cwd, asked, dry_run=dry_run, everywhere=everywhere, announce=announce
        )
    _render(report, "Would forget" if dry_run else "Forgotten")
    if everywhere and not dry_run:
        print_note("What the team has of it goes with the next: whyfor sync")


def _arguments(
    references: tuple[str, ...], match: str | None, before: str | None, new_salt: bool
) -> ForgetArguments:
    """Return what to forget; raise BadInput unless exactly one thing is named."""
    given = [value for value in (references or None, match, before) if value is not None]
    if len(given) != 1:
        raise BadInput(
            "say what to forget: a session, a commit, --match or --before, and one of them",
            "See: whyfor forget --help",
        )
    if new_salt and match is None:
        raise BadInput("--new-salt goes with --match", "See: whyfor forget --help")
    if match == "-":
        match = sys.stdin.read().strip("\n")
    if len(references) > 1:
        return ForgetArguments(sessions=references)
    return ForgetArguments(references[0] if references else None, match, before, new_salt)


def _confirm(planned: ForgetReport, as_json: bool) -> None:
    if as_json or not sys.stdin.isatty():
        raise BadInput(
            "forgetting cannot be undone, and there is nobody to ask",
            "See what would go with --dry-run, then say --yes.",
        )
    _render(planned, "Would forget")
    if not confirm("Forget it for good?", stderr=True):
        raise click.Abort


def _render(report: ForgetReport, word: str) -> None:
    out = console()
    own = [gone for gone in report.sessions if not gone.subagent]
    parts = [plural(len(own), "session")] if report.sessions else []
    if len(report.sessions) > len(own):
        parts.append(plural(len(report.sessions) - len(own), "subagent"))
    parts += [plural(report.records, "record"), size_text(report.bytes)]
    if report.notes:
        parts.append(plural(report.notes, "note"))
    out.print(f"{word}: {', '.join(parts)}.")
    _list([f"{gone.agent}:{gone.session_id}  {one_line(gone.title)}".rstrip() for gone in own])
    for heading, items in _lists(report):
        if items:
            out.print(heading)
            _list(items)
    if not report.finished:
        print_note("A reader is still open: the last bytes go with the next ingest.")


def _lists(report: ForgetReport) -> list[tuple[str, list[str]]]:
    commits = plural(len(report.commits), "commit")
    copies = plural(len(report.copies), "other session")
    return [
        (f"{commits} whose story changes or goes:", [sha[:10] for sha in report.commits]),
        (
            f"{copies} with a copy of it, which you may want to forget too:",
            [f"whyfor forget {name}" for name in report.copies],
        ),
        ("The text also stands where only you can change it:", report.elsewhere),
        ("The agents' own files are not touched; delete them yourself if you want:", report.files),
    ]


def _list(items: list[str]) -> None:
    out = console()
    for item in items[:_LISTED]:
        out.print(f"  {item}", soft_wrap=True)
    if len(items) > _LISTED:
        out.print(f"  … and {len(items) - _LISTED} more (--json lists them all)")

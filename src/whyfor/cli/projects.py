"""whyfor projects"""

from __future__ import annotations

from pathlib import Path

import click

from whyfor import config
from whyfor.cli.render import (
    console,
    json_option,
    print_json,
    print_note,
    progress_bar,
    project_text,
)
from whyfor.cli.tables import FittedTable
from whyfor.model.reports import KnownProject
from whyfor.model.text import label, plural
from whyfor.model.wire.answers import WireAlias
from whyfor.model.wire.reports import wire_known_project
from whyfor.service.projects import alias, projects

_EVIDENCE = {"remote": "remote", "root": "first commit", "path": "path"}


@click.group(invoke_without_command=True)
@json_option
@click.pass_context
def command(ctx: click.Context, as_json: bool) -> None:
    """List known projects with their paths, most sessions first.

    \b
    Examples:
      whyfor projects
      whyfor projects alias /home/me/old/place ~/code/shop
    """
    if ctx.invoked_subcommand is not None:
        return
    found = projects(config.load())
    if as_json:
        print_json([wire_known_project(known) for known in found])
        return
    if not found:
        print_note("No project is known yet. Read what your agents wrote: whyfor ingest")
        return
    _table(found)


@command.command("alias")
@click.argument("old_paths", metavar="OLD_PATH...", nargs=-1, required=True)
@click.argument("repository", type=click.Path(path_type=Path))
@json_option
def alias_command(old_paths: tuple[str, ...], repository: Path, as_json: bool) -> None:
    """Assign sessions recorded at OLD_PATH (or below it) to REPOSITORY.

    For a repository that moved, was cloned again, or whose sessions came from another machine. Its
    commits are linked at once; give all the old paths together, then they are linked only once.

    \b
    Examples:
      whyfor projects alias /home/me/old/place .
      whyfor projects alias /mnt/laptop/shop /home/me/shop-2 ~/code/shop
    """
    settings = config.load()
    if as_json:
        sessions, report = alias(settings, old_paths, repository.resolve())
        print_json(WireAlias(report.project, sessions, report.commits, report.stories))
        return
    with progress_bar("Linking") as announce:
        sessions, report = alias(settings, old_paths, repository.resolve(), announce)
    console().print(
        f"{plural(sessions, 'session')} of {project_text(report.project)}; {report.stories:,} of "
        f"{plural(report.commits, 'commit')} "
        f"judged have a story, {report.seconds:.1f} s."
    )


def _table(found: list[KnownProject]) -> None:
    from rich.text import Text

    made = FittedTable(
        *("project", "sessions", "stories", "known by", "paths"),
        title="project",
        right=("sessions", "stories"),
        fold=("paths", "known by"),
        wrap=True,
    )
    for known in found:
        # a project that is known by its path is called by it
        paths = [path for path in known.paths if path != known.project.identity]
        paths += [f"{path} (alias)" for path in known.aliases]
        made.add(
            Text(_name(known.project.identity), style="bold"),
            f"{known.sessions:,}",
            f"{known.stories:,}" if known.stories else "–",
            Text(_EVIDENCE.get(known.project.evidence, known.project.evidence), style="dim"),
            ", ".join(paths),
        )
    made.print(console())


def _name(identity: str) -> str:
    """Return the whole identity if people can read it: two projects may end in the same word."""
    if identity.startswith("git:"):
        return project_text(identity)
    return label(identity.removesuffix(".git"))

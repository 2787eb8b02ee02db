"""whyfor server"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from whyfor.cli.extras import missing_extra
from whyfor.cli.render import console, json_option, print_json, print_note
from whyfor.cli.tables import FittedTable
from whyfor.model.text import label
from whyfor.model.times import to_iso
from whyfor.model.wire.team import (
    WireErasedMember,
    WireMigration,
    WireOwnerLink,
    WireProjectExport,
    WireServerBackup,
    WireServerCheck,
    WireTeamServer,
)
from whyfor.terminal import say

if TYPE_CHECKING:
    from whyfor.team.export import ProjectExport
    from whyfor.team.settings import TeamSettings


@click.group()
def command() -> None:
    """Run a team's server, where members read each other's stories.

    Its settings are environment variables such as WHYFOR_DB_URL; see docs/server.md.

    \b
    Examples:
      whyfor server init --name "Harbour office"
      whyfor server run
      whyfor server check
    """


@command.command("init")
@click.option("--name", default="", help="What the team is called. Required the first time.")
@json_option
def init_command(name: str, as_json: bool) -> None:
    """Prepare the database, and print a link that makes somebody an owner.

    The link works once, within 15 minutes. Run it again for another owner, or if a link was lost.

    \b
    Examples:
      whyfor server init --name "Harbour office"
    """
    settings = _settings()
    from whyfor.team.setup import make_owner_link, migrate_server

    _, version = migrate_server(settings)
    made = make_owner_link(settings, name)
    if as_json:
        print_json(WireOwnerLink(made.team, made.link, to_iso(made.expires_at), version))
        return
    say(made.link)
    print_note(
        f"Whoever opens this first becomes an owner of {made.team}. It works once, for 15 minutes.",
        "Start the server before: whyfor server run",
    )


@command.command("migrate")
@json_option
def migrate_command(as_json: bool) -> None:
    """Bring the database to the version of this program.

    Servers of the version before go on meanwhile. Several may migrate at once; one does it.

    \b
    Examples:
      whyfor server migrate
    """
    settings = _settings()
    from whyfor.team.setup import migrate_server

    before, version = migrate_server(settings)
    if as_json:
        print_json(WireMigration(before, version))
    elif before == version:
        say(f"The database is of version {version} already.")
    else:
        say(f"The database is of version {version} now; it was of {before}.")


@command.command("run")
@json_option
def run_command(as_json: bool) -> None:
    """Serve the team until you stop it. One line of JSON per request goes to stderr.

    \b
    Examples:
      whyfor server run
    """
    settings = _settings()

    def ready(address: str) -> None:
        if as_json:
            print_json(WireTeamServer(address, settings.public_url))
        else:
            say(f"Serving {settings.public_url} at {address}.")
        sys.stdout.flush()

    from whyfor.server.team.run import serve_team

    serve_team(settings, ready)


@command.command("check")
@json_option
def check_command(as_json: bool) -> None:
    """Check settings, database, policies, audit log and object store. Exits with 1 if one fails.

    \b
    Examples:
      whyfor server check
      whyfor server check --json
    """
    settings = _settings()
    from whyfor.team.setup import check_server

    found = check_server(settings)
    if as_json:
        print_json([WireServerCheck(each.name, each.ok, each.detail) for each in found])
    else:
        rows = FittedTable("check", "", "detail", title="detail", wrap=True)
        for each in found:
            rows.add(each.name, "ok" if each.ok else "WRONG", each.detail)
        rows.print(console())
    if not all(each.ok for each in found):
        raise click.exceptions.Exit(1)


@command.command("backup")
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@json_option
def backup_command(folder: Path, as_json: bool) -> None:
    """Write the database and all objects into a folder; what is there already is not copied again.

    \b
    Examples:
      whyfor server backup /backups/whyfor
    """
    settings = _settings()
    from whyfor.team.backup import back_up

    made = back_up(settings, folder)
    if as_json:
        print_json(WireServerBackup(made.made_at, made.objects, made.bytes, made.new))
    else:
        print_note(
            f"Backed up the database and {made.objects:,} objects, {made.new:,} of them new."
        )


@command.command("restore")
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False, exists=True))
@json_option
def restore_command(folder: Path, as_json: bool) -> None:
    """Restore a backup into an empty database and an object store.

    \b
    Examples:
      whyfor server restore /backups/whyfor
    """
    settings = _settings()
    from whyfor.team.backup import restore_backup

    made = restore_backup(settings, folder)
    if as_json:
        print_json(WireServerBackup(made.made_at, made.objects, made.bytes, made.new))
    else:
        print_note(
            f"Restored the backup of {made.made_at}, {made.objects:,} objects.",
            "Check it: whyfor server check",
        )


@command.command("export")
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@click.option("--project", required=True, help="Its name or number.")
@json_option
def export_command(folder: Path, project: str, as_json: bool) -> None:
    """Write one project into a folder: what machines sent, as JSON lines and objects.

    \b
    Examples:
      whyfor server export --project harbour/tidewatch /exports/tidewatch
    """
    settings = _settings()
    from whyfor.team.export import export_project

    _told_export(export_project(settings, project, folder), "Exported", as_json=as_json)


@command.command("import")
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False, exists=True))
@click.option("--name", default="", help="What to call the project here. Default: as it was.")
@json_option
def import_command(folder: Path, name: str, as_json: bool) -> None:
    """Make a project of an export. Its people are known by their addresses.

    People who are not here yet are added suspended; resume them on the page People.

    \b
    Examples:
      whyfor server import /exports/tidewatch
      whyfor server import /exports/tidewatch --name tidewatch-2
    """
    settings = _settings()
    from whyfor.team.export import import_project

    _told_export(import_project(settings, folder, name), "Imported", as_json=as_json)


def _told_export(made: ProjectExport, did: str, *, as_json: bool) -> None:
    if as_json:
        counts = (made.sessions, made.stories, made.objects, len(made.people))
        print_json(WireProjectExport(made.project.name, made.project.id, *counts))
        return
    print_note(
        f"{did} {label(made.project.name)}: {made.sessions:,} sessions, {made.stories:,} stories, "
        f"{made.objects:,} objects of {len(made.people):,} people."
    )


@command.command("erase-member")
@click.argument("email")
@click.option("--keep-stories", is_flag=True, help="Keep their stories, without their name.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@json_option
def erase_command(email: str, keep_stories: bool, yes: bool, as_json: bool) -> None:
    """Erase a member for good: account, name and stories. Backups still have them.

    \b
    Examples:
      whyfor server erase-member robin@example.com
      whyfor server erase-member robin@example.com --keep-stories --yes
    """
    settings = _settings()
    from whyfor.team.erase import erase_member

    what = "account and name" if keep_stories else "account, name and all stories"
    if not yes:
        click.confirm(f"Erase {label(email)}: {what}? This cannot be undone.", abort=True, err=True)
    gone = erase_member(settings, email, keep=keep_stories)
    if as_json:
        print_json(WireErasedMember(gone.person, gone.sessions, keep_stories, len(gone.objects)))
    else:
        kept = "kept without the name" if keep_stories else "deleted"
        print_note(f"Erased: now former member {gone.person}; {gone.sessions:,} sessions {kept}.")


def _settings() -> TeamSettings:
    try:
        import psycopg_pool  # noqa: F401 - whether the server's packages are here
        import webauthn  # noqa: F401 - as above

        from whyfor.team.settings import load_team_settings
    except ModuleNotFoundError as error:
        raise missing_extra("server", error) from None
    return load_team_settings(os.environ)

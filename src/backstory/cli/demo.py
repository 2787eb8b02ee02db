"""backstory demo"""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import chdir
from pathlib import Path

import click

from backstory.cli.render import console, json_option, note, print_json
from backstory.service.demo import Demo, build, fill

# Where things are looked for and kept; while the demo runs, none of it is yours.
PLACES = (
    "HOME BACKSTORY_HOME CLAUDE_CONFIG_DIR CODEX_HOME GEMINI_CLI_HOME COPILOT_HOME XDG_DATA_HOME OPENCODE_DB"
).split()
SCREENS = (
    ["ingest"],
    ["sessions", "--all"],
    ["log"],
    ["show", "HEAD~4"],
    ["search", "exponential backoff"],
    ["show", "5b1d"],
    ["stats"],
)


@click.command()
@click.option(
    "--serve", "pages", is_flag=True, help="Show the pages instead, with more work and sessions that are open."
)
@click.option("--keep", is_flag=True, help="Leave the folder, to look around in.")
@json_option
def command(pages: bool, keep: bool, as_json: bool) -> None:
    """Make a throw-away home and git repository with invented sessions of two agents, and show the screens on them.

    Nothing of yours is read or written. The folder is deleted afterwards, unless --keep.

    \b
    Examples:
      backstory demo
      backstory demo --serve
      backstory demo --keep
    """
    folder = Path(tempfile.mkdtemp(prefix="backstory-demo-"))
    before = {name: os.environ.get(name) for name in PLACES}
    try:
        demo = build(folder)
        if pages:
            fill(demo)
        for name in before:
            os.environ.pop(name, None)
        os.environ |= {"HOME": str(demo.home), "BACKSTORY_HOME": str(demo.backstory_home)}
        if pages:
            _serve(demo, keep, as_json)
        elif as_json:
            _json(demo, keep)
        else:
            _screens(demo, keep)
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value
        if not keep:
            shutil.rmtree(folder, ignore_errors=True)


def _serve(demo: Demo, keep: bool, as_json: bool) -> None:
    """Until it is stopped. As nothing goes on in them, the sessions that work fall silent after a while."""
    from backstory import config
    from backstory.cli import root
    from backstory.service.ingesting import ingest

    ingest(config.load())
    arguments = ["serve", "--port", "0", *(["--json"] if as_json else [])]
    root.main(args=arguments, prog_name="backstory", standalone_mode=False)
    if keep:
        _kept(demo)


def _json(demo: Demo, keep: bool) -> None:
    from backstory import config
    from backstory.service.ingesting import ingest
    from backstory.service.reading import Where, session_json, sessions

    settings = config.load()
    report = ingest(settings)
    found = sessions(settings, Where(), limit=0, everything=True)
    print_json(
        {
            "home": str(demo.home) if keep else None,
            "repository": str(demo.repository) if keep else None,
            "backstory_home": str(demo.backstory_home) if keep else None,
            "records": report.records,
            "sessions": [session_json(s) for item in found for s in (item.session, *item.children)],
        }
    )


def _screens(demo: Demo, keep: bool) -> None:
    from backstory.cli import root

    out = console()
    with chdir(demo.repository):
        for arguments in SCREENS:
            shown = " ".join(f'"{word}"' if " " in word else word for word in arguments)
            out.print(f"\n$ backstory {shown}", style="bold")
            root.main(args=list(arguments), prog_name="backstory", standalone_mode=False)
    if keep:
        _kept(demo)
    else:
        note(
            "\nThat was invented, and is gone again. To look around in it: backstory demo --keep",
            "Your own: backstory ingest, then backstory log in a repository, and backstory show COMMIT",
        )


def _kept(demo: Demo) -> None:
    note(
        "\nLook around:",
        f"  export HOME={demo.home} BACKSTORY_HOME={demo.backstory_home}",
        f"  cd {demo.repository}",
        "  backstory log",
        "  backstory show HEAD~4",
        "  backstory export HEAD~5..HEAD",
    )

"""backstory demo"""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import chdir
from pathlib import Path

import click

from backstory.cli.render import console, json_option, note, print_json
from backstory.service.demo import Demo, build

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
@click.option("--keep", is_flag=True, help="Leave the folder, to look around in.")
@json_option
def command(keep: bool, as_json: bool) -> None:
    """Make a throw-away home and git repository with invented sessions of two agents, and show the screens on them.

    Nothing of yours is read or written. The folder is deleted afterwards, unless --keep.
    """
    folder = Path(tempfile.mkdtemp(prefix="backstory-demo-"))
    before = {name: os.environ.get(name) for name in ("HOME", "BACKSTORY_HOME", "CLAUDE_CONFIG_DIR", "CODEX_HOME")}
    try:
        demo = build(folder)
        for name in before:
            os.environ.pop(name, None)
        os.environ |= {"HOME": str(demo.home), "BACKSTORY_HOME": str(demo.backstory_home)}
        _json(demo, keep) if as_json else _screens(demo, keep)
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value
        if not keep:
            shutil.rmtree(folder, ignore_errors=True)


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
        note(
            f"\nLook around:\n  export HOME={demo.home} BACKSTORY_HOME={demo.backstory_home}\n  cd {demo.repository}\n"
            "  backstory log\n  backstory show HEAD~4\n  backstory export HEAD~5..HEAD"
        )
    else:
        note(
            "\nThat was invented, and is gone again. To look around in it: backstory demo --keep\n"
            "Your own: backstory ingest, then backstory log in a repository, and backstory show COMMIT"
        )

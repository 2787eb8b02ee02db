"""whyfor demo"""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import chdir
from pathlib import Path

import click

from whyfor.cli.render import console, json_option, print_json, print_note
from whyfor.demo import build, fill
from whyfor.demo.places import Demo
from whyfor.service.agents import folder_variables

# The variables for directories; during the demo none of them points to your own files.
PLACES = ("HOME", "WHYFOR_HOME", *folder_variables())
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
    "--serve",
    "pages",
    is_flag=True,
    help="Open the pages instead, with more sessions, some of them open.",
)
@click.option("--keep", is_flag=True, help="Keep the directory, to look around in it.")
@json_option
def command(pages: bool, keep: bool, as_json: bool) -> None:
    """Create a temporary home and git repository with invented sessions of two agents, and show the
    main screens.

    None of your files are read or written. The directory is deleted afterwards, unless you use
    --keep.

    \b
    Examples:
      whyfor demo
      whyfor demo --serve
      whyfor demo --keep
    """
    folder = Path(tempfile.mkdtemp(prefix="whyfor-demo-"))
    before = {name: os.environ.get(name) for name in PLACES}
    try:
        demo = build(folder)
        if pages:
            fill(demo)
        for name in before:
            os.environ.pop(name, None)
        os.environ |= {"HOME": str(demo.home), "WHYFOR_HOME": str(demo.whyfor_home)}
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
    """Serve the pages until stopped. Nobody continues the open sessions, so running ones become
    idle after a while."""
    from whyfor import config
    from whyfor.cli import root
    from whyfor.service.ingest import ingest

    ingest(config.load())
    arguments = ["serve", "--port", "0", *(["--json"] if as_json else [])]
    root.main(args=arguments, prog_name="whyfor", standalone_mode=False)
    if keep:
        _kept(demo)


def _json(demo: Demo, keep: bool) -> None:
    from whyfor import config
    from whyfor.model.query import SessionFilter
    from whyfor.model.wire.answers import WireDemo
    from whyfor.model.wire.sessions import wire_session
    from whyfor.service.ingest import ingest
    from whyfor.service.sessions import sessions

    settings = config.load()
    report = ingest(settings)
    found = sessions(settings, SessionFilter(), limit=0, everything=True)
    everyone = [each for item in found for each in (item.session, *item.children)]
    print_json(
        WireDemo(
            str(demo.home) if keep else None,
            str(demo.repository) if keep else None,
            str(demo.whyfor_home) if keep else None,
            report.records,
            [wire_session(each) for each in everyone],
        )
    )


def _screens(demo: Demo, keep: bool) -> None:
    from whyfor.cli import root

    out = console()
    with chdir(demo.repository):
        for arguments in SCREENS:
            shown = " ".join(f'"{word}"' if " " in word else word for word in arguments)
            out.print(f"\n$ whyfor {shown}", style="bold")
            root.main(args=list(arguments), prog_name="whyfor", standalone_mode=False)
    if keep:
        _kept(demo)
    else:
        print_note(
            "\nThat was invented, and is gone again. To look around in it: whyfor demo --keep",
            "Your own: whyfor ingest, then whyfor log in a repository, and whyfor show COMMIT",
        )


def _kept(demo: Demo) -> None:
    print_note(
        "\nLook around:",
        f"  export HOME={demo.home} WHYFOR_HOME={demo.whyfor_home}",
        f"  cd {demo.repository}",
        "  whyfor log",
        "  whyfor show HEAD~4",
        "  whyfor export HEAD~5..HEAD",
    )

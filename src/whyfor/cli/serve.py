"""whyfor serve"""

from __future__ import annotations

import os
import sys
import threading

import click

from whyfor import config
from whyfor.cli.extras import missing_extra
from whyfor.cli.render import json_option, print_json, print_note
from whyfor.model.wire.answers import WireServer
from whyfor.service.serve import PORT, Running
from whyfor.terminal import say


@click.command()
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    help=f"0 means any free port. Default: {PORT}, or any if taken.",
)
@click.option("--no-open", is_flag=True, help="Only print the link.")
@json_option
def command(port: int | None, no_open: bool, as_json: bool) -> None:
    """Show live in a browser what your agents are doing, until you stop it.

    The link works for one browser, once, within a minute. If a server is already running, you get
    another link to it.

    \b
    Examples:
      whyfor serve
      whyfor serve --port 0 --no-open
      whyfor serve --json
    """

    def ready(running: Running, link: str, before: bool) -> None:
        if as_json:
            print_json(WireServer(link, running.address, running.pid, before))
        else:
            say(link)
            print_note(
                "A server runs already; this opens its page." if before else "Stop it with Ctrl-C."
            )
        sys.stdout.flush()
        if not no_open and _has_display():
            _open(link, wait=before)

    try:
        from whyfor.server.run import serve
    except ModuleNotFoundError as error:
        raise missing_extra("serve", error) from None
    serve(config.load(), port, ready)


def _open(link: str, *, wait: bool) -> None:
    """Open the link. Some browsers block until they are up, so do not wait in the process that must
    answer them."""
    import webbrowser

    thread = threading.Thread(target=webbrowser.open, args=(link,), daemon=True)
    thread.start()
    if wait:
        thread.join(10)


def _has_display() -> bool:
    """Return whether there is a display; without one a browser would take over the terminal."""
    if sys.platform in ("darwin", "win32"):
        return not os.environ.get("SSH_CONNECTION")
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))

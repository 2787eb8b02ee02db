"""The process entry point: starts the command line, and is the one place that turns errors into
messages and exit codes."""

from __future__ import annotations

import gc
import sys


def main(arguments: list[str] | None = None) -> int:
    args = sys.argv[1:] if arguments is None else arguments
    if args == ["--version"]:  # agents and prompts ask this often: answer before importing anything
        from whyfor import __version__

        print(f"whyfor {__version__}")  # our own text only, so it needs no cleaning
        return 0
    if args == ["mcp"]:  # agents start it with every session, and wait for its first answer
        from whyfor.mcp.loop import serve_stdio

        return serve_stdio()
    gc.disable()  # a short life: looking for cycles costs a tenth of start-up and finds nothing
    from whyfor.files import own_files_only

    own_files_only()
    from whyfor.cli.errors import run_command

    return run_command(args)


if __name__ == "__main__":
    sys.exit(main())

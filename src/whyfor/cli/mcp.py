"""whyfor mcp"""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.option(
    "--project",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="The directory that questions are about. Default: the current one.",
)
def command(project: Path | None) -> int:
    """Serve past sessions to an agent, over the Model Context Protocol on stdin and stdout.

    Agents start this themselves once it is registered with them. It stops when they close stdin.

    \b
    Examples:
      whyfor mcp
      claude mcp add whyfor -- whyfor mcp
    """
    from whyfor.mcp.loop import serve_stdio

    return serve_stdio(project)

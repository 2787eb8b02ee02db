"""whyfor lsp"""

from __future__ import annotations

import click

from whyfor.cli.extras import missing_extra


@click.command()
@click.option("--stdio", is_flag=True, help="What it does anyway; some editors add it.")
def command(stdio: bool) -> None:  # noqa: ARG001 - there is no other way
    """Serve an editor: why a line is there, beside the line.

    A language server over standard input and output; editors start it. Hover over a line shows the
    turn that wrote it, the prompt and the agent's last words. Above each block stands its turn;
    opening it shows the conversation. Unsaved text counts as it is.

    \b
    Examples:
      whyfor lsp        in the settings of Neovim, Helix, Zed, Emacs, VS Code: docs/lsp.md
    """
    try:
        from whyfor.lsp.server import serve_editor
    except ModuleNotFoundError as error:
        raise missing_extra("editor", error) from None
    serve_editor()

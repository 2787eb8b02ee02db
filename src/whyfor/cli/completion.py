"""whyfor completion"""

from __future__ import annotations

import click

from whyfor.cli.render import json_option, print_json
from whyfor.model.wire.answers import WireText
from whyfor.terminal import write_data

_SHELLS = ("bash", "zsh", "fish")
_VARIABLE = "_WHYFOR_COMPLETE"


@click.command()
@click.argument("shell", type=click.Choice(_SHELLS))
@json_option
def command(shell: str, as_json: bool) -> None:
    """Print a script that lets SHELL complete commands, options, agents, projects and sessions.

    Install it, then open a new shell:

    \b
    Examples:
      whyfor completion bash > ~/.local/share/bash-completion/completions/whyfor
      whyfor completion zsh > ~/.zfunc/_whyfor
      whyfor completion fish > ~/.config/fish/completions/whyfor.fish
    """
    from click.shell_completion import BashComplete, FishComplete, ZshComplete

    from whyfor.cli import root

    made = {"bash": BashComplete, "zsh": ZshComplete, "fish": FishComplete}[shell]
    completion = made(root, {}, "whyfor", _VARIABLE)
    script = completion.source_template % completion.source_vars()
    if as_json:
        print_json(WireText(script))
    else:
        write_data(script.encode())

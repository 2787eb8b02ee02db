"""whyfor config"""

from __future__ import annotations

from typing import Any

import click

from whyfor import config
from whyfor.cli.complete import complete_setting
from whyfor.cli.render import console, json_option, print_json, print_note
from whyfor.cli.tables import FittedTable
from whyfor.model.wire.answers import WireText
from whyfor.service.config import (
    Setting,
    change_setting,
    config_path,
    find_setting,
    list_settings,
)
from whyfor.terminal import say


@click.group(invoke_without_command=True)
@json_option
@click.pass_context
def command(ctx: click.Context, as_json: bool) -> None:
    """Show the settings, or change one.

    \b
    Examples:
      whyfor config
      whyfor config get retention.sessions
      whyfor config set exclude.agents copilot gemini
      whyfor config set --unset checkout_line
      whyfor config path
    """
    if ctx.invoked_subcommand is not None:
        return
    settings = config.load()
    found = list_settings(settings)
    if as_json:
        print_json(found)
        return
    rows = FittedTable("setting", "value", "", title="value", wrap=True)
    for each in found:
        rows.add(each.name, _shown(each.value), "" if each.given else "default")
    rows.print(console())
    print_note(f"From {config_path(settings)} · change one: whyfor config set SETTING VALUE")


@command.command("get")
@click.argument("setting", shell_complete=complete_setting)
@json_option
def get_command(setting: str, as_json: bool) -> None:
    """Print the value of one setting; a list, one item per line.

    \b
    Examples:
      whyfor config get notify.desktop
    """
    found = find_setting(config.load(), setting)
    if as_json:
        print_json(found)
        return
    items = found.value if isinstance(found.value, list | tuple) else [found.value]
    for item in items:
        say(_shown(item))


@command.command("set")
@click.argument("setting", shell_complete=complete_setting)
@click.argument("values", nargs=-1, metavar="VALUE...")
@click.option("--unset", is_flag=True, help="Remove it from the file: the default counts again.")
@json_option
def set_command(setting: str, values: tuple[str, ...], unset: bool, as_json: bool) -> None:
    """Write one setting to config.toml. The rest of the file stays as it is.

    \b
    Examples:
      whyfor config set notify.desktop true
      whyfor config set exclude.projects '~/code/client-x' github.com/acme/secret
      whyfor config set --unset retention.sessions
    """
    if unset == bool(values):
        raise click.UsageError("give a value, or --unset")
    found = change_setting(config.load(), setting, None if unset else values)
    if as_json:
        print_json(found)
    else:
        _tell(found)


@command.command("path")
@json_option
def path_command(as_json: bool) -> None:
    """Print where config.toml is, or would be.

    \b
    Examples:
      $EDITOR "$(whyfor config path)"
    """
    path = config_path(config.load())
    if as_json:
        print_json(WireText(path))
    else:
        say(path)


def _tell(found: Setting) -> None:
    default = "" if found.given else " (default)"
    say(f"{found.name} = {_shown(found.value)}{default}")


def _shown(value: Any) -> str:
    """Return a value as people write it in `config set`."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return "–"
    if isinstance(value, list | tuple):
        return ", ".join(_shown(each) for each in value) or "–"
    return str(value)

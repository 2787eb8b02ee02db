"""The command line, one module per command: parse, call one service, render."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from typing import TYPE_CHECKING

import click

from whyfor import __version__
from whyfor.cli.options import add_common_options, common_options
from whyfor.terminal import debug, options

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

# Command name → one line of help. The module of the same name is imported only when the command
# runs.
COMMANDS = {
    "init": "Install hooks for your agents and git, and read the existing history.",
    "ingest": "Read what your agents wrote since the last run.",
    "sessions": "List sessions, newest first.",
    "show": "Show one session, or the story of one commit.",
    "log": "List commits and their stories, newest first.",
    "blame": "Show which turn wrote each line of a file.",
    "why": "Show why a line is there: the turn that wrote it, and what was asked.",
    "lines": "Count whose the lines are that a commit or a branch adds.",
    "status": "Show the last commit's story, active sessions and uncommitted work.",
    "diff": "Show what was said between two commits.",
    "export": "Print the story of a branch, a commit or a session, to share it.",
    "redact": "Remove secrets from a text or a transcript.",
    "link": "Link commits to sessions again, or link one by hand.",
    "unlink": "Remove a session from a commit's story.",
    "note": "Explain what a commit is for.",
    "projects": "List known projects, or tell where one has moved.",
    "restore": "Restore a commit's conversation, to resume it in the agent.",
    "search": "Find sessions by words in prompts, answers, thinking and tool calls.",
    "memory": "List what past sessions found, decided, fixed and were told.",
    "context": "Print what an agent should know before it works on a branch.",
    "mcp": "Serve past sessions to agents, as tools they can call.",
    "stats": "Count sessions, turns and tokens by agent, project, day and model.",
    "serve": "Open the live dashboard in a browser on this machine.",
    "top": "Watch in this terminal which sessions run and which wait for you.",
    "doctor": "Check that capture works and that nothing was dropped.",
    "agents": "List the agents that are known, and which are found here.",
    "pause": "Stop recording: everywhere, in a repository, or for a session.",
    "resume": "Record again from now on.",
    "forget": "Delete a session, a commit's conversation, a text, or old sessions.",
    "uninstall": "Remove the hooks and restore every changed file.",
    "rebuild": "Create the database again from the stored records.",
    "demo": "Look around in a temporary home with invented sessions.",
    "config": "Show or change the settings.",
    "completion": "Print a script that completes commands in your shell.",
    "man": "Print the manual page.",
}
# Those whose output may be longer than the terminal.
PAGED = {
    "blame",
    "diff",
    "lines",
    "why",
    "log",
    "memory",
    "projects",
    "search",
    "sessions",
    "show",
    "stats",
}


class LazyGroup(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command = import_module(f"whyfor.cli.{cmd_name}").command
        assert isinstance(command, click.Command)
        add_common_options(command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Show the commit or session that the first word names if it is not a command; what names
        nothing may be a mistyped command."""
        word = args[0]
        if word not in COMMANDS and not word.startswith("-"):
            meant = closest(word, COMMANDS) if word.isalpha() else None
            if meant and not _is_reference(word):
                raise UnknownCommand(word, meant, ctx)
            args = ["why" if _names_line(word) else "show", *args]
        options.pager = options.pager_wanted and args[0] in PAGED
        debug(f"whyfor {__version__}: {args[0]}")
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete commands from the table: no command is imported for its name."""
        from click.shell_completion import CompletionItem

        if incomplete.startswith("-"):
            return click.Command.shell_complete(self, ctx, incomplete)
        found = [name for name in COMMANDS if name.startswith(incomplete)]
        return [CompletionItem(name, help=COMMANDS[name]) for name in found]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):  # from the table: --help must not import every command
            formatter.write_dl(list(COMMANDS.items()))


class UnknownCommand(click.UsageError):
    """A word that is probably a mistyped command."""

    def __init__(self, word: str, meant: str, ctx: click.Context) -> None:
        super().__init__(f"No such command {word!r}.", ctx)
        self.hint = f"Did you mean {meant}? A commit or a session: whyfor show {word}"


def _names_line(word: str) -> bool:
    """Return whether a word is FILE:LINE or FILE:A-B, and not a session (agent:id)."""
    import re

    match = re.fullmatch(r"(.+):\d+(?:-\d+)?", word, re.DOTALL)
    if match is None:
        return False
    from whyfor.service.agents import is_agent

    return not is_agent(match[1])


def _is_reference(word: str) -> bool:
    """Return whether a word is a branch, a tag, or the beginning of an id here."""
    from pathlib import Path

    from whyfor import config
    from whyfor.model.errors import Ambiguous, WhyforError
    from whyfor.service.show import is_commit

    try:
        is_commit(config.load(), word, Path.cwd())
    except Ambiguous:
        return True
    except WhyforError:
        return False
    return True


def closest(word: str, known: Iterable[str]) -> str | None:
    """Return the one that was probably meant; None if none is like it."""
    from difflib import get_close_matches  # here: few words are mistyped

    found = get_close_matches(word.lower(), known, n=1, cutoff=0.6)
    return found[0] if found else None


@click.command(
    cls=LazyGroup,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@common_options
@click.version_option(__version__, message="whyfor %(version)s")
@click.pass_context
def root(ctx: click.Context) -> None:
    """Whyfor keeps the conversation behind every commit.

    \b
    Start here:
      whyfor init                       in a repository: install hooks, read the history
      whyfor log                        commits and their stories
      whyfor HEAD                       why a commit exists; short for: whyfor show HEAD
      whyfor src/app.py:42              why a line is there; short for: whyfor why src/app.py:42
      whyfor restore HEAD               resume its conversation in the agent
      whyfor search "retry with backoff"

    Without a command: where things stand here, and what to do next. Options such as --color and -q
    also work after a command. Everything stays on this machine, in $WHYFOR_HOME or your data
    directory.
    """
    if ctx.invoked_subcommand is None:
        from whyfor.cli.overview import print_overview

        print_overview()

"""The command line, one module per command: parse, call one service, render."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from typing import TYPE_CHECKING

import click

from whyfor import __version__
from whyfor.cli.options import add_common_options, common_options
from whyfor.service.own_agents import use_own_agents
from whyfor.terminal import debug, options

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

# What commands are for → command name → one line of help. The module of the same name is imported
# only when the command runs.
COMMAND_GROUPS = {
    "Commits and lines": {
        "log": "List commits and their stories, newest first.",
        "show": "Show one session, or the story of one commit.",
        "why": "Show why a line is there: the turn that wrote it, and what was asked.",
        "blame": "Show which turn wrote each line of a file.",
        "lines": "Count whose the lines are that a commit or a branch adds.",
        "status": "Show the last commit's story, active sessions and uncommitted work.",
        "diff": "Show what was said between two commits.",
        "review": "Show what a change is about to undo of what was decided.",
        "pr": "Tell the story of a pull request as one comment.",
        "link": "Link commits to sessions again, or link one by hand.",
        "unlink": "Remove a session from a commit's story.",
        "note": "Explain what a commit is for.",
        "notes": "Take over what other tools' git notes say of lines.",
        "lsp": "Show in an editor which turn wrote a line, and why.",
    },
    "Sessions": {
        "sessions": "List sessions, newest first.",
        "search": "Find sessions by words in prompts, answers, thinking and tool calls.",
        "restore": "Restore a commit's conversation, to resume it in the agent.",
        "handoff": "Write what the next person or agent must know of a session.",
        "tasks": "List the tasks that sessions worked on, and what became of each.",
        "task": "Say that a task begins, is done, is rejected or is given up.",
        "stats": "Count sessions, turns and tokens by agent, project, day and model.",
        "memory": "List what past sessions found, decided, fixed and were told.",
        "context": "Print what an agent should know before it works on a branch.",
        "mcp": "Serve past sessions to agents, as tools they can call.",
    },
    "Live": {
        "serve": "Open the live dashboard in a browser on this machine.",
        "top": "Watch in this terminal which sessions run and which wait for you.",
        "feed": "Show what happened in all sessions, one line each.",
        "attention": "List what is stuck, blocked, looping, waiting for you or done.",
        "alerts": "Show how you are alerted, or send a test.",
        "approvals": "List what agents asked to be allowed, and who answered.",
        "rules": "Say which commands agents may run without asking you.",
    },
    "Share": {
        "export": "Print the story of a branch, a commit or a session, to share it.",
        "remote": "Share a repository's stories with a team, or stop sharing them.",
        "login": "Let a team server know this machine.",
        "logout": "Delete a team server's token from this machine.",
        "whoami": "Ask a team server whom it knows this machine as.",
        "sync": "Send the stories of pushed commits to the team.",
        "share": "Share a commit's story or a session, pushed or not.",
        "keep-local": "Keep a commit's story or a session on this machine.",
        "server": "Run a team's server, where members read each other's stories.",
    },
    "Privacy": {
        "redact": "Remove secrets from a text or a transcript.",
        "pause": "Stop recording: everywhere, in a repository, or for a session.",
        "resume": "Record again from now on.",
        "forget": "Delete a session, a commit's conversation, a text, or old sessions.",
    },
    "Set up": {
        "init": "Install hooks for your agents and git, and read the existing history.",
        "ingest": "Read what your agents wrote since the last run.",
        "run": "Run a program without transcripts and record its terminal.",
        "import": "Read conversations from another machine, web chats and other tools.",
        "agents": "List the agents that are known, and which are found here.",
        "doctor": "Check that capture works and that nothing was dropped.",
        "config": "Show or change the settings.",
        "projects": "List known projects, or tell where one has moved.",
        "completion": "Print a script that completes commands in your shell.",
        "man": "Print the manual page.",
        "uninstall": "Remove the hooks and restore every changed file.",
        "rebuild": "Create the database again from the stored records.",
        "demo": "Look around in a temporary home with invented sessions.",
    },
}
COMMANDS = {name: line for group in COMMAND_GROUPS.values() for name, line in group.items()}
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
    "tasks",
}


class LazyGroup(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command = import_module(f"whyfor.cli.{cmd_name.replace('-', '_')}").command
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
        use_own_agents()
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete commands from the table: no command is imported for its name."""
        from click.shell_completion import CompletionItem

        if incomplete.startswith("-"):
            return click.Command.shell_complete(self, ctx, incomplete)
        found = [name for name in COMMANDS if name.startswith(incomplete)]
        return [CompletionItem(name, help=COMMANDS[name]) for name in found]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the groups from the table: --help must not import every command."""
        width = max(map(len, COMMANDS))
        for group, commands in COMMAND_GROUPS.items():
            with formatter.section(group):
                formatter.write_dl([(name.ljust(width), line) for name, line in commands.items()])


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

    found = get_close_matches(word.lower(), known, n=3, cutoff=0.6)
    if not found:
        return None
    # of two that are as close, the one of about the same length was meant
    return min(found, key=lambda each: (abs(len(each) - len(word)), found.index(each)))


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

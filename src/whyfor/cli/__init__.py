"""The command line, one module per command: parse, call one service, render."""

from __future__ import annotations

from importlib import import_module

import click

from whyfor import __version__

# Command name → one line of help. The module of the same name is imported only when the command
# runs.
COMMANDS = {
    "init": "Install hooks for your agents and git, and read the existing history.",
    "ingest": "Read what your agents wrote since the last run.",
    "sessions": "List sessions, newest first.",
    "show": "Show one session, or the story of one commit.",
    "log": "List commits and their stories, newest first.",
    "status": "Show the last commit's story, active sessions and uncommitted work.",
    "diff": "Show what was said between two commits.",
    "export": "Print the story of a branch, a commit or a session, to share it.",
    "redact": "Remove secrets from a text or a transcript.",
    "link": "Link commits to sessions again, or link one by hand.",
    "unlink": "Remove a session from a commit's story.",
    "note": "Explain what a commit is for.",
    "projects": "List known projects, or tell where one has moved.",
    "restore": "Restore a commit's conversation, to resume it in the agent.",
    "search": "Find words in prompts, answers, thinking and tool calls.",
    "memory": "List what past sessions found, decided, fixed and were told.",
    "stats": "Count sessions, turns and tokens by agent, project, day and model.",
    "serve": "Open the live dashboard in a browser on this machine.",
    "top": "Watch in this terminal which sessions run and which wait for you.",
    "doctor": "Check that capture works and that nothing was dropped.",
    "pause": "Stop recording: everywhere, in a repository, or for a session.",
    "resume": "Record again from now on.",
    "forget": "Delete a session, a commit's conversation, a text, or old sessions.",
    "uninstall": "Remove the hooks and restore every changed file.",
    "rebuild": "Create the database again from the stored records.",
    "demo": "Look around in a temporary home with invented sessions.",
}


class LazyGroup(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command = import_module(f"whyfor.cli.{cmd_name}").command
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Show the commit or session that the first word names if it is not a command, unless it
        looks like a mistyped command."""
        word = args[0]
        if word in COMMANDS or word.startswith("-"):
            return super().resolve_command(ctx, args)
        if meant := _command_like(word):
            ctx.fail(
                f"No such command {word!r}. Did you mean {meant}? A commit or session: whyfor show "
                f"{word}"
            )
        return super().resolve_command(ctx, ["show", *args])

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):  # from the table: --help must not import every command
            formatter.write_dl(list(COMMANDS.items()))


def _command_like(word: str) -> str | None:
    """Return the command that a word resembles; None if it can only be a commit or a session."""
    if not word.isalpha():
        return None
    from difflib import get_close_matches  # here: few words are mistyped

    found = get_close_matches(word.lower(), COMMANDS, n=1, cutoff=0.75)
    return found[0] if found else None


@click.command(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, message="whyfor %(version)s")
def root() -> None:
    """Whyfor keeps the conversation behind every commit.

    \b
    Start here:
      whyfor init                       in a repository: install hooks, read the history
      whyfor log                        commits and their stories
      whyfor HEAD                       why a commit exists; short for: whyfor show HEAD
      whyfor restore HEAD               resume its conversation in the agent
      whyfor search "retry with backoff"

    Everything stays on this machine, in $WHYFOR_HOME or your data directory.
    """

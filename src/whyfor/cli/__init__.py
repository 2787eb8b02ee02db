"""One module per verb: parse, call one service, render."""

from __future__ import annotations

from importlib import import_module

import click

from whyfor import __version__

# Command name → one line of help. The module of the same name is imported only when the command
# runs.
COMMANDS = {
    "init": "Capture what agents do here from now on, and read what they did before.",
    "ingest": "Read what your agents wrote, all of it or what is new.",
    "sessions": "List sessions, newest first.",
    "show": "Read one session, or the story of one commit.",
    "log": "Commits and their stories, newest first.",
    "status": "The last commit's story, sessions at work, work in no commit yet.",
    "diff": "What was said between two commits.",
    "export": "A branch's, a commit's or a session's story in one piece, to be shared.",
    "redact": "A text or a transcript without its secrets.",
    "link": "Find the stories of a repository's commits, or link one by hand.",
    "unlink": "Say that a session has no part in a commit.",
    "note": "Write down what a commit is for.",
    "projects": "List known projects; say where one has moved.",
    "restore": "Bring a commit's conversation back, to resume it in the agent.",
    "search": "Find words in everything that was asked, answered, thought and done.",
    "stats": "Sessions, turns and tokens by agent, project, day and model.",
    "serve": "Show it all in a browser on this machine, live.",
    "top": "Which sessions work, which wait for you: live, in this terminal.",
    "doctor": "Check that capture works and that nothing was dropped.",
    "pause": "Record nothing for a while: at all, of a repository, of a session.",
    "resume": "Record again, from now on.",
    "forget": "Forget a session, a commit's conversation, a text, or what is old; for good.",
    "uninstall": "Take our hooks out again; everything as it was before.",
    "rebuild": "Make the database again from the stored segments.",
    "demo": "Look around in a throw-away home with invented sessions.",
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
        """A first word that is no command names a commit or a session to show, unless it looks
        like a mistyped one."""
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
    """The command that a word is nearly; None for what only a commit or a session is called."""
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
      whyfor init                       in a repository: hooks, then the history that is there
      whyfor log                        commits and their stories
      whyfor HEAD                       why a commit is there; a session by its id (short for: show)
      whyfor restore HEAD               its conversation, resumed in the agent
      whyfor search "retry with backoff"

    Everything stays on this machine, in $WHYFOR_HOME or your data folder.
    """

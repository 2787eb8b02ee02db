"""whyfor run"""

from __future__ import annotations

import click

from whyfor import config
from whyfor.cli.render import print_note
from whyfor.model.errors import WhyforError
from whyfor.model.text import label
from whyfor.service.run import RunPlan, run_program


@click.command(context_settings={"ignore_unknown_options": True})
@click.option(
    "--input",
    "with_input",
    is_flag=True,
    help="Record what you type too, but for what is typed unseen.",
)
@click.argument("argv", metavar="-- PROGRAM [ARGS]...", nargs=-1, required=True)
def command(with_input: bool, argv: tuple[str, ...]) -> int:
    """Run a program and record its terminal.

    For agents that leave no transcript. What it prints is kept as a session; what you type is not,
    unless you ask for it. Its exit code, signals, job control and size are as without Whyfor. If
    recording fails, the program runs on.

    \b
    Examples:
      whyfor run -- aider --model sonnet
      whyfor run --input -- my-agent
      whyfor show ID --replay            play the recording again
    """
    settings: config.Settings | None
    try:
        settings = config.load()
    except WhyforError as error:
        settings = None
        print_note(f"Not recorded: {label(error.message)}")
    plan = RunPlan(list(argv), with_input)
    return run_program(settings, plan, lambda text: print_note(label(text)))

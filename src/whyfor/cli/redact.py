"""whyfor redact"""

from __future__ import annotations

import sys
from pathlib import Path

import click
import msgspec

from whyfor import config
from whyfor.cli.render import console, json_option, print_json, print_note
from whyfor.cli.tables import FittedTable
from whyfor.service.redact import RedactionResult, Task, describe_counts, redact
from whyfor.terminal import data_stream


@click.command()
@click.argument("file", required=False, type=click.Path(allow_dash=True, path_type=Path))
@click.option(
    "--output", type=click.Path(dir_okay=False, path_type=Path), help="Write to this file instead."
)
@click.option(
    "--personal",
    is_flag=True,
    help="Also personal data: e-mail addresses, phone numbers, home directories.",
)
@click.option("--stats", is_flag=True, help="Print how much was found, by rule.")
@click.option(
    "--from-scratch",
    is_flag=True,
    help="Redact the whole file again, not only what is new since the last run.",
)
@json_option
def command(
    file: Path | None,
    output: Path | None,
    personal: bool,
    stats: bool,
    from_scratch: bool,
    as_json: bool,
) -> None:
    """Copy a text or a transcript to stdout without its secrets. Without FILE, stdin is read.

    The same secret has the same number everywhere: [REDACTED:github-token#1]. All other bytes stay
    the same, and a transcript can still be resumed. With --json, the positions of the secrets are
    printed instead of the text. With --output, a transcript that has grown is continued where the
    last run ended.

    \b
    Examples:
      whyfor redact session.jsonl > shared.jsonl
      git diff | whyfor redact
      whyfor redact notes.txt --json
      whyfor redact ~/.claude/projects/x/3f05.jsonl --output 3f05.jsonl --stats
    """
    source = None if file is None or str(file) == "-" else file
    task = Task(
        source,
        output,
        personal,
        from_scratch,
        spans=as_json,
        text=output is not None or not as_json,
    )
    done = redact(config.load(), task, sys.stdin.buffer, data_stream())
    if as_json:
        print_json(msgspec.to_builtins(done))
    elif stats:
        _render(done, stderr=output is None)
    elif said := describe_counts(done.counts, done.values):
        print_note(said)
    if output is not None:
        print_note(
            f"Written to {output}"
            + (f", from byte {done.read_from:,} on" if done.read_from else "")
        )


def _render(done: RedactionResult, *, stderr: bool) -> None:
    sys.stdout.flush()
    made = FittedTable(
        "rule", "places", "values", title="rule", right=("places", "values"), wrap=True
    )
    for rule, places in sorted(done.counts.items(), key=lambda item: (-item[1], item[0])):
        made.add(rule, f"{places:,}", f"{done.values[rule]:,}")
    made.add("all", f"{sum(done.counts.values()):,}", f"{sum(done.values.values()):,}")
    made.print(console(stderr=stderr))

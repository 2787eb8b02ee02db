"""whyfor export"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from whyfor import config
from whyfor.cli.complete import complete_reference
from whyfor.cli.render import json_option, print_note
from whyfor.model.text import plural
from whyfor.terminal import write_data

if TYPE_CHECKING:
    from whyfor.service.export import Exported

FORMATS = ("markdown", "html", "json", "agent-trace", "git-ai")
EXCHANGE = ("agent-trace", "git-ai")


@click.command()
@click.argument(
    "reference", metavar="[COMMIT|RANGE|SESSION]", required=False, shell_complete=complete_reference
)
@click.option("--format", "form", type=click.Choice(FORMATS), default="markdown", show_default=True)
@click.option(
    "--output", type=click.Path(dir_okay=False, path_type=Path), help="Write to this file instead."
)
@click.option("--thinking", is_flag=True, help="Include the agent's thinking.")
@click.option(
    "--tools", is_flag=True, help="Include every tool call with its changes and result, folded."
)
@click.option(
    "--all",
    "whole_home",
    is_flag=True,
    help="Everything that is kept, as one archive for `whyfor import`. Nothing is redacted.",
)
@click.option(
    "--write",
    "write_notes",
    is_flag=True,
    help="With --format git-ai: write the notes to refs/notes/ai.",
)
@click.option("--otlp", metavar="URL", help="Send sessions as traces to a collector.")
@click.option(
    "--header",
    "headers",
    multiple=True,
    metavar="NAME=VALUE",
    help="With --otlp: a header to send; can be repeated.",
)
@click.option(
    "--content", is_flag=True, help="With --otlp: also prompts, answers, arguments and results."
)
@click.option(
    "--dataset", is_flag=True, help="Turns as JSON lines with what came of them, and a datasheet."
)
@click.option("--since", metavar="TIME", help="With --otlp and --dataset. Default: 7d, and all.")
@click.option("--project", metavar="NAME", help="With --dataset: only this project.")
@click.option("--no-redact", is_flag=True, help="Keep secrets, and report them on stderr.")
@json_option
def command(
    reference: str | None,
    form: str,
    output: Path | None,
    thinking: bool,
    tools: bool,
    whole_home: bool,
    write_notes: bool,
    otlp: str | None,
    headers: tuple[str, ...],
    content: bool,
    dataset: bool,
    since: str | None,
    project: str | None,
    no_redact: bool,
    as_json: bool,
) -> None:
    """Print the story of a branch, a commit or a session as one document to share. Secrets are
    redacted.

    \b
    Examples:
      whyfor export main..HEAD                                    for a pull request
      whyfor export HEAD --format html --output story.html
      whyfor export 3f05 --tools
      whyfor export main..HEAD --format agent-trace               who wrote which lines
      whyfor export 3f05 --otlp http://127.0.0.1:4318             one trace per turn
      whyfor export --otlp http://127.0.0.1:6006 --since 30d
      whyfor export --dataset --since 90d --output turns.jsonl
      whyfor export --all --output home.zip                       to another machine of yours
    """
    if whole_home:
        _export_home(reference, output, as_json)
        return
    if otlp is not None:
        _export_otlp(otlp, reference, since, headers, content=content, as_json=as_json)
        return
    if dataset:
        _export_dataset(reference, output, since, project, as_json=as_json)
        return
    if reference is None:
        raise click.UsageError("Name a commit, a range or a session; or give --all.")
    if write_notes and form != "git-ai":
        raise click.UsageError("--write goes with --format git-ai.")
    if form in EXCHANGE:
        _exchange(reference, form, output, write_notes)
        return
    from whyfor.service.export import ExportRequest, encoded, export, save

    wanted = ExportRequest("json" if as_json else form, thinking, tools, redact=not no_redact)
    made = export(config.load(), reference, Path.cwd(), wanted)
    if output is None:
        write_data(encoded(made.text))
    else:
        save(output, made.text)
        print_note(f"Written to {output}")
    if said := _said(made, no_redact):
        print_note(said)


def _export_home(reference: str | None, output: Path | None, as_json: bool) -> None:
    from whyfor.cli.render import print_json, progress_bar, size_text
    from whyfor.service.home_export import export_home

    if reference is not None or output is None:
        raise click.UsageError("--all takes --output FILE.zip and nothing else.")
    with progress_bar("Writing") as announce:
        size = export_home(config.load(), output, announce)
    if as_json:
        print_json({"path": str(output), "bytes": size})
        return
    print_note(f"Written to {output}, {size_text(size)}. Secrets in it are not redacted.")
    print_note(f"On the other machine: whyfor import {output.name}")


def _export_otlp(
    url: str,
    reference: str | None,
    since: str | None,
    headers: tuple[str, ...],
    *,
    content: bool,
    as_json: bool,
) -> None:
    from whyfor.cli.render import print_json
    from whyfor.model.wire.reports import wire_report
    from whyfor.service.exchange.otlp import OtlpRequest, export_otlp

    told = dict(each.partition("=")[::2] for each in headers)
    if not all(told.values()):
        raise click.UsageError("--header is written NAME=VALUE.")
    wanted = OtlpRequest(
        url=url, headers=told, content=content, reference=reference, since=since or "7d"
    )
    report = export_otlp(config.load(), wanted)
    if as_json:
        print_json(wire_report(report))
        return
    what = f"{plural(report.traces, 'trace')} of {plural(report.sessions, 'session')}"
    print_note(f"Sent {what}, {plural(report.spans, 'span')}, to {report.url}")


def _export_dataset(
    reference: str | None,
    output: Path | None,
    since: str | None,
    project: str | None,
    *,
    as_json: bool,
) -> None:
    import time

    from whyfor.cli.render import print_json
    from whyfor.model.query import SessionFilter
    from whyfor.model.wire.reports import wire_report
    from whyfor.service.exchange.dataset import export_dataset

    if reference is not None or output is None:
        raise click.UsageError("--dataset takes --output FILE.jsonl, --since and --project.")
    where = SessionFilter(since=since, project=project)
    sheet, beside = export_dataset(config.load(), output, where, int(time.time() * 1000))
    if as_json:
        print_json(wire_report(sheet))
        return
    print_note(f"{plural(sheet.turns, 'turn')} of {plural(sheet.sessions, 'session')}: {output}")
    removed = sum(sheet.secrets_removed.values())
    print_note(f"{plural(removed, 'secret')} removed. What is in it: {beside}")


def _exchange(reference: str, form: str, output: Path | None, write: bool) -> None:
    """Print who wrote the lines of commits, in the format of another tool."""
    from whyfor.service.exchange.agent_trace import trace_lines
    from whyfor.service.exchange.git_ai import notes_as_text, write_notes
    from whyfor.service.exchange.owned_lines import owned_commits
    from whyfor.service.export import encoded, save

    settings = config.load()
    commits = owned_commits(settings, reference, Path.cwd())
    if write:
        report = write_notes(Path.cwd(), commits, settings.env.get("PATH", ""))
        print_note(f"{plural(len(report.written), 'note')} written to refs/notes/ai.")
        if report.foreign:
            several = plural(len(report.foreign), "commit")
            print_note(f"{several} with a note of another tool: left as they are.")
        return
    text = trace_lines(commits) if form == "agent-trace" else notes_as_text(commits)
    if output is None:
        write_data(encoded(text))
    else:
        save(output, text)
        print_note(f"Written to {output}")
    if not commits:
        print_note(f"No commit of {reference} has a story.")


def _said(made: Exported, no_redact: bool) -> str:
    from whyfor.service.redact import describe_counts

    found = made.found
    if not no_redact:
        return describe_counts(found.counts, found.values)
    if not found.counts:
        return "Not redacted; no secret was found in it."
    each = ", ".join(f"{found.values[rule]:,} {rule}" for rule in found.counts)
    where = f", from {', '.join(found.sessions)}" if found.sessions else ""
    return f"NOT REDACTED: {plural(sum(found.values.values()), 'secret')} in it now: {each}{where}"

"""whyfor alerts"""

from __future__ import annotations

import sys

import click

from whyfor import config
from whyfor.cli.render import console, json_option, print_json, print_note
from whyfor.model.wire.attention import wire_alerts
from whyfor.service.alerts import AlertReport, alert_ways, try_alerts
from whyfor.terminal import raw_stream


@click.group(invoke_without_command=True)
@json_option
@click.pass_context
def command(context: click.Context, as_json: bool) -> None:
    """Show how you are alerted when a session needs you, or test it.

    Alerts are off by default. They go to the desktop, to a program of yours, to services such as
    ntfy, Slack and e-mail, and to the terminal of `whyfor top`. Secrets are removed first; if that
    fails, nothing is sent.

    \b
    Examples:
      whyfor alerts
      whyfor alerts test
    """
    if context.invoked_subcommand is None:
        _print(alert_ways(config.load()), "set", as_json=as_json)


@command.command("test")
@json_option
def test(as_json: bool) -> None:
    """Send a test alert by every way that is set.

    Exit code 1 if one of them fails.

    \b
    Examples:
      whyfor alerts test
      whyfor alerts test --json
    """
    report = try_alerts(config.load(), _ring)
    _print(report, "sent", as_json=as_json)
    if any(way.error for way in report.ways):
        sys.exit(1)


def _ring(text: str) -> None:
    """Write what rings a terminal, which is no text, past what cleans all text."""
    stream = raw_stream(stderr=True)
    if stream.isatty():
        stream.write(text)
        stream.flush()


def _print(report: AlertReport, fine: str, *, as_json: bool) -> None:
    if as_json:
        print_json(wire_alerts(report))
        return
    out = console()
    if not report.ways:
        print_note("No alerts are sent. Turn them on: docs/alerts.md")
        return
    for way in report.ways:
        state = f"failed: {way.error}" if way.error else fine
        out.print(f"{way.way:9} {way.to}  {state}", markup=False, highlight=False)
    quiet = f"; nothing at {report.quiet}" if report.quiet else ""
    print_note(f"Levels: {', '.join(report.levels)}{quiet}")
    for problem in report.problems:
        print_note(problem)

"""whyfor rules"""

from __future__ import annotations

import shlex
from datetime import date, datetime
from pathlib import Path
from typing import cast

import click

from whyfor import config
from whyfor.cli.filters import since_option
from whyfor.cli.render import age_text, console, json_option, print_json, print_note
from whyfor.cli.tables import FittedTable
from whyfor.model.rules import CommandRule, RuleDecision, RuleMode
from whyfor.model.text import label, plural
from whyfor.model.times import parse_when
from whyfor.model.wire.approvals import plain_values, wire_approval_decision, wire_rule
from whyfor.service import rules as service

MODES = ("off", "dry-run", "on")
_MEANS = {
    "off": "Rules are off: every request is asked.",
    "dry-run": "Dry run: every request is asked, and what rules would have said is recorded.",
    "on": "Rules are on: commands run before you see them.",
}
_STYLE = {"allow": "green", "deny": "red", "never": "red", "ask": "yellow", "abstain": "yellow"}


@click.group(invoke_without_command=True)
@click.pass_context
def command(ctx: click.Context) -> None:
    """Say which commands agents may run without asking you. Off until you turn it on.

    Rules are in rules.toml in Whyfor's directory, never in a repository. They count only for
    agents whose hooks may answer: whyfor init --rules.

    \b
    Examples:
      whyfor rules
      whyfor rules add -- npm test
      whyfor rules test 'git log --oneline | wc -l'
      whyfor rules mode dry-run
      whyfor rules report
    """
    if ctx.invoked_subcommand is None:
        ctx.invoke(list_command)


@command.command("list")
@json_option
def list_command(as_json: bool = False) -> None:
    """List the rules, and how often each answered or would have."""
    found = service.rules_overview(config.load())
    if as_json:
        rules = [wire_rule(use.rule, use.hits, use.last_at) for use in found.rules]
        facts = {"mode": found.mode, "fault": found.fault, "installed": found.installed}
        print_json({**facts, "rules": rules})
        return
    console().print(found.fault or _MEANS[found.mode], style="yellow" if found.fault else "")
    if found.rules:
        table = FittedTable("id", "pattern", "says", "where", "hits", "last", title="pattern")
        for use in found.rules:
            table.add(
                use.rule.id,
                label(service.rule_words(use.rule)),
                use.rule.decision,
                label(service.rule_place(use.rule)),
                str(use.hits),
                age_text(use.last_at) if use.last_at else "never",
            )
        table.print(console())
    if not found.installed and found.mode != "off":
        print_note("No hook may answer yet: whyfor init --rules")


@command.command("add")
@click.argument("words", nargs=-1, required=True, type=click.UNPROCESSED)
@click.option("--everywhere", is_flag=True, help="In all projects. Default: in this one.")
@click.option("--deny", "decision", flag_value="deny", help="Deny it instead.")
@click.option("--ask", "decision", flag_value="ask", help="Always ask, whatever other rules say.")
@click.option("--may", multiple=True, help="An option it may have: '--silent', '-t *'; repeatable.")
@click.option("--agent", "agents", multiple=True, help="Only for this agent; can be repeated.")
@click.option("--native", metavar="AGENT", help="Write it to this agent's own settings instead.")
@click.option(
    "--until", type=click.DateTime(["%Y-%m-%d"]), help="The last day the rule counts: 2027-02-01."
)
@json_option
def add_command(
    words: tuple[str, ...],
    everywhere: bool,
    decision: str | None,
    may: tuple[str, ...],
    agents: tuple[str, ...],
    native: str | None,
    until: datetime | None,
    as_json: bool,
) -> None:
    """Allow commands that begin with WORDS, in this project.

    \b
    Examples:
      whyfor rules add -- npm test
      whyfor rules add --may '--silent' --until 2027-02-01 -- npm run lint
      whyfor rules add --everywhere --deny -- git push
      whyfor rules add --native claude -- npm test
    """
    if native:
        _add_native(native, list(words), as_json)
        return
    last: date | None = until.date() if until else None
    asked = CommandRule(
        id="new",
        run=list(words),
        may=list(may),
        agents=list(agents),
        decision=cast(RuleDecision, decision or "allow"),
        until=last,
    )
    made = service.add_rule(config.load(), Path.cwd(), asked, here=not everywhere)
    if as_json:
        print_json(wire_rule(made))
        return
    place = label(service.rule_place(made))
    console().print(f"Added {made.id}: {made.decision} {label(service.rule_words(made))}, {place}.")


def _add_native(agent: str, run: list[str], as_json: bool) -> None:
    path = service.add_native_rule(config.load(), agent, run)
    if as_json:
        print_json({"agent": agent, "run": run, "file": str(path)})
        return
    words = label(shlex.join(run))
    console().print(f"{agent} allows {words} by itself now: {label(str(path))}", soft_wrap=True)
    print_note("Its own rule allows every option of the command, and needs no hook.")


@command.command("remove")
@click.argument("ident", metavar="ID")
@json_option
def remove_command(ident: str, as_json: bool) -> None:
    """Remove a rule."""
    service.remove_rule(config.load(), ident)
    if as_json:
        print_json({"removed": ident})
    else:
        console().print(f"Removed {ident}.")


@command.command("mode")
@click.argument("mode", type=click.Choice(MODES))
@click.option("--anyway", is_flag=True, help="Turn rules on though the dry run is too short.")
@json_option
def mode_command(mode: str, anyway: bool, as_json: bool) -> None:
    """Turn rules off, to a dry run, or on."""
    service.set_mode(config.load(), cast(RuleMode, mode), anyway=anyway)
    if as_json:
        print_json({"mode": mode})
    else:
        console().print(_MEANS[mode])


@command.group("dry-run", invoke_without_command=True)
@json_option
@click.pass_context
def dry_run_command(ctx: click.Context, as_json: bool) -> None:
    """Record what rules would have said, and answer nothing. Same as: mode dry-run.

    \b
    Examples:
      whyfor rules dry-run
      whyfor rules dry-run report
    """
    if ctx.invoked_subcommand is None:
        ctx.invoke(mode_command, mode="dry-run", anyway=False, as_json=as_json)


@command.command("test")
@click.argument("line", metavar="CMD")
@click.option("--agent", default="claude", show_default=True, help="Who would ask.")
@json_option
def test_command(line: str, agent: str, as_json: bool) -> None:
    """Say what the rules would answer to CMD in this directory, and why."""
    found = service.try_command(config.load(), line, Path.cwd(), agent)
    if as_json:
        print_json(plain_values(found))
        return
    out = console()
    out.print(f"{found.answer}: {label(found.reason)}", style=_STYLE[found.answer])
    for part in found.parts:
        why = f"rule {part.rule}" if part.rule else part.reason
        out.print(f"  {label(shlex.join(part.argv))}  {part.answer}: {label(why)}")


@command.command("suggest")
@json_option
def suggest_command(as_json: bool) -> None:
    """Suggest rules from what you allowed by hand: 5 times, in 2 sessions, on 2 days, never denied.

    The first choice is the agent's own settings: no hook is needed there.
    """
    found = service.suggestions(config.load())
    if as_json:
        print_json([plain_values(one) for one in found])
        return
    if not found:
        print_note("Nothing was allowed by hand often enough yet.")
    out = console()
    for one in found:
        words = label(shlex.join(one.run))
        where = f" in {label(one.project)}" if one.project else ""
        out.print(f"{words}  allowed {plural(one.allowed, 'time')}{where}", markup=False)
        if one.reason:
            out.print(f"  {one.reason}", style="dim")
            continue
        for name, rule in one.native.items():
            out.print(f"  {name}: {label(rule)}", markup=False, soft_wrap=True)
        out.print(f"  Whyfor: whyfor rules add -- {words}", markup=False, soft_wrap=True)


@command.command("report")
@since_option
@json_option
def report_command(since: str | None, as_json: bool) -> None:
    """Show what the dry run said beside what you said."""
    when = parse_when(since, datetime.now().astimezone()) if since else None
    found = service.rules_report(config.load(), when)
    if as_json:
        wrong = [wire_approval_decision(row) for row in found.wrong]
        print_json({**plain_values(found), "wrong": wrong})
        return
    out = console()
    out.print(
        f"Of {plural(found.requests, 'request')} the rules would have allowed {found.allowed}, "
        f"asked {found.asked}, denied {found.denied}. You said the same {found.agreed} times."
    )
    for row in found.wrong:
        out.print(f"  You denied: {label(row.decision.action or '')}", style="red")
    out.print("They may be turned on: whyfor rules mode on" if found.ready else found.missing)


dry_run_command.add_command(report_command)

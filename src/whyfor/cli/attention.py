"""whyfor attention"""

from __future__ import annotations

import click

from whyfor import config
from whyfor.cli.filters import agent_option, project_option, since_option
from whyfor.cli.render import (
    age_text,
    console,
    json_option,
    moment_text,
    print_json,
    print_note,
    project_text,
)
from whyfor.cli.tables import FittedTable
from whyfor.config import Settings
from whyfor.model.attention import CAUSES, AttentionQuery, ListedFiring
from whyfor.model.query import SessionFilter
from whyfor.model.text import label, one_line, plural
from whyfor.model.wire.attention import WireReplay, wire_firing
from whyfor.service.attention import (
    attention_history,
    attention_now,
    fits_query,
    mute,
    replay_attention,
)
from whyfor.service.ingest import read_new

_TITLE = 60  # characters of a session's title
_STYLE = {"act": "bold red", "look": "yellow", "know": "green"}


@click.command()
@click.option("--all", "everything", is_flag=True, help="What was told before, newest first.")
@click.option("--replay", is_flag=True, help="What would have been told of stored sessions.")
@click.option("--mute", "muted", metavar="ID", help="Do not tell this of its session any more.")
@click.option("--unmute", "unmuted", metavar="ID", help="Tell it again.")
@since_option
@agent_option
@project_option
@click.option(
    "--cause",
    "causes",
    metavar="NAME",
    multiple=True,
    type=click.Choice(list(CAUSES)),
    help="Only this one: wall, limit, quiet, … Repeatable.",
)
@click.option("--limit", type=click.IntRange(1), default=50, show_default=True, help="At most.")
@json_option
def command(
    everything: bool,
    replay: bool,
    muted: str | None,
    unmuted: str | None,
    since: str | None,
    agent: str | None,
    project: str | None,
    causes: tuple[str, ...],
    limit: int,
    as_json: bool,
) -> None:
    """List what you should know about your sessions: stuck, blocked, looping, waiting or done.

    Each line says what is so, how that is known and what to do next. Levels: act (it cannot go on
    without you), look (it goes wrong, or may), know (good news). Nothing is typed into a session.

    \b
    Examples:
      whyfor attention
      whyfor attention --all --since 7d
      whyfor attention --replay --since 30d
      whyfor attention --mute 3f05a1c2
    """
    settings = config.load()
    if muted or unmuted:
        _mute(settings, muted or unmuted or "", undo=not muted, as_json=as_json)
    elif replay:
        where = SessionFilter(agent=agent, project=project, since=since)
        _replay(settings, where, causes, limit, as_json=as_json)
    elif everything or since:
        query = AttentionQuery(
            agent=agent, project=project, causes=causes, limit=None if as_json else limit
        )
        _history(attention_history(settings, query, since=since or ""), as_json=as_json)
    else:
        query = AttentionQuery(agent=agent, project=project, causes=causes)
        read_new(settings)
        found = [one for one in attention_now(settings) if fits_query(one, query)]
        _now(found, as_json=as_json)


def _mute(settings: Settings, ident: str, *, undo: bool, as_json: bool) -> None:
    firing = mute(settings, ident, undo=undo)
    if as_json:
        print_json(wire_firing(ListedFiring(firing=firing)))
        return
    word = "told again" if undo else "not told any more"
    print_note(f"{firing.word}: {word} of {firing.session or 'all sessions'}.")


def _now(found: list[ListedFiring], *, as_json: bool) -> None:
    if as_json:
        print_json([wire_firing(one) for one in found])
        return
    shown = [one for one in found if not one.firing.muted]
    if not shown:
        print_note("Nothing needs your attention.")
    for one in shown:
        _print(one)
    if len(shown) < len(found):
        print_note(f"{len(found) - len(shown)} muted; all of them: whyfor attention --json")


def _print(one: ListedFiring) -> None:
    from rich.padding import Padding
    from rich.text import Text

    firing, found = one.firing, one.firing.found
    out = console()
    head = Text.assemble(
        (firing.word, _STYLE[firing.level]),
        "  ",
        (_title(one), "bold"),
        ("  " + _place(one), "dim"),
        ("  " + age_text(found.at), "dim"),
    )
    out.print(head)
    for text, style in (
        (found.fact, ""),
        (f"{found.evidence} · {firing.id}", "dim"),
        (found.step, ""),
    ):
        out.print(Padding(Text(label(one_line(text)), style=style), (0, 0, 0, 2)))
    if found.command:
        out.print(Padding(Text(label(found.command), style="cyan"), (0, 0, 0, 2)))


def _title(one: ListedFiring) -> str:
    words = label(one_line(one.title or one.firing.session or "All sessions"))
    return words if len(words) <= _TITLE else words[: _TITLE - 1] + "…"


def _place(one: ListedFiring) -> str:
    parts = (project_text(one.project) if one.project else "", one.branch or "")
    return label(" · ".join(part for part in parts if part))


def _history(found: list[ListedFiring], *, as_json: bool) -> None:
    if as_json:
        print_json([wire_firing(one) for one in found])
        return
    if not found:
        print_note("Nothing was told. The monitor runs with: whyfor serve, whyfor top")
        return
    _table(found)


def _table(found: list[ListedFiring]) -> None:
    from rich.text import Text

    table = FittedTable("told", "level", "cause", "session", "fact", "id", title="fact")
    for one in found:
        firing = one.firing
        table.add(
            Text(moment_text(firing.told_at), style="dim"),
            Text(firing.level, style=_STYLE[firing.level]),
            firing.word,
            label(one_line(one.title or firing.session))[:30],
            Text(label(one_line(firing.found.fact))),
            Text(firing.id, style="dim"),
        )
    table.print(console())


def _replay(
    settings: Settings,
    where: SessionFilter,
    causes: tuple[str, ...],
    limit: int,
    *,
    as_json: bool,
) -> None:
    report = replay_attention(settings, where)
    kept = [one for one in report.firings if not causes or one.firing.found.cause in causes]
    if as_json:
        print_json(WireReplay(report.sessions, [wire_firing(one) for one in kept]))
        return
    if not kept:
        print_note(f"Nothing would have been told of {plural(report.sessions, 'session')}.")
        return
    _table(kept[:limit])
    console().print()
    summary = FittedTable("cause", "level", "told", "per 100 sessions", title="cause")
    for (cause, level), count in sorted(report.counts.items(), key=lambda item: -item[1]):
        if not causes or cause in causes:
            share = f"{100 * count / report.sessions:.1f}"
            summary.add(CAUSES[cause].word, level, str(count), share)
    summary.print(console())
    print_note(f"{plural(report.sessions, 'session')} replayed; nothing was written.")

"""Approvals: what waits for an answer, what rules say of it, and who answered what."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from urllib.parse import urlencode

import msgspec
from litestar import get, post
from litestar.di import NamedDependency
from litestar.params import FromPath
from litestar.response import Redirect, Template

from whyfor.live.approvals import AnswerDesk, WaitingAnswer
from whyfor.live.hub import Hub
from whyfor.model.approvals import ApprovalQuery
from whyfor.model.errors import BadInput
from whyfor.model.rules import CommandRule, RuleMode
from whyfor.model.status import LiveStatus
from whyfor.server.forms import FormData, go_to
from whyfor.server.page import TEMPLATES, Kept, Live, render_page
from whyfor.server.pages.sessions import Short
from whyfor.service.agents import agent_title, agents_shown
from whyfor.service.approvals import list_approvals, session_labels
from whyfor.service.rules import (
    RulesOverview,
    TriedCommand,
    add_native_rule,
    add_rule,
    decline_suggestion,
    is_shell,
    judge_request,
    name_to_type,
    native_agents,
    remove_rule,
    rule_place,
    rule_words,
    rules_page,
    set_mode,
    work_tree_of,
)

Desk = NamedDependency[AnswerDesk]
_PAGE = "/approvals"
_DONE = {
    "allow": "Allowed, once.",
    "deny": "Denied.",
    "rule": "The rule was added.",
    "native": "The rule was added to the agent's own settings.",
    "removed": "The rule was removed.",
    "declined": "It is not suggested again.",
    "off": "Rules are off.",
    "dry-run": "Dry run: every request is still asked.",
    "on": "Rules are on: commands run before you see them.",
}
BY_WORDS = {
    "terminal": "you, in the terminal",
    "browser": "you, on this page",
    "rule": "a rule",
    "agent": "the agent itself",
    "nobody": "nobody",
    "unknown": "unknown",
}
DECISIONS = {"": "Any", "allowed": "Allowed", "denied": "Denied", "unanswered": "No answer"}
_INERT_MS = 500


def wall_ms() -> int:
    return time.time_ns() // 1_000_000


class ShownRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request that waits, in which session, what it consists of, and how it can be answered."""

    agent: str
    session_id: str
    action: str
    tool: str
    cwd: str
    asked_at: int
    title: str | None = None
    project: str | None = None
    branch: str | None = None
    pid: int | None = None
    verdict: TriedCommand | None = None
    answer: WaitingAnswer | None = None  # None: only in its terminal

    @property
    def typed(self) -> str:
        """The name that must be typed before it is allowed; empty: none."""
        return name_to_type(self.action, self.tool, self.agent, Path(self.cwd or "/"))


class AnswerForm(msgspec.Struct, frozen=True):
    digest: str = ""
    word: str = ""
    shown: int = 0
    typed: str = ""


class RuleForm(msgspec.Struct, frozen=True):
    words: str = ""
    project: str = ""
    native: str = ""  # the agent whose own settings get it
    mode: str = ""
    sure: str = ""


@get(_PAGE, include_in_schema=False, sync_to_thread=True)
def show(
    settings: Kept,
    hub: Live,
    desk: Desk,
    agent: Short = "",
    decision: Short = "",
    by: Short = "",
    project: Short = "",
    before: Short = "",
    did: Short = "",
    sure: Short = "",
    native: Short = "",
) -> Template:
    known = rules_page(settings)
    rules = known.rules
    query = ApprovalQuery(
        agent=agent or None,
        decision=decision if decision in DECISIONS else "",
        by=by if by in BY_WORDS else "",
        project=project,
        before=_place(before),
    )
    found = list_approvals(settings, query)
    kept = {"agent": agent, "decision": decision, "by": by, "project": project}
    older = ""
    if found.next:
        older = _link({**kept, "before": f"{found.next[0]}-{found.next[1]}"})
    return render_page(
        "approvals.html",
        here="approvals",
        waiting=_waiting(hub, desk, rules, kept),
        rules=rules,
        report=known.report,
        suggested=known.suggested[:6],
        projects=[("", "All"), *((each, _project_name(each)) for each in known.projects)],
        native=native if native in agents_shown(settings) else "",
        log=found,
        older=older,
        asked=kept,
        agents=[("", "All"), *((name, agent_title(name)) for name in agents_shown(settings))],
        decisions=list(DECISIONS.items()),
        answerers=[("", "Anyone"), *BY_WORDS.items()],
        by_words=BY_WORDS,
        rule_words=rule_words,
        rule_named={
            use.rule.id: f"{rule_words(use.rule)}, {rule_place(use.rule)}" for use in rules.rules
        },
        rule_place=rule_place,
        shell_words=shlex.join,
        native_agents=native_agents(),
        now_ms=wall_ms(),
        did=_DONE.get(did, ""),
        sure=sure,
        time_of=_time,
        day_of=_day,
        cursor=str(hub.cursor),
    )


def _place(before: str) -> tuple[int, int] | None:
    at, _, ident = before.partition("-")
    return (int(at), int(ident)) if at.isdigit() and ident.isdigit() else None


def _link(given: dict[str, str]) -> str:
    return f"{_PAGE}?{urlencode({name: value for name, value in given.items() if value})}"


def _time(millis: int) -> str:
    """Return the time of day, after the day if that is not today."""
    at = datetime.fromtimestamp(millis / 1000)
    today = at.date() == datetime.now().date()
    return at.strftime("%H:%M:%S" if today else "%Y-%m-%d %H:%M")


def _day(millis: int) -> str:
    return datetime.fromtimestamp(millis / 1000).strftime("%Y-%m-%d")


def _project_name(identity: str) -> str:
    """Return what a project is called on all pages: `acme/shop`, or its folder's name."""
    named: Callable[[str], str] = TEMPLATES.get().filters["project"]
    return named(identity)


def _waiting(
    hub: Hub, desk: AnswerDesk, rules: RulesOverview, asked: dict[str, str]
) -> list[ShownRequest]:
    """Return what waits, longest first."""
    found = [_of_standing(each, desk) for each in hub.standings]
    shown = {(each.agent, each.session_id): each for each in found if each}
    early = [each for each in desk.held() if (each.agent, each.session_id) not in shown]
    known = session_labels(desk.settings, [(each.agent, each.session_id) for each in early])
    for held in early:  # it asks before its status was read
        name = (held.agent, held.session_id)
        title, project, branch = known.get(name, (None, None, None))
        about = {"title": title, "project": project, "branch": branch}
        shown[name] = msgspec.structs.replace(_shown(held), **about)
    agent, project = asked["agent"], asked["project"]
    kept = [each for each in shown.values() if not agent or each.agent == agent]
    kept = [each for each in kept if not project or each.project == project]
    judged = [msgspec.structs.replace(each, verdict=_verdict(rules, each)) for each in kept]
    return sorted(judged, key=lambda each: each.asked_at)


def _of_standing(standing: LiveStatus, desk: AnswerDesk) -> ShownRequest | None:
    asked = standing.status.approval
    answer = desk.waiting(standing)
    session = standing.session
    about = {
        "title": session.title,
        "project": session.project,
        "branch": session.branch,
        "pid": standing.pid,
    }
    if answer is not None:
        return msgspec.structs.replace(_shown(answer), **about)
    if asked is None:
        return None
    made = ShownRequest(
        agent=session.agent,
        session_id=session.session_id,
        action=asked.action or "",
        tool=asked.tool or "",
        cwd=session.cwd or "",
        asked_at=asked.asked_at,
    )
    return msgspec.structs.replace(made, **about)


def _shown(answer: WaitingAnswer) -> ShownRequest:
    return ShownRequest(
        agent=answer.agent,
        session_id=answer.session_id,
        action=answer.action,
        tool=answer.tool,
        cwd=answer.cwd,
        asked_at=answer.asked_at,
        answer=answer,
    )


def _verdict(rules: RulesOverview, asked: ShownRequest) -> TriedCommand | None:
    if not asked.action or not is_shell(asked.tool, asked.agent):
        return None
    folder = Path(asked.cwd or "/")
    return judge_request(
        asked.action,
        [use.rule for use in rules.rules],
        agent=asked.agent,
        project=asked.project or "",
        top=work_tree_of(folder),
        cwd=folder,
    )


# -- actions -------------------------------------------------------------------------------------


@post("/approvals/{ident:str}/answer", include_in_schema=False, sync_to_thread=True)
def answer(desk: Desk, ident: FromPath[str], data: FormData[AnswerForm]) -> Redirect:
    """Allow once or deny: bound to one request and to the command that was shown."""
    found = desk.find(ident)
    if found is None:
        raise BadInput("this request was answered already", "Nothing was sent.")
    if data.shown and wall_ms() - data.shown < _INERT_MS:
        raise BadInput(
            "that was too quick to have been read", "Look at it again; nothing was sent."
        )
    if data.word == "allow":
        _require_name(found, data.typed)
    desk.answer(ident, data.digest, data.word)
    return go_to(f"{_PAGE}?did={data.word}", _PAGE)


def _require_name(found: WaitingAnswer, typed: str) -> None:
    """Refuse to allow what no rule could, unless the person typed which program or file it is."""
    name = name_to_type(found.action, found.tool, found.agent, Path(found.cwd or "/"))
    if name and typed.strip() != name:
        raise BadInput(
            f"{name} is what no rule can allow: type its name to allow it",
            "Go back, type it into the field beside the button; nothing was sent.",
        )


@post("/approvals/mode", include_in_schema=False, sync_to_thread=True)
def change_mode(settings: Kept, data: FormData[RuleForm]) -> Redirect:
    """Off at once; on only after it was asked again."""
    modes: dict[str, RuleMode] = {"off": "off", "dry-run": "dry-run", "on": "on"}
    if data.mode not in modes:
        raise BadInput("rules are off, in a dry run, or on", "Load the page again.")
    if data.mode == "on" and data.sure != "yes":
        return go_to(f"{_PAGE}?sure=on", _PAGE)
    set_mode(settings, modes[data.mode])
    return go_to(f"{_PAGE}?did={data.mode}", _PAGE)


@post("/approvals/rules", include_in_schema=False, sync_to_thread=True)
def make_rule(settings: Kept, data: FormData[RuleForm]) -> Redirect:
    try:
        run = shlex.split(data.words)
    except ValueError:
        raise BadInput("a quote is not closed", "Write the words as in a shell.") from None
    if data.sure != "yes":
        asked = {"sure": data.words, "native": data.native}
        return go_to(f"{_link(asked)}#rule", _PAGE)
    if data.native:
        add_native_rule(settings, data.native, run)
        return go_to(f"{_PAGE}?did=native", _PAGE)
    rule = CommandRule(id="new", run=run, project=data.project.strip() or "*")
    add_rule(settings, Path.cwd(), rule, here=False)
    return go_to(f"{_PAGE}?did=rule", _PAGE)


@post("/approvals/rules/{ident:str}/remove", include_in_schema=False, sync_to_thread=True)
def take_rule_away(settings: Kept, ident: FromPath[str]) -> Redirect:
    remove_rule(settings, ident)
    return go_to(f"{_PAGE}?did=removed", _PAGE)


@post("/approvals/decline", include_in_schema=False, sync_to_thread=True)
def decline(settings: Kept, data: FormData[RuleForm]) -> Redirect:
    decline_suggestion(settings, data.words)
    return go_to(f"{_PAGE}?did=declined", _PAGE)


router = [show, answer, change_mode, make_rule, take_rule_away, decline]

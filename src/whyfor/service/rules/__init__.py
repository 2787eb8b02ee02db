"""rules: what may be answered for a person; listing, changing, trying and judging the rules."""

from __future__ import annotations

import os
import shlex
from collections import Counter
from contextlib import suppress
from datetime import date
from pathlib import Path

import msgspec

from whyfor import files
from whyfor.agents import AGENTS
from whyfor.agents.settings_file import Unmergeable
from whyfor.agents.tools import tool_kind
from whyfor.capture.manifest import load_manifest
from whyfor.config import Settings
from whyfor.git.identity import identify
from whyfor.git.place import find_work_tree
from whyfor.model.approvals import ApprovalQuery, ListedApproval
from whyfor.model.errors import BadInput, NotFound, WhyforError
from whyfor.model.paths import to_text
from whyfor.model.rules import CommandRule, RuleMode, RulesFile
from whyfor.model.times import DAY
from whyfor.service.rules.suggest import RuleSuggestion, rule_beginning, suggest_rules
from whyfor.store.open import reading_local
from whyfor.story.rules import rules_file
from whyfor.story.rules.bash_parser import bash_parser
from whyfor.story.rules.decide import (
    EVERYWHERE,
    CommandRequest,
    DecisionRule,
    RuleVerdict,
    denying_rule,
    judge_command,
    rule_fault,
)
from whyfor.story.rules.hook_request import folder_names
from whyfor.story.rules.never import is_protected, named_never, never_reason, seeming_commands
from whyfor.story.rules.prepare import decision_rules, prepare_rules

AGREEING = 20  # decisions of a dry run that must agree before the rules may be turned on
DRY_DAYS = 1
_PARTS = 8  # of a line that cannot be judged: so many are shown


class RuleUse(msgspec.Struct, frozen=True):
    """A rule, and how often it answered or would have."""

    rule: CommandRule
    hits: int = 0
    last_at: int | None = None


class RulesReport(msgspec.Struct, frozen=True):
    """What rules would have said beside what people said, in a dry run."""

    since: int | None
    requests: int
    allowed: int
    asked: int
    denied: int
    agreed: int  # the person said the same
    wrong: list[ListedApproval]  # the rules would have allowed what the person denied
    ready: bool
    missing: str  # what is missing before the rules may be turned on


class RulesOverview(msgspec.Struct, frozen=True):
    mode: RuleMode
    fault: str  # why the rules are not used; empty if they are
    installed: bool  # whether hooks may answer: `init --rules`
    rules: list[RuleUse]


class TriedPart(msgspec.Struct, frozen=True):
    """One command of a line, and what is said of it."""

    argv: list[str]
    answer: str
    rule: str
    reason: str


class TriedCommand(msgspec.Struct, frozen=True):
    """What the rules say of a command."""

    command: str
    answer: str  # allow | deny | ask | never | abstain
    reason: str
    rule: str
    parts: list[TriedPart]
    never: str = ""  # the program in it that no rule can allow
    missing: list[str] = []  # how a rule would begin that is still missing; empty: none would do


class RulesPage(msgspec.Struct, frozen=True):
    """All that a page shows of rules, from one reading of what was answered."""

    rules: RulesOverview
    report: RulesReport
    suggested: list[RuleSuggestion]
    projects: list[str]  # of which something was asked


def rules_page(settings: Settings) -> RulesPage:
    log = _log(settings, ApprovalQuery(limit=None))
    overview = rules_overview(settings, log)
    suggested: list[RuleSuggestion] = []
    if not overview.fault:
        suggested = suggest_rules(log, rules_file.read_rules(settings))
    projects = sorted({row.project for row in log if row.project})
    return RulesPage(overview, _report(log), suggested, projects)


def rules_overview(settings: Settings, log: list[ListedApproval] | None = None) -> RulesOverview:
    """Return the rules with how often each was used; none and a reason if they cannot be used."""
    try:
        found, fault = rules_file.read_rules(settings), ""
    except WhyforError as error:
        found, fault = RulesFile(), str(error)
    if log is None:
        log = _log(settings, ApprovalQuery(limit=None))
    hits = Counter(row.decision.rule for row in log if row.decision.rule)
    last: dict[str, int] = {}
    for row in log:
        last.setdefault(row.decision.rule, row.decision.asked_at)
    uses = [RuleUse(rule, hits[rule.id], last.get(rule.id)) for rule in found.rules]
    installed = any(changed.rules for changed in load_manifest(settings).files.values())
    return RulesOverview(found.mode, fault, installed, uses)


def rules_mode(settings: Settings) -> RuleMode:
    """Return whether rules answer; off if they cannot be used."""
    try:
        return rules_file.read_rules(settings).mode
    except WhyforError:
        return "off"


def is_shell(tool: str, agent: str) -> bool:
    """Return whether a tool runs commands; one that is not named may."""
    return not tool or tool_kind(tool, agent) == "shell"


def work_tree_of(folder: Path) -> Path:
    """Return the work tree around a folder, else the folder."""
    return find_work_tree(folder) or folder


def add_rule(settings: Settings, folder: Path, rule: CommandRule, *, here: bool) -> CommandRule:
    """Add a rule for the project of a folder, or for all; return it with its id."""
    for name in rule.agents:
        if name not in AGENTS:
            raise BadInput(f"no agent is called {name}", f"Choose from: {', '.join(AGENTS)}.")
    if here and find_work_tree(folder) is None:
        raise BadInput(
            "a rule of one project needs a git repository, and there is none here",
            "Go to the project, or add it for all: whyfor rules add --everywhere",
        )
    project = identify(to_text(folder)).identity if here else rule.project
    known = {each.id for each in rules_file.read_rules(settings).rules}
    ident = next(f"r{number}" for number in range(1, 10_000) if f"r{number}" not in known)
    made = msgspec.structs.replace(rule, id=ident, project=project, added=date.today())
    rules_file.append_rule(settings, made)
    _prepare(settings)
    return made


def native_agents() -> list[str]:
    """Return the agents whose own settings a rule can be written to."""
    return [name for name, agent in AGENTS.items() if agent.facts.native_rules]


def add_native_rule(settings: Settings, agent: str, run: list[str]) -> Path:
    """Allow commands that begin with these words in an agent's own settings; return the file.
    Raises BadInput if the agent has no such rules, or if its file cannot be changed."""
    place = AGENTS[agent].facts.native_rules if agent in AGENTS else None
    if place is None:
        able = ", ".join(native_agents())
        raise BadInput(f"{agent} has no rules of its own in a file", f"These have: {able}.")
    fault = rule_fault(run, "allow")
    if fault:
        raise BadInput(f"this rule cannot be: {fault}", "Name the command more exactly.")
    path = place.folder(settings.user_home, settings.env) / place.file
    try:
        before = path.read_bytes() if path.exists() else b""
        after = place.add(before, run)
        if after != before:
            path.parent.mkdir(parents=True, exist_ok=True)
            files.replace(path, after)
    except (OSError, Unmergeable) as error:
        raise BadInput(
            f"{path} was not changed: {error}", "Add it by hand: whyfor rules suggest"
        ) from None
    return path


def remove_rule(settings: Settings, ident: str) -> None:
    rules_file.cut_rule(settings, ident)
    _prepare(settings)


def decline_suggestion(settings: Settings, words: str) -> None:
    """Do not suggest this again."""
    known = rules_file.read_rules(settings).declined
    rules_file.write_declined(settings, sorted({*known, words}))


def set_mode(settings: Settings, mode: RuleMode, *, anyway: bool = False) -> None:
    """Turn the rules off, to a dry run, or on. Raises BadInput if they may not be turned on yet."""
    if mode == "on" and not anyway:
        report = rules_report(settings)
        if not report.ready:
            raise BadInput(
                f"the rules are not turned on: {report.missing}",
                "Look at: whyfor rules report. To turn them on anyway: whyfor rules mode on "
                "--anyway",
            )
    rules_file.write_mode(settings, mode)
    _prepare(settings)


def _prepare(settings: Settings) -> None:
    with suppress(NotFound), reading_local(settings) as store:
        prepare_rules(settings, store)
        return
    prepare_rules(settings, None)


# -- trying --------------------------------------------------------------------------------------


def try_command(settings: Settings, command: str, folder: Path, agent: str) -> TriedCommand:
    """Return what the rules would say if an agent asked to run a command in a folder."""
    rules = rules_file.read_rules(settings).rules
    top = find_work_tree(folder)
    project = identify(to_text(folder)).identity if top else ""
    return judge_request(
        command, rules, agent=agent, project=project, top=top or folder, cwd=folder
    )


def judge_request(
    command: str, rules: list[CommandRule], *, agent: str, project: str, top: Path, cwd: Path
) -> TriedCommand:
    """Return what these rules say of a request."""
    request = CommandRequest(
        command,
        agent,
        project,
        to_text(top.resolve()),
        to_text(cwd.resolve()),
        date.today().isoformat(),
    )
    request.real_path = lambda path: to_text(Path(path).resolve())
    request.exists, request.names = os.path.lexists, folder_names
    known = decision_rules(rules)
    return _tried(request, known, judge_command(request, known, bash_parser()))


def _tried(request: CommandRequest, rules: list[DecisionRule], found: RuleVerdict) -> TriedCommand:
    command = request.command
    parts = [TriedPart(part.argv, part.answer, part.rule, part.reason) for part in found.parts]
    never = next((part.argv[0] for part in parts if part.answer == "never"), "")
    if not parts:
        never = named_never(command)
        parts = _seeming_parts(request, rules)
    return TriedCommand(
        command,
        found.answer,
        found.reason,
        found.rule,
        parts,
        never.rpartition("/")[2],
        [] if never else _missing_rule(found),
    )


def _seeming_parts(request: CommandRequest, rules: list[DecisionRule]) -> list[TriedPart]:
    """Return what seems to be run by a command that cannot be judged, and what is said of it."""
    found = []
    for words in seeming_commands(request.command)[:_PARTS]:
        denying = denying_rule([words], rules, request)
        if denying is not None:
            found.append(TriedPart(words, "deny", denying.id, "a rule says so"))
        elif words[0][:1] not in "-\\$<>#" and words[0].isprintable():
            reason = never_reason(words)
            why = f"{reason}: no rule can allow it" if reason else "cannot be judged in this line"
            found.append(TriedPart(words, "never" if reason else "abstain", "", why))
    return found


def _missing_rule(found: RuleVerdict) -> list[str]:
    """Return how a rule would begin for the first part that none names."""
    unnamed = [part for part in found.parts if part.answer == "abstain" and not part.rule]
    run = rule_beginning(unnamed[0].argv) if unnamed else []
    return [] if not run or rule_fault(run, "allow") else run


def name_to_type(action: str, tool: str, agent: str, cwd: Path) -> str:
    """Return what a person must type before they allow this in the browser: the program that no
    rule can allow, or the file that decides what runs later; empty if neither."""
    if is_shell(tool, agent):
        return judge_request(action, [], agent=agent, project="", top=cwd, cwd=cwd).never
    return action.rpartition("/")[2] if is_protected(action) else ""


# -- from what was answered ----------------------------------------------------------------------


def suggestions(settings: Settings) -> list[RuleSuggestion]:
    """Return rules that the person's own answers suggest, the most useful first."""
    found = rules_file.read_rules(settings)
    return suggest_rules(_log(settings, ApprovalQuery(limit=None)), found)


def rules_report(settings: Settings, since: int | None = None) -> RulesReport:
    """Return what the dry run said beside what the person said."""
    return _report(_log(settings, ApprovalQuery(limit=None, since=since)))


def _report(log: list[ListedApproval]) -> RulesReport:
    rows = [row for row in log if row.decision.dry]
    said = Counter(row.decision.dry for row in rows)
    answered = [row for row in rows if row.decision.by in ("terminal", "browser")]
    agreed = sum(_agrees(row) for row in answered)
    wrong = [row for row in answered if row.decision.dry == "allow" and _is_denied(row)]
    first = min((row.decision.asked_at for row in rows), default=None)
    last = max((row.decision.asked_at for row in rows), default=0)
    missing = ""
    if agreed < AGREEING:
        missing = f"{agreed} of {AGREEING} decisions agree so far"
    elif wrong:
        missing = "the rules would have allowed what you denied"
    elif first is not None and last - first < DRY_DAYS * DAY:
        missing = "the dry run is not a day old"
    return RulesReport(
        since=first,
        requests=len(rows),
        allowed=said["allow"],
        denied=said["deny"],
        asked=len(rows) - said["allow"] - said["deny"],
        agreed=agreed,
        wrong=wrong,
        ready=not missing,
        missing=missing,
    )


def _agrees(row: ListedApproval) -> bool:
    said = {"allow": "allowed", "deny": "denied"}.get(row.decision.dry)
    return said == row.decision.decision


def _is_denied(row: ListedApproval) -> bool:
    return row.decision.decision == "denied"


def _log(settings: Settings, query: ApprovalQuery) -> list[ListedApproval]:
    try:
        with reading_local(settings) as store:
            return store.approvals.listed(query)
    except NotFound:
        return []


def rule_words(rule: CommandRule) -> str:
    """Return a rule's command as people write it."""
    return " ".join(word if word.endswith("*") else shlex.quote(word) for word in rule.run)


def rule_place(rule: CommandRule) -> str:
    return "everywhere" if rule.project == EVERYWHERE else rule.project

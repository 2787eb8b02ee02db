"""Suggests rules from what a person answered by hand, each first in the agent's own words."""

from __future__ import annotations

import json
import shlex
from collections import defaultdict
from datetime import datetime

import msgspec

from whyfor.agents import AGENTS
from whyfor.model.approvals import ListedApproval
from whyfor.model.rules import RulesFile
from whyfor.story.rules.bash_parser import bash_parser
from whyfor.story.rules.decide import rule_fault
from whyfor.story.rules.never import never_reason
from whyfor.story.rules.programs import find_table
from whyfor.story.rules.shell_commands import Unjudged, read_commands

ENOUGH = 5  # times it was allowed by hand
SESSIONS = DAYS = 2
VARIANTS = 3  # commands that share a beginning before only that is suggested
_LEAST_WORDS = 2  # of a program of which nothing is known
_BY_HAND = ("terminal", "browser")


class RuleSuggestion(msgspec.Struct, frozen=True):
    """A rule that would have answered as the person did."""

    run: list[str]
    project: str | None  # None: of several projects
    allowed: int
    refused: int
    sessions: int
    days: int
    median_ms: int | None
    native: dict[str, str]  # by agent: the same in the agent's own settings
    reason: str = ""  # why no rule is suggested; empty: one is


class _Answers(msgspec.Struct):
    allowed: list[ListedApproval] = []
    refused: int = 0
    variants: set[tuple[str, ...]] = set()


def suggest_rules(log: list[ListedApproval], known: RulesFile) -> list[RuleSuggestion]:
    """Return suggestions, those for which most was answered first; with a reason, and no rule,
    where the person was of two minds."""
    found: dict[tuple[str, ...], _Answers] = defaultdict(_Answers)
    for row in log:
        shape = _shape(row)
        if shape is None:
            continue
        run, argv = shape
        answers = found[run]
        answers.variants.add(argv)
        if row.decision.decision == "allowed":
            answers.allowed.append(row)
        elif row.decision.decision == "denied":
            answers.refused += 1
    have = {tuple(rule.run) for rule in known.rules}
    declined = set(known.declined)
    made = [
        _suggestion(list(run), answers)
        for run, answers in found.items()
        if run not in have and shlex.join(run) not in declined
    ]
    kept = [one for one in made if one is not None]
    return sorted(kept, key=lambda one: (bool(one.reason), -one.allowed))


def _shape(row: ListedApproval) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """Return the words a rule would name, and the command's own; None if no rule could."""
    decision = row.decision
    if decision.by not in _BY_HAND or not decision.action:
        return None
    try:
        (argv,) = read_commands(decision.action, bash_parser())
    except (Unjudged, ValueError):  # several commands: each is learned from where it stands alone
        return None
    if never_reason(argv) is not None:
        return None
    run = rule_beginning(argv)
    if find_table(argv) is None and len(run) < _LEAST_WORDS and not rule_fault(run, "allow"):
        run = argv  # what its other words make it do is not known: only this one command
    return (tuple(run), tuple(argv)) if run and not rule_fault(run, "allow") else None


def rule_beginning(argv: list[str]) -> list[str]:
    """Return the program with its subcommand: the shortest that a rule may name."""
    table = find_table(argv)
    least = table[0] if table else 1
    run = argv[:least]
    for word in argv[least:]:
        if not rule_fault(run, "allow") and (table or len(run) > 1):
            break
        if not word[:1].isalpha() or "/" in word or "." in word:
            break  # a path or an option: another one next time
        run.append(word)
    return run


def _suggestion(run: list[str], answers: _Answers) -> RuleSuggestion | None:
    rows = answers.allowed
    sessions = {row.decision.session_id for row in rows}
    days = {datetime.fromtimestamp(row.decision.asked_at / 1000).date() for row in rows}
    if len(rows) < ENOUGH or len(sessions) < SESSIONS or len(days) < DAYS:
        return None
    if len(answers.variants) < VARIANTS:
        only = next(iter(answers.variants))
        if len(answers.variants) > 1:
            run = _common(answers.variants)
        elif find_table(list(only)) is None:
            run = list(only)  # its second word may be a subcommand or a file
    projects = {row.project for row in rows}
    waits = sorted(row.decision.waited_ms or 0 for row in rows)
    refused = f"refused {answers.refused} times: no rule is suggested" if answers.refused else ""
    agents = sorted({row.decision.agent for row in rows})
    return RuleSuggestion(
        run=run,
        project=projects.pop() if len(projects) == 1 else None,
        allowed=len(rows),
        refused=answers.refused,
        sessions=len(sessions),
        days=len(days),
        median_ms=waits[len(waits) // 2],
        native={name: made for name in agents if (made := native_rule(name, run))},
        reason=refused,
    )


def _common(variants: set[tuple[str, ...]]) -> list[str]:
    """Return the words with which all of them begin."""
    found: list[str] = []
    for words in zip(*variants, strict=False):
        if len(set(words)) > 1 or words[0].startswith("-"):
            break
        found.append(words[0])
    return found


def native_rule(agent: str, run: list[str]) -> str:
    """Return a rule in the words of the agent's own settings; empty if it has none."""
    form = AGENTS[agent].facts.native_rule if agent in AGENTS else ""
    return form.replace("WORDS", shlex.join(run)).replace("LIST", json.dumps(run))

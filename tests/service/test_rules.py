"""The commands of rules: adding and trying them, what is suggested, and the step to on."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.cases import check_each
from tests.conftest import Result
from whyfor.config import Settings
from whyfor.model.approvals import ApprovalDecision, ApprovalOutcome, ListedApproval
from whyfor.model.rules import CommandRule, RulesFile
from whyfor.model.times import DAY
from whyfor.service import rules
from whyfor.service.rules.suggest import suggest_rules

Cli = Callable[..., Result]
NOW = 1_795_000_000_000


def answered(
    command: str, at: int, decision: ApprovalOutcome = "allowed", dry: str = ""
) -> ListedApproval:
    made = ApprovalDecision(
        agent="claude",
        session_id=f"s{at % 3}",
        asked_at=NOW + at * DAY,
        answered_at=NOW + at * DAY + 4000,
        tool="Bash",
        action=command,
        decision=decision,
        by="terminal",
        dry=dry,
    )
    return ListedApproval(id=at, decision=made, project="github.com/acme/shop")


def suggested(*commands: str) -> list[list[str]]:
    """Return what is suggested if each was allowed once on each of six days."""
    log = [answered(command, day) for day in range(6) for command in commands]
    return [one.run for one in suggest_rules(log, RulesFile()) if not one.reason]


def test_the_shortest_beginning_that_is_safe_is_suggested() -> None:
    cases: list[tuple[str, tuple[tuple[str, ...], list[list[str]]]]] = [
        ("program and subcommand", (("git log -1", "git log -2", "git log"), [["git", "log"]])),
        ("paths aside", (("ruff check a.py", "ruff check b.py"), [["ruff", "check"]])),
        ("a script by its name", (("npm run lint",), [["npm", "run", "lint"]])),
        ("no bare interpreter", (("python3 a.py", "python3 b.py"), [])),
        ("a module", (("python3 -m pytest -q",), [["python3", "-m", "pytest"]])),
        ("nothing that no rule can allow", (("git push", "rm x", "curl x", "bash -c x"), [])),
        ("nothing that cannot be judged", (("ls $HOME", "make test > a"), [])),
        ("nothing known of it: the whole", (("mv a b",), [["mv", "a", "b"]])),
        ("of each", (("mv ./a b", "mv ./c d"), [["mv", "./a", "b"], ["mv", "./c", "d"]])),
    ]

    def check(case: tuple[tuple[str, ...], list[list[str]]]) -> None:
        commands, expected = case
        assert sorted(suggested(*commands)) == expected

    check_each(cases, check)


def test_a_suggestion_needs_five_times_two_sessions_two_days_and_no_refusal() -> None:
    often = [answered("npm test", day) for day in range(5)]
    (found,) = suggest_rules(often, RulesFile())
    assert (found.run, found.allowed, found.sessions, found.days) == (["npm", "test"], 5, 3, 5)
    assert "npm test" in found.native["claude"]
    assert suggest_rules(often[:4], RulesFile()) == []
    assert suggest_rules([answered("npm test", 0)] * 9, RulesFile()) == [], "one session, one day"
    (doubted,) = suggest_rules([*often, answered("npm test", 6, "denied")], RulesFile())
    assert "refused 1 times" in doubted.reason
    declined = RulesFile(declined=["npm test"])
    assert suggest_rules(often, declined) == []
    have = RulesFile(rules=[CommandRule(id="r1", run=["npm", "test"])])
    assert suggest_rules(often, have) == []


def test_rules_go_on_after_twenty_agreeing_answers_of_more_than_a_day(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    log: list[ListedApproval] = []
    monkeypatch.setattr(rules, "_log", lambda *_: log)
    agreeing = [answered("npm test", day, dry="allow") for day in range(20)]
    short = [answered("npm test", 0, dry="allow")] * 20
    wrong = [*agreeing, answered("npm test", 21, "denied", dry="allow")]
    for kept, missing in (
        (agreeing[:19], "19 of 20"),
        (short, "not a day old"),
        (wrong, "would have allowed what you denied"),
        (agreeing, ""),
    ):
        log[:] = kept
        assert missing in rules.rules_report(settings).missing
        assert rules.rules_report(settings).ready == (not missing)


def test_rules_are_added_tried_turned_on_and_removed(home: object, cli: Cli) -> None:
    assert cli("rules", "add", "--everywhere", "--", "npm", "test").code == 0
    assert cli("rules", "add", "--everywhere", "--deny", "--", "git", "push").code == 0
    refused = cli("rules", "add", "--everywhere", "--", "rm", "-rf")
    assert refused.code == 2 and "no rule can allow it" in refused.err
    assert cli("rules", "test", "npm test").out.startswith("allow")
    assert cli("rules", "test", "npm test && git push").out.startswith("deny")
    assert cli("rules", "test", 'git push "$x"').out.startswith("deny")
    assert cli("rules", "test", "npm test x").out.startswith("abstain")
    assert cli("rules", "test", "(" * 4000).out.startswith("abstain")
    assert cli("rules").err.count("Rules are off") + cli("rules").out.count("Rules are off")
    too_soon = cli("rules", "mode", "on")
    assert too_soon.code == 2 and "0 of 20" in too_soon.err
    assert cli("rules", "dry-run").code == 0
    assert [row["id"] for row in cli("rules", "list", "--json").json["rules"]] == ["r1", "r2"]
    assert cli("rules", "remove", "r1").code == 0
    assert cli("rules", "test", "npm test").out.startswith("abstain")
    assert cli("rules", "remove", "r9").code == 2
    nowhere = cli("rules", "add", "--", "npm", "test")
    assert nowhere.code == 2 and "--everywhere" in nowhere.err, "it would never count"

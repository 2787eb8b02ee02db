"""What a change undoes: told with the decision behind it, and nothing else."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cases import check_each
from tests.conftest import Result
from tests.story.links.workshop import Agent, Clock, Repo, Workshop

Cli = Callable[..., Result]
BEFORE = """def charge(order):
    for attempt in range(10):
        gateway.post(order, timeout=5)
    raise ChargeFailed(order.id)


def refund(order, amount):
    return gateway.post("/refunds", order, amount)


def total(rows):
    return sum(row.price for row in rows)
"""


@pytest.fixture
def shop(tmp_path: Path, home: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> Workshop:
    """A correction, a rule, an answer, an approach that failed; all committed."""
    repo = Repo.made(tmp_path / "code" / "shop", Clock())
    monkeypatch.chdir(repo.path)
    monkeypatch.setenv("COLUMNS", "80")
    repo.commit("Charge", {"shop/pay.py": BEFORE})
    agent = Agent("s1", repo)
    agent.prompt("Charging retries too often.")
    agent.edit("shop/pay.py", "range(10)", "range(6)")
    agent.say("It tries six times.")
    agent.prompt("No, the gateway locks a card after four tries.")
    agent.edit("shop/pay.py", "range(6)", "range(4)")
    agent.say("Four tries.")
    agent.prompt("Never use float for money. Sums are wrong.")
    agent.edit(
        "shop/pay.py",
        "sum(row.price for row in rows)",
        "sum((Decimal(row.price) for row in rows), Decimal(0))",
    )
    agent.say("Sums are Decimal.")
    agent.prompt("Refunds may not be larger than the order.")
    agent.ask("What if it is larger?", "Raise TooLarge")
    agent.edit(
        "shop/pay.py",
        '    return gateway.post("/refunds"',
        '    if amount > order.total:\n        raise TooLarge(amount)\n    return gateway.post("/refunds"',
    )
    agent.say("Refunds larger than the order raise TooLarge.")
    agent.prompt("Log refunds.")
    agent.edit(
        "shop/pay.py",
        '    return gateway.post("/refunds"',
        '    audit_queue.put_nowait({"order": order.id})\n    return gateway.post("/refunds"',
    )
    agent.call("Bash", {"command": "pytest -q"}, "Exit code 1\n1 failed", failed=True)
    agent.edit(
        "shop/pay.py",
        '    audit_queue.put_nowait({"order": order.id})\n',
        "    audit_log.write(order.id)\n",
    )
    agent.say("Refunds are logged.")
    agent.commit("Charge and refund rightly")
    made = Workshop(home, repo, cli, hooked=False)
    made.ingest(agent)
    return made


REVERSALS = {
    "more tries": ("range(4)", "range(9)", "undoes", "correction", 2),
    "float": (
        "sum((Decimal(row.price) for row in rows), Decimal(0))",
        "sum(float(row.price) for row in rows)",
        "rule",
        "rule",
        3,
    ),
    "no limit": (
        "    if amount > order.total:\n        raise TooLarge(amount)\n",
        "",
        "undoes",
        "answer",
        4,
    ),
    "failed before": (
        "    audit_log.write(order.id)\n",
        '    audit_queue.put_nowait({"order": order.id})\n',
        "failed",
        "request",
        5,
    ),
    "six tries again": ("range(4)", "range(6)", "returns", "correction", 2),
}
OTHERS = {
    "another name": ("for attempt in range(4)", "for number in range(4)"),
    "spacing": ("range(4):", "range( 4 ):"),
    "nobody's line": ("timeout=5", "timeout=7"),
    "more checks": ("    raise TooLarge(amount)", "    raise TooLarge(amount, order)"),
    "new function": ("def total(", "def void(order):\n    gateway.drop(order)\n\n\ndef total("),
}
VOIDED = "def void(order):\n    gateway.ledger.drop(order)\n\n\n"


def test_reversals_are_told_with_their_decision_and_other_changes_are_not(
    shop: Workshop, cli: Cli
) -> None:
    text = shop.repo.read("shop/pay.py")

    def staged(old: str, new: str) -> list[dict[str, object]]:
        assert text.count(old) == 1
        shop.repo.write("shop/pay.py", text.replace(old, new))
        shop.repo.git("add", "-A")
        found: list[dict[str, object]] = cli("review", "--staged", "--json").json["findings"]
        return found

    def reversal(case: tuple[str, str, str, str, int]) -> None:
        old, new, kind, decision, turn = case
        told = {
            (one["kind"], one["decision"]["kind"], one["who"]["turn"])  # type: ignore[index]
            for one in staged(old, new)
        }
        assert (kind, decision, turn) in told

    def other(case: tuple[str, str]) -> None:
        assert staged(*case) == []

    check_each(REVERSALS.items(), reversal)
    check_each(OTHERS.items(), other)
    # what was taken out after a commit was made is no matter of that commit
    later = Agent("s2", shop.repo)
    later.prompt("Void orders.")
    later.edit("shop/pay.py", "def total(", VOIDED + "def total(")
    later.commit("Void orders")
    later.prompt("No, drop that. Nobody voids orders in the gateway ledger.")
    later.edit("shop/pay.py", VOIDED, "")
    later.commit("Void nothing")
    shop.ingest(later)
    assert cli("review", "HEAD~1", "--json").json["findings"] == []
    assert staged("def total(", VOIDED + "def total(")


def test_a_review_fits_a_screen_and_is_strict_only_if_asked(shop: Workshop, cli: Cli) -> None:
    text = shop.repo.read("shop/pay.py")
    assert cli("review").out == "" and cli("review", "--strict").code == 0
    shop.repo.write("shop/pay.py", text.replace("range(4)", "range(9)"))
    found = cli("review")
    assert found.code == 0
    assert "shop/pay.py:2  undoes what was decided" in found.out
    assert "▌ No, the gateway locks a card after four tries." in found.out
    assert "correction: it takes out 4" in found.out
    assert all(len(line) <= 80 for line in found.out.splitlines())
    assert len(found.out.splitlines()) <= 24
    assert cli("review", "--strict").code == 1
    assert cli("review", "--staged").out == ""
    shop.repo.commit("More tries")
    assert cli("review", "HEAD", "--json").json["findings"][0]["decision"]["kind"] == "correction"
    assert cli("review", "HEAD~1..HEAD", "--json").json["removed"] == 1
    first = shop.repo.git("rev-list", "--max-parents=0", "HEAD")
    begun = cli("review", first, "--json").json  # compared with nothing
    assert (begun["files"], begun["added"], begun["findings"]) == (1, 1, [])
    assert "touched" in cli("review", "--all", "HEAD").out or cli("review", "--all", "HEAD").out


def test_bad_input_is_answered_and_nothing_of_a_repository_runs(
    shop: Workshop, cli: Cli, tmp_path: Path
) -> None:
    ran = tmp_path / "ran"
    repo = shop.repo
    repo.git("config", "filter.evil.clean", f"touch {ran}; cat")
    repo.git("config", "core.fsmonitor", f"touch {ran}")
    repo.git("config", "diff.external", f"touch {ran}")
    repo.git("config", "diff.evil.textconv", f"touch {ran}; cat")
    repo.write(".gitattributes", "*.dat filter=evil diff=evil\n")
    repo.write("made.dat", "one\n")
    (repo.path / "link").symlink_to("shop/pay.py")
    repo.write("blob.bin", "a\0b")
    repo.git("update-index", "--add", "--cacheinfo", f"160000,{repo.head},module")
    repo.git("add", ".gitattributes", "link", "blob.bin")
    os.utime(repo.path / "shop/pay.py")
    ran.unlink(missing_ok=True)
    assert cli("review", "--staged").code == 0
    repo.git("-c", "core.fsmonitor=false", "commit", "-q", "-m", "Odd")
    ran.unlink(missing_ok=True)
    repo.write("made.dat", "two\n")
    assert cli("review").code == 0
    assert cli("review", "HEAD").code == 0
    assert not ran.exists()
    for revision in ("f" * 40, "nowhere", "a..b", "--output=x"):
        told = cli("review", "--", revision)
        assert told.code not in (0, 1) and "Traceback" not in told.err
    assert cli("review", "HEAD", "--staged").code == 2

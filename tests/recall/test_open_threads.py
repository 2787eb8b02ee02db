"""What a session left open is told until a later one has taken it up."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from tests.conftest import Result
from tests.transcripts import Transcript
from whyfor import config
from whyfor.model.memory import CommandCount, PastSession
from whyfor.recall.open_threads import drop_closed_threads
from whyfor.recall.session_memory import failed_last
from whyfor.store.open import open_store

Cli = Callable[..., Result]
NOW = 1_777_629_600_000
TASK = "You'll need to restart the import server before the new prices are shown."


def past(name: str, at: int, request: str, *steps: str, outcome: str = "") -> PastSession:
    return PastSession(name, at, request, outcome, steps)


def opened(*sessions: PastSession, passed: int | None = None) -> dict[str, tuple[str, ...]]:
    count = CommandCount("make test", "make test", 3, 1, 1, passed)
    return {each.name: each.next_steps for each in drop_closed_threads(sessions, [count])}


def test_a_check_that_passed_in_another_session_is_not_open_any_more() -> None:
    session = past("a", NOW, "Add a page", failed_last("make test -j2"))
    assert opened(session, passed=None)["a"]
    assert opened(session, passed=NOW - 5)["a"]
    assert opened(session, passed=NOW + 5)["a"] == ()


def test_a_task_that_a_later_session_was_about_is_not_open_any_more() -> None:
    old = past("a", NOW, "Import the prices", TASK)
    other = past("b", NOW + 5, "Restart the worker", outcome="The worker is up again.")
    assert opened(other, old)["a"] == (TASK,)
    said = past("d", NOW + 9, "Restart the import server you need before new prices are shown")
    assert opened(said, old)["a"] == ()
    assert opened(old, said)["a"] == ()  # in whatever order they are given


def test_a_request_that_was_made_again_is_open_only_where_it_was_made_last() -> None:
    request = "Write the page for the basket with all prices"
    first, again = past("a", NOW, request, request), past("b", NOW + 5, request, request)
    assert opened(again, first) == {"a": (), "b": (request,)}


def test_what_an_earlier_session_did_closes_nothing() -> None:
    before = past("a", NOW, "Restart the import server you need before new prices are shown")
    assert opened(past("b", NOW + 5, "Import", TASK), before)["b"] == (TASK,)


def test_a_session_that_went_on_where_the_clock_is_behind_keeps_its_order(
    home: Path, cli: Cli
) -> None:
    made = Transcript("two-machines", day="2026-05-20")
    made.prompt("Ship the first page of the shop.")
    made.say("Shipped it. You'll need to restart the import server before prices are shown.")
    made.day = "2026-05-02"  # resumed on a machine whose clock is behind
    made.prompt("Restart it, and tell me what is missing.")
    made.say("It runs again. The remaining work is a second page for the basket.")
    made.save(home)
    assert cli("ingest").code == 0
    with closing(open_store(config.load().database)) as store:
        session = store.sessions.find(made.session_id)
        summary = store.memory.summary(session.id)
    assert summary is not None
    assert [quote.text for quote in summary.next_steps] == [
        "The remaining work is a second page for the basket."
    ]
    assert len(summary.completed) == 2
    assert summary.completed[0].seq < summary.completed[1].seq


def test_clocks_that_differ_close_and_reorder_no_threads() -> None:
    """Of sessions whose clocks say the same moment, none is later than another."""
    one, other = past("a", NOW, "Import the prices", TASK), past("b", NOW, TASK)
    assert opened(one, other)["a"] == (TASK,)
    assert list(opened(other, one)) == ["b", "a"]  # as they were given

"""What a session left open is told until a later one has taken it up."""

from __future__ import annotations

from whyfor.model.memory import CommandCount, PastSession
from whyfor.recall.open_threads import drop_closed_threads
from whyfor.recall.session_memory import failed_last

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

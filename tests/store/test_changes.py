"""The log of what changed after it was stored: bounded, its numbers only rise, and it says when
it does not know."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from whyfor.store.sql import changes
from whyfor.store.sql.changes import ChangeLog
from whyfor.store.sqlite.connection import StoreConnection, connect, transaction


@pytest.fixture
def db(tmp_path: Path) -> Iterator[StoreConnection]:
    found = connect(tmp_path / "x.db")
    found.execute("BEGIN")
    yield found
    found.execute("ROLLBACK")
    found.close()


def _events(log: ChangeLog, after: int = 0) -> list[int | None]:
    return [change.event.number if change.event else None for change in log.after(after, 100)]


def test_a_thing_stands_in_it_once_under_its_last_number(db: StoreConnection) -> None:
    log = ChangeLog(db)
    for event in (1, 2, 1):
        log.add_event(event)
    assert _events(log) == [2, 1]
    assert _events(log, log.after(0, 1)[0].number) == [1]
    assert log.of_sessions() == {0: log.ends()[1]}


def test_numbers_rise_though_the_clock_goes_back(
    db: StoreConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = ChangeLog(db)
    numbers = [0]
    for now in (5000, 5000, 100):
        monkeypatch.setattr(changes, "_now", lambda now=now: now)
        log.add_event(now + len(numbers))
        numbers.append(log.ends()[1])
    log.begin_anew()
    log.add_event(1)
    assert [*numbers, *log.ends()] == [0, 5000, 5001, 5002, 5003, 5004]


def test_who_told_of_a_commit_before_is_known_when_its_story_goes(db: StoreConnection) -> None:
    db.execute(
        "INSERT INTO projects(id, identity, evidence, name) VALUES(7, 'example.com/shop', "
        "'remote', 'shop')"
    )
    log = ChangeLog(db)
    log.add_story("c0ffee", 7, {1, 2})
    log.add_story("c0ffee", None, {3})
    (change,) = log.after(0, 9)
    assert (change.commit, change.project, change.sessions) == (
        "c0ffee",
        "example.com/shop",
        {1, 2, 3},
    )


def test_of_many_the_newest_are_kept_and_the_rest_is_known_to_be_gone(
    db: StoreConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changes, "KEPT", 10)
    monkeypatch.setattr(changes, "_SPARE", 5)
    log = ChangeLog(db)
    for event in range(15):
        log.add_event(event)
    log.prune()
    assert (len(_events(log)), log.ends()[0]) == (15, 0)
    log.add_event(15)
    log.prune()
    floor, last = log.ends()
    assert _events(log, floor) == list(range(6, 16))
    assert last - floor == 10


@pytest.mark.parametrize("same", [True, False])
def test_a_database_made_again_goes_on_only_with_the_same_numbers(
    same: bool, db: StoreConnection, tmp_path: Path
) -> None:
    """A number stands for a session: for another one it would tell of something else."""
    old = connect(tmp_path / "old.db")
    with transaction(old):
        old.execute(
            "INSERT INTO sessions(id, agent, session_id) VALUES(1, 'claude', 'a'), (2, 'claude', "
            "'b')"
        )
        ChangeLog(old).add_event(5)
        if not same:
            ChangeLog(old).add_event(7)
    first, second = ("a", "b") if same else ("b", "a")
    db.execute(
        "INSERT INTO sessions(id, agent, session_id) VALUES(1, 'claude', ?), (2, 'claude', ?)",
        (first, second),
    )
    log = ChangeLog(db)
    log.add_event(6)  # a rebuild changes events, too: nobody has heard of those
    log.carry(ChangeLog(old))
    if same:
        assert log.after(0, 9) == ChangeLog(old).after(0, 9)
        assert log.ends() == ChangeLog(old).ends()
    else:
        assert log.after(0, 9) == []
        assert log.ends()[0] > ChangeLog(old).ends()[1]
    old.close()

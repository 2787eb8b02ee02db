"""The read side: sessions by any beginning of their id."""

from __future__ import annotations

from pathlib import Path

import pytest

from whyfor.config import Settings
from whyfor.model.errors import Ambiguous, NotFound
from whyfor.model.events import Event
from whyfor.model.findings import Bucket
from whyfor.model.query import Filters
from whyfor.service.sessions import conversation
from whyfor.store.sqlite.connection import connect, transaction
from whyfor.store.sqlite.read import StoreRows
from whyfor.store.sqlite.write import EventWriter

NOW = 1777629600000
SESSIONS = (
    ("claude", "3f05aaaa", None),
    ("claude", "3f05bbbb", None),
    ("claude", "3f05bbbb-and-more", None),
    ("claude", "77aa0001", None),
    ("claude", "77aa0001-child", "77aa0001"),
    ("claude", "agent-1@77aa0001", "77aa0001"),
    ("claude", "agent-1@3f05aaaa", "3f05aaaa"),
    ("claude", "99990000", None),
    ("codex", "99990000", None),
    ("codex", "88880000", None),
    ("codex", "100%_\\'\"", None),
)


@pytest.fixture
def reader(settings: Settings) -> StoreRows:
    settings.home.mkdir()
    db = connect(settings.database)
    writer = EventWriter(db)
    with transaction(db):
        for number, (agent, ident, parent) in enumerate(SESSIONS):
            made = Bucket(ident, parent)
            made.events.append(
                Event("user.prompt", number, NOW + number, "user", f"prompt {number}")
            )
            writer.apply(agent, made, NOW, mutable=False)
        writer.finish()
    return StoreRows(db)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("3f05a", "3f05aaaa"),
        ("3f05aaaa", "3f05aaaa"),
        ("7", "77aa0001"),
        ("8", "88880000"),
        ("agent-1@7", "agent-1@77aa0001"),
        ("100%", "100%_\\'\""),
        ("100%_\\'", "100%_\\'\""),
    ],
)
def test_a_beginning_that_fits_one_session_names_it(
    given: str, expected: str, reader: StoreRows
) -> None:
    assert reader.session(given).session_id == expected


def test_a_whole_id_wins_over_those_it_begins(reader: StoreRows) -> None:
    assert reader.session("3f05bbbb").session_id == "3f05bbbb"


def test_a_main_session_wins_over_subagents(reader: StoreRows) -> None:
    assert reader.session("77aa").session_id == "77aa0001"
    assert reader.session("77aa0001-c").session_id == "77aa0001-child"


@pytest.mark.parametrize(
    ("given", "number"), [("3f05", 3), ("3f05b", 2), ("agent-1", 2), ("9999", 2), ("99990000", 2)]
)
def test_a_beginning_that_fits_several_is_ambiguous_and_names_them(
    given: str, number: int, reader: StoreRows
) -> None:
    with pytest.raises(Ambiguous, match=f"fits {number} sessions: (claude|codex):"):
        reader.session(given)


@pytest.mark.parametrize("given", ["", "zz", "3f05aaaab", "%", "_", "3F05A\x00", "\U0010ffff"])
def test_what_begins_no_session_is_not_found(given: str, reader: StoreRows) -> None:
    with pytest.raises(NotFound):
        reader.session(given)


def test_a_crowd_of_subagents_hides_neither_a_whole_id_nor_a_main_session(tmp_path: Path) -> None:
    db = connect(tmp_path / "crowd.db")
    writer = EventWriter(db)
    with transaction(db):
        for number in range(1000):
            writer.apply("claude", Bucket(f"agent-{number}@abcd", "abcd"), NOW, mutable=False)
        for ident, parent in (("agent-", "abcd"), ("abcd", None)):
            writer.apply("claude", Bucket(ident, parent), NOW, mutable=False)
        writer.finish()
    assert StoreRows(db).session("a").session_id == "abcd"
    assert StoreRows(db).session("agent-").session_id == "agent-"


def test_an_agents_name_tells_equal_ids_apart(reader: StoreRows, settings: Settings) -> None:
    for agent in ("claude", "codex"):
        assert conversation(settings, f"{agent}:9999").session.agent == agent
        assert reader.session("99990000", agent).agent == agent
    with pytest.raises(NotFound):
        conversation(settings, "gemini:9999")
    with pytest.raises(NotFound):
        conversation(settings, "nobody:9999")


def test_sessions_are_listed_newest_first_and_subagents_apart(reader: StoreRows) -> None:
    main = [s.session_id for s in reader.sessions(Filters(), limit=None, subagents=False)]
    assert main == [ident for _, ident, parent in reversed(SESSIONS) if parent is None]
    assert len(reader.sessions(Filters(), limit=None, subagents=True)) == len(SESSIONS)
    children = reader.children(["77aa0001"])
    assert [(s.session_id, s.parent_session_id) for s in children] == [
        ("77aa0001-child", "77aa0001"),
        ("agent-1@77aa0001", "77aa0001"),
    ]
    assert [s.session_id for s in reader.sessions(Filters(), limit=2, subagents=False)] == main[:2]


def test_part_of_a_session_may_be_read(reader: StoreRows) -> None:
    found = reader.session("3f05a")
    assert [e.text for e in reader.events(found.id)] == ["prompt 0"]
    assert list(reader.events(found.id, first=2)) == []
    assert reader.by_number([found.id, -1]) == {found.id: found}

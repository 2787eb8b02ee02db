"""Sessions that begin with another's records: known as copies, and counted for their own work."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest

from tests.store.contract.build import NOW, Build
from whyfor.model.events import Event, Touch, Usage
from whyfor.model.findings import Bucket
from whyfor.model.query import Filters
from whyfor.model.sessions import Session
from whyfor.store.protocol import SharedStore
from whyfor.story.threads import SessionThreads


class Talk:
    """Two turns that others copy: each event has a key that is the same in all copies."""

    def __init__(self, store: SharedStore) -> None:
        self.store = store

    def read(
        self,
        name: str,
        keys: list[int],
        *,
        agent: str = "claude",
        offset: int = 0,
        copied: int | None = None,
        parent: str | None = None,
        **facts: Any,
    ) -> None:
        """Store a session of these events; with an offset they have other keys, as in an agent's
        copies that have no ids."""
        bucket = Bucket(name, parent)
        for key in keys:
            bucket.events += _turn(key, offset)
            bucket.usage.append(Usage(key, NOW + key, "big", input=1, output=1))
            bucket.touches.append(Touch(offset + key * 10 + 2, f"/shop/{key}.py", "write"))
        bucket.facts.update(facts)
        if copied is not None:
            bucket.copied = copied * 4
        writer = self.store.records.writer()
        with self.store.transaction():
            writer.apply(agent, bucket, NOW, mutable=False)
            writer.finish()

    def of(self, name: str, agent: str = "claude") -> Session:
        return self.store.sessions.find(name, agent)


def _turn(key: int, offset: int) -> list[Event]:
    """A prompt, a call, its result, an answer."""
    at, first = NOW + key * 1000, offset + key * 10
    return [
        Event("user.prompt", first + 1, at, "user", f"ask {key}"),
        Event("tool.call", first + 2, at + 1, "assistant", f"do {key}", "Write"),
        Event("tool.result", first + 3, at + 2, "tool", f"did {key}"),
        Event("assistant.message", first + 4, at + 3, "assistant", f"done {key}"),
    ]


@pytest.fixture
def talk(store: SharedStore) -> Talk:
    return Talk(store)


def told(session: Session) -> tuple[str | None, str | None, int]:
    return session.copy_of, session.copy_kind, session.own_from


def counts(session: Session) -> tuple[int, int, int, list[str]]:
    return session.prompts, session.messages, session.tool_calls, session.files_modified


def test_a_session_that_shares_nothing_is_no_copy(talk: Talk) -> None:
    talk.read("one", [1, 2])
    talk.read("two", [3])
    assert [told(talk.of(name)) for name in ("one", "two")] == [(None, None, 1)] * 2
    assert talk.store.sessions.copies() == []
    assert counts(talk.of("one")) == (2, 4, 2, ["/shop/1.py", "/shop/2.py"])


def test_a_restored_copy_counts_for_nothing_until_something_happens_in_it(talk: Talk) -> None:
    talk.read("one", [1, 2])
    talk.read("copy", [1, 2], copied=2, forked_from="one", restored_from="claude:one")
    copy = talk.of("copy")
    assert told(copy) == ("claude:one", "restored", 9)
    assert counts(copy) == (0, 0, 0, [])
    assert (copy.unopened, copy.tokens.total, talk.of("one").tokens.total) == (True, None, 4)

    talk.read("copy", [3])
    copy = talk.of("copy")
    assert told(copy) == ("claude:one", "restored", 9)
    assert counts(copy) == (1, 2, 1, ["/shop/3.py"])
    assert (copy.unopened, copy.tokens.total) == (False, 2)


def test_a_copy_in_another_agents_words_is_known_by_its_mark(talk: Talk) -> None:
    talk.read("one", [1, 2])
    talk.read("copy", [7], agent="codex", copied=1, restored_from="claude:one")
    talk.read("copy", [8], agent="codex")
    copy = talk.of("copy", "codex")
    assert told(copy) == ("claude:one", "restored", 5)
    assert counts(copy) == (1, 2, 1, ["/shop/8.py"])


def test_a_restored_copy_whose_original_is_gone_still_counts_for_its_own_work_only(
    talk: Talk,
) -> None:
    talk.read("copy", [1, 2], copied=2, forked_from="gone", restored_from="claude:gone")
    assert told(talk.of("copy")) == (None, None, 9)
    assert talk.of("copy").unopened


def test_a_fork_whose_original_is_gone_counts_for_all_it_holds(talk: Talk) -> None:
    talk.read("fork", [1, 2, 3], copied=2, forked_from="gone")
    assert told(talk.of("fork")) == (None, None, 1)
    assert counts(talk.of("fork"))[0] == 3


ORIGINAL: tuple[str, list[int], dict[str, Any]] = ("one", [1, 2], {})
CASES: dict[str, tuple[list[tuple[str, list[int], dict[str, Any]]], dict[str, Any]]] = {
    "a fork that says so": (
        [("one", [1, 2, 9], {}), ("fork", [1, 2, 3], {"copied": 2, "forked_from": "one"})],
        {"fork": ("claude:one", "forked", 9)},
    ),
    "a fork that says so, but not where it ends": (
        [ORIGINAL, ("fork", [1, 2, 3], {"forked_from": "one"})],
        {"fork": ("claude:one", "forked", 9)},
    ),
    "a fork whose events have other keys": (
        [ORIGINAL, ("fork", [1, 2, 3], {"forked_from": "one", "offset": 1000})],
        {"fork": ("claude:one", "forked", 9)},
    ),
    "a fork that holds only what is new": (
        [ORIGINAL, ("fork", [3], {"forked_from": "one"})],
        {"fork": ("claude:one", "forked", 1)},
    ),
    "a session resumed in a new file, twice": (
        [ORIGINAL, ("again", [1, 2, 3], {}), ("thrice", [1, 2, 3, 4], {})],
        {"again": ("claude:one", "resumed", 9), "thrice": ("claude:again", "resumed", 13)},
    ),
    "two that went on from the same place": (
        [("one", [1, 2, 3], {}), ("zwei", [1, 2, 4], {})],
        {"zwei": ("claude:one", "forked", 9)},
    ),
    "the same with the names the other way": (
        [("zwei", [1, 2, 3], {}), ("one", [1, 2, 4], {})],
        {"one": ("claude:zwei", "forked", 9)},
    ),
    "a copy of a copy": (
        [
            ORIGINAL,
            ("copy", [1, 2, 3], {"copied": 2, "restored_from": "claude:one"}),
            ("next", [1, 2, 3], {"copied": 3, "restored_from": "claude:copy"}),
        ],
        {"copy": ("claude:one", "restored", 9), "next": ("claude:copy", "restored", 13)},
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_what_a_session_is_a_copy_of_does_not_depend_on_which_was_read_first(
    case: str, make_store: Callable[[], SharedStore]
) -> None:
    sessions, expected = CASES[case]
    for order in itertools.permutations(sessions):
        talk = Talk(make_store())
        for name, keys, more in order:
            talk.read(name, keys, **more)
        found = {name: told(talk.of(name)) for name, _, _ in sessions}
        assert found == {name: expected.get(name, (None, None, 1)) for name in found}
        prompts = sum(talk.of(name).prompts for name in found)
        assert prompts == len({key for _, keys, _ in sessions for key in keys})


def test_a_subagent_of_a_restored_copy_did_nothing_itself(talk: Talk) -> None:
    talk.read("one", [1])
    talk.read("agent-1@one", [5], parent="one")
    talk.read("copy", [1], copied=1, forked_from="one", restored_from="claude:one")
    talk.read("agent-1@copy", [5], parent="copy", copied=1, forked_from="one")
    assert told(talk.of("agent-1@copy")) == (None, None, 5)
    assert counts(talk.of("agent-1@copy")) == (0, 0, 0, [])
    assert counts(talk.of("agent-1@one"))[2] == 1


def test_a_forgotten_original_leaves_its_copy_alone(talk: Talk) -> None:
    talk.read("one", [1, 2])
    talk.read("again", [1, 2, 3])
    talk.read("fork", [1, 2, 4], copied=2, forked_from="one")
    store = talk.store
    gone = talk.of("one").id
    keys, sharing = store.removal.shared_usage([gone])
    with store.transaction():
        store.removal.delete_session(gone)
        store.records.writer().recount(keys, sharing)
    assert told(talk.of("fork")) == (None, None, 1)
    assert told(talk.of("again")) == (None, None, 1)
    assert counts(talk.of("fork"))[0] == 3


# -- threads -------------------------------------------------------------------------------------


def test_a_thread_tells_its_original_and_how_often_it_was_copied(talk: Talk) -> None:
    talk.read("one", [1, 2])
    talk.read("again", [1, 2, 3])
    talk.read("more", [1, 2, 3, 4])
    talk.read("fork", [1, 2, 5], copied=2, forked_from="one")
    talk.read("copy", [1, 2], copied=2, forked_from="one", restored_from="claude:one")
    talk.read("other", [6])
    names = ["one", "again", "more", "fork", "copy"]
    threads = SessionThreads(talk.store)
    for name in names:
        thread = threads.thread_of(f"claude:{name}")
        assert thread.original == "claude:one"
        assert sorted(thread.names) == sorted(f"claude:{each}" for each in names)
        assert thread.words == "resumed twice, forked once, restored once"
        assert [copy.name for copy in thread.copies if copy.unopened] == ["claude:copy"]
    alone = threads.thread_of("claude:other")
    assert (alone.names, alone.words) == (["claude:other"], "")


def test_two_sessions_that_say_they_come_from_each_other_are_one_thread(talk: Talk) -> None:
    talk.read("one", [1], copied=1, forked_from="two")
    talk.read("two", [1], copied=1, forked_from="one")
    threads = SessionThreads(talk.store)
    assert threads.original("claude:one") == threads.original("claude:two")


# -- figures -------------------------------------------------------------------------------------


@pytest.fixture
def copied(talk: Talk, build: Build) -> Talk:
    """A project with a thread of four sessions, and with one that stands alone."""
    build.project()
    here: dict[str, Any] = {"cwd": "/shop"}
    talk.read("one", [1, 2], **here)
    talk.read("again", [1, 2, 3], **here)
    talk.read("copy", [1, 2], copied=2, forked_from="one", restored_from="claude:one", **here)
    talk.read("used", [1, 2], copied=2, forked_from="one", restored_from="claude:one", **here)
    talk.read("used", [4])
    talk.read("alone", [5], **here)
    return talk


def test_a_turn_is_counted_where_it_happened_and_a_thread_as_one_session(copied: Talk) -> None:
    stats = copied.store.stats
    counted = stats.counted(Filters())
    assert (sum(row.sessions for row in counted), sum(row.turns for row in counted)) == (2, 5)
    for by in ("agent", "project", "day"):
        rows = stats.grouped(by, Filters())
        assert (sum(row.sessions for row in rows), sum(row.turns or 0 for row in rows)) == (2, 5)
    assert [row.sessions for row in stats.grouped("model", Filters())] == [2]
    assert sum(turns for _, turns in stats.turns_by_time(Filters(), 0, NOW * 2)) == 5


def test_a_projects_sessions_are_its_threads(copied: Talk) -> None:
    [(number, _)] = copied.store.projects.known()
    assert copied.store.projects.session_counts()[number] == 2
    assert copied.store.projects.active()[number][0] == 2
    assert copied.store.sessions.count_since(number, 0) == 2


def test_a_copy_in_another_agents_words_is_a_session_of_that_agent(talk: Talk) -> None:
    talk.read("one", [1])
    talk.read("copy", [7], agent="codex", copied=1, restored_from="claude:one")
    assert [row.sessions for row in talk.store.stats.grouped("agent", Filters())] == [1, 0]
    talk.read("copy", [8], agent="codex")
    assert [row.sessions for row in talk.store.stats.grouped("agent", Filters())] == [1, 1]


def test_what_went_wrong_in_the_original_did_not_go_wrong_in_its_copy(store: SharedStore) -> None:
    for name, facts in (("one", {}), ("copy", {"restored_from": "claude:one"})):
        bucket = Bucket(name)
        failed = Event("tool.result", 3, NOW, "tool", "exit 1", None, {"failed": True})
        asked = Event("approval.requested", 4, NOW, "assistant", "", None, {"id": "r"})
        bucket.events += [*_turn(1, 0)[:2], failed, asked]
        bucket.facts.update(facts)
        bucket.copied = 4 if facts else None
        writer = store.records.writer()
        with store.transaction():
            writer.apply("claude", bucket, NOW, mutable=False)
            writer.finish()
    assert len(store.stats.wrong(Filters())) == 1
    assert len(store.stats.told_approvals(Filters())) == 1


def test_only_own_work_waits_for_a_commit(copied: Talk) -> None:
    store = copied.store
    [(project, _)] = store.projects.known()
    recent = dict(store.sessions.recent(project, 0, 10))
    assert copied.of("copy").id not in recent
    own = copied.of("used")
    assert store.sessions.files_after(own.id, recent[own.id]) == {"/shop/4.py"}


def test_a_copy_nobody_opened_is_not_active(copied: Talk) -> None:
    active = {name for _, name in copied.store.sessions.active_since(0)}
    assert active == {"one", "again", "used", "alone"}
    build = Build(copied.store)
    for name in ("copy", "used"):
        build.source(f"/{name}.jsonl", name)
    assert [found.session_id for found in copied.store.sessions.begun_in("/shop")] == ["used"]

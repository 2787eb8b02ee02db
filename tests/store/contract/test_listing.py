"""The list of sessions: one row for a conversation, sorted, filtered, page by page."""

from __future__ import annotations

import pytest

from tests.store.contract.build import NOW, SHOP, Build, checkpoint, part
from whyfor.model.events import SEQ_BITS, Touch, Usage
from whyfor.model.listing import LIST_SORTS, ListedSession, ListFilter, RowKey
from whyfor.model.titles import TITLE_AGENT
from whyfor.store.protocol import SharedStore

MINUTE = 60_000


def found(store: SharedStore, which: ListFilter | None = None, sort: str = "last") -> list[str]:
    rows = store.listing.page(which or ListFilter(), sort, 99)
    return [row.session_id for _, row in rows]


def row(store: SharedStore, name: str) -> ListedSession:
    rows = store.listing.page(ListFilter(), "last", 99)
    return next(row for _, row in rows if row.session_id == name)


def test_the_session_that_was_active_last_comes_first(store: SharedStore, build: Build) -> None:
    build.session("a", build.event("user.prompt", "go", at=NOW))
    build.session("b", build.event("user.prompt", "go", at=NOW + 20))
    build.session(
        "c",
        build.event("user.prompt", "go", at=NOW - 10),
        build.event("assistant.message", "done", at=NOW + 10),
    )
    assert found(store) == ["b", "c", "a"]
    assert found(store, sort="started") == ["b", "a", "c"]
    assert store.listing.count(ListFilter()) == 3


def test_the_longest_and_the_dearest_come_first_and_unknown_tokens_last(
    store: SharedStore, build: Build
) -> None:
    prompt = build.event("user.prompt", "go", at=NOW)
    answer = build.event("assistant.message", "done", at=NOW + 5 * MINUTE)
    build.session("long", prompt, answer)
    build.session("unknown", build.event("user.prompt", "go", at=NOW + 1))
    paid = build.event("user.prompt", "go", at=NOW + 2)
    build.session("paid", paid, more=[Usage(paid.key, NOW + MINUTE, "m", input=10, output=5)])
    assert found(store, sort="longest") == ["long", "paid", "unknown"]
    assert found(store, sort="tokens")[0] == "paid"
    assert (row(store, "paid").tokens, row(store, "unknown").tokens) == (15, None)
    assert row(store, "long").worked == 5 * MINUTE


def test_waiting_for_a_person_is_no_work(store: SharedStore, build: Build) -> None:
    build.session(
        "a",
        build.event("user.prompt", "go", at=NOW),
        build.event("tool.result", "ok", at=NOW + MINUTE),
        build.event("user.prompt", "on", at=NOW + 40 * MINUTE),
        build.event("tool.result", "ok", at=NOW + 41 * MINUTE),
        build.event("tool.result", "the lid was closed meanwhile", at=NOW + 400 * MINUTE),
    )
    assert row(store, "a").worked == 2 * MINUTE


@pytest.mark.parametrize("sort", LIST_SORTS)
def test_pages_hold_every_row_once_in_both_directions(
    store: SharedStore, build: Build, sort: str
) -> None:
    for number in range(9):
        build.session(f"s{number}", build.event("user.prompt", "go", at=NOW + number // 3))
    listing = store.listing
    whole = listing.page(ListFilter(), sort, 99)
    first = listing.page(ListFilter(), sort, 4)
    second = listing.page(ListFilter(), sort, 4, first[-1][0])
    third = listing.page(ListFilter(), sort, 4, second[-1][0])
    assert [*first, *second, *third] == whole
    assert listing.page(ListFilter(), sort, 4, third[0][0], upwards=True) == second
    assert listing.count(ListFilter(), sort, third[0][0]) == 8
    assert len({key.head for key, _ in whole}) == 9


def test_subagents_stand_in_the_row_of_their_caller_whoever_comes_first(
    store: SharedStore, build: Build
) -> None:
    build.session("grandchild", build.event("user.prompt", "go", at=NOW + 9), parent="child")
    build.session("child", build.event("user.prompt", "go", at=NOW + 5), parent="main")
    lone = row(store, "child")
    assert (lone.lone, lone.subagents) == (True, 1)
    assert (store.listing.totals().rows, store.listing.totals().lone) == (1, 1)
    build.session("main", build.event("user.prompt", "go", at=NOW))
    assert found(store) == ["main"]
    main = row(store, "main")
    assert (main.subagents, main.turns, main.lone, main.last_at) == (2, 1, False, NOW + 9)
    numbers = store.sessions.numbers([("claude", "main"), ("claude", "grandchild")])
    assert set(store.listing.heads_of(numbers.values()).values()) == {main.head}
    totals = store.listing.totals()
    assert (totals.rows, totals.recordings, totals.subagents, totals.lone) == (1, 3, 2, 0)
    assert totals.since == NOW


def test_a_thread_is_one_row_and_counts_each_turn_once(store: SharedStore, build: Build) -> None:
    first = build.event("user.prompt", "go", at=NOW)
    answer = build.event("assistant.message", "done", at=NOW + MINUTE)
    build.session("root", first, answer)
    again = build.event("user.prompt", "on", at=NOW + 9 * MINUTE)
    said = build.event("assistant.message", "done again", at=NOW + 10 * MINUTE)
    build.session("fork", first, answer, again, said, facts={"forked_from": "root"})
    assert found(store) == ["fork"], "the part that was active last stands for all"
    thread = row(store, "fork")
    assert [(part.session_id, part.kind, part.turns) for part in thread.parts] == [
        ("root", "first", 1),
        ("fork", "forked", 1),
    ]
    assert (thread.turns, thread.worked, thread.began_at) == (2, 2 * MINUTE, NOW)
    assert store.listing.totals().parts == 1
    root = store.sessions.find("root").id
    assert thread.head == root
    with store.transaction():
        store.removal.delete_session(root)
    assert row(store, "fork").parts == ()


def test_a_copy_nobody_opened_does_not_stand_for_its_thread(
    store: SharedStore, build: Build
) -> None:
    first = build.event("user.prompt", "go", at=NOW)
    build.session("root", first)
    build.session("copy", first, facts={"forked_from": "root"})
    build.session("other", build.event("user.prompt", "go", at=NOW + 1))
    assert found(store) == ["other", "root"]
    assert row(store, "root").turns == 1


def test_a_deleted_session_leaves_its_subagents_rows_of_their_own(
    store: SharedStore, build: Build
) -> None:
    main = build.session("main", build.event("user.prompt", "go", at=NOW))
    build.session("child", build.event("user.prompt", "go", at=NOW + 5), parent="main")
    with store.transaction():
        store.removal.delete_session(main)
    assert found(store) == ["child"]
    assert row(store, "child").lone


def test_a_question_at_the_end_is_not_answered(store: SharedStore, build: Build) -> None:
    question = build.event("question.asked", "which one?")
    number = build.session("asks", build.event("user.prompt", "go"), question)
    build.session(
        "answered",
        build.event("user.prompt", "go"),
        build.event("question.asked", "which one?"),
        build.event("tool.result", "the first"),
    )
    assert row(store, "asks").asked == (number << SEQ_BITS) + 2
    assert row(store, "answered").asked is None
    assert found(store, ListFilter(outcome="asked")) == ["asks"]


def test_an_error_at_the_end_is_a_failure_and_one_it_got_over_is_not(
    store: SharedStore, build: Build
) -> None:
    build.session("fails", build.event("user.prompt", "go"), build.event("error", "no credit"))
    build.session(
        "goes on",
        build.event("user.prompt", "go"),
        build.event("error", "overloaded"),
        build.event("assistant.message", "done"),
    )
    assert row(store, "fails").failed is not None
    assert found(store, ListFilter(outcome="failed")) == ["fails"]


def test_what_came_of_a_session_is_commits_or_files_or_nothing(
    store: SharedStore, build: Build
) -> None:
    project = build.project()
    for name in ("committed", "changed", "nothing"):
        edit = build.event("tool.call", "edit")
        touched = [] if name == "nothing" else [Touch(edit.key, f"/shop/{name}.py", "write")]
        build.session(name, edit, more=touched)
    build.checkpoint(project, checkpoint("c1", part("committed", 1, 1)))
    build.checkpoint(project, checkpoint("c0", part("committed", 1, 1), superseded_by="c1"))
    for name in ("committed", "changed", "nothing"):
        assert found(store, ListFilter(outcome=name)) == [name]
    assert (row(store, "committed").commits, row(store, "changed").files) == (1, 1)
    number = store.sessions.find("nothing").id
    assert found(store, ListFilter(outcome="open", open_sessions=(number,))) == ["nothing"]
    assert found(store, ListFilter(file="changed.py")) == ["changed"]
    assert found(store, ListFilter(file="hanged.py")) == []


def test_a_row_fits_every_filter_at_once(store: SharedStore, build: Build) -> None:
    project = build.project(SHOP, "/shop", "/shop/web")
    one = {
        "cwd": "/shop/web",
        "branch": "main",
        "title": "Mend the till",
        "title_rank": TITLE_AGENT,
    }
    build.session("a", build.event("user.prompt", "the harbour is shut", at=NOW), facts=one)
    build.session("b", build.event("user.prompt", "go", at=NOW + 10), agent="codex")
    listing = store.listing
    fits = (
        ListFilter(agent="claude"),
        ListFilter(projects=(project,)),
        ListFilter(folder="/shop"),
        ListFilter(folder="/shop/web/"),
        ListFilter(branch="main"),
        ListFilter(until=NOW),
        ListFilter(words=("TILL", "mend")),
        ListFilter(words=("harb",)),
        ListFilter(words=("harb", "till")),
    )
    for which in fits:
        assert found(store, which) == ["a"], which
        assert listing.count(which) == 1
    assert found(store, ListFilter(homeless=True)) == ["b"]
    assert found(store, ListFilter(since=NOW + 1)) == ["b"]
    assert found(store, ListFilter(folder="/sho")) == []
    assert found(store, ListFilter(words=("till", "lighthouse"))) == []
    assert found(store, ListFilter(words=("100%",))) == []
    assert listing.branches(ListFilter(), 5) == ["main"]
    counted = {(one.project, one.cwd): (one.rows, one.last_at) for one in listing.folders()}
    assert counted == {(project, "/shop/web"): (1, NOW), (None, None): (1, NOW + 10)}


def test_days_and_months_count_rows_and_commits(store: SharedStore, build: Build) -> None:
    project = build.project()
    day = 86_400_000
    build.session("a", build.event("user.prompt", "go", at=NOW))
    build.session("b", build.event("user.prompt", "go", at=NOW + 1))
    build.session("c", build.event("user.prompt", "go", at=NOW - 60 * day))
    build.checkpoint(project, checkpoint("c1", part("a", 1, 1), part("b", 1, 1)))
    months = store.listing.months(ListFilter())
    assert [one.rows for one in months] == [2, 1]
    assert months[0].period > months[1].period
    days = store.listing.days(ListFilter(), NOW - day, NOW + day)
    assert [(one.rows, one.commits) for one in days] == [(2, 1)]
    assert store.listing.rows([]) == {}
    assert store.listing.page(ListFilter(), "last", 9, RowKey(0, 0)) == []

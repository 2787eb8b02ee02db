"""The events of one session: whole, in pieces, counted."""

from __future__ import annotations

import pytest

from tests.store.contract.build import NOW, Build
from whyfor.model.events import Event, EventRef, Response, Usage
from whyfor.model.sessions import Tokens
from whyfor.model.work_feed import FailedEvent
from whyfor.store.protocol import SharedStore


@pytest.fixture
def talk(build: Build) -> int:
    """Two turns: a question and its answer, a call that failed, last words."""
    call = {"id": "c1", "input": {"command": "make test"}}
    return build.session(
        "talk",
        build.event("user.prompt", "mend the gate", key=1),
        build.event("question.asked", "which gate?", key=2, data={"id": "q1"}),
        build.event("tool.result", "", key=3, data={"id": "q1", "answers": {"a": "the north"}}),
        build.event("assistant.message", "the north one then", key=4),
        build.event("user.prompt", "and test it", key=5),
        build.event("tool.call", "make test", key=6, name="Bash", data=call),
        build.event("tool.result", "one\ntwo", key=7, data={"id": "c1", "failed": True}),
        build.event("assistant.message", "it fails", key=8, data={"uuid": "u8", "parent": "u7"}),
        more=[Usage(1, NOW, "m", input=3, output=4)],
    )


def test_events_are_read_whole_in_order_and_in_parts(store: SharedStore, talk: int) -> None:
    events = list(store.conversation.events(talk))
    assert [event.seq for event in events] == list(range(1, 9))
    assert events[6].data == {"id": "c1", "failed": True}
    assert [e.seq for e in store.conversation.events(talk, 3, 5)] == [3, 4, 5]
    assert [e.seq for e in store.conversation.stretch(talk, 5, 2)] == [6, 7]
    assert list(store.conversation.events(talk + 1)) == []
    assert [e.text for e in store.conversation.events_at(talk, [8, 1, 1], 4)] == ["mend", "it f"]
    assert [e.seq for e in store.conversation.tail(talk, 2, 100)] == [7, 8]
    assert [e.text for e in store.conversation.tail(talk, 2, 100)] == ["", "it fails"]


def test_where_events_are_and_when_is_known_without_their_words(
    store: SharedStore, talk: int
) -> None:
    conversation = store.conversation
    assert [(head.seq, head.failure) for head in conversation.heads(talk)][5:] == [
        (6, None),
        (7, "one\ntwo"),
        (8, None),
    ]
    moments = list(conversation.moments(talk))
    assert [(m.seq, m.turn, m.kind, m.actor) for m in moments][:2] == [
        (1, 1, "user.prompt", "user"),
        (2, 1, "question.asked", "assistant"),
    ]
    assert conversation.last_seq(talk) == 8
    assert conversation.last_of_kind(talk, "user.prompt") == 5
    assert conversation.last_of_kind(talk, "error") is None
    assert conversation.first_of_kinds(talk, ("tool.call", "tool.result"), 2) == [3, 6]
    assert conversation.observed(talk, 99) == (NOW, 8)
    assert conversation.observed(talk + 1, 99) == (0, 0)
    assert conversation.time_of(EventRef(talk, 2)) == NOW + 2000
    assert conversation.time_of(EventRef(talk, 99)) is None
    assert conversation.time_from(talk, 2) == NOW + 2000
    assert conversation.key_of(talk, 4) == 4
    assert conversation.key_of(talk, 99) is None
    assert conversation.keys(talk, 2) == {1: 1, 2: 2}
    assert conversation.line_counts(talk, [7]) == {7: 2}
    assert conversation.openings(talk, [1, 5], 3) == {1: "men", 5: "and"}
    assert conversation.ids(talk, "tool.call") == {6: "c1"}
    assert conversation.tree(talk, [8]) == [(8, "u8", "u7")]
    assert len(conversation.tree(talk)) == 8


def test_calls_and_what_came_of_them_are_tied_by_the_agents_names(
    store: SharedStore, talk: int
) -> None:
    refs = store.conversation.call_refs(talk, 1, 8)
    assert [(ref.seq, ref.kind, ref.ident) for ref in refs] == [
        (2, "question.asked", "q1"),
        (3, "tool.result", "q1"),
        (6, "tool.call", "c1"),
        (7, "tool.result", "c1"),
    ]
    assert [ref.seq for ref in store.conversation.result_refs(talk, 4, ["c1", "q1"])] == [7]
    assert store.conversation.commands(talk, 1, None, ["bash"]) == ["make test"]
    assert store.conversation.commands(talk, 7, 8, ["bash"]) == []


def test_what_was_said_is_requests_answers_and_the_last_words_of_each_turn(
    store: SharedStore, talk: int
) -> None:
    words = store.conversation.words(talk, 1, 8)
    assert [(word.role, word.seq, word.text, word.by) for word in words] == [
        ("request", 1, "mend the gate", "person"),
        ("question", 2, "which gate?", "agent"),
        ("answer", 3, "the north", "person"),
        ("closing words", 4, "the north one then", "agent"),
        ("request", 5, "and test it", "person"),
        ("closing words", 8, "it fails", "agent"),
    ]
    conversation = store.conversation
    assert conversation.work_counts(talk, 1, 8) == (1, 1)
    last = conversation.last_request(talk, 1, 8)
    assert last is not None and last.seq == 5
    assert conversation.last_request(talk, 2, 4) is None
    assert conversation.first_request(talk, 2, 8) == 5
    assert conversation.first_request(talk, 6, 8) is None
    assert conversation.turns(talk, 3, 6) == (1, 2)
    assert conversation.turns(talk + 1, 1, 9) == (0, 0)
    assert conversation.turn_end(talk, 1) == 4
    assert conversation.prompt_before(talk, 5) == 1
    assert conversation.prompt_before(talk, 1) == 0
    assert conversation.prompts_since(talk, 1) == 1


def test_a_call_that_is_longer_than_shown_is_found_whole(store: SharedStore, build: Build) -> None:
    number = build.session(
        "long",
        build.event("tool.call", "x" * 50, name="Bash"),
        build.event("assistant.message", "y" * 50),
        build.event("tool.call", "short", name="Bash"),
    )
    assert [event.seq for event in store.conversation.long_calls(number, 10, 20)] == [1]
    assert list(store.conversation.long_calls(number, 1, 20)) == []


def test_tokens_are_told_by_turn_and_tasks_by_session(store: SharedStore, build: Build) -> None:
    main = build.session(
        "main",
        build.event("user.prompt", "go", at=NOW),
        more=[Usage(1, NOW, "m", input=3, output=4), Usage(2, NOW, "m", output=5)],
    )
    child = build.session("child", build.event("user.prompt", "count", at=NOW), parent="main")
    assert store.conversation.tokens_by_turn(main) == {1: Tokens(input=3, output=9, unpriced=2)}
    assert store.conversation.tasks([main, child, child + 1], 3) == {
        main: ("go", NOW),
        child: ("cou", NOW),
    }


def test_copies_of_events_are_known_again_in_a_fork(store: SharedStore, build: Build) -> None:
    told = [
        Event("user.prompt", 1, NOW, "user", "go"),
        Event("assistant.message", 2, NOW + 1, "assistant", "gone"),
        Event("assistant.thinking", 3, NOW + 2, "assistant", "hm"),
    ]
    one = build.session("one", *told)
    two = build.session("two", build.event("error", "x", key=9), *told)
    own, copy = store.conversation.copied_marks(one), store.conversation.copied_marks(two)
    assert {own[mark]: copy[mark] for mark in own if mark in copy} == {1: 2, 2: 3}


def test_when_something_was_done_is_told_piece_by_piece(store: SharedStore, talk: int) -> None:
    assert store.conversation.active_times(talk, NOW * 2) == [
        (NOW + 1000, NOW + 4000),
        (NOW + 5000, NOW + 8000),
    ]
    assert store.conversation.active_times(talk, NOW + 1000) == [(NOW + 1000, NOW + 4000)]
    assert store.conversation.active_times(talk, NOW * 2, 5) == [(NOW + 5000, NOW + 8000)]


def test_responses_tell_how_large_prompts_were_and_what_they_cost(
    store: SharedStore, build: Build
) -> None:
    number = build.session(
        "sizes",
        build.event("user.prompt", "go", at=NOW),
        more=[
            Usage(1, NOW, "m", input=3, cache_read=5, cache_write=2, output=4, reported=0.5),
            Usage(2, NOW + 5, "m", output=5),
            Usage(3, NOW + 9, "m", input=8, output=1, lump=True),
        ],
    )
    assert store.conversation.responses(number) == [
        Response(NOW, 1, "m", 10, 500_000_000),
        Response(NOW + 5, 1, "m", None, None),
        Response(NOW + 9, 1, "m", None, None),
    ]
    assert [each.at for each in store.conversation.responses(number, NOW + 5)] == [NOW + 5, NOW + 9]


def test_failures_are_told_with_their_times_and_exit_codes(
    store: SharedStore, build: Build
) -> None:
    number = build.session(
        "wrong",
        build.event("tool.result", "exit 1", at=NOW, data={"failed": True, "exit_code": 1}),
        build.event("tool.result", "no", at=NOW + 1, data={"failed": True, "rejected": True}),
        build.event("tool.result", "ok", at=NOW + 2),
        build.event("error", "529", at=NOW + 3),
    )
    assert store.conversation.failures(number) == [
        FailedEvent(1, NOW, "tool.result", "exit 1", 1),
        FailedEvent(4, NOW + 3, "error", "529", None),
    ]
    assert [each.seq for each in store.conversation.failures(number, NOW + 1)] == [4]

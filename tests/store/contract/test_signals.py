"""What hooks announced."""

from __future__ import annotations

import msgspec

from tests.store.contract.build import NOW, SHOP, Build, checkpoint
from whyfor.model.attention import ATTENTION
from whyfor.model.checkpoints import SeenCommit
from whyfor.model.memory import Injection
from whyfor.model.signals import CommitSignal, Signal
from whyfor.store.protocol import Store

STOP = Signal(NOW, "claude", "Stop", session_agent="claude", session_id="a", data={"x": 1})
ENDED = Signal(NOW + 5, "claude", "SessionEnd", session_agent="claude", session_id="a")
PROBE = Signal(NOW + 9, "claude", "probe")
COMMIT = Signal(
    NOW + 7,
    "git",
    "post-commit",
    session_agent="claude",
    session_id="a",
    repository="/shop",
    sha="c0ffee",
    data={"rebasing": True},
)
ALONE = Signal(NOW + 8, "git", "post-commit", repository="/shop", sha="beef")


def test_signals_are_numbered_as_they_come(store: Store, build: Build) -> None:
    assert store.signals.newest() == 0
    build.signals(STOP, ENDED)
    newest = store.signals.newest()
    build.signals(PROBE)
    assert store.signals.after(newest) == [PROBE]
    assert store.signals.after(0) == [STOP, ENDED, PROBE]


def test_a_sessions_signals_are_in_order_or_newest_first(store: Store, build: Build) -> None:
    build.signals(ENDED, STOP, PROBE)
    assert store.signals.of_session("claude", "a") == [STOP, ENDED]
    assert store.signals.last_of("claude", "a", 1) == [ENDED]
    assert store.signals.of_session("codex", "a") == []


def test_a_probe_is_no_word_of_an_agent(store: Store, build: Build) -> None:
    assert store.signals.last_heard("claude") is None
    build.signals(STOP, PROBE)
    assert store.signals.last_heard("claude") == NOW


def test_commits_are_told_by_git_with_or_without_a_session(store: Store, build: Build) -> None:
    build.signals(COMMIT, ALONE)
    told = store.signals.of_commits(["c0ffee", "beef", "dead"])
    assert told == [
        CommitSignal("c0ffee", "claude", "a", {"rebasing": True}, NOW + 7),
        CommitSignal("beef", None, None, {}, NOW + 8),
    ]
    assert store.signals.made_in_session(["c0ffee", "beef"]) == {"c0ffee"}
    assert store.signals.hooked("c0ffee") == [("claude", "a")]
    assert store.signals.hooked("beef") == []


def test_commits_nobody_has_looked_at_are_told_by_folder(store: Store, build: Build) -> None:
    project = build.project(SHOP)
    build.signals(COMMIT, ALONE)
    assert store.signals.unseen_in(["/shop"]) == {"c0ffee", "beef"}
    assert store.signals.unseen_in(["/elsewhere"]) == set()
    build.checkpoint(project, checkpoint("beef"))
    with store.transaction():
        store.checkpoints.saw(project, [SeenCommit("beef", NOW, NOW, None, None)])
    assert store.signals.unseen_in(["/shop"]) == {"c0ffee"}


def test_what_agents_hooks_saw_made_and_git_rewrote(store: Store, build: Build) -> None:
    made = Signal(
        NOW,
        "claude",
        "PostToolUse",
        session_agent="claude",
        session_id="a",
        data={"made": ["1111111", "2222222"]},
    )
    pairs = Signal(NOW, "git", "post-rewrite", data={"pairs": [["a", "b"], ["b", "c"]]})
    build.signals(made, pairs)
    told = store.signals.agent_commits(NOW)
    assert [(one.sha, one.session_id, one.at) for one in told] == [
        ("1111111", "a", NOW),
        ("2222222", "a", NOW),
    ]
    assert store.signals.agent_commits(NOW + 1) == []
    assert store.signals.rewrites() == [("a", "b"), ("b", "c")]


def test_what_a_session_was_told_is_among_its_signals(store: Store, build: Build) -> None:
    told = {"part": "start", "block": "b1", "tokens": 90, "sources": ["n1"], "files": ["a.py"]}
    start = msgspec.structs.replace(STOP, event="SessionStart", data={"memory": told})
    build.signals(STOP, start, ENDED)
    assert store.signals.injections("claude", "a") == [
        Injection(start.at, "start", "b1", 90, ("n1",), ("a.py",))
    ]
    assert store.signals.injections("claude", "b") == []
    assert store.signals.told_sessions(start.at) == [("claude", "a")]
    assert store.signals.told_sessions(start.at + 1) == []


def test_a_note_knows_whom_it_was_told(store: Store, build: Build) -> None:
    def start(session: str, at: int, *sources: str) -> Signal:
        told = {"part": "start", "block": "b", "tokens": 9, "sources": [*sources], "files": ["n%1"]}
        return msgspec.structs.replace(
            STOP,
            event="SessionStart",
            session_id=session,
            at=at,
            data={"memory": told},
        )

    build.signals(
        start("a", NOW, "n_1", "n2"),
        start("b", NOW + 5, "n_1"),
        start("a", NOW + 9, "n_1"),
        start("c", NOW + 7, "nx1", "run:n_1"),
    )
    assert store.signals.told_to("n_1") == [("claude", "a", NOW), ("claude", "b", NOW + 5)]
    assert store.signals.told_to("n%1") == []


def test_what_the_monitor_told_is_found_by_its_time(store: Store, build: Build) -> None:
    told = Signal(NOW + 3, "whyfor", ATTENTION, session_agent="claude", session_id="a", data={})
    build.signals(STOP, told, ENDED)
    assert store.signals.attention(NOW) == [told]
    assert store.signals.attention(NOW + 4) == []
    assert store.signals.last_heard("claude") == NOW + 5

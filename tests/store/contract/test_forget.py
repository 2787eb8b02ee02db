"""What forget asks of a store and removes from it."""

from __future__ import annotations

from pathlib import Path

from tests.store.contract.build import NOW, Build, checkpoint, part
from whyfor.model.checkpoints import Note, SeenCommit
from whyfor.model.events import EventPlace, Usage
from whyfor.model.query import Atom, Filters, Query
from whyfor.model.signals import Signal
from whyfor.store.journal import ForgottenEntry, NoteEntry, OverrideEntry
from whyfor.store.protocol import Store
from whyfor.store.tombstones import SESSION, STORY

NORTH = Query(clauses=((Atom("north"),),))


def test_what_was_forgotten_is_remembered_without_what_it_said(
    store: Store, tmp_path: Path
) -> None:
    entry = ForgottenEntry(NOW, ["claude:a"], ["c1"], ["c2"], {"claude:b": ["d1"]}, ["s1"])
    with store.transaction():
        store.forget.save_tombstones(entry)
        store.forget.save_tombstones(entry)
    found = store.forget.tombstones(tmp_path)
    assert (found.sessions, found.commits) == ({("claude", "a")}, {"c1"})
    assert (found.records, found.strings) == ({"claude:b": {"d1"}}, {"s1"})
    assert store.forget.reasons() == {"c1": STORY, "c2": SESSION}


def test_who_hangs_on_whom(store: Store, build: Build) -> None:
    build.session("a", build.event("user.prompt", "go", at=NOW), facts={"cwd": "/shop"})
    build.session("child", build.event("user.prompt", "go", key=5, at=NOW + 5), parent="a")
    build.session("grandchild", build.event("user.prompt", "go", at=NOW + 7), parent="child")
    build.session("fork", build.event("user.prompt", "go"), facts={"forked_from": "a"})
    build.source("/child.jsonl", "child", records=3, position=9)
    main, child = ("claude", "a"), ("claude", "child")
    family = {main, child, ("claude", "grandchild")}
    forget = store.forget
    assert forget.descendants([main]) == family
    assert forget.children_begun(main, NOW + 4, NOW + 6) == {child}
    assert forget.children_begun(main, NOW + 6, NOW + 8) == set()
    assert forget.sessions_before(NOW + 1) == {main}
    assert forget.subagents_before(NOW + 6) == {child}
    assert (forget.has_transcript(main), forget.has_transcript(child)) == (False, True)
    assert (forget.record_count(main), forget.record_count(child)) == (0, 3)
    assert forget.forks("a") == {("claude", "fork")}
    assert forget.sessions_with([5]) == {child}
    assert forget.folders([main, child]) == {main: "/shop"}
    assert forget.source_positions("claude") == {"/child.jsonl": 9}


def test_a_session_goes_with_all_that_hangs_on_it(store: Store, build: Build) -> None:
    paid = [Usage(7, NOW, "m", output=1)]
    gone = build.session("gone", build.event("user.prompt", "north", key=1, at=NOW), more=paid)
    copy = build.session("copy", build.event("user.prompt", "north", at=NOW + 9), more=paid)
    assert store.forget.event_places(gone) == {1: EventPlace(1, "north")}
    assert store.forget.shared_usage([gone]) == ([7], [copy])
    with store.transaction():
        store.forget.delete_session(gone)
        store.records.writer().recount([7], [copy])
    assert list(store.sessions.by_number([gone, copy])) == [copy]
    assert list(store.conversation.events(gone)) == []
    assert [match.session for match in store.search.match(NORTH, Filters(), 9)] == [copy]
    assert store.sessions.find("copy").tokens.output == 1


def test_a_session_is_emptied_and_read_again(store: Store, build: Build) -> None:
    project = build.project()
    number = build.session("a", build.event("user.prompt", "north"), facts={"cwd": "/shop"})
    source = build.source("/a.jsonl", "a", position=9, size=9, records=1)
    build.segment(source, 0, 9, "one")
    with store.transaction():
        store.links.save_looked(project, [(number, 1)])
    whole = store.forget.linked_whole([number])
    assert whole == [(project, number)]
    assert store.forget.line_digests(("claude", "a")) == ["one"]
    with store.transaction():
        store.forget.empty_session(number)
        store.forget.clear_folder(number)
        store.forget.reset_sources([("claude", "a")])
    session = store.sessions.find("a")
    assert (session.prompts, session.title, session.cwd) == (0, None, None)
    again = store.records.writer().source("claude", "/a.jsonl")
    assert again is not None
    assert (again.position, again.records, again.size) == (0, 0, 9)
    assert store.records.pieces(again) == []
    build.session("a", build.event("user.prompt", "north"), build.event("error", "no"))
    with store.transaction():
        store.forget.renumber_linked([number], whole)
    assert (number, project) not in store.links.grown()


def test_signals_titles_notes_and_hints_go_one_by_one(store: Store, build: Build) -> None:
    project = build.project()
    build.session("a", build.event("user.prompt", "go"))
    signal = Signal(NOW, "claude", "Stop", session_agent="claude", session_id="a")
    build.signals(signal, signal, Signal(NOW + 5, "claude", "Stop"))
    assert store.forget.has_signal_before(NOW + 1)
    assert not store.forget.has_signal_before(NOW)
    hints = '[{"agent":"claude","session_id":"a"},{"agent":"claude","session_id":"b"}]'
    with store.transaction():
        store.forget.put_titles({1: "One", 2: "Two"})
        for at in (1, 2):
            store.checkpoints.note(NoteEntry("c1", "person", at, Note(title=str(at))))
        store.checkpoints.override(OverrideEntry("c1", "claude", "a", "link", NOW))
        store.checkpoints.saw(project, [SeenCommit("c1", NOW, NOW, None, hints)])
    ids = store.forget.signal_ids([signal])
    assert len(ids) == 1
    with store.transaction():
        store.forget.delete_signals(ids)
        store.forget.delete_titles([1])
        store.forget.keep_notes([("c1", 2)])
        store.forget.keep_overrides([])
        store.forget.drop_hints({("claude", "a")})
    assert len(store.signals.after(0)) == 2
    assert store.forget.titles() == {2: "Two"}
    assert store.checkpoints.notes(["c1"])["c1"][1] == Note(title="2")
    assert store.checkpoints.overrides(["c1"]) == {}
    assert store.checkpoints.seen(["c1"])["c1"][1] == [{"agent": "claude", "session_id": "b"}]


def test_a_commit_is_known_by_what_it_was_and_is_now(store: Store, build: Build) -> None:
    project = build.project()
    build.session("a", build.event("user.prompt", "go"))
    build.checkpoint(project, checkpoint("old", part("a", 1, 1), superseded_by="new"))
    build.checkpoint(project, checkpoint("new", part("a", 1, 1)))
    assert store.forget.rewrites("new") == store.forget.rewrites("old") == {"old", "new"}


def test_a_trial_leaves_nothing_and_a_scrub_no_byte(
    store: Store, build: Build, tmp_path: Path
) -> None:
    number = build.session("a", build.event("user.prompt", "north"))
    with store.forget.trial():
        store.forget.delete_session(number)
    assert store.sessions.find("a").prompts == 1
    store.forget.overwrite_deleted()
    with store.transaction():
        store.forget.delete_session(number)
    assert store.forget.scrub(tmp_path / "copy.db")
    assert not (tmp_path / "copy.db").exists()
    assert store.check() == []

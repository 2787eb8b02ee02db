"""What was read of which file, how far, and what could not be understood."""

from __future__ import annotations

from tests.store.contract.build import NOW, Build
from whyfor.model.signals import Process, Signal
from whyfor.model.sources import SourceHealth, UnparsedRecord
from whyfor.store.journal import PauseEntry, SegmentEntry
from whyfor.store.protocol import Store


def test_everything_stored_can_be_told_to_a_journal_again(store: Store, build: Build) -> None:
    assert not store.records.has_segments()
    build.project()
    source = build.source("/a.jsonl", "a")
    build.segment(source, 0, 10, "one", gaps=[(2, 3)])
    assert store.records.has_segments()
    [entry] = store.capture.segment_entries()
    assert (entry.path, entry.end, entry.digest, entry.gaps) == ("/a.jsonl", 10, "one", [(2, 3)])
    told = store.capture.all_entries()
    assert {type(one).__name__ for one in told} == {"SegmentEntry", "PlaceEntry"}
    assert [one for one in told if isinstance(one, SegmentEntry)] == [entry]


def test_health_is_told_by_agent(store: Store, build: Build) -> None:
    source = build.source("/a.jsonl", "a", records=3, tail=2, size=9, error="torn")
    writer = store.records.writer()
    with store.transaction():
        problems = [UnparsedRecord(0, 5, "truncated"), UnparsedRecord(5, 5, "truncated")]
        writer.add_problems(source, problems, {"hologram": 2})
        writer.finish()
    assert store.capture.health("claude") == [SourceHealth("/a.jsonl", 9, 3, 2, "torn")]
    assert store.capture.health("codex") == []
    assert store.capture.unparsed("claude") == [("/a.jsonl", "truncated", 2)]
    assert store.capture.unknown_types("claude") == {"hologram": 2}
    assert store.sessions.find("a").unparsed == 2
    source.unparsed = 2  # whoever reads a source counts it
    with store.transaction():
        writer.restart(source, 1)
        writer.finish()
    assert store.capture.unparsed("claude") == []
    assert store.sessions.find("a").unparsed == 0


def test_the_later_of_two_pauses_with_one_id_counts(store: Store) -> None:
    for pause in (PauseEntry("p", NOW), PauseEntry("p", NOW, NOW + 5), PauseEntry("q", NOW)):
        with store.transaction():
            store.capture.save_pause(pause)
    assert store.capture.pauses() == [PauseEntry("p", NOW, NOW + 5), PauseEntry("q", NOW)]


def test_the_session_around_a_process_is_the_nearest_that_a_hook_named(
    store: Store, build: Build
) -> None:
    named = Signal(
        NOW,
        "claude",
        "Stop",
        session_agent="claude",
        session_id="a",
        how="payload",
        data={"process": [7, 70]},
    )
    build.signals(named)
    writer = store.records.writer()
    chain = [Process(9, 90, "sh"), Process(7, 70, "claude")]
    assert writer.session_around(chain, NOW) == ("claude", "a")
    assert writer.session_around(chain, NOW - 1) is None
    assert writer.session_around([Process(7, 71, "claude")], NOW) is None

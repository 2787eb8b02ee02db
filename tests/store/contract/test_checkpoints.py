"""Commits with a story, and what people said of them."""

from __future__ import annotations

import pytest

from tests.store.contract.build import NOW, Build, annotation, checkpoint, part
from whyfor.model.checkpoints import Note, SeenCommit, StoryTitle, checkpoint_id
from whyfor.model.events import Usage
from whyfor.model.sessions import Tokens
from whyfor.store.journal import NoteEntry, OverrideEntry
from whyfor.store.protocol import SharedStore


@pytest.fixture
def project(build: Build) -> int:
    number = build.project()
    build.session(
        "a",
        *(build.event("user.prompt", f"step {n}", at=NOW + n * 1000) for n in range(1, 5)),
        more=[
            Usage(1, NOW + 1000, "m", output=3),
            Usage(2, NOW + 3000, "m", output=4),
        ],
    )
    return number


def test_a_checkpoint_comes_back_as_it_was_saved(
    store: SharedStore, build: Build, project: int
) -> None:
    pieces = part("a", 1, 4, role="squashed", pieces=((1, 2), (4, 4)))
    told = checkpoint("c1", pieces, annotation=annotation("Mend it"), squashed_from=["b1", "b2"])
    build.checkpoint(project, told)
    assert store.checkpoints.of_commits(["c1", "c9"]) == {"c1": told}
    assert store.checkpoints.all() == {"c1": told}
    assert store.checkpoints.of_group(told.group_root) == {"c1": told}
    again = checkpoint("c1", part("a", 1, 3))
    build.checkpoint(project, again)
    assert store.checkpoints.all() == {"c1": again}
    with store.transaction():
        store.checkpoints.remove("c1")
        store.checkpoints.remove("c9")
    assert store.checkpoints.all() == {}


def test_checkpoints_are_found_by_session_name_and_likeness(
    store: SharedStore, build: Build, project: int
) -> None:
    number = store.sessions.numbers([("claude", "a")])["claude", "a"]
    build.checkpoint(project, checkpoint("c1", part("a", 1, 2), patch_id="p", committed_at=5))
    build.checkpoint(project, checkpoint("c2", part("a", 3, 4, cut=3), superseded_by="c3"))
    build.checkpoint(project, checkpoint("m1", is_merge=True))
    found = store.checkpoints
    assert list(found.of_sessions([number])) == ["c1", "c2"]
    assert found.beginning("sha", "c") == ["c1", "c2"]
    assert found.beginning("id", checkpoint_id("c1")[:9]) == ["c1"]
    assert found.beginning("sha", "") == []
    assert found.live(project) == ["c1"]
    assert set(found.like(project, NOW, [])) == {"c2", "m1"}
    assert set(found.like(project, NOW * 2, ["p"])) == {"c1"}
    assert found.kept_since(project, 0, 9) == ["m1", "c1"]
    assert found.rewritten_from(project, ["c3"]) == {"c3": ["c2"]}
    assert found.group_sizes([checkpoint_id("c1"), checkpoint_id("c2")]) == {checkpoint_id("c1"): 1}
    assert found.project_of("c1") == project
    assert found.project_of("c9") is None
    assert found.committed([number]) == {number: 1}
    assert found.cuts(number) == {2, 3}
    assert (found.last_linked(number), found.last_linked(number + 1)) == (4, 0)


def test_a_list_of_commits_needs_titles_and_marks_only(
    store: SharedStore, build: Build, project: int
) -> None:
    build.checkpoint(project, checkpoint("c1", part("a", 1, 2), annotation=annotation("Mend it")))
    build.checkpoint(project, checkpoint("c2", part("a", 3, 4)))
    build.checkpoint(project, checkpoint("c3"))
    assert sorted(store.checkpoints.titles(), key=lambda title: title.sha) == [
        StoryTitle("c1", checkpoint_id("c1"), "Mend it"),
        StoryTitle("c2", checkpoint_id("c2"), "Change c2"),
    ]
    known = store.checkpoints.known(["c1", "c2", "c3"])
    assert {sha: (mark.tag, mark.agents) for sha, mark in known.items()} == {
        "c1": ("BUGFIX", frozenset({"claude"})),
        "c2": (None, frozenset({"claude"})),
    }


def test_what_was_looked_at_is_remembered_with_its_reason(store: SharedStore, project: int) -> None:
    with store.transaction():
        rows = [
            SeenCommit("c1", NOW, NOW, "made by a bot", None),
            SeenCommit("c2", NOW, NOW, None, '[{"agent":"claude"}]'),
        ]
        store.checkpoints.saw(project, rows)
    assert store.checkpoints.seen(["c1", "c2", "c3"]) == {
        "c1": ("made by a bot", []),
        "c2": (None, [{"agent": "claude"}]),
    }
    assert store.checkpoints.project_of("c1") == project


def test_what_people_said_is_kept_and_the_last_word_counts(store: SharedStore) -> None:
    link = OverrideEntry("c1", "claude", "a", "link", NOW)
    notes = [
        NoteEntry("c1", "person", NOW, Note(title="One", intent="why")),
        NoteEntry("c1", "claude", NOW + 1, Note(title="Two")),
    ]
    with store.transaction():
        store.checkpoints.override(link)
        for note in notes:
            store.checkpoints.note(note)
    assert store.checkpoints.notes(["c1", "c2"]) == {
        "c1": ("claude", Note(title="Two", intent="why"))
    }
    assert store.checkpoints.overrides(["c1"]) == {"c1": [("claude", "a", "link")]}
    assert store.checkpoints.said(["c1"]) == store.checkpoints.all_said() == [link, *notes]
    assert store.checkpoints.said(["c2"]) == []


def test_ranges_that_adjoin_share_no_tokens(store: SharedStore, project: int) -> None:
    number = store.sessions.numbers([("claude", "a")])["claude", "a"]
    assert store.checkpoints.spent([(number, 1, 2)]) == Tokens(output=3, unpriced=1)
    assert store.checkpoints.spent([(number, 3, 4)]) == Tokens(output=4, unpriced=1)
    assert store.checkpoints.spent([]) == Tokens()


def test_sessions_taken_off_are_found_by_commit_and_by_session(store: SharedStore) -> None:
    entries = [
        OverrideEntry("c1", "claude", "a", "unlink", 2),
        OverrideEntry("c2", "claude", "a", "unlink", 1),
        OverrideEntry("c1", "codex", "b", "link", 3),
    ]
    with store.transaction():
        for entry in entries:
            store.checkpoints.override(entry)
    assert store.checkpoints.unlinked(["c1", "c9"]) == entries[:1]
    assert store.checkpoints.unlinked_from("claude", "a") == [entries[1], entries[0]]
    with store.transaction():
        store.checkpoints.override(OverrideEntry("c1", "claude", "a", "undo", 4))
    assert store.checkpoints.unlinked(["c1"]) == []

"""Who wrote the lines of commits: kept, and deleted when what it rests on changes."""

from __future__ import annotations

import msgspec

from tests.store.contract.build import NOW, Build, checkpoint, part
from whyfor.model.lines import CommitLines, FileLines, LineRun, LineWriter
from whyfor.store.protocol import Store

WRITER = LineWriter(1, 4, NOW, "toolu_1", 1)
FILE = FileLines("src/a.py", "b" * 40, [WRITER], [LineRun(1, 3, 0, 0), LineRun(7, 1, 0, 5)])
LINES = CommitLines("c1", NOW, NOW + 1000, True, [FILE, FileLines("z.py", "d" * 40, [], [])])


def _save(store: Store, *found: CommitLines) -> None:
    with store.transaction():
        store.lines.save(found)


def test_what_is_saved_is_read_back(store: Store) -> None:
    _save(store, LINES, CommitLines("c2", NOW, NOW, False, []))
    assert store.lines.of_commits(["c1", "c2", "c3"]) == {
        "c1": LINES,
        "c2": CommitLines("c2", NOW, NOW, False, []),
    }
    assert store.lines.size() > 0


def test_one_file_of_a_commit_is_read_alone(store: Store) -> None:
    _save(store, LINES)
    found = store.lines.of_files([("c1", "src/a.py"), ("c1", "gone.py"), ("c9", "src/a.py")])
    assert found == {"c1": msgspec.structs.replace(LINES, files=[FILE])}
    assert found["c1"].files[0].by_line()[3] == (WRITER, "exact")
    assert found["c1"].files[0].by_line()[7] == (WRITER, "modified")


def test_saving_again_replaces(store: Store) -> None:
    _save(store, LINES)
    _save(store, CommitLines("c1", NOW, NOW, False, [FILE]))
    assert store.lines.of_commits(["c1"])["c1"].files == [FILE]
    with store.transaction():
        store.lines.clear()
    assert store.lines.of_commits(["c1"]) == {}


def test_a_link_that_changes_deletes_what_rests_on_it(store: Store, build: Build) -> None:
    build.session("a", build.event("user.prompt", "Fix it"))
    _save(store, LINES, msgspec.structs.replace(LINES, sha="c2"))
    build.checkpoint(1, checkpoint("c1", part("a", 1, 1)))
    assert set(store.lines.of_commits(["c1", "c2"])) == {"c2"}


def test_a_session_that_was_at_work_meanwhile_deletes_what_was_inferred(
    store: Store, build: Build
) -> None:
    sure = msgspec.structs.replace(LINES, sha="c2", inferred=False)
    later = msgspec.structs.replace(LINES, sha="c3", begun_at=NOW + 10**9, committed_at=NOW + 10**9)
    _save(store, LINES, sure, later)
    build.session("b", build.event("user.prompt", "At the same time"))
    assert set(store.lines.of_commits(["c1", "c2", "c3"])) == {"c2", "c3"}


def test_forgetting_a_session_forgets_its_lines(store: Store, build: Build) -> None:
    session = build.session("a", build.event("user.prompt", "Fix it"))
    _save(store, LINES)
    with store.transaction():
        store.forget.empty_session(session)
    assert store.lines.of_commits(["c1"]) == {}

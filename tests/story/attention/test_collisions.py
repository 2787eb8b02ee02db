"""Two sessions in each other's way."""

from __future__ import annotations

from tests.story.attention.session import MINUTE, NOW
from whyfor.story.attention.collisions import Writer, find_collisions


def _writer(name: str, wrote: dict[str, int], **more: object) -> Writer:
    return Writer(name, f"Title of {name}", wrote, "/shop", **more)  # type: ignore[arg-type]


def test_the_later_of_two_who_edit_one_file_is_told() -> None:
    one = _writer("claude:1", {"/shop/a.py": NOW - 5 * MINUTE, "/shop/b.py": NOW})
    two = _writer("codex:2", {"/shop/a.py": NOW - MINUTE})
    found = find_collisions([one, two], NOW)
    assert set(found) == {"codex:2"}
    told = found["codex:2"]
    assert told.fact == "It edited a.py; so did “Title of claude:1” within minutes."
    assert told.others == ("claude:1",)


def test_edits_that_are_long_apart_are_no_collision() -> None:
    one = _writer("claude:1", {"/shop/a.py": NOW - 20 * MINUTE})
    two = _writer("codex:2", {"/shop/a.py": NOW - MINUTE})
    assert find_collisions([one, two], NOW) == {}


def test_commits_of_two_sessions_to_one_branch_collide() -> None:
    place = {"worktree": "/shop", "branch": "main"}
    one = _writer("claude:1", {}, committed_at=NOW - MINUTE, **place)
    two = _writer("codex:2", {}, committed_at=NOW, **place)
    elsewhere = _writer("codex:3", {}, committed_at=NOW, worktree="/shop2", branch="main")
    found = find_collisions([one, two, elsewhere], NOW)
    assert set(found) == {"codex:2"}
    assert "committed to main" in found["codex:2"].fact

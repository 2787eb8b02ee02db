"""Ranges, groups and continuity, from links alone."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from whyfor.model.checkpoints import Part, checkpoint_id
from whyfor.story.links.ranges import (
    EventOutline,
    RangeClaim,
    continue_from,
    group_roots,
    outline,
    parts,
)

# A session: p prompt, a answer, c tool call, r its result; a prompt begins a turn.
KIND = {
    "p": ("user.prompt", "user"),
    "n": ("user.prompt", "system"),
    "a": ("assistant.message", "assistant"),
    "c": ("tool.call", "assistant"),
    "r": ("tool.result", "tool"),
}


def shaped(text: str) -> EventOutline:
    turn = 0
    rows = []
    for seq, letter in enumerate(text, 1):
        kind, actor = KIND[letter]
        turn += kind == "user.prompt"
        rows.append((seq, turn, kind, actor, seq * 1000))
    return outline(rows)


def claim(commit: str, cut: int, *, session: int = 1, why: str = "", **more: Any) -> RangeClaim:
    fields: dict[str, Any] = {
        "evidence": "output",
        "confidence": "high",
        "role": "made",
        "committed_at": cut * 1000,
    }
    fields.update(more)
    return RangeClaim(
        commit=commit, session=session, agent="claude", session_id=f"s{session}", cut=cut, why=why,
        **fields,
    )  # fmt: skip


def ranges(found: dict[str, list[Part]]) -> dict[str, tuple[int, int]]:
    return {commit: (own[0].first, own[0].last) for commit, own in found.items()}


def told(text: str, *claims: RangeClaim) -> dict[str, list[Part]]:
    return parts(claims, {1: shaped(text), 2: shaped(text)})


def test_a_commit_in_mid_turn_has_the_agents_closing_words_too() -> None:
    assert ranges(told("pcrcra", claim("a", 5))) == {"a": (1, 6)}


def test_three_commits_of_one_turn_adjoin_and_share_nothing() -> None:
    found = told("pcrcrcra", claim("a", 3), claim("b", 5), claim("c", 7))
    assert ranges(found) == {"a": (1, 3), "b": (4, 5), "c": (6, 8)}
    assert [own[0].new_messages for own in found.values()] == [1, 0, 1]
    assert [own[0].messages for own in found.values()] == [1, 1, 2]


def test_the_next_turn_begins_where_the_last_checkpoint_ended() -> None:
    assert ranges(told("pcrapcra", claim("a", 3), claim("b", 7))) == {"a": (1, 4), "b": (5, 8)}


def test_the_order_in_which_commits_become_known_does_not_matter() -> None:
    claims = [claim("a", 3), claim("b", 7), claim("c", 5)]
    assert ranges(told("pcrcrcra", *claims)) == ranges(told("pcrcrcra", *reversed(claims)))


def test_one_edit_split_over_two_commits_gives_both_a_range() -> None:
    assert ranges(told("pcra", claim("a", 3), claim("b", 3, committed_at=9000))) == {
        "a": (1, 3),
        "b": (3, 4),
    }


def test_a_copy_shares_the_range_of_what_it_copies() -> None:
    found = told("pcra", claim("a", 3), claim("b", 3, why="same change as a"))
    assert ranges(found) == {"a": (1, 4), "b": (1, 4)}


def test_the_commit_that_took_anothers_place_takes_its_range() -> None:
    found = told("pcrcra", claim("old", 3, replaced_by="new"), claim("new", 5))
    assert ranges(found) == {"old": (1, 6), "new": (1, 6)}


def squash(*sources: str, cut: int = 7, **more: Any) -> RangeClaim:
    return claim("s", cut, role="squashed", sources=sources, committed_at=90_000, **more)


def test_a_squash_has_what_its_sources_have_and_takes_nothing_from_them() -> None:
    found = told("pcrapcra", claim("a", 3), claim("b", 7), squash("a", "b"))
    assert ranges(found) == {"a": (1, 4), "b": (5, 8), "s": (1, 8)}
    assert [own[0].prompts for own in found.values()] == [1, 1, 2]


def test_a_squash_has_nothing_of_a_commit_between_its_sources() -> None:
    found = told("pcrapcrapcra", claim("a", 3), claim("c", 7), claim("b", 11), squash("a", "b"))
    assert found["s"][0].ranges == [(1, 4), (9, 12)]
    assert (found["s"][0].prompts, found["s"][0].new_messages, found["s"][0].turns) == (2, 4, 2)


def test_the_sources_of_a_squash_keep_their_ranges_when_they_are_replaced() -> None:
    old: dict[str, Any] = {"replaced_by": "s"}
    claims = [claim("a", 3, **old), claim("b", 7, **old), squash("a", "b"), claim("c", 11)]
    found = told("pcrapcrapcra", *claims)
    assert ranges(found) == {"a": (1, 4), "b": (5, 8), "s": (1, 8), "c": (9, 12)}


def test_a_squash_that_the_session_made_itself_has_that_request_too() -> None:
    own = claim("s", 11, sources=("a", "b"))
    found = told("pcrapcrapcra", claim("a", 3), claim("b", 7), own)
    assert ranges(found) == {"a": (1, 4), "b": (5, 8), "s": (1, 12)}


def test_strongest_evidence_stands_first() -> None:
    found = told(
        "pcra",
        claim("a", 3, session=2, evidence="content", lines=9),
        claim("a", 3, evidence="hook"),
    )
    assert [part.evidence for part in found["a"]] == ["hook", "content"]


def test_turns_counts_those_the_range_has_a_part_of() -> None:
    found = told("pcrapcrapcra", claim("a", 3), claim("b", 11))
    assert [own[0].turns for own in found.values()] == [1, 2]
    assert [own[0].prompts for own in found.values()] == [1, 2]


# -- groups --------------------------------------------------------------------------------------


def roots(text: str, *claims: RangeClaim) -> dict[str, str]:
    return group_roots(told(text, *claims))


def test_commits_of_one_turn_are_one_group() -> None:
    assert set(roots("pcrcrcra", claim("a", 3), claim("b", 5), claim("c", 7)).values()) == {
        checkpoint_id("a")
    }


def test_a_new_request_is_a_new_group() -> None:
    assert roots("pcrapcra", claim("a", 3), claim("b", 7)) == {c: checkpoint_id(c) for c in "ab"}


def test_a_notice_from_the_system_is_no_request() -> None:
    assert roots("pcrancra", claim("a", 3), claim("b", 7)) == dict.fromkeys(
        "ab", checkpoint_id("a")
    )


def test_a_group_follows_the_session_with_the_strongest_evidence() -> None:
    found = roots(
        "pcrcra",
        claim("a", 3),
        claim("b", 3, session=2),
        claim("c", 5),
        claim("c", 5, session=2, evidence="content"),
    )
    assert found["c"] == checkpoint_id("a")


# -- continuity ----------------------------------------------------------------------------------


def test_a_part_is_continued_if_a_parent_has_the_same_session() -> None:
    found = told("pcrcra", claim("a", 3), claim("b", 5))
    assert [part.continued for part in continue_from(found["b"], [found["a"]])] == [True]
    assert [part.continued for part in continue_from(found["a"], [])] == [False]


# -- always --------------------------------------------------------------------------------------


@given(st.lists(st.sampled_from("pacrn"), min_size=1, max_size=60), st.data())
def test_ranges_never_overlap_and_hold_their_cuts(letters: list[str], data: st.DataObject) -> None:
    size = len(letters)
    cuts = data.draw(st.lists(st.integers(1, size), unique=True, max_size=12))
    found = told("".join(letters), *[claim(f"c{cut}", cut) for cut in cuts])
    covered: list[int] = []
    for own in found.values():
        part = own[0]
        assert 1 <= part.first <= part.cut <= part.last <= size
        assert 0 <= part.new_messages <= part.messages
        covered += range(part.first, part.last + 1)
    assert len(covered) == len(set(covered))
    assert _messages(found) <= sum(letter in "pan" for letter in letters)


def _messages(found: dict[str, list[Part]]) -> int:
    own: Iterable[Part] = (parts[0] for parts in found.values())
    return sum(part.new_messages for part in own)


@pytest.mark.parametrize("when, seq", [(0, 1), (1500, 1), (3000, 3), (99_000, 6)])
def test_a_moment_is_found_in_the_session(when: int, seq: int) -> None:
    assert shaped("pcrcra").at(when) == seq

"""Who wrote which line: the last writer, neighbours for what says little, and nobody where
nobody is known."""

from __future__ import annotations

import pytest

from whyfor.story.links.activity import WrittenEdit
from whyfor.story.links.attribution import FileWrite, LineAuthor, attribute, traced
from whyfor.story.links.line_keys import LineKeys, keys

PATH = "/code/shop/a.py"


def _wrote(at: int, added: str = "", removed: str = "", kind: str = "edit") -> FileWrite:
    came, went = keys(added.split("\n")), keys(removed.split("\n"))
    return FileWrite.of(WrittenEdit(at, at, None, PATH, came, went, kind))


def _who(lines: str, *writes: tuple[int, FileWrite]) -> list[int | None]:
    (found,) = attribute([LineKeys.of(lines.split("\n"))], writes)
    return [pen.session if pen else None for pen in found]


def test_who_wrote_a_line_last_has_it() -> None:
    line = "total = compute(order)"
    (found,) = attribute([LineKeys.of([line])], [(0, _wrote(1, line)), (1, _wrote(5, line))])
    assert found == [LineAuthor(1, 5, 5)]


def test_white_space_does_not_matter() -> None:
    assert _who("\ttotal   = compute(order)", (0, _wrote(1, "  total = compute(order)"))) == [0]


def test_a_line_that_was_taken_away_again_is_nobodys() -> None:
    line = "total = compute(order)"
    assert _who(line, (0, _wrote(1, line)), (0, _wrote(2, removed=line))) == [None]
    assert _who(line, (0, _wrote(1, line)), (0, _wrote(2, removed=line)), (1, _wrote(3, line))) == [
        1
    ]


def test_an_edit_that_keeps_a_line_does_not_take_it_away() -> None:
    line = "total = compute(order)"
    assert _who(
        line, (0, _wrote(1, line)), (0, _wrote(2, added=line + "\nmore = 1", removed=line))
    ) == [0]


def test_a_line_no_session_wrote_is_nobodys() -> None:
    assert _who(
        "total = compute(order)\nother = compute(cart)", (0, _wrote(1, "total = compute(order)"))
    ) == [0, None]


def test_brackets_and_blank_lines_go_with_their_neighbours() -> None:
    code = "total = compute(\n    order_of_today,\n)\n\nother = compute(cart)"
    assert _who(code, (0, _wrote(1, code))) == [0, 0, 0, 0, 0]


def test_a_bracket_beside_a_persons_line_is_not_the_agents() -> None:
    wrote = _wrote(1, "total = compute(order)\n)")
    assert _who("by_hand = compute(something)\n)\nby_hand_too = compute(more)", (0, wrote)) == [
        None,
        None,
        None,
    ]


def test_a_blank_line_between_two_sessions_is_nobodys() -> None:
    one, two = "total = compute(order)", "other = compute(cart)"
    assert _who(f"{one}\n\n{two}", (0, _wrote(1, one)), (1, _wrote(2, two))) == [0, None, 1]


def test_a_lone_bracket_is_its_writers_and_a_lone_blank_line_nobodys() -> None:
    assert _who(")", (0, _wrote(1, ")"))) == [0]
    assert _who("", (0, _wrote(1, "total = compute(order)"))) == [None]


def test_ten_thousand_brackets_take_no_longer_than_they_must() -> None:
    code = "\n".join(["total = compute(order)", *["}"] * 20_000, "other = compute(cart)"])
    assert set(_who(code, (0, _wrote(1, code)))) == {0}


@pytest.mark.parametrize(
    "command",
    [
        "git add -A && git commit -m 'Keys'",
        "ls -la | grep py",
        "python -m pytest -q",
        "cd src; sed -n 1,40p a.py",
        "A=1 rg x",
    ],
)
def test_what_only_reads_tests_or_commits_leaves_no_line(command: str) -> None:
    assert traced([command])


@pytest.mark.parametrize(
    "command",
    [
        "make format",
        "black .",
        "echo x > a.py",
        "git checkout -- a.py",
        "ls && ruff format",
        "python fix.py",
        "sed -i s/a/b/ a.py",
        "cat a | tee b",
    ],
)
def test_what_may_write_without_a_trace_is_no_proof_for_a_person(command: str) -> None:
    assert not traced(["git status", command])

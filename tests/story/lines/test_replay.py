"""Whose a line is after edits, people and formatters; and that nothing is claimed that was not
written."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from whyfor.story.lines.carry import BASE, UNKNOWN, carry
from whyfor.story.lines.compare import same_blocks
from whyfor.story.lines.replay import (
    LINES_MAX,
    claim_blanks,
    claim_blocks,
    claim_moved,
    replay,
    settle_slides,
)
from whyfor.story.lines.text_edits import EditPiece, TextEdit, text_lines
from whyfor.story.links.activity import WrittenEdit
from whyfor.story.links.attribution import FileWrite
from whyfor.story.links.line_keys import keys

BEFORE = """import os


def total(order):
    return sum(order)


def owed(order):
    return total(order) - paid(order)
"""


def _edit(old: str, new: str, line: int | None = None) -> TextEdit:
    return TextEdit("a.py", (EditPiece(tuple(text_lines(old)), tuple(text_lines(new)), line),))


def _inline(old: str, new: str, *, every: bool = False) -> TextEdit:
    piece = EditPiece(tuple(old.split("\n")), tuple(new.split("\n")), every=every, inline=True)
    return TextEdit("a.py", (piece,))


def _told(base: str, edits: list[TextEdit], final: str, recent: int = 0) -> dict[str, str]:
    """By line, what is said of it: the number of an edit and the evidence; nothing for what was
    there before."""
    lines = text_lines(final)
    found = replay(text_lines(base), edits, lines, recent=recent).lines
    said = {}
    for text, line in zip(lines, found, strict=True):
        if line.owner != BASE:
            said[text] = "?" if line.owner == UNKNOWN else f"{line.owner} {line.evidence}"
    return said


ROUND = _edit("    return sum(order)", "    found = sum(order)\n    return round(found, 2)")
AFTER = BEFORE.replace(
    "    return sum(order)\n", "    found = sum(order)\n    return round(found, 2)\n"
)


def test_the_lines_of_an_edit_are_its_own_and_the_rest_was_there() -> None:
    assert _told(BEFORE, [ROUND], AFTER) == {
        "    found = sum(order)": "0 exact",
        "    return round(found, 2)": "0 exact",
    }


def test_what_an_edit_repeats_is_not_its_own() -> None:
    again = _edit(
        "def total(order):\n    return sum(order)", "def total(order):\n    return max(order)"
    )
    final = BEFORE.replace("sum(order)", "max(order)")
    assert _told(BEFORE, [again], final) == {"    return max(order)": "0 exact"}


def test_a_line_a_person_put_in_is_nobodys() -> None:
    final = AFTER.replace(
        "    return round", "    # to the cent, as the till does\n    return round"
    )
    assert _told(BEFORE, [ROUND], final)["    # to the cent, as the till does"] == "?"


def test_a_formatters_spaces_breaks_and_quotes_change_no_owner() -> None:
    wrote = _edit(
        "import os", "import os\ncall = ask( 'a word of mine',1, second_value , third_value)"
    )
    final = BEFORE.replace(
        "import os\n",
        'import os\ncall = ask(\n    "a word of mine",\n    1,\n    second_value,\n    third_value,\n)\n',
    )
    assert set(_told(BEFORE, [wrote], final).values()) == {"0 reformatted"}


def test_a_line_a_person_changed_a_little_is_modified_and_a_new_one_is_not() -> None:
    final = AFTER.replace("round(found, 2)", "round(found, 4)")
    assert _told(BEFORE, [ROUND], final)["    return round(found, 4)"] == "0 modified"
    other = AFTER.replace("    return round(found, 2)", "    raise NotImplementedError")
    assert _told(BEFORE, [ROUND], other)["    raise NotImplementedError"] == "?"


def test_half_a_line_that_is_gone_is_no_matter_of_format() -> None:
    final = AFTER.replace("round(found, 2)", "round(found)")
    assert _told(BEFORE, [ROUND], final)["    return round(found)"] == "0 modified"


def test_a_persons_copy_of_a_line_is_not_the_agents() -> None:
    lines = text_lines(AFTER)
    lines.append("    found = sum(order)")
    found = replay(text_lines(BEFORE), [ROUND], lines).lines
    assert found[-1].owner == UNKNOWN
    assert found[4].owner == 0


def test_a_block_that_a_person_moved_stays_the_agents() -> None:
    wrote = _edit("import os", "import os\n\none = first()\ntwo = second()\nthree = third()")
    final = BEFORE + "\none = first()\ntwo = second()\nthree = third()\n"
    said = _told(BEFORE, [wrote], final)
    assert [said[f"{name} = {call}()"] for name, call in (("one", "first"), ("two", "second"))] == [
        "0 moved",
        "0 moved",
    ]


def test_a_short_line_that_appears_elsewhere_was_not_moved() -> None:
    wrote = _edit("import os", "import os\nx = 1")
    assert _told(BEFORE, [wrote], BEFORE + "x = 1\n")["x = 1"] == "?"


def test_the_same_line_written_in_two_turns_is_each_turns_own() -> None:
    one = _edit("import os", "import os\nlog('here we are now')")
    two = _edit("def owed(order):", "log('here we are now')\ndef owed(order):")
    final = BEFORE.replace("import os\n", "import os\nlog('here we are now')\n")
    final = final.replace("def owed", "log('here we are now')\ndef owed")
    found = replay(text_lines(BEFORE), [one, two], text_lines(final)).lines
    assert [line.owner for line in found if line.owner >= 0] == [0, 1]


def test_an_edit_finds_its_place_after_a_person_and_a_formatter_were_there() -> None:
    between = BEFORE.replace("def owed(order):", "def owed(\n    order,\n):")
    two = _edit("def owed(\n    order,", "def owed(\n    order,\n    paid_already=0,")
    final = between.replace("    order,\n", "    order,\n    paid_already=0,\n")
    assert _told(BEFORE, [two], final)["    paid_already=0,"] == "0 exact"


def test_an_edit_whose_lines_are_half_changed_is_placed_where_the_others_are() -> None:
    near = EditPiece(
        ("def owed(order):", "    # a person wrote this", "    return total(order) - paid(order)"),
        ("def owed(order):", "    # a person wrote this", "    return max(0, total(order))"),
        line=8,
    )
    final = BEFORE.replace(
        "    return total(order) - paid(order)",
        "    # a person wrote this\n    return max(0, total(order))",
    )
    said = _told(BEFORE, [TextEdit("a.py", (near,))], final)
    assert said == {"    # a person wrote this": "?", "    return max(0, total(order))": "0 exact"}


def test_text_in_the_middle_of_a_line_and_everywhere() -> None:
    final = BEFORE.replace("order", "basket")
    assert set(_told(BEFORE, [_inline("order", "basket", every=True)], final).values()) == {
        "0 exact"
    }
    once = _inline("sum(order)\n\n", "sum(order)  # all of it\n\n")
    assert _told(BEFORE, [once], BEFORE.replace("sum(order)", "sum(order)  # all of it")) == {
        "    return sum(order)  # all of it": "0 exact"
    }


def test_a_whole_file_claims_only_what_is_new_in_it() -> None:
    final = BEFORE + "\nprint(owed([]))\n"
    whole = TextEdit("a.py", whole=tuple(text_lines(final)))
    assert _told(BEFORE, [whole], final)["print(owed([]))"] == "0 exact"
    assert "import os" not in _told(BEFORE, [whole], final)
    assert set(_told("", [whole], final).values()) == {"0 exact"}


def test_what_a_shell_command_wrote_says_so() -> None:
    added = TextEdit("a.py", added=("print('done')",), shell=True)
    assert _told(BEFORE, [added], BEFORE + "print('done')\n") == {"print('done')": "0 shell"}


def test_an_edit_that_the_text_has_already_claims_nothing() -> None:
    assert _told(AFTER, [ROUND], AFTER, recent=1) == {}


def test_an_edit_without_a_place_is_compared_by_its_lines() -> None:
    lost = _edit("nothing like it stands here at all", "value = compute(everything)")
    final = ["value = compute(everything)", "", "other = compute(nothing)"]
    found = replay([], [lost], final)
    assert found.unplaced == [0]
    act = WrittenEdit(1, 1, None, "a.py", keys(["value = compute(everything)"]))
    claim_blocks(final, found.lines, range(3), [(0, FileWrite.of(act))])
    assert [(line.owner, line.evidence) for line in found.lines] == [
        (0, "block"),
        (UNKNOWN, ""),
        (UNKNOWN, ""),
    ]


def test_lines_that_are_gone_from_one_file_are_found_in_another() -> None:
    line = "value = compute(everything, at_once)"
    found = replay([], [TextEdit("a.py", whole=(line, "x"))], ["x"])
    assert (line.replace(" ", "").replace("(", "").replace(")", "").replace(",", ""), 0) in (
        found.gone
    )
    gone = {text: [owner] for text, owner in found.gone}
    there = replay([], [], [line, line])
    claim_moved([line, line], there.lines, [0, 1], gone)
    assert [(one.owner, one.evidence) for one in there.lines] == [(0, "moved"), (UNKNOWN, "")]


def test_a_formatters_blank_line_goes_with_the_lines_around_it() -> None:
    final = ["one = 1", "", "two = 2", ""]
    lines = replay([], [TextEdit("a.py", whole=("one = 1", "two = 2"))], final).lines
    claim_blanks(final, lines, {0, 1, 2, 3})
    assert [line.owner for line in lines] == [0, 0, 0, UNKNOWN]


def test_of_two_equal_lines_the_one_git_calls_added_is_the_edits() -> None:
    final = ["}", "", "}"]
    found = replay(["}"], [_edit("}", "}\n\n}")], final).lines
    owners = [line.owner for line in found]
    git_says = {owners.index(BASE), owners.index(BASE) + (1 if owners[0] == BASE else -1)}
    settle_slides(final, found, git_says)
    assert all(found[at].owner == 0 for at in git_says)


def test_a_huge_file_is_not_replayed_and_says_so() -> None:
    lines = [str(n) for n in range(LINES_MAX + 1)]
    found = replay([], [TextEdit("a.py", whole=tuple(lines))], lines)
    assert not found.replayed
    assert {line.owner for line in found.lines} == {UNKNOWN}


# -- properties ----------------------------------------------------------------------------------

_LINES = st.lists(
    st.sampled_from(["a", "b = 1", "", "}", "long_name = compute(value)"]), max_size=12
)


@given(_LINES, _LINES)
def test_blocks_are_equal_in_order_and_never_overlap(old: list[str], new: list[str]) -> None:
    at = to = 0
    for block in same_blocks(old, new):
        assert block.old >= at
        assert block.new >= to
        size = block.size
        assert old[block.old : block.old + size] == new[block.new : block.new + size]
        at, to = block.old + size, block.new + size


@given(_LINES)
def test_the_same_text_keeps_every_owner(lines: list[str]) -> None:
    found = carry(lines, range(len(lines)), lines)
    assert [line.owner for line in found] == list(range(len(lines)))


@given(_LINES, _LINES)
def test_every_line_has_one_owner_and_no_old_line_two_exact_heirs(
    old: list[str], new: list[str]
) -> None:
    found = carry(old, range(len(old)), new)
    assert len(found) == len(new)
    heirs = [line.owner for line in found if line.evidence in ("exact", "moved")]
    assert len(heirs) == len(set(heirs))


@settings(max_examples=60)
@given(_LINES, st.lists(st.tuples(st.integers(0, 12), st.integers(0, 3), _LINES), max_size=5))
def test_edits_that_are_committed_as_they_are_own_what_they_put_in(
    base: list[str], plan: list[tuple[int, int, list[str]]]
) -> None:
    text = list(base)
    edits = []
    for at, size, new in plan:
        at = min(at, len(text))
        piece = EditPiece(tuple(text[at : at + size]), tuple(new), at + 1)
        text[at : at + size] = new
        edits.append(TextEdit("a", (piece,)))
    found = replay(base, edits, text)
    assert found.unplaced == []
    # no line is claimed that no edit put in, and none is lost to nobody
    wrote = {line for edit in edits for line in edit.pieces[0].new}
    for line, text_line in zip(found.lines, text, strict=True):
        assert line.owner != UNKNOWN
        assert line.owner == BASE or text_line in wrote


@given(_LINES, _LINES)
def test_without_edits_nothing_is_claimed(base: list[str], final: list[str]) -> None:
    assert all(line.owner < 0 for line in replay(base, [], final).lines)

"""Plain texts are laid out without rich, and look as if it had done it."""

from __future__ import annotations

import random
import re

import pytest
from rich.cells import cell_len
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.segment import Segment
from rich.text import Text

from whyfor.cli.console import CleanConsole
from whyfor.cli.quick_text import _PLAIN, quick_lines

STYLES = ("", "bold", "dim", "green", "markdown.code")
PIECES = ["a", "word", "longer-word", " ", "  ", "\n", "→", "“quoted”", "x" * 30, "· ", ",", "…"]


def random_text(chance: random.Random) -> Text:
    text = Text(style=chance.choice(STYLES), justify=chance.choice((None, "left")))
    for _ in range(chance.randrange(1, 12)):
        words = "".join(chance.choices(PIECES, k=chance.randrange(1, 6)))
        text.append(words, style=chance.choice(STYLES))
    return text


def looks(console: Console, shown: RenderableType) -> list[tuple[str, str]]:
    """Every character that is printed, and how it is styled."""
    with console.capture() as captured:
        console.print(shown)
    found, style = [], ""
    for sequence, character in re.findall(r"\x1b\[([\d;]*)m|(.)", captured.get(), re.S):
        if character:
            found.append((style, character))
        else:
            style = "" if sequence == "0" else sequence
    return found


@pytest.mark.parametrize("width", [1, 7, 20, 80])
def test_a_plain_text_looks_as_rich_would_lay_it_out(width: int) -> None:
    chance = random.Random(width)
    console = CleanConsole(width=width, color_system="truecolor", force_terminal=True)
    rich = Console(width=width, color_system="truecolor", force_terminal=True)
    quick = 0
    for _ in range(150):
        text = random_text(chance)
        quick += bool(quick_lines(console, text, width))
        padded = Padding(text, (0, 0, 0, 3), expand=False)
        for shown in (text, padded):
            assert looks(console, shown) == looks(rich, shown), repr(text.plain)
    assert quick > 140  # else nothing was compared


def test_what_is_wide_or_odd_is_left_to_rich() -> None:
    console = CleanConsole(width=20)
    for words in ("日本", "✅ done", "a\tb", "é", ""):
        assert quick_lines(console, Text(words), 20) is None
    overlapping = Text("some words")
    overlapping.stylize("bold", 0, 6)
    overlapping.stylize("dim", 3, 8)
    assert quick_lines(console, overlapping, 20) is None
    assert quick_lines(console, Text("plain"), 20) == [[Segment("plain", console.get_style(""))]]


def test_every_plain_character_is_one_column_wide() -> None:
    plain = [chr(code) for code in range(32, 0x2800) if _PLAIN.fullmatch(chr(code))]
    assert len(plain) > 100
    assert {cell_len(character) for character in plain} == {1}

"""A terminal that is attacked: strings that act on one, and a detector of everything that is not
our own styling."""

from __future__ import annotations

import io
import re
import unicodedata
from typing import Any

# By what they are; each stands in a session of its own, in every name a transcript holds.
ATTACKS = {
    "clipboard (OSC 52)": "\x1b]52;c;b3duZWQ=\x07",
    "window title (OSC 0)": "\x1b]0;owned\x1b\\",
    "link (OSC 8)": "\x1b]8;;https://evil.example\x07link\x1b]8;;\x07",
    "OSC without an end": "\x1b]0;never ended",
    "CSI": "\x1b[2J\x1b[8m\x1b[3;1H",
    "DCS, SOS, PM, APC": "\x1bP+q54\x1b\\\x1bXa\x1b\\\x1b^b\x1b\\\x1b_c\x1b\\",
    "two bytes": "\x1bc\x1b7\x1b(0",
    "C1": "\x9b2J\x9d0;owned\x9c\x90q\x9c\x85",
    "C0 and DEL": "\x00\x07\x08\x0b\x0c\r\x1a\x7f",
    "directions": "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069",
    "separators": "\u2028FORGED\u2029FORGED",
    "zero width": "\u200b\u200c\u200d\u2060\u2064\ufeff\u180e\u00ad",
    "tags": "\U000e0001\U000e0041\U000e007f",
    "variation selectors": "a\ufe00\ufe0f\U000e0100",
    "interlinear and fillers": "\ufff9\ufffa\ufffb\u3164\u115f",
    "noncharacters": "\ufdd0\ufffe\uffff\U0010ffff",
}
LINE = "\nFORGED"  # what follows would be a line of ours
# Rich's own: colours and weights (none that blinks or conceals), a bar drawn again, the cursor
# hidden meanwhile.
_CODE = r"(?:[0-4]|7|9|2[1-9]|3[0-79]|4[0-79]|9[0-7]|10[0-7]|[34]8;5;\d{1,3}|[34]8;2;\d{1,3};\d{1,3};\d{1,3})"
_STYLE = re.compile(rf"\x1b\[(?:{_CODE}(?:;{_CODE})*)?m")
_BAR = re.compile(r"\x1b\[(?:\?25[lh]|2K|1A)|\r")
# What `top` draws with: modes, cursor, erasing, the terminal's answers asked for, the mouse's usual
# shape.
_SCREEN = re.compile(
    r"\x1b\[(?:[<>=?]?[0-9;]*[hlupcq]|[0-9;]*[HABCDJK]|\?[0-9;$]*p)|\r|\x1b[=>]|\x1b]22;default\x07"
)
_SHAPELESS = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\uffa0\ufe00-\ufe0f\U000e0000-\U000e0fff]"
)


class Terminal(io.TextIOWrapper):
    """A stream that says it is a terminal, and keeps what is written to it."""

    def __init__(self) -> None:
        self.bytes = io.BytesIO()
        super().__init__(
            self.bytes, encoding="utf-8", errors="surrogatepass", newline="", write_through=True
        )

    def isatty(self) -> bool:
        return True

    @property
    def text(self) -> str:
        self.flush()
        return self.bytes.getvalue().decode("utf-8", "surrogatepass")


def foreign(output: str, *, bars: bool = False, screen: bool = False) -> list[str]:
    """Every character that acts or hides and is no part of our own sequences, with what stands
    around it."""
    rest = _STYLE.sub("", output)
    if bars:
        rest = _BAR.sub("", rest)
    if screen:
        rest = _SCREEN.sub("", rest)
    return [
        f"U+{ord(c):04X} in {rest[max(0, at - 30) : at + 30]!r}"
        for at, c in enumerate(rest)
        if _acts(c)
    ]


def forged(output: str) -> list[str]:
    """Lines that begin with what a name held after a line feed."""
    lines = re.split(r"[\n\r]", _STYLE.sub("", output))
    return [line for line in lines if line.lstrip().startswith("FORGED")]


def _acts(character: str) -> bool:
    if character in "\n\t":
        return False
    if unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp") or _SHAPELESS.match(
        character
    ):
        return True
    return ord(character) & 0xFFFE == 0xFFFE or 0xFDD0 <= ord(character) <= 0xFDEF


def walk(value: Any) -> list[str]:
    """All strings of a JSON document."""
    if isinstance(value, dict):
        return [text for key, each in value.items() for text in (key, *walk(each))]
    if isinstance(value, list):
        return [text for each in value for text in walk(each)]
    return [value] if isinstance(value, str) else []

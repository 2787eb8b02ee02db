"""Characters that act on whoever shows them, or cannot be seen: one table for terminal, pages,
exports and notices.

Text is shown in one of three ways, and the table says for each class of characters what becomes
of it:

- prose (what people and agents wrote): what has no place in prose is taken out, so that it can be
  read
- a name (a branch, a path, a model, an error message): what is hidden in it is named, as ⟨U+200B⟩,
  so that
  two different names never look the same
- code (a diff, a command somebody has to allow): everything without a shape of its own is named,
  also joiners and
  odd spaces that are harmless in prose, because there they change what the code does (Trojan
  Source); an emoji is
  seen as what it is and stays whole

Line feed and tab are text in all three. A carriage return before a line feed belongs to it.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from functools import cache, cached_property
from typing import NamedTuple


class CharacterClass(NamedTuple):
    """A set of characters that are treated alike."""

    name: str
    ranges: tuple[tuple[int, int], ...]
    in_prose: str | None  # the replacement; None: it stays, in prose and in names
    why: str


TABLE = (
    CharacterClass(
        "control characters (C0, DEL)",
        ((0x00, 0x08), (0x0B, 0x1F), (0x7F, 0x7F)),
        "",
        "A terminal obeys them: ESC begins a command to it, CR and BS overwrite what was read.",
    ),
    CharacterClass(
        "control characters (C1)",
        ((0x80, 0x9F),),
        "",
        "The same commands in one character: U+009B is ESC [, U+009D is ESC ].",
    ),
    CharacterClass(
        "direction controls, isolates and marks",
        ((0x061C, 0x061C), (0x200E, 0x200F), (0x202A, 0x202E), (0x2066, 0x2069)),
        "",
        "They make text look like other text. Arabic and Hebrew are laid out without them.",
    ),
    CharacterClass(
        "line and paragraph separators",
        ((0x2028, 0x2029),),
        "\n",
        "Some programs end a line there and some do not: a line feed is what they mean.",
    ),
    CharacterClass(
        "zero-width characters",
        (
            (0x00AD, 0x00AD),
            (0x034F, 0x034F),
            (0x17B4, 0x17B5),
            (0x180E, 0x180E),
            (0x200B, 0x200D),
            (0x2060, 0x2065),
            (0x206A, 0x206F),
            (0xFEFF, 0xFEFF),
        ),
        "",
        "Nobody sees them, and names that differ only by them look the same. Joiners stay where a "
        "script or an "
        "emoji needs them: see _PICTURES and _JOINED.",
    ),
    CharacterClass(
        "letters without a shape",
        ((0x115F, 0x1160), (0x3164, 0x3164), (0xFFA0, 0xFFA0)),
        "",
        "Fillers of old Hangul: letters to a compiler, nothing to the eye.",
    ),
    CharacterClass(
        "variation selectors",
        ((0x180B, 0x180D), (0x180F, 0x180F), (0xFE00, 0xFE0F), (0xE0100, 0xE01EF)),
        "",
        "256 of them can carry any bytes unseen. Those of emoji and of Mongolian stay: see "
        "_PICTURES and _JOINED.",
    ),
    CharacterClass(
        "tags",
        ((0xE0000, 0xE00FF), (0xE01F0, 0xE0FFF)),
        "",
        "ASCII that only machines read. The flags of England, Scotland and Wales stay: see "
        "_PICTURES.",
    ),
    CharacterClass(
        "interlinear annotations",
        ((0xFFF0, 0xFFFB),),
        "",
        "They hide a text behind another.",
    ),
    CharacterClass(
        "controls of notations",
        ((0x13430, 0x1343F), (0x1BCA0, 0x1BCA3), (0x1D173, 0x1D17A)),
        "",
        "Of hieroglyphs, shorthand and music; without a shape, and no terminal lays them out.",
    ),
    CharacterClass(
        "lone surrogates",
        ((0xD800, 0xDFFF),),
        "\ufffd",
        "Half a character, or a byte of a file's name that is no UTF-8: it cannot be written out.",
    ),
    CharacterClass(
        "noncharacters",
        (
            (0xFDD0, 0xFDEF),
            *((plane | 0xFFFE, plane | 0xFFFF) for plane in range(0, 0x110000, 0x10000)),
        ),
        "\ufffd",
        "Never text; some programs end at them.",
    ),
    CharacterClass(
        "other spaces",
        (
            (0xA0, 0xA0),
            (0x1680, 0x1680),
            (0x2000, 0x200A),
            (0x202F, 0x202F),
            (0x205F, 0x205F),
            (0x2800, 0x2800),
            (0x3000, 0x3000),
        ),
        None,
        "Seen as a space, which is what they are; in code they are none.",
    ),
    CharacterClass(
        "private use",
        ((0xE000, 0xF8FF), (0xF0000, 0xFFFFD), (0x100000, 0x10FFFD)),
        None,
        "Symbols of a font; harmless to a terminal, but nobody can say what is seen.",
    ),
)

# the text of an operating system command and the like; it ends where another sequence begins
_STRING = r"[^\x07\x18\x1a\x1b\x80-\x9f]*"
# Escape sequences as a whole: in prose their text is removed with them. Of an unfinished sequence
# only the beginning is removed; the rest is text.
_SEQUENCE = (
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # CSI
    rf"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f]){_STRING}(?:\x07|\x1b\\|\x9c)"  # OSC, DCS, SOS, PM, APC
    r"|\x1b[ -/]+[0-~]"  # a character set, and others of three bytes
    r"|\x1b[0-~]"  # two bytes
)
_EMOJI = (
    "[\u00a9\u00ae\u203c\u2049\u2122\u2139\u2190-\u21ff\u2300-\u23ff\u24c2\u25a0-\u27bf\u2934\u2935\u2b00-\u2bff"
    "\u3030\u303d\u3297\u3299\U0001f000-\U0001faff]"
)
_PICTURE = f"{_EMOJI}[\ufe0e\ufe0f]?[\U0001f3fb-\U0001f3ff]?"
# Scripts that join letters: Arabic, Syriac, N'Ko, those of India, Tibetan, Burmese, Khmer,
# Mongolian.
_JOINING = "[\u0620-\u07ff\u0840-\u08ff\u0900-\u0dff\u0f00-\u109f\u1780-\u17d3\u1820-\u18aa]"
_REGIONS = "|".join(
    "".join(chr(0xE0000 + ord(letter)) for letter in name) for name in ("gbeng", "gbsct", "gbwls")
)


# Text that stays whole although it contains hidden characters: in all three ways,
_PICTURES = (
    f"\U0001f3f4(?:{_REGIONS})\U000e007f",  # three flags
    "[0-9#*]\ufe0f?\u20e3",  # keycaps
    f"{_PICTURE}(?:\u200d{_PICTURE})*",  # families, professions, coloured hearts
)
# and in prose and names.
_JOINED = (
    f"(?<={_JOINING})[\u200c\u200d](?![\u200c\u200d])",  # Persian, Hindi
    "(?<=[\u1820-\u18aa])[\u180b-\u180f]",  # Mongolian
)


# -- the three ways ------------------------------------------------------------------------------


def clean_prose(text: str) -> str:
    """Return the text without escape sequences and without what the table takes out of prose."""
    return _replaced(remove_sequences(text), _prose_instead, _in_names())


def show_hidden(text: str) -> str:
    """Return a name, or several lines that contain names, with hidden characters shown by
    number."""
    if text.isascii() and text.isprintable():
        return text
    return _replaced(text.replace("\r\n", "\n"), name, _in_names())


def show_code(text: str) -> str:
    """Return code with every invisible character shown by number."""
    return _replaced(text.replace("\r\n", "\n"), name, _in_code())


def split_code(text: str) -> Iterator[tuple[str, bool]]:
    """Yield the pieces of code, each with whether it is an invisible character."""
    end = 0
    text = text.replace("\r\n", "\n")
    for found in _in_code().either.finditer(text):
        if found["kept"] is not None:
            continue
        if found.start() > end:
            yield text[end : found.start()], False
        yield found[0], True
        end = found.end()
    if end < len(text):
        yield text[end:], False


def remove_sequences(text: str) -> str:
    """Return the text without escape sequences; other control characters stay, to be shown."""
    text = text.replace("\r\n", "\n")
    if not _begins_sequence().search(text):
        return text
    return _sequence().sub("", text)


def escape_json(text: str) -> str:
    """Return a JSON document with hidden characters written as \\uXXXX; its meaning stays the
    same."""
    patterns = _in_names()
    return patterns.hidden.sub(_escaped, text) if patterns.hides(text) else text


# -- one character -------------------------------------------------------------------------------


def name(character: str) -> str:
    """Return how a hidden character is shown: ␛, ⟨U+200B⟩."""
    code = ord(character)
    if code < 0x20:
        return chr(0x2400 + code)
    return "␡" if code == 0x7F else f"⟨U+{code:04X}⟩"


def class_of(character: str) -> CharacterClass | None:
    """Return the class of a character; None for ordinary text."""
    starts, found = _sorted()
    at = bisect_right(starts, ord(character)) - 1
    if at < 0 or ord(character) > found[at][0]:
        return None
    return found[at][1]


def _prose_instead(character: str) -> str:
    found = class_of(character)
    assert found is not None
    return found.in_prose or ""


def _escaped(found: re.Match[str]) -> str:
    units = found[0].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))


def _replaced(text: str, instead: Callable[[str], str], patterns: _Patterns) -> str:
    """Return the text with every hidden character replaced, except inside kept sequences. Works
    line by line, because few lines contain any."""
    if not patterns.hides(text):
        return text

    def replace(found: re.Match[str]) -> str:
        return found[0] if found["kept"] is not None else instead(found[0])

    lines = text.split("\n")
    return "\n".join(
        patterns.either.sub(replace, line) if patterns.hides(line) else line for line in lines
    )


class _Patterns:
    """Patterns for hidden characters and for the sequences in which they are kept."""

    def __init__(self, classes: list[CharacterClass], kept: tuple[str, ...]) -> None:
        ranges = [each for one in classes for each in one.ranges]
        self._all = _set(ranges)
        self._kept = kept
        self._below = re.compile(_set([each for each in ranges if each[1] <= 0xFFFF]))
        self._above = re.compile("[\U00010000-\U0010ffff]")

    @cached_property
    def hidden(self) -> re.Pattern[str]:
        """One hidden character."""
        return re.compile(self._all)

    @cached_property
    def either(self) -> re.Pattern[str]:
        """One hidden character, or a sequence that is kept."""
        return re.compile(f"(?P<kept>{'|'.join(self._kept)})|{self._all}")

    def hides(self, text: str) -> bool:
        """Return whether a text contains a hidden character. Most texts contain none, and the full
        pattern is ten times slower."""
        if self._below.search(text):
            return True
        return self._above.search(text) is not None and self.hidden.search(text) is not None


def _set(ranges: list[tuple[int, int]]) -> str:
    return "[" + "".join(f"\\U{first:08x}-\\U{last:08x}" for first, last in ranges) + "]"


# Compiled on first use, so that --help does not wait for them.


@cache
def _in_names() -> _Patterns:
    return _Patterns([each for each in TABLE if each.in_prose is not None], _PICTURES + _JOINED)


@cache
def _in_code() -> _Patterns:
    return _Patterns(list(TABLE), _PICTURES)


@cache
def _sorted() -> tuple[list[int], list[tuple[int, CharacterClass]]]:
    ranges = sorted((first, last, each) for each in TABLE for first, last in each.ranges)
    return [first for first, _, _ in ranges], [(last, each) for _, last, each in ranges]


@cache
def _begins_sequence() -> re.Pattern[str]:
    return re.compile(r"[\x1b\x80-\x9f]")


@cache
def _sequence() -> re.Pattern[str]:
    return re.compile(_SEQUENCE)

"""Cut text into the pieces of words that a BERT-like model knows, as its own tokenizer does."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache

from whyfor.model.errors import BadInput

_LONGEST = 100  # characters of a word; longer ones are unknown
_SPECIAL = ("[UNK]", "[CLS]", "[SEP]")
# Chinese characters: each is a word of its own.
_IDEOGRAPHS = (
    (0x4E00, 0x9FFF),
    (0x3400, 0x4DBF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B81F),
    (0x2B820, 0x2CEAF),
    (0xF900, 0xFAFF),
    (0x2F800, 0x2FA1F),
)
_PLAIN = re.compile(r"[a-z0-9]+|[!-/:-@\[-`{-~]")


class WordPiece:
    """A vocabulary in lower case and without accents, one piece a line, the rest of a word after
    ##."""

    def __init__(self, vocabulary: Iterable[str]) -> None:
        """Raises BadInput if it lacks what every text needs."""
        self._numbers = {piece.rstrip("\n"): number for number, piece in enumerate(vocabulary)}
        missing = [name for name in _SPECIAL if name not in self._numbers]
        if missing:
            raise BadInput(f"the vocabulary lacks {', '.join(missing)}", "It is not WordPiece's.")
        self._unknown, self._first, self._last = (self._numbers[name] for name in _SPECIAL)
        self._pieces = lru_cache(maxsize=20_000)(self._cut)

    def __len__(self) -> int:
        return len(self._numbers)

    def numbers(self, text: str, most: int) -> list[int]:
        """Return the numbers of a text's pieces, with those for beginning and end, `most` in
        all."""
        found = [self._first]
        for word in _words(text):
            found += self._pieces(word)
            if len(found) >= most:
                break
        return [*found[: most - 1], self._last]

    def _cut(self, word: str) -> tuple[int, ...]:
        """Cut one word, always the longest piece first; unknown if some of it is no piece."""
        if len(word) > _LONGEST:
            return (self._unknown,)
        found: list[int] = []
        start = 0
        while start < len(word):
            number, start = self._longest(word, start)
            if number is None:
                return (self._unknown,)
            found.append(number)
        return tuple(found)

    def _longest(self, word: str, start: int) -> tuple[int | None, int]:
        for end in range(len(word), start, -1):
            piece = word[start:end] if start == 0 else f"##{word[start:end]}"
            number = self._numbers.get(piece)
            if number is not None:
                return number, end
        return None, start


def _words(text: str) -> list[str]:
    """Return a text's words and signs, in lower case and without accents."""
    lowered = text.lower()
    if lowered.isascii():
        return _PLAIN.findall(lowered)
    plain = unicodedata.normalize("NFD", lowered)
    return "".join(map(_spaced, plain)).split()


@lru_cache(maxsize=5_000)
def _spaced(char: str) -> str:
    """Return a character; with spaces around it if it is a word of its own, nothing if it is an
    accent or not to be seen."""
    kind = unicodedata.category(char)
    if char in "\t\n\r" or kind == "Zs":
        return " "
    if kind in ("Mn", "Cc", "Cf", "Cn", "Co", "Cs") or char == "\ufffd":
        return ""
    code = ord(char)
    alone = kind.startswith("P") or (char.isascii() and not char.isalnum())
    if alone or any(first <= code <= last for first, last in _IDEOGRAPHS):
        return f" {char} "
    return char

"""Text and numbers as people read them, wherever they are shown."""

from __future__ import annotations

from whyfor.model.characters import clean_prose, remove_sequences, show_hidden
from whyfor.model.sessions import Tokens


def clean(text: str) -> str:
    """Prose, line by line, without what acts or cannot be seen."""
    return clean_prose(text)


def plain(text: str) -> str:
    """Without escape sequences; other control characters stay, to be shown."""
    return remove_sequences(text)


def one_line(text: str | None) -> str:
    """Prose on one line: a title, a question."""
    return " ".join(clean(text or "").split())


def label(text: str | None) -> str:
    """A name on one line: a branch, a path, a model, an error. What is hidden in it is named,
    line ends are spaces."""
    return " ".join(show_hidden(text or "").split())


def count(number: int | None) -> str:
    """148k, 1.6 M, 1,284; unknown is said, not shown as zero."""
    if number is None:
        return "?"
    if number >= 10_000_000:
        return f"{number / 1e6:.0f} M"
    if number >= 1_000_000:
        return f"{number / 1e6:.1f} M"
    return f"{number / 1e3:.0f}k" if number >= 10_000 else f"{number:,}"


def plural(number: int, one: str, many: str | None = None) -> str:
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def spent(tokens: Tokens) -> str:
    if all(
        value is None
        for value in (tokens.input, tokens.cache_read, tokens.cache_write, tokens.output)
    ):
        return "tokens unknown"
    cache = f"cache {count(tokens.cache_read)} read, {count(tokens.cache_write)} written"
    return f"tokens in {count(tokens.input)}, {cache}, out {count(tokens.output)}"

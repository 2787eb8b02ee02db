"""Format text and numbers for display."""

from __future__ import annotations

from whyfor.model.characters import clean_prose, remove_sequences, show_hidden
from whyfor.model.cost import LABEL, cost_of, cost_text
from whyfor.model.sessions import Tokens


def clean(text: str) -> str:
    """Return prose without control and invisible characters; line breaks stay."""
    return clean_prose(text)


def plain(text: str) -> str:
    """Return text without escape sequences; other control characters stay and are shown."""
    return remove_sequences(text)


def one_line(text: str | None) -> str:
    """Return prose on one line: a title, a question."""
    return " ".join(clean(text or "").split())


def label(text: str | None) -> str:
    """Return a name on one line: a branch, a path, a model, an error. Hidden characters are shown
    by number, line breaks become spaces."""
    return " ".join(show_hidden(text or "").split())


def count(number: int | None) -> str:
    """Format a number: 123 G, 1.6 M, 148k, 1,284; `?` if unknown."""
    if number is None:
        return "?"
    if number >= 10_000_000_000:
        return f"{number / 1e9:.0f} G"
    if number >= 10_000_000:
        return f"{number / 1e6:.0f} M"
    if number >= 1_000_000:
        return f"{number / 1e6:.1f} M"
    return f"{number / 1e3:.0f}k" if number >= 10_000 else f"{number:,}"


def plural(number: int, one: str, many: str | None = None) -> str:
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def tokens_text(tokens: Tokens) -> str:
    if all(
        value is None
        for value in (tokens.input, tokens.cache_read, tokens.cache_write, tokens.output)
    ):
        return "tokens unknown"
    cache = f"cache {count(tokens.cache_read)} read, {count(tokens.cache_write)} written"
    price = f"{LABEL} {cost_text(cost_of(tokens))}"
    return f"tokens in {count(tokens.input)}, {cache}, out {count(tokens.output)}; {price}"

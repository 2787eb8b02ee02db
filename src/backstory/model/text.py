"""Text and numbers as people read them, wherever they are shown."""

from __future__ import annotations

import re

from backstory.model.sessions import Tokens

# Escape sequences and control characters in a transcript are data; nothing that shows them may obey them.
_SEQUENCE = r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[PX^_][^\x1b]*(?:\x1b\\)?|[@-_])"
_CONTROL = r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]"


def clean(text: str) -> str:
    return re.sub(_CONTROL, "", plain(text))


def plain(text: str) -> str:
    """Without escape sequences; other control characters stay, to be shown."""
    return re.sub(_SEQUENCE, "", text.replace("\r\n", "\n"))


def one_line(text: str | None) -> str:
    return " ".join(clean(text or "").split())


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
    if all(value is None for value in (tokens.input, tokens.cache_read, tokens.cache_write, tokens.output)):
        return "tokens unknown"
    cache = f"cache {count(tokens.cache_read)} read, {count(tokens.cache_write)} written"
    return f"tokens in {count(tokens.input)}, {cache}, out {count(tokens.output)}"

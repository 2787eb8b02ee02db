"""How much context a model takes: only where that is known for certain."""

from __future__ import annotations

import re

# What a model takes at most, in tokens of the prompt. A larger window may be bought for some of
# them: a prompt that is larger than the window shows that it was, and then nothing is known.
_WINDOWS = (
    (re.compile(r"\[1m\]|-1m\b"), 1_000_000),
    (re.compile(r"^claude-(?:opus|sonnet|haiku)-|^claude-3"), 200_000),
    (re.compile(r"^gpt-5"), 272_000),
    (re.compile(r"^gpt-4\.1"), 1_047_576),
    (re.compile(r"^o[34](?:-|$)"), 200_000),
    (re.compile(r"^gemini-(?:2|3)"), 1_048_576),
)


def context_window(model: str | None) -> int | None:
    """Return the window of a model in tokens; None if it is not known."""
    name = (model or "").lower().rpartition("/")[2]
    for pattern, size in _WINDOWS:
        if pattern.search(name):
            return size
    return None

"""The marks around what a session is told of earlier ones, by which it is known again in a
transcript."""

from __future__ import annotations

import re

FENCE = "whyfor-memory"
FENCE_OPEN = f"<{FENCE}>"
FENCE_CLOSE = f"</{FENCE}>"
# Gemini CLI writes what a hook said with its angle brackets escaped.
_FENCED = re.compile(rf"(?:<|&lt;){FENCE}(?:>|&gt;).*?(?:<|&lt;)/{FENCE}(?:>|&gt;)", re.S)
_MARK = re.compile(rf"(?:<|&lt;)\s*/?\s*{FENCE}", re.I)


def without_memory(text: str) -> str:
    """Return a text without what Whyfor told the session: nobody in it said that."""
    if FENCE not in text:
        return text
    return _FENCED.sub("", text)


def without_fence_marks(text: str) -> str:
    """Return a text that can neither open nor close the fence it is put in."""
    return _MARK.sub(FENCE, text)

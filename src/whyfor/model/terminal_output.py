"""A recorded program's output as it may be written to a person's terminal: what moves the cursor
and colours text stays; what asks the terminal, sets titles, the clipboard or the mouse goes."""

from __future__ import annotations

import re

_HELD_MAX = 8_192  # characters of an escape that has not ended
_CSI = r"\x1b\[(?P<given>[0-?]*)(?P<between>[ -/]*)(?P<last>[@-~])"
_TOLD = r"\x1b[\]PX^_][^\x1b\x07]*(?:\x07|\x1b\\)"
_SHORT = r"\x1b(?P<set>[()][0-9A-B])|\x1b(?P<one>[78DEM])"
_SEQUENCE = re.compile(f"{_CSI}|{_TOLD}|{_SHORT}|\\x1b[ -/]*[0-~]|\\x1b")
# an escape that has not ended yet
_BEGUN = re.compile(r"\x1b(?:[\]PX^_][^\x1b\x07]*\x1b?|\[[0-?]*[ -/]*|[ -/]*)\Z")
_CONTROL = re.compile(r"[\x00-\x07\x0b\x0c\x10-\x1a\x1c-\x1f\x7f-\x9f]")
_ACTS = frozenset("ABCDEFGHJKLMPSTXdfmrsu@`")
_MODES = frozenset(("4", "7", "?1", "?6", "?7", "?25", "?47", "?1047", "?1049"))
_ALTERNATE = re.compile(r"\x1b\[\?(1049|1047|47)([hl])")
# The whole screen scrolls again, which puts the cursor elsewhere; letters and the cursor as usual.
_USUAL = "\x1b7\x1b[r\x1b8\x1b[4l\x1b[?1l\x1b[?7h\x1b[?25h\x1b(B\x1b[0m\r\n"


class PlayableText:
    """Cleans a stream piece by piece; an escape may begin in one and end in the next."""

    def __init__(self) -> None:
        self._held = ""
        self._alternate = ""  # the mode that shows the alternate screen now

    @property
    def ending(self) -> str:
        """Return what makes the terminal as a shell expects it. The alternate screen is left only
        if it is shown: on the usual one, that would put the cursor elsewhere."""
        return (f"\x1b[?{self._alternate}l" if self._alternate else "") + _USUAL

    def clean(self, piece: str) -> str:
        text = self._held + piece
        self._held = ""
        begun = _BEGUN.search(text, max(0, len(text) - _HELD_MAX))
        if begun is not None:
            text, self._held = text[: begun.start()], begun[0]
        shown = _CONTROL.sub("", _SEQUENCE.sub(_kept, text))
        for found in _ALTERNATE.finditer(shown):
            self._alternate = found[1] if found[2] == "h" else ""
        return shown


def _kept(found: re.Match[str]) -> str:
    if found["set"] or found["one"]:
        return found[0]
    last = found["last"]
    if not last or found["between"]:
        return ""
    if last in "hl":
        return found[0] if found["given"] in _MODES else ""
    is_plain = not found["given"].startswith(("?", "<", "=", ">"))
    return found[0] if last in _ACTS and is_plain else ""

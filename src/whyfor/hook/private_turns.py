"""Remembers the sessions whose last prompt was private as a whole: of such a turn only that there
was one may be written down.

Read only where something private was dropped, or such a turn is open.
"""

import posix

import announce  # type: ignore[import-not-found]

ASKS = b"UserPromptSubmit BeforeAgent userPromptSubmitted".split()
BLANK = b" \t\\nrt"  # escaped ones too


def is_hidden(folder: bytes, event: bytes, payload: bytes, dropped: bool) -> bool:
    """Return whether an event belongs to a private turn, and remember where one begins or ends;
    `dropped` if something of it was private, or could not be searched."""
    turns = PrivateTurns(folder)
    ident = announce.field(payload, b"session_id") or announce.field(payload, b"sessionId")
    name = bytes([c if chr(c).isalnum() or c in b"-_" else 95 for c in ident])
    if event in ASKS:
        if dropped and not announce.field(payload, b"prompt").strip(BLANK):
            turns.begin(name)
            return True
        turns.end(name)
        return False
    hidden = name in turns.names
    if hidden and event in announce.ENDS:
        turns.end(name)
    return hidden


class PrivateTurns:
    """A folder with one empty file per session in a private turn."""

    def __init__(self, folder: bytes) -> None:
        self.folder = folder
        self.names: list[bytes] = announce.listed(folder)

    def begin(self, name: bytes) -> None:
        if name:
            announce.make_folder(self.folder)
            path = self.folder + b"/" + name
            posix.close(posix.open(path, posix.O_WRONLY | posix.O_CREAT, 0o600))

    def end(self, name: bytes) -> None:
        if name in self.names:
            posix.unlink(self.folder + b"/" + name)
            if len(self.names) == 1:
                posix.rmdir(self.folder)  # hooks look no further then

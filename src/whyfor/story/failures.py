"""What went wrong, told apart by the few words agents begin such a record with."""

from __future__ import annotations

# In the order they are looked for, and shown when equal.
KINDS = {
    "command": "Command failed",
    "edit": "Edit did not match",
    "call": "Other call failed",
    "interrupted": "You interrupted",
    "denied": "You said no",
    "blocked": "Not permitted",
    "api": "Model API error",
    "context": "Context ran out",
}

_COMMAND = ("exit code ", "command failed:", "process exited with code ")
_ECHO = ("sibling tool call",)  # not run because of another's failure
_EDIT = (
    "string to replace not found",
    "verification failed",
    "has not been read yet",
    "modified since read",
    "unexpectedly modified",
    "matches of the string",
    "could not find the string",
    "0 occurrences",
    "oldstring",
    "old_string",
    "patch rejected",
)
_BLOCKED = (
    "requires approval",
    "requested permissions",
    "permission to use",
    "command rejected because",
    "must be within one of",
    "blocked by ",
)
_DENIED = (
    "the user doesn't want",
    "exec command rejected",
    "user denied",
    "user rejected",
    "user cancelled",
    "reason: user",
)
_CONTEXT = ("too long", "context window", "context length", "context limit", "input length")


def kind_of(event: str, head: str, ran: bool) -> str | None:
    """Of an event's kind and first words; `ran`: it has an exit code. None for an echo of
    another failure."""
    if event == "turn.completed":
        return "interrupted"
    if event == "approval.resolved":
        return "denied"
    said = head.lower()
    if event == "error":
        return "context" if _holds(said, _CONTEXT) else "api"
    if ran or said.startswith(_COMMAND):
        return "command"
    for name, words in ((None, _ECHO), ("edit", _EDIT), ("blocked", _BLOCKED), ("denied", _DENIED)):
        if _holds(said, words):
            return name
    return "call"


def _holds(said: str, words: tuple[str, ...]) -> bool:
    return any(word in said for word in words)

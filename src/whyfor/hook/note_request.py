"""Asks an agent, once per commit it made, to write down why.

Read only where `init --annotate` asked for it.
"""

import posix
import sys

import announce  # type: ignore[import-not-found]

ASK = (
    "Whyfor keeps the story behind each commit. You just made commit %s; please tell it once, by "
    "running: "
    "whyfor note %s --title 'under 50 characters' --intent 'problem, solution, effect' "
    "--alternative 'what else you considered, and why not' --tag "
    "FEATURE|BUGFIX|REFACTORING|TEST|DOCS|CHORE"
)


def ask(folder: bytes, event: bytes, payload: bytes) -> None:
    """Print the request, in the form agents read, if the payload tells of a commit not asked about
    yet."""
    sha = made_commit(payload)
    if not sha or sys.stdout is None:  # closed: the spool may have its number by now
        return
    asked = folder + b"/asked"
    announce.make_folder(asked)
    # raises the second time
    posix.open(asked + b"/" + sha[:7], posix.O_WRONLY | posix.O_CREAT | posix.O_EXCL, 0o600)
    text = (ASK % (sha.decode(), sha.decode())).encode()
    answer = b'{"hookSpecificOutput":{"hookEventName":%s,"additionalContext":%s}}'
    posix.write(1, answer % (announce.quoted(event), announce.quoted(text)))


def made_commit(payload: bytes) -> bytes:
    """Return the commit a shell command made, by the agent's own account or by what git prints:
    `[main 126e95e] subject`; nothing if there is none."""
    operation = payload.partition(b'"gitOperation"')[2][:200]
    sha: bytes = announce.field(operation, b"sha")
    if operation and is_sha(sha):
        return sha
    command, _, answer = payload.partition(b'"tool_response"')
    if b"git" not in command or b"commit" not in command:
        return b""
    for piece in answer.split(b"[")[1:]:
        words = piece[:300].partition(b"] ")[0].split(b" ")
        if len(words) > 1 and is_sha(words[-1]) and b"\\" not in piece[: piece.find(b"]")]:
            return words[-1]
    return b""


def is_sha(word: bytes) -> bool:
    return 7 <= len(word) <= 64 and not word.strip(b"0123456789abcdef")

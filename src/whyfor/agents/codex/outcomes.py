"""How a tool ended, as told in the output that was meant for the model."""

from __future__ import annotations

import re

from whyfor.agents.base import as_str, flatten, get_dict, get_int, get_str
from whyfor.agents.codex.content import decode_arguments, texts

# An output that says it did not work, where no exit code does.
FAILED = (
    "apply_patch verification failed",
    "unsupported call",
    "unsupported custom tool call",
    "failed to parse function arguments",
    "exec_command failed",
    "write_stdin failed",
    "execution error",
    "exec command rejected",
    "patch rejected",
    "aborted by user",
    "unable to ",
    "Script error:",
    "Script failed",
)
_HEADER = ("Exit code:", "Chunk ID:", "Wall time:", "Command:", "Script ")
_EXIT = re.compile(r"^(?:Exit code:|Process exited with code) (-?\d+)", re.M)


def outcome(output: object) -> tuple[str, int | None, bool]:
    """Return a tool's output, its exit code and whether it failed. All three are in one text
    written for the model."""
    failed = False
    if isinstance(output, dict):
        failed, output = output.get("success") is False, output.get("content")
    if isinstance(output, list):
        output = texts(output) or flatten(output)
    text, code = as_str(output), None
    if text.startswith(('{"output":', '{"metadata":')) and isinstance(
        whole := decode_arguments(text), dict
    ):
        text, code = (
            get_str(whole, "output"),
            get_int(get_dict(whole, "metadata"), "exit_code"),
        )
    failed = failed or text.startswith(FAILED)
    while code is None and text.startswith(_HEADER):  # a patch inside a command has two headers
        header, marker, rest = text.partition("Output:\n")
        if not marker or "Process running" in header:
            break
        found = _EXIT.search(header)
        text, code = rest, int(found[1]) if found else None
    return text, code, failed or bool(code)

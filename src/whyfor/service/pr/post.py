"""Put a comment at a pull request with the forge's own program: gh or glab."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from whyfor.model.errors import BadInput, NotFound
from whyfor.model.pull_request import PostedComment
from whyfor.service.pr.comment import MARKER

_SECONDS = 60
_PAGES = 20  # of a hundred comments each


class _Forge(msgspec.Struct, frozen=True):
    """How one program is asked."""

    tool: str
    view: tuple[str, ...]  # prints the pull request of the branch as JSON
    number: str  # the field that has its number
    comments: str  # where they are; with {number}
    comment: str  # one of them; with {number} and {comment}
    change: str  # the method that changes one


_FORGES = {
    "gh": _Forge(
        "gh",
        ("pr", "view", "--json", "number"),
        "number",
        "repos/{{owner}}/{{repo}}/issues/{number}/comments",
        "repos/{{owner}}/{{repo}}/issues/comments/{comment}",
        "PATCH",
    ),
    "glab": _Forge(
        "glab",
        ("mr", "view", "--output", "json"),
        "iid",
        "projects/:id/merge_requests/{number}/notes",
        "projects/:id/merge_requests/{number}/notes/{comment}",
        "PUT",
    ),
}


def post_comment(folder: Path, tool: str, text: str) -> PostedComment:
    """Create the comment, or change the one that has the marker. Raises NotFound if the program
    is not installed, BadInput if it refuses."""
    forge = _FORGES[tool]
    program = _find(tool)
    shown = _decoded(_run(program, folder, forge.view))
    number = shown.get(forge.number) if isinstance(shown, dict) else None
    if not isinstance(number, int):
        raise NotFound(f"{tool} knows no pull request of this branch", "Push it and open one.")
    known = _known(program, folder, forge, number)
    body = {"body": text}
    if known is None:
        _send(program, folder, "POST", forge.comments.format(number=number), body)
        return PostedComment(tool, number, "created")
    ident, before = known
    if before.strip() == text.strip():
        return PostedComment(tool, number, "unchanged")
    path = forge.comment.format(number=number, comment=ident)
    _send(program, folder, forge.change, path, body)
    return PostedComment(tool, number, "updated")


def _known(program: str, folder: Path, forge: _Forge, number: int) -> tuple[int, str] | None:
    """The comment that has the marker: its number and text."""
    for page in range(1, _PAGES + 1):
        path = f"{forge.comments.format(number=number)}?per_page=100&page={page}"
        found = _decoded(_run(program, folder, ("api", path)))
        if not isinstance(found, list) or not found:
            return None
        for comment in found:
            body = comment.get("body") if isinstance(comment, dict) else None
            ident = comment.get("id") if isinstance(comment, dict) else None
            # only where a program puts it: a person may quote the marker
            if isinstance(body, str) and isinstance(ident, int) and body.startswith(MARKER):
                return ident, body
        if len(found) < 100:
            return None
    return None


def _send(program: str, folder: Path, method: str, path: str, body: dict[str, str]) -> None:
    given = msgspec.json.encode(body)
    head = "Content-Type: application/json"
    _run(program, folder, ("api", "-X", method, path, "-H", head, "--input", "-"), given)


def _find(tool: str) -> str:
    """The whole path of a program; folders that depend on the current one are skipped."""
    for folder in os.environ.get("PATH", os.defpath).split(os.pathsep):
        program = Path(folder, tool)
        if Path(folder).is_absolute() and os.access(program, os.X_OK) and program.is_file():
            return str(program)
    raise NotFound(f"{tool} is not installed", "Print the comment instead: whyfor pr")


def _run(program: str, folder: Path, arguments: Sequence[str], given: bytes = b"") -> bytes:
    name = Path(program).name
    try:
        done = subprocess.run(
            [program, *arguments],
            cwd=folder,
            input=given,
            capture_output=True,
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise BadInput(f"{name} did not answer: {error}", "Try again.") from None
    if done.returncode != 0:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()
        reason = said[0][:200] if said else f"exit code {done.returncode}"
        raise BadInput(f"{name} refused: {reason}", f"Try: {name} {arguments[0]} {arguments[1]}")
    return done.stdout


def _decoded(data: bytes) -> Any:
    try:
        return msgspec.json.decode(data)
    except msgspec.DecodeError:
        return None

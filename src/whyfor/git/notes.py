"""git's notes on commits: read, and written only where a person asks for it."""

from __future__ import annotations

from collections.abc import Iterator

from whyfor.git.place import GitPlace
from whyfor.git.run import LONG, run_git
from whyfor.model.errors import BadInput

AI_NOTES = "refs/notes/ai"  # where git-ai keeps its own


def read_note(where: GitPlace, ref: str, sha: str) -> str | None:
    """Return the note of a commit; None if it has none."""
    answer = run_git(where, "notes", f"--ref={ref}", "show", sha)
    return answer.text if answer.ok else None


def noted_commits(where: GitPlace, ref: str) -> Iterator[str]:
    """Yield the commits that have a note."""
    answer = run_git(where, "notes", f"--ref={ref}", "list", seconds=LONG)
    for line in answer.text.splitlines() if answer.ok else ():
        _, _, sha = line.partition(" ")
        if sha:
            yield sha


def write_note(where: GitPlace, ref: str, sha: str, text: str) -> None:
    """Write or replace the note of a commit. Raises BadInput if git refuses."""
    given = text.encode("utf-8", "surrogateescape")
    answer = run_git(where, "notes", f"--ref={ref}", "add", "-f", "-F", "-", sha, given=given)
    if not answer.ok:
        raise BadInput(
            f"git does not write the note: {answer.complaint}",
            "Notes are commits of yours: check user.name and user.email.",
        )


def has_other_writer(text: str, mark: str) -> bool:
    """Whether a note was written by somebody else than the tool with this mark."""
    return f'"writer": "{mark}"' not in text

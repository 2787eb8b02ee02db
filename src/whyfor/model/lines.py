"""Who wrote the lines of a commit, as it is stored: runs of lines, each with its writer."""

from __future__ import annotations

import msgspec

AGENT, PERSON, UNKNOWN_AUTHOR = "agent", "person", "unknown"
MODIFIED_LINE = "modified"
# How it is known that an edit wrote a line, the surest first; see docs/blame.md.
LINE_EVIDENCE = ("exact", "reformatted", "moved", "shell", "block", MODIFIED_LINE)
CONFIDENCE = {
    "exact": "high",
    "reformatted": "high",
    "moved": "medium",
    "shell": "medium",
    "block": "low",
    MODIFIED_LINE: "medium",
    "note": "medium",  # another tool's note says so
}


class LineWriter(msgspec.Struct, frozen=True, array_like=True):
    """One edit of one session."""

    session: int  # the main session's number
    seq: int  # of its result in that session; 0 for what a subagent wrote
    at: int
    call: str | None  # the agent's own id of the call
    writer: int  # the number of the session that made the call: the main one or a subagent


class LineRun(msgspec.Struct, frozen=True, array_like=True):
    """Lines that stand together and have the same writer and evidence."""

    first: int  # counted from 1
    count: int
    writer: int  # its place among the file's writers
    evidence: int  # its place in LINE_EVIDENCE


class FileLines(msgspec.Struct, frozen=True):
    """The lines of one file of a commit that sessions wrote."""

    path: str
    blob: str  # what the file is in the commit
    writers: list[LineWriter]
    runs: list[LineRun]
    block: bool = False  # the edits could not be replayed: lines were only compared

    def by_line(self) -> dict[int, tuple[LineWriter, str]]:
        """Return writer and evidence of each line that has one."""
        found = {}
        for run in self.runs:
            who = (self.writers[run.writer], LINE_EVIDENCE[run.evidence])
            for line in range(run.first, run.first + run.count):
                found[line] = who
        return found


class CommitLines(msgspec.Struct, frozen=True):
    """What is known of the lines of a commit. Files in which no session wrote are left out."""

    sha: str
    begun_at: int  # when the first session of the commit began with it
    committed_at: int
    # whether a line that no session wrote must be a person's: nothing ran that writes unseen
    inferred: bool
    files: list[FileLines]

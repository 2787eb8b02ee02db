"""git-ai's authorship log (authorship/3.0.0): the text of a note for each commit."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path

import msgspec

from whyfor.git.notes import AI_NOTES, has_other_writer, read_note, write_note
from whyfor.git.place import name_place
from whyfor.model.blame import LineWho
from whyfor.model.errors import BadInput
from whyfor.service.exchange.owned_lines import OwnedCommit, is_agents

SCHEMA = "authorship/3.0.0"
MARK = "whyfor"  # in our notes: who wrote them
_HASH = 14  # characters


class NotesReport(msgspec.Struct):
    """What came of writing notes."""

    written: list[str] = []
    same: list[str] = []  # that had this note already
    foreign: list[str] = []  # that have another tool's note, which stays


def note_text(commit: OwnedCommit) -> str | None:
    """Return the note of a commit; None if no agent wrote a line of it."""
    attested: list[str] = []
    sessions: dict[str, object] = {}
    for file in commit.files:
        entries: dict[str, list[str]] = {}
        for each in file.ranges:
            if is_agents(each.who):
                key = _key(each.who, commit.sha)
                entries.setdefault(key, []).append(_span(each.first, each.last))
                sessions[key.partition("::")[0]] = _session(each.who, commit)
        if entries:
            attested.append(_quoted(file.path))
            attested += [f"  {key} {','.join(spans)}" for key, spans in entries.items()]
    if not attested:
        return None
    told = {
        "schema_version": SCHEMA,
        "base_commit_sha": commit.sha,
        "prompts": {},
        "humans": {},
        "sessions": sessions,
    }
    return "\n".join([*attested, "---", json.dumps(told, indent=2, ensure_ascii=False)]) + "\n"


def notes_as_text(commits: Iterable[OwnedCommit]) -> str:
    """Return the notes of commits, each after a line that names its commit."""
    found = ((commit.sha, note_text(commit)) for commit in commits)
    return "".join(f"commit {sha}\n{text}\n" for sha, text in found if text)


def write_notes(cwd: Path, commits: Iterable[OwnedCommit], search_path: str) -> NotesReport:
    """Write notes to refs/notes/ai, where git-ai looks for them. A note of another writer stays.
    Raises BadInput while git-ai itself is installed: two writers would undo each other."""
    if _is_installed("git-ai", search_path):
        raise BadInput(
            "git-ai is installed and writes these notes itself",
            "Print them instead: whyfor export RANGE --format git-ai",
        )
    place = name_place(cwd)
    report = NotesReport()
    for commit in commits:
        text = note_text(commit)
        if text is None:
            continue
        kept = read_note(place, AI_NOTES, commit.sha)
        if kept == text:
            report.same.append(commit.sha)
        elif kept is not None and has_other_writer(kept, MARK):
            report.foreign.append(commit.sha)
        else:
            write_note(place, AI_NOTES, commit.sha, text)
            report.written.append(commit.sha)
    return report


def _is_installed(name: str, search_path: str) -> bool:
    """Whether a program is in PATH."""
    return shutil.which(name, path=search_path) is not None


def _key(who: LineWho, sha: str) -> str:
    """A session, and a trace: git-ai makes one for each call; ours is the same each time."""
    call = who.writer.call if who.writer and who.writer.call else f"turn {who.turn}"
    trace = _hashed(f"{sha}:{who.session_id}:{call}")
    return f"s_{_hashed(f'{who.agent}:{who.session_id}')}::t_{trace}"


def _session(who: LineWho, commit: OwnedCommit) -> dict[str, object]:
    agent = {"tool": who.agent, "id": who.session_id, "model": who.model or "unknown"}
    return {
        "agent_id": agent,
        "human_author": commit.committer,
        "custom_attributes": {"writer": MARK},
    }


def _hashed(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_HASH]


def _span(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}-{last}"


def _quoted(path: str) -> str:
    return f'"{path}"' if any(char in path for char in " \t\n") else path

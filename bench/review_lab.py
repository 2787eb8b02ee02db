"""Whether a review speaks when a change takes back what was decided, and is quiet otherwise."""

from __future__ import annotations

import json
import os
import re
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from difflib import unified_diff
from pathlib import Path
from typing import Any

from whyfor import config
from whyfor.model.review import ReviewFinding
from whyfor.service.review import review_change

from measure import clean_env, run
from report import Cell, Check, Report, Table
from review_stories import FIRST, HELD_OUT, SECOND, Story

_START = datetime(2026, 1, 5, 9, tzinfo=UTC).timestamp()
_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_NOTE = (
    "Each story is a file that an agent changed in a few turns: a correction, an answer, a rule, a plain request, an "
    "approach that failed. Its changes are staged one at a time. A reversal counts as found if the review names the file "
    "and the session; what is said of any other change is wrong. The held-out stories were written when the rules of the "
    "review were settled, and nothing was changed for them."
)


@dataclass
class ReviewScore:
    """How many changes were judged rightly."""

    right: int = 0
    missed: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    quiet: int = 0

    @property
    def precision(self) -> float:
        return self.right / max(1, self.right + len(self.wrong))

    @property
    def recall(self) -> float:
        return self.right / max(1, self.right + len(self.missed))


class _Session:
    """A transcript as Claude Code writes it, of one story."""

    def __init__(self, repository: Path) -> None:
        self.repository = repository
        self.ident = str(uuid.uuid5(uuid.NAMESPACE_URL, repository.name))
        self.now = _START
        self.lines: list[dict[str, Any]] = []

    def add(self, kind: str, message: dict[str, Any], **more: Any) -> None:
        self.now += 20
        when = datetime.fromtimestamp(self.now, UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")
        parent = self.lines[-1]["uuid"] if self.lines else None
        name = str(uuid.uuid5(uuid.NAMESPACE_URL, f"{self.ident}{len(self.lines)}"))
        about: dict[str, Any] = {
            "cwd": str(self.repository),
            "sessionId": self.ident,
            "version": "2.0.0",
        }
        about |= {"isSidechain": False, "userType": "external", "gitBranch": "main"}
        line = {"parentUuid": parent, **about, "type": kind, "message": message}
        self.lines.append({**line, "uuid": name, "timestamp": when, **more})

    def prompt(self, text: str) -> None:
        self.add("user", {"role": "user", "content": text})

    def block(self, block: dict[str, Any]) -> None:
        message: dict[str, Any] = {
            "id": f"msg_{len(self.lines)}",
            "role": "assistant",
            "type": "message",
        }
        message |= {"model": "claude-demo", "content": [block]}
        self.add("assistant", message)

    def call(self, tool: str, given: dict[str, Any], said: str, outcome: Any, failed: bool) -> None:
        ident = f"toolu_{len(self.lines):08}"
        self.block({"type": "tool_use", "id": ident, "name": tool, "input": given})
        result = {"type": "tool_result", "tool_use_id": ident, "content": said, "is_error": failed}
        self.add("user", {"role": "user", "content": [result]}, toolUseResult=outcome)

    def edit(self, path: str, old: str, new: str) -> None:
        at = self.repository / path
        before = at.read_text()
        assert before.count(old) == 1, f"{path}: {old!r} stands there {before.count(old)} times"
        at.write_text(before.replace(old, new))
        given = {"file_path": str(at), "old_string": old, "new_string": new}
        outcome: dict[str, Any] = {"filePath": str(at), "oldString": old, "newString": new}
        outcome["originalFile"] = before
        outcome["structuredPatch"] = _patch(before, at.read_text())
        self.call("Edit", given, "The file has been updated.", outcome, False)

    def answer(self, question: str, answer: str) -> None:
        option = {"label": answer}
        given = {"questions": [{"question": question, "header": "?", "options": [option]}]}
        said = f'User has answered your questions: "{question}"="{answer}".'
        outcome = {**given, "answers": {question: answer}}
        self.call("AskUserQuestion", given, said, outcome, False)

    def failed(self, command: str) -> None:
        said = "Exit code 1\n1 failed in 0.2s"
        self.call("Bash", {"command": command}, said, f"Error: {said}", True)

    def save(self, home: Path) -> None:
        path = home / ".claude" / "projects" / "-lab" / f"{self.ident}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(json.dumps(line) + "\n" for line in self.lines))


def _patch(before: str, after: str) -> list[dict[str, Any]]:
    """Hunks as the agent keeps them."""
    hunks: list[dict[str, Any]] = []
    for line in list(unified_diff(before.splitlines(), after.splitlines(), lineterm=""))[2:]:
        head = _HUNK.match(line)
        if head:
            numbers = [int(number or 1) for number in head.groups()]
            names = ("oldStart", "oldLines", "newStart", "newLines")
            hunks.append({**dict(zip(names, numbers, strict=True)), "lines": []})
        else:
            hunks[-1]["lines"].append(line)
    return hunks


def build_story(story: Story, folder: Path) -> _Session:
    """Make the repository of a story, with its session beside it."""
    repository = folder / "code" / story.name.replace(" ", "-")
    repository.mkdir(parents=True)
    session = _Session(repository)
    _git(repository, session.now, "init", "-q", "-b", "main")
    path = repository / story.path
    path.parent.mkdir(parents=True)
    path.write_text(story.before)
    (repository / "README.md").write_text(f"{story.name}\n")  # another first commit for each
    _commit(repository, session.now, "Begin")
    for step in story.steps:
        _take(session, story.path, step)
    session.save(folder / "home")
    return session


def _take(session: _Session, path: str, step: tuple[str, ...]) -> None:
    kind, *rest = step
    if kind == "asked":
        session.prompt(rest[0])
    elif kind == "edit":
        session.edit(path, rest[0], rest[1])
    elif kind == "answer":
        session.answer(rest[0], rest[1])
    elif kind == "failed":
        session.failed(rest[0])
    elif kind == "closed":
        session.block({"type": "text", "text": rest[0]})
    else:
        session.now += 60
        _commit(session.repository, session.now, rest[0])


def _commit(repository: Path, now: float, message: str) -> None:
    _git(repository, now, "add", "-A")
    _git(repository, now, "commit", "-q", "-m", message)


def _git(repository: Path, now: float, *arguments: str) -> None:
    when = f"{int(now)} +0000"
    who = {"GIT_AUTHOR_NAME": "Ada", "GIT_AUTHOR_EMAIL": "ada@example.org"}
    who |= {"GIT_COMMITTER_NAME": "Ada", "GIT_COMMITTER_EMAIL": "ada@example.org"}
    env = {**os.environ, **who, "GIT_AUTHOR_DATE": when, "GIT_COMMITTER_DATE": when}
    run(["git", *arguments], env, repository)


def judge_stories(stories: list[Story], folder: Path, program: Path) -> ReviewScore:
    """Review every change of every story."""
    sessions = {story.name: build_story(story, folder) for story in stories}
    score = ReviewScore()
    with _home(folder, program):
        for story in stories:
            session = sessions[story.name]
            for kind, changes in (("reversal", story.reversals), ("other", story.others)):
                for name, swaps in changes.items():
                    found = _review(session.repository, story.path, swaps)
                    label = f"{story.name}: {name}"
                    _count(score, kind, label, found, story.path, session.ident)
    return score


def _review(repository: Path, path: str, swaps: list[tuple[str, str]]) -> list[ReviewFinding]:
    at = repository / path
    kept = at.read_text()
    text = kept
    for old, new in swaps:
        assert text.count(old) == 1, f"{path}: {old!r} stands there {text.count(old)} times"
        text = text.replace(old, new)
    at.write_text(text)
    try:
        _git(repository, _START, "add", "-A")
        return review_change(config.load(), repository, staged=True).findings
    finally:
        at.write_text(kept)
        _git(repository, _START, "add", "-A")


def _count(
    score: ReviewScore,
    kind: str,
    label: str,
    found: list[ReviewFinding],
    path: str,
    session: str,
) -> None:
    if kind == "other":
        if found:
            said = f"{found[0].kind}, {found[0].decision.kind}: {found[0].because}"
            score.wrong.append(f"{label} ({said})")
        else:
            score.quiet += 1
        return
    right = [one for one in found if one.path == path and one.who.session_id == session]
    if right:
        score.right += 1
    else:
        score.missed.append(label)
    score.wrong += [f"{label}: {one.because}" for one in found if one not in right]


@contextmanager
def _home(folder: Path, program: Path) -> Iterator[None]:
    home = folder / "home"
    env = clean_env(home, folder) | {"WHYFOR_HOME": str(folder / "whyfor")}
    run([str(program), "ingest"], env, folder)
    kept = dict(os.environ)
    os.environ.clear()
    os.environ.update(env)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(kept)


def review(report: Report, scratch: Path, program: Path) -> None:
    """Judge both sets of stories."""
    rows: list[list[Cell]] = []
    checks: list[Check] = []
    for name, stories in (("looked at", [*FIRST, *SECOND]), ("held out", HELD_OUT)):
        score = judge_stories(stories, scratch / f"review-{name.replace(' ', '-')}", program)
        reversals = score.right + len(score.missed)
        others = score.quiet + len(score.wrong)
        figures = (f"{score.precision:.2f}", f"{score.recall:.2f}")
        rows.append([name, reversals, score.right, others, len(score.wrong), *figures])
        checks.append(Check(f"review, {name}: precision", score.precision, 0.9, "", floor=True))
        checks.append(Check(f"review, {name}: recall", score.recall, 0.8, "", floor=True))
        for label in (*score.missed, *score.wrong):
            print(f"review, {name}: {label}")
    columns = ["stories", "reversals", "found", "other changes", "wrong", "precision", "recall"]
    report.add(Table("Review: what a change undoes", columns, rows, _NOTE), *checks)

"""diff: what was said between two commits."""

from __future__ import annotations

from pathlib import Path

from whyfor.config import Settings
from whyfor.git import history
from whyfor.git.place import name_place
from whyfor.model.reports import CommitRange
from whyfor.model.sessions import Session
from whyfor.model.stories import StoryLine
from whyfor.store.open import reading
from whyfor.story.commit_lookup import require_checkout, require_commit
from whyfor.story.commit_stories import full_story, stories_of


def compare_commits(settings: Settings, cwd: Path, old: str, new: str) -> CommitRange:
    folder = require_checkout(name_place(cwd))
    with reading(settings) as library:
        first, last = require_commit(library, old, folder), require_commit(library, new, folder)
        found = history.commits(folder, [f"{first}..{last}"])
        stories = stories_of(library, folder, [commit.sha for commit in reversed(found)])
        sessions: dict[int, tuple[Session, int]] = {}
        spans: list[tuple[int, int, int]] = []
        prompts: dict[tuple[str, int], StoryLine] = {}
        for one in stories:
            story = full_story(library, folder, one)
            for part in one.checkpoint.parts if one.checkpoint else []:
                session = story.sessions[part.name]
                before = sessions.get(session.id, (session, 0))[1]
                sessions[session.id] = (session, before + part.new_messages)
                spans += [(session.id, first, last) for first, last in part.ranges]
            for said in story.said:
                if said.by == "person":
                    prompts[said.session_id, said.seq] = said
        return CommitRange(
            stories,
            list(sessions.values()),
            sum(number for _, number in sessions.values()),
            library.checkpoints.spent(_disjoint(spans)),
            sorted(prompts.values(), key=lambda said: (said.created_at or 0, said.seq)),
        )


def _disjoint(spans: list[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    """Copies of a commit share a range; nothing is counted twice."""
    found: list[tuple[int, int, int]] = []
    for session, first, last in sorted(set(spans)):
        if found and found[-1][0] == session and first <= found[-1][2]:
            if last <= found[-1][2]:
                continue
            first = found[-1][2] + 1
        found.append((session, first, last))
    return found

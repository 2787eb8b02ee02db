"""The stories behind commits, read back; commits that were not linked yet are linked in memory."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from whyfor.config import Settings
from whyfor.git import history
from whyfor.git.place import GitPlace, name_place
from whyfor.model.checkpoints import NO_SESSION, Checkpoint, Note, Part
from whyfor.model.errors import NotFound
from whyfor.model.events import StoredEvent
from whyfor.model.sessions import Session
from whyfor.model.stories import (
    MERGE,
    UNLINKED,
    CommitStory,
    FullStory,
    StoryLine,
    UnlinkedSession,
    stored_commit,
)
from whyfor.model.wire.commits import WireLine, wire_line
from whyfor.store.open import OpenStore, local_store, reading
from whyfor.story.annotate import written_note
from whyfor.story.commit_lookup import checkout_root, require_commit, resolve_commit
from whyfor.story.repositories import lost, repository_at

if TYPE_CHECKING:
    from whyfor.story.links.assemble import LinkOutcome

_REVERTS = re.compile(r"This reverts commit ([0-9a-f]{7,64})")


def require_checkpoint(settings: Settings, reference: str | None, cwd: Path) -> Checkpoint:
    """The checkpoint of a commit; an error that says why if it has none."""
    here = name_place(cwd)
    with reading(settings) as library:
        told = stories_of(library, here, [require_commit(library, reference, here)])[0]
    if told.checkpoint is None or not told.checkpoint.parts:
        raise NotFound(
            f"{told.commit.sha[:10]} has no story: {told.reason_text}",
            "Commits with one: whyfor log",
        )
    return told.checkpoint


def stories_of(library: OpenStore, cwd: GitPlace, shas: list[str]) -> list[CommitStory]:
    """Return the stories of commits in the order given; of one that git does not have any more,
    what was stored of it. Raise NotFound for one that is neither in git nor stored."""
    folder = checkout_root(cwd)
    commits = _commits_in_git(folder, shas) if folder else {}
    known = _KnownStories(
        commits, library.checkpoints.of_commits(shas), library.checkpoints.seen(shas)
    )
    new = [sha for sha in shas if sha in commits]
    fresh = [sha for sha in new if sha not in known.seen and sha not in known.kept]
    if fresh or (folder and _are_rewritten(folder, commits, known.kept)):
        for outcome in _judge(library, folder or cwd, fresh):
            known.add(outcome)
    return with_statements(library, [known.story(sha) for sha in shas])


def with_statements(library: OpenStore, stories: list[CommitStory]) -> list[CommitStory]:
    """Return stories with what people said of the commits: sessions they took off, and notes on
    commits that have no story."""
    shas = [told.commit.sha for told in stories]
    notes = library.checkpoints.notes(shas)
    unlinked: dict[str, list[UnlinkedSession]] = {}
    for entry in library.checkpoints.unlinked(shas):
        taken = UnlinkedSession(entry.agent, entry.session_id, entry.at)
        unlinked.setdefault(entry.commit, []).append(taken)
    return [
        _with_statements(told, notes.get(told.commit.sha), unlinked.get(told.commit.sha, []))
        for told in stories
    ]


def _with_statements(
    told: CommitStory, note: tuple[str, Note] | None, unlinked: list[UnlinkedSession]
) -> CommitStory:
    if unlinked:
        alone = told.checkpoint is None or not told.checkpoint.parts
        reason = UNLINKED if alone and told.reason != MERGE else told.reason
        told = msgspec.structs.replace(told, unlinked=unlinked, reason=reason)
    if note and told.annotation is None:
        told = msgspec.structs.replace(told, noted=written_note(told.commit.subject, *note))
    return told


class _KnownStories(msgspec.Struct):
    """What is known of commits: by git, by the store, and since now."""

    commits: dict[str, history.Commit]
    kept: dict[str, Checkpoint]
    seen: dict[str, tuple[str | None, list[dict[str, Any]]]]  # why there is no story, and hints
    judged: dict[str, Checkpoint] = {}

    def add(self, outcome: LinkOutcome) -> None:
        for checkpoint in outcome.saved:
            self.judged[checkpoint.commit] = checkpoint
        for sha, _, _, reason, nearby in outcome.seen:
            self.seen[sha] = (reason, msgspec.json.decode(nearby) if nearby else [])

    def story(self, sha: str) -> CommitStory:
        commit = self.commits.get(sha)
        checkpoint = self.judged.get(sha) or self.kept.get(sha)
        if checkpoint is not None:
            return self._with_checkpoint(commit, checkpoint)
        if commit is None:
            raise NotFound(f"commit {sha[:10]} is not in this repository", "See: whyfor log")
        reason, nearby = self.seen.get(sha, (None, []))
        return CommitStory(commit, None, reason or NO_SESSION, nearby)

    def _with_checkpoint(
        self, commit: history.Commit | None, checkpoint: Checkpoint
    ) -> CommitStory:
        reason = MERGE if checkpoint.is_merge and not checkpoint.parts else None
        beside = [c for c in self.judged.values() if c.group_root == checkpoint.group_root]
        return CommitStory(commit or stored_commit(checkpoint), checkpoint, reason, [], beside)


def _commits_in_git(folder: GitPlace, shas: list[str]) -> dict[str, history.Commit]:
    there = history.resolve_commits(folder, shas)
    if not there:
        return {}
    found = history.commits(folder, ["--no-walk=unsorted", *there.values()])
    return {commit.sha: commit for commit in found}


def _are_rewritten(
    folder: GitPlace, commits: dict[str, history.Commit], kept: dict[str, Checkpoint]
) -> bool:
    """Return whether a linked commit is on no branch any more, and nobody has looked since."""
    live = []
    for sha, known in kept.items():
        if sha in commits and known.parts and not known.superseded_by:
            live.append(sha)
    return bool(live and lost(folder, live))


def _judge(library: OpenStore, place: GitPlace, fresh: list[str]) -> Iterator[LinkOutcome]:
    """Infer the links of everything new, not only of what was asked for: where a story begins
    depends on the commit before."""
    local = local_store(library)
    repository = repository_at(local, place) if local else None
    if local is None or repository is None:
        return
    from whyfor.story.links.resolve import compute  # here: most commits are judged already

    outcome = compute(local, repository)
    yield outcome
    known = {row[0] for row in outcome.seen}
    older = [sha for sha in fresh if sha not in known]
    if older:
        yield compute(local, repository, only=older)


def full_story(library: OpenStore, cwd: GitPlace, told: CommitStory) -> FullStory:
    """Return a commit's story with what was said for it, its sessions, tokens and group."""
    sessions: dict[str, Session] = {}
    said: list[StoryLine] = []
    spans: list[tuple[int, int, int]] = []
    for part in told.checkpoint.parts if told.checkpoint else []:
        session = sessions[part.name] = _session(library, part)
        for first, last in part.ranges:
            said += _range_lines(library, part, session.id, (first, last))
            spans.append((session.id, first, last))
    return FullStory(
        told,
        said,
        sessions,
        library.checkpoints.spent(spans),
        group_of(library, told),
        reverted_story(library, cwd, told),
    )


def group_of(library: OpenStore, told: CommitStory) -> list[Checkpoint]:
    """Return the commits of a commit's group that were not replaced, and itself, oldest first;
    none if it has no story."""
    if told.checkpoint is None or not told.checkpoint.parts:
        return []
    members = library.checkpoints.of_group(told.checkpoint.group_root)
    members |= {checkpoint.commit: checkpoint for checkpoint in told.beside}
    standing = []
    for member in members.values():
        if member.commit == told.commit.sha or not member.superseded_by:
            standing.append(member)
    return sorted(standing, key=lambda member: (member.committed_at, member.commit))


def _session(library: OpenStore, part: Part) -> Session:
    return library.sessions.find(part.session_id, part.agent)


def _range_lines(
    library: OpenStore, part: Part, session: int, within: tuple[int, int]
) -> list[StoryLine]:
    """Return what was said in a range of a part."""
    first, last = within
    asked = library.conversation.prompt_before(session, first)
    return story_lines(part, library.conversation.events(session, asked, last), first)


def story_lines(part: Part, events: Iterable[StoredEvent], first: int) -> list[StoryLine]:
    """Return prompts, answers, questions and closing words from an event on; if there is no
    prompt, the one before it too."""
    found: list[StoryLine] = []
    before: StoryLine | None = None
    closing: dict[int, StoryLine] = {}
    for event in events:
        line = _story_line(part, event)
        if line is None:
            continue
        if event.seq < first:
            if line.role == "request":
                before = line
        elif line.role == "closing words":
            closing[event.turn] = line
        else:
            found.append(line)
    if before is not None and not any(line.role == "request" for line in found):
        found.insert(0, before)
    return sorted([*found, *closing.values()], key=lambda line: line.seq)


def _story_line(part: Part, event: StoredEvent) -> StoryLine | None:
    """Return what an event says for a commit, or None."""
    by, text = "agent", event.text
    if event.kind == "user.prompt" and event.actor == "user" and text.strip():
        role, by = "request", "person"
    elif event.kind == "question.asked":
        role = "question"
    elif event.kind == "assistant.message" and text.strip():
        role = "closing words"
    elif event.kind == "tool.result":
        answers = (event.data or {}).get("answers")
        if not isinstance(answers, dict):
            return None
        role, by, text = "answer", "person", "; ".join(map(str, answers.values()))
        if not text:
            return None
    else:
        return None
    return StoryLine(
        role, by, part.agent, part.session_id, event.turn, event.seq, event.created_at, text
    )


def reverted_story(library: OpenStore, cwd: GitPlace, told: CommitStory) -> CommitStory | None:
    if (found := _REVERTS.search(told.commit.body)) and (
        sha := resolve_commit(library, found[1], cwd)
    ):
        return stories_of(library, cwd, [sha])[0]
    return None


def conversation_lines(settings: Settings, told: CommitStory) -> list[WireLine]:
    """Everything said and done in the ranges, by time."""
    if told.checkpoint is None:
        return []
    found: list[tuple[int, int, WireLine]] = []
    with reading(settings) as library:
        for part in told.checkpoint.parts:
            session = _session(library, part)
            for first, last in part.ranges:
                for event in library.conversation.events(session.id, first, last):
                    if _is_line(event):
                        found.append((event.created_at or 0, event.seq, wire_line(event, part)))
    return [line for _, _, line in sorted(found, key=lambda item: item[:2])]


def _is_line(event: StoredEvent) -> bool:
    tool = event.kind.startswith("tool.")
    return event.kind in _CONVERSATION and (tool or bool(event.text))


_CONVERSATION = (
    "user.prompt",
    "assistant.message",
    "assistant.thinking",
    "tool.call",
    "tool.result",
    "question.asked",
    "compaction",
    "error",
)

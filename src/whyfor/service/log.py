"""log and show: the stories behind commits, read back. Commits nobody looked at yet are judged
on the spot."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from whyfor.agents import AGENTS
from whyfor.config import Settings
from whyfor.git import history
from whyfor.git.place import GitDir, GitPlace, name_place
from whyfor.git.run import ask
from whyfor.model.checkpoints import Checkpoint, Part
from whyfor.model.errors import Ambiguous, BadInput, NotFound
from whyfor.model.events import StoredEvent
from whyfor.model.paths import to_path
from whyfor.model.sessions import Session
from whyfor.model.stories import CommitStory, FullStory, StoryLine
from whyfor.model.times import to_iso
from whyfor.store.open import OpenStore, reading
from whyfor.store.sqlite.checkpoints import Checkpoints
from whyfor.story.links.assemble import NO_SESSION
from whyfor.story.links.resolve import compute
from whyfor.story.repositories import ALL, lost, repository_at

_SHA = re.compile(r"^[0-9a-f]{7,64}$")
_REVERTS = re.compile(r"This reverts commit ([0-9a-f]{7,64})")
MERGE = "context_reset"


# -- finding a commit ----------------------------------------------------------------------------


def top(cwd: GitPlace) -> GitPlace | None:
    """The work tree a folder is in, or the bare repository that the user named."""
    if isinstance(cwd, GitDir):
        return cwd if ask(cwd, "rev-parse", "--git-dir") else None
    found = ask(cwd, "rev-parse", "--show-toplevel")
    return to_path(found) if found else None


def inside(cwd: GitPlace, hint: str = "Go to one, or list sessions: whyfor sessions") -> GitPlace:
    """The same, where there must be one."""
    folder = top(cwd)
    if folder is None:
        raise NotFound(f"{cwd} is not in a git repository", hint)
    return folder


def resolve(library: OpenStore, reference: str | None, cwd: GitPlace) -> str | None:
    """The whole sha of a commit: HEAD, a branch, an abbreviation, a checkpoint's id; None if it
    is nothing of those."""
    name = "HEAD" if reference is None else reference
    store = Checkpoints(library.db)
    if name.startswith("ctx-"):
        found = store.beginning("id", name)
        if len(found) > 1:
            raise Ambiguous(f"{name} fits {len(found)} checkpoints", "Give more of the id.")
        return found[0] if found else None
    if name.startswith("-"):
        raise BadInput(
            f"not a commit: {name}", "Give a commit, a branch, HEAD~2, or a checkpoint's id."
        )
    if sha := ask(
        cwd, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}"
    ):
        return sha
    if _SHA.match(name):
        found = store.beginning("sha", name)
        if len(found) > 1:
            raise Ambiguous(f"{name} fits {len(found)} commits", "Give more of the hash.")
        return found[0] if found else None
    return None


def required(library: OpenStore, reference: str | None, cwd: GitPlace) -> str:
    sha = resolve(library, reference, cwd)
    if sha is None:
        name = "HEAD" if reference is None else reference
        hint = (
            "Run it inside the repository, or give a commit: whyfor log"
            if top(cwd) is None
            else "See: whyfor log"
        )
        raise NotFound(f"no commit is called {name!r} here", hint)
    return sha


def is_commit(settings: Settings, reference: str, cwd: Path) -> bool:
    """Whether people mean a commit by it, or a session; an error if it may be both, or is
    neither."""
    agent, _, rest = reference.partition(":")
    if agent in AGENTS and rest:
        return False
    with reading(settings) as library:
        sha = resolve(library, reference, name_place(cwd))
        try:
            session = library.reader.session(reference)
        except NotFound:
            if sha is None:
                raise NotFound(
                    f"no session and no commit begins with {reference!r}",
                    "See: whyfor sessions, whyfor log",
                ) from None
            return True
        except Ambiguous:
            if sha is None:
                raise
            return True
    if sha is None or session.session_id == reference:
        return False
    if len(reference) in (40, 64):
        return True
    raise Ambiguous(
        f"{reference!r} is a commit and a session",
        f"Give more of it: whyfor show {sha[:12]}, or whyfor show "
        f"{session.agent}:{session.session_id}",
    )


def story(settings: Settings, reference: str | None, cwd: Path) -> Checkpoint:
    """The checkpoint of a commit; an error that says why if it has none."""
    here = name_place(cwd)
    with reading(settings) as library:
        told = stories_of(library, here, [required(library, reference, here)])[0]
    if told.checkpoint is None or not told.checkpoint.parts:
        raise NotFound(
            f"{told.commit.sha[:10]} has no story: {told.reason}", "Commits with one: whyfor log"
        )
    return told.checkpoint


# -- telling -------------------------------------------------------------------------------------


def stories_of(library: OpenStore, cwd: GitPlace, shas: list[str]) -> list[CommitStory]:
    """Commits in the order given. What is not in git any more is told from what was kept."""
    store = Checkpoints(library.db)
    folder = top(cwd)
    there = history.resolve_commits(folder, shas) if folder else {}
    found = (
        {c.sha: c for c in history.commits(folder, ["--no-walk=unsorted", *there.values()])}
        if folder and there
        else {}
    )
    kept = store.of_commits(shas)
    seen = store.seen(shas)
    judged: dict[str, Checkpoint] = {}
    fresh = [sha for sha in shas if sha in found and sha not in seen and sha not in kept]
    live = [
        sha
        for sha, known in kept.items()
        if sha in found and known.parts and not known.superseded_by
    ]
    # perhaps rewritten, and nobody has looked since
    gone = bool(folder and live and lost(folder, live))
    if (fresh or gone) and (repository := repository_at(library.db, folder or cwd)):
        # Everything new, not only what was asked for: where a story begins depends on the commit
        # before.
        outcomes = [compute(library.db, repository)]
        known = {row[0] for row in outcomes[0].seen}
        if older := [sha for sha in fresh if sha not in known]:
            outcomes.append(compute(library.db, repository, only=older))
        for outcome in outcomes:
            judged |= {checkpoint.commit: checkpoint for checkpoint in outcome.saved}
            for sha, _, _, reason, nearby in outcome.seen:
                seen[sha] = (reason, msgspec.json.decode(nearby) if nearby else [])
        kept.update({sha: judged[sha] for sha in shas if sha in judged})
    return [_told(sha, found.get(sha), kept.get(sha), seen.get(sha), judged) for sha in shas]


def _told(
    sha: str,
    commit: history.Commit | None,
    checkpoint: Checkpoint | None,
    seen: tuple[str | None, list[dict[str, Any]]] | None,
    judged: dict[str, Checkpoint],
) -> CommitStory:
    if commit is None:
        if checkpoint is None:
            raise NotFound(f"commit {sha[:10]} is not in this repository", "See: whyfor log")
        c = checkpoint
        commit = history.Commit(
            sha, tuple(c.parents), c.author, c.email, c.authored_at, c.committed_at, c.subject, ""
        )
    reason, nearby = seen or (None, [])
    if checkpoint is not None:
        reason = MERGE if checkpoint.is_merge and not checkpoint.parts else None
    elif reason is None:
        reason = NO_SESSION
    if checkpoint is None:
        return CommitStory(commit, None, reason, nearby)
    return CommitStory(
        commit,
        checkpoint,
        reason,
        [],
        [c for c in judged.values() if c.group_root == checkpoint.group_root],
    )


def log(
    settings: Settings, cwd: Path, revisions: str | None, limit: int, *, everywhere: bool = False
) -> list[CommitStory]:
    """Newest first."""
    folder = inside(name_place(cwd))
    if ask(folder, "rev-parse", "--verify", "--quiet", "HEAD") is None and revisions is None:
        return []
    with reading(settings) as library:
        name = revisions or "HEAD"
        if name.startswith("-"):
            raise BadInput(
                f"not a revision: {name}", "Give a commit, a branch, or a range such as main..HEAD."
            )
        found = history.commits(folder, ALL if everywhere else [name], limit=limit or None)
        return stories_of(library, folder, [commit.sha for commit in reversed(found)])


def read(settings: Settings, reference: str | None, cwd: Path) -> FullStory:
    here = name_place(cwd)
    with reading(settings) as library:
        told = stories_of(library, here, [required(library, reference, here)])[0]
        return full_story(library, here, told)


def full_story(library: OpenStore, cwd: GitPlace, told: CommitStory) -> FullStory:
    own = told.checkpoint.parts if told.checkpoint else []
    sessions = {part.name: _session(library, part) for part in own}
    said = [item for part in own for item in said_in(part, _asked_for(library, part, sessions))]
    store = Checkpoints(library.db)
    kept = store.of_group(told.checkpoint.group_root) if told.checkpoint else {}
    members = {**kept, **{checkpoint.commit: checkpoint for checkpoint in told.beside}}
    group = sorted(members.values(), key=lambda member: (member.committed_at, member.commit))
    spans = [(sessions[part.name].id, part.first, part.last) for part in own]
    return FullStory(told, said, sessions, store.spent(spans), group, reverted(library, cwd, told))


def _session(library: OpenStore, part: Part) -> Session:
    return library.reader.session(part.session_id, part.agent)


def _asked_for(
    library: OpenStore, part: Part, sessions: dict[str, Session]
) -> Iterable[StoredEvent]:
    """The range, from the last prompt before it on."""
    session = sessions[part.name].id
    return library.reader.events(
        session, library.reader.prompt_before(session, part.first), part.last
    )


def said_in(part: Part, events: Iterable[StoredEvent]) -> list[StoryLine]:
    """Prompts, answers, questions and closing words of a range; with no prompt in it, the one it
    stems from."""

    def item(event: StoredEvent, role: str, by: str, text: str) -> StoryLine:
        return StoryLine(
            role, by, part.agent, part.session_id, event.turn, event.seq, event.created_at, text
        )

    found: list[StoryLine] = []
    before: StoryLine | None = None
    closing: dict[int, StoryLine] = {}
    for event in events:
        data = event.data or {}
        if event.kind == "user.prompt" and event.actor == "user" and event.text.strip():
            asked = item(event, "request", "person", event.text)
            if event.seq < part.first:
                before = asked
            else:
                found.append(asked)
        elif event.seq < part.first:
            continue
        elif event.kind == "question.asked":
            found.append(item(event, "question", "agent", event.text))
        elif event.kind == "tool.result" and isinstance(data.get("answers"), dict):
            said = "; ".join(map(str, data["answers"].values()))
            if said:
                found.append(item(event, "answer", "person", said))
        elif event.kind == "assistant.message" and event.text.strip():
            closing[event.turn] = item(event, "closing words", "agent", event.text)
    if before is not None and not any(s.role == "request" for s in found):
        found.insert(0, before)
    return sorted([*found, *closing.values()], key=lambda said: said.seq)


def reverted(library: OpenStore, cwd: GitPlace, told: CommitStory) -> CommitStory | None:
    if (found := _REVERTS.search(told.commit.body)) and (sha := resolve(library, found[1], cwd)):
        return stories_of(library, cwd, [sha])[0]
    return None


# -- for machines --------------------------------------------------------------------------------


def commit_story_json(told: CommitStory) -> dict[str, Any]:
    return {
        "commit": told.commit.sha,
        "subject": told.commit.subject,
        "author": told.commit.author,
        "committed_at": to_iso(told.commit.committed_at),
        "checkpoint": checkpoint_json(told.checkpoint) if told.checkpoint else None,
        "reason": told.reason,
        "nearby": told.nearby,
    }


def checkpoint_json(checkpoint: Checkpoint) -> dict[str, Any]:
    note = checkpoint.annotation
    return {
        "id": checkpoint.id,
        "group_root": checkpoint.group_root,
        "is_merge": checkpoint.is_merge,
        "evidence": checkpoint.evidence,
        "confidence": checkpoint.confidence,
        "superseded_by": checkpoint.superseded_by,
        "annotation": {**msgspec.structs.asdict(note), "files": files_json(checkpoint)}
        if note
        else None,
        "sessions": [part_json(part) for part in checkpoint.parts],
    }


def files_json(checkpoint: Checkpoint) -> list[dict[str, Any]]:
    return [{"path": f.path, "added": f.added, "removed": f.removed} for f in checkpoint.files]


def part_json(part: Part) -> dict[str, Any]:
    return {
        "agent": part.agent,
        "session_id": part.session_id,
        "from": part.first,
        "to": part.last,
        "messages": part.messages,
        "new_messages": part.new_messages,
        "continued_from_parent": part.continued,
        "prompts": part.prompts,
        "turns": part.turns,
        "evidence": part.evidence,
        "confidence": part.confidence,
        "role": part.role,
        "lines": part.lines or None,
        "share": part.share,
        "why": part.why,
    }


def conversation_json(settings: Settings, told: CommitStory) -> list[dict[str, Any]]:
    """Everything said and done in the ranges, by time."""
    if told.checkpoint is None:
        return []
    found: list[tuple[int, int, dict[str, Any]]] = []
    with reading(settings) as library:
        for part in told.checkpoint.parts:
            session = _session(library, part)
            for event in library.reader.events(session.id, part.first, part.last):
                if event.kind in _CONVERSATION and (event.text or event.kind.startswith("tool.")):
                    found.append((event.created_at or 0, event.seq, _line_json(event, part)))
    return [line for _, _, line in sorted(found, key=lambda item: item[:2])]


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


def _line_json(event: StoredEvent, part: Part) -> dict[str, Any]:
    return {
        "role": event.actor,
        "kind": event.kind,
        "text": event.text,
        "created_at": to_iso(event.created_at),
        "agent": part.agent,
        "session_id": part.session_id,
        "seq": event.seq,
        "name": event.name,
    }


def story_line_json(said: StoryLine) -> dict[str, Any]:
    fields = msgspec.structs.asdict(said)
    fields["created_at"] = to_iso(said.created_at)
    return fields


def story_json(settings: Settings, found: FullStory) -> dict[str, Any]:
    return {**story_summary_json(found), "conversation": conversation_json(settings, found.told)}


def story_summary_json(found: FullStory) -> dict[str, Any]:
    """Without the conversation, which may be long."""
    checkpoint = found.told.checkpoint
    return {
        **commit_story_json(found.told),
        "files": files_json(checkpoint) if checkpoint else [],
        "related": [story_line_json(said) for said in found.said],
        "tokens": msgspec.structs.asdict(found.tokens) if checkpoint and checkpoint.parts else None,
        "group": [other.commit for other in found.group],
        "reverts": found.reverts.commit.sha if found.reverts else None,
    }

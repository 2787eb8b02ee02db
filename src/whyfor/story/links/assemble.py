"""From links to checkpoints: ranges, groups, annotations, and what a person said, put together
for a repository."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from whyfor.git import history
from whyfor.model.checkpoints import (
    Annotation,
    ChangedFile,
    Checkpoint,
    Note,
    Part,
    SeenCommit,
    checkpoint_id,
)
from whyfor.store.journal import NoteEntry, OverrideEntry
from whyfor.story import annotate
from whyfor.story.links.candidates import Candidates
from whyfor.story.links.commits import CommitFacts
from whyfor.story.links.infer import Link
from whyfor.story.links.ranges import RangeClaim, continue_from, group_roots, parts

NO_SESSION = "no session kept here made this commit or wrote its lines"
NOT_THEN = "no session kept here was active before this commit"
BOT = "made by a bot"
_SLACK = 5000


class LinkOutcome(msgspec.Struct):
    """What was found, not yet kept."""

    project: int
    looked: int = 0  # commits judged in this run
    saved: list[Checkpoint] = []  # new or changed
    removed: list[str] = []
    seen: list[SeenCommit] = []
    acts: list[tuple[int, int, bytes]] = []
    linked: list[tuple[int, int]] = []
    tips: list[str] | None = None  # where the refs were: what they reach need not be listed again
    # of commits that were rewritten; it goes for the new ones too
    said: list[OverrideEntry | NoteEntry] = []


class Assembly:
    """One run over a repository: what it finds goes into the outcome."""

    def __init__(self, sessions: Candidates, unkept: dict[str, str]) -> None:
        self.sessions = sessions
        self.store = sessions.store
        self.repository = sessions.repository
        self.outcome = LinkOutcome(
            self.repository.id, saved=[], removed=[], seen=[], acts=[], linked=[], said=[]
        )
        self._unkept = unkept

    def assemble(
        self,
        todo: dict[str, history.Commit],
        facts: dict[str, CommitFacts],
        links: list[Link],
        superseded: dict[str, str],
        grown: set[int],
    ) -> None:
        proved = [
            link for link in links if link.evidence != "nearby" and not todo[link.commit].is_merge
        ]
        self._pass_on(superseded)
        proved = self._overridden(todo, proved)
        touched = {link.session for link in proved} | grown
        touched |= {
            row.id
            for known in self.store.checkpoints.of_commits([*todo, *superseded]).values()
            for part in known.parts
            if (row := self.sessions.find(part.agent, part.session_id))
        }
        stored = self._component(touched)
        superseded = {
            **{sha: c.superseded_by for sha, c in stored.items() if c.superseded_by},
            **superseded,
        }
        claims = [self._claim(link, todo[link.commit], superseded) for link in proved]
        claims += [
            self._claim(link, known, superseded)
            for sha, known in stored.items()
            if sha not in todo
            for link in known_links(self.sessions, known)
        ]
        shapes = {claim.session: self.sessions.outline(claim.session) for claim in claims}
        for session, shape in shapes.items():
            shape.inherited = self.sessions.inherited(session, claims)
        found = parts(claims, shapes)
        roots = group_roots(found, {old: _last(superseded, old) for old in superseded})
        sources = {claim.commit: list(claim.sources) for claim in claims}
        kept = {**{sha: known.parts for sha, known in stored.items()}, **found}
        merges = {sha: commit for sha, commit in todo.items() if commit.is_merge}
        stored |= self.store.checkpoints.of_commits(merges)
        for sha in [*found, *(sha for sha in merges if sha not in found)]:
            before = stored.get(sha)
            own = continue_from(found.get(sha, []), self._parents(todo, before, sha, kept))
            made = self._checkpoint(
                sha, todo.get(sha), facts.get(sha), before, own, roots, superseded.get(sha)
            )
            made = msgspec.structs.replace(made, squashed_from=sources.get(sha, []))
            if made != before:
                self.outcome.saved.append(made)
        self.outcome.removed = [
            sha for sha in stored if sha in todo and sha not in found and sha not in merges
        ]
        self._saw(todo, facts, found, links)

    def _pass_on(self, superseded: dict[str, str]) -> None:
        """What was said of a commit goes for the one that took its place, unless more was said
        of that."""
        heirs = {old: _last(superseded, old) for old in superseded}
        known = {_about(entry) for entry in self.store.checkpoints.said(set(heirs.values()))}
        for entry in self.store.checkpoints.said(heirs):
            again = msgspec.structs.replace(entry, commit=heirs[entry.commit])
            if _about(again) not in known:
                known.add(_about(again))
                self.outcome.said.append(again)

    def _noted(self, sha: str) -> tuple[str, Note] | None:
        passed = (
            (e.by, e.note)
            for e in self.outcome.said
            if isinstance(e, NoteEntry) and e.commit == sha
        )
        return self.store.checkpoints.notes([sha]).get(sha) or next(passed, None)

    def _overridden(self, todo: dict[str, history.Commit], links: list[Link]) -> list[Link]:
        """A person's word counts more than any evidence."""
        overrides = self.store.checkpoints.overrides(todo)
        for entry in self.outcome.said:
            if isinstance(entry, OverrideEntry) and entry.commit in todo:
                overrides.setdefault(entry.commit, []).append(
                    (entry.agent, entry.session_id, entry.action)
                )
        for sha, said in overrides.items():
            for agent, session_id, action in said:
                row = self.sessions.find(agent, session_id)
                if row is None or action == "undo":
                    continue
                known = [link for link in links if link.commit == sha and link.session == row.id]
                links = [link for link in links if link not in known]
                if action == "link":
                    cut = (
                        known[0].seq
                        if known
                        else self.sessions.outline(row.id).at(todo[sha].committed_at + 999)
                    )
                    links.append(
                        Link(sha, row.id, "person", "high", "made", cut, why="linked by a person")
                    )
        return links

    def _component(self, sessions: set[int]) -> dict[str, Checkpoint]:
        """Checkpoints of these sessions, and of all that share a commit with them."""
        known: set[int] = set()
        found: dict[str, Checkpoint] = {}
        while fresh := sessions - known:
            known |= fresh
            found.update(self.store.checkpoints.of_sessions(fresh))
            names = {(part.agent, part.session_id) for c in found.values() for part in c.parts}
            sessions = known | {row.id for name in names if (row := self.sessions.find(*name))}
        return found

    def _claim(
        self, link: Link, commit: history.Commit | Checkpoint, superseded: dict[str, str]
    ) -> RangeClaim:
        row = next(row for row in self.sessions.rows if row.id == link.session)
        return RangeClaim(
            commit=link.commit,
            session=link.session,
            agent=row.agent,
            session_id=row.session_id,
            evidence=link.evidence,
            confidence=link.confidence,
            role=link.role,
            cut=link.seq,
            committed_at=commit.committed_at,
            lines=link.lines,
            share=link.share or None,
            why=link.why,
            replaced_by=superseded.get(link.commit, ""),
            parents=tuple(commit.parents),
            sources=link.sources,
        )

    def _parents(
        self,
        todo: dict[str, history.Commit],
        before: Checkpoint | None,
        sha: str,
        kept: dict[str, list[Part]],
    ) -> Iterator[list[Part]]:
        above: Iterable[str] = (
            todo[sha].parents if sha in todo else before.parents if before else ()
        )
        for parent in above:
            if parent in kept:
                yield kept[parent]
            elif known := self.store.checkpoints.of_commits([parent]).get(parent):
                yield known.parts

    def _checkpoint(  # noqa: PLR0913 - all that a checkpoint is made of
        self,
        sha: str,
        commit: history.Commit | None,
        facts: CommitFacts | None,
        before: Checkpoint | None,
        own: list[Part],
        roots: dict[str, str],
        superseded_by: str | None,
    ) -> Checkpoint:
        if commit is None:
            assert before is not None
            subject, body, files = before.subject, "", before.files
        else:
            subject, body = commit.subject, commit.body
            files = (
                [ChangedFile(file.path, file.plus, file.minus) for file in facts.files]
                if facts
                else []
            )
        same = before is not None and [(p.first, p.last) for p in before.parts] == [
            (p.first, p.last) for p in own
        ]
        noted = self._noted(sha)
        annotation = (
            before.annotation
            if before is not None and same and commit is None and not noted
            else None
        )
        if own and annotation is None:
            annotation = self._annotation(sha, subject, body, files, own[0])
        base = commit or before
        assert base is not None
        return Checkpoint(
            commit=sha,
            project=self.repository.project.identity,
            subject=subject,
            author=base.author,
            email=base.email,
            authored_at=base.authored_at,
            committed_at=base.committed_at,
            parents=list(base.parents),
            is_merge=len(base.parents) > 1,
            patch_id=facts.patch_id if facts else before.patch_id if before else None,
            files=files,
            parts=own,
            evidence=own[0].evidence if own else None,
            confidence=own[0].confidence if own else None,
            group_root=roots.get(sha, checkpoint_id(sha)),
            superseded_by=superseded_by,
            annotation=annotation,
        )

    def _annotation(
        self, sha: str, subject: str, body: str, files: list[ChangedFile], part: Part
    ) -> Annotation:
        row = self.sessions.find(part.agent, part.session_id)
        assert row is not None
        asked = [seq for seq in self.sessions.outline(row.id).prompts if seq <= part.last]
        inside = [seq for seq in asked if seq >= part.first] or asked[-1:]
        events = self.store.conversation.events
        prompts = [event.text for seq in inside[:1] for event in events(row.id, seq, seq)]
        derived = annotate.derive(
            subject, body, files, prompts, events(row.id, part.first, part.last)
        )
        noted = self._noted(sha)
        return annotate.noted(derived, *noted) if noted else derived

    def _saw(
        self,
        todo: dict[str, history.Commit],
        facts: dict[str, CommitFacts],
        found: dict[str, list[Part]],
        links: list[Link],
    ) -> None:
        hints: dict[str, list[dict[str, Any]]] = {}
        for link in links:
            if link.evidence == "nearby":
                row = next(row for row in self.sessions.rows if row.id == link.session)
                hint = {"agent": row.agent, "session_id": row.session_id, "why": link.why}
                hints.setdefault(link.commit, []).append(hint)
        begun = self.sessions.begun
        for sha, commit in todo.items():
            reason = None
            if sha not in found and not commit.is_merge:
                then = begun is not None and begun <= commit.committed_at + _SLACK
                reason = self._unkept.get(sha) or (NO_SESSION if then else NOT_THEN)
                if sha in facts and facts[sha].is_bot:
                    reason = BOT
            nearby = (
                msgspec.json.encode(hints[sha]).decode()
                if sha in hints and sha not in found
                else None
            )
            seen = SeenCommit(sha, commit.authored_at, commit.committed_at, reason, nearby)
            self.outcome.seen.append(seen)


def known_links(sessions: Candidates, checkpoint: Checkpoint) -> list[Link]:
    """The links a kept checkpoint rests on."""
    return [
        Link(
            checkpoint.commit,
            row.id,
            p.evidence,
            p.confidence,
            p.role,
            p.cut,
            p.lines,
            p.share or 0.0,
            p.why,
            tuple(checkpoint.squashed_from),
        )
        for p in checkpoint.parts
        if (row := sessions.find(p.agent, p.session_id))
    ]


def _last(superseded: dict[str, str], commit: str) -> str:
    """What stands in the place of a commit that was rewritten, perhaps again and again."""
    seen = {commit}
    while (commit := superseded.get(commit, "")) in superseded and commit not in seen:
        seen.add(commit)
    return commit


def _about(entry: OverrideEntry | NoteEntry) -> tuple[str, ...]:
    """Two entries about the same thing: the later one counts."""
    if isinstance(entry, OverrideEntry):
        return entry.commit, entry.agent, entry.session_id
    return entry.commit, str(entry.at)

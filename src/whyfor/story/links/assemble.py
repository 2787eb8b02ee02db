"""From links to checkpoints: ranges, groups, annotations, and what a person said, put together
for a repository."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from whyfor.git import history
from whyfor.model.checkpoints import (
    BOT,
    NO_SESSION,
    NOT_THEN,
    Annotation,
    ChangedFile,
    Checkpoint,
    Note,
    Part,
    SeenCommit,
    checkpoint_id,
)
from whyfor.model.lines import CommitLines
from whyfor.store.journal import NoteEntry, OverrideEntry
from whyfor.story import annotate
from whyfor.story.lines.commit_lines import CommitSource, LineReader, count_session_lines
from whyfor.story.links.activity import SessionActivity
from whyfor.story.links.candidates import Candidates
from whyfor.story.links.commits import CommitFacts
from whyfor.story.links.infer import WROTE_LINES, Link
from whyfor.story.links.ranges import (
    RangeClaim,
    continue_from,
    group_roots,
    parts,
    strongest_first,
)

_SLACK = 5000


class LinkOutcome(msgspec.Struct):
    """What was found, not yet kept."""

    project: int
    looked: int = 0  # commits judged in this run
    read: int = 0  # commits all of whose changes were read for that
    saved: list[Checkpoint] = []  # new or changed
    removed: list[str] = []
    seen: list[SeenCommit] = []
    acts: list[tuple[int, int, bytes]] = []
    linked: list[tuple[int, int]] = []
    tips: list[str] | None = None  # where the refs were: what they reach need not be listed again
    # of commits that were rewritten; it goes for the new ones too
    said: list[OverrideEntry | NoteEntry] = []
    lines: list[CommitLines] = []  # who wrote the lines of the commits that have a story


class _Draft(msgspec.Struct, frozen=True):
    """A commit, and what is known of it: what git said now, or what was kept of it before."""

    sha: str
    commit: history.Commit | None
    facts: CommitFacts | None
    before: Checkpoint | None

    @property
    def base(self) -> history.Commit | Checkpoint:
        found = self.commit or self.before
        assert found is not None
        return found

    @property
    def files(self) -> list[ChangedFile]:
        if self.commit is None and self.before is not None:
            return self.before.files
        changed = self.facts.files if self.facts else ()
        return [ChangedFile(file.path, file.plus, file.minus) for file in changed]

    @property
    def patch_id(self) -> str | None:
        known = self.facts or self.before
        return known.patch_id if known else None


class Assembly:
    """One run over a repository: what it finds goes into the outcome."""

    def __init__(self, sessions: Candidates, unkept: dict[str, str]) -> None:
        self.sessions = sessions
        self.store = sessions.store
        self.repository = sessions.repository
        self.outcome = LinkOutcome(
            self.repository.id, saved=[], removed=[], seen=[], acts=[], linked=[], said=[], lines=[]
        )
        self._unkept = unkept
        self._lines = LineReader(
            self.store, self.repository.folder, self.repository.folders, self._acts_of
        )

    def assemble(
        self,
        todo: dict[str, history.Commit],
        facts: dict[str, CommitFacts],
        links: list[Link],
        superseded: dict[str, str],
        grown: set[int],
    ) -> None:
        self._pass_on(superseded)
        proved = self._overridden(todo, self._proved(todo, links))
        touched = {link.session for link in proved} | grown
        stored = self._component(touched | self._told_before([*todo, *superseded]))
        superseded = {**_replaced(stored), **superseded}
        claims = self._claims(proved, todo, stored, superseded)
        found = self._parts(claims)
        roots = group_roots(found, {old: _last(superseded, old) for old in superseded})
        sources = {claim.commit: list(claim.sources) for claim in claims}
        kept = {sha: known.parts for sha, known in stored.items()} | found
        merges = [sha for sha, commit in todo.items() if commit.is_merge]
        stored |= self.store.checkpoints.of_commits(merges)
        lines = self._line_authors(todo, facts, found)
        for sha in dict.fromkeys([*found, *merges]):
            draft = _Draft(sha, todo.get(sha), facts.get(sha), stored.get(sha))
            own = continue_from(found.get(sha, []), self._parents(draft, kept))
            made = msgspec.structs.replace(
                self._checkpoint(draft, self._counted(own, draft.facts, lines.get(sha))),
                group_root=roots.get(sha, checkpoint_id(sha)),
                superseded_by=superseded.get(sha),
                squashed_from=sources.get(sha, []),
            )
            if made != draft.before:
                self.outcome.saved.append(made)
        without = todo.keys() - found.keys() - set(merges)
        self.outcome.removed = [sha for sha in stored if sha in without]
        self._saw(todo, facts, found, links)

    def _proved(self, todo: dict[str, history.Commit], links: Iterable[Link]) -> list[Link]:
        """Links that are more than a hint; a merge has none."""
        found = []
        for link in links:
            if link.evidence != "nearby" and not todo[link.commit].is_merge:
                found.append(link)
        return found

    def _told_before(self, shas: Iterable[str]) -> set[int]:
        """Sessions that these commits were linked to."""
        found: set[int] = set()
        for known in self.store.checkpoints.of_commits(shas).values():
            found |= {link.session for link in known_links(self.sessions, known)}
        return found

    def _claims(
        self,
        proved: Iterable[Link],
        todo: dict[str, history.Commit],
        stored: dict[str, Checkpoint],
        superseded: dict[str, str],
    ) -> list[RangeClaim]:
        """The links found now, and those of commits that were not looked at."""
        found = [self._claim(link, todo[link.commit], superseded) for link in proved]
        for sha, known in stored.items():
            if sha not in todo:
                links = known_links(self.sessions, known)
                found += [self._claim(link, known, superseded) for link in links]
        return found

    def _parts(self, claims: list[RangeClaim]) -> dict[str, list[Part]]:
        shapes = {claim.session: self.sessions.outline(claim.session) for claim in claims}
        for session, shape in shapes.items():
            shape.inherited = self.sessions.inherited(session, claims)
        return parts(claims, shapes)

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

    def _acts_of(self, session: int) -> SessionActivity | None:
        """What this run knows of a session's work."""
        row = next((row for row in self.sessions.rows if row.id == session), None)
        return self.sessions.acts_of(row) if row else None

    def _line_authors(
        self,
        todo: dict[str, history.Commit],
        facts: dict[str, CommitFacts],
        found: dict[str, list[Part]],
    ) -> dict[str, CommitLines]:
        """Who wrote the lines of the commits that were looked at."""
        sources = []
        for sha, own in found.items():
            if sha in todo and sha in facts:
                known = facts[sha]
                is_whole = known.is_within_limits
                sources.append(CommitSource(todo[sha], own, known.places, is_whole))
        lines = self._lines.read(sources)
        self.outcome.lines = list(lines.values())
        return lines

    def _counted(
        self, own: list[Part], commit: CommitFacts | None, lines: CommitLines | None
    ) -> list[Part]:
        """With how many of the commit's added lines each session wrote: the count that every face
        shows. As they are, if the changes were not read."""
        if commit is None:
            return own
        added = sum(file.plus for file in commit.files)
        counts = count_session_lines(lines) if lines else Counter[int]()
        found: list[tuple[int, Part]] = []
        for part in own:
            row = self.sessions.find(part.agent, part.session_id)
            assert row is not None
            number = counts[row.id]
            why = part.why
            if number and why == WROTE_LINES:
                why = f"{number} of {added} added lines"
            share = round(number / added, 3) if number else None
            counted = msgspec.structs.replace(part, lines=number, share=share, why=why)
            found.append((row.id, counted))
        return strongest_first(found)

    def _parents(self, draft: _Draft, kept: dict[str, list[Part]]) -> Iterator[list[Part]]:
        for parent in draft.base.parents:
            if parent in kept:
                yield kept[parent]
            elif known := self.store.checkpoints.of_commits([parent]).get(parent):
                yield known.parts

    def _checkpoint(self, draft: _Draft, own: list[Part]) -> Checkpoint:
        """What a commit is by itself: in a group of its own, and not replaced."""
        base = draft.base
        return Checkpoint(
            commit=draft.sha,
            project=self.repository.project.identity,
            subject=base.subject,
            author=base.author,
            email=base.email,
            authored_at=base.authored_at,
            committed_at=base.committed_at,
            parents=list(base.parents),
            is_merge=len(base.parents) > 1,
            patch_id=draft.patch_id,
            files=draft.files,
            parts=own,
            evidence=own[0].evidence if own else None,
            confidence=own[0].confidence if own else None,
            group_root=checkpoint_id(draft.sha),
            superseded_by=None,
            annotation=self._annotated(draft, own),
        )

    def _annotated(self, draft: _Draft, own: list[Part]) -> Annotation | None:
        """As it was, if nothing has changed; else derived anew."""
        before = draft.before
        if before is not None and draft.commit is None and not self._noted(draft.sha):
            same = _ranges(before.parts) == _ranges(own)
            if same and before.annotation is not None:
                return before.annotation
        return self._annotation(draft, own[0]) if own else None

    def _annotation(self, draft: _Draft, part: Part) -> Annotation:
        row = self.sessions.find(part.agent, part.session_id)
        assert row is not None
        asked = [seq for seq in self.sessions.outline(row.id).prompts if seq <= part.last]
        inside = [seq for seq in asked if seq >= part.first] or asked[-1:]
        events = self.store.conversation.events
        prompts = [event.text for seq in inside[:1] for event in events(row.id, seq, seq)]
        body = draft.commit.body if draft.commit else ""
        told = events(row.id, part.first, part.last)
        derived = annotate.derive(draft.base.subject, body, draft.files, prompts, told)
        noted = self._noted(draft.sha)
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
    found = []
    for part in checkpoint.parts:
        row = sessions.find(part.agent, part.session_id)
        if row is None:
            continue
        link = Link(
            checkpoint.commit,
            row.id,
            part.evidence,
            part.confidence,
            part.role,
            part.cut,
            part.lines,
            part.share or 0.0,
            part.why,
            tuple(checkpoint.squashed_from),
        )
        found.append(link)
    return found


def _replaced(stored: dict[str, Checkpoint]) -> dict[str, str]:
    """Commits whose place another took, as far as that is kept."""
    found = {}
    for sha, known in stored.items():
        if known.superseded_by:
            found[sha] = known.superseded_by
    return found


def _ranges(parts: Iterable[Part]) -> list[tuple[int, int]]:
    return [(part.first, part.last) for part in parts]


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

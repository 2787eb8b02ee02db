"""Checkpoints after a forget: without the sessions that go, in the new numbers of those of which
something stays, and with nothing of a text."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from whyfor.capture.filters.forgotten import TextPattern
from whyfor.capture.forget import PendingForget, replay_forget
from whyfor.capture.rebuild import Rebuild
from whyfor.config import Settings
from whyfor.model.checkpoints import Annotation, Checkpoint, Part
from whyfor.model.events import EventPlace
from whyfor.model.gaps import FILLER
from whyfor.model.sessions import SessionName
from whyfor.service.forget.plan import ForgetPlan, git_texts
from whyfor.service.forget.records import ForgetRequest
from whyfor.store.blobs import FolderBlobs
from whyfor.store.journal import CheckpointEntry, Entry, Journal, NoCheckpointEntry
from whyfor.store.protocol import Store
from whyfor.story import annotate

Places = dict[int, EventPlace]  # by the key of the event


class CheckpointRewrite:
    """Rewrites checkpoints, inside a trial: the database is what it will be after the forget."""

    def __init__(self, store: Store, request: ForgetRequest) -> None:
        self.store = store
        self.request = request
        self.before: dict[SessionName, Places] = {}  # of the sessions that are read again
        self.after: dict[SessionName, Places] = {}
        self.entries: list[Entry] = []
        self._outcomes: dict[str, tuple[Checkpoint, Checkpoint | None]] = {}

    @property
    def changed(self) -> list[str]:
        """Commits whose checkpoint is another in the end, or none."""
        return sorted(sha for sha, (before, after) in self._outcomes.items() if after != before)

    @property
    def lost(self) -> list[str]:
        """Commits that have no checkpoint in the end, though nobody named them."""
        gone = {sha for sha, (_, after) in self._outcomes.items() if after is None}
        return sorted(gone - self.request.commits)

    def add(self, entry: Entry) -> None:
        """Take the next entry of the plan; of several checkpoints of a commit the last counts."""
        if isinstance(entry, CheckpointEntry):
            before = entry.checkpoint
            after = self._rewrite(before)
            self._outcomes[before.commit] = before, after
            entry = NoCheckpointEntry(before.commit) if after is None else CheckpointEntry(after)
        elif isinstance(entry, NoCheckpointEntry):
            self._outcomes.pop(entry.commit, None)
        self.entries.append(entry)

    def _rewrite(self, checkpoint: Checkpoint) -> Checkpoint | None:
        if checkpoint.commit in self.request.commits:
            return None
        found = [self._part(part) for part in checkpoint.parts]
        parts = [part for part in found if part is not None]
        if checkpoint.parts and not parts:
            return None
        after = msgspec.structs.replace(checkpoint, parts=parts)
        if parts:
            evidence, confidence = parts[0].evidence, parts[0].confidence
            after = msgspec.structs.replace(after, evidence=evidence, confidence=confidence)
        pattern = self.request.pattern
        if pattern is not None and any(map(pattern.said_in, git_texts(after))):
            after = _without_text(after, pattern)
        if parts and self._needs_annotation(checkpoint, parts[0]):
            after = msgspec.structs.replace(after, annotation=self._annotation(after))
        return after

    def _part(self, part: Part) -> Part | None:
        """The same range in the session's new numbers; None if nothing is left of it."""
        name = (part.agent, part.session_id)
        if name in self.request.sessions:
            return None
        if name not in self.before:
            return part
        after = self.after[name]
        moved = sorted(
            (place.seq, after[key].seq) for key, place in self.before[name].items() if key in after
        )
        pieces: list[tuple[int, int]] = []
        for first, last in part.ranges:
            kept = [new for old, new in moved if first <= old <= last]
            pieces += [(kept[0], kept[-1])] if kept else []
        if not pieces:
            return None
        first, last = pieces[0][0], pieces[-1][1]
        cut = max((new for old, new in moved if old <= part.cut), default=first)
        return msgspec.structs.replace(
            part, first=first, last=last, cut=cut, pieces=tuple(pieces) if pieces[1:] else ()
        )

    def _needs_annotation(self, before: Checkpoint, first: Part) -> bool:
        """Whether an annotation rests on something that is gone, or holds the text."""
        if before.annotation is None:
            return False
        former = before.parts[0]
        if first.name != former.name or self._is_changed(former):
            return True
        return self.request.holds_text(msgspec.json.encode(before.annotation))

    def _is_changed(self, part: Part) -> bool:
        """Whether an event of this range, or before it, is gone or says something else."""
        name = (part.agent, part.session_id)
        after = self.after.get(name, {})
        for key, place in self.before.get(name, {}).items():
            same = key in after and after[key].text == place.text
            if place.seq <= part.last and not same:
                return True
        return False

    def _annotation(self, checkpoint: Checkpoint) -> Annotation:
        """From the commit and what is left of its conversation."""
        part = checkpoint.parts[0]
        events = []
        for number in self.store.sessions.numbers([(part.agent, part.session_id)]).values():
            events = list(self.store.conversation.events(number, part.first, part.last))
        prompts = [e.text for e in events if e.kind == "user.prompt" and e.actor == "user"]
        found = annotate.derive(checkpoint.subject, "", checkpoint.files, prompts[:1], events)
        noted = self.store.checkpoints.notes([checkpoint.commit]).get(checkpoint.commit)
        return annotate.noted(found, *noted) if noted else found


def rewrite_checkpoints(
    settings: Settings, store: Store, plan: ForgetPlan, pending: PendingForget
) -> CheckpointRewrite:
    """Return the plan's entries with their checkpoints as they are to be.

    The new numbers of events are known only when what is left has been read again: that is
    tried, and rolled back.
    """
    rewrite = CheckpointRewrite(store, plan.request)
    facet = store.forget
    named = _names_in_parts(plan.entries)
    again = store.sessions.numbers(named & set(pending.again))
    rewrite.before = {name: facet.event_places(number) for name, number in again.items()}
    with facet.trial():
        if again or (named and plan.request.pattern is not None):
            blobs = FolderBlobs(settings.segments)
            rebuild = Rebuild(store, blobs, Journal(settings.journal))
            replay_forget(rebuild, plan.entries, pending)
        rewrite.after = {name: facet.event_places(number) for name, number in again.items()}
        for entry in plan.entries:
            rewrite.add(entry)
    return rewrite


def _names_in_parts(entries: Iterable[Entry]) -> set[SessionName]:
    found: set[SessionName] = set()
    for entry in entries:
        if isinstance(entry, CheckpointEntry):
            found |= {(part.agent, part.session_id) for part in entry.checkpoint.parts}
    return found


def _without_text(checkpoint: Checkpoint, pattern: TextPattern) -> Checkpoint:
    """Return a checkpoint without a text in what it repeats of its commit; git's own copy of it
    stays."""

    def shown(text: str) -> str:
        return FILLER.decode() if pattern.said_in(text) else text

    return msgspec.structs.replace(
        checkpoint,
        files=[msgspec.structs.replace(file, path=shown(file.path)) for file in checkpoint.files],
        subject=shown(checkpoint.subject),
        author=shown(checkpoint.author),
        email=shown(checkpoint.email),
    )

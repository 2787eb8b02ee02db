"""Puts things into a store as an ingest does, through its facets alone."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any

from whyfor.model.checkpoints import Annotation, ChangedFile, Checkpoint, Part, checkpoint_id
from whyfor.model.events import Event, Touch, Usage
from whyfor.model.findings import Bucket
from whyfor.model.sessions import Project
from whyfor.model.signals import Signal
from whyfor.model.sources import Source
from whyfor.store.journal import SegmentEntry
from whyfor.store.protocol import SharedStore

NOW = 1_777_629_600_000
SHOP = Project("example.com/shop", "remote", "shop", path="/shop")


class Build:
    """Events get rising keys and, unless told otherwise, times a second apart."""

    def __init__(self, store: SharedStore) -> None:
        self.store = store
        self.keys = itertools.count(1)

    def event(self, kind: str, text: str = "", **more: Any) -> Event:
        key = more.pop("key", None) or next(self.keys)
        actor = more.pop("actor", "user" if kind == "user.prompt" else "assistant")
        return Event(kind, key, more.pop("at", NOW + key * 1000), actor, text, **more)

    def session(
        self,
        name: str,
        *events: Event,
        agent: str = "claude",
        parent: str | None = None,
        facts: dict[str, Any] | None = None,
        more: Iterable[Usage | Touch] = (),
    ) -> int:
        """Store what a run of records says about a session; returns the session's number. A later
        version of an event takes its place."""
        bucket = Bucket(name, parent)
        bucket.events.extend(events)
        for one in more:
            if isinstance(one, Touch):
                bucket.touches.append(one)
            else:
                bucket.usage.append(one)
        bucket.facts.update(facts or {})
        writer = self.store.records.writer()
        with self.store.transaction():
            writer.apply(agent, bucket, NOW, mutable=True)
            writer.finish()
        return self.store.sessions.numbers([(agent, name)])[agent, name]

    def project(self, project: Project = SHOP, *places: str) -> int:
        """A project, and the folders that belong to it."""
        writer = self.store.records.writer()
        number = 0
        with self.store.transaction():
            for place in places or (project.path or "/",):
                number = writer.learn_place(place, project, [], NOW)
        return number

    def signals(self, *signals: Signal) -> None:
        with self.store.transaction():
            self.store.records.writer().add_signals(list(signals))

    def source(self, path: str, session: str, **more: Any) -> Source:
        source = Source(0, more.pop("agent", "claude"), path, session, "lines", state={}, **more)
        with self.store.transaction():
            self.store.records.writer().save_source(source)
        return source

    def segment(self, source: Source, start: int, end: int, digest: str, **more: Any) -> None:
        generation = more.pop("generation", 0)
        entry = SegmentEntry(
            source.agent,
            source.path,
            generation,
            start,
            end,
            digest,
            NOW,
            source.framing,
            source.session_id,
            **more,
        )
        with self.store.transaction():
            self.store.records.writer().add_segment(source, entry)

    def checkpoint(self, project: int, checkpoint: Checkpoint) -> None:
        with self.store.transaction():
            self.store.checkpoints.save(project, checkpoint)


def checkpoint(sha: str, *parts: Part, **more: Any) -> Checkpoint:
    """A commit with a story; without parts it has none."""
    given: dict[str, Any] = {
        "commit": sha,
        "project": SHOP.identity,
        "subject": f"Change {sha}",
        "author": "Ada",
        "email": "ada@example.com",
        "authored_at": NOW,
        "committed_at": NOW,
        "parents": [],
        "is_merge": False,
        "patch_id": None,
        "files": [ChangedFile("a.py", 1, 0)],
        "parts": list(parts),
        "evidence": "hook" if parts else None,
        "confidence": "high" if parts else None,
        "group_root": checkpoint_id(sha),
        "superseded_by": None,
        "annotation": None,
    }
    return Checkpoint(**{**given, **more})


def part(session: str, first: int, last: int, **more: Any) -> Part:
    """What a session gave to a commit."""
    given: dict[str, Any] = {
        "agent": "claude",
        "session_id": session,
        "evidence": "hook",
        "confidence": "high",
        "role": "made",
        "cut": last,
        "first": first,
        "last": last,
        "messages": 2,
        "new_messages": 2,
    }
    return Part(**{**given, **more})


def annotation(title: str, tag: str = "BUGFIX") -> Annotation:
    return Annotation(title, "so that it works", [], "a.py", tag, "derived")

"""Doing what a draft says: journal and segments first, then the database, then every other file
of ours.

Before the journal is replaced all is as it was; after that the journal says what is forgotten,
and whatever was not done yet is done by the next process that takes the ingest lock: a file says
that there is something to finish.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

import apsw
import msgspec

from whyfor.capture.compare import require_agreement
from whyfor.capture.filters.forgotten import TextPattern
from whyfor.capture.ingest import wall_clock
from whyfor.capture.rebuild import Rebuild
from whyfor.capture.recover import rebuild_database
from whyfor.config import Settings
from whyfor.files import replace
from whyfor.model.checkpoints import Annotation, Checkpoint, Part
from whyfor.model.gaps import FILLER
from whyfor.model.paths import to_path
from whyfor.model.sources import Source
from whyfor.service.forget.plan import ForgetPlan, Name, SourceRewrite, merge_forgotten, of_git
from whyfor.store.address import parse
from whyfor.store.blobs import FolderBlobs
from whyfor.store.journal import (
    CheckpointEntry,
    Entry,
    ForgottenEntry,
    Journal,
    NoCheckpointEntry,
    SegmentEntry,
)
from whyfor.store.sqlite import forget
from whyfor.store.sqlite.changes import ChangeLog
from whyfor.store.sqlite.checkpoints import Checkpoints
from whyfor.store.sqlite.commit import save_mark
from whyfor.store.sqlite.connection import connect, explained, fetch, transaction
from whyfor.store.sqlite.read import StoreRows
from whyfor.store.sqlite.schema import SEQ_BITS
from whyfor.store.sqlite.write import EventWriter
from whyfor.story import annotate
from whyfor.story.links.save import publish

MARK = "forgotten"  # which entry of the journal the database has taken
Told = dict[int, tuple[int, str]]  # key of an event → its seq and its text


class PendingForget(msgspec.Struct):
    """What the next process has to know if this one dies."""

    at: int = 0  # of the journal's entry: one that is not there was never begun
    spool: dict[str, list[tuple[int, int]]] = {}


def apply_plan(
    settings: Settings, db: apsw.Connection, journal: Journal, draft: ForgetPlan
) -> bool:
    """Under the ingest lock; False if an open reader keeps bytes in use that the next ingest
    will remove."""
    return _Burial(settings, db, journal, draft).run()


class _Burial:
    def __init__(
        self, settings: Settings, db: apsw.Connection, journal: Journal, draft: ForgetPlan
    ) -> None:
        self.settings, self.db, self.journal, self.draft = settings, db, journal, draft
        self.wish = draft.wish
        self.store = Checkpoints(db)
        self.before: dict[str, Checkpoint] = {}
        # sessions read again: number, events before and after
        self.moved: dict[Name, tuple[int, Told, Told]] = {}

    def run(self) -> bool:
        draft = self.draft
        with explained(self.settings.database):
            self.db.pragma("secure_delete", True)
            with transaction(self.db):
                self.before = self._concerned()
                self._delete()
                self._read_again()
                self._readdress()
                lost = self._stories()
                stone = self._stone(lost)
                entries = [*self._entries(), stone]
                forget.save_tombstones(self.db, stone)
                self.store.set_mark(MARK, stone.at)
                ChangeLog(self.db).begin_anew()  # whoever listens shows what is gone now
                _announce(self.settings.home, PendingForget(stone.at, draft.spool))
                draft.blobs.flush()
                self.journal.rewrite(entries)
                save_mark(self.db, self.journal.end())
            return finish(self.settings, self.db, self.journal)

    def _stone(self, lost: Iterable[str]) -> ForgottenEntry:
        draft = self.draft
        fresh = ForgottenEntry(
            at=max(wall_clock(), draft.former.at + 1),
            sessions=[f"{agent}:{ident}" for agent, ident in self.wish.sessions],
            commits=list(self.wish.commits),
            lost=list(lost),
            records={name: list(digests) for name, digests in draft.hidden.items()},
            strings=list(draft.strings),
        )
        stone = merge_forgotten(draft.former, fresh)
        if stone.records or stone.strings:
            stone = merge_forgotten(stone, ForgottenEntry(0, strings=[draft.stones.mark]))
        return stone

    # -- sessions --------------------------------------------------------------------------------

    def _delete(self) -> None:
        gone = numbers(self.db, self.wish.sessions)
        keys, others = forget.sharing(self.db, gone.values())
        for number in gone.values():
            forget.delete_session(self.db, number)
        for agent, ident in self.wish.sessions:
            for (source,) in fetch(
                self.db,
                "SELECT id FROM sources WHERE agent=? AND (session_id=? OR parent=?)",
                (agent, ident, ident),
            ):
                forget.reset_source(self.db, source)
            self.db.execute("DELETE FROM overrides WHERE agent=? AND session_id=?", (agent, ident))
        forget.drop_hints(self.db, self.wish.sessions)
        self._unheard()
        EventWriter(self.db).recount(keys, others)

    def _unheard(self) -> None:
        """Each signal whose line is blanked."""
        for signal in self.draft.signals:
            self.db.execute(
                "DELETE FROM signals WHERE id=(SELECT id FROM signals WHERE at=? AND agent=? AND "
                "event=? AND "
                "session_id IS ? AND cwd IS ? LIMIT 1)",
                (signal.at, signal.agent, signal.event, signal.session_id, signal.cwd),
            )

    # -- sessions of which something stays -------------------------------------------------------

    def _read_again(self) -> None:
        """Sessions with records hidden, from what is left of them; spools only by their new
        fingerprints."""
        touched = {track.name for track in self.draft.tracks if track.touched and track.session_id}
        known = numbers(self.db, self._with_children(touched | self._untitled()))
        keys, others = forget.sharing(self.db, known.values())
        for name, number in known.items():
            self.moved[name] = (number, _told(self.db, number), {})
            forget.empty_session(self.db, number)
            self._unplace(number)
        Rebuild(self.db, self.draft.blobs, self.journal).renew(list(self._pieces(known)))
        EventWriter(self.db).recount(keys, [*others, *known.values()])
        for track in self.draft.tracks:
            if track.touched and not track.session_id:
                self._refingerprint(track)
        for name, (number, before, _) in self.moved.items():
            self.moved[name] = (number, before, _told(self.db, number))
            self._relink(number, before, self.moved[name][2])

    def _unplace(self, number: int) -> None:
        """A folder that is called so is said again by what is left, if it is."""
        needle = self.wish.needle
        for (cwd,) in fetch(
            self.db, "SELECT cwd FROM sessions WHERE id=? AND cwd IS NOT NULL", (number,)
        ):
            if needle is not None and needle.said_in(cwd):
                self.db.execute(
                    "UPDATE sessions SET cwd=NULL, project_id=NULL WHERE id=?", (number,)
                )

    def _untitled(self) -> set[Name]:
        """Legacy titles stand in other files than what they name; returns the sessions that had
        one of those gone."""
        needle = self.wish.needle
        keys = set(self.draft.leaves)
        if needle is not None:
            titles = fetch(self.db, "SELECT key, title FROM leaf_titles")
            keys |= {key for key, title in titles if needle.said_in(title)}
        if not keys:
            return set()
        listed = (msgspec.json.encode(sorted(keys)).decode(),)
        self.db.execute(
            "DELETE FROM leaf_titles WHERE key IN (SELECT value FROM json_each(?))", listed
        )
        rows = fetch(
            self.db,
            "SELECT DISTINCT s.agent, s.session_id FROM sessions s CROSS JOIN json_each(?) k "
            "JOIN events e ON e.session_id=s.id AND e.key=k.value",
            listed,
        )
        return {(agent, ident) for agent, ident in rows}

    def _with_children(self, names: set[Name]) -> set[Name]:
        found = set(names)
        todo = list(names)
        while todo:
            agent, ident = todo.pop()
            rows = fetch(
                self.db,
                "SELECT session_id FROM sessions WHERE agent=? AND parent=?",
                (agent, ident),
            )
            fresh = {(agent, child) for (child,) in rows} - found
            found |= fresh
            todo += fresh
        return found

    def _pieces(self, known: dict[Name, int]) -> Iterator[tuple[SegmentEntry, Source]]:
        """What tells of these sessions, in the order it was read; each source under its last
        path."""
        sources: dict[SourceRewrite, Source | None] = {}
        for entry, track in self.draft.entries:
            if track is None or not track.session_id or not isinstance(entry, SegmentEntry):
                continue
            if track.name not in known and (track.agent, track.parent or "") not in known:
                continue
            if track not in sources:
                found = sources[track] = _source(self.db, track)
                if found is not None:
                    forget.reset_source(self.db, found.id)
                    found.generation = entry.generation
            source = sources[track]
            if source is not None:
                yield msgspec.structs.replace(entry, path=track.path), source

    def _refingerprint(self, track: SourceRewrite) -> None:
        from whyfor.capture.tail import Edges

        source = _source(self.db, track)
        if source is None:
            return
        edges = Edges()
        for entry in track.entries:
            if entry.generation == source.generation and not entry.partial:
                data = self.draft.blobs.get(entry.digest)
                edges.add(data, entry.start, entry.end, entry.gaps, whole=False)
        source.head_hash, source.end_hash = edges.fingerprints(whole=False)
        self.db.execute(
            "UPDATE sources SET head_hash=?, end_hash=? WHERE id=?",
            (source.head_hash, source.end_hash, source.id),
        )

    def _readdress(self) -> None:
        """Every segment by the address the journal is about to name: what was merged into what
        is not told any more."""
        for track in self.draft.tracks:
            source = None if track.gone else _source(self.db, track)
            if source is not None:
                rows = [
                    (e.digest, source.id, e.generation, e.start, e.end, e.digest)
                    for e in track.entries
                ]
                self.db.executemany(
                    "UPDATE segments SET digest=? WHERE source_id=? AND generation=? AND start=? "
                    "AND stop=? "
                    "AND digest<>?",
                    rows,
                )

    def _relink(self, number: int, before: Told, after: Told) -> None:
        """How much of the session linking has looked at, in its new numbers."""
        for project, last in fetch(
            self.db, "SELECT project_id, last_seq FROM linked WHERE session_id=?", (number,)
        ):
            seen = [
                after[key][0] for key, (seq, _) in before.items() if seq <= last and key in after
            ]
            self.db.execute(
                "UPDATE linked SET last_seq=? WHERE project_id=? AND session_id=?",
                (max(seen, default=0), project, number),
            )

    # -- stories ---------------------------------------------------------------------------------

    def _stories(self) -> list[str]:
        """Every checkpoint as it is to be; returns the commits that lost their story with a
        session."""
        for sha in self.wish.commits:
            for table in ("notes", "overrides"):
                self.db.execute(f"DELETE FROM {table} WHERE sha=?", (sha,))
        needle = self.wish.needle
        if needle is not None:
            for sha, at, body in fetch(self.db, "SELECT sha, at, body FROM notes"):
                if needle.stands_in(body.encode()):
                    self.db.execute("DELETE FROM notes WHERE sha=? AND at=?", (sha, at))
        lost = []
        for sha, before in self.before.items():
            after = self._checkpoint(before)
            if after == before:
                continue
            project = self.store.project(before.project)
            assert project is not None
            if after is not None:
                self.store.save(project[0], after)
                continue
            self.store.remove(sha)
            reason = forget.STORY if sha in self.wish.commits else forget.SESSION
            self.store.saw(
                project[0], [(sha, before.authored_at, before.committed_at, reason, None)]
            )
            if sha not in self.wish.commits:
                lost.append(sha)
        return lost

    def _concerned(self) -> dict[str, Checkpoint]:
        """Checkpoints that may change, as they are."""
        if self.wish.needle is not None:
            return self.store.of_commits(
                [sha for (sha,) in fetch(self.db, "SELECT sha FROM checkpoints")]
            )
        touched = {track.name for track in self.draft.tracks if track.touched and track.session_id}
        names = numbers(self.db, self.wish.sessions | self._with_children(touched))
        return {
            **self.store.of_sessions(names.values()),
            **self.store.of_commits(self.wish.commits),
        }

    def _checkpoint(self, before: Checkpoint) -> Checkpoint | None:
        if before.commit in self.wish.commits:
            return None
        parts = [part for part in map(self._part, before.parts) if part is not None]
        if before.parts and not parts:
            return None
        after = msgspec.structs.replace(
            before,
            parts=parts,
            evidence=parts[0].evidence if parts else before.evidence,
            confidence=parts[0].confidence if parts else before.confidence,
        )
        needle = self.wish.needle
        if needle is not None and any(map(needle.said_in, of_git(after))):
            after = _without(after, needle)
        if before.annotation is None or not parts:
            return after
        same = parts[0].name == before.parts[0].name and not self._changed(before.parts[0])
        if same and not (
            needle is not None and needle.stands_in(msgspec.json.encode(before.annotation))
        ):
            return after
        return msgspec.structs.replace(after, annotation=self._annotation(after))

    def _part(self, part: Part) -> Part | None:
        """The same range in the session's new numbers; none if nothing is left of it."""
        if (part.agent, part.session_id) in self.wish.sessions:
            return None
        if (part.agent, part.session_id) not in self.moved:
            return part
        _, before, after = self.moved[part.agent, part.session_id]
        left = sorted((seq, after[key][0]) for key, (seq, _) in before.items() if key in after)
        inside = [new for old, new in left if part.first <= old <= part.last]
        if not inside:
            return None
        cut = max((new for old, new in left if old <= part.cut), default=inside[0])
        return msgspec.structs.replace(part, first=inside[0], last=inside[-1], cut=cut)

    def _changed(self, part: Part) -> bool:
        """Something that was said in this range, or asked before it, is not any more what it
        was."""
        if (part.agent, part.session_id) not in self.moved:
            return False
        _, before, after = self.moved[part.agent, part.session_id]
        changed = [
            seq for key, (seq, text) in before.items() if key not in after or after[key][1] != text
        ]
        return any(seq <= part.last for seq in changed)

    def _annotation(self, checkpoint: Checkpoint) -> Annotation:
        """From the commit and what is left of its conversation."""
        part = checkpoint.parts[0]
        number = numbers(self.db, [(part.agent, part.session_id)]).get(
            (part.agent, part.session_id)
        )
        events = (
            list(StoreRows(self.db).events(number, part.first, part.last))
            if number is not None
            else []
        )
        prompts = [
            event.text for event in events if event.kind == "user.prompt" and event.actor == "user"
        ]
        found = annotate.derive(checkpoint.subject, "", checkpoint.files, prompts[:1], events)
        noted = self.store.notes([checkpoint.commit]).get(checkpoint.commit)
        return annotate.noted(found, *noted) if noted else found

    def _entries(self) -> Iterator[Entry]:
        """The journal, its checkpoints as they are to be."""
        for entry, _ in self.draft.entries:
            if not isinstance(entry, CheckpointEntry):
                yield entry
                continue
            after = self._checkpoint(entry.checkpoint)
            yield (
                CheckpointEntry(after)
                if after is not None
                else NoCheckpointEntry(entry.checkpoint.commit)
            )


def _without(checkpoint: Checkpoint, needle: TextPattern) -> Checkpoint:
    """What a checkpoint repeats of its commit, less a text; git's own copy of it stays."""

    def shown(text: str) -> str:
        return FILLER.decode() if needle.said_in(text) else text

    files = [msgspec.structs.replace(file, path=shown(file.path)) for file in checkpoint.files]
    told = {name: shown(getattr(checkpoint, name)) for name in ("subject", "author", "email")}
    return msgspec.structs.replace(checkpoint, files=files, **told)


def numbers(db: apsw.Connection, names: Iterable[Name]) -> dict[Name, int]:
    """Sessions by name; those that are not there are left out."""
    found: dict[Name, int] = {}
    for agent, ident in names:
        for (number,) in fetch(
            db, "SELECT id FROM sessions WHERE agent=? AND session_id=?", (agent, ident)
        ):
            found[agent, ident] = number
    return found


def _told(db: apsw.Connection, session: int) -> Told:
    base = session << SEQ_BITS
    rows = fetch(
        db,
        "SELECT key, id - ?, text FROM events WHERE id BETWEEN ? AND ?",
        (base, base, base + (1 << SEQ_BITS) - 1),
    )
    return {key: (seq, text) for key, seq, text in rows}


def _source(db: apsw.Connection, track: SourceRewrite) -> Source | None:
    """Its row, and what its file looked like; nothing of what was read."""
    names = (
        "id",
        "agent",
        "path",
        "session_id",
        "framing",
        "parent",
        "sidecar",
        "cwd",
        "generation",
    )
    seen = ("inode", "size", "mtime")
    rows = fetch(
        db,
        f"SELECT {', '.join((*names, *seen))} FROM sources WHERE agent=? AND path=?",
        (track.agent, track.path),
    )
    if not rows:
        return None
    return Source(**dict(zip((*names, *seen), rows[0], strict=True)), state={})


# -- the rest ------------------------------------------------------------------------------------


def finish(settings: Settings, db: apsw.Connection, journal: Journal) -> bool:
    """Everything of ours besides the journal as the journal says; True when nothing is left to
    do."""
    home = settings.home
    left = _unfinished(home)
    _blank(left.spool)
    _remove_leftovers(home)
    whole = forget.scrub(db, home / "rebuild.db")
    if (home / "hook" / "stories").exists():
        publish(settings, db)
    for sha in forget.reasons(db):
        (home / "hook" / "asked" / sha[:7]).unlink(missing_ok=True)
    blobs = FolderBlobs(settings.segments)
    require_agreement(db, journal, blobs)
    blobs.keep_only(
        {
            parse(entry.digest).object
            for entry in journal.entries()
            if isinstance(entry, SegmentEntry)
        }
    )
    if whole:
        (home / forget.UNFINISHED).unlink(missing_ok=True)
    return whole


def _last(journal: Journal) -> int:
    """Which forgetting the journal knows of."""
    return max(
        (entry.at for entry in journal.entries() if isinstance(entry, ForgottenEntry)), default=0
    )


def _announce(home: Path, left: PendingForget) -> None:
    replace(home / forget.UNFINISHED, msgspec.json.encode(left))


def _unfinished(home: Path) -> PendingForget:
    try:
        return msgspec.json.decode((home / forget.UNFINISHED).read_bytes(), type=PendingForget)
    except FileNotFoundError:
        return PendingForget()


def _blank(places: dict[str, list[tuple[int, int]]]) -> None:
    """In place: a hook may append at any moment, and what it appends stays where it is."""
    for name, spans in places.items():
        try:
            with to_path(name).open("r+b") as file:
                for first, last in spans:
                    file.seek(first)
                    line = file.read(last - first)
                    file.seek(first)
                    file.write(bytes(10 if byte == 10 else 32 for byte in line))
        except FileNotFoundError:
            continue  # stored long ago


def _remove_leftovers(home: Path) -> None:
    """Copies that a crash or a repair left behind, and errors, which may quote anything."""
    patterns = (
        *("whyfor.db.damaged-*", "rebuild.db*", "journal.jsonl.damaged-*", ".journal.jsonl.*"),
        *("hook/.stories.*", "hook/errors.log"),
    )
    for pattern in patterns:
        for path in home.glob(pattern):
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def finish_for(settings: Settings) -> None:
    """After a process that died: make the database again if it is not what the journal says,
    then the rest."""
    journal = Journal(settings.journal)
    last = _last(journal)
    # it died before the journal was replaced: all is as it was
    if _unfinished(settings.home).at > last:
        (settings.home / forget.UNFINISHED).unlink()
        return
    with explained(settings.database):
        db = connect(settings.database)
        try:
            behind = Checkpoints(db).mark(MARK) != last
        finally:
            db.close()
        if behind:
            rebuild_database(settings)
        db = connect(settings.database)
        try:
            finish(settings, db, journal)
        finally:
            db.close()

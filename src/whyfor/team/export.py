"""A project of a team as files, and back: for moving it to another server, or for its people.

What is written is what machines sent: segments as objects, and what was told of commits. On the
other side everything else is made of it again, by the code that receives uploads.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
from obstore.store import ObjectStore

from whyfor.files import replace
from whyfor.model.accounts import CopiedPerson, CopiedProject, CopiedTombstone
from whyfor.model.errors import BadInput
from whyfor.model.sessions import Project
from whyfor.model.sync import SessionUpload, SharedNote, StoryUpload
from whyfor.model.times import to_iso
from whyfor.recall.remember import remember_waiting
from whyfor.store.journal import NoteEntry
from whyfor.store.objects import ObjectBlobs, open_objects
from whyfor.store.shared import ProjectCopy, reading_project, writing_project
from whyfor.story.tasks.scan import scan_tasks
from whyfor.sync.package import events_named_by
from whyfor.sync.receive import UploadReceiver
from whyfor.team.settings import TeamSettings

_MANIFEST = "export.json"  # written last: without it an export is not whole
_STORIES = "stories.jsonl"
_FORMAT = 1
_LINE = 200  # checkpoints of one line


class ProjectExport(msgspec.Struct, frozen=True):
    """What an export has."""

    format: int
    made_at: str
    project: CopiedProject
    people: tuple[CopiedPerson, ...]
    tombstones: tuple[CopiedTombstone, ...]
    sessions: int
    stories: int  # of commits
    objects: int
    bytes: int  # of objects


class PersonStory(msgspec.Struct, frozen=True):
    """One line: a part of what one person sent."""

    person: int
    story: StoryUpload


def export_project(settings: TeamSettings, wanted: str, folder: Path) -> ProjectExport:
    """Write a project into a folder. Raises NotFound, BadInput."""
    if (folder / _MANIFEST).exists():
        raise BadInput(f"{folder} has an export already", "Name another folder.")
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    now = _now()
    sessions = stories = size = 0
    digests: set[str] = set()
    with reading_project(settings.owner_url, wanted, now) as copy:
        people, tombstones = copy.people(), copy.tombstones()
        with (folder / _STORIES).open("wb") as lines:
            for person in people:
                for story in _stories(copy, person.id):
                    lines.write(msgspec.json.encode(PersonStory(person.id, story)) + b"\n")
                    sessions += len({(each.agent, each.session_id) for each in story.sources})
                    stories += len(story.checkpoints)
                    digests |= _digests(story)
        theirs = ObjectBlobs(_bucket(settings), copy.project.id)
        kept = _kept(folder)
        for digest in sorted(digests):
            content = theirs.get(digest)
            kept.put(content)
            size += len(content)
        project = copy.project
    report = ProjectExport(
        *(_FORMAT, to_iso(now) or "", project, tuple(people), tuple(tombstones)),
        *(sessions, stories, len(digests), size),
    )
    replace(folder / _MANIFEST, msgspec.json.encode(report))
    return report


def import_project(settings: TeamSettings, folder: Path, name: str = "") -> ProjectExport:
    """Make a project of an export; all of it, or nothing. People are known by their addresses;
    those who are not here yet are added suspended. Raises BadInput if the export is not whole, or a
    project of that name is here."""
    export = _manifest(folder)
    project = msgspec.structs.replace(export.project, name=name or export.project.name)
    now = _now()
    kept, bucket = _kept(folder), _bucket(settings)
    with writing_project(settings.owner_url, project, now) as copy:
        blobs = ObjectBlobs(bucket, copy.project.id)
        try:
            people = [(person, *_person(copy, person, now)) for person in export.people]
            numbers = {person.id: number for person, number, _ in people}
            for said in _lines(folder):
                for digest in _digests(said.story):
                    if not blobs.has(digest):
                        blobs.put(kept.get(digest))
                _receive(copy, blobs, numbers[said.person], said.story)
            for stone in export.tombstones:
                with copy.store(numbers[stone.person]) as store:
                    store.uploads.bury(stone.kind, [stone.name], stone.at)
            for person, number, state in people:
                copy.settle(number, state, person.role)
        except BaseException:
            blobs.keep_only(())
            raise
        return msgspec.structs.replace(export, project=copy.project)


# -- reading ---------------------------------------------------------------------------------------


def _stories(copy: ProjectCopy, person: int) -> Iterator[StoryUpload]:
    """Yield what a person sent: each session, then what was told of commits and notes."""
    with copy.store(person) as store:
        for agent, session_id in store.uploads.own_sessions():
            sources = store.uploads.sources(person, agent, session_id)
            if sources:
                yield StoryUpload("export", "", _own(sources, session_id))
        told = list(store.checkpoints.all().values())
        for at in range(0, len(told), _LINE):
            some = told[at : at + _LINE]
            keys: dict[str, dict[int, int]] = {}
            for checkpoint in some:
                for part in checkpoint.parts:
                    named = events_named_by(part.name, [checkpoint])
                    found = store.uploads.event_keys(person, part.agent, part.session_id, named)
                    keys.setdefault(part.name, {}).update(found)
            yield StoryUpload("export", "", (), tuple(some), keys)
        yield StoryUpload(
            *("export", "", (), (), {}),
            tuple(
                SharedNote(each.commit, each.by, each.at, msgspec.to_builtins(each.note))
                for each in store.checkpoints.all_said()
                if isinstance(each, NoteEntry)
            ),
            tuple(store.memory.all_said()),
        )


def _own(sources: list[SessionUpload], session_id: str) -> tuple[SessionUpload, ...]:
    """Return the sources of a session, without those of its subagents, which are listed too."""
    return tuple(each for each in sources if each.session_id == session_id)


# -- writing ---------------------------------------------------------------------------------------


def _person(copy: ProjectCopy, person: CopiedPerson, now: int) -> tuple[int, str]:
    """Return the number of a person here, and the state to leave them in."""
    if person.state != "erased":
        known = copy.find_person(person.email)
        if known is not None:
            return known.id, known.state
        return copy.add_person(person, now), "suspended"
    stand_in = msgspec.structs.replace(person, email=f"imported-{now}-{person.id}@invalid")
    number = copy.add_person(stand_in, now)
    copy.rename_erased(number)
    return number, "erased"


def _receive(copy: ProjectCopy, blobs: ObjectBlobs, person: int, story: StoryUpload) -> None:
    identity = f"team:{copy.project.id}"
    place = Project(identity, "remote", copy.project.name, remote=identity)
    with copy.store(person) as store:
        UploadReceiver(store, blobs, place, _now).commit_story(story)
        scan_tasks(store)
        remember_waiting(store)


def _manifest(folder: Path) -> ProjectExport:
    try:
        report = msgspec.json.decode((folder / _MANIFEST).read_bytes(), type=ProjectExport)
    except (OSError, msgspec.DecodeError):
        raise BadInput(
            f"{folder} is not a whole export",
            "Make one: whyfor server export --project NAME FOLDER",
        ) from None
    if report.format > _FORMAT:
        raise BadInput("this export is of a newer version", "Upgrade Whyfor on this machine.")
    return report


def _lines(folder: Path) -> Iterator[PersonStory]:
    with (folder / _STORIES).open("rb") as lines:
        for line in lines:
            yield msgspec.json.decode(line, type=PersonStory)


def _digests(story: StoryUpload) -> set[str]:
    return {piece.digest for source in story.sources for piece in source.segments}


def _kept(folder: Path) -> ObjectBlobs:
    return ObjectBlobs(open_objects((folder / "objects").absolute().as_uri()), 0)


def _bucket(settings: TeamSettings) -> ObjectStore:
    return open_objects(settings.blobs_url, dict(settings.blob_options) or None)


def _now() -> int:
    return int(time.time() * 1000)

"""Stories that machines send to a project of the team, and what is told of them to others."""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

from msgspec.structs import replace

from whyfor.model.accounts import Member
from whyfor.model.errors import BadInput, NotFound, OutdatedUpload, QuotaFull, Withdrawn
from whyfor.model.sessions import Project
from whyfor.model.sync import (
    FORGOTTEN,
    REPLACED,
    STORY,
    CommitAnswer,
    PlanAnswer,
    PlanRequest,
    Retraction,
    SessionUpload,
    SharedChange,
    SharedStory,
    StoryUpload,
    TeamProjectName,
)
from whyfor.recall.remember import remember_waiting
from whyfor.store.objects import ObjectBlobs
from whyfor.store.protocol import TeamStore
from whyfor.story.tasks.scan import scan_tasks
from whyfor.sync.package import events_named_by
from whyfor.sync.receive import OBJECT_MAX, UploadReceiver
from whyfor.team.access import ProjectAccess
from whyfor.team.resources import TeamResources

PACKED_MAX = 8 << 20  # bytes of one object as it travels
SOURCES_MAX = 2_000  # of one request
_CHANGES_MAX = 1_000
_LOOKED_UP = 500  # commits in one question
_NAMED = 4  # characters of an id, at least


class TeamUploads:
    """What one member sends to one project."""

    def __init__(self, access: ProjectAccess) -> None:
        self.access = access
        self.now = access.resources.now
        # One project of the team is one project in its store, whatever machines call theirs.
        identity = f"team:{access.id}"
        self.project = Project(identity, "remote", access.name, remote=identity)

    def plan(self, request: PlanRequest) -> PlanAnswer:
        """Return what is missing. Raises Withdrawn if somebody took one of the sessions back."""
        self._check_open()
        _check_number(request.sources)
        with self.access.writer() as lent:
            store = cast(TeamStore, lent)
            check_withdrawn(store, request.sources, ())
            receiver = self._receiver(store)
            return PlanAnswer(tuple(receiver.compare(each) for each in request.sources))

    def put_object(self, digest: str, packed: bytes) -> bool:
        """Store an object; return False if it was there. Raises StoreError if it is not what its
        name says, QuotaFull if there is no room."""
        self._check_open()
        blobs = self.access.blobs
        if blobs.has(digest):
            return False
        limit = self.access.standing.quota_bytes
        sizes = self.access.resources.sizes
        if limit is not None and sizes.size(blobs) + len(packed) > limit:
            raise QuotaFull("this project has no room left", "Ask its admin for more.")
        blobs.put_packed(digest, packed, OBJECT_MAX)
        sizes.add(blobs, len(packed))
        return True

    def commit(self, story: StoryUpload) -> CommitAnswer:
        """Store a story whole. Raises OutdatedUpload if it must be planned again."""
        self._check_open()
        _check_number(story.sources)
        shas = [checkpoint.commit for checkpoint in story.checkpoints]
        names = [*shas, *_session_names(story.sources)]
        with self.access.writer() as lent:
            store = cast(TeamStore, lent)
            check_withdrawn(store, story.sources, shas)
            receiver = self._receiver(store)
            try:
                answer = receiver.commit_story(story)
            except NotFound as error:
                raise OutdatedUpload(error.message, "Plan the upload again.") from None
            if answer.events or answer.stories or receiver.replaced:
                with store.transaction():
                    store.uploads.log(REPLACED, receiver.replaced, self.now())
                    store.uploads.log(STORY, names, self.now())
                scan_tasks(store)
                remember_waiting(store)
        return answer

    def retract(self, what: Retraction) -> int:
        """Delete what the member sent; `forever`: nobody may send it again."""
        with self.access.writer() as lent:
            store = cast(TeamStore, lent)
            if what.forever:
                with store.transaction():
                    store.uploads.bury("session", what.sessions, self.now())
                    store.uploads.bury("commit", what.commits, self.now())
            number = self._receiver(store).retract(what)
            with store.transaction():
                store.uploads.log(FORGOTTEN, [*what.sessions, *what.commits], self.now())
        return number

    def _receiver(self, store: TeamStore) -> UploadReceiver:
        return UploadReceiver(store, self.access.blobs, self.project, self.now)

    def _check_open(self) -> None:
        if not self.access.standing.taking:
            raise BadInput("this project takes no stories now", "Ask its admin.")


class TeamStories:
    """What a member may read of a project's stories."""

    def __init__(self, access: ProjectAccess) -> None:
        self.access = access

    def stories(
        self, shas: Iterable[str], patches: Iterable[str], *, sources: bool
    ) -> list[SharedStory]:
        """Return who shared what of commits, by id, else by their changes; with `sources`, also
        where the records of their sessions are."""
        names, changes = list(shas)[:_LOOKED_UP], list(patches)[:_LOOKED_UP]
        with self.access.reader() as lent:
            store = cast(TeamStore, lent)
            found = store.uploads.stories(names, changes)
            return [_told(store, each, sources=sources) for each in found]

    def named_session(self, name: str) -> list[SharedStory]:
        """Return what people shared of the session whose id, or agent:id, begins so; nothing if
        several do."""
        agent, colon, beginning = name.rpartition(":")
        if len(beginning) < _NAMED:
            raise BadInput(f"{name!r} is too short", f"Give {_NAMED} characters of its id.")
        with self.access.reader() as lent:
            found = cast(TeamStore, lent).uploads.named(agent if colon else None, beginning)
        return self.session(*found[0]) if len(found) == 1 else []

    def session(self, agent: str, session_id: str) -> list[SharedStory]:
        """Return what people shared of a session, as stories without a commit."""
        with self.access.reader() as lent:
            store = cast(TeamStore, lent)
            owners = store.uploads.owners(agent, session_id)
            people = store.uploads.people(owners)
            found = []
            for person in owners:
                sources = store.uploads.sources(person, agent, session_id)
                if sources:
                    who = people.get(person, "")
                    machine = sources[0].machine
                    found.append(SharedStory(person, who, machine, None, "sha", tuple(sources)))
            return found

    def packed_object(self, digest: str) -> bytes:
        """Return an object as it travels. Raises NotFound if the member may not read it."""
        with self.access.reader() as lent:
            if not cast(TeamStore, lent).uploads.has_digest(digest):
                raise NotFound("no such object", "")
        return pack_object(self.access.blobs, digest)

    def changes(self, after: int) -> tuple[list[SharedChange], int]:
        """Return what changed after a number, and the latest number."""
        with self.access.reader() as lent:
            store = cast(TeamStore, lent)
            found = store.uploads.changes(after, _CHANGES_MAX)
            return found, found[-1].id if found else store.uploads.last_change()


def own_projects(team: TeamResources, member: Member) -> tuple[TeamProjectName, ...]:
    """Return the projects that somebody is a member of, by name."""
    with team.database.accounts.by(member) as accounts:
        found = accounts.projects()
    return tuple(
        TeamProjectName(each.id, each.name, each.role, each.visibility)
        for each in found
        if each.role is not None
    )


def check_withdrawn(
    store: TeamStore, sources: Iterable[SessionUpload], shas: Iterable[str]
) -> None:
    """Raise Withdrawn if somebody took one of these sessions or commits back for good."""
    if gone := store.uploads.buried("session", _session_names(sources)):
        raise Withdrawn(f"{min(gone)} was forgotten everywhere", "It stays so.")
    if gone := store.uploads.buried("commit", shas):
        raise Withdrawn(f"the story of {min(gone)[:10]} was forgotten everywhere", "It stays so.")


def pack_object(blobs: ObjectBlobs, digest: str) -> bytes:
    """Return an object compressed, with its size in its head."""
    import zstandard

    return zstandard.ZstdCompressor(level=1).compress(blobs.get(digest))


def _told(store: TeamStore, story: SharedStory, *, sources: bool) -> SharedStory:
    if story.checkpoint is None or not sources:
        return story
    found: dict[tuple[str, str, str], SessionUpload] = {}
    for part in story.checkpoint.parts:
        for each in store.uploads.sources(story.person, part.agent, part.session_id):
            found[each.machine, each.agent, each.path] = each
    machine = next((each.machine for each in found.values()), "")
    keys = {}
    for part in story.checkpoint.parts:
        named = events_named_by(part.name, [story.checkpoint])
        keys[part.name] = store.uploads.event_keys(story.person, part.agent, part.session_id, named)
    return replace(story, machine=machine, sources=tuple(found.values()), keys=keys)


def _session_names(sources: Iterable[SessionUpload]) -> list[str]:
    names = {f"{each.agent}:{each.parent or each.session_id}" for each in sources}
    return sorted(names | {f"{each.agent}:{each.session_id}" for each in sources})


def _check_number(sources: tuple[SessionUpload, ...]) -> None:
    if len(sources) > SOURCES_MAX:
        raise BadInput("too many sources in one request", "Send the story in parts.")

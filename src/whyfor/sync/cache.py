"""What others shared, kept on this machine: a store for each person, made of the same records by
the same code as the server's, so that every command that reads this machine's store reads it too.

It is looked for here first. A server that does not answer within a second is not waited for.
"""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Iterable, Iterator
from contextlib import closing, suppress
from pathlib import Path

import msgspec
from msgspec.structs import replace

from whyfor.config import Settings
from whyfor.files import make_folders
from whyfor.files import replace as replace_file
from whyfor.git.history import patch_id, read_changes
from whyfor.git.place import GitPlace
from whyfor.locks import hold_lock
from whyfor.model.errors import Ambiguous, NotFound, StoreError, WhyforError
from whyfor.model.sessions import Project
from whyfor.model.sync import (
    FORGOTTEN,
    REPLACED,
    Remote,
    Retraction,
    SharedChange,
    SharedStory,
    StoryLookup,
    StoryUpload,
)
from whyfor.store.blobs import FolderBlobs
from whyfor.store.open import open_store
from whyfor.store.protocol import Store
from whyfor.story.session_lookup import find_session
from whyfor.sync.client import QUICK, Patience, RemoteFault
from whyfor.sync.deadline import ask_all
from whyfor.sync.git_remote import GitReader, is_git_address, story_repository
from whyfor.sync.receive import UploadReceiver
from whyfor.sync.remotes import load_remotes
from whyfor.sync.team_reader import FETCH, TeamReader

FOLDER = "remote"
CACHE_MAX = 2 << 30  # bytes, of all people
_NAME = re.compile(r"[^\w.-]+")
_LOCK_WAIT = 10.0
_LATEST = 1 << 62  # after every change
_FETCHED = 60.0  # seconds for which a repository is not asked again, unless somebody reads


class SharedReading(msgspec.Struct, frozen=True):
    """A story of somebody else, and the place where commands find it."""

    settings: Settings  # of the store it is in
    name: str  # the commit as that person has it, or the session as agent:id
    who: str
    machine: str
    matched: str  # sha | patch

    @property
    def label(self) -> str:
        how = ", another commit with the same change" if self.matched == "patch" else ""
        return f"From {self.source}{how}"

    @property
    def source(self) -> str:
        """Return who shared it, and from where."""
        return f"{self.who}, {self.machine}" if self.machine else self.who


class SharedAnswer(msgspec.Struct, frozen=True):
    """What is known of a commit's shared stories; `trouble` if the server could not be asked."""

    stories: list[SharedStory]
    trouble: str = ""
    patches: dict[str, str] = {}  # the commits that were asked for, by their changes

    def commit_of(self, story: SharedStory) -> str | None:
        """Return the commit that was asked for, for which a story was found."""
        told = story.checkpoint
        if told is None:
            return None
        if story.matched == "sha":
            return told.commit
        return self.patches.get(told.patch_id or "")


class SharedCache:
    """What others shared of one project."""

    def __init__(self, settings: Settings, remote: Remote) -> None:
        self.settings = settings
        self.remote = remote
        host = _NAME.sub("-", remote.url.partition("://")[2])
        self.folder = settings.home / FOLDER / f"{host}-{remote.team_project}"

    def open_reader(self, patience: Patience = QUICK) -> TeamReader | GitReader:
        """Return what tells of the stories of others."""
        if is_git_address(self.remote.url):
            machine = load_remotes(self.settings).machine
            return GitReader(story_repository(self.settings, self.remote), machine)
        return TeamReader(self.settings, self.remote, patience)

    # -- asking ----------------------------------------------------------------------------------

    def look_up(self, where: GitPlace, shas: Iterable[str], *, sources: bool) -> SharedAnswer:
        """Ask the server who shared what of commits, by id, then by their changes."""
        names = tuple(shas)
        patches: dict[str, str] = {}
        for sha, made in read_changes(where, names):
            patch = patch_id(made)
            if patch is not None:
                patches[patch] = sha
        asked = StoryLookup(names, tuple(patches), sources)
        [found] = ask_all([lambda: self._asked(asked)])
        if isinstance(found, RemoteFault):
            return SharedAnswer([], found.message, patches)
        return SharedAnswer(found, "", patches)

    def look_up_session(self, name: str) -> SharedAnswer:
        """Ask the server who shared a session, by the beginning of its id or of agent:id."""
        [found] = ask_all([lambda: self._asked(name)])
        if isinstance(found, RemoteFault):
            return SharedAnswer([], found.message)
        return SharedAnswer(found)

    def _asked(self, asked: StoryLookup | str) -> list[SharedStory]:
        with closing(self.open_reader()) as reader:
            self.follow(reader)
            return reader.sessions(asked) if isinstance(asked, str) else reader.stories(asked)

    # -- keeping ---------------------------------------------------------------------------------

    def fetch(self, story: SharedStory) -> SharedReading:
        """Keep a story here, with the records of its sessions. Raises RemoteFault, StoreError."""
        person = self.folder / str(story.person)
        make_folders(person)
        with closing(hold_lock(person / "cache.lock", _LOCK_WAIT)):
            blobs = FolderBlobs(person / "segments")
            with closing(self.open_reader(FETCH)) as reader:
                for digest in _digests(story):
                    if not blobs.has(digest):
                        blobs.put(reader.object(digest))
            self._commit(person, blobs, story)
        (person / "used").touch()
        shrink_cache(self.settings.home / FOLDER, CACHE_MAX)
        name = story.checkpoint.commit if story.checkpoint else _session_name(story)
        about = _About(story.who, story.machine)
        return self._reading(person, about, name, story.matched)

    def kept(self, sha: str) -> SharedReading | None:
        """Return a story of a commit that was fetched before; None if none was."""
        return self.kept_among([sha]).get(sha)

    def kept_among(self, shas: Iterable[str]) -> dict[str, SharedReading]:
        """Return the stories of commits that were fetched before, by commit."""
        names = list(shas)
        found: dict[str, SharedReading] = {}
        for person, store in self._stores():
            for sha in store.checkpoints.of_commits(names):
                found.setdefault(sha, self._reading(person, _about(person), sha))
        return found

    def kept_session(self, name: str) -> SharedReading | None:
        """Return a session that was fetched before; None if none was."""
        for person, store in self._stores():
            with suppress(NotFound, Ambiguous):
                session = find_session(store, name)
                return self._reading(person, _about(person), session.name)
        return None

    def _stores(self) -> Iterator[tuple[Path, Store]]:
        for database in sorted(self.folder.glob("*/whyfor.db")):
            with closing(open_store(database)) as store:
                yield database.parent, store

    def _reading(
        self, person: Path, about: _About, name: str, matched: str = "sha"
    ) -> SharedReading:
        settings = replace(self.settings, home=person)
        return SharedReading(settings, name, about.who, about.machine, matched)

    def _commit(self, person: Path, blobs: FolderBlobs, story: SharedStory) -> None:
        told = (story.checkpoint,) if story.checkpoint else ()
        upload = StoryUpload("", "", story.sources, told, story.keys)
        about = _About(story.who, story.machine)
        replace_file(person / "about.json", msgspec.json.encode(about))
        with closing(open_store(person / "whyfor.db")) as store:
            receiver = self._receiver(store, blobs)
            for source in story.sources:
                _make_room(receiver, source.agent, source.session_id, story)
            receiver.commit_story(upload)

    def _receiver(self, store: Store, blobs: FolderBlobs) -> UploadReceiver:
        project = Project(self.remote.project, "remote", self.remote.name, self.remote.project)
        return UploadReceiver(store, blobs, project, lambda: int(time.time() * 1000))

    # -- what was taken back ---------------------------------------------------------------------

    def follow(self, reader: TeamReader | GitReader) -> int:
        """Drop what was taken back or replaced since others were last asked; return how many
        changes there were. Raises RemoteFault."""
        if isinstance(reader, TeamReader):
            return self._follow_changes(reader)
        gone = reader.refresh()
        for person in gone:
            shutil.rmtree(self.folder / str(person), ignore_errors=True)
        return len(gone)

    def _follow_changes(self, reader: TeamReader) -> int:
        make_folders(self.folder)
        mark = self.folder / "changes"
        if not mark.exists():  # nothing was kept before: what changed until now is of no interest
            replace_file(mark, str(reader.changes(_LATEST).last).encode())
            return 0
        number = 0
        with closing(hold_lock(self.folder / "changes.lock", _LOCK_WAIT)):
            after = _last_change(mark)
            while True:
                told = reader.changes(after)
                for each in told.changes:
                    self._drop(each)
                number += len(told.changes)
                if told.last == after:
                    return number
                after = told.last
                replace_file(mark, str(after).encode())

    def _drop(self, change: SharedChange) -> None:
        folder = self.folder / str(change.person)
        if change.kind not in (FORGOTTEN, REPLACED) or not (folder / "whyfor.db").exists():
            return
        name = change.name
        what = Retraction(sessions=(name,)) if ":" in name else Retraction(commits=(name,))
        with (
            closing(hold_lock(folder / "cache.lock", _LOCK_WAIT)),
            closing(open_store(folder / "whyfor.db")) as store,
        ):
            store.forget.overwrite_deleted()
            gone = self._receiver(store, FolderBlobs(folder / "segments")).retract(what)
            if gone:
                store.forget.scrub(folder / "scrubbed.db")


def follow_shared_changes(settings: Settings, remote: Remote) -> int:
    """Drop from this machine's copies what was taken back on the server; return how many changes
    were read. Raises RemoteFault."""
    cache = SharedCache(settings, remote)
    if not cache.folder.exists():
        return 0
    if is_git_address(remote.url):
        asked = cache.folder / "asked"
        if asked.exists() and time.time() - asked.stat().st_mtime < _FETCHED:
            return 0
        asked.touch(0o600)
    with closing(cache.open_reader()) as reader:
        return cache.follow(reader)


def _last_change(mark: Path) -> int:
    try:
        return int(mark.read_text())
    except (OSError, ValueError):
        return 0


def _session_name(story: SharedStory) -> str:
    """Return the main session of a story that belongs to no commit."""
    main = next((each for each in story.sources if each.parent is None), story.sources[0])
    return f"{main.agent}:{main.session_id}"


class _About(msgspec.Struct, frozen=True):
    who: str
    machine: str


def _about(person: Path) -> _About:
    try:
        return msgspec.json.decode((person / "about.json").read_bytes(), type=_About)
    except (OSError, msgspec.DecodeError):
        return _About("somebody of the team", "")


def _make_room(receiver: UploadReceiver, agent: str, session_id: str, story: SharedStory) -> None:
    """A session whose records were replaced meanwhile is read anew."""
    mine = [each for each in story.sources if (each.agent, each.session_id) == (agent, session_id)]
    for source in mine:
        known = receiver.compare(source)
        sent = source.segments[: len(known.stored)]
        if known.generation == source.generation and sent != known.stored:
            receiver.retract(Retraction(sessions=(f"{agent}:{source.parent or session_id}",)))


def _digests(story: SharedStory) -> list[str]:
    found = {each.digest: None for source in story.sources for each in source.segments}
    return list(found)


def shrink_cache(folder: Path, most: int) -> None:
    """Delete the stores that were used longest ago, until the rest fits."""
    stores = [each.parent for each in folder.glob("*/*/whyfor.db")]
    sizes = {each: sum(f.stat().st_size for f in each.rglob("*") if f.is_file()) for each in stores}
    total = sum(sizes.values())
    for store in sorted(stores, key=_last_used):
        if total <= most:
            return
        total -= sizes[store]
        shutil.rmtree(store, ignore_errors=True)


def _last_used(store: Path) -> float:
    try:
        return (store / "used").stat().st_mtime
    except OSError:
        return 0.0


def find_shared(
    settings: Settings, remote: Remote, where: GitPlace, sha: str
) -> tuple[SharedReading | None, str]:
    """Return what somebody shared of a commit, and why there is nothing if the server could not be
    asked."""
    cache = SharedCache(settings, remote)
    found, trouble = _first_fetched(cache, cache.look_up(where, [sha], sources=True))
    return found or cache.kept(sha), trouble


def find_shared_session(
    settings: Settings, remote: Remote, name: str
) -> tuple[SharedReading | None, str]:
    """The same for a session, by the beginning of its id or of agent:id."""
    cache = SharedCache(settings, remote)
    found, trouble = _first_fetched(cache, cache.look_up_session(name))
    return found or cache.kept_session(name), trouble


def _first_fetched(cache: SharedCache, answer: SharedAnswer) -> tuple[SharedReading | None, str]:
    for story in answer.stories:
        try:
            return cache.fetch(story), ""
        except (WhyforError, StoreError) as error:
            return None, error.message
    return None, answer.trouble

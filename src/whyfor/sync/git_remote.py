"""Sharing without a server: stories in a git repository of their own.

Each machine has a ref with these files:

    about.json                            who writes it
    stories/<aa>/<commit>.<change>.json   a story, as it would be sent to a server
    sessions/<agent>/<id>/<name>          empty; which story has the records of a session
    objects/<aa>/<digest>.zst             redacted records
    forgotten/<digest of a name>          empty; what nobody may share again

There is no search and there are no roles: who can read the repository can read every story.
"""

from __future__ import annotations

import hashlib
import os
import re
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path
from urllib.parse import quote, unquote

import msgspec
from msgspec.structs import replace

from whyfor.config import Settings
from whyfor.git.place import GitPlace
from whyfor.git.story_repository import StoryRepository, StoryRepositoryDown, reach_repository
from whyfor.model.errors import BadInput, NotFound
from whyfor.model.sync import (
    Remote,
    Retraction,
    SentSource,
    SharedStory,
    StoryLookup,
    StoryUpload,
)
from whyfor.store.blobs import unpack_object
from whyfor.sync.client import RemoteDown, RemoteTooLarge, RemoteWithdrawn
from whyfor.sync.package import SourcePackage, StoryPackage
from whyfor.sync.sender import UploadPart
from whyfor.sync.written_lines import without_parts

PREFIX = "git+"
_FOLDER = "stories.git"
_SSH = re.compile(r"git\+ssh://[^\s]+/[^\s]+")
_ROUNDS = 12
_NAMED = 4  # characters of an id, at least


class StoryAuthor(msgspec.Struct, frozen=True):
    who: str
    machine: str


# -- addresses -----------------------------------------------------------------------------------


def is_git_address(url: str) -> bool:
    """Return whether an address names a repository, or a folder, instead of a server."""
    return url.startswith(PREFIX) or "://" not in url


def git_address(given: str, cwd: Path) -> str:
    """Return the address of a repository as it is stored. Raises BadInput for one that cannot be
    used."""
    if _SSH.fullmatch(given):
        return given.rstrip("/")
    if given.startswith(PREFIX) and not given.startswith("git+file://"):
        raise BadInput(f"{given!r} cannot be used", "Give git+ssh://HOST/PATH, or a path.")
    path = Path(os.path.realpath(cwd / given.removeprefix("git+file://")))
    if not path.is_dir():
        raise BadInput(f"{path} is not there", f"Make it: git init --bare {path}")
    return f"git+file://{path}"


def check_repository(address: str) -> None:
    """Raise BadInput if a repository cannot be reached."""
    trouble = reach_repository(address.removeprefix(PREFIX))
    if trouble:
        raise BadInput(f"git cannot reach {address}: {trouble}", "Check it: git ls-remote")


def story_repository(settings: Settings, remote: Remote) -> StoryRepository:
    """Return this machine's copy of the repository that a project is shared with."""
    key = hashlib.sha256(remote.url.encode()).hexdigest()[:12]
    folder = settings.home / "stories" / f"{key}-{_FOLDER}"
    return StoryRepository(folder, remote.url.removeprefix(PREFIX))


# -- sending -------------------------------------------------------------------------------------


class GitSender:
    """Sends stories to a repository, as a StorySender does to a server. Raises RemoteFault."""

    def __init__(self, repository: StoryRepository, author: StoryAuthor) -> None:
        self.repository = repository
        self.author = author
        self._ready = False

    def close(self) -> None:
        """Nothing is open between two stories."""

    def send(
        self, package: StoryPackage, sent: Callable[[SourcePackage], SentSource | None]
    ) -> list[SentSource]:
        """Send a story whole; return what the repository has of its sources then."""
        machine = self.author.machine
        parts = [UploadPart(source, machine, sent(source)) for source in package.sources]
        objects = _packed(parts)
        upload = package.upload(machine, [part.upload() for part in parts])
        self._guarded(lambda: self._write(upload, objects))
        return [part.kept() for part in parts]

    def retract(self, what: Retraction) -> int:
        """Take something back: the machine's ref begins anew without it. Return how many things
        there were."""
        return self._guarded(lambda: self._retract(what))

    def _guarded(self, job: Callable[[], int]) -> int:
        try:
            if not self._ready:
                self.repository.prepare()
                self.repository.fetch()
                self._ready = True
            return job()
        except StoryRepositoryDown as error:
            self._ready = False
            raise RemoteDown(error.message, error.hint) from None

    def _write(self, upload: StoryUpload, objects: dict[str, bytes]) -> int:
        self._check_forgotten(upload)
        before = self._tip()
        path = _story_path(upload)
        old = self._upload(path) if before else None
        present = set(self.repository.names(before)) if before else set()
        added = {**_small_files(upload, path), "about.json": msgspec.json.encode(self.author)}
        for digest, packed in objects.items():
            if _object_path(digest) not in present:
                added[_object_path(digest)] = packed
        removed: set[str] = set()
        if old is not None:
            if old == upload:
                return 0
            removed = self._unneeded(present, {path: upload})
        self.repository.write(self.author.machine, added, removed, anew=old is not None)
        return 1

    def _retract(self, what: Retraction) -> int:
        before = self._tip()
        present = set(self.repository.names(before)) if before else set()
        changed: dict[str, StoryUpload | None] = {}
        for path in sorted(present):
            if path.startswith("stories/"):
                known = self._upload(path)
                after = _without(known, what) if known else None
                if after != known:
                    changed[path] = after
        added: dict[str, bytes] = {}
        for path, upload in changed.items():
            if upload is not None:
                added.update(_small_files(upload, path))
        if what.forever:
            added.update({_mark(name): b"" for name in (*what.sessions, *what.commits)})
        if not changed and not set(added) - present:
            return 0
        added["about.json"] = msgspec.json.encode(self.author)
        removed = self._unneeded(present, changed)
        self.repository.write(self.author.machine, added, removed, anew=bool(changed))
        return len(changed)

    def _unneeded(self, present: set[str], changed: dict[str, StoryUpload | None]) -> set[str]:
        """Return the files that no story needs after a change."""
        needed = {"about.json"}
        for path in {name for name in present if name.startswith("stories/")} | set(changed):
            upload = changed[path] if path in changed else self._upload(path)
            if upload is not None:
                needed |= set(_small_files(upload, path))
                needed |= {_object_path(digest) for digest in _digests(upload)}
        return {name for name in present - needed if not name.startswith("forgotten/")}

    def _check_forgotten(self, upload: StoryUpload) -> None:
        """Raise RemoteWithdrawn if any machine forgot one of these things everywhere."""
        names = [checkpoint.commit for checkpoint in upload.checkpoints]
        names += [f"{each.agent}:{each.parent or each.session_id}" for each in upload.sources]
        marks = {_mark(name): name for name in names}
        for tip in self.repository.tips().values():
            for path in self.repository.names(tip, "forgotten"):
                if path in marks:
                    raise RemoteWithdrawn(f"{marks[path]} was forgotten everywhere", "It stays so.")

    def _tip(self) -> str | None:
        return self.repository.tips().get(self.author.machine)

    def _upload(self, path: str) -> StoryUpload | None:
        tip = self._tip()
        content = self.repository.read(tip, path) if tip else None
        return msgspec.json.decode(content, type=StoryUpload) if content else None


def _packed(parts: list[UploadPart]) -> dict[str, bytes]:
    """Return the objects of a story, in pieces that any host takes."""
    for _ in range(_ROUNDS):
        found: dict[str, bytes] = {}
        try:
            for part in parts:
                for segment in part.segments:
                    digest = segment.digest
                    found[digest] = part.packed(digest)
        except RemoteTooLarge:
            part.divide(digest)
            continue
        return found
    raise RemoteTooLarge("a record is too large", "Keep its session here: whyfor keep-local ID")


def _small_files(upload: StoryUpload, path: str) -> dict[str, bytes]:
    """Return the files of a story but for its objects."""
    found = {path: msgspec.json.encode(upload)}
    name = path.rpartition("/")[2]
    for each in upload.sources:
        if each.parent is None:
            found[f"sessions/{quote(each.agent)}/{quote(each.session_id, safe='')}/{name}"] = b""
    return found


def _story_path(upload: StoryUpload) -> str:
    if upload.checkpoints:
        told = upload.checkpoints[0]
        return f"stories/{told.commit[:2]}/{told.commit}.{told.patch_id or ''}.json"
    main = next(each for each in upload.sources if each.parent is None)
    name = hashlib.sha256(f"{main.agent}:{main.session_id}".encode()).hexdigest()
    return f"stories/{name[:2]}/{name}..json"


def _object_path(digest: str) -> str:
    return f"objects/{digest[:2]}/{digest}.zst"


def _mark(name: str) -> str:
    return f"forgotten/{hashlib.sha256(name.encode()).hexdigest()}"


def _digests(upload: StoryUpload) -> set[str]:
    return {segment.digest for source in upload.sources for segment in source.segments}


def _without(upload: StoryUpload, what: Retraction) -> StoryUpload | None:
    """Return a story without what is taken back; None if nothing is left."""
    gone = set(what.sessions)
    told = [each for each in upload.checkpoints if each.commit not in what.commits]
    told = [without_parts(each, gone) for each in told]
    told = [each for each in told if each.parts]
    sources = []
    for each in upload.sources:
        if not {f"{each.agent}:{each.parent}", f"{each.agent}:{each.session_id}"} & gone:
            sources.append(each)
    if not sources or (upload.checkpoints and not told):
        return None
    return replace(upload, sources=tuple(sources), checkpoints=tuple(told))


# -- reading -------------------------------------------------------------------------------------


class GitReader:
    """The stories of other machines in a repository. Methods raise RemoteDown."""

    def __init__(self, repository: StoryRepository, machine: str) -> None:
        self.repository = repository
        self.machine = machine  # this one, whose stories are here anyway

    def close(self) -> None:
        """Nothing is open between two questions."""

    def refresh(self) -> list[int]:
        """Fetch what is new; return the numbers of the machines that took something back."""
        try:
            self.repository.prepare()
            return [machine_number(each) for each in self.repository.fetch()]
        except StoryRepositoryDown as error:
            raise RemoteDown(error.message, error.hint) from None

    def stories(self, asked: StoryLookup) -> list[SharedStory]:
        """Return who shared what of commits, by id, then by their changes."""
        same: list[SharedStory] = []
        alike: list[SharedStory] = []
        broken = ""
        for machine, tip in self._others():
            for path in self.repository.names(tip, "stories"):
                how = _matching(path, asked)
                told = self._told(machine, tip, path, how) if how else None
                if told is not None:
                    (same if how == "sha" else alike).append(told)
                elif how:
                    broken = machine
        if broken and not same and not alike:
            raise RemoteDown(f"{broken} wrote something that is no story")
        return [*same, *alike]

    def sessions(self, name: str) -> list[SharedStory]:
        """Return who shared the session whose id begins so, or agent:id does; of several stories
        that have it, the one with most of it."""
        agent, colon, beginning = name.rpartition(":")
        if len(beginning) < _NAMED:
            return []
        found = []
        for machine, tip in self._others():
            named: dict[tuple[str, str], list[str]] = {}
            for path in self.repository.names(tip, "sessions"):
                _, kind, ident, story, *rest = [*path.split("/"), "", "", ""]
                if any(rest) or not story:
                    continue
                if unquote(ident).startswith(beginning) and (not colon or kind == agent):
                    named.setdefault((kind, unquote(ident)), []).append(story)
            if len(named) == 1:
                [((kind, ident), stories)] = named.items()
                paths = [f"stories/{story[:2]}/{story}" for story in stories]
                longest = self._longest(machine, tip, paths, (kind, ident))
                found += [longest] if longest is not None else []
        return found

    def _longest(
        self, machine: str, tip: str, paths: Iterable[str], session: tuple[str, str]
    ) -> SharedStory | None:
        told = [self._told(machine, tip, path, "sha") for path in paths]
        best = max((each for each in told if each is not None), key=_length, default=None)
        if best is None:
            return None
        own = []
        for each in best.sources:
            if (each.agent, each.parent or each.session_id) == session:
                own.append(each)
        return replace(best, checkpoint=None, sources=tuple(own), keys={}) if own else None

    def object(self, digest: str) -> bytes:
        """Return an object, unpacked. Raises NotFound if no machine has it."""
        for _, tip in self._others():
            packed = self._read(tip, _object_path(digest))
            if packed is not None:
                return unpack_object(digest, packed)
        raise NotFound("these records were taken back", "Ask who shared them.")

    def _others(self) -> list[tuple[str, str]]:
        tips = self.repository.tips().items()
        return [(machine, tip) for machine, tip in tips if machine != self.machine]

    def _told(self, machine: str, tip: str, path: str, how: str) -> SharedStory | None:
        """Return a story; None if it is none: anybody may have written there."""
        content = self._read(tip, path) or b""
        about = self._read(tip, "about.json") or b""
        try:
            upload = msgspec.json.decode(content, type=StoryUpload)
            who = msgspec.json.decode(about, type=StoryAuthor).who
        except (msgspec.DecodeError, UnicodeDecodeError):
            return None
        told = upload.checkpoints[0] if upload.checkpoints else None
        number = machine_number(machine)
        return SharedStory(number, who, machine, told, how, upload.sources, upload.keys)

    def _read(self, tip: str, path: str) -> bytes | None:
        try:
            return self.repository.read(tip, path)
        except StoryRepositoryDown as error:
            raise RemoteDown(error.message, error.hint) from None


def _matching(path: str, asked: StoryLookup) -> str:
    """Return how a file's name fits what is asked: by the commit, by its change; empty if not."""
    sha, _, patch = path.rpartition("/")[2].removesuffix(".json").partition(".")
    if sha in asked.commits:
        return "sha"
    return "patch" if patch and patch in asked.patches else ""


def _length(story: SharedStory) -> int:
    """Return how many bytes of records a story has."""
    return sum(segment.end - segment.start for each in story.sources for segment in each.segments)


def machine_number(machine: str) -> int:
    """Return the number by which copies of a machine's stories are kept apart."""
    return zlib.crc32(machine.encode())


def own_addresses(where: GitPlace, urls: Iterable[str]) -> set[str]:
    """Return what a repository must not be shared with: its own remotes and itself."""
    from whyfor.git.identity import normalise
    from whyfor.git.run import ask

    found = {normalise(url) for url in urls}
    for option in ("--show-toplevel", "--absolute-git-dir"):
        path = ask(where, "rev-parse", option)
        if path:
            found.add(normalise(os.path.realpath(path)))
    return found

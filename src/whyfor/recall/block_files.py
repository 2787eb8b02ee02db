"""Write what next sessions are told to files, one for each repository and branch, so that the hook
only has to print one."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

import msgspec

from whyfor.capture.block_folder import block_folder, drop_blocks, drop_old_marks
from whyfor.capture.faults import log_error
from whyfor.capture.manifest import load_manifest
from whyfor.config import Settings
from whyfor.files import replace
from whyfor.git.identity import identify, still
from whyfor.git.run import ask
from whyfor.hook.block_name import block_key, block_name, checkout, notes_name
from whyfor.model.ascii_json import ascii_json
from whyfor.model.errors import WhyforError
from whyfor.model.memory import BlockMaterial, MemoryBlock
from whyfor.model.paths import to_path, to_text
from whyfor.recall.remember import RULES_VERSION, remember_waiting
from whyfor.store.protocol import Store
from whyfor.story.repositories import Repository, repository_of

_FORMAT = 2
_FINGERPRINT = "made-with"  # the settings that all blocks in the folder were made with
_BRANCHES = 8  # that have a block though nobody has them checked out


class _Checkout(msgspec.Struct, frozen=True):
    """A work tree, and what the hook calls it by."""

    top: Path
    common: bytes
    branch: bytes


def publish_blocks(settings: Settings, store: Store, projects: Iterable[int] | None = None) -> int:
    """Write the blocks of these projects (by number), or of all; return how many files. Call it
    after anything changed that a block is made of: notes, sessions, settings.

    Nothing is written unless `init --memory` is in effect. On an error there are no blocks at all
    until the next ingest: an old one might say what has to go.
    """
    folder = block_folder(settings)
    if not folder.is_dir():
        return 0
    try:
        return _publish(settings, store, folder, projects)
    except (WhyforError, OSError) as error:
        drop_blocks(settings)
        log_error(settings, error)
        return 0


def renew_memory(settings: Settings, store: Store, limit: int | None = None) -> int:
    """Make what is remembered of sessions that have something new, or of the newest `limit` of
    them, and the blocks of their projects; return how many sessions. Under the ingest lock."""
    remembered = remember_waiting(store, limit)
    publish_sessions(settings, store, remembered)
    return len(remembered)


def publish_sessions(settings: Settings, store: Store, sessions: Collection[int]) -> int:
    """Write the blocks of the projects that these sessions (by number) belong to; of all projects
    if the blocks there are were made otherwise."""
    folder = block_folder(settings)
    if not folder.is_dir():
        return 0
    if not sessions and _content(folder / _FINGERPRINT) == _fingerprint(settings):
        return 0
    named = store.sessions.names(list(sessions)).values()
    found = (store.projects.find(each.project) for each in named if each.project)
    return publish_blocks(settings, store, {project[0] for project in found if project})


def _publish(settings: Settings, store: Store, folder: Path, projects: Iterable[int] | None) -> int:
    drop_old_marks(settings)
    made_with = _fingerprint(settings)
    everything = projects is None or _content(folder / _FINGERPRINT) != made_with
    numbers = [number for number, _ in store.projects.known()] if everything else projects or ()
    written: set[str] = set()
    places: set[bytes] = set()
    for number in numbers:
        repository = repository_of(store, number)
        for made, content in _blocks(settings, store, repository) if repository else ():
            name = os.fsdecode(made)
            if _content(folder / name) != content:
                replace(folder / name, content)
            written.add(name)
            places.add(content.partition(b"\0")[0])
    for path in folder.iterdir():
        place = _content(path).partition(b"\0")[0]
        stale = everything or place in places or not os.path.isdir(place)  # noqa: PTH112 - bytes
        if stale and path.name not in (*written, _FINGERPRINT):
            path.unlink(missing_ok=True)
    if everything:
        replace(folder / _FINGERPRINT, made_with)
    return len(written)


def _fingerprint(settings: Settings) -> bytes:
    from hashlib import sha256  # here: OpenSSL takes longer to load than most runs take

    told = (settings.memory.tokens, _prompt_notes(settings))
    made_with = (_FORMAT, RULES_VERSION, settings.redact, told)
    return sha256(msgspec.json.encode(made_with)).hexdigest().encode()


def _blocks(
    settings: Settings, store: Store, repository: Repository
) -> Iterator[tuple[bytes, bytes]]:
    """Yield the name and the content of each file of a repository."""
    # here: most ingests publish nothing
    from whyfor.privacy.redacted_text import redacted
    from whyfor.recall.material import changed_files, collect
    from whyfor.recall.prompt_index import prompt_index

    checkouts = list(_checkouts(repository))
    material = collect(store, repository, None)
    changes = [changed_files(each.top, material.findings) for each in checkouts]
    (material, changes), _ = redacted(settings, (material, changes), rendered=False)
    most = _prompt_notes(settings)
    notes = prompt_index(store, material, most) if most else b""
    for common in dict.fromkeys(each.common for each in checkouts):
        yield _file(settings, store, common, b"", material)
        if notes:
            key = block_key(common, b"")
            yield notes_name(key), key + b"\n" + notes
        for branch in _recent_branches(repository, material):
            told = msgspec.structs.replace(material, branch=os.fsdecode(branch))
            yield _file(settings, store, common, branch, told)
    for each, changed in zip(checkouts, changes, strict=True):
        name = os.fsdecode(each.branch) or None
        told = msgspec.structs.replace(material, branch=name, changed=tuple(changed))
        yield _file(settings, store, each.common, each.branch, told)


def _checkouts(repository: Repository) -> Iterator[_Checkout]:
    """Yield the work trees of a project that are still there and still that project."""
    seen: set[tuple[bytes, bytes]] = set()
    project = repository.project
    for name in repository.folders:
        real = Path(os.path.realpath(to_path(name)))
        found = checkout(os.fsencode(real), _read) if real.is_dir() else None
        if found is None or found in seen:
            continue
        folder = to_text(real)
        if still(folder, project) or identify(folder).identity == project.identity:
            seen.add(found)
            yield _Checkout(real, *found)


def _recent_branches(repository: Repository, material: BlockMaterial) -> list[bytes]:
    """Return the branches of the last sessions that still exist."""
    there = ask(repository.folder, "for-each-ref", "--format=%(refname:lstrip=2)", "refs/heads")
    names = set((there or "").split("\n"))
    recent = dict.fromkeys(each.branch for each in material.sessions if each.branch in names)
    return [os.fsencode(name) for name in recent if name][:_BRANCHES]


def _file(
    settings: Settings, store: Store, common: bytes, branch: bytes, material: BlockMaterial
) -> tuple[bytes, bytes]:
    """Return the name of a block and its file: the key, then twice what the hook writes down and
    what it prints, for a start and for the time after a compaction."""
    from whyfor.recall.block import build_block, build_threads
    from whyfor.recall.quoted_output import without_quoted_output

    key = block_key(common, branch)
    tokens = settings.memory.tokens
    start = without_quoted_output(store, material, build_block(material, tokens))
    threads = without_quoted_output(store, material, build_threads(material, tokens))
    lines = [key, *_told("start", start), *_told("threads", threads), b""]
    return block_name(key), b"\n".join(lines)


def _prompt_notes(settings: Settings) -> int:
    """Return of how many notes a prompt is told; 0 unless `init --memory-prompts` is in effect."""
    wanted = any(changed.prompts for changed in load_manifest(settings).files.values())
    return settings.memory.prompt_notes if wanted else 0


def _told(part: str, block: MemoryBlock) -> tuple[bytes, bytes]:
    if not block.text:
        return b"{}", b""
    from hashlib import sha256  # here: OpenSSL takes longer to load than most runs take

    facts = {
        "block": sha256(block.text.encode()).hexdigest()[:16],
        "part": part,
        "tokens": block.tokens,
        "sources": list(dict.fromkeys(line.source for line in block.lines)),
        "files": list(block.files),
    }
    return ascii_json(facts), ascii_json(block.text)


def _read(path: bytes) -> bytes:
    return _content(Path(os.fsdecode(path)))


def _content(path: Path) -> bytes:
    """Return a file's bytes; empty if it cannot be read."""
    try:
        return path.read_bytes()
    except OSError:
        return b""

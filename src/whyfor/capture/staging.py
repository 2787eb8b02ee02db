"""Files that are imported, copied or unpacked below Whyfor's directory for as long as they are
read. Nothing in them is executed, and what they may take is bounded."""

from __future__ import annotations

import re
import shutil
import stat
import zipfile
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import IO, NamedTuple

import msgspec

from whyfor.agents import AGENTS
from whyfor.agents.databases.cursor_chats import cursor_chats
from whyfor.agents.imports.specstory import specstory_document
from whyfor.capture.discover import at_paths, sniff
from whyfor.capture.unreadable import Unreadable, reason_of
from whyfor.model.errors import BadInput, NotFound
from whyfor.model.paths import to_text

FILES_MAX = 200_000
BYTES_MAX = 20 << 30  # unpacked, in all
FILE_MAX = 4 << 30
_CHAT_MAX = 1 << 30  # bytes of an export of web chats, which is read whole
_RATIO_MAX = 1_000  # unpacked to packed, of one file larger than a megabyte
_NOTES_MAX = 32 << 20  # bytes of a Markdown file
_PIECE = 1 << 20
_PLAIN = re.compile(r"[^\w.-]+")
_IDENT = re.compile(r"[\w.-]{1,120}")
_DATABASES = (".db", ".sqlite", ".sqlite3", ".vscdb")
_EDITOR = ".vscdb"  # databases of VS Code and of editors made from it
_TOO_MUCH = "Import a part of it: a folder or a file inside."


class DamagedExport(BadInput):
    """An export that is cut off, or was changed."""


class StagedFiles(msgspec.Struct):
    """What was prepared to be read."""

    folder: Path
    files: int = 0
    bytes: int = 0
    conversations: int = 0  # of web chats, one document each
    skipped: int = 0  # files that are no transcripts
    unreadable: list[Unreadable] = []


class PackedFile(NamedTuple):
    """A file in an archive."""

    name: PurePosixPath
    info: zipfile.ZipInfo


def stage_folder(imports: Path, given: Path) -> Path:
    """Return where a path's files are prepared: the same place for the same path, so that a second
    import of it finds what it knows."""
    full = given.expanduser().absolute()
    digest = sha256(to_text(full).encode("utf-8", "surrogatepass")).hexdigest()[:8]
    name = _PLAIN.sub("-", full.name).strip("-.")[:40] or "import"
    return imports / f"{name}-{digest}"


def stage(imports: Path, given: Path) -> StagedFiles:
    """Prepare what a file, a folder or a ZIP archive holds. Raises NotFound if there is nothing,
    BadInput if it is more than can be taken."""
    if not given.exists():
        raise NotFound(f"no such file or folder: {given}", "Name a transcript, a folder or a ZIP.")
    staged = StagedFiles(stage_folder(imports, given))
    shutil.rmtree(staged.folder, ignore_errors=True)
    staged.folder.mkdir(mode=0o700, parents=True)
    try:
        _stage(staged, given)
    except BaseException:
        shutil.rmtree(staged.folder, ignore_errors=True)
        raise
    return staged


def _stage(staged: StagedFiles, given: Path) -> None:
    if given.is_dir():
        _stage_folder(staged, given)
    elif not given.is_file():
        raise BadInput(f"{given} is no plain file", "Name a transcript, a folder or a ZIP.")
    elif zipfile.is_zipfile(given):
        _unpack(staged, given)
    elif _begins_as_zip(given):
        raise BadInput(f"{given.name} is a damaged archive", "Copy or export it again.")
    elif given.suffix == _EDITOR:
        _take_editor(staged, given)
    elif _is_special(given) or _is_known(given):
        _take_file(staged, given, given.name, cwd=None)
    else:
        staged.skipped += 1  # may be huge: it is not even copied


def _begins_as_zip(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(4) == b"PK\x03\x04"


def _is_known(path: Path) -> bool:
    """Return whether a file is an agent's."""
    found = at_paths([path], list(AGENTS.values()), [])
    return any(sniff(each, 1 << 60) is not None for each in found)


def _stage_folder(staged: StagedFiles, folder: Path) -> None:
    """Copy what is a transcript, an export or SpecStory's notes; agents' homes keep their shape."""
    unreadable: list[Unreadable] = []
    now = 1 << 60  # a first line that is not whole yet is not waited for
    for found in at_paths([folder], list(AGENTS.values()), unreadable):
        name = found.path.relative_to(folder.absolute()).as_posix()
        try:
            is_wanted = _is_special(found.path) or sniff(found, now) is not None
        except OSError as error:  # half a database: the others are read
            unreadable.append(Unreadable(to_text(found.path), reason_of(error)))
            continue
        if is_wanted:
            _take_found(staged, found.path, name)
        else:
            staged.skipped += 1
    for place in ("state.vscdb", "globalStorage/state.vscdb", "User/globalStorage/state.vscdb"):
        if (folder / place).is_file():
            _take_editor(staged, folder / place)
    for notes in _specstory_folders(folder):
        for path in sorted(notes.glob("*.md")):
            name = path.absolute().relative_to(folder.absolute()).as_posix()
            _take_file(staged, path, name, _project_of(path))
    staged.unreadable += unreadable


def _take_found(staged: StagedFiles, path: Path, name: str) -> None:
    """Copy one of many files: a damaged one does not keep the others out."""
    try:
        _take_file(staged, path, name, _project_of(path))
    except DamagedExport as error:
        staged.unreadable.append(Unreadable(to_text(path), error.message))


def _specstory_folders(folder: Path) -> Iterator[Path]:
    """Yield the folders in which SpecStory keeps its notes: this one's, and those of projects
    directly below."""
    for base in (folder, *sorted(each for each in folder.iterdir() if each.is_dir())):
        notes = base / ".specstory" / "history"
        if notes.is_dir():
            yield notes


def _is_special(path: Path) -> bool:
    """Return whether a file may be an export or notes, which no agent recognises."""
    if path.suffix == ".json":
        return path.name.startswith("conversations") or _is_chat_export(path)
    return path.suffix == ".md"


def _project_of(path: Path) -> str | None:
    """Return the project that SpecStory's notes stand in; None for other files."""
    for folder in path.parents:
        if folder.name == ".specstory":
            return to_text(folder.parent.absolute())
    return None


def _take_file(staged: StagedFiles, path: Path, name: str, cwd: str | None) -> None:
    """Copy one file, as what it is."""
    size = path.stat().st_size
    if path.suffix == ".md":
        _take_notes(staged, path.read_bytes() if size <= _NOTES_MAX else b"", name, cwd)
        return
    if path.suffix == ".json" and _is_chat_export(path):
        if size > _CHAT_MAX:
            raise BadInput(f"{path.name} has more than {_CHAT_MAX >> 20} MB", _TOO_MUCH)
        _split_chats(staged, path.read_bytes(), path.name)
        return
    with path.open("rb") as source:
        _write(staged, name, source, size)
    if path.suffix in _DATABASES:
        _take_wal(staged, path, name)


def _take_wal(staged: StagedFiles, path: Path, name: str) -> None:
    """Copy what a database has not moved into its file yet."""
    wal = path.with_name(f"{path.name}-wal")
    if wal.is_file():
        with wal.open("rb") as source:
            _write(staged, f"{name}-wal", source, wal.stat().st_size)


def _write(staged: StagedFiles, name: str, source: IO[bytes], size: int) -> None:
    """Copy at most `size` bytes to a place below the stage."""
    _count(staged, size)
    target = staged.folder / name
    target.parent.mkdir(parents=True, exist_ok=True)
    left = size
    with target.open("wb") as out:
        while left > 0 and (piece := source.read(min(_PIECE, left))):
            out.write(piece)
            left -= len(piece)


def _count(staged: StagedFiles, size: int) -> None:
    staged.files += 1
    staged.bytes += size
    if size > FILE_MAX or staged.bytes > BYTES_MAX or staged.files > FILES_MAX:
        raise BadInput(f"it holds more than {FILES_MAX:,} files or {BYTES_MAX >> 30} GB", _TOO_MUCH)


# -- archives ------------------------------------------------------------------------------------


def _unpack(staged: StagedFiles, path: Path) -> None:
    packed = staged.folder.with_name(f"{staged.folder.name}.unpacked")
    shutil.rmtree(packed, ignore_errors=True)
    packed.mkdir(mode=0o700)
    try:
        unpack_archive(path, packed)
        _stage_folder(staged, packed)
    finally:
        shutil.rmtree(packed, ignore_errors=True)


def unpack_archive(path: Path, folder: Path) -> None:
    """Unpack a ZIP archive into a folder: plain files only, none outside it, no more than is
    bounded. Raises BadInput if the archive is damaged or too large."""
    taken = StagedFiles(folder)
    try:
        with zipfile.ZipFile(path) as archive:
            for packed in packed_files(archive):
                with archive.open(packed.info) as source:
                    _write(taken, str(packed.name), source, packed.info.file_size)
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError) as error:
        raise BadInput(f"{path.name} cannot be unpacked: {error}", "Export it again.") from None


def packed_files(archive: zipfile.ZipFile) -> Iterator[PackedFile]:
    """Yield the plain files of an archive whose names stay below it. Raises BadInput if one claims
    to be far larger than it can be."""
    for info in archive.infolist():
        name = PurePosixPath(info.filename.replace("\\", "/"))
        mode = info.external_attr >> 16
        if info.is_dir() or stat.S_ISLNK(mode) or name.is_absolute() or ".." in name.parts:
            continue
        if info.file_size > _PIECE and info.file_size > info.compress_size * _RATIO_MAX:
            raise BadInput(f"{name.name} claims to unpack to {info.file_size:,} bytes", _TOO_MUCH)
        yield PackedFile(name, info)


# -- conversations -------------------------------------------------------------------------------


def _is_chat_export(path: Path) -> bool:
    with path.open("rb") as file:
        head = file.read(64 << 10)
    is_list = head.lstrip().startswith(b"[")
    return is_list and (b'"mapping"' in head or b'"chat_messages"' in head)


def _split_chats(staged: StagedFiles, data: bytes, name: str) -> None:
    """Write one document per conversation, named by its id; its bytes stay as they are."""
    try:
        raws = msgspec.json.decode(data, type=list[msgspec.Raw])
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        what = f"{name} is no list of conversations: {error}"
        raise DamagedExport(what, "Export it again.") from None
    for raw in raws:
        content = bytes(raw)
        ident = _conversation_id(content)
        if ident is None:
            staged.skipped += 1
            continue
        _count(staged, len(content))
        staged.conversations += 1
        target = staged.folder / "conversations" / f"{ident}.json"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)


class _ConversationNames(msgspec.Struct):
    uuid: str | None = None
    conversation_id: str | None = None
    id: str | None = None


def _conversation_id(content: bytes) -> str | None:
    try:
        names = msgspec.json.decode(content, type=_ConversationNames)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    found = names.uuid or names.conversation_id or names.id or ""
    return found if _IDENT.fullmatch(found) and not found.startswith(".") else None


def _take_editor(staged: StagedFiles, path: Path) -> None:
    """Write one document per conversation of an editor's database, which is not copied: it may
    have many gigabytes of other things."""
    try:
        for ident, content in cursor_chats(path):
            if _IDENT.fullmatch(ident) and not ident.startswith("."):
                _count(staged, len(content))
                staged.conversations += 1
                target = staged.folder / "conversations" / f"{ident}.json"
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(content)
    except OSError as error:
        what = f"{path.name} cannot be read: {reason_of(error)}"
        raise BadInput(what, "Close the editor first.") from None


def _take_notes(staged: StagedFiles, text: bytes, name: str, cwd: str | None) -> None:
    document = specstory_document(Path(name).name, text, cwd)
    if document is None:
        staged.skipped += 1
        return
    _count(staged, len(document))
    staged.conversations += 1
    stem = _PLAIN.sub("-", Path(name).stem)[:100]
    target = staged.folder / "specstory" / f"{stem}.json"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(document)

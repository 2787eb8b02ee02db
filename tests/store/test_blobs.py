"""Segments in a folder: what is put comes back, or it is said that it does not."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from whyfor.model.errors import StoreError
from whyfor.store.blobs import MAX_SEGMENT, FolderBlobs
from whyfor.store.journal import Journal, MergedEntry

CONTENT = b'{"type":"user"}\n' * 50


@pytest.fixture
def blobs(tmp_path: Path) -> FolderBlobs:
    return FolderBlobs(tmp_path / "segments")


def object_of(blobs: FolderBlobs, digest: str) -> Path:
    return blobs.folder / digest[:1] / f"{digest}.zst"


def objects(blobs: FolderBlobs) -> list[Path]:
    return sorted(path for path in blobs.folder.rglob("*") if path.is_file())


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.binary(max_size=3000), st.integers(1, 200))
def test_what_is_put_comes_back_under_its_digest(content: bytes, times: int) -> None:
    with TemporaryDirectory() as folder:
        blobs = FolderBlobs(Path(folder))
        digest = blobs.put(content * times)
        assert digest == hashlib.sha256(content * times).hexdigest()
        assert FolderBlobs(Path(folder)).get(digest) == content * times


def test_the_same_content_is_kept_once(blobs: FolderBlobs) -> None:
    digest = blobs.put(CONTENT)
    before = object_of(blobs, digest).stat()
    assert blobs.put(CONTENT) == digest
    assert FolderBlobs(blobs.folder).put(CONTENT) == digest
    assert objects(blobs) == [object_of(blobs, digest)]
    assert object_of(blobs, digest).stat().st_mtime_ns == before.st_mtime_ns
    assert blobs.size() == before.st_size < len(CONTENT)


def test_it_knows_what_it_has(blobs: FolderBlobs) -> None:
    assert not blobs.has(hashlib.sha256(CONTENT).hexdigest())
    assert blobs.has(blobs.put(CONTENT))
    assert blobs.size() > 0
    assert FolderBlobs(blobs.folder.parent / "nowhere").size() == 0


def test_a_missing_object_is_said_to_be(blobs: FolderBlobs) -> None:
    digest = hashlib.sha256(CONTENT).hexdigest()
    with pytest.raises(StoreError, match=f"{digest[:12]} is missing") as told:
        blobs.get(digest)
    assert told.value.hint


def test_an_object_cut_at_any_byte_is_never_given_out(blobs: FolderBlobs) -> None:
    digest = blobs.put(CONTENT)
    path = object_of(blobs, digest)
    whole = path.read_bytes()
    for cut in range(len(whole)):
        path.write_bytes(whole[:cut])
        with pytest.raises(StoreError):
            blobs.get(digest)


def test_an_object_with_a_changed_byte_is_never_given_out(blobs: FolderBlobs) -> None:
    digest = blobs.put(CONTENT)
    path = object_of(blobs, digest)
    whole = path.read_bytes()
    for at in range(len(whole)):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x55]) + whole[at + 1 :])
        try:
            assert blobs.get(digest) == CONTENT, "a byte that means nothing may change"
        except StoreError:
            continue


def test_an_object_under_anothers_name_is_never_given_out(blobs: FolderBlobs) -> None:
    digest = blobs.put(CONTENT)
    object_of(blobs, digest).write_bytes(zstandard.compress(b"something else"))
    with pytest.raises(StoreError, match="does not hold what its name says"):
        blobs.get(digest)


def test_an_object_that_claims_to_be_huge_is_not_unpacked(blobs: FolderBlobs) -> None:
    digest = blobs.put(CONTENT)
    # A frame header: magic number, eight bytes of content size in a single segment.
    header = b"\x28\xb5\x2f\xfd\xe0" + (MAX_SEGMENT + 1).to_bytes(8, "little")
    object_of(blobs, digest).write_bytes(header)
    with pytest.raises(StoreError, match="too large"):
        blobs.get(digest)


@pytest.mark.parametrize("damage", [b"", b"\x28\xb5\x2f\xfd"])
def test_content_that_is_put_again_heals_a_damaged_object(
    damage: bytes, blobs: FolderBlobs
) -> None:
    # After a power loss an object that was never synced may be there, but empty.
    digest = blobs.put(CONTENT)
    object_of(blobs, digest).write_bytes(damage)
    assert FolderBlobs(blobs.folder).put(CONTENT) == digest
    assert blobs.get(digest) == CONTENT


def test_a_part_comes_back_by_its_address_and_never_more_than_is_there(blobs: FolderBlobs) -> None:
    digest = blobs.put(CONTENT)
    assert blobs.get(f"{digest}@16+32") == CONTENT[16:48]
    assert blobs.has(f"{digest}@16+32")
    with pytest.raises(StoreError, match="too short"):
        blobs.get(f"{digest}@{len(CONTENT) - 1}+2")
    with pytest.raises(StoreError, match="missing"):
        blobs.get(f"{'0' * 64}@0+1")


def test_an_address_from_before_a_merge_still_leads_there(blobs: FolderBlobs) -> None:
    one, two = blobs.put(b"one"), blobs.put(b"two")
    whole = blobs.put(b"onetwo")
    journal = Journal(blobs.folder.parent / "journal.jsonl")
    journal.add(MergedEntry(whole, [(one, 3), (two, 3)]))
    journal.flush()
    blobs.remove([one, two])
    for each in (blobs, FolderBlobs(blobs.folder)):
        assert (each.get(one), each.get(two), each.get(f"{two}@1+2")) == (b"one", b"two", b"wo")
        assert each.has(two)
    assert blobs.put(b"two") == two
    assert object_of(blobs, two).is_file(), (
        "what is put has an object of its own, wherever else it is"
    )


class Synced:
    """What was made safe against a power loss, by path."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.paths: list[Path] = []
        real = os.fsync

        def fsync(fd: int) -> None:
            self.paths.append(Path(f"/proc/self/fd/{fd}").readlink())
            real(fd)

        monkeypatch.setattr(os, "fsync", fsync)


needs_proc = pytest.mark.skipif(
    not Path("/proc/self/fd").exists(), reason="names of open files come from /proc"
)


@needs_proc
def test_a_flush_makes_new_objects_and_their_folders_safe_once(
    blobs: FolderBlobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced = Synced(monkeypatch)
    made = [object_of(blobs, blobs.put(CONTENT + bytes([number]))) for number in range(3)]
    blobs.flush()
    # A name in a folder is safe when the folder is: from the object up to where the segments lie.
    assert set(synced.paths) >= {
        *made,
        *(path.parent for path in made),
        blobs.folder,
        blobs.folder.parent,
    }
    synced.paths.clear()
    blobs.flush()
    assert synced.paths == []
    # The folders' own names are safe by now: of another object in one of them, only itself and its
    # name there.
    contents = (CONTENT + bytes([number]) for number in range(3, 256))
    content = next(c for c in contents if hashlib.sha256(c).hexdigest()[0] == made[0].parent.name)
    path = object_of(blobs, blobs.put(content))
    blobs.flush()
    assert synced.paths == [path, path.parent]


@needs_proc
def test_a_flush_makes_safe_what_a_run_that_died_had_put(
    blobs: FolderBlobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = object_of(blobs, blobs.put(CONTENT))  # and never flushed
    synced = Synced(monkeypatch)
    later = FolderBlobs(blobs.folder)
    later.put(CONTENT)
    later.flush()
    assert path in synced.paths

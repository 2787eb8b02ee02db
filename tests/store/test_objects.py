"""Segments in a folder and in a real S3: the same behaviour."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
import zstandard
from obstore.store import ObjectStore

from tests.seaweed import running_s3
from whyfor.model.errors import BadInput, StoreError
from whyfor.store.objects import ObjectBlobs, open_objects

CONTENT = b'{"type":"user"}\n' * 50
OTHER = b"something else"
MOST = 1 << 20


def check_all(store: ObjectStore) -> None:
    """What is asked of every kind of object store."""
    here, there = ObjectBlobs(store, 1), ObjectBlobs(store, 2)
    digest = here.put(CONTENT)
    assert here.put(CONTENT) == digest == hashlib.sha256(CONTENT).hexdigest()
    assert here.get(digest) == CONTENT
    assert here.get(f"{digest}@16+16") == CONTENT[16:32]
    assert here.has(digest)
    assert not there.has(digest)
    with pytest.raises(StoreError, match="is missing"):
        there.get(digest)
    packed = zstandard.compress(OTHER)
    other = hashlib.sha256(OTHER).hexdigest()
    assert here.put_packed(other, packed, MOST) == here.put_packed(other, packed, MOST) == 14
    assert set(here.digests()) == {digest, other}
    assert list(there.digests()) == []
    assert 0 < here.size() < len(CONTENT)
    assert here.keep_only({digest}) > 0
    here.remove([digest, other])
    here.flush()
    assert list(here.digests()) == []


def test_a_folder_keeps_objects(tmp_path: Path) -> None:
    check_all(open_objects(f"file://{tmp_path}/new folder"))


@pytest.mark.slow
def test_a_real_s3_keeps_objects_and_refuses_a_wrong_key(tmp_path: Path) -> None:
    with running_s3(tmp_path) as server:
        check_all(open_objects("s3://stories", server.options()))
        foreign = ObjectBlobs(open_objects("s3://stories", server.options("wrong")), 1)
        with pytest.raises(StoreError, match="the object store refused"):
            foreign.put(CONTENT)
        with pytest.raises(StoreError, match="the object store refused"):
            foreign.get("0" * 64)


def test_an_object_that_is_not_what_it_says_is_not_kept(tmp_path: Path) -> None:
    blobs = ObjectBlobs(open_objects(f"file://{tmp_path}"), 1)
    digest = hashlib.sha256(CONTENT).hexdigest()
    streamed = zstandard.ZstdCompressor().compressobj()
    unsized = streamed.compress(b"0" * 2 * MOST) + streamed.flush()
    for packed, why in (
        (zstandard.compress(OTHER), "does not hold what its name says"),
        (b"not packed", "is damaged"),
        (zstandard.compress(b"0" * (MOST + 1)), "claims to be too large"),
        (unsized, "is damaged|too large"),
    ):
        with pytest.raises(StoreError, match=why):
            blobs.put_packed(digest, packed, MOST)
    assert list(blobs.digests()) == []


def test_a_url_of_no_object_store_is_refused() -> None:
    for url in ("/var/lib/whyfor", "https://example.com/x", "s3:/x"):
        with pytest.raises(BadInput, match="names no object store"):
            open_objects(url)

"""Segments in an object store: S3, Google Cloud Storage, Azure or a folder, through obstore.

An object is named by its project and its digest, so that nobody learns from one project what
another has. An object is never changed: it is written once, or it is there already.
"""

from __future__ import annotations

import hashlib
from collections.abc import Container, Iterable, Iterator
from typing import Any

import msgspec
import obstore
import zstandard
from obstore.exceptions import AlreadyExistsError, BaseError, NotFoundError
from obstore.store import ObjectStore, from_url

from whyfor.model.errors import BadInput, StoreError
from whyfor.store.address import parse_address
from whyfor.store.blobs import LEVEL, unpack_object

_SCHEMES = ("s3://", "gs://", "az://", "file://")
_SUFFIX = ".zst"


def open_objects(url: str, options: dict[str, Any] | None = None) -> ObjectStore:
    """Open an object store by its URL; keys and endpoints are read from the environment, as each
    provider's own tools do. Raises BadInput if the URL is not understood."""
    if not url.startswith(_SCHEMES):
        raise BadInput(f"{url!r} names no object store", f"Use one of: {' '.join(_SCHEMES)}")
    try:
        if url.startswith("file://"):
            return from_url(url, mkdir=True)
        return from_url(url, **(options or {}))
    except BaseError as error:
        raise BadInput(f"cannot use {url!r}: {error}", "Check the address and its keys.") from None


class ObjectBlobs:
    """The segments of one project of a team."""

    def __init__(self, store: ObjectStore, project: int) -> None:
        self.store = store
        self.prefix = f"p/{project}"
        self._compressor = zstandard.ZstdCompressor(level=LEVEL)

    def put(self, content: bytes) -> str:
        digest = hashlib.sha256(content).hexdigest()
        self._put(digest, self._compressor.compress(content))
        return digest

    def put_packed(self, digest: str, packed: bytes, most: int) -> int:
        """Store an object as it was sent, if it is what its name says and unpacks to at most so
        many bytes; return how many. Raises StoreError if it is not."""
        content = unpack_object(digest, packed, most)
        self._put(digest, packed)
        return len(content)

    def _put(self, digest: str, packed: bytes) -> None:
        try:
            obstore.put(self.store, self._key(digest), packed, mode="create", use_multipart=False)
        except AlreadyExistsError:
            return
        except BaseError as error:
            raise _unreachable(error) from None

    def get(self, address: str) -> bytes:
        name, start, size = parse_address(address)
        try:
            packed = obstore.get(self.store, self._key(name)).bytes().to_bytes()
        except (NotFoundError, FileNotFoundError):
            raise StoreError(f"segment {name[:12]} is missing", "Restore its bucket.") from None
        except BaseError as error:
            raise _unreachable(error) from None
        content = unpack_object(name, packed)
        return content if size is None else content[start : start + size]

    def has(self, address: str) -> bool:
        try:
            obstore.head(self.store, self._key(parse_address(address).object))
        except (NotFoundError, FileNotFoundError):
            return False
        except BaseError as error:
            raise _unreachable(error) from None
        return True

    def remove(self, digests: Iterable[str]) -> None:
        for digest in digests:
            try:
                obstore.delete(self.store, self._key(digest))
            except (NotFoundError, FileNotFoundError):
                continue
            except BaseError as error:
                raise _unreachable(error) from None

    def keep_only(self, digests: Container[str]) -> int:
        gone = [(digest, size) for digest, size in self._listed() if digest not in digests]
        self.remove(digest for digest, _ in gone)
        return sum(size for _, size in gone)

    def digests(self) -> Iterator[str]:
        for digest, _ in self._listed():
            yield digest

    def flush(self) -> None:
        """An object store answers when an object is safe."""

    def size(self) -> int:
        return sum(size for _, size in self._listed())

    def _listed(self) -> Iterator[tuple[str, int]]:
        try:
            for batch in obstore.list(self.store, self.prefix):
                for found in batch:
                    name = found["path"].rpartition("/")[2]
                    yield name.removesuffix(_SUFFIX), found["size"]
        except BaseError as error:
            raise _unreachable(error) from None

    def _key(self, digest: str) -> str:
        return f"{self.prefix}/{digest[:2]}/{digest}{_SUFFIX}"


class CopiedObjects(msgspec.Struct, frozen=True):
    """How much a copy has now, and how many objects were new in it."""

    objects: int
    bytes: int
    new: int


def copy_objects(source: ObjectStore, target: ObjectStore) -> CopiedObjects:
    """Copy the objects of all projects that the target lacks. An object that is not what its name
    says raises StoreError; one that is deleted meanwhile is left out."""
    objects = size = new = 0
    try:
        there = {found["path"] for batch in obstore.list(target, "p") for found in batch}
        for batch in obstore.list(source, "p"):
            for found in batch:
                key = found["path"]
                if key not in there:
                    try:
                        packed = obstore.get(source, key).bytes().to_bytes()
                    except (NotFoundError, FileNotFoundError):
                        continue
                    unpack_object(key.rpartition("/")[2].removesuffix(_SUFFIX), packed)
                    obstore.put(target, key, packed, use_multipart=False)
                    new += 1
                objects += 1
                size += found["size"]
    except BaseError as error:
        raise _unreachable(error) from None
    return CopiedObjects(objects, size, new)


def _unreachable(error: Exception) -> StoreError:
    line = str(error).partition("\n")[0]
    return StoreError(f"the object store refused: {line[:200]}", "Check its address and keys.")

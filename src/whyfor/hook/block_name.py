"""Where the block for the next session in a checkout is: made by an ingest, read by the hook.

Imports nothing: the hook and the rest of the program ask the same functions.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

HEADS = b"ref: refs/heads/"


def checkout(cwd: bytes, content: "Callable[[bytes], bytes]") -> "tuple[bytes, bytes] | None":
    """Return the git directory that all work trees of a repository share, and the branch that is
    checked out around a folder; empty for a detached HEAD, None outside a repository.

    `content` returns a file's bytes, empty if it cannot be read.
    """
    folder = cwd.rstrip(b"/")
    while True:
        git = folder + b"/.git"
        head = content(git + b"/HEAD")
        if not head:
            pointer = content(git)  # of a linked work tree, or a submodule
            if pointer.startswith(b"gitdir:"):
                git = joined(folder, pointer[7:].strip())
                head = content(git + b"/HEAD")
        if head:
            branch = head[len(HEADS) :].strip() if head.startswith(HEADS) else b""
            common = content(git + b"/commondir").strip()
            return (joined(git, common) if common else git), branch
        if not folder:
            return None
        folder = folder.rpartition(b"/")[0]


def joined(folder: bytes, path: bytes) -> bytes:
    """Return a path below a folder, without its steps back."""
    parts: list[bytes] = []
    for part in (path if path[:1] == b"/" else folder + b"/" + path).split(b"/"):
        if part == b"..":
            del parts[-1:]
        elif part not in (b"", b"."):
            parts.append(part)
    return b"/" + b"/".join(parts)


def block_key(common: bytes, branch: bytes) -> bytes:
    """Return what a block is for, as its first line says it."""
    return common + b"\0" + branch


def notes_name(key: bytes) -> bytes:
    """Return the name of the file of notes that a prompt may be about."""
    return block_name(key) + b".notes"


def block_name(key: bytes) -> bytes:
    """Return the name of the block's file: a number made of its key (FNV-1a)."""
    number = 0xCBF29CE484222325
    for byte in key:
        number = (number ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return b"%016x" % number

"""Find commits: by hash, branch, checkpoint id or HEAD, and the repository around a directory."""

from __future__ import annotations

import re
from pathlib import Path

from whyfor.agents import AGENTS
from whyfor.config import Settings
from whyfor.git.place import GitDir, GitPlace, name_place
from whyfor.git.run import ask
from whyfor.model.errors import Ambiguous, BadInput, NotFound
from whyfor.model.paths import to_path
from whyfor.store.open import OpenStore, reading

_SHA = re.compile(r"^[0-9a-f]{7,64}$")


def checkout_root(cwd: GitPlace) -> GitPlace | None:
    """The work tree a folder is in, or the bare repository that the user named."""
    if isinstance(cwd, GitDir):
        return cwd if ask(cwd, "rev-parse", "--git-dir") else None
    found = ask(cwd, "rev-parse", "--show-toplevel")
    return to_path(found) if found else None


def require_checkout(
    cwd: GitPlace, hint: str = "Go to one, or list sessions: whyfor sessions"
) -> GitPlace:
    """The same, where there must be one."""
    folder = checkout_root(cwd)
    if folder is None:
        raise NotFound(f"{cwd} is not in a git repository", hint)
    return folder


def resolve_commit(library: OpenStore, reference: str | None, cwd: GitPlace) -> str | None:
    """Return the whole sha of HEAD, a branch, an abbreviation or a checkpoint's id; None if it is
    none of those."""
    name = "HEAD" if reference is None else reference
    if name.startswith("ctx-"):
        return _only_one(
            library.checkpoints.beginning("id", name), f"{name} fits %d checkpoints", "id"
        )
    if name.startswith("-"):
        raise BadInput(
            f"not a commit: {name}", "Give a commit, a branch, HEAD~2, or a checkpoint's id."
        )
    commit = f"{name}^{{commit}}"
    sha = ask(cwd, "rev-parse", "--verify", "--quiet", "--end-of-options", commit)
    if sha:
        return sha
    if _SHA.match(name):
        return _only_one(
            library.checkpoints.beginning("sha", name), f"{name} fits %d commits", "hash"
        )
    return None


def _only_one(found: list[str], ambiguous: str, wanted: str) -> str | None:
    if len(found) > 1:
        raise Ambiguous(ambiguous % len(found), f"Give more of the {wanted}.")
    return found[0] if found else None


def require_commit(library: OpenStore, reference: str | None, cwd: GitPlace) -> str:
    """Return what `resolve` returns; raise NotFound where that is None."""
    sha = resolve_commit(library, reference, cwd)
    if sha is not None:
        return sha
    name = "HEAD" if reference is None else reference
    hint = "See: whyfor log"
    if checkout_root(cwd) is None:
        hint = "Run it inside the repository, or give a commit: whyfor log"
    raise NotFound(f"no commit is called {name!r} here", hint)


def range_ends(
    library: OpenStore, folder: GitPlace, revisions: str
) -> tuple[str | None, str, bool]:
    """Return the commits that `A..B`, `A...B` (since they parted) or one commit compares, and
    whether it is one commit and its parent, which is None for the first. Raises BadInput,
    NotFound."""
    for sign in ("...", ".."):
        if sign in revisions:
            first, _, last = revisions.partition(sign)
            old = require_commit(library, first or "HEAD", folder)
            new = require_commit(library, last or "HEAD", folder)
            if sign == "...":
                base = ask(folder, "merge-base", old, new)
                if base is None:
                    raise BadInput(f"{revisions}: they have no commit in common", "Use A..B.")
                old = base
            return old, new, False
    new = require_commit(library, revisions, folder)
    return ask(folder, "rev-parse", "-q", "--verify", f"{new}^"), new, True


def is_commit(settings: Settings, reference: str, cwd: Path) -> bool:
    """Return whether a reference means a commit rather than a session; raise Ambiguous if it may
    be both, NotFound if it is neither."""
    agent, _, rest = reference.partition(":")
    if agent in AGENTS and rest:
        return False
    with reading(settings) as library:
        sha = resolve_commit(library, reference, name_place(cwd))
        try:
            session = library.sessions.find(reference)
        except NotFound:
            if sha is not None:
                return True
            raise NotFound(
                f"no session and no commit begins with {reference!r}",
                "See: whyfor sessions, whyfor log",
            ) from None
        except Ambiguous:
            if sha is not None:
                return True
            raise
    if sha is None or session.session_id == reference:
        return False
    if len(reference) in (40, 64):
        return True
    name = f"{session.agent}:{session.session_id}"
    raise Ambiguous(
        f"{reference!r} is a commit and a session",
        f"Give more of it: whyfor show {sha[:12]}, or whyfor show {name}",
    )

"""context: what an agent should know before it works on a branch."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from whyfor.config import Settings
from whyfor.git.place import GitPlace, name_place
from whyfor.git.run import ask
from whyfor.model.errors import BadInput, NotFound
from whyfor.model.memory import MemoryBlock
from whyfor.model.paths import to_text
from whyfor.privacy.redacted_text import redacted
from whyfor.recall.block import TOKENS as TOKENS
from whyfor.recall.block import build_block
from whyfor.recall.branch_context import collect_context
from whyfor.store.open import reading
from whyfor.story.commit_lookup import require_checkout
from whyfor.story.repositories import repository_at


class ContextRequest(msgspec.Struct, frozen=True):
    branch: str | None = None  # None: the one that is checked out
    files: tuple[str, ...] = ()  # that the work will be about
    tokens: int = TOKENS


def branch_context(settings: Settings, cwd: Path, wanted: ContextRequest) -> MemoryBlock:
    """Return what is known of a branch, without secrets. Raises BadInput for a branch that does
    not exist, NotFound outside a repository or if nothing is known of it."""
    folder = require_checkout(name_place(cwd))
    branch = wanted.branch or ask(folder, "symbolic-ref", "--quiet", "--short", "HEAD")
    with reading(settings) as store:
        repository = repository_at(store, folder)
        if repository is None:
            raise NotFound(
                f"no session is known in {folder}", "Read what your agents wrote: whyfor ingest"
            )
        if wanted.branch and not _exists(folder, wanted.branch):
            raise BadInput(f"no such branch: {wanted.branch}", "List them: git branch --all")
        files = _below(wanted.files, cwd, folder)
        material = collect_context(store, repository, branch, files)
    clean, _ = redacted(settings, material, rendered=False)
    return build_block(clean, wanted.tokens)


def _exists(folder: GitPlace, branch: str) -> bool:
    name = f"{branch}^{{commit}}"
    return ask(folder, "rev-parse", "--verify", "--quiet", "--end-of-options", name) is not None


def _below(files: Sequence[str], cwd: Path, folder: GitPlace) -> list[str]:
    """Return paths as git has them, below the top of the repository."""
    if not isinstance(folder, Path):
        return list(files)
    found = []
    for file in files:
        whole = cwd.resolve() / file
        found.append(to_text(whole.relative_to(folder)) if whole.is_relative_to(folder) else file)
    return found

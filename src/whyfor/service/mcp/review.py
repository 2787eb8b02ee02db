"""What an agent's change is about to undo, in words for it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from whyfor.git.place import name_place
from whyfor.model.agent_answers import MemoryText, MemoryTexts
from whyfor.model.review import ReviewFinding
from whyfor.model.text import clean
from whyfor.recall.change_review import review_in
from whyfor.recall.reversals import ReversalReader
from whyfor.store.open import LocalStore
from whyfor.story.commit_lookup import require_checkout

_SAID = 600  # characters of what was decided
_LINES = 8
_KINDS = {
    "undoes": "This takes away what an earlier turn wrote",
    "returns": "This brings back what an earlier turn took out",
    "failed": "This was tried before",
    "rule": "This breaks a rule",
}
_QUIET = "Nothing that was decided earlier is undone by these changes."


def review_texts(store: LocalStore, folder: Path) -> MemoryTexts:
    """Return what the changes in a repository undo that are not committed, else not pushed."""
    top = require_checkout(name_place(folder))
    found = review_in(store, ReversalReader(store, top), top, None)
    if not found.findings:
        return MemoryTexts([MemoryText(found.what, "review", [_QUIET])])
    items = []
    for finding in found.findings:
        ident = f"{finding.path}:{finding.lines[0].number}"
        items.append(MemoryText(ident, "review", list(_blocks(finding))))
    return MemoryTexts(items)


def _blocks(found: ReviewFinding) -> Iterator[str]:
    who = found.who
    turn = f"/{who.turn}" if who.turn is not None else ""
    where = f" ({who.agent}:{who.session_id[:8]}{turn})" if who.agent else ""
    yield f"{_KINDS[found.kind]}{where}: {found.because}"
    yield "\n".join(f"{line.sign} {line.text}" for line in found.lines[:_LINES])
    if found.decision.question:
        yield f"The agent asked: {clean(found.decision.question)[:_SAID]}"
    yield f"{found.decision.kind}: {clean(found.decision.text)[:_SAID]}"

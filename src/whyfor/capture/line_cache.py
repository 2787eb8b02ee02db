"""Keep what was computed of the lines of commits, if nobody else writes just now."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress

from whyfor.config import Settings
from whyfor.model.checkpoints import Part
from whyfor.model.errors import WhyforError
from whyfor.model.lines import CommitLines


def keep_lines(settings: Settings, computed: Iterable[tuple[CommitLines, Sequence[Part]]]) -> None:
    """Save lines with the links they were computed from; what was linked otherwise meanwhile, or
    forgotten, is left out. It can be computed again: if the store cannot be written, nothing is
    said."""
    found = {lines.sha: (lines, list(parts)) for lines, parts in computed}
    if not found:
        return
    from whyfor.capture.recover import writing  # here: mostly there is nothing to keep

    with suppress(WhyforError), writing(settings, 0.0) as store:
        known = store.checkpoints.of_commits(found)
        same = []
        for sha, (lines, parts) in found.items():
            if sha in known and known[sha].parts == parts:
                same.append(lines)
        with store.transaction():
            store.lines.save(same)

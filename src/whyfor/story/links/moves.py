"""Files that a session moved: what was written before counts for the new place too."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from whyfor.story.links.activity import WrittenEdit


def with_moves(written: list[WrittenEdit]) -> Iterator[WrittenEdit]:
    """What was written before a file moved counts for its new place too."""
    if all(act.kind != "moved" for act in written):
        yield from written
        return
    before: list[WrittenEdit] = []
    for act in written:
        if act.kind == "moved" and act.old:
            before += [
                msgspec.structs.replace(
                    known, path=act.path + known.path[len(act.old) :], old=known.old or known.path
                )
                for known in before
                if known.path == act.old or known.path.startswith(act.old + "/")
            ]
        before.append(act)
    yield from before

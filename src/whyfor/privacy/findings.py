"""A secret in a text: where it stands, and the rule that found it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class Finding(NamedTuple):
    start: int
    end: int
    rule: str


def join_findings(found: Iterable[Finding], above: str = "") -> list[Finding]:
    """What overlaps is one, under the name of the longer, or the one that is above all others."""
    result: list[Finding] = []
    for item in sorted(found):
        if result and item.start < result[-1].end:
            last = result[-1]
            longer = last if last.end - last.start >= item.end - item.start else item
            rule = above if above in (last.rule, item.rule) else longer.rule
            result[-1] = Finding(last.start, max(last.end, item.end), rule)
        else:
            result.append(item)
    return result

"""Long results of tools: the database has their beginning and end, the segment has all of them."""

from __future__ import annotations

from typing import NamedTuple

from whyfor.model.events import RESULT_HEAD, RESULT_TAIL, Event, LongText, shorten_result
from whyfor.model.findings import Sink
from whyfor.model.printed import printed

_LONG = RESULT_HEAD + RESULT_TAIL


class LongTextPlace(NamedTuple):
    """A record of a source."""

    source: int
    generation: int
    at: int


def shorten_results(sink: Sink, place: LongTextPlace) -> None:
    """Shorten the long results that a record has just told.

    What is looked for in all of a result is looked for now: the commits that it says were made.
    """
    for bucket in sink.buckets.values():
        for event in bucket.events[bucket.shortened :]:
            if event.kind == "tool.result" and len(event.text) > _LONG:
                _shorten(event, place)
        bucket.shortened = len(bucket.events)


def _shorten(event: Event, place: LongTextPlace) -> None:
    text = event.text
    commits = printed(text)
    if commits:
        event.data = {**(event.data or {}), "printed": commits}
    size = len(text) if text.isascii() else len(text.encode("utf-8", "replace"))
    event.whole = LongText(*place, size, text.count("\n") + 1)
    event.text = shorten_result(text)

"""Filters of the list of sessions that a person wants to keep: a name, and what was asked for."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from whyfor import files
from whyfor.config import Settings
from whyfor.model.errors import BadInput, StoreError, WhyforError
from whyfor.model.status import LiveStatus
from whyfor.model.text import one_line
from whyfor.service.session_list import ListRequest, count_rows

FILE = "filters.json"  # in the Whyfor directory
MOST = 20
NAME_MAX = 60
_AGAIN = "Save one under another name, or remove one first."


class SavedFilter(msgspec.Struct, frozen=True):
    name: str
    asked: ListRequest


class CountedFilter(msgspec.Struct, frozen=True):
    """A filter, and how many sessions fit it now; None if it makes no sense any more."""

    name: str
    asked: ListRequest
    rows: int | None


def saved_filters(settings: Settings) -> list[SavedFilter]:
    """Return the filters in the order in which they were saved. Raises StoreError if their file
    cannot be understood."""
    try:
        data = (settings.home / FILE).read_bytes()
        return msgspec.json.decode(data, type=list[SavedFilter])
    except FileNotFoundError:
        return []
    except (OSError, msgspec.MsgspecError) as error:
        raise StoreError(
            f"the saved filters cannot be read: {error}", f"Mend or remove {FILE}."
        ) from None


def counted_filters(
    settings: Settings, standings: Iterable[LiveStatus] = ()
) -> list[CountedFilter]:
    """Return the filters with today's counts; none if their file cannot be understood."""
    try:
        kept = saved_filters(settings)
    except StoreError:
        return []
    known = tuple(standings)
    return [CountedFilter(one.name, one.asked, _count(settings, one.asked, known)) for one in kept]


def _count(settings: Settings, asked: ListRequest, standings: tuple[LiveStatus, ...]) -> int | None:
    try:
        return count_rows(settings, asked, standings)
    except WhyforError:
        return None  # its project was forgotten, for one


def save_filter(settings: Settings, name: str, asked: ListRequest) -> None:
    """Keep a filter; one of the same name is replaced. Raises BadInput if it has no name, filters
    nothing, or there are too many."""
    called = one_line(name).strip()[:NAME_MAX]
    if not called:
        raise BadInput("a filter needs a name", "Write one.")
    if not asked.filters and asked.sort == "last":
        raise BadInput("nothing is filtered", "Set a filter first.")
    kept = saved_filters(settings)
    made = SavedFilter(called, msgspec.structs.replace(asked, after="", before=""))
    places = [at for at, one in enumerate(kept) if one.name == called]
    if places:
        kept[places[0]] = made
    else:
        kept.append(made)
    if len(kept) > MOST:
        raise BadInput(f"there are {MOST} filters already", _AGAIN)
    _write(settings, kept)


def remove_filter(settings: Settings, name: str) -> None:
    """Remove a filter; one that is not there is removed already."""
    _write(settings, [one for one in saved_filters(settings) if one.name != name])


def _write(settings: Settings, kept: list[SavedFilter]) -> None:
    content = msgspec.json.format(msgspec.json.encode(kept), indent=1) + b"\n"
    files.replace(settings.home / FILE, content)

"""JSON's rules for every shape: fields keep their names, a time is ISO text."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

import msgspec

from whyfor.model.times import to_iso

_TIMES = frozenset(
    "started_at ended_at created_at observed_at committed_at asked_at heard_at activity_at "
    "resolved_at last_record_at last_hook_at last_at since until at".split()
)
_Item = TypeVar("_Item")
_Shape = TypeVar("_Shape", bound=msgspec.Struct)


class ItemList(msgspec.Struct, Generic[_Item], frozen=True):
    items: list[_Item]


class ItemPage(msgspec.Struct, Generic[_Item], frozen=True):
    items: list[_Item]
    next: str | None  # give it as `after` for the items that follow; null: these are the last


class SeqPage(msgspec.Struct, Generic[_Item], frozen=True):
    items: list[_Item]
    next: int | None  # give it as `after`; null: nothing follows yet


def copy_fields(shape: type[_Shape], source: msgspec.Struct, **other: Any) -> _Shape:
    """A shape from the fields of the same names, times as text; `other` comes first."""
    fields = {}
    for name in shape.__struct_fields__:
        value = other[name] if name in other else getattr(source, name)
        fields[name] = time_text(name, value)
    return shape(**fields)


def time_text(name: str, value: Any) -> Any:
    return to_iso(value) if name in _TIMES and isinstance(value, int) else value

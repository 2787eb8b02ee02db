"""Opaque cursors of lists that are read page by page."""

from __future__ import annotations

import base64
import binascii
from typing import Any, TypeVar

import msgspec

from whyfor.model.errors import BadInput

_Value = TypeVar("_Value")


def seal_cursor(value: Any) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode(value)).decode().rstrip("=")


def open_cursor(text: str, kind: type[_Value]) -> _Value:
    try:
        return msgspec.json.decode(
            base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)), type=kind
        )
    except (msgspec.MsgspecError, binascii.Error, ValueError):
        raise BadInput("not a cursor of this list", "Begin again without one.") from None

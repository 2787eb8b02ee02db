"""An error of a command, as JSON."""

from __future__ import annotations

import msgspec


class WireProblem(msgspec.Struct, frozen=True):
    kind: str
    message: str
    hint: str


class WireError(msgspec.Struct, frozen=True):
    error: WireProblem

"""alerts: how a person is reached, and whether that works."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from whyfor.config import Settings
from whyfor.live.notify import (
    Notification,
    NotifySettings,
    notify_complaints,
    notify_settings,
    send_notice,
)
from whyfor.live.push import address_fault, scheme
from whyfor.model.errors import BadInput

HINT = "See: docs/alerts.md"


class AlertWay(msgspec.Struct, frozen=True):
    """One way a person is reached, without what is secret of it."""

    way: str  # desktop | command | url | terminal
    to: str
    error: str | None = None  # why nothing arrived, or would


class AlertReport(msgspec.Struct, frozen=True):
    ways: list[AlertWay]
    levels: list[str]
    quiet: str
    problems: list[str]


def alert_ways(settings: Settings) -> AlertReport:
    """Return how alerts are sent. Raises BadInput if config.toml is not right."""
    wished = notify_settings(settings)
    ways = [
        AlertWay(way, to, address_fault(alone.url[0]) if alone.url else None)
        for way, to, alone in _ways(wished)
    ]
    return AlertReport(ways, list(wished.levels), wished.quiet, notify_complaints(settings))


def try_alerts(settings: Settings, terminal: Callable[[str], None]) -> AlertReport:
    """Send a test by every way, each alone. Raises BadInput if there is none."""
    wished = notify_settings(settings)
    notice = Notification(
        "test", "", "", "Whyfor", "This is a test. Alerts arrive here.", level="know"
    )
    found = []
    for way, to, alone in _ways(wished):
        wrong = send_notice(settings, alone, notice, terminal)
        found.append(AlertWay(way, to, "; ".join(wrong) or None))
    if not found:
        raise BadInput("no way to send alerts is set", HINT)
    return AlertReport(found, list(wished.levels), wished.quiet, [])


def _ways(wished: NotifySettings) -> list[tuple[str, str, NotifySettings]]:
    """Every way, what may be told of it, and settings with that way alone."""
    found = []
    if wished.desktop:
        found.append(("desktop", "this desktop", NotifySettings(desktop=True)))
    if wished.command:
        found.append(("command", wished.command[0], NotifySettings(command=wished.command)))
    for url in wished.url:
        found.append(("url", scheme(url), NotifySettings(url=[url])))
    if wished.terminal:
        named = ", ".join(wished.terminal)
        found.append(("terminal", named, NotifySettings(terminal=wished.terminal)))
    return found

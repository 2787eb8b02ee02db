"""Ways to reach a person beyond this desktop: services by Apprise, and the terminal itself."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from importlib.util import find_spec
from typing import Literal

Ring = Literal["bell", "osc9", "osc777"]
TRIES = 3
PAUSE = 2.0  # seconds after a try that failed; the next waits twice as long
MISSING = "sending to a url needs the extra `alerts`: pip install 'whyfor[alerts]'"


def has_apprise() -> bool:
    """Whether alerts can be sent to addresses."""
    return find_spec("apprise") is not None


def address_fault(url: str) -> str | None:
    """Return what is wrong with an address, without sending anything; None if nothing is seen."""
    if not has_apprise():
        return MISSING
    import apprise  # here: it takes as long to import as all the rest

    logging.getLogger("apprise").disabled = True
    return None if apprise.Apprise().add(url) else _unknown(url)


def _unknown(url: str) -> str:
    return f"[notify] url: {scheme(url)} is not an address that Apprise knows"


def push(urls: list[str], head: str, body: str, pause: float = PAUSE) -> list[str]:
    """Send an alert to each address, three times at most; return what went wrong. Addresses hold
    keys: only their scheme is ever told."""
    if not has_apprise():
        return [MISSING]
    import apprise  # here: it takes as long to import as all the rest

    logging.getLogger("apprise").disabled = True  # it would print into a terminal that is not its
    wrong = []
    for url in urls:
        sender = apprise.Apprise()
        if not sender.add(url):
            wrong.append(_unknown(url))
        elif not _sent(lambda: bool(sender.notify(title=head, body=body)), pause):  # noqa: B023 - called at once
            wrong.append(f"{scheme(url)} did not take the alert, {TRIES} times")
    return wrong


def _sent(send: Callable[[], bool], pause: float) -> bool:
    for attempt in range(TRIES):
        if attempt:
            time.sleep(pause * attempt)
        if send():
            return True
    return False


def scheme(url: str) -> str:
    """Return what may be told of an address."""
    return f"{url.partition('://')[0][:20]}://…"


def ring_text(ways: tuple[Ring, ...], head: str, body: str) -> str:
    """Return what makes a terminal ring or show a notification. The words have no control
    characters."""
    head = head.replace(";", ",")
    made = {
        "bell": "\a",
        "osc9": f"\x1b]9;{head}: {body}\x1b\\",
        "osc777": f"\x1b]777;notify;{head};{body}\x1b\\",
    }
    return "".join(made[way] for way in ways)

"""Test the user's rules: whether they compile, whether their samples match, and how fast they are
on hostile text."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import msgspec

from whyfor.config import Settings
from whyfor.model.errors import WhyforError
from whyfor.privacy.own_rules import own_rule, redact_settings
from whyfor.privacy.rules import Rule, allowed, load_rules
from whyfor.privacy.samples import SLOT, expand

if TYPE_CHECKING:
    from whyfor.privacy.engine import Engine

SECONDS = 5.0  # a rule has for all hostile texts
BUSY = 8  # times as long a busy machine may take over it
SLOW = 0.1  # megabytes a second, of text that is nothing but anchors
_HOSTILE = 64 << 10


class Complaint(msgspec.Struct, frozen=True):
    """A problem with a rule."""

    rule: str
    what: str
    broken: bool  # it cannot be used, or does not what its samples say; else it is only slow


def rule_complaints(settings: Settings) -> list[Complaint]:
    """Return the problems of the user's rules; empty if there are none."""
    try:
        wished = redact_settings(settings)
        allow = [allowed(pattern) for pattern in wished.allow]
    except WhyforError as error:
        return [Complaint("", error.message, True)]
    found: list[Complaint] = []
    for given in wished.rule:
        try:
            rule = own_rule(given)
        except WhyforError as error:
            found.append(Complaint(str(given.get("id", "?")), error.message, True))
            continue
        speed = _speed(given)
        if speed < SLOW:
            much = f"does only {speed:.3f} MB a second" if speed else "takes for ever"
            what = (
                f"rule {rule.id}: its pattern {much} on hostile text; avoid repetitions inside "
                "repetitions"
            )
            found.append(Complaint(rule.id, what, False))
        if speed:
            found += [
                Complaint(rule.id, f"rule {rule.id}: {what}", True)
                for what in _samples(rule, allow)
            ]
    return found


def _alone(rule: Rule, allow: Iterable[re.Pattern[bytes]] = ()) -> Engine:
    """Return an engine with only this rule, so that no other rule matches instead."""
    from whyfor.privacy.engine import Engine  # here: few people have rules of their own

    return Engine(
        msgspec.structs.replace(load_rules(), rules=[rule], names=[], decoys=[], allow=list(allow))
    )


def _samples(rule: Rule, allow: list[re.Pattern[bytes]]) -> Iterator[str]:
    engine = _alone(rule, allow)
    if not rule.match:
        yield "it has no sample in match, so nobody knows whether it finds anything"
    for template in rule.match:
        text = expand(template).encode()
        spans = [(item.start, item.end) for item in engine.find(text)]
        if not spans:
            yield f"its sample {template!r} is not found"
        elif not all(
            any(low <= start and end <= high for low, high in spans)
            for start, end in _slots(template)
        ):
            yield f"its sample {template!r} is found, but not whole"
    if rule.replace and engine.find(rule.replace.encode()):
        yield "it finds what it is replaced with"
    for template in rule.ignore:
        if engine.find(expand(template).encode()):
            yield f"its sample {template!r} is found, and is no secret"


def _slots(template: str) -> Iterator[tuple[int, int]]:
    """Yield the positions of the random parts of a sample: the secret, or pieces of it."""
    text, at = expand(template), 0
    fixed, done = [], 0
    for slot in SLOT.finditer(template):
        fixed.append(template[done : slot.start()])
        done = slot.end()
    fixed.append(template[done:])
    for before, after in pairwise(fixed):
        at = text.index(before, at) + len(before)
        end = text.index(after, at) if after else len(text)
        yield len(text[:at].encode()), len(text[:end].encode())
        at = end


# -- speed ---------------------------------------------------------------------------------------


def _speed(given: dict[str, Any]) -> float:
    """Measure a rule in a separate process, because a runaway pattern cannot be stopped from
    within; 0 means it did not finish."""
    command = [sys.executable, "-m", __name__]
    try:
        done = subprocess.run(
            command, input=msgspec.json.encode(given), capture_output=True, timeout=BUSY * SECONDS
        )
    except subprocess.TimeoutExpired:
        return 0.0
    if done.returncode < 0:  # its time was up
        return 0.0
    done.check_returncode()
    return float(done.stdout)


def slowest(rule: Rule) -> float:
    """Return the speed in megabytes per second on the worst of several texts that almost match."""
    engine = _alone(rule)
    speeds = []
    for text in _hostile(rule):
        begun = time.process_time()
        engine.find(text)
        speeds.append(len(text) / 1e6 / max(time.process_time() - begun, 1e-6))
    return min(speeds)


def _hostile(rule: Rule) -> Iterator[bytes]:
    nearly = [expand(sample).encode()[:-1] for sample in rule.match]
    for anchor in rule.anchors:
        start = anchor.encode()
        for filler in (
            b"a",
            b"A",
            b"0",
            b" ",
            b"=",
            b"-",
            b".",
            b"a0",
            b"a ",
            b"a-",
            b"aA0_",
            *nearly,
        ):
            line = start + filler * (rule.after // len(filler) + 1)
            yield (line + b"\x00") * (_HOSTILE // len(line) + 1)
            yield (start + filler[:64]) * (_HOSTILE // (len(start) + len(filler[:64])) + 1)


if __name__ == "__main__":
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_PROF, SECONDS)  # of its own time: the machine may be busy
    print(slowest(own_rule(msgspec.json.decode(sys.stdin.buffer.read()))))

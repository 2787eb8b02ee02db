"""Secrets that have a form of their own: one rule's pattern, tried where its anchor stands."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property

from whyfor.privacy.checks import VALUE_CHECKS
from whyfor.privacy.findings import Finding
from whyfor.privacy.rules import Rule, compiled


class FormFinder:
    """Looks for one rule's form where one of its anchors stands."""

    def __init__(self, rule: Rule) -> None:
        self.rule = rule
        self.group: str | int = "secret" if rule.near or "(?P<secret>" in rule.pattern else 0
        self.check = VALUE_CHECKS[rule.check] if rule.check else None
        self.needs = rule.needs.encode()

    @cached_property
    def pattern(self) -> re.Pattern[bytes]:
        """Compiled when an anchor is met: all of them take a second, and a text meets few."""
        return compiled(self.rule)

    def look(self, data: bytes, start: int, _end: int, low: int, high: int) -> Iterator[Finding]:
        """Yield the secret at an anchor, if there is one."""
        stop = min(high, start + self.rule.after)
        if self.needs and data.find(self.needs, start, stop) < 0:
            return
        if self.rule.before:
            match = self.pattern.search(data, max(low, start - self.rule.before), stop)
            while match is not None and match.end() <= start:  # of an anchor before this one
                match = self.pattern.search(data, match.end(), stop)
        else:
            match = self.pattern.match(data, start, stop)
        if match is None:
            return
        begin, finish = match.span(self.group)
        if self.check is None or self.check(data[begin:finish].decode("latin-1")):
            yield Finding(begin, finish, self.rule.id)

"""Secrets that have no form of their own, found by the names beside them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from whyfor.privacy.assignments import assigned_value, paired_value
from whyfor.privacy.names import NameReader, SecretName
from whyfor.privacy.prose import secrets_after, secrets_before
from whyfor.privacy.rules import AssignmentRule, NameParts
from whyfor.privacy.tables import cells_below, inserted_value
from whyfor.privacy.values import Span

GENERIC = frozenset(
    "password token secret api-key auth encoded-secret access-token login-command "
    "masked-value piped-password".split()
)


class NamedSecretFinder:
    """Looks at one kind of name."""

    def __init__(self, rule: AssignmentRule, words: NameParts) -> None:
        self.rule = rule.id
        self._names = NameReader(rule, words)

    def look(
        self, data: bytes, start: int, end: int, low: int, high: int
    ) -> Iterator[tuple[int, int, str]]:
        """Yield start, end and rule of each value given to the name around data[start:end]."""
        name = self._names.read(data, start, end, low, high)
        if name is None:
            return
        for begin, finish in _values(name):
            yield begin, finish, self.rule


def _values(name: SecretName) -> Iterable[Span]:
    """Return the values of a name by the first way of writing them that finds one."""
    span = assigned_value(name) or paired_value(name) or inserted_value(name)
    if span is not None:
        return [span]
    spans = secrets_after(name)
    if spans or name.strength < 2:
        return spans
    return secrets_before(name) or cells_below(name)

"""An export without its secrets: taken out of every string before it is rendered, so that no
markup hides one."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from typing import TypeVar, cast

import msgspec

from whyfor.config import Settings
from whyfor.model.text import clean
from whyfor.privacy import private
from whyfor.privacy.engine import Engine
from whyfor.privacy.own_rules import engine_for
from whyfor.privacy.structure import PROTECTED
from whyfor.privacy.structure_redactor import StructureRedactor

_CUT = 190  # a title is cut there or soon after
_SHORT = 300  # characters of a text that may be the beginning of a longer one: a title, a sentence
_BEGINNING = 6  # characters of a secret that give too much of it away
_TELLING = 12  # of them that are no chance, whether the text was cut or not
_NUMBER = 10**13  # a smaller one is a count or a time
T = TypeVar("T")


class RedactedSecrets(msgspec.Struct, frozen=True):
    """What is secret in an export."""

    counts: dict[str, int]  # places, by rule
    values: dict[str, int]  # different ones
    sessions: list[str]


def redacted(
    settings: Settings, content: T, *, rendered: bool, session: str = ""
) -> tuple[T, RedactedSecrets]:
    """The content without its secrets, and what they were. All are learnt first: a copy may
    stand before the name."""
    cleaner = _Cleaner(engine_for(settings), rendered, session)
    cleaner.anything(content)
    if not cleaner.counts:
        return content, RedactedSecrets({}, {}, [])
    cleaner.counts.clear()
    clean_content = cleaner.anything(content)
    values = Counter(label[10:-1].split("#")[0] for label in cleaner.labels.values())
    counts = {rule: number for rule, number in sorted(cleaner.counts.items()) if number}
    found = RedactedSecrets(
        counts, {rule: values[rule] or counts[rule] for rule in counts}, list(cleaner.sessions)
    )
    return clean_content, found


class _Cleaner(StructureRedactor):
    """Knows whose words it reads."""

    def __init__(self, engine: Engine, rendered: bool, session: str) -> None:
        super().__init__(engine)
        self.rendered, self.session = rendered, session
        self.sessions: dict[str, None] = {}
        self._sorted: list[bytes] = []

    def anything(self, value: T, name: str = "") -> T:
        if isinstance(value, int) and abs(value) >= _NUMBER and name.lower() not in PROTECTED:
            return cast(T, self._number(value, name))
        owner = (
            value.get("session_id")
            if isinstance(value, dict)
            else getattr(value, "session_id", None)
        )
        if not isinstance(owner, str):
            return super().anything(value, name)
        before, self.session = self.session, owner
        try:
            return super().anything(value, name)
        finally:
            self.session = before

    def _number(self, value: int, name: str) -> int | str:
        words = self.text(str(value), name)
        return value if words == str(value) else words

    def text(self, value: str, name: str = "") -> str:
        """Cleaned of what rendering drops: two halves that stand together on the page must stand
        together here."""
        before = self.counts.total()
        given = clean(value) if self.rendered else value
        words = super().text(self._public(given), name)
        words = self._whole(words)
        if words == given:
            return value  # what is hidden in code is shown there
        if self.counts.total() > before and self.session:
            self.sessions[self.session] = None
        return words

    def _public(self, value: str) -> str:
        raw = value.encode("utf-8", "surrogatepass")
        if not private.marked(raw):
            return value
        kept, done = [], 0
        for start, stop in private.text_spans(raw):
            kept += [raw[done:start], b"[REDACTED:private]"]
            self.counts["private"] += 1
            done = stop
        return b"".join([*kept, raw[done:]]).decode("utf-8", "surrogatepass")

    def _whole(self, value: str) -> str:
        """Without the beginning of a secret at its end: titles are cut where they must be."""
        if not self.labels or len(value) > _SHORT:
            return value
        if len(self._sorted) != len(self.labels):
            self._sorted = sorted(self.labels)
        end = value.rstrip("…")
        least = _BEGINNING if len(end) < len(value) or len(value) >= _CUT else _TELLING
        raw = end.encode("utf-8", "surrogatepass")
        for at in range(len(raw) - least + 1):
            near = bisect_left(self._sorted, raw[at:])
            if near < len(self._sorted) and self._sorted[near].startswith(raw[at:]):
                label = self.labels[self._sorted[near]]
                self.counts[label[10:-1].split("#")[0]] += 1
                return raw[:at].decode("utf-8", "surrogatepass") + label + value[len(end) :]
        return value

"""What a person should know about a session without watching it: causes, levels, firings."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

Level = Literal["act", "look", "know"]
LEVELS: tuple[Level, ...] = ("act", "look", "know")
ATTENTION = "WhyforAttention"  # the event under which firings are written to the spool


class Cause(msgspec.Struct, frozen=True):
    """A kind of firing."""

    level: Level
    word: str  # how it is called on pages and in alerts
    rank: int  # broken first, then what goes wrong, what waits, what is over
    per: str = "turn"  # told once per turn, call, session or day


CAUSES: dict[str, Cause] = {
    "sign-in": Cause("act", "Login needed", 0),
    "limit": Cause("act", "Rate limited", 0),
    "wall": Cause("act", "Blocked", 0),
    "conflict": Cause("look", "Merge conflict", 0),
    "collision": Cause("look", "Collision", 0, "session"),
    "quiet": Cause("look", "Stuck", 1),
    "long": Cause("look", "Long command", 1, "call"),
    "repeats": Cause("look", "Looping", 1),
    "failing": Cause("look", "Failing", 1),
    "spinning": Cause("look", "Looping", 1),
    "undone": Cause("look", "Back and forth", 1),
    "retrying": Cause("look", "Model does not answer", 1),
    "network": Cause("look", "No network", 1),
    "context": Cause("look", "Context nearly full", 1, "session"),
    "spend": Cause("look", "Expensive", 1),
    "asks": Cause("act", "Asks you", 2, "call"),
    "backlog": Cause("act", "Approval waits", 2, "call"),
    "done": Cause("know", "Finished", 3),
}


class Concern(msgspec.Struct, frozen=True, kw_only=True):
    """What a detector found in one session, or in all of them together."""

    cause: str
    key: str  # with the cause: told once
    at: int  # when it began
    fact: str  # one line: what is so
    evidence: str  # how we know
    step: str  # what to do next
    confidence: str = "high"
    level: Level | None = None  # None: the level of the cause
    seq: int | None = None  # the event that shows it
    share: float | None = None  # of a limit, for a meter: 0.94
    command: str | None = None  # that does the next step, to be copied
    others: tuple[str, ...] = ()  # further sessions it is about: agent:id


def level_of(found: Concern) -> Level:
    """Return how urgent a finding is."""
    return found.level or CAUSES[found.cause].level


class Firing(msgspec.Struct, frozen=True, kw_only=True):
    """A finding on record: whose it is, when it was told, and when it was over."""

    agent: str | None  # None: about all sessions together
    session_id: str | None
    found: Concern
    told_at: int
    cleared_at: int | None = None
    muted: bool = False

    @property
    def session(self) -> str:
        """Return agent:id; empty if it is about no single session."""
        return f"{self.agent}:{self.session_id}" if self.agent else ""

    @property
    def id(self) -> str:
        return firing_id(self.session, self.found.cause, self.found.key)

    @property
    def level(self) -> Level:
        return level_of(self.found)

    @property
    def word(self) -> str:
        """How it is called; a context says how full it is."""
        cause = CAUSES[self.found.cause]
        if self.found.cause == "context" and self.found.share is not None:
            return f"Context {self.found.share:.0%} full".replace("%", " %")
        return cause.word

    @property
    def rank(self) -> tuple[int, int, int]:
        """Order on pages: broken, going wrong, waiting, over; within it by level and age."""
        cause = CAUSES[self.found.cause]
        return cause.rank, LEVELS.index(self.level), self.told_at


def firing_id(session: str, cause: str, key: str) -> str:
    """Return a short name of a firing: the same for the same session, cause and key."""
    text = "\0".join((session, cause, key))
    from hashlib import sha256  # here: OpenSSL takes longer to load than most runs take

    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]


class AttentionMark(msgspec.Struct, frozen=True, kw_only=True):
    """One line on record: a firing was told or is over, or a person muted one."""

    state: Literal["told", "cleared", "muted", "unmuted"]
    cause: str
    key: str = ""
    found: Concern | None = None  # of what was told


class AttentionQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which firings are asked for, newest first."""

    agent: str | None = None
    project: str | None = None  # its identity
    causes: tuple[str, ...] = ()
    limit: int | None = 50


class ListedFiring(msgspec.Struct, frozen=True, kw_only=True):
    """A firing with the session it is about."""

    firing: Firing
    title: str | None = None
    project: str | None = None
    branch: str | None = None


def mark_data(mark: AttentionMark) -> dict[str, Any]:
    """Return a mark as the spool and the store keep it."""
    told: dict[str, Any] = msgspec.to_builtins(mark)
    return told

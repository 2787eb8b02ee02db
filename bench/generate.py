"""Writes a made-up HOME full of agent sessions: the same arguments give the same bytes."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

from projects import PROJECTS, project
from prose import PHRASE, RARE
from transcripts.claude import Claude
from transcripts.codex import Codex
from transcripts.copilot import Copilot
from transcripts.gemini import Gemini

Writer = Claude | Codex | Gemini | Copilot

AGENTS: dict[str, type[Writer]] = {
    "claude": Claude,
    "codex": Codex,
    "gemini": Gemini,
    "copilot": Copilot,
}
# of the sessions; the rest is Claude Code
_SHARE = {"codex": 0.20, "gemini": 0.07, "copilot": 0.03}
# bytes of a session against Claude's
_WEIGHT = {"claude": 1.0, "codex": 1.2, "gemini": 0.3, "copilot": 0.5}
_FIRST_DAY = datetime(2025, 7, 1, 8, tzinfo=UTC)
_DAYS = 365


@dataclass(frozen=True)
class Plan:
    """One session to write."""

    index: int
    agent: str
    target: int
    start: datetime
    planted: list[str]


def _mix(rng: Random, sessions: int) -> list[str]:
    others = [agent for agent, share in _SHARE.items() for _ in range(round(share * sessions))]
    agents = ["claude"] * (sessions - len(others)) + others
    rng.shuffle(agents)
    return agents


def _planted(index: int, sessions: int) -> list[str]:
    """RARE in three sessions exactly, PHRASE in one of fifty."""
    words = [RARE] if index in {sessions // 6, sessions // 2, sessions * 5 // 6} else []
    return [*words, f"The {PHRASE} again."] if index % 50 == 7 else words


def plans(sessions: int, size: int, seed: int, agent: str | None = None) -> Iterator[Plan]:
    """Sessions whose heavy-tailed sizes add up to `size`, spread over a year."""
    rng = Random(seed)
    agents = [agent] * sessions if agent else _mix(rng, sessions)
    weights = [_WEIGHT[name] * rng.lognormvariate(0, 1.1) for name in agents]
    for index, (name, weight) in enumerate(zip(agents, weights, strict=True)):
        start = _FIRST_DAY + timedelta(seconds=rng.uniform(0, _DAYS * 86_400))
        yield Plan(index, name, int(size * weight / sum(weights)), start, _planted(index, sessions))


def write(plan: Plan, target: int, home: Path, seed: int) -> int:
    """Writes one session and returns its size, a little over the target: it ends with a whole
    turn."""
    rng = Random(f"{seed}:session:{plan.index}")
    place = project(seed, rng.randrange(PROJECTS))
    session = AGENTS[plan.agent](rng, place, plan.start, plan.planted)
    session.build(target)
    session.save_under(home)
    return session.size


def generate(home: Path, sessions: int, size: int, seed: int = 1, agent: str | None = None) -> int:
    """Fills `home` and returns the bytes written; what a session is too large, the next ones are
    smaller."""
    written = surplus = 0
    for plan in plans(sessions, size, seed, agent):
        target = plan.target - min(surplus, plan.target // 2)
        session = write(plan, target, home, seed)
        written, surplus = written + session, surplus + session - plan.target
    return written


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("dest", type=Path, help="folder to fill; becomes the HOME")
    parser.add_argument("--sessions", type=int, default=1000)
    parser.add_argument("--megabytes", type=float, default=400)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--agent", choices=sorted(AGENTS), help="only sessions of this agent")
    options = parser.parse_args()
    written = generate(
        options.dest, options.sessions, int(options.megabytes * 1e6), options.seed, options.agent
    )
    print(f"{options.sessions} sessions, {written / 1e6:.1f} MB")


if __name__ == "__main__":
    main()

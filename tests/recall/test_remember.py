"""What is remembered of a hostile transcript costs in proportion to its size."""

from __future__ import annotations

import time
from contextlib import closing
from pathlib import Path
from typing import Any

from tests.transcripts import Transcript
from whyfor.config import Settings
from whyfor.recall.remember import RULES_VERSION, remember_waiting
from whyfor.service.ingest import ingest
from whyfor.store.open import open_store
from whyfor.store.protocol import Store

# a word of every kind that is looked for
CUES = (
    "Never mind: it turns out we decided to use pnpm, not npm, because the root cause silently"
    " fails; always remaining next steps, once you revert, careful, maybe otherwise. "
)


def write_hostile(home: Path, size: int) -> None:
    """A session that grows with `size` in every direction: one long line, many sentences that each
    have every cue, deep arguments, long commands, files and checks that are always new ones."""
    transcript = Transcript(f"hostile {size}")
    transcript.prompt("x" * 50_000 * size)
    transcript.say(CUES * 300 * size)
    for number in range(8 * size):
        nested: Any = {"command": f"make test{number} {'; make lint' * 200}"}
        for _ in range(100):
            nested = {"input": [nested]}
        transcript.prompt(f"no, {CUES * 10}")
        transcript.call("Edit", {"file_path": f"/shop/{number}.py", "nested": nested})
        transcript.call("Bash", {"command": f"make test{number}"}, "(" * 5000, failed=True)
        transcript.say(CUES * 20 + "`parseQuery_" * 200)
    transcript.save(home)


def cost(store: Store) -> float:
    """The CPU seconds of making the memory of all sessions anew, the best of three."""
    found = []
    for _ in range(3):
        with store.transaction():
            for session in store.memory.waiting(RULES_VERSION + 1):
                store.memory.delete(session.number)
        begun = time.process_time()
        remember_waiting(store)
        found.append(time.process_time() - begun)
    return min(found)


def test_memory_of_a_hostile_transcript_costs_in_proportion_to_its_size(
    settings: Settings, home: Path
) -> None:
    costs = []
    for size in (1, 4):
        write_hostile(home, size)
        ingest(settings)
        with closing(open_store(settings.database)) as store:
            assert max(store.sessions.last_seqs([1, 2]).values()) >= 48 * size
            costs.append(cost(store))
    # with the first session beside it five times as much; seventeen if it grew with the square
    assert costs[1] < 10 * costs[0], costs

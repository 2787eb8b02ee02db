"""Asks the search in one process: reads queries, one a line, and prints for each the sessions it
finds, best first, and the CPU seconds it took. The home is the environment's."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import msgspec
from whyfor import config
from whyfor.model.errors import WhyforError
from whyfor.model.query import Hit, SessionFilter
from whyfor.service.search import HitRange, search

_LIMIT = 20


class Answer(msgspec.Struct):
    sessions: list[str]
    seconds: float


def _answer(settings: config.Settings, query: str) -> Answer:
    """What a query finds; nothing if the program refuses it."""
    begun = time.process_time()
    try:
        hits = search(settings, query, SessionFilter(), HitRange(_LIMIT))
    except WhyforError:
        hits = []
    seconds = time.process_time() - begun
    return Answer([hit.session.session_id for hit in hits if isinstance(hit, Hit)], seconds)


def main() -> None:
    settings = config.load()
    queries = Path(sys.argv[1]).read_text().splitlines()
    found = [_answer(settings, query) for query in queries]
    sys.stdout.buffer.write(msgspec.json.encode(found))


if __name__ == "__main__":
    main()

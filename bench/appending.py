"""One more line of a session that was redacted before: milliseconds for one without a secret and
one with a new one.

python appending.py SESSION.jsonl    prints both, medians
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable
from pathlib import Path
from random import Random
from statistics import median

from whyfor.privacy.engine import Engine
from whyfor.privacy.redactor import Redactor
from whyfor.privacy.rules import load_rules

from throughput import plain_record, planted_record

_TIMES = 200


def _typical(redactor: Redactor, lines: Iterable[bytes]) -> float:
    taken = []
    for line in lines:
        started = time.process_time()
        redactor.jsonl(line)
        taken.append(time.process_time() - started)
    return median(taken) * 1e3


def main() -> None:
    rng, redactor = Random("appended"), Redactor(Engine(load_rules()))
    redactor.jsonl(Path(sys.argv[1]).read_bytes())
    for record in (plain_record, planted_record):
        print(_typical(redactor, [record(rng) for _ in range(_TIMES)]))


if __name__ == "__main__":
    main()

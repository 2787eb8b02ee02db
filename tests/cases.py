"""A table of cases, checked in one test."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

Case = TypeVar("Case")


def check_each(cases: Iterable[tuple[str, Case]], check: Callable[[Case], None]) -> None:
    """Call `check` with every named case; fail once, with all cases that failed and why."""
    count = 0
    failures = []
    for name, case in cases:
        count += 1
        try:
            check(case)
        except Exception as error:  # noqa: BLE001 - a failing case must not hide the others
            failures.append(f"{name}: {type(error).__name__}: {error}")
    assert count, "no cases"
    assert not failures, f"{len(failures)} of {count} cases failed:\n" + "\n".join(failures)

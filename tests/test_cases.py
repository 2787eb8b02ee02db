"""A table that is checked in one test hides no case that fails."""

from __future__ import annotations

import pytest

from tests.cases import check_each


def test_every_case_that_fails_is_reported_by_its_name() -> None:
    def check(number: int) -> None:
        assert number % 2 == 0
        if number == 4:
            raise ValueError("four")

    with pytest.raises(AssertionError) as failed:
        check_each(((f"case {number}", number) for number in range(6)), check)
    lines = str(failed.value).splitlines()
    assert lines[0] == "4 of 6 cases failed:"
    named = [line.partition(":")[0] for line in lines if line.startswith("case ")]
    assert named == ["case 1", "case 3", "case 4", "case 5"]


def test_a_table_without_cases_fails() -> None:
    with pytest.raises(AssertionError, match="no cases"):
        check_each([], lambda case: None)

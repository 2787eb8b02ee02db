"""Days are this machine's, whatever the hour, the day of the year and the zone."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest
import time_machine

from tests.cases import check_each
from tests.conftest import Result
from tests.transcripts import Transcript
from whyfor.config import Settings
from whyfor.model.times import parse_when
from whyfor.service.insights import InsightsRequest, overview
from whyfor.service.session_list import ListRequest, month_cursor, session_list

Cli = Callable[..., Result]
BERLIN = "CET-1CEST,M3.5.0,M10.5.0/3"  # needs no table of zones


@pytest.fixture
def zone(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    def use(name: str) -> None:
        monkeypatch.setenv("TZ", name)
        time.tzset()

    yield use
    monkeypatch.undo()
    time.tzset()


def _utc(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000)


def test_a_date_is_a_day_here_also_across_a_change_of_the_clocks(
    zone: Callable[[str], None],
) -> None:
    zone(BERLIN)
    winter = datetime(2026, 11, 18, 10, 30).astimezone()
    changed = datetime(2026, 3, 29, 12).astimezone()  # at two o'clock it was three
    leap = datetime(2028, 2, 29, 23, 58).astimezone()
    cases = [
        (winter, "2026-07-01", False, "2026-06-30T22:00:00"),
        (winter, "2026-07-01", True, "2026-07-01T21:59:59.999"),
        (winter, "2026-07-01T14:00", False, "2026-07-01T12:00:00"),
        (winter, "2026-12-01", False, "2026-11-30T23:00:00"),
        (winter, "today", False, "2026-11-17T23:00:00"),
        (changed, "today", False, "2026-03-28T23:00:00"),
        (changed, "today", True, "2026-03-29T21:59:59.999"),
        (changed, "2026-03-29", True, "2026-03-29T21:59:59.999"),
        (changed, "yesterday", True, "2026-03-28T22:59:59.999"),
        (leap, "today", False, "2028-02-28T23:00:00"),
        (leap, "2028-02-29", True, "2028-02-29T22:59:59.999"),
        (leap, "1y", False, "2027-03-01T22:58:00"),
        (datetime(2028, 3, 1, 0, 5, tzinfo=UTC), "yesterday", False, "2028-02-29T00:00:00"),
    ]

    def check(case: tuple[datetime, str, bool, str]) -> None:
        now, text, end, wanted = case
        assert parse_when(text, now, end=end) == _utc(wanted)

    check_each([(f"{case[1]} at {case[0]}", case) for case in cases], check)


@pytest.mark.parametrize("name", ["UTC", "JST-9", "PST8PDT"])
@pytest.mark.parametrize("hour", ["00:05", "10:30", "23:58"])
def test_the_29th_of_february_is_a_day_like_any_other(
    hour: str, name: str, zone: Callable[[str], None], home: Path, settings: Settings, cli: Cli
) -> None:
    zone(name)
    now = datetime.fromisoformat(f"2028-02-29T{hour}").astimezone()
    with time_machine.travel(now, tick=True):
        idents = {}
        for word, days in (("today", 0), ("yesterday", 1), ("last year", 364), ("before", 367)):
            told = Transcript(word, live=True, ago=timedelta(days=days, minutes=3))
            told.prompt(f"Look around, {word}")
            told.say("Done.")
            told.save(home)
            idents[word] = told.session_id
        assert cli("ingest").code == 0

        def listed(*arguments: str) -> list[str]:
            return [one["session_id"] for one in cli("sessions", *arguments, "--json").json]

        assert listed("--since", "today") == [idents["today"]]
        assert listed("--since", "2028-02-29") == [idents["today"]]
        assert listed("--since", "yesterday", "--until", "yesterday") == [idents["yesterday"]]
        counted = {row["name"] for row in cli("stats", "--json").json["by_day"]}
        assert {"2028-02-29", "2028-02-28"} <= counted

        view = session_list(settings, ListRequest())
        assert {"2028-02-29", "2028-02-28"} <= view.days.keys()
        assert view.months[0].period == "2028-02"
        month = session_list(settings, ListRequest(after=month_cursor("2028-02")))
        assert month.rows[0].session_id == idents["today"]
        seen = overview(settings, InsightsRequest())
        assert seen.until == date(2028, 2, 29)
        assert (seen.since, seen.sessions, seen.recent) == (date(2027, 3, 2), 3, 2)

        assert cli("forget", "--before", "1y", "--yes").code == 0
        assert set(listed("--all")) == set(idents.values()) - {idents["before"]}

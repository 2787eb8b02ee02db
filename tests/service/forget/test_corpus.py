"""Real sessions of every agent: what is forgotten is gone, the others are row for row what they
were."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.capture.snapshot import Snapshot, assert_equal, derived
from tests.service.forget.traces import traces
from whyfor.config import Settings
from whyfor.service.forget import ForgetArguments, forget
from whyfor.service.ingest import ingest
from whyfor.service.rebuild import rebuild

WORD = "npm install"  # in many sessions, in prompts, commands and what tools printed
OWN = ("events", "usage", "touches", "docs")


@pytest.fixture(scope="module")
def read(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home that holds all of the corpus, to be copied."""
    own = tmp_path_factory.mktemp("read") / "own"
    ingest(Settings(home=own, user_home=corpus, env={}))
    return own


@pytest.fixture
def kept(read: Path, corpus: Path, tmp_path: Path) -> Settings:
    return Settings(home=shutil.copytree(read, tmp_path / "own"), user_home=corpus, env={})


def state(settings: Settings) -> Snapshot:
    found = derived(settings, segments=True, large=True)
    found["sources"] = sorted((row[:-2] for row in found["sources"] if row[8]), key=repr)
    return found


def of_others(snapshot: Snapshot, names: set[str]) -> Snapshot:
    return {name: [row for row in snapshot[name] if row[0] not in names] for name in OWN}


def test_one_session_of_each_agent(kept: Settings) -> None:
    before = state(kept)
    # the last one of each
    main = {row[0]: row[1] for row in before["sessions"] if row[2] is None and row[13]}
    gone = set()
    for agent, ident in main.items():
        report = forget(kept, Path.cwd(), ForgetArguments(f"{agent}:{ident}"))
        gone |= {f"{one.agent}:{one.session_id}" for one in report.sessions}
    after = state(kept)
    assert not gone & {f"{row[0]}:{row[1]}" for row in after["sessions"]}
    # of a fork's responses another session may count now
    counted = {**of_others(before, gone), "usage": []}
    assert_equal({**of_others(after, gone), "usage": []}, counted)
    assert rebuild(kept).gaps == []
    assert_equal(state(kept), after)
    assert ingest(kept).new_records == 0


def test_a_text_that_many_of_them_hold(kept: Settings) -> None:
    before = state(kept)
    report = forget(kept, Path.cwd(), ForgetArguments(match=WORD))
    assert report.records > 50
    assert traces(kept.home, WORD) == []
    after = state(kept)
    told = [[row for row in each["events"] if WORD not in repr(row)] for each in (before, after)]
    # Each event is there, and says less; but what an agent said in the user's name may not be known
    # for that any more.
    assert abs(len(told[1]) - len(before["events"])) < 5
    assert len(set(told[0]) - set(told[1])) < len(told[0]) // 50
    assert rebuild(kept).gaps == []
    assert_equal(state(kept), after)
    assert ingest(kept).new_records == 0
    assert traces(kept.home, WORD) == []

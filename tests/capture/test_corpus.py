"""Real transcripts: every byte is kept, however they arrive, and everything derived comes out
the same."""

from __future__ import annotations

import json
import os
import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.capture.snapshot import assert_equal, common_words, derived, found, on_disk, stored_bytes
from tests.locks import locked
from whyfor import config
from whyfor.config import Settings
from whyfor.model.query import SessionFilter
from whyfor.privacy import private
from whyfor.service.ingest import ingest
from whyfor.service.rebuild import rebuild
from whyfor.service.sessions import sessions
from whyfor.service.show import raw_records

LARGEST = 1_500_000  # bytes of a file that is fed piece by piece
# How many files of each agent: all dialects of the corpus are among them.
PICKED = [
    *(("claude", n) for n in range(12)),
    *(("codex", n) for n in range(5)),
    *(("copilot", n) for n in range(4)),
    *(("gemini", n) for n in range(4)),
]


def kept_at(user_home: Path, own: Path) -> Settings:
    return config.load({"HOME": str(user_home), "WHYFOR_HOME": str(own)})


@pytest.fixture(scope="module")
def kept(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """The whole corpus, ingested once for all workers of this run."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "corpus"
    settings = kept_at(corpus, folder / "whyfor")
    with locked(folder / "lock"):
        if not (folder / "done").exists():
            report = ingest(settings)
            assert (report.files, report.unreadable, report.unrecognised) == (
                len(files(corpus)),
                [],
                0,
            )
            (folder / "done").touch()
    return settings


def files(corpus: Path) -> list[Path]:
    return sorted(path for path in corpus.rglob("*") if path.is_file() and path.name != ".done")


def without_private(content: bytes, sign: bytes = b"") -> bytes:
    """As it is kept: with a word for each run of private bytes, or with a sign for each byte of
    them."""
    lines = content.split(b"\n")
    for number, line in enumerate(lines):
        for first, last in reversed((private.marked(line) and private.spans(line)) or []):
            line = line[:first] + (sign * (last - first) or b"[private]") + line[last:]
        lines[number] = line
    return b"\n".join(lines)


def test_what_is_stored_of_each_file_is_its_bytes(corpus: Path, kept: Settings) -> None:
    stored = stored_bytes(kept)
    assert stored.keys() == {str(path) for path in files(corpus)}
    assert [
        path for path in stored if without_private(Path(path).read_bytes(), b"\0") != stored[path]
    ] == []


def test_show_raw_gives_back_a_file_of_the_agent(corpus: Path, kept: Settings) -> None:
    sources = {without_private(path.read_bytes()) for path in files(corpus)}
    main = [item.session for item in sessions(kept, SessionFilter(), limit=0, everything=False)]
    given = [
        b"".join(raw_records(kept, f"{session.agent}:{session.session_id}")) for session in main
    ]
    assert len(given) > 200
    assert set(given) <= sources


def test_a_second_ingest_of_the_corpus_writes_nothing(kept: Settings) -> None:
    before = on_disk(kept.home)
    report = ingest(kept)
    assert (report.new_records, report.unreadable) == (0, [])
    assert on_disk(kept.home) == before


def test_a_rebuild_of_the_corpus_equals_its_first_ingest(
    corpus: Path, kept: Settings, tmp_path: Path
) -> None:
    again = kept_at(corpus, tmp_path / "again")
    again.home.mkdir()
    shutil.copy(kept.journal, again.journal)
    again.segments.symlink_to(kept.segments)
    report = rebuild(again)
    assert report.gaps == []
    wanted = derived(kept, observed=True, segments=True, large=True)
    assert_equal(derived(again, observed=True, segments=True, large=True), wanted)
    words = common_words(kept, 20)
    assert found(again, *words) == found(kept, *words)


# -- piece by piece ------------------------------------------------------------------------------


def pick(corpus: Path, agent: str, number: int) -> Path:
    """Spread over the sizes, so that the smallest and the largest take part."""
    chosen = [p for p in files(corpus) if f".{agent}" in p.parts and p.stat().st_size <= LARGEST]
    chosen.sort(key=lambda path: (path.stat().st_size, path))
    many = sum(1 for name, _ in PICKED if name == agent)
    return chosen[number * (len(chosen) - 1) // (many - 1)]


def growing(data: bytes, dice: random.Random) -> Iterator[bytes]:
    """Ever longer beginnings: cut anywhere, in the first line, at the end of a line, and just
    before a newline."""
    ends = [at for at, byte in enumerate(data) if byte == 0x0A]
    cuts = {dice.randrange(1, len(data)) for _ in range(4)}
    cuts |= (
        {dice.randrange(1, ends[0] + 1), dice.choice(ends), dice.choice(ends) + 1}
        if ends
        else set()
    )
    yield from (data[:cut] for cut in sorted(cuts))
    yield data


def rewritten(data: bytes, dice: random.Random) -> Iterator[bytes]:
    """A document that is written anew with ever more messages in it."""
    whole = json.loads(data)
    messages = whole["messages"]
    for number in sorted({dice.randrange(0, len(messages) + 1) for _ in range(4)}):
        yield json.dumps({**whole, "messages": messages[:number]}, indent=2).encode()
    yield data


@pytest.mark.parametrize(("agent", "number"), PICKED)
def test_a_file_read_as_it_grows_equals_the_file_read_at_once(
    agent: str, number: int, corpus: Path, tmp_path: Path
) -> None:
    original = pick(corpus, agent, number)
    data = original.read_bytes()
    place = tmp_path / "home" / original.relative_to(corpus)
    place.parent.mkdir(parents=True)
    step_by_step = kept_at(tmp_path / "home", tmp_path / "stepwise")
    at_once = kept_at(tmp_path / "home", tmp_path / "at-once")
    dice = random.Random(f"{agent} {number}")
    for piece in growing(data, dice) if original.suffix == ".jsonl" else rewritten(data, dice):
        place.write_bytes(piece)
        ingest(step_by_step)
    ingest(at_once)
    assert stored_bytes(step_by_step) == stored_bytes(at_once) == {str(place): data}
    got, wanted = derived(step_by_step), derived(at_once)
    if original.suffix == ".json":  # written anew each time: how often is not a difference
        got["sources"] = wanted["sources"] = []
    assert_equal(got, wanted)
    words = common_words(at_once, 8)
    assert found(step_by_step, *words) == found(at_once, *words)


def test_a_session_and_its_subagents_read_as_they_grow_equal_all_of_them_read_at_once(
    corpus: Path, tmp_path: Path
) -> None:
    folders = [path for path in corpus.rglob("subagents") if path.is_dir()]
    chosen = max(folders, key=lambda folder: len(list(folder.iterdir())))
    originals = sorted(chosen.glob("*.jsonl"), key=lambda path: path.stat().st_size)[:40]
    originals += chosen.parent.parent.glob(f"{chosen.parent.name}.jsonl")
    assert len(originals) > 10
    step_by_step = kept_at(tmp_path / "home", tmp_path / "stepwise")
    at_once = kept_at(tmp_path / "home", tmp_path / "at-once")
    places = {path: tmp_path / "home" / path.relative_to(corpus) for path in originals}
    dice = random.Random(11)
    cuts = {
        path: sorted(dice.randrange(path.stat().st_size) for _ in range(4)) for path in originals
    }
    for step in range(5):
        for path, place in places.items():
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(path.read_bytes()[: cuts[path][step] if step < 4 else None])
        ingest(step_by_step)
    ingest(at_once)
    assert_equal(derived(step_by_step), derived(at_once))

"""What every agent promises, tried on its sample: a new agent joins by declaring one."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.agents import recordings, samples
from tests.agents.contract import HomeReader, ReadSession
from tests.agents.samples import Sample, sample
from tests.capture.snapshot import assert_equal, derived, stored_bytes
from tests.conftest import Result
from whyfor.agents import AGENTS, IMPORTED, RECORDED
from whyfor.agents.base import RecordStamp
from whyfor.agents.decode import decode_document
from whyfor.agents.tools import tool_kind
from whyfor.config import Settings
from whyfor.model.events import Event, StoredEvent
from whyfor.model.findings import Sink
from whyfor.service.ingest import ingest
from whyfor.service.rebuild import rebuild
from whyfor.store.open import reading
from whyfor.story.conversation.diffs import file_diffs

EVERYBODY = [name for name in AGENTS if name not in (*IMPORTED, *RECORDED)]
# Values that no format foresees, for every place of a record.
ODD: tuple[Any, ...] = (None, True, 7, -1.5, 2**70, "", "\u2028", [], [[]], {}, {"": None}, [7])


BY_HAND = [(name, "written") for name in EVERYBODY]
BY_RUN = [(name, "recorded") for name in recordings.RECORDED]


@pytest.fixture(params=[*BY_HAND, *BY_RUN], ids="-".join)
def given(request: pytest.FixtureRequest) -> Sample:
    name, how = request.param
    return recordings.recorded(name) if how == "recorded" else sample(name)


@pytest.fixture
def reader(given: Sample, home: Path) -> HomeReader:
    given.write(home)
    return HomeReader(AGENTS[given.agent], home).look()


def main_session(given: Sample, reader: HomeReader) -> ReadSession:
    return reader.sessions[given.session_id]


def stored(event: Event, seq: int) -> StoredEvent:
    return StoredEvent(
        seq=seq,
        turn=1,
        kind=event.kind,
        source="transcript",
        confidence="high",
        created_at=event.created_at,
        observed_at=0,
        actor=event.actor,
        text=event.text,
        name=event.name,
        data=event.data,
    )


# -- its files -----------------------------------------------------------------------------------


def test_its_files_are_recognised_and_taken_for_nobody_elses(
    given: Sample, reader: HomeReader
) -> None:
    assert given.session_id in reader.sessions
    assert reader.sessions.keys() == {given.session_id, *given.children, *given.others}
    for path in reader.found():
        head = path.read_bytes()
        for name, agent in AGENTS.items():
            claimed = agent.sniff(path, head)
            assert name == given.agent or claimed is None, f"{name} takes {path.name}"


def test_every_record_of_it_is_understood(reader: HomeReader) -> None:
    assert reader.unknown == {}
    assert reader.unparsed == []


# -- what it says --------------------------------------------------------------------------------


def test_prompts_are_what_a_person_typed_and_nothing_else(
    given: Sample, reader: HomeReader
) -> None:
    prompts = main_session(given, reader).kind("user.prompt")
    assert [(event.actor, event.text) for event in prompts] == [
        ("user", text) for text in given.prompts
    ]
    for text in given.injected:
        assert given.holds(text)
        assert not any(text in event.text for event in prompts)


def test_thoughts_and_words_are_told_apart(given: Sample, reader: HomeReader) -> None:
    session = main_session(given, reader)
    assert tuple(event.text for event in session.kind("assistant.thinking")) == given.thinking
    assert tuple(event.text for event in session.kind("assistant.message")) == given.answers


def test_calls_have_their_kinds_and_results(given: Sample, reader: HomeReader) -> None:
    session = main_session(given, reader)
    calls = session.kind("tool.call")
    kinds = [
        (call.name, tool_kind(call.name or "", given.agent, (call.data or {}).get("input")))
        for call in calls
    ]
    assert tuple(kinds) == given.tools
    results = {(event.data or {}).get("id"): event for event in session.kind("tool.result")}
    assert [(call.data or {}).get("id") for call in calls] == list(results)
    shell = [call for call, (_, kind) in zip(calls, given.tools, strict=True) if kind == "shell"]
    for call in shell:
        data = results[(call.data or {})["id"]].data or {}
        assert data.get("exit_code") == given.exit_code
        assert bool(data.get("failed")) is given.fails


def test_edits_show_what_was_there_and_what_came(given: Sample, reader: HomeReader) -> None:
    session = main_session(given, reader)
    results = {(event.data or {}).get("id"): event for event in session.kind("tool.result")}
    changed = []
    for seq, call in enumerate(session.kind("tool.call")):
        ident = (call.data or {}).get("id")
        for diff in file_diffs(stored(call, seq), stored(results[ident], seq + 1)):
            rows = [row for row in diff.rows if row.sign in "+-" and row.text]
            changed.append((Path(diff.path).name, [(row.sign, row.text) for row in rows]))
    first, second = changed
    assert first == ("greeting.txt", [("+", "hello"), ("+", "world")])
    assert second == ("greeting.txt", [("-", "world"), ("+", "harbour")])
    written = {Path(path).name for _, path, action in session.touches if action == "write"}
    assert written == {"greeting.txt"}


def test_tokens_are_counted_once(given: Sample, reader: HomeReader) -> None:
    session = main_session(given, reader)
    assert session.total() == given.tokens
    assert (len(session.usage) == 1) is given.totals_only
    models = {spent.model for spent in session.usage.values()}
    assert models <= {given.model, None}
    told = {(event.data or {}).get("model") for event in session.kind("assistant.message")}
    assert given.model is None or given.model in models | told


def test_the_session_knows_its_place_title_and_origin(given: Sample, reader: HomeReader) -> None:
    facts = main_session(given, reader).facts
    assert facts.get("cwd", "").endswith(given.cwd)
    assert facts.get("branch") == given.branch
    assert facts.get("title") == given.title
    assert facts.get("forked_from") == given.forked_from
    assert main_session(given, reader).kind("session.started")
    for child in given.children:
        assert reader.sessions[child].parent == given.session_id


def test_what_happened_has_a_time_in_order(given: Sample, reader: HomeReader) -> None:
    times = [event.created_at for event in main_session(given, reader).events.values()]
    if given.timed:
        known = [at for at in times if at is not None]
        assert len(known) == len(times)
        assert min(known) > 1_700_000_000_000
    else:
        assert None in times


def test_the_command_that_resumes_it(given: Sample) -> None:
    assert AGENTS[given.agent].resume(given.session_id) == given.resume


# -- however it is read --------------------------------------------------------------------------


def test_read_at_random_moments_equals_read_whole(given: Sample, tmp_path: Path) -> None:
    agent = AGENTS[given.agent]
    for seed in range(4):
        chance = random.Random(seed)
        elsewhere = tmp_path / f"home{seed}"
        reader = HomeReader(agent, elsewhere)
        moments = sorted(chance.random() for _ in range(6))
        for much in [*moments, 1.0]:
            given.write(elsewhere, much)
            reader.look()
        whole = HomeReader(agent, elsewhere).look()
        expected = {name: one.comparable() for name, one in whole.sessions.items()}
        found = {name: one.comparable() for name, one in reader.sessions.items()}
        assert found == expected


def test_a_second_look_finds_nothing_new(reader: HomeReader) -> None:
    before = {name: one.comparable() for name, one in reader.sessions.items()}
    read = reader.lines
    reader.look()
    assert {name: one.comparable() for name, one in reader.sessions.items()} == before
    assert reader.lines == read


# -- hostile input -------------------------------------------------------------------------------


def spots(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place in a record."""
    items: Any = ()
    if isinstance(value, dict):
        items = value.items()
    elif isinstance(value, list):
        items = enumerate(value)
    for key, inner in items:
        yield (*path, key)
        yield from spots(inner, (*path, key))


def replaced(value: Any, path: tuple[Any, ...], odd: Any) -> Any:
    if not path:
        return odd
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = replaced(value[path[0]], path[1:], odd)
    return copy


def records_of(given: Sample, home: Path) -> Iterator[tuple[Any, list[Any]]]:
    """The records of each source, with what reads them."""
    agent = AGENTS[given.agent]
    reader = HomeReader(agent, home)
    for path in reader.found():
        content = path.read_bytes()
        shape = agent.sniff(path, content)
        assert shape is not None
        if shape.framing == "rows":
            for rows in agent.rows(path, {}):
                yield shape, [json.loads(line) for line in rows.lines.split(b"\n") if line]
        elif shape.framing == "lines":
            yield shape, [json.loads(line) for line in content.split(b"\n") if line]
        elif shape.framing == "document":
            found = decode_document(content)
            assert isinstance(found, list)
            yield shape, found


def test_odd_values_anywhere_never_raise(given: Sample, home: Path) -> None:
    given.write(home)
    agent = AGENTS[given.agent]
    tried = 0
    for shape, records in records_of(given, home):
        for index, record in enumerate(records):
            for number, path in enumerate(spots(record)):
                odd = ODD[(number + index) % len(ODD)]
                hostile = replaced(record, path, odd)
                reader, out = agent.reader(shape, {}), Sink(shape.session_id, shape.parent)
                for one in (*records[:index][-3:], hostile, *records[index + 1 :][:2]):
                    reader.read(one, 0, b"", out)
                assert isinstance(agent.stamp(hostile), RecordStamp)
                json.dumps(reader.state)
                tried += 1
    assert tried > 50


def test_records_of_a_later_version_are_counted_and_nothing_else_is_lost(
    given: Sample, home: Path
) -> None:
    given.write(home)
    agent = AGENTS[given.agent]
    shape, records = next(records_of(given, home))
    new = {"type": "from-the-future", "kind": "from-the-future", "timestamp": "tomorrow"}
    sink = Sink(shape.session_id, shape.parent)
    reader = agent.reader(shape, {})
    for index, record in enumerate((*records[:2], new, *records[2:])):
        reader.read(record, index, b"", sink)
    alone = Sink(shape.session_id, shape.parent)
    reader = agent.reader(shape, {})
    for index, record in enumerate(records):
        reader.read(record, index, b"", alone)
    texts = [event.text for event in alone.main.events if event.text]
    assert [event.text for event in sink.main.events if event.text] == texts


@pytest.mark.parametrize("head", [b"", b"\n", b"{", b"[]", b"\x00" * 64, b"SQLite format 3\x00"])
@pytest.mark.parametrize("agent", EVERYBODY)
def test_what_is_no_transcript_is_left_alone(agent: str, head: bytes, tmp_path: Path) -> None:
    for name in ("x.jsonl", "x.json", "notes.txt"):
        path = tmp_path / name
        path.write_bytes(head)
        if not head.startswith(b"SQLite"):
            assert AGENTS[agent].sniff(path, head) is None


# -- all of them at once -------------------------------------------------------------------------


def test_a_home_with_every_agent_is_stored_byte_for_byte_and_once(
    home: Path, cli: Callable[..., Result], settings: Settings
) -> None:
    everything = {name: sample(name) for name in EVERYBODY}
    for one in everything.values():
        one.write(home)
    assert cli("ingest").code == 0
    listed = cli("sessions", "--all", "--limit", "0", "--json").json
    known = {(row["agent"], row["session_id"]): row for row in listed}
    for name, one in everything.items():
        assert (name, one.session_id) in known, name
        row = known[name, one.session_id]
        assert row["tool_calls"] == len(one.tools), name
    kept = stored_bytes(settings)
    for name, one in everything.items():
        for path, content in one.files.items():
            at = str(home / path)
            if isinstance(content, bytes) and at in kept and samples.HOME not in content:
                assert kept[at] == content, f"{name}: {path}"
    before = derived(settings, observed=True)
    again = ingest(settings)
    assert (again.new_records, again.unreadable) == (0, [])
    assert_equal(derived(settings, observed=True), before)
    rebuild(settings)
    ingest(settings)  # what no segment holds: that a database as a whole is known
    assert_equal(derived(settings, observed=True), before)


def test_private_text_is_stored_of_no_agent(home: Path, settings: Settings) -> None:
    """What stands between tags is gone before anything is written; what stands around it stays."""
    hidden = f"{samples.SECOND} <private>the moss is hollow</private> or so"
    for name in EVERYBODY:
        with_secret(sample(name), hidden).write(home)
    ingest(settings)
    kept = stored_bytes(settings)
    assert not [path for path, data in kept.items() if b"moss is hollow" in data]
    prompts = [
        event.text
        for name in EVERYBODY
        for event in stored_prompts(settings, name, sample(name).session_id)
    ]
    assert sum(text.startswith(samples.SECOND) for text in prompts) == len(EVERYBODY)
    assert sum("or so" in text for text in prompts) == len(EVERYBODY)
    assert not any("moss" in text for text in prompts)


def with_secret(given: Sample, words: str) -> Sample:
    """The same, but for the words of the second prompt."""
    plain, told = samples.SECOND, words
    files: dict[str, samples.Content] = {}
    for name, content in given.files.items():
        if isinstance(content, bytes):
            files[name] = content.replace(plain.encode(), told.encode())
        else:
            files[name] = [
                (sql, tuple(v.replace(plain, told) if isinstance(v, str) else v for v in values))
                for sql, values in content
            ]
    return replace(given, files=files)


def stored_prompts(settings: Settings, agent: str, session_id: str) -> list[StoredEvent]:
    with reading(settings) as library:
        session = library.sessions.find(session_id, agent)
        events = library.conversation.events(session.id, 0, 1 << 20)
        return [event for event in events if event.kind == "user.prompt"]


def test_every_agent_has_a_sample_of_its_own() -> None:
    names = {path.stem for path in Path(samples.__file__).parent.glob("*.py")} - {"__init__"}
    assert names == {samples.package_of(name) for name in EVERYBODY}

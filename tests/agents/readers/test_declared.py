"""An agent that is only a definition passes what every agent passes."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.agents import declared
from tests.agents.contract import HomeReader
from tests.agents.readers import test_contract as contract
from tests.agents.samples import PROMPT, TITLE
from tests.cases import check_each
from tests.conftest import Result
from whyfor.agents import AGENTS
from whyfor.agents.declared.definition import find_value, is_met, parse_definition
from whyfor.agents.declared.registry import use_definitions
from whyfor.agents.declared.template import definition_text
from whyfor.config import Settings
from whyfor.model.errors import BadInput

Cli = Callable[..., Result]
SAMPLE = declared.SAMPLE
EVENTS = {"user.prompt": 2, "assistant.message": 3, "tool.call": 3, "tool.result": 3}


@pytest.fixture(autouse=True)
def folder(settings: Settings, request: pytest.FixtureRequest) -> Path:
    """Where the user's definitions are, with one of Tern."""
    found = settings.home / "agents"
    found.mkdir(parents=True)
    (found / "tern.toml").write_text(declared.DEFINITION)
    use_definitions(found)
    request.addfinalizer(lambda: use_definitions(found / "gone"))
    return found


@pytest.fixture
def reader(home: Path) -> HomeReader:
    SAMPLE.write(home)
    return HomeReader(AGENTS["tern"], home).look()


def test_it_is_read_as_every_agent_must_be(reader: HomeReader, tmp_path: Path) -> None:
    contract.test_its_files_are_recognised_and_taken_for_nobody_elses(SAMPLE, reader)
    contract.test_every_record_of_it_is_understood(reader)
    contract.test_prompts_are_what_a_person_typed_and_nothing_else(SAMPLE, reader)
    contract.test_thoughts_and_words_are_told_apart(SAMPLE, reader)
    contract.test_calls_have_their_kinds_and_results(SAMPLE, reader)
    contract.test_edits_show_what_was_there_and_what_came(SAMPLE, reader)
    contract.test_tokens_are_counted_once(SAMPLE, reader)
    contract.test_the_session_knows_its_place_title_and_origin(SAMPLE, reader)
    contract.test_what_happened_has_a_time_in_order(SAMPLE, reader)
    contract.test_the_command_that_resumes_it(SAMPLE)
    contract.test_a_second_look_finds_nothing_new(reader)


def test_it_is_read_at_random_moments_as_whole(tmp_path: Path) -> None:
    contract.test_read_at_random_moments_equals_read_whole(SAMPLE, tmp_path)


def test_odd_values_anywhere_in_it_never_raise(home: Path) -> None:
    contract.test_odd_values_anywhere_never_raise(SAMPLE, home)


def test_its_sessions_are_listed_shown_and_found(home: Path, cli: Cli) -> None:
    SAMPLE.write(home)
    assert cli("ingest").code == 0
    [listed] = cli("sessions", "--json").json
    assert (listed["agent"], listed["session_id"], listed["title"]) == (
        "tern",
        declared.ID,
        TITLE,
    )
    shown = cli("show", f"tern:{declared.ID}").out
    assert PROMPT in shown
    [hit, *_] = cli("search", "greet harbour", "--json").json
    assert hit["agent"] == "tern"
    states = {one["agent"]: one for one in cli("agents", "--json").json}
    assert states["tern"]["found"] and states["tern"]["sessions"] == 1
    assert cli("doctor", "--json").json["agents"]


def test_without_its_definition_what_was_recorded_stays_readable(
    home: Path, folder: Path, cli: Cli
) -> None:
    SAMPLE.write(home)
    cli("ingest")
    (folder / "tern.toml").unlink()
    assert "tern" not in {one["agent"] for one in cli("agents", "--json").json}
    [listed] = cli("sessions", "--json").json
    assert listed["agent"] == "tern"
    shown = cli("show", declared.ID)
    assert shown.code == 0, shown.err
    assert PROMPT in shown.out
    assert cli("search", "greet harbour", "--json").json
    assert cli("stats", "--json").code == 0
    assert cli("doctor").code in (0, 1)
    export = cli("export", declared.ID)
    assert export.code == 0, export.err
    refused = cli("restore", "--session", declared.ID)
    assert refused.code == 2
    assert "Agents: claude" in refused.err
    rebuilt = cli("rebuild")
    assert "no agent is called 'tern' here" in rebuilt.out
    (folder / "tern.toml").write_text(declared.DEFINITION)
    assert cli("rebuild").code == 0
    assert PROMPT in cli("show", declared.ID).out


def test_a_wrong_definition_stops_nothing_and_doctor_names_it(folder: Path, cli: Cli) -> None:
    (folder / "broken.toml").write_text("name = ")
    (folder / "claude.toml").write_text(declared.DEFINITION.replace('"tern"', '"claude"', 1))
    assert cli("ingest").code == 0
    told = cli("doctor").out
    assert "broken.toml" in told
    assert "an agent is called 'claude' already" in told


def test_check_shows_what_is_read_and_what_no_rule_is_for(
    home: Path, folder: Path, cli: Cli
) -> None:
    SAMPLE.write(home)
    good = cli("agents", "check", "tern", "--json")
    assert good.code == 0
    [tried] = good.json["files"]
    assert tried["recognised"] and tried["tokens"] == 5 and tried["unknown"] == {}
    assert EVENTS.items() <= tried["events"].items()
    path = home / ".tern/flights/2026/one.flight"
    with path.open("a") as file:
        file.write(json.dumps({"kind": "storm"}) + "\nno json\n")
    bad = cli("agents", "check", str(folder / "tern.toml"), str(path))
    assert bad.code == 1
    assert "no rule for: storm (1)" in bad.out
    assert "1 line not JSON" in bad.out
    assert PROMPT in bad.out
    other = home / "other.flight"
    other.write_text('{"kind": "takeoff"}\n')
    assert "not recognised" in cli("agents", "check", "tern", str(other)).out


def test_a_new_definition_can_be_used_as_it_is(home: Path, folder: Path, cli: Cli) -> None:
    SAMPLE.write(home)
    made = cli(
        "agents", "new", "gull", "--from", str(home / ".tern/flights/2026/one.flight"), "--json"
    )
    assert made.code == 0, made.err
    text = Path(made.json["path"]).read_text()
    assert "# takeoff (1): kind, nr, at, flight, format.name" in text
    assert PROMPT not in text
    parse_definition(text, "gull.toml")
    assert tomllib.loads(text)["session"]["when"] == {"kind": "session"}
    assert cli("agents", "check", "gull").code == 1  # there is no file yet
    for taken in ("gull", "tern", "codex"):
        assert "already" in cli("agents", "new", taken).err
    assert cli("agents", "new", "No Name").code == 2


WRONG = [
    ('title = "Tern"', "", "title"),
    ('mark = "Te"', 'mark = "Tern"', "two letters"),
    ('colour = "#667788"', 'colour = "red"', "hexadecimal"),
    ('name = "tern"', 'name = "Tern!"', "lower-case"),
    ("{id}", "", "no {id}"),
    ('shell = ["Run"]', 'shel = ["Run"]', "no kind of tool"),
    ('as = "skip"', "", "one of `as` and `each`"),
    ('as = "skip"', 'as = "jump"', "jump"),
    ('as = "prompt"\ntext = "words"', 'as = "prompt"', "needs `text`"),
    ('when = { kind = "takeoff", "format.name" = "tern" }', "when = {}", "every file"),
    ('files = ["*.flight"]', 'fils = ["*"]', "fils"),
]


def test_what_is_wrong_with_a_definition_is_named() -> None:
    def check(case: tuple[str, str, str]) -> None:
        before, after, named = case
        text = declared.DEFINITION.replace(before, after)
        assert text != declared.DEFINITION
        with pytest.raises(BadInput) as raised:
            parse_definition(text, "tern.toml")
        assert named in raised.value.message

    check_each([(case[2], case) for case in WRONG], check)


def test_paths_and_conditions() -> None:
    record = {"a": {"b": [{"c": 1}, "x"]}, "on": True, "n": 1}
    assert find_value(record, "a.b.0.c") == 1
    assert [find_value(record, path) for path in ("", "a.c", "a.b.7", "a.b.c", "n.x")] == [None] * 5
    assert is_met(record, {"a.b.1": ["x", "y"], "on": True, "n": 1})
    assert not is_met(record, {"n": True})
    assert not is_met(record, {"z": "*"})
    assert "type" in definition_text("gull", [])
    records: list[dict[str, object]] = [
        {"at": "2026", "ev": word, "sid": "x1"} for word in ("open", "say", "say", "act")
    ]
    text = definition_text("gull", records, "~/.gull/logs")
    assert 'when = { ev = "session" }' in text
    assert "# say (2): at, ev, sid" in text
    assert 'folders = ["~/.gull/logs"]' in text
    assert "~/.gull/sessions" in definition_text("gull", records, 'a"b')

"""Files that are not what their place says: counted, told by doctor, and nothing else suffers."""

from __future__ import annotations

import json
import os
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from tests.agents.samples import sample
from tests.conftest import Result
from whyfor.agents import AGENTS

Cli = Callable[..., Result]


def doctor(cli: Cli, agent: str) -> dict[str, object]:
    told = cli("doctor", "--json").json
    (found,) = [each for each in told["agents"] if each["agent"] == agent]
    return {**found, "problems": json.dumps(told["problems"])}


def listed(cli: Cli) -> set[tuple[str, str]]:
    rows = cli("sessions", "--all", "--limit", "0", "--json").json
    return {(row["agent"], row["session_id"]) for row in rows}


def test_another_agents_file_in_the_wrong_folder_is_read_as_what_it_is(
    home: Path, cli: Cli
) -> None:
    codex = sample("codex")
    codex.write(home)
    cli("ingest")
    (before,) = cli("sessions", "--all", "--json").json
    (transcript,) = home.glob(".codex/sessions/**/*.jsonl")
    noise = home / ".factory/sessions/-code-quay/notes.jsonl"
    wrong = home / ".pi/agent/sessions/--code-quay--/2026_x.jsonl"
    for path, content in ((wrong, transcript.read_bytes()), (noise, b'{"hello": 1}\n')):
        path.parent.mkdir(parents=True)
        path.write_bytes(content)
    report = cli("ingest", "--json").json
    assert (report["unrecognised"], report["unreadable"]) == (1, [])
    (after,) = cli("sessions", "--all", "--json").json
    same = ("agent", "session_id", "prompts", "messages", "tool_calls", "tokens")
    assert [after[name] for name in same] == [before[name] for name in same]
    assert doctor(cli, "pi")["waiting"] == 0


@pytest.mark.parametrize("agent", ["goose", "hermes", "kilo"])
def test_half_a_database_is_told_and_read_once_it_is_whole(
    agent: str, home: Path, cli: Cli
) -> None:
    one, other = sample(agent), sample("claude")
    one.write(home)
    other.write(home)
    (name,) = [name for name, content in one.files.items() if isinstance(content, list)]
    whole = (home / name).read_bytes()
    (home / name).write_bytes(whole[: len(whole) // 2])
    report = cli("ingest", "--json").json
    assert [each["path"] for each in report["unreadable"]] == [str(home / name)]
    assert listed(cli) == {("claude", other.session_id)}
    told = doctor(cli, agent)
    assert name in str(told["unreadable"])
    assert name in str(told["problems"])
    (home / name).write_bytes(whole)
    assert cli("ingest", "--json").json["unreadable"] == []
    assert (agent, one.session_id) in listed(cli)


def test_records_of_a_later_version_are_kept_counted_and_told(home: Path, cli: Cli) -> None:
    new = b'{"type":"from-the-future","id":"f1","timestamp":"2026-09-21T14:20:00.000Z"}\n'
    for agent in ("claude", "pi", "qwen", "droid", "kimi"):
        one = sample(agent)
        one.write(home)
        grown = home / next(name for name in one.files if name.endswith(".jsonl"))
        grown.write_bytes(grown.read_bytes() + new)
    report = cli("ingest", "--json").json
    assert report["unknown_types"] == 5
    for agent in ("claude", "pi", "qwen", "droid", "kimi"):
        assert doctor(cli, agent)["unknown_types"] == {"from-the-future": 1}
        ident = sample(agent).session_id
        assert "from-the-future" in cli("show", f"{agent}:{ident}", "--raw").out


def test_a_huge_state_of_vs_code_is_neither_copied_nor_read_whole(
    home: Path, cli: Cli, tmp_path: Path
) -> None:
    state = tmp_path / "state.vscdb"
    with closing(sqlite3.connect(state)) as db:
        db.execute("CREATE TABLE ItemTable (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB)")
        db.execute("INSERT INTO ItemTable VALUES ('workbench.view', '{}')")
        db.commit()
    os.truncate(state, 1 << 30)  # a gigabyte, most of it holes
    began = time.process_time()
    done = cli("import", str(state))
    assert done.code != 0
    assert "no conversation was found" in done.err
    assert time.process_time() - began < 2.0
    folder = next(iter(AGENTS["terminal"].roots(home, {}))).parent / "imports"
    assert sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) == 0

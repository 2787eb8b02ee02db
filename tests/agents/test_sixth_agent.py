"""A sixth agent is one package and one line in the registry: with that everything works for it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.conftest import Result
from tests.server.wire import served
from tests.service.restore.helpers import lines
from whyfor.agents import AGENTS, register, unregister
from whyfor.capture import spool
from whyfor.config import Settings
from whyfor.live.tracker import StatusTracker
from whyfor.model.times import to_iso
from whyfor.service.statements import author

Cli = Callable[..., Result]
SCROLL = "9d111000-0000-4000-8000-000000000001"
MINUTE = 60_000


@pytest.fixture(autouse=True)
def _registered() -> Iterator[None]:
    register("quill", "tests.agents.quill")
    yield
    unregister("quill")


class Scroll:
    """A session of Quill's, as it writes it."""

    def __init__(self, home: Path, cwd: Path) -> None:
        self.path = home / ".quill" / "scrolls" / f"{SCROLL}.jsonl"
        self.path.parent.mkdir(parents=True)
        self.at = time.time_ns() // 1_000_000 - 5 * MINUTE
        self.add("opens", cwd=str(cwd))

    def add(self, verb: str, **more: Any) -> None:
        self.at += 1000
        record = {"verb": verb, "scroll": SCROLL, "timestamp": to_iso(self.at), **more}
        with self.path.open("a") as file:
            file.write(json.dumps(record) + "\n")


@pytest.fixture
def scroll(home: Path, tmp_path: Path) -> Scroll:
    made = Scroll(home, tmp_path)
    made.add("asks", words="Write a poem about ferns")
    verses = {"onto": "fern.txt", "verses": "green\nand curled\n"}
    made.add("uses", tool="scribble", call="c1", **{"with": verses})
    made.add("got", call="c1", words="written")
    made.add("uses", tool="list", call="c2", **{"with": {"onto": "more.txt", "verses": "moss\n"}})
    made.add("got", call="c2", words="written")
    made.add("uses", tool="ink_command", call="c3", **{"with": {"line": "cat fern.txt"}})
    made.add("got", call="c3", words="green")
    made.add("says", words="The poem is in fern.txt.")
    return made


def test_its_sessions_are_captured_listed_and_shown(scroll: Scroll, cli: Cli) -> None:
    assert cli("ingest").code == 0
    [listed] = cli("sessions", "--json").json
    assert (listed["agent"], listed["session_id"], listed["tool_calls"]) == ("quill", SCROLL, 3)
    assert "Qu" in cli("sessions").out
    assert cli("sessions", "--agent", "quill", "--json").json
    told = cli("show", SCROLL[:8], "--tools").out
    for words in ("Qu ", "Write a poem about ferns", "scribble", "fern.txt", "and curled"):
        assert words in told, words


def test_its_tools_are_known_by_its_own_names_first(scroll: Scroll, cli: Cli) -> None:
    cli("ingest")
    *_, turn = cli("show", SCROLL[:8], "--turns", "--json").json["turns"]
    assert turn["kinds"] == {"edit": 2, "shell": 1}
    assert turn["files"] == ["fern.txt", "more.txt"]


def test_it_is_searched(scroll: Scroll, cli: Cli) -> None:
    cli("ingest")
    [hit, *_] = cli("search", "poem ferns", "--json").json
    assert hit["agent"] == "quill"


def test_its_session_has_a_page(scroll: Scroll, cli: Cli, settings: Settings) -> None:
    cli("ingest")
    with served(settings) as server:
        page = server.get(f"/sessions/quill/{SCROLL}", accept="text/html")
    text = page.body.decode()
    assert page.status == 200, text
    for words in (">Qu<", "Quill", "Write a poem about ferns", "and curled", "cat fern.txt"):
        assert words in text, words
    assert f"quill --unroll {SCROLL}" in text


def test_its_status_is_told(scroll: Scroll, cli: Cli, settings: Settings) -> None:
    scroll.add("asks", words="Now read it to me")
    scroll.add("uses", tool="ink_command", call="c4", **{"with": {"line": "say green"}})
    cli("ingest")
    tracker = StatusTracker(settings)
    tracker.look()
    tracker.judge()
    [standing] = tracker.standings()
    tracker.close()
    assert standing.session.agent == "quill"
    assert standing.status.phase == "running"
    assert "say green" in (standing.status.activity or "")
    assert "Quill" in cli("status").out


def test_a_private_tag_and_a_pause_are_respected(scroll: Scroll, cli: Cli) -> None:
    scroll.add("asks", words="and <private>the moss is hollow</private> too")
    assert cli("pause", "--session", f"quill:{SCROLL}").code == 0
    scroll.at = time.time_ns() // 1_000_000
    scroll.add("asks", words="what was said in the pause")
    scroll.add("says", words="an answer in the pause")
    assert cli("ingest").code == 0
    kept = cli("show", SCROLL[:8], "--raw").out
    assert "Write a poem about ferns" in kept
    for words in ("the moss is hollow", "said in the pause", "answer in the pause"):
        assert words not in kept, words


def test_it_is_restored_in_its_own_format(scroll: Scroll, cli: Cli, tmp_path: Path) -> None:
    cli("ingest")
    done = cli("restore", "--session", SCROLL, "--json")
    assert done.code == 0, done.err
    assert done.json["command"] == f"quill --unroll {done.json['session_id']}"
    restored = lines(done.json["path"])
    assert {record["scroll"] for record in restored} == {done.json["session_id"]}
    before = [record["verb"] for record in lines(scroll.path)]
    assert [record["verb"] for record in restored] == before


def test_its_variables_say_whose_session_a_command_is_in(settings: Settings) -> None:
    assert spool.named_sessions({"QUILL_SCROLL": SCROLL}) == [("quill", SCROLL)]
    env = {**settings.env, "QUILL_SCROLL": SCROLL}
    assert author(msgspec.structs.replace(settings, env=env)) == "quill"


def test_it_is_gone_with_its_line_in_the_registry(scroll: Scroll, cli: Cli) -> None:
    unregister("quill")
    assert "quill" not in AGENTS
    assert cli("ingest").code == 0
    register("quill", "tests.agents.quill")
    assert cli("sessions", "--json").json == []

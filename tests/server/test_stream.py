"""The stream: every event once and in order, over restarts and for the slowest, in bounded
memory."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.server.wire import Served, served
from tests.transcripts import Transcript
from whyfor.config import Settings
from whyfor.live import hub as live
from whyfor.live.hub import Hub
from whyfor.model.sessions import Session, Tokens
from whyfor.model.status import LiveStatus, PendingApproval, Status
from whyfor.server import run
from whyfor.service.ingest import ingest


class Message(dict[str, str]):
    """One block of the stream."""

    @property
    def told(self) -> Any:
        return json.loads(self["data"])


@contextmanager
def listening(
    server: Served, query: str = "", last: str | None = None
) -> Iterator[Iterator[Message]]:
    headers = {**server.bearer, **({"Last-Event-ID": last} if last else {})}
    with (
        httpx.Client(timeout=20) as client,
        client.stream("GET", f"{server.url}/api/v1/stream{query}", headers=headers) as response,
    ):
        assert response.status_code == 200, response.read()
        assert response.headers["content-type"].startswith("text/event-stream")
        yield _messages(response.iter_lines())


def _messages(lines: Iterator[str]) -> Iterator[Message]:
    block = Message()
    for line in lines:
        if line:
            name, _, value = line.partition(": ")
            block[name or "comment"] = value
        elif block:
            yield block
            block = Message()


def events(messages: Iterator[Message], number: int) -> list[Message]:
    found: list[Message] = []
    for message in messages:
        if message.get("event") == "event" and message.told["kind"] != "session.started":
            found.append(message)
        assert message.get("event") != "reset"
        if len(found) == number:
            return found
    raise AssertionError(f"the stream ended after {len(found)}")


def said(messages: Iterator[Message]) -> Message:
    """The next that tells more than that the server is there."""
    return next(message for message in messages if message.get("event") not in (None, "alive"))


def begun(messages: Iterator[Message]) -> None:
    """Until the server has said where the stream begins."""
    assert any("id" in message for message in messages)


def texts(messages: list[Message]) -> list[str]:
    return [message.told["text"] for message in messages]


def spoken(settings: Settings, home: Path, *sessions: tuple[str, list[str]]) -> None:
    """Each session has said these things now, and they were ingested."""
    for name, said in sessions:
        transcript = Transcript(name)
        for text in said:
            transcript.say(text)
        transcript.save(home)
    ingest(settings)


def test_events_come_as_they_are_stored_by_whoever_stores_them(
    settings: Settings, home: Path
) -> None:
    spoken(settings, home, ("a", ["before"]))
    with served(settings) as server, listening(server) as messages:
        begun(messages)
        spoken(settings, home, ("a", ["before", "one", "two"]), ("b", ["three"]))
        found = events(messages, 3)
        assert sorted(texts(found)) == ["one", "three", "two"]
        told = found[0].told
        assert told["kind"] == "assistant.message"
        assert (told["session"], told["agent"]) == (f"claude:{told['session_id']}", "claude")
        assert (told["cut"], told["actor"], told["parent_session_id"]) == (False, "assistant", None)


def test_a_client_goes_on_over_a_restart_without_gap_or_repetition(
    settings: Settings, home: Path
) -> None:
    names = [f"{number}" for number in range(60)]
    spoken(settings, home, ("a", []), ("b", ["first"]))
    heard: list[Message] = []
    with served(settings) as server:
        port = server.port
        with listening(server) as messages:
            begun(messages)
            spoken(settings, home, ("a", names[:20]))
            heard += events(messages, 13)  # of twenty: the rest is on its way when the line is cut
    spoken(settings, home, ("a", names[:40]), ("b", ["first", "second"]))  # nobody serves
    with served(settings, port) as server:
        with listening(server, last=heard[-1]["id"]) as messages:
            heard += events(messages, 28)
            spoken(settings, home, ("a", names[:50]))
            heard += events(messages, 10)
        spoken(settings, home, ("a", names))  # nobody listens
        with listening(server, last=heard[-1]["id"]) as messages:
            heard += events(messages, 10)
    told = texts(heard)
    assert [text for text in told if text != "second"] == names
    assert told.count("second") == 1
    assert len({message["id"] for message in heard}) == 61


def test_a_page_hears_of_what_came_while_it_was_made(settings: Settings, home: Path) -> None:
    spoken(settings, home, ("a", ["old"]))
    with served(settings) as server:
        cursor = str(server.hub.cursor)
        spoken(settings, home, ("a", ["old", "new"]))
        with listening(server, f"?after={cursor}") as messages:
            assert texts(events(messages, 1)) == ["new"]


def test_only_what_is_wanted_comes_and_the_place_moves_on_all_the_same(
    settings: Settings, home: Path
) -> None:
    spoken(settings, home, ("a", []), ("b", ["x"]))
    other = f"claude:{Transcript('b').session_id}"
    with served(settings, heartbeat=0.05) as server:
        with listening(server, f"?session={other}&kind=assistant.message") as messages:
            begun(messages)
            start = server.hub.cursor
            transcript = Transcript("a")
            transcript.prompt("not wanted")
            transcript.save(home)
            ingest(settings)
            moved = next(m for m in messages if m.get("id") not in (None, str(start)))
            assert moved["event"] == "alive"
            spoken(settings, home, ("b", ["x", "wanted"]))
            assert texts(events(messages, 1)) == ["wanted"]
        with listening(server, f"?session={other}", last=moved["id"]) as messages:
            assert texts(events(messages, 1)) == ["wanted"]
        project = server.get("/api/v1/sessions").json["items"][0]["project"]
        with listening(server, f"?project={project}&project=other", last=str(start)) as messages:
            assert texts(events(messages, 2)) == ["not wanted", "wanted"]


def test_a_line_with_nothing_on_it_is_kept_alive(settings: Settings, home: Path) -> None:
    spoken(settings, home, ("a", ["x"]))
    with served(settings, heartbeat=0.05) as server, listening(server) as messages:
        alive = [next(m for m in messages if m.get("event") == "alive") for _ in range(3)]
        assert {message["id"] for message in alive} == {str(server.hub.cursor)}


def test_long_texts_travel_cut_and_say_so(settings: Settings, home: Path) -> None:
    spoken(settings, home, ("a", ["x"]))
    with served(settings) as server, listening(server) as messages:
        begun(messages)
        spoken(settings, home, ("a", ["x", "y" * 100_000]))
        told = events(messages, 1)[0].told
        assert (len(told["text"]), told["cut"]) == (4000, True)
        path = f"/api/v1/sessions/claude/{told['session_id']}/events?after={told['seq'] - 1}"
        assert len(server.get(path).json["items"][0]["text"]) == 100_000


# -- those who are slow, and those who are lost --------------------------------------------------


def test_the_slowest_gets_everything_and_costs_no_memory(
    settings: Settings, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "RING_ITEMS", 50)
    monkeypatch.setattr(live, "RING_BYTES", 100_000)
    monkeypatch.setattr(live, "BATCH", 40)
    spoken(settings, home, ("a", ["begin"]))
    # far more than fits between us
    names = ["begin", *(f"{number} " + "x" * 3000 for number in range(500))]
    with (
        served(settings, narrow=True) as server,
        socket.create_connection(("127.0.0.1", server.port), timeout=30) as line,
    ):
        head = f"GET /api/v1/stream HTTP/1.1\r\nHost: localhost:{server.port}\r\n"
        line.sendall((head + f"Authorization: {server.bearer['Authorization']}\r\n\r\n").encode())
        lines = _unchunked(line)
        messages = _messages(lines)
        begun(messages)
        with listening(server) as other:
            begun(other)
            for end in range(100, 501, 100):
                spoken(settings, home, ("a", names[: end + 1]))
                assert texts(events(other, 100)) == names[end - 99 : end + 1]
                assert len(server.hub._ring) <= 50
                assert server.hub._bytes <= 110_000
        assert texts(events(messages, 500)) == names[1:]


def _unchunked(line: socket.socket) -> Iterator[str]:
    """The lines of an answer that comes in chunks, read slowly."""
    with line.makefile("rb", buffering=1024) as file:
        while file.readline().strip():
            pass
        rest = b""
        while size := int(file.readline() or b"0", 16):
            rest += file.read(size)
            file.readline()
            *whole, rest = rest.split(b"\n")
            yield from (part.decode() for part in whole)


@pytest.mark.parametrize("cursor", ["999-1-1", "1-99999999999999-5", "0-0-0-999999999999999"])
def test_whoever_comes_from_a_place_that_never_was_begins_anew(
    settings: Settings, home: Path, cursor: str
) -> None:
    spoken(settings, home, ("a", ["x"]))
    with served(settings) as server, listening(server, last=cursor) as messages:
        message = said(messages)
        assert (message["event"], message["id"]) == ("reset", str(server.hub.cursor))
        spoken(settings, home, ("a", ["x", "y"]))
        assert texts(events(messages, 1)) == ["y"]


def test_all_are_told_when_something_was_forgotten(settings: Settings, home: Path) -> None:
    from whyfor.service.forget import ForgetArguments, forget

    spoken(settings, home, ("a", ["x", "y"]), ("b", ["z"]))
    with served(settings) as server, listening(server) as messages:
        begun(messages)
        forget(settings, home, ForgetArguments(reference=f"claude:{Transcript('a').session_id}"))
        assert said(messages)["event"] == "reset"
        spoken(settings, home, ("b", ["z", "after"]))
        assert texts(events(messages, 1)) == ["after"]


def test_what_was_forgotten_is_told_to_nobody_any_more(settings: Settings, home: Path) -> None:
    from whyfor.service.forget import ForgetArguments, forget

    spoken(settings, home, ("a", ["x"]))
    with served(settings) as server:
        start = str(server.hub.cursor)
        spoken(settings, home, ("a", ["x", "a heron stands here", "y"]))
        with listening(server, last=start) as messages:
            events(messages, 2)
            forget(settings, home, ForgetArguments(match="heron"))
            assert said(messages)["event"] == "reset"
        assert not any(b"heron" in item.data for _, item in server.hub._ring)
        with listening(server, last=start) as messages:
            spoken(settings, home, ("a", ["x", "a heron stands here", "y", "z"]))
            told = next(
                m
                for m in messages
                if m.get("event") == "reset" or m.get("data", "").find('"z"') >= 0
            )
            assert "heron" not in json.dumps(told)


def test_a_store_that_comes_into_being_is_heard_from_its_first_event(
    settings: Settings, home: Path
) -> None:
    with served(settings) as server, listening(server) as messages:
        begun(messages)
        assert server.get("/api/v1/sessions").json["kind"] == "not_found"
        spoken(settings, home, ("a", ["first", "second"]))
        assert texts(events(messages, 2)) == ["first", "second"]


def test_a_rebuilt_store_is_the_same_place(settings: Settings, home: Path) -> None:
    from whyfor.service.rebuild import rebuild

    spoken(settings, home, ("a", ["x"]))
    with served(settings) as server, listening(server) as messages:
        begun(messages)
        spoken(settings, home, ("a", ["x", "y"]))
        last = events(messages, 1)[-1]["id"]
        rebuild(settings)
        spoken(settings, home, ("a", ["x", "y", "z"]))
        assert texts(events(messages, 1)) == ["z"]
        with listening(server, last=last) as again:
            assert texts(events(again, 1)) == ["z"]


def test_there_is_a_limit_to_those_who_listen(
    settings: Settings, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "LISTENERS", 2)
    spoken(settings, home, ("a", ["x"]))
    with served(settings) as server:
        with listening(server) as one, listening(server) as two:
            begun(one)
            begun(two)
            answer = server.get("/api/v1/stream")
            assert (answer.status, answer.json["kind"]) == (503, "busy")
        deadline = time.monotonic() + 10
        while server.hub.listeners and time.monotonic() < deadline:
            time.sleep(0.01)
        assert server.hub.listeners == 0
        with listening(server) as three:
            begun(three)


@pytest.mark.parametrize(
    "query", ["after=x", "kind=nonsense", "kind=status&kind=x", "after=" + "1" * 81]
)
def test_what_cannot_be_understood_is_no_stream(server: Served, query: str) -> None:
    answer = server.get(f"/api/v1/stream?{query}")
    assert (answer.status, answer.json["kind"]) == (400, "bad_input")


def test_streams_end_with_the_server(
    settings: Settings, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "STOPPING", 3600)  # not cut off then: asked to go
    spoken(settings, home, ("a", ["x"]))
    ended = threading.Event()
    with served(settings) as server:

        def listen() -> None:
            with listening(server) as messages:
                up.set()
                for _ in messages:
                    pass
            ended.set()

        up = threading.Event()
        thread = threading.Thread(target=listen)
        thread.start()
        assert up.wait(10)
    thread.join(10)
    assert ended.is_set()


# -- status --------------------------------------------------------------------------------------


def _standing(name: str, phase: str, **more: Any) -> LiveStatus:
    session = Session(
        *(1, "claude", name, "example.com/shop", "/code/shop", "main", "A title", 1, 2, 1, 2, 3),
        tokens=Tokens(),
        models=[],
        files_modified=[],
        parent_session_id=None,
        subagent=None,
        unparsed=0,
    )
    return LiveStatus(session, Status(phase, "a hook", "high", since=1_700_000_000_000, **more))


def _statuses(messages: Iterator[Message], number: int) -> list[tuple[str, str, bool]]:
    found = []
    for message in messages:
        if message.get("event") == "status":
            assert "id" not in message
            found.append((message.told["session_id"], message.told["phase"], message.told["gone"]))
        if len(found) == number:
            return found
    raise AssertionError


def test_a_status_is_told_at_the_beginning_and_when_it_changes(
    settings: Settings, home: Path
) -> None:
    spoken(settings, home, ("a", ["x"]))
    with served(settings) as server:
        server.hub.stand([_standing("s1", "running"), _standing("s2", "waiting")])
        while len(server.hub.standings) < 2:
            time.sleep(0.005)
        with listening(server) as messages:
            assert _statuses(messages, 2) == [("s1", "running", False), ("s2", "waiting", False)]
            server.hub.stand([_standing("s1", "running", heard_at=5), _standing("s2", "idle")])
            server.hub.stand(
                [
                    _standing(
                        "s1",
                        "waiting_approval",
                        approval=PendingApproval("permission", 7, action="rm x"),
                    )
                ]
            )
            assert _statuses(messages, 3) == [
                ("s2", "idle", False),
                ("s1", "waiting_approval", False),
                ("s2", "idle", True),
            ]
        answer = server.get("/api/v1/status").json["items"]
        assert [
            (each["session_id"], each["phase"], each["approval"]["action"]) for each in answer
        ] == [("s1", "waiting_approval", "rm x")]
        assert answer[0]["since"] == "2023-11-14T22:13:20.000Z"


def test_status_alone_can_be_wanted(settings: Settings, home: Path) -> None:
    spoken(settings, home, ("a", ["x"]))
    with (
        served(settings) as server,
        listening(server, "?kind=status&session=claude:s2") as messages,
    ):
        begun(messages)
        spoken(settings, home, ("a", ["x", "y"]))
        server.hub.stand([_standing("s1", "running"), _standing("s2", "running")])
        message = said(messages)
        assert (message["event"], message.told["session"]) == ("status", "claude:s2")


# -- trouble -------------------------------------------------------------------------------------


def test_a_damaged_store_is_said_and_a_sound_one_found_again(
    settings: Settings, home: Path
) -> None:
    from whyfor.service.rebuild import rebuild

    spoken(settings, home, ("a", ["x"]))
    with served(settings) as server, listening(server) as messages:
        begun(messages)
        for path in settings.home.glob("whyfor.db*"):
            path.unlink()
        settings.database.write_bytes(b"not a database" * 1000)
        deadline = time.monotonic() + 10
        while server.hub.error is None and time.monotonic() < deadline:
            time.sleep(0.01)
        assert server.hub.error is not None
        answer = server.get("/api/v1/sessions")
        assert (answer.status, answer.json["kind"]) == (500, "corrupt_store")
        rebuild(settings)
        # what changed meanwhile, nobody knows
        assert any(message.get("event") == "reset" for message in messages)
        spoken(settings, home, ("a", ["x", "y"]))
        told = (message.told for message in messages if message.get("event") == "event")
        assert any(event["text"] == "y" for event in told)
        assert server.get("/api/v1/health").json["trouble"] == []


def test_publishing_makes_it_immediate(settings: Settings, home: Path) -> None:
    spoken(settings, home, ("a", ["x"]))
    with served(settings, poll=60.0) as server, listening(server) as messages:
        begun(messages)
        spoken(settings, home, ("a", ["x", "y"]))
        server.hub.publish()
        assert texts(events(messages, 1)) == ["y"]


def test_a_hub_that_does_not_run_can_be_told_things(settings: Settings) -> None:
    hub = Hub(settings)
    hub.publish()
    hub.stand([_standing("s1", "running")])
    assert [standing.name for standing in hub.standings] == ["claude:s1"]

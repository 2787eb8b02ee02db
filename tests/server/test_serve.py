"""whyfor serve: one per home, found by the next, gone when told to go, however it is told."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import json
import os
import pty
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from tests.conftest import Result
from whyfor.config import Settings
from whyfor.model.errors import Busy
from whyfor.server.run import bound
from whyfor.service.serve import PORT

COMMAND = [sys.executable, "-m", "whyfor", "serve", "--no-open", "--json"]


class Process:
    """A server in a process of its own."""

    def __init__(self, *options: str) -> None:
        self.popen = subprocess.Popen(
            [*COMMAND, *options],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.popen.stdout is not None
        self.said: dict[str, Any] = json.loads(self.popen.stdout.readline())

    def stopped(self, signal_number: int) -> tuple[int, str]:
        self.popen.send_signal(signal_number)
        out, err = self.popen.communicate(timeout=120)
        return self.popen.returncode, out + err


@contextmanager
def serving(*options: str) -> Iterator[Process]:
    process = Process(*(options or ("--port", "0")))
    try:
        yield process
    finally:
        process.popen.kill()
        process.popen.communicate()


def _second() -> dict[str, Any]:
    done = subprocess.run(COMMAND, capture_output=True, text=True, timeout=120, check=True)
    assert len(done.stdout.splitlines()) == 1
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _opens(link: str) -> bool:
    """The link gives a cookie, and that opens the page."""
    with httpx.Client(timeout=30) as client:
        answer = client.get(link)
        client.cookies.update(answer.cookies)
        base = "{0.scheme}://{0.netloc}".format(urlsplit(link))
        return answer.status_code == 303 and client.get(f"{base}/api/v1/status").status_code == 200


def _left(settings: Settings) -> set[str]:
    """What a server leaves in its home; the key is for the next one."""
    kept = {"serve.token", "serve.lock", "serve.links"}
    assert list((settings.home / "serve.links").iterdir()) == []
    return {path.name for path in settings.home.iterdir() if path.name.startswith("serve")} - kept


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_it_goes_when_it_is_told_and_leaves_nothing(settings: Settings, name: str) -> None:
    with serving() as process:
        assert _opens(process.said["link"])
        token = (settings.home / "serve.token").read_text()
        running = json.loads((settings.home / "serve.json").read_text())
        assert running == {"pid": process.popen.pid, "port": urlsplit(process.said["address"]).port}
        assert (settings.home / "serve.json").stat().st_mode & 0o777 == 0o600
        headers = {"Authorization": f"Bearer {token}"}
        with (
            httpx.Client(timeout=30) as client,
            client.stream(
                "GET", process.said["address"] + "/api/v1/stream", headers=headers
            ) as stream,
        ):  # one who listens does not keep it
            assert stream.status_code == 200
            begin = time.monotonic()
            code, rest = process.stopped(getattr(signal, name))
        assert (code, rest) == (0, "")
        assert time.monotonic() - begin < 10
    assert _left(settings) == set()


def test_a_second_one_gives_a_link_into_the_first(settings: Settings) -> None:
    with serving() as first:
        second = _second()
        assert second["already"] is True
        assert (second["address"], second["pid"]) == (first.said["address"], first.popen.pid)
        assert second["link"] != first.said["link"]
        assert _opens(second["link"])
        assert not _opens(second["link"])
        assert _opens(first.said["link"])


def test_many_at_once_are_one(settings: Settings) -> None:
    started = [
        subprocess.Popen([*COMMAND, "--port", "0"], stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    try:
        said = [json.loads(popen.stdout.readline()) for popen in started if popen.stdout]
        assert len({told["pid"] for told in said}) == 1
        assert sum(not told["already"] for told in said) == 1
        assert all(_opens(told["link"]) for told in said)
    finally:
        for popen in started:
            popen.kill()
            popen.communicate()


def test_one_that_was_killed_is_not_in_the_way(settings: Settings) -> None:
    with serving() as first:
        first.stopped(signal.SIGKILL)
        assert (settings.home / "serve.json").exists()
        with serving() as second:
            assert second.said["already"] is False
            assert _opens(second.said["link"])


def test_nobody_who_reads_what_it_prints_is_no_traceback(settings: Settings) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with subprocess.Popen(
        [*COMMAND, "--port", "0"], stdout=writer, stderr=subprocess.PIPE, text=True
    ) as process:
        os.close(writer)
        assert process.communicate(timeout=120)[1] == ""
    assert _left(settings) == set()


def test_the_key_outlives_the_server(settings: Settings) -> None:
    """An open page finds its way back."""
    tokens = []
    for _ in range(2):
        with serving() as process:
            tokens.append((settings.home / "serve.token").read_text())
            process.stopped(signal.SIGTERM)
    assert tokens[0] == tokens[1]


def test_a_port_that_is_taken_is_an_error_if_asked_for_and_none_if_not(
    settings: Settings, cli: Any
) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        number = other.getsockname()[1]
        result: Result = cli("serve", "--no-open", "--port", number, "--json")
        assert (result.code, result.json["error"]["kind"]) == (2, "busy")
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):  # by whomever
            taken = stack.enter_context(socket.socket())
            taken.bind(("127.0.0.1", PORT))
            taken.listen()
        with bound(None) as listener:
            assert listener.getsockname()[0] == "127.0.0.1"
            assert listener.getsockname()[1] != PORT


def test_answers_are_sent_at_once() -> None:
    """Nothing waits for more to send: asyncio sees to it for what it knows to be TCP."""

    async def ask() -> int:
        loop = asyncio.get_running_loop()
        told: asyncio.Future[int] = loop.create_future()

        def met(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            told.set_result(
                writer.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
            )
            writer.close()

        with bound(0) as listener:
            async with await asyncio.start_server(met, sock=listener):
                _, writer = await asyncio.open_connection(*listener.getsockname())
                writer.close()
                return await asyncio.wait_for(told, 30)

    assert asyncio.run(ask())


def test_a_port_that_is_not_ours_to_use_is_not_called_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(self: socket.socket, address: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr("whyfor.server.run.socket.socket.bind", refuse)
    with pytest.raises(Busy, match="port 80 cannot be used: Permission denied"), bound(80):
        pass


@pytest.mark.parametrize("name", ["serve.token", "serve.json"])
def test_a_home_that_cannot_be_written_is_said(name: str, settings: Settings, cli: Any) -> None:
    settings.home.mkdir()
    (settings.home / name).mkdir()
    result: Result = cli("serve", "--no-open", "--port", "0", "--json")
    assert (result.code, result.json["error"]["kind"]) == (2, "store")


def test_it_goes_with_its_terminal(settings: Settings) -> None:
    terminal, inner = pty.openpty()
    own = (
        "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); "
        "os.execv(sys.argv[1], sys.argv[1:])"
    )
    command = [sys.executable, "-c", own, *COMMAND, "--port", "0"]
    popen = subprocess.Popen(
        command, stdin=inner, stdout=inner, stderr=inner, start_new_session=True
    )
    os.close(inner)
    told = b""
    while b"}" not in told:
        assert select.select([terminal], [], [], 20)[0]
        told += os.read(terminal, 4096)
    os.close(terminal)
    assert popen.wait(20) == 0
    assert _left(settings) == set()


def test_it_begins_no_process(settings: Settings) -> None:
    """Everything it does, it does itself: nothing can be left behind."""
    with serving() as process:
        assert _opens(process.said["link"])
        children = Path(f"/proc/{process.popen.pid}/task/{process.popen.pid}/children")
        if not children.exists():
            pytest.skip("this system does not tell a process's children")
        assert children.read_text() == ""


def test_nothing_it_prints_holds_the_key(settings: Settings) -> None:
    with serving() as process:
        token = (settings.home / "serve.token").read_text()
        with httpx.Client(base_url=process.said["address"], timeout=30) as client:
            client.get("/api/v1/sessions", headers={"Authorization": f"Bearer {token}x"})
            client.get("/open?once=wrong")
        assert _opens(process.said["link"])
        line = Path(f"/proc/{process.popen.pid}/cmdline")
        shown = line.read_bytes().decode() if line.exists() else ""
        _, rest = process.stopped(signal.SIGTERM)
        assert rest == ""
        assert token not in json.dumps(process.said) + shown


def test_the_browser_gets_the_link_and_nobody_waits_for_it(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    browser, asked = tmp_path / "browser", tmp_path / "asked"
    browser.write_text(f'#!/bin/sh\necho "$1" >> {asked}.new && mv {asked}.new {asked}\nsleep 2\n')
    browser.chmod(0o700)
    monkeypatch.setenv("BROWSER", f"{browser} %s")
    monkeypatch.setenv("DISPLAY", ":9")
    command = [word for word in COMMAND if word != "--no-open"]
    with subprocess.Popen([*command, "--port", "0"], stdout=subprocess.PIPE, text=True) as popen:
        assert popen.stdout is not None
        link = json.loads(popen.stdout.readline())["link"]
        assert _opens(link)
        deadline = time.monotonic() + 20
        while not asked.exists() and time.monotonic() < deadline:
            time.sleep(0.02)
        assert asked.read_text() == link + "\n"
        popen.terminate()
        assert popen.wait(20) == 0


def test_what_agents_write_is_seen_without_an_ingest(settings: Settings, home: Path) -> None:
    from tests.transcripts import Transcript

    transcript = Transcript("live")
    transcript.prompt("first words")
    transcript.save(home)
    with serving() as process:
        token = (settings.home / "serve.token").read_text()
        headers = {"Authorization": f"Bearer {token}"}
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            answer = httpx.get(
                process.said["address"] + "/api/v1/sessions", headers=headers, timeout=30
            )
            if answer.status_code == 200 and answer.json()["items"]:
                break
            time.sleep(0.05)
        assert answer.json()["items"][0]["title"] == "first words"
        assert process.stopped(signal.SIGTERM) == (0, "")

"""What is shared reaches those who listen, through every process, and nobody else."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import httpx
import pytest

from tests.store.team import Team
from tests.sync.laptop import SharedServer, shared_server
from whyfor.store.postgres.connection import StoreScope
from whyfor.store.postgres.store import open_postgres
from whyfor.store.shared import TeamDatabase


class Ear:
    """Listens to a project's stream in a thread."""

    def __init__(self, url: str, project: int, token: str, after: str = "") -> None:
        self.lines: list[str] = []
        self.status = 0
        self.ended = threading.Event()
        self._address = f"{url}/api/v1/projects/{project}/stream"
        self._headers = {"authorization": f"Bearer {token}"}
        if after:
            self._headers["last-event-id"] = after
        self._client = httpx.Client(timeout=60)
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        try:
            with self._client.stream("GET", self._address, headers=self._headers) as answer:
                self.status = answer.status_code
                for line in answer.iter_lines():
                    self.lines.append(line)
        except (httpx.HTTPError, RuntimeError):
            pass
        self.ended.set()

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    def close(self) -> None:
        self._client.close()


def until(true: Callable[[], bool], seconds: float = 30) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.02)


@pytest.fixture(scope="module")
def servers(
    postgres_18: Team, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[SharedServer, SharedServer]]:
    """Two servers on one database, as two processes are."""
    folder = tmp_path_factory.mktemp("objects")
    with shared_server(postgres_18, folder) as one, shared_server(postgres_18, folder) as other:
        yield one, other


@contextmanager
def listening(server: SharedServer, project: int, token: str, after: str = "") -> Iterator[Ear]:
    ear = Ear(server.url, project, token, after)
    try:
        until(lambda: "event: alive" in ear.text or ear.ended.is_set())
        yield ear
    finally:
        ear.close()


def share(team: Team, project: int, person: int, name: str) -> None:
    """Log a change as an upload does, in any process."""
    store = open_postgres(team.cluster.app(), StoreScope(person, project, writing=True))
    with store.transaction():
        store.uploads.log("story", [name], 1)
    store.close()


def test_a_change_reaches_members_on_both_servers_and_no_other_project(
    servers: tuple[SharedServer, SharedServer],
) -> None:
    one, other = servers
    here, there = one.served.project(), one.served.project()
    member = one.served.token(here.person)
    stranger = one.served.token(there.person)
    with (
        listening(one, here.number, member) as first,
        listening(other, here.number, member) as second,
        listening(other, there.number, stranger) as elsewhere,
        listening(one, here.number, stranger) as refused,
    ):
        share(one.team, here.number, here.person, "canary-of-here")
        until(lambda: "canary-of-here" in first.text and "canary-of-here" in second.text)
        share(one.team, there.number, there.person, "canary-of-there")
        until(lambda: "canary-of-there" in elsewhere.text)
        assert "canary-of-here" not in elsewhere.text
        assert "canary-of-there" not in first.text + second.text
        assert refused.status == 404
        assert "canary" not in refused.text


def test_who_comes_back_hears_what_was_missed_once(
    servers: tuple[SharedServer, SharedServer],
) -> None:
    one, other = servers
    project = one.served.project()
    token = one.served.token(project.person)
    with listening(one, project.number, token) as ear:
        share(one.team, project.number, project.person, "first")
        until(lambda: "first" in ear.text and ear.lines[-1] == "")
        place = [line for line in ear.lines if line.startswith("id: ")][-1].removeprefix("id: ")
    share(one.team, project.number, project.person, "second")
    with listening(other, project.number, token, place) as ear:
        until(lambda: "second" in ear.text)
        assert "first" not in ear.text
        assert ear.text.count("second") == 1


def test_a_stream_ends_with_the_token_or_the_membership(
    servers: tuple[SharedServer, SharedServer],
) -> None:
    one, _ = servers
    project = one.served.project()
    revoked, gone = project.person, project.add("viewer")
    tokens = {person: one.served.token(person) for person in (revoked, gone)}
    with (
        listening(one, project.number, tokens[revoked]) as first,
        listening(one, project.number, tokens[gone]) as second,
    ):
        one.team.admin.execute("UPDATE tokens SET revoked_at=1 WHERE person_id=%s", (revoked,))
        one.team.admin.execute("DELETE FROM project_members WHERE person_id=%s", (gone,))
        assert first.ended.wait(30)
        assert second.ended.wait(30)


def test_notifications_carry_numbers_alone(postgres_18: Team) -> None:
    heard: list[str] = []
    project = postgres_18.new_project()
    listener = TeamDatabase(postgres_18.cluster.app()).change_listener(heard.append, lambda: None)
    listener.start()
    try:
        assert listener.ready.wait(30)
        share(postgres_18, project.number, project.person, "secret-name")
        until(lambda: bool(heard))
        assert all(part.isdigit() for payload in heard for part in payload.split())
    finally:
        listener.stop()

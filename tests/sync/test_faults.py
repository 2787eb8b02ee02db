"""Whatever fails on the way: nothing is lost, nothing is doubled, and it is said."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from typing import NamedTuple

import pytest
from msgspec.structs import replace

from tests.cases import check_each
from tests.store.team import TeamProject
from tests.sync.faults import (
    Fault,
    FaultProxy,
    ProxyRequest,
    after_the_server,
    always,
    fault_proxy,
    first,
    hang_up,
    slow,
)
from tests.sync.killed import differences, killed_sync
from tests.sync.laptop import Laptop, SharedServer
from whyfor.model.errors import NotRedacted
from whyfor.model.sync import SENT, WAITS, OutboxItem, Retraction
from whyfor.service.doctor import examine
from whyfor.service.login import login_with_token
from whyfor.service.remote import list_remotes
from whyfor.store.open import open_store
from whyfor.store.protocol import OutboxStore
from whyfor.sync import package, sender
from whyfor.sync.client import Patience, TeamClient
from whyfor.sync.remotes import load_key, load_remotes, save_key, save_remote
from whyfor.sync.worker import Clock, change_outbox, run_sync

HOUR = 3600 * 1000


class Shared(NamedTuple):
    """A laptop with a pushed commit, and a proxy before its server."""

    laptop: Laptop
    proxy: FaultProxy
    server: SharedServer
    project: TeamProject
    sha: str
    session_id: str

    def rows(self) -> list[tuple[str, int, int, int]]:
        """What the server has: stories, and how many events, segments, objects."""
        number = self.project.number
        counts = []
        for table in ("events", "segments"):
            sql = f"SELECT count(*) FROM {table} WHERE team_project = %s"
            [(count,)] = self.server.rows(sql, number)
            counts.append(count)
        objects = len(list(self.server.served.app.resources.blobs(number).digests()))
        told = self.server.rows("SELECT sha FROM checkpoints WHERE team_project = %s", number)
        return [(sha, *counts, objects) for (sha,) in told]


@pytest.fixture
def shared(laptop: Laptop, server: SharedServer) -> Iterator[Shared]:
    project = server.served.project()
    told = laptop.transcript("gate")
    sha = laptop.work(told, "Mend the gate", "said the walrus")
    laptop.git("push", "-q", "origin", "main")
    laptop.ingest()
    with fault_proxy(server.url) as proxy:
        laptop.share(proxy.url, project, server.key(project.person))
        yield Shared(laptop, proxy, server, project, sha, told.session_id)


class Row(NamedTuple):
    """A row of the table of faults: what fails, what becomes of the item, what is said."""

    fault: Fault
    state: str
    error: str
    wait: tuple[int, int] = (0, 0)  # ms until the next try, at least and at most


def test_every_fault_leaves_the_story_in_the_outbox_and_says_why(shared: Shared) -> None:
    rows = {
        "down": Row(hang_up, WAITS, "", (4 * 60_000, 6 * 60_000 + 1000)),
        "timeout": Row(slow(0.5), WAITS, "", (4 * 60_000, 6 * 60_000 + 1000)),
        "502": Row(always(502), WAITS, "scripted", (4 * 60_000, 6 * 60_000 + 1000)),
        "503": Row(always(503), WAITS, "scripted", (4 * 60_000, 6 * 60_000 + 1000)),
        "504": Row(always(504), WAITS, "scripted", (4 * 60_000, 6 * 60_000 + 1000)),
        "401": Row(always(401), WAITS, "scripted", (24 * HOUR, 24 * HOUR)),
        "403": Row(always(403), "refused", "scripted"),
        "404": Row(always(404), "refused", "scripted"),
        "409": Row(always(409), "refused", ""),
        "422": Row(always(422), "refused", "scripted"),
        "429": Row(always(429, retry_after="900"), WAITS, "scripted", (900_000, 900_000)),
        "507": Row(always(507), "refused", "room"),
        "not ours": Row(
            lambda request: request.answer(200, b"<html>"), WAITS, "as a Whyfor server", (1, HOUR)
        ),
    }

    def check(row: Row) -> None:
        laptop = shared.laptop
        shared.proxy.faults[:] = [row.fault]
        set_waiting(laptop)
        quick = Clock(lambda: laptop.time.ms, laptop.time.sleep, Patience(connect=1.0, idle=0.2))
        report = run_sync(laptop.settings, "test", quick).remotes[0]
        item = laptop.outbox()[shared.sha]
        assert item.state == row.state
        assert report.error
        assert item.error
        low, high = row.wait
        if high:
            assert low <= item.next_at - laptop.time.ms <= high
        assert shared.rows() == [], "nothing of it is there"

    check_each(list(rows.items()), check)
    shared.proxy.faults.clear()
    set_waiting(shared.laptop)
    assert shared.laptop.sync().remotes[0].error is None
    assert shared.laptop.states() == {shared.sha: SENT}
    assert len(shared.rows()) == 1


def test_names_that_are_not_known_and_broken_tls_are_waited_out(
    shared: Shared, monkeypatch: pytest.MonkeyPatch
) -> None:
    laptop = shared.laptop
    [remote] = load_remotes(laptop.settings).remotes
    secure = shared.proxy.url.replace("http://", "https://")
    save_key(laptop.settings, secure, load_key(laptop.settings, remote.url))
    save_remote(laptop.settings, replace(remote, url=secure))
    assert "TLS" in (laptop.sync().remotes[0].error or "")
    assert laptop.states() == {shared.sha: WAITS}
    save_remote(laptop.settings, remote)
    set_waiting(laptop)

    def unknown(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "scripted")

    with monkeypatch.context() as broken:
        broken.setattr(socket, "getaddrinfo", unknown)
        assert "its name is not known" in (laptop.sync().remotes[0].error or "")
    item = laptop.outbox()[shared.sha]
    assert (item.state, item.attempts) == (WAITS, 1)
    laptop.time.ms = item.next_at
    assert laptop.sync().sent == 1


def test_what_the_server_doubts_once_is_planned_or_sent_again(shared: Shared) -> None:
    """Another machine was faster, or bytes broke on the way: once is no reason to give up."""
    laptop, proxy = shared.laptop, shared.proxy
    for status, step in ((409, "/sync/commit"), (409, "/sync/plan"), (422, "/objects/")):
        set_waiting(laptop)
        forget_what_was_sent(laptop)
        forget_what_arrived(shared)
        proxy.faults[:] = [first(1, always(status), step)]
        assert laptop.sync().remotes[0].error is None, (status, step)
        assert len(shared.rows()) == 1


def forget_what_arrived(shared: Shared) -> None:
    """As if the server had never got anything."""
    what = Retraction(sessions=(f"claude:{shared.session_id}",), commits=(shared.sha,))
    [remote] = load_remotes(shared.laptop.settings).remotes
    with closing(TeamClient(shared.server.url, shared.server.key(shared.project.person))) as client:
        sender.StorySender(client, remote, "test").retract(what)
    assert shared.rows() == []


def test_a_story_that_the_server_fails_at_holds_up_no_other(shared: Shared) -> None:
    laptop = shared.laptop
    told = laptop.transcript("other")
    shas = [laptop.work(told, f"Paint wall {number}") for number in range(2)]
    laptop.git("push", "-q", "origin", "main")
    laptop.ingest()

    def failing(request: ProxyRequest) -> bool:
        poisoned = shared.session_id.encode() in request.body
        return poisoned and request.answer(500, b'{"detail":"scripted"}')

    shared.proxy.faults[:] = [failing]
    assert "scripted" in (laptop.sync().remotes[0].error or "")
    assert laptop.states() == {shared.sha: WAITS, **dict.fromkeys(shas, SENT)}
    shared.proxy.faults.clear()
    laptop.time.ms = laptop.outbox()[shared.sha].next_at
    assert laptop.sync().sent == 1


def test_what_waits_for_a_person_is_not_tried_before_the_person_did_something(
    shared: Shared,
) -> None:
    laptop, proxy = shared.laptop, shared.proxy
    for status in (401, 403, 507):
        set_waiting(laptop)
        proxy.faults[:] = [always(status)]
        laptop.sync()
        asked = len(proxy.requests)
        laptop.time.ms += 23 * HOUR
        laptop.sync()
        assert len(proxy.requests) == asked, status
        [remote] = list_remotes(laptop.settings)
        assert remote.waiting + remote.refused == 1
        told = [problem.what for problem in examine(laptop.settings).problems]
        assert any("the team's server" in what for what in told), told
    proxy.faults.clear()
    login_with_token(laptop.settings, proxy.url, shared.server.key(shared.project.person))
    assert laptop.sync().sent == 1


def set_waiting(laptop: Laptop) -> None:
    """Everything is to be tried, as if for the first time."""
    for item in laptop.outbox().values():
        fresh = replace(item, state=WAITS, attempts=0, next_at=0, error=None)
        change_outbox(laptop.settings, partial(save_item, fresh))


def save_item(item: OutboxItem, outbox: OutboxStore) -> None:
    outbox.save(item)


def test_a_month_offline_loses_nothing_and_each_pause_is_longer(shared: Shared) -> None:
    laptop = shared.laptop
    shared.proxy.faults[:] = [hang_up]
    told = laptop.transcript("offline")
    begun = laptop.time.ms
    shas = [shared.sha]
    waits = []
    while laptop.time.ms < begun + 30 * 24 * HOUR:
        laptop.sync()
        due = min(item.next_at for item in laptop.outbox().values())
        waits.append(due - laptop.time.ms)
        laptop.time.ms = due + 1
        if len(waits) == 12:
            break
    assert waits[0] < waits[3] < waits[6]
    assert max(waits) <= 6 * HOUR * 1.2
    for number in range(3):
        shas.append(laptop.work(told, f"Offline {number}"))
    laptop.git("push", "-q", "origin", "main")
    laptop.ingest()
    laptop.time.ms = begun + 30 * 24 * HOUR
    shared.proxy.faults.clear()
    assert laptop.sync().remotes[0].error is None
    assert set(laptop.states()) == set(shas)
    assert set(laptop.states().values()) == {SENT}
    assert {sha for sha, *_ in shared.rows()} == set(shas)


def test_answers_that_are_lost_double_nothing(shared: Shared) -> None:
    """The server did its work, and nobody heard of it: at every step."""
    laptop, proxy = shared.laptop, shared.proxy
    for step in ("/sync/plan", "/objects/", "/sync/commit"):
        proxy.faults[:] = [first(1, after_the_server(proxy), step)]
        assert laptop.sync().remotes[0].error is None
        [before] = shared.rows()
        set_waiting(laptop)
        forget_what_was_sent(laptop)
        assert laptop.sync().remotes[0].error is None
        assert shared.rows() == [before]


def forget_what_was_sent(laptop: Laptop) -> None:
    """As after a rebuild: only the server knows what it has."""
    with closing(open_store(laptop.settings.database)) as store, store.transaction():
        store.db.execute("DELETE FROM sent")
        store.db.execute("UPDATE outbox SET digest=NULL, sent_at=NULL")


def test_a_clock_that_is_wrong_by_days_changes_nothing(shared: Shared) -> None:
    shared.laptop.time.ms += 40 * 24 * HOUR
    assert shared.laptop.sync().sent == 1
    shared.laptop.time.ms -= 80 * 24 * HOUR
    assert shared.laptop.sync().remotes[0].error is None
    assert len(shared.rows()) == 1


def test_what_is_too_large_is_sent_in_pieces_or_leaves_a_line_that_says_so(
    shared: Shared, monkeypatch: pytest.MonkeyPatch
) -> None:
    laptop, proxy = shared.laptop, shared.proxy
    told = laptop.transcript("large")
    told.prompt("read the book")
    for number in range(30):
        words = os.urandom(9000).hex()
        told.call("Read", {"file_path": f"/book/{number}"}, f"page {number} {words}")
    told.call("Read", {"file_path": "/library"}, "all books " + os.urandom(300_000).hex())
    sha = laptop.work(told, "Read the book")
    laptop.git("push", "-q", "origin", "main")
    laptop.ingest()
    monkeypatch.setattr(sender, "_SMALLEST", 32 << 10)

    def refusing(request: object) -> bool:
        too_large = request.method == "PUT" and len(request.body) > 100_000  # type: ignore[attr-defined]
        return too_large and request.answer(413)  # type: ignore[attr-defined]

    proxy.faults[:] = [refusing]
    assert laptop.sync().remotes[0].error is None
    assert laptop.states()[sha] == SENT
    texts = str(
        shared.server.rows("SELECT text FROM events WHERE team_project = %s", shared.project.number)
    )
    assert "page 29" in texts
    assert "all books" not in texts
    blobs = shared.server.served.app.resources.blobs(shared.project.number)
    assert any(b"not shared]" in blobs.get(digest) for digest in blobs.digests())


def test_if_redaction_fails_nothing_leaves_and_doctor_is_red(
    shared: Shared, monkeypatch: pytest.MonkeyPatch
) -> None:
    laptop = shared.laptop

    def failing(*_: object) -> None:
        raise NotRedacted("redaction does not come to an end", "Please report it.")

    with monkeypatch.context() as broken:
        broken.setattr(package, "redact_bytes", failing)
        report = laptop.sync().remotes[0]
    assert (report.sent, report.refused) == (0, 1)
    assert [path for _, path in shared.proxy.requests] == []
    assert laptop.states() == {shared.sha: "refused"}
    health = examine(laptop.settings)
    assert not health.ok
    assert any("redaction" in problem.what for problem in health.problems)
    assert shared.rows() == []


def test_killed_at_every_step_it_loses_nothing_and_doubles_nothing(shared: Shared) -> None:
    laptop = shared.laptop
    with killed_sync(laptop) as passes:
        step = 0
        while passes.run(step):  # each pass comes one step further than the one before
            step += 1
            assert len(shared.rows()) <= 1
        for step in range(10):  # and again, as if it had never been sent
            set_waiting(laptop)
            forget_what_was_sent(laptop)
            passes.run(step)
        assert passes.kills >= 14
    set_waiting(laptop)
    assert laptop.sync().remotes[0].error is None
    assert laptop.states() == {shared.sha: SENT}
    assert differences(laptop, shared.server, shared.project) == []
    [(_, _, segments, objects)] = shared.rows()
    assert segments == objects == 1

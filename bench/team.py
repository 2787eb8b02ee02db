"""The team server: search and ingest on PostgreSQL, reading over HTTP, and how fast news travels.

It runs the tests' PostgreSQL and two server processes on this machine. CPU is that of this process
and of PostgreSQL together; wall times are upper bounds.
"""

from __future__ import annotations

import hashlib
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from statistics import mean
from typing import ClassVar, NamedTuple

import msgspec

from ingesting import Place, first_ingest
from report import Cell, Check, Report, Table
from retrieval import Question, read_questions, score

sys.path.insert(0, str(Path(__file__).parents[1]))

import httpx
from tests import postgres
from tests.store.team import Team, TeamProject
from tests.team.served import ServedTeam, serve_team
from whyfor import config
from whyfor.agents import AGENTS
from whyfor.model.query import Filters
from whyfor.model.sessions import Project
from whyfor.model.sync import SessionUpload, UploadedSegment
from whyfor.recall.query import parse_query
from whyfor.recall.remember import remember_waiting
from whyfor.recall.search import HitRange, hit_page
from whyfor.store.blobs import FolderBlobs
from whyfor.store.journal import SegmentEntry
from whyfor.store.objects import ObjectBlobs, open_objects
from whyfor.store.open import OpenStore, reading
from whyfor.store.postgres.connection import ScopedConnection, StoreScope
from whyfor.store.shared import LentStore
from whyfor.sync.receive import UploadReceiver

_PIECE = 1 << 20  # bytes of a segment
_LISTENERS = 100
_ROUNDS = 30
_LARGE = 10 << 20  # bytes of a large session
_WAIT = 60  # seconds for a server to start
_NOTE = """The corpus' sessions in one project, alone; among copies of themselves in other projects; and received in another order
(every second session first). `texts` counts the rows of all full text indexes. CPU is that of the server and of
PostgreSQL together; the wall clock also has what else ran on the machine. Copies have no new words: a database of different
sessions has longer lists of words, and shorter lists of texts for each."""
_LARGE_NOTE = """The same questions. Each copy has the same words, so every word stands in so many times as many texts, and each answer
competes with its copies: a project of different sessions has longer lists of words, and fewer texts with each."""
_HTTP_NOTE = """Two processes, as `whyfor server run` starts them, and an object store in a folder. A large session: 10 MB of
records, all pages of its events, and its segments as a laptop reads them. News: from the commit of a change to the last byte
of its line at each of 100 listeners, half of them on each process."""


class _Clock:
    """CPU seconds of this process and of PostgreSQL, and time on the wall."""

    def __init__(self, folder: Path) -> None:
        self._main = int((folder / "data" / "postmaster.pid").read_text().split()[0])

    def cpu(self) -> float:
        total = 0
        for process in Path("/proc").iterdir():
            if not process.name.isdigit():
                continue
            try:
                fields = (process / "stat").read_text().rsplit(")", 1)[1].split()
            except OSError:
                continue
            if int(fields[1]) == self._main:
                total += int(fields[11]) + int(fields[12])
        return time.process_time() + total / os.sysconf("SC_CLK_TCK")


def p95(values: list[float]) -> float:
    return sorted(values)[int(len(values) * 0.95)]


def team(report: Report, place: Place, questions: Path, copies: int) -> None:
    """Measure everything on the sessions of a place."""
    postgres._SETTINGS.update({"shared_buffers": "256MB", "max_connections": "100"})
    assert place.ours is not None
    first_ingest(place)
    settings = config.load(
        {"HOME": str(place.home), "WHYFOR_HOME": str(place.ours.store), "PATH": os.environ["PATH"]}
    )
    asked = read_questions(questions)
    with ExitStack() as stack:
        cluster = stack.enter_context(postgres.running(18))
        cluster.make_database()
        people = Team(cluster)
        clock = _Clock(cluster.folder)
        objects = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        project, mixed = people.new_project(), people.new_project()
        uploads = list(_uploads(settings))
        _ingest(report, people, project, uploads, objects, clock)
        _receive(mixed, [*uploads[1::2], *uploads[::2]], objects, clock)
        with reading(settings) as local:
            here = score(_found(local, asked, clock)[0], asked)
        rows: list[list[Cell]] = []
        checks = []
        grown = [0, copies // 4, copies]
        for before, number in zip([0, *grown], grown, strict=False):
            _copy(people, project, number - before)
            store = _lent(people, project, settings, objects)
            with closing(store):
                _found(store, asked[:20], clock)  # warm
                found, used, walls = _found(store, asked, clock)
            there = score(found, asked)
            events = _events(people, project) * (1 + number)
            size = f"{events / 1e6:.2f} M"
            rows.append(_row(people, f"{size} events", there.mrr, used, walls))
        with closing(_lent(people, mixed, settings, objects)) as store:
            _found(store, asked[:20], clock)
            found, among, walls = _found(store, asked, clock)
        other = score(found, asked)
        rows.append(_row(people, f"{size}, received in another order", other.mrr, among, walls))
        checks += [
            Check("team: search MRR below SQLite's", here.mrr - there.mrr, 0.01, ""),
            Check("team: the same in another order", here.mrr - other.mrr, 0.01, ""),
            Check(f"team: CPU of a search, p95, of {size} events", p95(used), 0.3, " s"),
        ]
        columns = ["", "texts", "MRR", "CPU ms", "CPU p95 ms", "p95 ms"]
        rows.insert(0, ["SQLite, 0.03 M events", None, round(here.mrr, 4), None, None, None])
        report.add(Table("Team: search on PostgreSQL", columns, rows, _NOTE), *checks)
        _one_large(report, _Searched(people, project, settings, objects), asked, clock, copies)
        _over_http(report, stack, people, mixed, objects)


class _Searched(NamedTuple):
    """A project that is searched."""

    people: Team
    project: TeamProject
    settings: config.Settings
    objects: Path


def _one_large(
    report: Report, where: _Searched, asked: list[Question], clock: _Clock, copies: int
) -> None:
    """Search one project while it grows by copies of its own sessions."""
    people, project = where.people, where.project
    grower = _Grower(people, project)
    rows: list[list[Cell]] = []
    used: list[float] = []
    for number in sorted({0, copies // 4, copies}):
        grower.grow_to(number)
        with closing(_lent(*where)) as store:
            _found(store, asked[:20], clock)  # warm
            _, used, walls = _found(store, asked, clock)
        size = f"{_events(people, project) / 1e6:.2f} M events"
        rows.append([size, 1000 * mean(used), 1000 * p95(used), 1000 * p95(walls)])
    columns = ["", "CPU ms", "CPU p95 ms", "p95 ms"]
    report.add(
        Table("Team: search in one large project", columns, rows, _LARGE_NOTE),
        Check(f"team: CPU of a search, p95, in one project of {size}", p95(used), 0.3, " s"),
    )


class _Grower:
    """Copies a project's sessions within it, each under a number of its own."""

    # Columns that hold a session's number, and in which bits.
    _SHIFTS: ClassVar[dict[str, dict[str, int]]] = {
        "sessions": {"id": 0},
        "events": {"id": 24, "session_id": 0},
        "docs": {"id": 24},
        "words": {"id": 24},
        "passages": {"id": 30},
        "cards": {"id": 0},
        "listed": {"session_id": 0, "head": 0},
    }

    def __init__(self, people: Team, project: TeamProject) -> None:
        self.admin = people.admin
        self.project = project.number
        self.copies = 0
        [(self.own,)] = self.admin.execute(
            "SELECT max(id) FROM sessions WHERE team_project=%s", (self.project,)
        )

    def grow_to(self, copies: int) -> None:
        while self.copies < copies:
            [(last,)] = self.admin.execute("SELECT max(id) FROM sessions")
            for table, shifts in self._SHIFTS.items():
                self._copy(table, shifts, int(last))
            self.copies += 1
        self.admin.execute("SELECT setval('sessions_id_seq', (SELECT max(id) FROM sessions))")
        self.admin.execute("VACUUM ANALYZE")

    def _copy(self, table: str, shifts: dict[str, int], last: int) -> None:
        columns = [
            name
            for (name,) in self.admin.execute(
                """
                SELECT column_name FROM information_schema.columns
                WHERE table_schema='whyfor' AND table_name=%s AND is_generated='NEVER'
                ORDER BY ordinal_position
                """,
                (table,),
            )
        ]
        values = [
            f"{name} + ({last}::bigint << {shifts[name]})"
            if name in shifts
            else f"session_id || '-{last}'"
            if (table, name) == ("sessions", "session_id")
            else name
            for name in columns
        ]
        key, shift = next(iter(shifts.items()))
        self.admin.execute(
            f"""
            INSERT INTO {table}({", ".join(columns)}) OVERRIDING SYSTEM VALUE
            SELECT {", ".join(values)} FROM {table}
            WHERE team_project = {self.project} AND {key} >> {shift} <= {self.own}
            """
        )


def _row(
    people: Team, name: str, mrr: float | None, used: list[float], walls: list[float]
) -> list[Cell]:
    [(texts,)] = people.admin.execute("SELECT sum(texts) FROM search_sizes")
    quality = None if mrr is None else round(mrr, 4)
    return [name, int(texts), quality, 1000 * mean(used), 1000 * p95(used), 1000 * p95(walls)]


def _events(people: Team, project: TeamProject) -> int:
    [(events,)] = people.admin.execute(
        "SELECT count(*) FROM events WHERE team_project=%s", (project.number,)
    )
    return int(events)


def _lent(
    people: Team, project: TeamProject, settings: config.Settings, objects: Path
) -> LentStore:
    reader = people.open(StoreScope(project.person, project.number))
    return LentStore(
        ScopedConnection(reader.db.driver, reader.db.scope),
        settings,
        ObjectBlobs(open_objects(objects.as_uri()), project.number),
    )


def _found(
    store: OpenStore, asked: list[Question], clock: _Clock
) -> tuple[list[list[str]], list[float], list[float]]:
    """Return the sessions that each question finds, the CPU seconds and the seconds it took."""
    found, used, walls = [], [], []
    for question in asked:
        began, at = clock.cpu(), time.monotonic()
        page = hit_page(store, parse_query(question.query), Filters(), HitRange(20))
        walls.append(time.monotonic() - at)
        used.append(clock.cpu() - began)
        found.append([hit.session.session_id for hit in page.hits])
    return found, used, walls


# -- ingest ----------------------------------------------------------------------------------------


def _ingest(
    report: Report,
    people: Team,
    project: TeamProject,
    uploads: list[tuple[SessionUpload, list[bytes]]],
    objects: Path,
    clock: _Clock,
) -> None:
    """Receive everything, half by half: the second half must not cost more than the first."""
    middle = len(uploads) // 2
    rates = [
        _receive(project, half, objects, clock) for half in (uploads[:middle], uploads[middle:])
    ]
    people.admin.execute("VACUUM ANALYZE")
    checks = [
        Check(
            "team: events received on 2 cores, per second", 2 * mean(rates), 2000, "", floor=True
        ),
        Check("team: ingest CPU per event, second half / first half", rates[0] / rates[1], 1.5),
    ]
    columns = ["", "events per CPU s"]
    rows: list[list[Cell]] = [["first half", round(rates[0])], ["second half", round(rates[1])]]
    report.add(Table("Team: ingest on PostgreSQL", columns, rows), *checks)


def _receive(
    project: TeamProject,
    uploads: list[tuple[SessionUpload, list[bytes]]],
    objects: Path,
    clock: _Clock,
) -> float:
    """Receive uploads whose objects are there; return how many events a CPU second took."""
    blobs = ObjectBlobs(open_objects(objects.as_uri()), project.number)
    for _, pieces in uploads:
        for piece in pieces:
            blobs.put(piece)
    identity = f"team:{project.number}"
    own = Project(identity, "remote", "corpus", remote=identity)
    with closing(project.writer()) as store:
        receiver = UploadReceiver(store, blobs, own, lambda: int(time.time() * 1000))
        used = clock.cpu()
        events = sum(receiver.commit(upload).events for upload, _ in uploads)
        remember_waiting(store)
        return events / (clock.cpu() - used)


def _uploads(settings: config.Settings) -> Iterator[tuple[SessionUpload, list[bytes]]]:
    kept = FolderBlobs(settings.segments)
    sources: dict[tuple[str, str], list[SegmentEntry]] = {}
    for line in settings.journal.read_bytes().splitlines():
        entry = msgspec.json.decode(line)
        if entry.get("entry") == "segment" and entry["agent"] in AGENTS:
            found = msgspec.convert(entry, SegmentEntry)
            sources.setdefault(found.source, []).append(found)
    for (agent, path), entries in sources.items():
        data = b"".join(kept.get(each.digest) for each in entries if not each.partial)
        first = entries[0]
        pieces = [data]
        if first.framing == "lines":
            pieces = _cut(data if data.endswith(b"\n") else data + b"\n")
        at, segments = 0, []
        for piece in pieces:
            digest = hashlib.sha256(piece).hexdigest()
            segments.append(UploadedSegment(at, at + len(piece), digest))
            at += len(piece)
        names = ("laptop", agent, first.session_id, path, first.framing, 0, tuple(segments))
        yield SessionUpload(*names, first.parent, first.sidecar, first.cwd), pieces


def _cut(data: bytes) -> list[bytes]:
    pieces, start = [], 0
    while start < len(data):
        end = data.find(b"\n", min(start + _PIECE, len(data)) - 1) + 1 or len(data)
        pieces.append(data[start:end])
        start = end
    return pieces


def _copy(people: Team, project: TeamProject, times: int) -> None:
    """Copy what is searched into as many other projects, under numbers of their own."""
    [(own,)] = people.admin.execute(
        "SELECT max(id) FROM sessions WHERE team_project = %s", (project.number,)
    )
    for _ in range(times):
        other = people.new_project()
        [(last,)] = people.admin.execute("SELECT max(id) FROM sessions")
        values = {"to": other.number, "by": other.person, "of": project.number, "up": int(last)}
        values["own"] = int(own)
        for table, shift in (("words", 24), ("passages", 30), ("cards", 0)):
            people.admin.execute(
                f"""
                INSERT INTO {table}(id, v, len, team_project, person)
                SELECT id + (%(up)s::bigint << {shift}), ts_delete(v, '#' || %(of)s), len, %(to)s, %(by)s
                FROM {table} WHERE team_project = %(of)s AND id >> {shift} <= %(own)s
                """,
                values,
            )
        people.admin.execute(
            """
            INSERT INTO docs(id, last_seq, turn, created_at, team_project, person)
            SELECT id + (%(up)s::bigint << 24), last_seq, turn, created_at, %(to)s, %(by)s
            FROM docs WHERE team_project = %(of)s AND id >> 24 <= %(own)s
            """,
            values,
        )
        people.admin.execute(
            """
            INSERT INTO sessions(id, agent, session_id, started_at, ended_at, last_seq, team_project, person)
            OVERRIDING SYSTEM VALUE
            SELECT id + %(up)s, agent, session_id || '-' || %(up)s, started_at, ended_at, last_seq,
              %(to)s, %(by)s
            FROM sessions WHERE team_project = %(of)s AND id <= %(own)s
            """,
            values,
        )
    if times:
        people.admin.execute("SELECT setval('sessions_id_seq', (SELECT max(id) FROM sessions))")
        people.admin.execute("VACUUM ANALYZE")


# -- over HTTP -------------------------------------------------------------------------------------


def _over_http(
    report: Report, stack: ExitStack, people: Team, project: TeamProject, objects: Path
) -> None:
    helper = stack.enter_context(serve_team(people, objects))  # makes tokens
    servers = [stack.enter_context(_process(people, objects)) for _ in range(2)]
    token = helper.token(project.person)
    base = f"{servers[0]}/api/v1/projects/{project.number}"
    client = stack.enter_context(
        httpx.Client(headers={"authorization": f"Bearer {token}"}, timeout=60)
    )

    def timed(path: str, rounds: int) -> list[float]:
        walls = []
        for _ in range(rounds):
            began = time.monotonic()
            assert client.get(base + path).status_code == 200, path
            walls.append(time.monotonic() - began)
        return walls

    listed = client.get(f"{base}/sessions?limit=50").json()["items"]
    one = [
        wall
        for each in listed
        for wall in timed(f"/sessions/{each['agent']}/{each['session_id']}/events?limit=100", 1)
    ]
    largest = max(listed, key=lambda each: each["messages"])
    whole = _whole(client, base, largest)
    pages, segments = _large(people, servers[0], objects, helper)
    context = timed("/context?limit=50", 10)
    heard = _news(servers, people, project, token)
    refused = _refused(helper, people, base)
    rows: list[list[Cell]] = [
        ["a session's first page, p95", 1000 * p95(one)],
        ["the largest of these, all pages", 1000 * whole],
        ["a session of 10 MB, all pages of events", 1000 * pages],
        ["the same, its segments", 1000 * segments],
        ["context of 50 sessions, p95", 1000 * p95(context)],
        [f"news to {_LISTENERS} listeners on two servers, p95", 1000 * p95(heard)],
    ]
    report.add(
        Table("Team: over HTTP", ["", "ms"], rows, _HTTP_NOTE),
        Check("team: retrieve a session, p95", p95(one), 0.3, " s"),
        Check("team: retrieve a session of 10 MB", segments, 1.0, " s"),
        Check("team: context of 50 sessions, p95", p95(context), 0.5, " s"),
        Check("team: news to 100 listeners, p95", p95(heard), 0.2, " s"),
        Check("team: outsiders refused", refused, 1.0, "", floor=True),
    )


def _whole(client: httpx.Client, base: str, session: dict[str, str]) -> float:
    began, after = time.monotonic(), 0
    while True:
        path = f"{base}/sessions/{session['agent']}/{session['session_id']}/events"
        page = client.get(f"{path}?limit=200&after={after}").json()
        if page["next"] is None:
            return time.monotonic() - began
        after = page["next"]


def _large(people: Team, url: str, objects: Path, helper: ServedTeam) -> tuple[float, float]:
    """Return how long it takes to read a session of 10 MB: its events, and its segments."""
    words = "the tide is read twice before the gate is opened again " * 64
    lines: list[bytes] = []
    size, parent = 0, ""
    while size < _LARGE:
        number = len(lines)
        kind = "user" if number % 2 == 0 else "assistant"
        content = words if kind == "user" else [{"type": "text", "text": words}]
        record = {
            "type": kind,
            "uuid": f"{number:08}-0000-4000-a000-000000000000",
            "parentUuid": parent or None,
            "sessionId": "large",
            "timestamp": f"2026-11-{1 + number // 1400:02}T{number // 60 % 24:02}:{number % 60:02}:00Z",
            "message": {"role": kind, "content": content},
        }
        parent = str(record["uuid"])
        lines.append(msgspec.json.encode(record) + b"\n")
        size += len(lines[-1])
    project = people.new_project()
    pieces = _cut(b"".join(lines))
    at, segments = 0, []
    for piece in pieces:
        segments.append(UploadedSegment(at, at + len(piece), hashlib.sha256(piece).hexdigest()))
        at += len(piece)
    upload = SessionUpload("m", "claude", "large", "large.jsonl", "lines", 0, tuple(segments))
    _receive(project, [(upload, pieces)], objects, _NoClock())
    base = f"{url}/api/v1/projects/{project.number}"
    headers = {"authorization": f"Bearer {helper.token(project.person)}"}
    with httpx.Client(headers=headers, timeout=60) as client:
        pages = _whole(client, base, {"agent": "claude", "session_id": "large"})
        began = time.monotonic()
        told = client.get(f"{base}/sync/sessions/claude/large").json()
        for segment in told[0]["sources"][0]["segments"]:
            assert client.get(f"{base}/objects/{segment['digest']}").status_code == 200
        return pages, time.monotonic() - began


class _NoClock(_Clock):
    def __init__(self) -> None:
        """Nothing is measured."""

    def cpu(self) -> float:
        return time.process_time()


@contextmanager
def _process(people: Team, objects: Path) -> Iterator[str]:
    """Run a server in a process of its own; yields its address."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    url = f"http://localhost:{port}"
    env = {
        "PATH": os.environ["PATH"],
        "HOME": str(objects),
        "WHYFOR_DB_URL": people.cluster.app(),
        "WHYFOR_BLOBS_URL": objects.as_uri(),
        "WHYFOR_PUBLIC_URL": url,
        "WHYFOR_LISTEN_ADDRESS": f"127.0.0.1:{port}",
        "WHYFOR_METRICS_PORT": "0",
        "WHYFOR_RATE_LIMIT": "1000000",
    }
    command = [sys.executable, "-m", "whyfor", "server", "run"]
    quiet = subprocess.DEVNULL
    with subprocess.Popen(command, env=env, stdout=quiet, stderr=quiet) as process:
        try:
            end = time.monotonic() + _WAIT
            while process.poll() is None and time.monotonic() < end:
                try:
                    if httpx.get(f"{url}/readyz", timeout=5).status_code == 200:
                        break
                except httpx.HTTPError:
                    time.sleep(0.1)
            yield url
        finally:
            process.terminate()
            process.wait(_WAIT)


def _refused(server: ServedTeam, people: Team, base: str) -> float:
    outsider = server.token(people.new_project().person)
    pages = ("sessions", "search?q=the", "stats", "context", "notes", "stream")
    answers = [
        httpx.get(f"{base}/{page}", headers={"authorization": f"Bearer {outsider}"}, timeout=30)
        for page in pages
    ]
    return mean(1.0 if answer.status_code == 404 else 0.0 for answer in answers)


def _news(servers: list[str], people: Team, project: TeamProject, token: str) -> list[float]:
    """Return how long each change took to each listener."""
    heard: list[tuple[str, float]] = []
    ready = threading.Semaphore(0)
    limits = httpx.Limits(max_connections=None)
    with httpx.Client(timeout=120, limits=limits) as client:

        def listen(url: str) -> None:
            address = f"{url}/api/v1/projects/{project.number}/stream"
            headers = {"authorization": f"Bearer {token}"}
            try:
                with client.stream("GET", address, headers=headers) as answer:
                    for line in answer.iter_lines():
                        if line.startswith("event: alive") and not heard:
                            ready.release()
                        if line.startswith("data:") and "bench-" in line:
                            heard.append((line.partition("bench-")[2][:4], time.monotonic()))
            except (httpx.HTTPError, RuntimeError):
                pass

        for number in range(_LISTENERS):
            url = servers[number % 2]
            threading.Thread(target=listen, args=(url,), daemon=True).start()
        for _ in range(_LISTENERS):
            ready.acquire(timeout=60)
        sent: dict[str, float] = {}
        with closing(
            people.open(StoreScope(project.person, project.number, writing=True))
        ) as store:
            for number in range(_ROUNDS):
                name = f"{number:04}"
                with store.transaction():
                    store.uploads.log("story", [f"bench-{name}"], 1)
                    sent[name] = time.monotonic()
                _until(lambda done=number: len(heard) >= (done + 1) * _LISTENERS)  # type: ignore[misc]
        return [at - sent[name] for name, at in heard]


def _until(true: Callable[[], bool]) -> None:
    end = time.monotonic() + 30
    while not true() and time.monotonic() < end:
        time.sleep(0.005)

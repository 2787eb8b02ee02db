"""The pages: how long the server takes for the first page of each view, and for each letter
typed into search."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from statistics import median
from urllib.parse import quote

import msgspec

from histories import History
from ingesting import Place
from measure import CommandFailed, clean_env
from prose import COMMON, PHRASE, PREFIX, RARE
from report import Cell, Check, Report, Table, ratio

_ROUNDS = 25
_TARGET = 100  # ms
_KEY = 0.18  # seconds from key to key of somebody who types 65 words a minute
_PAUSE = 0.12  # seconds without a key after which the page asks, as in search.js
_NOTE = """Milliseconds from request to the last byte of the page, on one connection to `whyfor serve`, which watches
the home meanwhile; CPU is the server's, per answer. First: the first time after the server began to listen. Each home
also has a repository, for Timeline and Commit. Session is the one with the most messages of the newest 100. Typed: six
queries letter by letter, a key every 180 ms, asked for as the page does, 120 ms after each key, whether or not the
answer before has come.""".replace("\n", " ")


class _Link(msgspec.Struct):
    address: str
    pid: int


class _Session(msgspec.Struct):
    agent: str
    session_id: str
    messages: int


class _Sessions(msgspec.Struct):
    items: list[_Session]


class Client:
    """A browser's side: one connection, the token, and the time each answer took."""

    def __init__(self, server: _Link, token: str) -> None:
        self.pid = server.pid
        self.server, self.token = server, token
        host = server.address.removeprefix("http://").rstrip("/")
        self.connection = HTTPConnection(host, timeout=60)
        self.headers = {"Authorization": f"Bearer {token}", "Accept": "text/html"}

    def get(self, path: str) -> tuple[float, bytes]:
        began = time.perf_counter()
        self.connection.request("GET", path, headers=self.headers)
        answer = self.connection.getresponse()
        body = answer.read()
        took = (time.perf_counter() - began) * 1000
        if answer.status != 200:
            raise CommandFailed(f"GET {path.partition('?')[0]} answered {answer.status}")
        return took, body

    def another(self) -> Client:
        """A second connection to the same server."""
        return Client(self.server, self.token)

    def cpu(self) -> float:
        """Of the server so far, in ms; what its watcher does meanwhile is in it."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) * 1000 / os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Times:
    """In ms."""

    all: list[float]
    cpu: float  # of one answer
    first: float | None = None

    @property
    def middle(self) -> float:
        return median(self.all)

    @property
    def p95(self) -> float:
        return sorted(self.all)[min(len(self.all) - 1, len(self.all) * 95 // 100)]


@contextmanager
def serving(place: Place, program: Path) -> Iterator[Client]:
    assert place.ours is not None
    env = clean_env(place.home, place.scratch) | {"WHYFOR_HOME": str(place.ours.store)}
    command = [str(program), "serve", "--json", "--no-open", "--port", "0"]
    with subprocess.Popen(
        command, env=env, cwd=place.home, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as server:
        try:
            yield Client(_link(server), (place.ours.store / "serve.token").read_text().strip())
        finally:
            server.terminate()


def _link(server: subprocess.Popen[bytes]) -> _Link:
    assert server.stdout is not None
    said = b""
    for line in server.stdout:
        said += line
        try:
            return msgspec.json.decode(said, type=_Link)
        except msgspec.DecodeError:
            continue  # a document of several lines
    raise CommandFailed("whyfor serve ended before it listened")


def _views(client: Client, place: Place) -> dict[str, str]:
    _, body = client.get("/api/v1/sessions?limit=100")
    longest = max(
        msgspec.json.decode(body, type=_Sessions).items, key=lambda session: session.messages
    )
    truth = msgspec.json.decode((place.scratch / "truth.json").read_bytes(), type=History).commits
    told = next(commit.sha for commit in truth if commit.sessions)
    return {
        "Now": "/",
        "Sessions": "/sessions",
        "Sessions, longest": "/sessions?sort=longest",
        "Sessions, words": f"/sessions?q={quote(COMMON)}",
        "Sessions, with commits": "/sessions?outcome=committed",
        "Timeline": "/timeline",
        "Session": f"/sessions/{longest.agent}/{quote(longest.session_id, safe='')}",
        "Commit": f"/commits/{told}",
        "Search": f"/search?q={quote(COMMON)}",
        "Insights": "/insights",
        "Insights by model": "/insights?by=model",
        "Health (API)": "/api/v1/health",
    }


def _timed(client: Client, path: str) -> Times:
    first, _ = client.get(path)
    before = client.cpu()
    times = [client.get(path)[0] for _ in range(_ROUNDS)]
    return Times(times, (client.cpu() - before) / _ROUNDS, first)


def _typed(client: Client) -> Times:
    """Each letter of what a person types, once: nothing is in a cache because it was asked
    before."""
    queries = (COMMON, PHRASE, RARE, f"{COMMON} {PREFIX}", f'"{PHRASE}"', "why does the build fail")
    beginnings = dict.fromkeys(query[:end] for query in queries for end in range(1, len(query) + 1))
    before, began = client.cpu(), time.perf_counter()
    with ThreadPoolExecutor(max_workers=6) as browser:  # as many connections as one has to a server
        asked = []
        for key, words in enumerate(beginnings):
            time.sleep(max(0.0, began + key * _KEY + _PAUSE - time.perf_counter()))
            asked.append(browser.submit(_once, client, f"/search?q={quote(words)}"))
        times = [one.result() for one in asked]
    return Times(times, (client.cpu() - before) / len(times))


def _once(client: Client, path: str) -> float:
    own = client.another()
    try:
        return own.get(path)[0]
    finally:
        own.connection.close()


def pages(report: Report, places: list[Place], program: Path) -> None:
    """One row a view, two columns a size; the target is judged on the largest home."""
    found: dict[str, dict[str, Times]] = {}
    for place in places:
        with serving(place, program) as client:
            for view, path in _views(client, place).items():
                found.setdefault(view, {})[place.name] = _timed(client, path)
            found.setdefault("Search, as typed", {})[place.name] = _typed(client)
    first, last = places[0].name, places[-1].name
    columns = [
        "",
        *(
            f"{place.name} {figure}"
            for place in places
            for figure in ("median ms", "p95 ms", "CPU ms")
        ),
    ]
    columns += [f"{last} first ms", f"median {last.split()[0]} / {first.split()[0]}"]
    rows: list[list[Cell]] = [
        [
            view,
            *(value for times in sizes.values() for value in (times.middle, times.p95, times.cpu)),
            sizes[last].first,
            ratio(sizes[last].middle, sizes[first].middle),
        ]
        for view, sizes in found.items()
    ]
    checks = [
        Check(
            f"first page of {view}, median at the largest size", sizes[last].middle, _TARGET, " ms"
        )
        for view, sizes in found.items()
        if view != "Search, as typed"
    ]
    looks = [times.first for sizes in found.values() if (times := sizes[last]).first is not None]
    once = Check(
        "first look after the start, slowest page at the largest size", max(looks), _TARGET, " ms"
    )
    typed = Check(
        "search as you type, p95 at the largest size",
        found["Search, as typed"][last].p95,
        _TARGET,
        " ms",
    )
    report.add(Table("Pages", columns, rows, _NOTE), *checks, once, typed)

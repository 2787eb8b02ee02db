"""Telemetry: how much the server takes in, that nothing is lost when it is killed, and how the
list price compares with the agent's own."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

from whyfor import config
from whyfor.capture.telemetry.receive import TelemetryBody, receive_telemetry
from whyfor.model.prices import NANO, Consumption, price_of
from whyfor.service.ingest import ingest
from whyfor.service.telemetry import telemetry_key
from whyfor.store.open import reading_local
from whyfor.store.price_table import load_prices

from measure import clean_env
from report import Cell, Check, Report, Table

sys.path.append(str(Path(__file__).parents[1]))

from tests.otlp import claude_request, json_logs, protobuf_logs

_AT = 1_790_000_000_000
_BODIES, _EACH = 60, 100
_KILLED = 30  # requests before the server is killed


def telemetry(report: Report, scratch: Path) -> None:
    scratch.mkdir(parents=True, exist_ok=True)
    rates = {
        "protobuf": _rate(scratch / "protobuf", "application/x-protobuf"),
        "JSON": _rate(scratch / "json", "application/json"),
    }
    stored = _killed(scratch / "killed")
    rows: list[list[Cell]] = [
        [f"records per CPU s, {name}, on disk", rate] for name, rate in rates.items()
    ]
    rows.append([f"of {_KILLED} records that were acknowledged before kill -9, stored", stored])
    report.add(
        Table("Telemetry received", ["", ""], rows, f"{_EACH} records of 15 attributes a body."),
        Check("OTLP, records per CPU s", min(rates.values()), 2000, "", floor=True),
        Check("OTLP, lost after the 200 and kill -9", _KILLED - stored, 0, ""),
    )


def _rate(home: Path, media_type: str) -> float:
    """Records per CPU second: decoded, understood, written and synced."""
    home.mkdir(parents=True)
    encode = json_logs if media_type.endswith("json") else protobuf_logs
    bodies = [
        encode([claude_request(f"s-{body}", _AT + n, n) for n in range(_EACH)])
        for body in range(_BODIES)
    ]
    began = time.process_time()
    for body in bodies:
        found = receive_telemetry(home, TelemetryBody("logs", media_type, "", body))
        assert found.requests == _EACH
    return _BODIES * _EACH / (time.process_time() - began)


def _killed(home: Path) -> int:
    """How many records are there after a server that acknowledged them was killed."""
    env = {**clean_env(home.parent, home.parent), "WHYFOR_HOME": str(home)}
    settings = config.load(env)
    key = telemetry_key(settings)
    command = [sys.executable, "-m", "whyfor", "serve", "--json", "--port", "0"]
    server = subprocess.Popen(
        command, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True
    )
    try:
        assert server.stdout is not None
        said = json.loads(server.stdout.readline())
        found = re.search(r":(\d+)/", said["link"])
        assert found is not None
        for number in range(_KILLED):
            line = http.client.HTTPConnection("127.0.0.1", int(found[1]), timeout=20)
            body = protobuf_logs([claude_request("s-1", _AT, number)])
            headers = {"Content-Type": "application/x-protobuf", "Authorization": f"Bearer {key}"}
            line.request("POST", "/v1/logs", body, headers)
            assert line.getresponse().status == 200
            line.close()
        os.kill(server.pid, signal.SIGKILL)
    finally:
        server.kill()
        server.communicate()
    ingest(settings)
    with reading_local(settings) as store:
        return len({each.request.output for each in store.telemetry.requests(0)})


def list_price(model: str, tokens: tuple[int, int, int, int], at: int, home: Path) -> float | None:
    """Dollars by the table of list prices."""
    fresh, read, written, output = tokens
    used = Consumption(model, at, fresh, read, written, None, output)
    found = price_of(used, load_prices(home).find)
    return None if found.nano is None else found.nano / NANO

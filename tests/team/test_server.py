"""whyfor server init, migrate, run and check, on a real PostgreSQL."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from tests.conftest import Result
from tests.postgres import running
from tests.store.team import Team
from tests.team.served import ServedTeam
from tests.team.shop import shared_shop
from whyfor.model.accounts import AuditNote
from whyfor.model.errors import NewerStore, StoreError
from whyfor.store.postgres.schema import VERSION
from whyfor.store.postgres.setup import check_version
from whyfor.team.tokens import LINK_PREFIX, is_token

pytestmark = pytest.mark.slow


@pytest.fixture
def env(
    postgres_18: Team, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[dict[str, str]]:
    """An empty database, and the environment of a server on it."""
    cluster = postgres_18.cluster
    name = f"server_{os.urandom(4).hex()}"
    with psycopg.connect(cluster.owner, autocommit=True) as driver:
        driver.execute(f"CREATE DATABASE {name}")
    secret = tmp_path / "db"
    secret.write_text(cluster.admin(name).replace("postgres@", "whyfor_web:pw@"))
    found = {
        "WHYFOR_DB_URL_FILE": str(secret),
        "WHYFOR_DB_OWNER_URL": cluster.admin(name),
        "WHYFOR_BLOBS_URL": (tmp_path / "objects").as_uri(),
        "WHYFOR_PUBLIC_URL": "http://localhost:8080",
        "WHYFOR_LISTEN_ADDRESS": "127.0.0.1:0",
    }
    for variable, value in found.items():
        monkeypatch.setenv(variable, value)
    yield found


def test_a_server_is_set_up_checked_and_run(
    env: dict[str, str], cli: Callable[..., Result], tmp_path: Path
) -> None:
    refused = cli("server", "check", "--json")
    assert refused.code == 1
    assert not refused.json[1]["ok"]
    made = cli("server", "init", "--name", "Harbour office", "--json")
    assert made.code == 0, made.err
    assert made.json["team"] == "Harbour office"
    link = made.json["link"].removeprefix("http://localhost:8080/join/")
    assert is_token(link, LINK_PREFIX)
    assert cli("server", "migrate", "--json").json == {"before": VERSION, "version": VERSION}
    assert "already" in cli("server", "migrate").out
    checked = cli("server", "check", "--json")
    assert checked.code == 0, checked.out
    assert len(checked.json) == 7
    assert all(each["ok"] for each in checked.json)
    assert "forced on every table" in cli("server", "check").out
    with psycopg.connect(env["WHYFOR_DB_OWNER_URL"], autocommit=True) as driver:
        for ahead, code in ((1, 0), (2, 1), (0, 0)):
            driver.execute("UPDATE whyfor.schema_version SET number=%s", (VERSION + ahead,))
            assert cli("server", "check").code == code

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        metrics = free.getsockname()[1]
    environment = {**os.environ, "WHYFOR_METRICS_PORT": str(metrics)}
    command = [sys.executable, "-m", "whyfor", "server", "run", "--json"]
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        address = json.loads(process.stdout.readline())["address"]
        asked = {"/healthz": 200, "/readyz": 200, f"/join/{link}": 200, "/projects": 401}
        for path, status in asked.items():
            assert _status(address, path) == status, path
        text = urllib.request.urlopen(f"http://127.0.0.1:{metrics}/metrics").read().decode()
        process.send_signal(signal.SIGTERM)
        _, logged = process.communicate()
    assert process.returncode in (0, -signal.SIGTERM), logged
    assert re.search(
        r'whyfor_requests_total\{method="GET",route="/join/\{code[^}]*\}",status="200"\} 1', text
    )
    assert "\nwhyfor_listeners 0\n" in text
    lines = [json.loads(line) for line in logged.splitlines()]
    assert [line["status"] for line in lines] == [200, 200, 200, 401]
    assert link not in logged + text


def _status(address: str, path: str) -> int:
    request = urllib.request.Request(f"http://{address}{path}", headers={"host": "localhost:8080"})
    try:
        with urllib.request.urlopen(request) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


def test_a_role_that_policies_do_not_bind_is_not_served_from(
    env: dict[str, str], cli: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    cli("server", "migrate")
    monkeypatch.delenv("WHYFOR_DB_URL_FILE")
    monkeypatch.setenv("WHYFOR_DB_URL", env["WHYFOR_DB_OWNER_URL"])
    answer = cli("server", "run")
    assert answer.code == 2
    assert "policies do not bind" in answer.err


def test_a_server_runs_on_its_own_schema_and_the_next_one() -> None:
    check_version(VERSION)
    check_version(VERSION + 1)
    with pytest.raises(StoreError, match="this program needs"):
        check_version(VERSION - 1)
    with pytest.raises(NewerStore):
        check_version(VERSION + 2)


def test_a_server_serves_a_database_that_the_next_version_has_migrated(tmp_path: Path) -> None:
    """The next version adds: a column to every table, a table, a function. Everything goes on:
    uploads, pages, search, members."""
    with running(18) as cluster:
        cluster.make_database()
        team = Team(cluster)
        tables = team.admin.execute(
            "SELECT relname FROM pg_class "
            "WHERE relnamespace = 'whyfor'::regnamespace AND relkind = 'r'"
        ).fetchall()
        for (table,) in tables:
            if table != "audit":  # its rows are hashed whole: it is never changed
                team.admin.execute(f"ALTER TABLE {table} ADD COLUMN of_next_version text")
        team.admin.execute("CREATE TABLE next_version(id bigint, team_project integer)")
        team.admin.execute(
            "ALTER TABLE next_version ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY"
        )
        team.admin.execute("UPDATE schema_version SET number=%s", (VERSION + 1,))
        with shared_shop(team, tmp_path) as shop:
            pages = ("sessions", "timeline", "search?q=heron", "memory", "insights", "tasks")
            for page in pages:
                assert "</html>" in shop.get(f"{shop.base}/{page}", shop.bob)
            assert "heron" in shop.get(f"{shop.base}/search?q=heron", shop.bob)
            owner = shop.served.cookie(shop.served.person("owner"))
            for path in ("/projects", "/people", "/audit", "/account"):
                assert shop.served.get(path, owner).status_code == 200, path
        team.admin.close()


def test_an_audit_entry_that_was_changed_or_removed_is_found(served: ServedTeam) -> None:
    admin = served.team.admin
    accounts = served.app.resources.database.accounts
    organisation = served.team.insert("organisations(name, created_at)", "chained", 0)
    with accounts.by(None) as writing:
        for number in range(5):
            note = AuditNote("changed", "test", f"entry {number}")
            writing.audit(organisation, note, token=None, ip="192.0.2.1", now=number)

    def broken() -> int | None:
        with accounts.by(None) as reading:
            [chain] = [one for one in reading.audit_chains() if one.organisation == organisation]
        return chain.broken

    assert broken() is None
    [(first,)] = admin.execute(
        "SELECT min(id) FROM audit WHERE organisation_id=%s", (organisation,)
    ).fetchall()
    admin.execute("UPDATE audit SET object='other' WHERE id=%s", (first + 2,))
    assert broken() == first + 2
    admin.execute("UPDATE audit SET object='entry 2' WHERE id=%s", (first + 2,))
    assert broken() is None
    admin.execute("DELETE FROM audit WHERE id=%s", (first + 1,))
    assert broken() == first + 2
    rights = admin.execute(
        """
        SELECT r, p FROM unnest(ARRAY['whyfor_app', 'whyfor_keep', 'whyfor_find', 'app']) r,
          unnest(ARRAY['UPDATE', 'DELETE', 'TRUNCATE']) p WHERE has_table_privilege(r, 'audit', p)
        """
    ).fetchall()
    assert rights == []

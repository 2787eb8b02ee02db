"""The team server for tests: in this process, on a real PostgreSQL, with people and their tokens.

`served` in tests/team/conftest.py is one for a module. `served.person("member", {project: "viewer"})`
makes a person, `served.token(person)` and `served.cookie(person)` sign one in, `served.get(path, token)`
asks. `serve_team` starts one with routes of a test's own, `listening` one with a port of its own.
"""

from __future__ import annotations

import secrets
import socket
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import uvicorn
from litestar.testing import TestClient
from litestar.types import ControllerRouterHandler

from tests.store.team import Team, TeamProject
from whyfor.server.team.app import TeamApp, create_team_app
from whyfor.server.team.guard import SESSION
from whyfor.team.settings import TeamSettings
from whyfor.team.tokens import PREFIX, SESSION_PREFIX, hash_token, make_token

PUBLIC = "https://team.example"
DAY = 86_400_000
HTML = {"accept": "text/html"}


class ServedTeam:
    def __init__(self, team: Team, app: TeamApp, client: TestClient[TeamApp]) -> None:
        self.team = team
        self.app = app
        self.client = client
        self.settings = app.resources.settings

    # -- people ------------------------------------------------------------------------------------

    def person(
        self, role: str = "member", projects: Mapping[int, str] | None = None, **more: Any
    ) -> int:
        """A person of the organisation, with roles in projects."""
        person = self.team.new_person(role)
        for project, given in (projects or {}).items():
            self.team.admin.execute(
                "INSERT INTO project_members(team_project, person_id, role) VALUES(%s, %s, %s)",
                (project, person, given),
            )
        for column, value in more.items():
            self.team.admin.execute(f"UPDATE people SET {column}=%s WHERE id=%s", (value, person))
        return person

    def project(self, visibility: str = "stories") -> TeamProject:
        """A project, with a member who writes."""
        return self.team.new_project(visibility)

    def token(
        self,
        person: int,
        scopes: Sequence[str] = ("read", "write"),
        *,
        kind: str = "personal",
        projects: Sequence[int] | None = None,
        days: int = 30,
    ) -> str:
        """A token of a person; one with days below 0 has expired."""
        token = make_token(SESSION_PREFIX if kind == "web" else PREFIX)
        now = int(time.time() * 1000)
        given = None if projects is None else list(projects)
        began = now + 2 * days * DAY if days < 0 else now
        row = (hash_token(token), person, kind, f"token-{secrets.token_hex(4)}", list(scopes))
        self.team.admin.execute(
            """
            INSERT INTO tokens(hash, person_id, kind, name, scopes, projects, created_at, expires_at)
            VALUES(%s, %s, %s, %s, %s, %s, %s, %s)
            """,
            (*row, given, began, now + days * DAY),
        )
        return token

    def cookie(self, person: int) -> str:
        """A browser's session of a person."""
        return self.token(person, ("read", "write", "admin"), kind="web", days=7)

    # -- asking ------------------------------------------------------------------------------------

    def ask(self, method: str, path: str, token: str = "", **more: Any) -> httpx.Response:
        """Ask as the one whose token or session this is; nobody if there is none."""
        headers = dict(more.pop("headers", {}))
        if token.startswith(SESSION_PREFIX):
            headers["cookie"] = f"{SESSION}={token}"
        elif token:
            headers["authorization"] = f"Bearer {token}"
        self.client.cookies.clear()
        more.setdefault("follow_redirects", False)
        answer: httpx.Response = self.client.request(method, path, headers=headers, **more)
        return answer

    def get(self, path: str, token: str = "", **more: Any) -> httpx.Response:
        return self.ask("GET", path, token, **more)


@contextmanager
def serve_team(
    team: Team,
    folder: Path,
    handlers: Sequence[ControllerRouterHandler] = (),
    **more: Any,
) -> Iterator[ServedTeam]:
    """Start the team server on a database; `handlers` are routes for this test alone, `more` other
    settings."""
    settings = TeamSettings(
        db_url=team.cluster.app(),
        owner_url=team.cluster.admin(),
        **{
            "blobs_url": folder.as_uri(),
            "public_url": PUBLIC,
            "rate_limit": 1_000_000,
            "entry_limit": 1_000_000,
            **more,
        },
    )
    app = create_team_app(settings, handlers)
    address = settings.public_url if "." in settings.domain else PUBLIC  # else it warns
    with TestClient(app, base_url=address, raise_server_exceptions=False) as client:
        yield ServedTeam(team, app, client)


@contextmanager
def listening(team: Team, folder: Path, **more: Any) -> Iterator[ServedTeam]:
    """The team server on a port of this machine, for a browser or a program; `settings.public_url`
    is its address."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as bound:
        bound.bind(("127.0.0.1", 0))
        url = f"http://localhost:{bound.getsockname()[1]}"
        with serve_team(team, folder, public_url=url, **more) as served:
            config = uvicorn.Config(served.app, lifespan="off", log_config=None, ws="none")
            server = uvicorn.Server(config)
            run = threading.Thread(target=server.run, kwargs={"sockets": [bound]}, daemon=True)
            run.start()
            while not server.started:
                assert run.is_alive()
                run.join(0.01)
            yield served
            server.should_exit = True
            run.join()

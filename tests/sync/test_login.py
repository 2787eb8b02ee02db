"""Logging in by device code, and how the commands behave at a terminal."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Result
from tests.sync.laptop import Laptop, SharedServer
from whyfor.model.accounts import Member
from whyfor.model.errors import BadInput
from whyfor.service.login import begin_login, finish_login
from whyfor.sync.remotes import load_key, server_url
from whyfor.team.actor import TeamActor
from whyfor.team.devices import answer_device


def let_in(server: SharedServer, person: int, code: str, *, allowed: bool = True) -> None:
    """What somebody does in a browser."""
    scopes = ("read", "write", "admin")
    resources = server.served.app.resources
    token = server.served.cookie(person)
    member = resources.member(token, cookie=True)
    assert isinstance(member, Member)
    assert set(scopes) == set(member.scopes)
    answer_device(TeamActor(resources, member, "127.0.0.1"), code, allowed=allowed)


def test_a_machine_is_let_in_by_a_code_and_its_token_is_its_owners_alone(
    laptop: Laptop, server: SharedServer
) -> None:
    project = server.served.project()
    login = begin_login(server.url)
    assert login.verification_uri == f"{server.url}/device"
    let_in(server, project.person, login.user_code)
    waited: list[float] = []
    state = finish_login(laptop.settings, server.url, login, waited.append)
    assert waited == [login.interval]
    assert state.projects
    key = load_key(laptop.settings, server.url)
    assert key is not None
    assert key.token not in repr(state)
    assert (laptop.settings.home / "tokens.json").stat().st_mode & 0o777 == 0o600


def test_only_addresses_that_keep_a_token_secret_are_taken() -> None:
    for good in ("https://a.example", "http://127.0.0.1:8000", "http://localhost"):
        assert server_url(good + "/") == good
    for bad in ("http://a.example", "ftp://a", "a.example", "https://user:word@a.example"):
        with pytest.raises(BadInput):
            server_url(bad)


def test_nothing_leaves_before_a_person_has_seen_what_would(
    laptop: Laptop,
    server: SharedServer,
    monkeypatch: pytest.MonkeyPatch,
    cli: Callable[..., Result],
    tmp_path: Path,
) -> None:
    project = server.served.project()
    token = tmp_path / "token"
    token.write_text(server.key(project.person))
    told = laptop.transcript("gate")
    sha = laptop.work(told, "Mend the gate", "my key is ghp_0123456789abcdefghijklmnopqrstuvwxyz")
    laptop.git("push", "-q", "origin", "main")
    laptop.ingest()
    for name, value in laptop.settings.env.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(laptop.repo)
    (laptop.repo / "remotes.json").write_text('{"remotes": [{"project": "x", "url": "y"}]}')
    assert cli("remote", "status", "--json").json == [], "no file in a repository switches it on"
    with token.open() as stdin, monkeypatch.context() as typed:
        typed.setattr("sys.stdin", stdin)
        logged = cli("login", server.url, "--token", "--json")
    assert logged.code == 0, logged.err
    assert cli("whoami", "--json").json["projects"] == logged.json["projects"]
    added = cli("remote", "add", server.url, "--json")
    assert (added.json["confirmed"], added.json["share"]) == (False, "push")
    refused = cli("sync")
    assert refused.code == 2
    assert "nobody has agreed" in refused.err
    rows = "SELECT count(*) FROM segments WHERE team_project = %s"
    assert server.rows(rows, project.number) == [(0,)]
    shown = cli("sync", "--preview", "--json").json
    [story] = shown[0]["stories"]
    assert story["name"] == sha
    assert story["redacted"]
    assert "ghp_" not in str(shown)
    assert any("my key is [REDACTED:" in line["text"] for line in story["lines"])
    done = cli("sync", "--yes")
    assert (done.code, "1 sent" in done.out) == (0, True)
    assert server.rows(rows, project.number) != [(0,)]
    assert cli("remote", "status", "--json").json[0]["sent"] == 1
    assert cli("keep-local", sha).code == 0
    assert cli("sync").code == 0
    stories = server.rows("SELECT 1 FROM checkpoints WHERE team_project = %s", project.number)
    assert stories == []
    assert cli("logout").code == 0
    assert cli("whoami", server.url).code == 2
    assert cli("remote", "remove").code == 0
    assert cli("remote", "status", "--json").json == []

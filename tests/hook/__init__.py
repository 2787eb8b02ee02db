"""The hook as agents and git run it: never in the way, nothing lost."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from whyfor import hook

PYTHON = os.path.realpath(sys._base_executable)  # type: ignore[attr-defined]
SECONDS = 60  # until something that should have happened is given up


class Line(NamedTuple):
    header: dict[str, Any]
    payload: bytes


class Installed:
    """Whyfor's home as `init` leaves it, with a stand-in for the ingest that hooks start."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.folder = home / "hook"
        self.spool = home / "spool"
        self.pending = self.folder / "pending"
        self.log = home / "started.log"
        self.python = PYTHON
        self.folder.mkdir(parents=True, mode=0o700)
        for name in hook.FILES:
            shutil.copy(Path(hook.__file__).with_name(name), self.folder)

    def launch(self, *command: str) -> None:
        (self.folder / "launch").write_text("\n".join(command) + "\n", encoding="utf-8")

    def stand_in(self, then: str = "") -> None:
        """What is started says that it was, waits until `go` exists, and ends."""
        script = self.home / "stand-in.sh"
        wait = f"while [ ! -e {shlex.quote(str(self.home / 'go'))} ]; do sleep 0.02; done"
        script.write_text(
            f'echo $$ >> {shlex.quote(str(self.log))}\n{then}\n{wait}\nrm -f "{self.pending}"\n'
        )
        self.launch("/bin/sh", str(script))

    def started(self) -> list[int]:
        return [int(line) for line in self.log.read_text().split()] if self.log.exists() else []

    def let_go(self) -> None:
        (self.home / "go").touch()
        await_that(lambda: not any(map(alive, self.started())))

    def command(self, agent: str, *words: str) -> str:
        """As it stands in an agent's settings."""
        python = shlex.quote(self.python)
        rest = shlex.join([str(self.folder / "hook.py"), "--agent", agent, *words])
        return f"test -x {python} && {python} -I -S {rest} 2>/dev/null; exit 0 # whyfor"

    def run(
        self,
        agent: str,
        *words: str,
        payload: bytes = b"{}",
        env: dict[str, str] | None = None,
        cwd: Path | None = None,
        around: str = "{}",
    ) -> subprocess.CompletedProcess[bytes]:
        """Through a shell, as agents do; `around` is more shell around that."""
        outer = around.format(f"/bin/sh -c {shlex.quote(self.command(agent, *words))}")
        return subprocess.run(
            ["/bin/sh", "-c", outer],
            input=payload,
            capture_output=True,
            env={"PATH": os.environ["PATH"], **(env or {})},
            cwd=cwd,
            check=False,
            timeout=SECONDS,
        )

    def lines(self) -> list[Line]:
        return list(self._lines())

    def _lines(self) -> Iterator[Line]:
        for path in sorted(self.spool.glob("*.spool")):
            for line in path.read_bytes().split(b"\n"):
                if line:
                    header, _, payload = line.partition(b"\t")
                    yield Line(json.loads(header), payload)


def alive(pid: int) -> bool:
    """A zombie nobody has fetched yet is not."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{pid}/stat")
    return not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] != "Z"


def await_that(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < end, "it never happened"
        time.sleep(0.01)

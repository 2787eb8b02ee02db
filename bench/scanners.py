"""The programs redaction is compared with, in an environment of their own: they bring a good
deal along."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import venv
from dataclasses import dataclass
from pathlib import Path

import msgspec

from measure import clean_env, run

_HERE = Path(__file__).parent
_VENV = _HERE.parent / ".cache/redaction-venv"
_PACKAGES = ["detect-secrets==1.5.0", "credsweeper==1.19.5"]
OURS, PEERS = "ours", ("detect-secrets", "d-s --string", "CredSweeper")


class Scan(msgspec.Struct):
    """What a detector left of each text, the rules that struck, and the CPU seconds of the scan
    without its start."""

    cpu: float
    size: int
    redacted: list[tuple[str, list[str]]]
    peak_mb: float = 0

    @property
    def speed(self) -> float:
        return self.size / 1e6 / self.cpu


@dataclass(frozen=True)
class Scanner:
    name: str
    python: Path

    def scan(self, texts: list[str], seconds: float | None = None) -> Scan:
        """All of them, or as many as it gets done in that many CPU seconds."""
        with tempfile.TemporaryDirectory(prefix="whyfor-bench-") as folder:
            source, target = Path(folder, "texts.json"), Path(folder, "out.json")
            source.write_bytes(msgspec.json.encode(texts))
            command = [
                str(self.python),
                str(_HERE / "detectors.py"),
                self.name,
                str(source),
                str(target),
            ]
            cost = run(
                [*command, *([str(seconds)] if seconds else [])],
                clean_env(Path(folder), Path(folder)),
            )
            scan = msgspec.json.decode(target.read_bytes(), type=Scan)
            return msgspec.structs.replace(scan, peak_mb=cost.peak_mb)


def ours() -> Scanner:
    return Scanner(OURS, Path(sys.executable))


def find_peers() -> list[Scanner]:
    """All of them, or none where they cannot be installed."""
    python = _VENV / "bin/python"
    if not _installed(python):
        venv.create(_VENV, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *_PACKAGES], check=False)
    return [Scanner(name, python) for name in PEERS] if _installed(python) else []


def _installed(python: Path) -> bool:
    look = [str(python), "-c", "import credsweeper.app, detect_secrets"]
    return (
        python.exists() and subprocess.run(look, capture_output=True, check=False).returncode == 0
    )

"""The files that run a team server, each read by the program that knows its language."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY, missing_part
from whyfor.model.errors import BadInput
from whyfor.team.settings import load_team_settings

DEPLOY = REPOSITORY / "deploy"
_EXPOSURE_MAX = 2.0
_SECONDS = 60


def program(name: str) -> str:
    beside = Path(sys.executable).parent / name
    found = str(beside) if beside.exists() else shutil.which(name)
    if not found:
        missing_part(f"DEPLOYMENT FILES NOT CHECKED: {name} is not installed")
    return found


def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(argument) for argument in arguments],
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=False,
    )


def check_compose(path: Path) -> subprocess.CompletedProcess[str]:
    checker = program("check-jsonschema")
    return run(checker, "--builtin-schema", "vendor.compose-spec", path)


def test_the_compose_file_is_valid_and_a_wrong_one_is_not(tmp_path: Path) -> None:
    good = check_compose(DEPLOY / "compose.yaml")
    assert good.returncode == 0, good.stdout + good.stderr
    wrong = tmp_path / "compose.yaml"
    text = (DEPLOY / "compose.yaml").read_text(encoding="utf-8")
    wrong.write_text(text.replace("restart: unless-stopped", "restarts: yes", 1), encoding="utf-8")
    assert check_compose(wrong).returncode != 0


def test_the_server_in_containers_cannot_write_and_has_no_rights() -> None:
    text = (DEPLOY / "compose.yaml").read_text(encoding="utf-8")
    server = text[text.index("x-server") : text.index("services:")]
    for line in ("read_only: true", "cap_drop: [ALL]", "no-new-privileges:true", "_FILE:"):
        assert line in server, line


def test_the_dockerfile_has_no_finding_and_no_root(tmp_path: Path) -> None:
    linter = program("hadolint")
    good = run(linter, DEPLOY / "Dockerfile")
    assert (good.returncode, good.stdout) == (0, "")
    text = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
    user = re.findall(r"(?m)^USER (\d+):(\d+)$", text)
    assert user and int(user[-1][0]) > 0
    wrong = tmp_path / "Dockerfile"
    wrong.write_text("FROM python:latest\nRUN cd /tmp && sudo ls\n", encoding="utf-8")
    assert run(linter, wrong).returncode != 0


@pytest.fixture
def unit(tmp_path: Path) -> Path:
    """The unit, with a program that exists."""
    path = tmp_path / "whyfor-server.service"
    text = (DEPLOY / path.name).read_text(encoding="utf-8")
    path.write_text(text.replace("/opt/whyfor/bin/whyfor", sys.executable), encoding="utf-8")
    return path


def test_the_unit_is_understood_and_little_exposed(unit: Path) -> None:
    analyzer = program("systemd-analyze")
    good = run(analyzer, "verify", "--man=no", unit)
    told = [line for line in good.stderr.splitlines() if unit.name in line]
    assert told == []
    found = run(analyzer, "security", "--offline=true", "--no-pager", unit)
    level = re.search(r"Overall exposure level for \S+: ([\d.]+)", found.stdout)
    assert level, found.stdout + found.stderr
    assert float(level[1]) <= _EXPOSURE_MAX
    unit.write_text(unit.read_text(encoding="utf-8").replace("[Service]", "[Service]\nNoSuchKey=1"))
    wrong = run(analyzer, "verify", "--man=no", unit)
    assert "NoSuchKey" in wrong.stderr


def test_every_setting_in_the_files_is_one_the_server_reads() -> None:
    """A name that the server does not read would be set for nothing."""
    files = [path for path in DEPLOY.iterdir() if path.is_file() and path.suffix != ".py"]
    text = "".join(path.read_text(encoding="utf-8") for path in files)
    named = {name.removesuffix("_FILE") for name in re.findall(r"\bWHYFOR_[A-Z_]+\b", text)}
    source = (REPOSITORY / "src/whyfor/team/settings.py").read_text(encoding="utf-8")
    read = set(re.findall(r"WHYFOR_[A-Z_]+", source)) | {"WHYFOR_HOSTNAME"}
    assert named <= read
    assert {"WHYFOR_PUBLIC_URL", "WHYFOR_DB_URL", "WHYFOR_BLOBS_URL"} <= named


def test_a_server_without_settings_names_the_first_that_is_missing() -> None:
    with pytest.raises(BadInput, match="WHYFOR_DB_URL is not set"):
        load_team_settings({"PATH": os.defpath})


@pytest.mark.slow
def test_the_team_to_try_out_starts_shares_and_leaves_nothing(tmp_path: Path) -> None:
    """PostgreSQL, an S3 store, two server processes and a laptop, as `make team` starts them."""
    programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    folder = Path(tempfile.mkdtemp())  # its own: others may be trying it out too
    folder.chmod(0o755)  # PostgreSQL is somebody else
    env = {**os.environ, "HOME": str(tmp_path), "PATH": programs, "TMPDIR": str(folder)}
    done = subprocess.run(
        [sys.executable, str(DEPLOY / "try_team.py"), "--once"],
        env=env,
        capture_output=True,
        text=True,
        timeout=5 * _SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    shared = re.search(r"(\d+) sessions can be read by the other process", done.stdout)
    assert shared and int(shared[1]) > 3
    assert re.search(r"http://localhost:\d+/join/wfl_\w+", done.stdout)
    assert "nothing is left" in done.stdout
    assert not list(folder.glob("whyfor-team-*"))
    shutil.rmtree(folder)

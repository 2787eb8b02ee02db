"""What the package promises of itself: its license, and the versions of others that it was
tested with."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

from tests.conftest import REPOSITORY
from whyfor import config
from whyfor.cli.extras import install_command
from whyfor.demo import build
from whyfor.service.ingest import ingest

PROJECT: dict[str, Any] = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
EXTRAS: dict[str, list[str]] = PROJECT["optional-dependencies"]
REQUIREMENTS = [
    Requirement(line)
    for lines in (PROJECT["dependencies"], EXTRAS["serve"], EXTRAS["top"])
    for line in lines
]


@pytest.mark.parametrize("requirement", REQUIREMENTS, ids=lambda requirement: requirement.name)
def test_what_is_installed_lies_in_the_range_that_is_promised(requirement: Requirement) -> None:
    assert requirement.specifier.contains(version(requirement.name))


@pytest.mark.parametrize("requirement", REQUIREMENTS, ids=lambda requirement: requirement.name)
def test_every_dependency_has_a_lower_and_an_upper_bound(requirement: Requirement) -> None:
    assert sorted(each.operator for each in requirement.specifier) == ["<", ">="]


def test_the_license_is_the_one_that_is_named() -> None:
    assert (PROJECT["license"], PROJECT["license-files"]) == ("MIT", ["LICENSE"])
    assert (REPOSITORY / "LICENSE").read_text().startswith("MIT License\n")


def test_whoever_finds_a_weakness_finds_out_how_to_report_it() -> None:
    assert "(SECURITY.md)" in (REPOSITORY / "README.md").read_text()
    assert "security advisory form" in (REPOSITORY / "SECURITY.md").read_text()


# -- extras --------------------------------------------------------------------------------------

# Runs a command as if only the packages of a plain installation were there.
_WITHOUT = """
import sys
class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {missing!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Refuse())
from whyfor.__main__ import main
sys.exit(main(sys.argv[1:]))
"""


def _without_extras(*arguments: str) -> subprocess.CompletedProcess[str]:
    lines = [*EXTRAS["serve"], *EXTRAS["top"]]
    missing = {Requirement(line).name for line in lines} - {"pygments"}  # rich brings it
    code = _WITHOUT.format(missing=missing)
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(
    "command",
    "ingest|sessions|stats|projects|doctor|man|serve --help|top --once|search harbour|"
    "export HEAD --format html|config|log|--help|".split("|"),
)
def test_a_plain_installation_runs_everything_but_serve_and_top(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    demo = build(tmp_path / "demo")
    monkeypatch.setenv("HOME", str(demo.home))
    monkeypatch.setenv("WHYFOR_HOME", str(demo.whyfor_home))
    monkeypatch.chdir(demo.repository)
    ingest(config.load())
    done = _without_extras(*command.split())
    assert done.returncode == 0, done.stderr


def test_a_missing_extra_names_the_command_that_installs_it() -> None:
    done = _without_extras("serve", "--no-open")
    assert done.returncode == 2
    assert "is not installed" in done.stderr
    command = done.stderr.splitlines()[-1].removeprefix("Install it: ")
    assert shlex.split(command)[:4] == [sys.executable, "-m", "pip", "install"]
    assert shlex.split(command)[4] == f"{REPOSITORY}[serve]"  # where this copy comes from


@pytest.mark.parametrize(
    ("prefix", "expected"),
    [
        ("/home/me/.local/share/pipx/venvs/whyfor", "pipx install --force '"),
        ("/home/me/.local/share/uv/tools/whyfor", "uv tool install --force '"),
    ],
)
def test_the_command_fits_the_way_it_was_installed(
    prefix: str, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "prefix", prefix)
    assert install_command("top").startswith(expected)
    assert install_command("top").endswith("[top]'")


def test_commands_import_neither_server_nor_screen() -> None:
    heavy = {"litestar", "uvicorn", "textual", "jinja2", "nh3", "rich"}
    code = (
        "import sys; from whyfor.__main__ import main; code = main(sys.argv[1:]); "
        f"sys.exit(str({heavy!r} & set(sys.modules)) if {heavy!r} & set(sys.modules) else code)"
    )
    for arguments in (["--version"], ["--help"], ["config", "--json"], ["completion", "bash"]):
        done = subprocess.run(
            [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, (arguments, done.stderr)


# -- make ----------------------------------------------------------------------------------------


def _make(folder: Path, python: Path) -> subprocess.CompletedProcess[str]:
    for name in ("Makefile", "pyproject.toml"):
        shutil.copy(REPOSITORY / name, folder)
    return subprocess.run(
        ["make", "-C", str(folder), ".venv/run.stamp", f"PYTHON={python}"],
        capture_output=True,
        text=True,
        check=False,
    )


def _python(path: Path, version: str) -> Path:
    """A Python that answers as this version would; its venvs have such a Python too."""
    newer = "0" if version > "3.11.2" else "1"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        f'#!/bin/sh\necho "$@" >> {path.parent}/calls\n'
        f'case "$1" in\n--version) echo Python {version};;\n-c) exit {newer};;\n'
        '-m) test "$2" != venv || { mkdir -p "$3/bin"; cp "$0" "$3/bin/python"; };;\nesac\n'
    )
    path.chmod(0o755)
    return path


def test_make_names_an_old_python_and_leaves_nothing_behind(tmp_path: Path) -> None:
    done = _make(tmp_path, _python(tmp_path / "old" / "python", "3.10.13"))
    assert done.returncode != 0
    assert "Whyfor needs Python 3.11.2 or newer" in done.stdout
    assert "Python 3.10.13" in done.stdout
    assert not (tmp_path / ".venv").exists()


def test_make_says_so_if_there_is_no_python(tmp_path: Path) -> None:
    done = _make(tmp_path, tmp_path / "nowhere" / "python")
    assert done.returncode != 0
    assert "Whyfor needs Python 3.11.2 or newer" in done.stdout
    assert not (tmp_path / ".venv").exists()


def test_make_replaces_a_venv_that_an_old_python_made(tmp_path: Path) -> None:
    _python(tmp_path / ".venv" / "bin" / "python", "3.10.13")
    done = _make(tmp_path, _python(tmp_path / "new" / "python", "3.12.1"))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / ".venv" / "run.stamp").exists()
    assert "3.12.1" in (tmp_path / ".venv" / "bin" / "python").read_text()

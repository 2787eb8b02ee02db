"""What the package promises of itself: its license, and the versions of others that it was
tested with."""

from __future__ import annotations

import tomllib
from importlib.metadata import version
from typing import Any

import pytest
from packaging.requirements import Requirement

from tests.conftest import REPOSITORY

PROJECT: dict[str, Any] = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
REQUIREMENTS = [Requirement(line) for line in PROJECT["dependencies"]]


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

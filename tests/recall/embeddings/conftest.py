"""The built-in model, made once for all tests of a process."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from tests.conftest import missing_part
from whyfor.config import Settings
from whyfor.model.errors import NotFound
from whyfor.recall.embeddings import weights
from whyfor.recall.embeddings.index import make_built_in
from whyfor.recall.embeddings.numbers import has_packages
from whyfor.recall.embeddings.settings import built_in_folder


@pytest.fixture(scope="session")
def built_in(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the built-in model, made from the real weights."""
    try:
        weights.find_weights()
    except NotFound as error:
        missing_part(f"SEARCH BY MEANING NOT TESTED: {error.message}")
    if not has_packages("numpy", "onnxruntime"):
        missing_part("SEARCH BY MEANING NOT TESTED: numpy or onnxruntime is not installed")
    home = tmp_path_factory.mktemp("built-in")
    settings = Settings(home=home, user_home=home, env={})
    make_built_in(settings)
    return built_in_folder(settings)


@pytest.fixture
def model(built_in: Path, settings: Settings) -> Path:
    """The same in this test's home."""
    folder = built_in_folder(settings)
    shutil.copytree(built_in, folder)
    return folder


@pytest.fixture
def configure(settings: Settings) -> Callable[..., Settings]:
    """Write [semantic] to config.toml, and return the settings with it."""

    def write(**given: object) -> Settings:
        settings.home.mkdir(parents=True, exist_ok=True)
        lines = "".join(
            f"{name} = {msgspec.json.encode(value).decode()}\n" for name, value in given.items()
        )
        (settings.home / "config.toml").write_text(f"[semantic]\n{lines}")
        return msgspec.structs.replace(settings, semantic=given)

    return write

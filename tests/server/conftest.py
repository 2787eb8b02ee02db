"""A home with invented sessions, made once, and a real server that shows it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from backstory import config
from backstory.service.demo import Demo, build
from backstory.service.ingesting import ingest
from tests.server.wire import Served, served


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Demo:
    made = build(tmp_path_factory.mktemp("demo"))
    ingest(_settings(made))
    return made


def _settings(demo: Demo) -> config.Settings:
    return config.load({"HOME": str(demo.home), "BACKSTORY_HOME": str(demo.backstory_home)})


@pytest.fixture(scope="session")
def shown(demo: Demo) -> config.Settings:
    """Settings of the home that the server shows."""
    return _settings(demo)


@pytest.fixture(scope="session")
def server(shown: config.Settings) -> Iterator[Served]:
    with served(shown) as running:
        yield running

"""A home with invented sessions, made once, and a real server that shows it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.server.wire import Served, served
from whyfor import config
from whyfor.demo import build
from whyfor.demo.places import Demo
from whyfor.service.ingest import ingest


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Demo:
    made = build(tmp_path_factory.mktemp("demo"))
    ingest(_settings(made))
    return made


def _settings(demo: Demo) -> config.Settings:
    return config.load({"HOME": str(demo.home), "WHYFOR_HOME": str(demo.whyfor_home)})


@pytest.fixture(scope="session")
def shown(demo: Demo) -> config.Settings:
    """Settings of the home that the server shows."""
    return _settings(demo)


@pytest.fixture(scope="session")
def server(shown: config.Settings) -> Iterator[Served]:
    # as long as the session: threads of other tests come and go meanwhile
    with served(shown, beside=True) as running:
        yield running

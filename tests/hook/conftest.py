from __future__ import annotations

from pathlib import Path

import pytest

from tests.hook import Installed


@pytest.fixture
def hook(tmp_path: Path) -> Installed:
    return Installed(tmp_path / "why for's")

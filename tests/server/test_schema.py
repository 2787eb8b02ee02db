"""The schema is kept: whatever it allows is answered as it says, and whatever it does not allow is a problem."""

from __future__ import annotations

import pytest
import schemathesis

from tests.server.wire import Served

STREAM = "/api/v1/stream"


@pytest.fixture
def schema(server: Served) -> object:
    return schemathesis.openapi.from_url(f"{server.url}/api/schema", headers=server.bearer)

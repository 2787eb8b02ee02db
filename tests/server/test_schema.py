"""The schema is kept: whatever is asked, allowed or not, is answered as it says."""

from __future__ import annotations

from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from schemathesis import GenerationMode
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import negative_data_rejection, positive_data_acceptance

from tests.server.wire import Served

# Dates and queries are judged by more than a schema can say; and the key is always sent, also where
# it is left out.
BEYOND: list[Any] = [positive_data_acceptance, negative_data_rejection]
EXAMPLES = {GenerationMode.POSITIVE: 15, GenerationMode.NEGATIVE: 6}
STREAM = "/api/v1/stream"  # never ends; its own tests ask for what it does not allow


@pytest.mark.parametrize("mode", list(GenerationMode))
def test_every_answer_is_as_the_schema_says(server: Served, mode: GenerationMode) -> None:
    schema = schemathesis.openapi.from_url(f"{server.url}/api/schema", headers=server.bearer)
    answered = 0
    for found in schema.exclude(path=STREAM).get_all_operations():
        assert isinstance(found, Ok)

        @hypothesis_settings(
            max_examples=EXAMPLES[mode],
            deadline=None,
            derandomize=True,
            database=None,
            suppress_health_check=list(HealthCheck),
        )
        @given(found.ok().as_strategy(generation_mode=mode))
        def ask(case: schemathesis.Case[Any]) -> None:
            case.call_and_validate(headers=server.bearer, excluded_checks=BEYOND)

        ask()
        answered += 1
    assert answered >= 12


def test_the_schema_tells_every_route_of_the_api(server: Served) -> None:
    told = set(server.get("/api/schema").json["paths"])
    there = {route.path_format for route in server.app.routes if route.path.startswith("/api/v1")}
    assert told == there
    assert len(told) >= 13

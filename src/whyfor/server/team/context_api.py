"""Feature context: what an agent or a person should know of a branch, in one call."""

from __future__ import annotations

from typing import Annotated

from litestar.params import QueryParameter

from whyfor.model.wire.context import (
    WireFeatureContext,
    wire_feature_context,
    wire_feature_session,
)
from whyfor.server.api.params import Text, reading_route
from whyfor.server.page import Kept
from whyfor.service.feature_context import feature_context


@reading_route("/context")
def branch_context(
    settings: Kept,
    branch: Text = None,
    limit: Annotated[int, QueryParameter(ge=1, le=200, description="Sessions at most.")] = 50,
) -> WireFeatureContext:
    """The last sessions of a branch, or of all, with their summaries, and what they decided."""
    found = feature_context(settings, branch, limit)
    sessions = [wire_feature_session(one.session, one.who, one.summary) for one in found.sessions]
    return wire_feature_context(found.branch, sessions, found.decisions)


HANDLERS = [branch_context]

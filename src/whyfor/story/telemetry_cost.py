"""What requests cost, by the agent's own telemetry: it wins over list prices, and it tells of
requests that stand in no transcript, such as those for titles."""

from __future__ import annotations

from collections.abc import Iterable

from whyfor.model.ids import fold
from whyfor.model.telemetry import (
    PricedResponse,
    SideRequest,
    StoredResponse,
    TelemetryRequest,
    ToldRequest,
    signed_tokens,
)
from whyfor.model.times import DAY
from whyfor.store.protocol import Store

_MARK = "telemetry"  # the newest signal of which nothing more is to be done
_NEAR = 600_000  # ms between a response in a transcript and its telemetry
_PATIENCE = 120_000  # ms that a transcript may need to tell of a request


def renew_telemetry(store: Store, now: int | None = None) -> int:
    """Take over what new telemetry says that requests cost; return of how many. A request that its
    transcript does not tell of yet is looked at again."""
    mark = store.mark(_MARK)
    newest = store.signals.newest()
    if newest == mark:
        return 0
    told = store.telemetry.requests(mark)
    priced = [each for each in told if each.request.usd is not None]
    matched: list[PricedResponse] = []
    side: list[SideRequest] = []
    open_from = newest + 1
    when = max((each.request.at for each in told), default=0) if now is None else now
    for group in _by_session(priced):
        found, left = _match(store, group)
        matched += found
        for each in left:
            if when - each.request.at < (DAY if each.session is None else _PATIENCE):
                open_from = min(open_from, each.signal)
            elif each.session is not None:
                side.append(_side(store, each))
    return _save(store, matched, side, open_from - 1)


def _save(store: Store, matched: list[PricedResponse], side: list[SideRequest], mark: int) -> int:
    with store.transaction():
        if matched or side:
            store.telemetry.save(matched, side)
        store.set_mark(_MARK, mark)
    return len(matched) + len(side)


def _by_session(told: Iterable[ToldRequest]) -> list[list[ToldRequest]]:
    found: dict[tuple[str, str], dict[int, ToldRequest]] = {}
    for each in told:
        request = each.request
        same = found.setdefault((request.agent, request.session_id), {})
        same.setdefault(request_key(request), each)  # a sender that was not answered sends again
    return [list(group.values()) for group in found.values()]


def request_key(request: TelemetryRequest) -> int:
    """Return the identity of a request: told twice, it is the same."""
    tokens = signed_tokens(request)
    return fold("telemetry", request.agent, request.session_id, request.at, request.ident, *tokens)


def _match(
    store: Store, group: list[ToldRequest]
) -> tuple[list[PricedResponse], list[ToldRequest]]:
    """Return the responses that requests are, and the requests that are none of them."""
    first = group[0].request
    known = store.telemetry.responses(first.agent, first.session_id)
    free = {(each.session, each.key): each for each in known}
    matched: list[PricedResponse] = []
    left: list[ToldRequest] = []
    for told in group:
        found = _nearest(free.values(), told.request)
        if found is None:
            left.append(told)
        else:
            del free[found.session, found.key]
            matched.append(PricedResponse(found.session, found.key, told.request.usd or 0.0))
    return matched, left


def _nearest(known: Iterable[StoredResponse], request: TelemetryRequest) -> StoredResponse | None:
    """Return the response with the same tokens that is nearest in time; None if there is none."""
    tokens = signed_tokens(request)
    alike = [each for each in known if each.signed == tokens and _distance(each, request) <= _NEAR]
    return min(alike, key=lambda each: _distance(each, request), default=None)


def _distance(response: StoredResponse, request: TelemetryRequest) -> int:
    return _NEAR if response.at is None else abs(response.at - request.at)


def _side(store: Store, told: ToldRequest) -> SideRequest:
    request = told.request
    assert told.session is not None
    known = store.telemetry.responses(request.agent, request.session_id)
    before = [
        each.turn for each in known if each.session == told.session and (each.at or 0) <= request.at
    ]
    turn = before[-1] if before else 0
    return SideRequest(told.session, turn, request_key(request), request)

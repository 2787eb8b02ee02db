"""What agents' telemetry tells of requests to models."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from whyfor.model.events import Usage
from whyfor.model.findings import Spent
from whyfor.model.prices import NANO
from whyfor.model.telemetry import (
    TELEMETRY,
    PricedResponse,
    SideRequest,
    StoredResponse,
    TelemetryRequest,
    ToldRequest,
)
from whyfor.store.sql.database import StoreDatabase, fetch
from whyfor.store.sql.listing_index import renew_rows
from whyfor.store.sql.usage import add_usage, total_usage


class SqliteTelemetry:
    def __init__(self, db: StoreDatabase) -> None:
        self.db = db

    def requests(self, after: int) -> list[ToldRequest]:
        rows = fetch(
            self.db,
            """
            SELECT s.id, x.id, s.data
            FROM signals s
            LEFT JOIN sessions x ON x.agent=s.session_agent AND x.session_id=s.session_id
            WHERE s.id > ? AND s.event = ?
            ORDER BY s.id
            """,
            (after, TELEMETRY),
        )
        found = []
        for signal, session, data in rows:
            told = msgspec.json.decode(data).get("request")
            try:
                request = msgspec.convert(told, TelemetryRequest)
            except msgspec.ValidationError:
                continue  # written by another version
            found.append(ToldRequest(signal, session, request))
        return found

    def responses(self, agent: str, session_id: str) -> list[StoredResponse]:
        rows = fetch(
            self.db,
            """
            SELECT u.session_id, u.key, u.turn, u.created_at,
                   u.input, u.cache_read, u.cache_write, u.output, u.model
            FROM usage u
            JOIN sessions x ON x.id=u.session_id
            WHERE x.agent=?1 AND (x.session_id=?2 OR x.parent=?2)
            ORDER BY u.created_at, u.key
            """,
            (agent, session_id),
        )
        return [
            StoredResponse(session, key, turn, at, (fresh, read, written, output), model)
            for session, key, turn, at, fresh, read, written, output, model in rows
        ]

    def save(self, matched: list[PricedResponse], side: list[SideRequest]) -> None:
        self.db.executemany(
            "UPDATE usage SET reported=?, priced=0 WHERE session_id=? AND key=?",
            [(round(each.usd * NANO), each.session, each.key) for each in matched],
        )
        for each in side:
            self._add(each)
        changed = {each.session for each in matched} | {each.session for each in side}
        self._total(changed)

    def _add(self, side: SideRequest) -> None:
        told = side.request
        spent = Spent([])
        spent.append(
            Usage(
                side.key,
                told.at,
                told.model,
                told.input,
                told.cache_read,
                told.cache_write,
                told.output,
                told.reasoning,
                reported=told.usd,
            )
        )
        add_usage(self.db, side.session, spent, [side.turn])

    def _total(self, sessions: Iterable[int]) -> None:
        changed = sorted(sessions)
        total_usage(self.db, changed)
        renew_rows(self.db, changed)

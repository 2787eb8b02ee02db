"""Tokens: what each response used, counted once however many sessions hold it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from whyfor.model.events import Usage
from whyfor.model.findings import Spent
from whyfor.model.prices import NANO, Consumption, PriceTable, cache_saving, price_of
from whyfor.store.sql.database import StoreDatabase, fetch, first_row
from whyfor.store.sql.filters import as_json

_FIELDS = ("input", "cache_read", "cache_write", "output", "reasoning")
# Of several figures for one response, the largest holds.
_MERGED = (*_FIELDS, "cache_hour", "billed", "lump", "terms", "reported")
_USED = """
    SELECT key, model, created_at, input, cache_read, cache_write, cache_hour,
           coalesce(billed, output), lump, terms, reported
    FROM usage
"""
# Some agents tell of a response only its output, and of all of them together the rest.
_COVERED = """
    UPDATE usage SET partial=0
    WHERE session_id=?1 AND partial<>0 AND input IS NULL AND cost IS NOT NULL AND lump=0
      AND created_at <= (SELECT max(created_at) FROM usage WHERE session_id=?1 AND lump<>0)
"""


def add_usage(db: StoreDatabase, session: int, usage: Spent, turns: list[int]) -> None:
    """Store what each response used; of several figures for one, the largest. `turns` are those
    of the events, after the turn that was open before them."""
    merged: dict[int, list[Any]] = {}
    for item, at in zip(usage, usage.at, strict=True):
        turn = turns[at]
        values = _values(item)
        if have := merged.get(item.key):
            have[3:] = [
                b if a is None else a if b is None else max(a, b)
                for a, b in zip(have[3:], values, strict=True)
            ]
        else:
            merged[item.key] = [turn, item.created_at, item.model, *values]
    best = ", ".join(
        f"{f}=max(coalesce(usage.{f}, excluded.{f}), coalesce(excluded.{f}, usage.{f}))"
        for f in _MERGED
    )
    marks = ",".join("?" * (5 + len(_MERGED)))
    db.executemany(
        f"INSERT INTO usage(session_id, key, turn, created_at, model, {', '.join(_MERGED)}) "
        f"VALUES({marks}) ON CONFLICT(session_id, key) DO UPDATE SET {best}, priced=0",
        [(session, key, *row) for key, row in merged.items()],
    )


def _values(item: Usage) -> list[Any]:
    values = [getattr(item, name) for name in _MERGED]
    values[_MERGED.index("lump")] = int(item.lump)
    if item.reported is not None:
        values[-1] = round(item.reported * NANO)
    return values


def shared_usage(db: StoreDatabase, session: int) -> list[tuple[int, int]]:
    """Return the responses of a session that others hold too: key and session, for each that
    does."""
    return fetch(
        db,
        "SELECT a.key, b.session_id FROM usage a JOIN usage b ON b.key=a.key WHERE "
        "a.session_id=? AND EXISTS("
        "SELECT 1 FROM usage c WHERE c.key=a.key AND c.session_id<>a.session_id)",
        (session,),
    )


def share_usage(db: StoreDatabase, shared: list[tuple[int, int]]) -> set[int]:
    """Forks copy responses: of the sessions that hold one, the original counts it, or the one
    that ended first. Return the sessions that may count otherwise now."""
    if not shared:
        return set()
    owners = {int(owner) for _, owner in shared}
    rank = {
        int(ident): (is_copy, ended or 0, name)
        for ident, is_copy, ended, name in fetch(
            db,
            "SELECT id, coalesce(forked_from, copy_of) IS NOT NULL, ended_at, session_id "
            "FROM sessions "
            "WHERE id IN (SELECT value FROM json_each(?))",
            (as_json(sorted(owners)),),
        )
    }
    best: dict[int, int] = {}
    for key, owner in shared:
        if key not in best or rank[owner] < rank[best[key]]:
            best[key] = owner
    db.executemany(
        "UPDATE usage SET counts=? WHERE session_id=? AND key=?",
        [(best[key] == owner, owner, key) for key, owner in shared],
    )
    return owners


def total_usage(db: StoreDatabase, sessions: Iterable[int]) -> None:
    sums = ", ".join(f"sum({name})" for name in _FIELDS)
    sets = ", ".join(f"{name}=?" for name in (*_FIELDS, "cost", "unpriced"))
    sums += ", sum(cost), coalesce(sum(partial), 0)"
    prices = db.prices
    for session in sessions:
        price_usage(db, prices, session)
        total = first_row(db, f"SELECT {sums} FROM usage WHERE session_id=? AND counts", (session,))
        models = [
            row[0]
            for row in fetch(
                db,
                "SELECT model FROM usage WHERE session_id=? AND model IS NOT NULL GROUP BY "
                "model "
                "ORDER BY min(created_at) NULLS FIRST, model",
                (session,),
            )
        ]
        db.execute(
            f"UPDATE sessions SET {sets}, models=? WHERE id=?",
            [*(total or ()), as_json(models), session],
        )


def price_usage(db: StoreDatabase, prices: PriceTable, session: int) -> None:
    """Price the responses of a session that were not priced by this table yet."""
    rows = fetch(db, f"{_USED} WHERE session_id=? AND priced<>?", (session, prices.stamp))
    if not rows:
        return
    priced = []
    for key, *given in rows:
        used = Consumption(*given)
        price = price_of(used, prices.find)
        saved = cache_saving(used, prices.find, price)
        priced.append((price.nano, saved, int(price.partial), prices.stamp, session, key))
    db.executemany(
        "UPDATE usage SET cost=?, saved=?, partial=?, priced=? WHERE session_id=? AND key=?",
        priced,
    )
    db.execute(_COVERED, (session,))


def unpriced_sessions(db: StoreDatabase, prices: PriceTable) -> list[int]:
    """Return the sessions with responses that another table of prices has priced, or none."""
    sql = "SELECT DISTINCT session_id FROM usage WHERE priced<>?"
    return [number for (number,) in fetch(db, sql, (prices.stamp,))]

"""Tokens: what each response used, counted once however many sessions hold it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from whyfor.model.findings import Spent
from whyfor.store.sql.database import StoreDatabase, fetch, first_row
from whyfor.store.sql.filters import as_json

_FIELDS = ("input", "cache_read", "cache_write", "output", "reasoning")


def add_usage(db: StoreDatabase, session: int, usage: Spent, turns: list[int]) -> None:
    """Store what each response used; of several figures for one, the largest. `turns` are those
    of the events, after the turn that was open before them."""
    merged: dict[int, list[Any]] = {}
    for item, at in zip(usage, usage.at, strict=True):
        turn = turns[at]
        values = [getattr(item, name) for name in _FIELDS]
        if have := merged.get(item.key):
            have[3:] = [
                b if a is None else a if b is None else max(a, b)
                for a, b in zip(have[3:], values, strict=True)
            ]
        else:
            merged[item.key] = [turn, item.created_at, item.model, *values]
    best = ", ".join(
        f"{f}=max(coalesce(usage.{f}, excluded.{f}), coalesce(excluded.{f}, usage.{f}))"
        for f in _FIELDS
    )
    db.executemany(
        f"INSERT INTO usage(session_id, key, turn, created_at, model, {', '.join(_FIELDS)}) "
        f"VALUES(?,?,?,?,?,?,?,?,?,?) ON CONFLICT(session_id, key) DO UPDATE SET {best}",
        [(session, key, *row) for key, row in merged.items()],
    )


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
    sets = ", ".join(f"{name}=?" for name in _FIELDS)
    for session in sessions:
        total = first_row(db, f"SELECT {sums} FROM usage WHERE session_id=? AND counts", (session,))
        models = [
            row[0]
            for row in fetch(
                db,
                "SELECT model FROM usage WHERE session_id=? AND model IS NOT NULL GROUP BY "
                "model "
                "ORDER BY min(created_at), model",
                (session,),
            )
        ]
        db.execute(
            f"UPDATE sessions SET {sets}, models=? WHERE id=?",
            [*(total or ()), as_json(models), session],
        )

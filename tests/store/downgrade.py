"""A database as an older version left it, made from one of today."""

from __future__ import annotations

import re

import apsw

from whyfor.store.sqlite import schema


def downgrade(db: apsw.Connection, version: int) -> None:
    """Take back what the migrations after a version did to the schema; the data stays."""
    before = "".join(schema.MIGRATIONS[:version])
    after = "".join(schema.MIGRATIONS[version:])
    made = re.findall(r"CREATE (?:VIRTUAL )?(INDEX|TABLE|VIEW|TRIGGER) (\w+)", after)
    for kind, name in reversed(made):
        db.execute(f"DROP {kind} IF EXISTS {name}")
    for table, column in re.findall(r"ALTER TABLE (\w+) ADD COLUMN (\w+)", after):
        if ("TABLE", table) not in made:
            db.execute(f"ALTER TABLE {table} DROP COLUMN {column}")
    for name in re.findall(r"DROP INDEX (\w+)", after):
        for statement in re.findall(rf"CREATE INDEX {name}\b.*?;", before, re.S):
            db.execute(statement)
    db.pragma("user_version", version)

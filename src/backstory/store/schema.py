"""The database's shape, as numbered steps that only go forward.

Kept expressible in PostgreSQL: integers, text, JSON as text; full text search is the one part each database has
its own way for. An event's id is session id * 2^24 + seq, so a session's events lie side by side without an index.
"""

from __future__ import annotations

import apsw

from backstory.model.errors import NewerStore

SEQ_BITS = 24

_M001 = """
CREATE TABLE projects(
  id INTEGER PRIMARY KEY, identity TEXT NOT NULL UNIQUE, evidence TEXT NOT NULL, name TEXT NOT NULL,
  remote TEXT, root_commit TEXT, path TEXT);
CREATE TABLE places(cwd TEXT PRIMARY KEY, project_id INTEGER NOT NULL, observed_at INTEGER NOT NULL);

CREATE TABLE sources(
  id INTEGER PRIMARY KEY, agent TEXT NOT NULL, path TEXT NOT NULL, session_id TEXT NOT NULL, parent TEXT,
  framing TEXT NOT NULL, sidecar TEXT, cwd TEXT, generation INTEGER NOT NULL DEFAULT 0,
  position INTEGER NOT NULL DEFAULT 0,
  tail INTEGER NOT NULL DEFAULT 0, inode INTEGER, size INTEGER, mtime INTEGER, head_hash TEXT, end_hash TEXT,
  state TEXT NOT NULL DEFAULT '{}', records INTEGER NOT NULL DEFAULT 0, unparsed INTEGER NOT NULL DEFAULT 0,
  error TEXT, UNIQUE(agent, path));
CREATE TABLE segments(
  source_id INTEGER NOT NULL, generation INTEGER NOT NULL, start INTEGER NOT NULL, stop INTEGER NOT NULL,
  digest TEXT NOT NULL, observed_at INTEGER NOT NULL, partial INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY(source_id, generation, start)) WITHOUT ROWID;
CREATE TABLE unparsed(
  source_id INTEGER NOT NULL, generation INTEGER NOT NULL, start INTEGER NOT NULL, size INTEGER NOT NULL,
  reason TEXT NOT NULL, PRIMARY KEY(source_id, generation, start)) WITHOUT ROWID;
CREATE TABLE unknown_types(
  agent TEXT NOT NULL, name TEXT NOT NULL, source_id INTEGER NOT NULL, records INTEGER NOT NULL,
  PRIMARY KEY(agent, name, source_id)) WITHOUT ROWID;

CREATE TABLE sessions(
  id INTEGER PRIMARY KEY, agent TEXT NOT NULL, session_id TEXT NOT NULL, parent TEXT, subagent TEXT,
  project_id INTEGER, cwd TEXT, branch TEXT, title TEXT, title_rank INTEGER NOT NULL DEFAULT -1, version TEXT,
  forked_from TEXT, started_at INTEGER, ended_at INTEGER, last_seq INTEGER NOT NULL DEFAULT 0,
  turn INTEGER NOT NULL DEFAULT 0, prompts INTEGER NOT NULL DEFAULT 0, messages INTEGER NOT NULL DEFAULT 0,
  tool_calls INTEGER NOT NULL DEFAULT 0, unparsed INTEGER NOT NULL DEFAULT 0, models TEXT NOT NULL DEFAULT '[]',
  input INTEGER, cache_read INTEGER, cache_write INTEGER, output INTEGER, reasoning INTEGER,
  UNIQUE(agent, session_id));
CREATE INDEX sessions_by_time ON sessions(started_at);
CREATE INDEX sessions_by_parent ON sessions(parent) WHERE parent IS NOT NULL;
CREATE TABLE events(
  id INTEGER PRIMARY KEY, session_id INTEGER NOT NULL, key INTEGER NOT NULL, turn INTEGER NOT NULL, kind TEXT NOT NULL,
  source TEXT NOT NULL, confidence TEXT NOT NULL, created_at INTEGER, observed_at INTEGER NOT NULL, actor TEXT NOT NULL,
  name TEXT, text TEXT NOT NULL, data TEXT);
CREATE UNIQUE INDEX events_by_key ON events(session_id, key);
CREATE TABLE usage(
  session_id INTEGER NOT NULL, key INTEGER NOT NULL, turn INTEGER NOT NULL, created_at INTEGER, model TEXT,
  input INTEGER, cache_read INTEGER, cache_write INTEGER, output INTEGER, reasoning INTEGER,
  counts INTEGER NOT NULL DEFAULT 1, PRIMARY KEY(session_id, key)) WITHOUT ROWID;
CREATE INDEX usage_by_key ON usage(key);
CREATE TABLE touches(
  session_id INTEGER NOT NULL, path TEXT NOT NULL, action TEXT NOT NULL, seq INTEGER NOT NULL, turn INTEGER NOT NULL,
  PRIMARY KEY(session_id, seq, path, action)) WITHOUT ROWID;
CREATE TABLE leaf_titles(key INTEGER PRIMARY KEY, title TEXT NOT NULL);

CREATE TABLE docs(id INTEGER PRIMARY KEY, last_seq INTEGER NOT NULL, turn INTEGER NOT NULL, created_at INTEGER);
CREATE VIRTUAL TABLE words USING fts5(
  title, prompts, answers, thinking, tools, results, files, names, content='', contentless_delete=1,
  tokenize="unicode61 remove_diacritics 2");
INSERT INTO words(words, rank) VALUES('hashsize', 16777216);
INSERT INTO words(words, rank) VALUES('automerge', 16);
"""

MIGRATIONS = (_M001,)
VERSION = len(MIGRATIONS)


def migrate(db: apsw.Connection) -> None:
    """Bring the database to this program's version, inside the caller's transaction; never back."""
    version = current(db)
    if version > VERSION:
        raise NewerStore(
            f"the database is of version {version}, this program knows {VERSION}",
            "Upgrade Backstory: pip install --upgrade backstory",
        )
    for number in range(version, VERSION):
        db.execute(MIGRATIONS[number])
    if version < VERSION:
        db.pragma("user_version", VERSION)


def current(db: apsw.Connection) -> int:
    found = db.pragma("user_version")
    return int(found) if isinstance(found, int) else 0

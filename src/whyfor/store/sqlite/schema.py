"""The schema, as numbered migrations that only go forward.

It stays expressible in PostgreSQL: integers, text, JSON as text. Only full text search differs per
database. An event's id is session id * 2^24 + seq, so the events of a session are stored side by
side without an index.
"""

from __future__ import annotations

import re

from whyfor.model.errors import NewerStore
from whyfor.model.events import SEQ_BITS as SEQ_BITS
from whyfor.model.events import SEQ_MASK as SEQ_MASK
from whyfor.store.protocol import RENEW
from whyfor.store.sql.listing_index import fill_listing
from whyfor.store.sql.search_index import index_all
from whyfor.store.sql.titles import name_sessions
from whyfor.store.sqlite.driver import StoreConnection
from whyfor.terminal import options, raw_stream, say

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

# What hooks announced, and what came of it: which commits have a story.
_M002 = """
CREATE TABLE signals(
  id INTEGER PRIMARY KEY, at INTEGER NOT NULL, agent TEXT NOT NULL, event TEXT NOT NULL, cwd TEXT, session_agent TEXT,
  session_id TEXT, how TEXT, repository TEXT, sha TEXT, data TEXT NOT NULL DEFAULT '{}');
CREATE INDEX signals_by_sha ON signals(sha) WHERE sha IS NOT NULL;
CREATE INDEX signals_by_agent ON signals(agent, at);
CREATE INDEX signals_by_session ON signals(session_agent, session_id, at) WHERE session_id IS NOT NULL;
CREATE INDEX signals_made ON signals(at) WHERE json_extract(data, '$.made') IS NOT NULL;
CREATE INDEX signals_by_process ON signals(json_extract(data, '$.process'), at) WHERE how = 'payload';

CREATE TABLE acts(session_id INTEGER PRIMARY KEY, last_seq INTEGER NOT NULL, body BLOB NOT NULL);
CREATE TABLE linked(
  project_id INTEGER NOT NULL, session_id INTEGER NOT NULL, last_seq INTEGER NOT NULL,
  PRIMARY KEY(project_id, session_id)) WITHOUT ROWID;
CREATE TABLE tips(project_id INTEGER PRIMARY KEY, shas TEXT NOT NULL);
CREATE TABLE commits(
  sha TEXT PRIMARY KEY, project_id INTEGER NOT NULL, authored_at INTEGER NOT NULL, committed_at INTEGER NOT NULL,
  reason TEXT, nearby TEXT) WITHOUT ROWID;
CREATE INDEX commits_by_project ON commits(project_id, committed_at);
CREATE TABLE checkpoints(
  sha TEXT PRIMARY KEY, id TEXT NOT NULL UNIQUE, project_id INTEGER NOT NULL, subject TEXT NOT NULL,
  author TEXT NOT NULL, email TEXT NOT NULL, authored_at INTEGER NOT NULL, committed_at INTEGER NOT NULL,
  parents TEXT NOT NULL, is_merge INTEGER NOT NULL, patch_id TEXT, files TEXT NOT NULL, evidence TEXT, confidence TEXT,
  group_root TEXT NOT NULL, superseded_by TEXT, annotation TEXT) WITHOUT ROWID;
CREATE INDEX checkpoints_by_project ON checkpoints(project_id, committed_at);
CREATE INDEX checkpoints_by_group ON checkpoints(group_root);
CREATE TABLE parts(
  sha TEXT NOT NULL, session_id INTEGER NOT NULL, evidence TEXT NOT NULL, confidence TEXT NOT NULL, role TEXT NOT NULL,
  cut INTEGER NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL, messages INTEGER NOT NULL,
  new_messages INTEGER NOT NULL, prompts INTEGER NOT NULL, turns INTEGER NOT NULL,
  continued INTEGER NOT NULL, lines INTEGER NOT NULL, share REAL, why TEXT NOT NULL,
  PRIMARY KEY(sha, session_id)) WITHOUT ROWID;
CREATE INDEX parts_by_session ON parts(session_id, cut);
CREATE TABLE overrides(
  sha TEXT NOT NULL, agent TEXT NOT NULL, session_id TEXT NOT NULL, action TEXT NOT NULL, at INTEGER NOT NULL,
  PRIMARY KEY(sha, agent, session_id)) WITHOUT ROWID;
CREATE TABLE notes(
  sha TEXT NOT NULL, at INTEGER NOT NULL, by TEXT NOT NULL, body TEXT NOT NULL, PRIMARY KEY(sha, at)) WITHOUT ROWID;
CREATE TABLE aliases(path TEXT PRIMARY KEY, identity TEXT NOT NULL, at INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE marks(name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
CREATE INDEX touches_by_path ON touches(path) WHERE action='write';
"""

# What must not come back: sessions (agent:id), commits, digests of records and of strings; never
# what they said.
_M003 = """
CREATE TABLE forgotten(kind TEXT NOT NULL, name TEXT NOT NULL, PRIMARY KEY(kind, name)) WITHOUT ROWID;
"""

# What is not kept of a segment's bytes, and what must be remembered to know what else is not.
_M004 = """
ALTER TABLE segments ADD COLUMN gaps TEXT;
CREATE INDEX segments_with_gaps ON segments(source_id, generation) WHERE gaps IS NOT NULL;
CREATE TABLE hiding(source_id INTEGER PRIMARY KEY, body TEXT NOT NULL);
"""

# When and where a person wanted nothing recorded; for commits that have no story because of it, and
# for ingest.
_M005 = """
CREATE TABLE pauses(id TEXT PRIMARY KEY, body TEXT NOT NULL) WITHOUT ROWID;
"""

# What is asked of all sessions at once is answered from these, not from every event: turns by time,
# calls that went wrong, how long an approval took. A key of JSON that msgspec wrote cannot stand
# inside one of its strings.
_M006 = """
CREATE INDEX events_asked ON events(session_id, created_at) WHERE kind='user.prompt' AND actor='user';
CREATE INDEX events_returned ON events(session_id, created_at) WHERE kind='tool.result';
CREATE INDEX events_approvals ON events(session_id, created_at)
  WHERE kind IN ('approval.requested', 'approval.resolved');
CREATE INDEX events_wrong ON events(session_id, turn, kind, substr(text, 1, 120), instr(data, '"exit_code":')) WHERE
  kind='error' OR kind='turn.completed' AND instr(data, '"interrupted":true')
  OR kind='approval.resolved' AND instr(data, '"decision":"denied"')
  OR kind='tool.result' AND instr(data, '"failed":true') AND NOT instr(data, '"rejected":true');
CREATE INDEX signals_asked ON signals(session_agent, session_id, at) WHERE event='PermissionRequest';
"""

# What changed after it was stored, for those who have read it already; see changes.py.
_M007 = """
CREATE TABLE changes(
  id INTEGER PRIMARY KEY, event INTEGER UNIQUE, sha TEXT UNIQUE, project_id INTEGER, sessions TEXT);
"""

# A page's first question about sessions is of an agent's or a project's newest, its first, or all
# of them together. An agent has a fifth of all sessions, a parent has few: without being told,
# SQLite would look for children by agent.
_M008 = """
CREATE INDEX sessions_heard ON sessions(agent, ended_at);
CREATE INDEX sessions_started ON sessions(agent, started_at) WHERE parent IS NULL;
CREATE INDEX sessions_lately ON sessions(project_id, ended_at) WHERE parent IS NULL;
CREATE INDEX sessions_begun ON sessions(project_id, started_at);
CREATE INDEX sessions_counted ON sessions(agent, project_id, prompts);
ANALYZE sqlite_schema;
INSERT INTO sqlite_stat1(tbl, idx, stat) VALUES
  ('sessions', 'sqlite_autoindex_sessions_1', '1000000 200000 1'),
  ('sessions', 'sessions_heard', '1000000 200000 2'), ('sessions', 'sessions_started', '1000000 200000 2'),
  ('sessions', 'sessions_lately', '1000000 20000 2'), ('sessions', 'sessions_begun', '1000000 20000 2'),
  ('sessions', 'sessions_counted', '1000000 200000 20000 200');
ANALYZE sqlite_schema;
"""

# How the journal ended when this database was last written: see store/commit.py.
_M009 = """
CREATE TABLE journal(
  id INTEGER PRIMARY KEY CHECK(id=1), number INTEGER NOT NULL, checksum TEXT NOT NULL, size INTEGER NOT NULL,
  mtime INTEGER NOT NULL);
"""

# What became of a call, a turn or a request, as columns: until now they were found by text in data.
_M010 = """
ALTER TABLE events ADD COLUMN failed INTEGER NOT NULL DEFAULT 0;
ALTER TABLE events ADD COLUMN interrupted INTEGER NOT NULL DEFAULT 0;
ALTER TABLE events ADD COLUMN denied INTEGER NOT NULL DEFAULT 0;
UPDATE events
SET failed = json_type(data, '$.failed') IS 'true', denied = json_type(data, '$.rejected') IS 'true'
WHERE kind='tool.result' AND data IS NOT NULL
  AND 'true' IN (json_type(data, '$.failed'), json_type(data, '$.rejected'));
UPDATE events SET interrupted = 1 WHERE kind='turn.completed' AND json_type(data, '$.interrupted')='true';
UPDATE events SET denied = 1 WHERE kind='approval.resolved' AND data ->> '$.decision'='denied';
DROP INDEX events_wrong;
CREATE INDEX events_wrong
  ON events(session_id, turn, kind, substr(text, 1, 120), json_type(data, '$.exit_code') IS NOT NULL,
            failed, interrupted, denied)
  WHERE kind='error' OR interrupted OR kind='approval.resolved' AND denied OR failed AND NOT denied;
"""

# Sessions that begin with another's records (see copies.py): up to which event the records
# themselves say so, of which session a restore made them, which session that is here and how, the
# first event of their own, and the session with which all of it began.
_M011 = """
ALTER TABLE sessions ADD COLUMN copied_to INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN restored_from TEXT;
ALTER TABLE sessions ADD COLUMN copy_of TEXT;
ALTER TABLE sessions ADD COLUMN copy_kind TEXT;
ALTER TABLE sessions ADD COLUMN own_from INTEGER NOT NULL DEFAULT 1;
ALTER TABLE sessions ADD COLUMN original TEXT;
CREATE INDEX sessions_forked ON sessions(forked_from) WHERE forked_from IS NOT NULL;
CREATE INDEX sessions_restored ON sessions(restored_from) WHERE restored_from IS NOT NULL;
CREATE INDEX sessions_copied ON sessions(copy_of) WHERE copy_of IS NOT NULL;
CREATE INDEX sessions_copies ON sessions(original) WHERE original IS NOT NULL OR own_from > 1;
"""

# What is remembered of sessions, derived from their events: see recall/session_memory.py.
_M012 = """
CREATE TABLE memories(
  session_id INTEGER PRIMARY KEY, first_seq INTEGER NOT NULL, last_seq INTEGER NOT NULL, version INTEGER NOT NULL,
  summary BLOB NOT NULL);
CREATE TABLE observations(
  key TEXT PRIMARY KEY, session_id INTEGER NOT NULL, type TEXT NOT NULL, state TEXT NOT NULL, at INTEGER,
  body BLOB NOT NULL) WITHOUT ROWID;
CREATE INDEX observations_of_session ON observations(session_id);
CREATE INDEX observations_newest ON observations(at);
CREATE TABLE observation_files(path TEXT NOT NULL, key TEXT NOT NULL, PRIMARY KEY(path, key)) WITHOUT ROWID;
CREATE TABLE session_commands(
  session_id INTEGER NOT NULL, family TEXT NOT NULL, command TEXT NOT NULL, runs INTEGER NOT NULL, ok INTEGER NOT NULL,
  failed INTEGER NOT NULL, last_ok INTEGER, PRIMARY KEY(session_id, family)) WITHOUT ROWID;
"""

# The list of sessions as people browse it: see listing_index.py, which also fills it.
_M013 = """
CREATE TABLE listed(
  session_id INTEGER PRIMARY KEY, head INTEGER NOT NULL,
  turns INTEGER NOT NULL, worked INTEGER NOT NULL, asked INTEGER, failed INTEGER, files INTEGER NOT NULL,
  shown INTEGER NOT NULL, last_at INTEGER NOT NULL DEFAULT 0, began_at INTEGER NOT NULL DEFAULT 0,
  worked_all INTEGER NOT NULL DEFAULT 0, tokens INTEGER NOT NULL DEFAULT -1);
CREATE INDEX listed_by_head ON listed(head);
CREATE INDEX listed_by_last ON listed(last_at, session_id) WHERE head=session_id;
CREATE INDEX listed_by_start ON listed(began_at, session_id) WHERE head=session_id;
CREATE INDEX listed_by_work ON listed(worked_all, session_id) WHERE head=session_id;
CREATE INDEX listed_by_tokens ON listed(tokens, session_id) WHERE head=session_id;
CREATE INDEX events_questions ON events(session_id) WHERE kind='question.asked';
"""
_LISTED = 13  # the version that has it

# Text is stored once. Of a long result the beginning and the end are in its event: where its
# record is, is kept here. What a call was given is in its data: see `event_texts`. Subagents that
# do not say where they ran are of their callers' projects.
_M014 = f"""
CREATE TABLE long_texts(
  id INTEGER PRIMARY KEY, source_id INTEGER NOT NULL, generation INTEGER NOT NULL, at INTEGER NOT NULL,
  size INTEGER NOT NULL, lines INTEGER NOT NULL);
CREATE VIEW event_texts AS
  SELECT id, turn, kind, name, created_at, CASE WHEN kind<>'tool.call' OR text<>'' OR data IS NULL THEN text ELSE (
    SELECT coalesce(group_concat(atom, char(10)), '') FROM json_tree(data, '$.input')
    WHERE type IN ('text', 'integer', 'real')) END AS text
  FROM events;
UPDATE sessions SET project_id=p.project_id
  FROM sessions p
  WHERE p.agent=sessions.agent AND p.session_id=sessions.parent
    AND sessions.cwd IS NULL AND sessions.project_id IS NOT p.project_id;
INSERT OR REPLACE INTO marks SELECT '{RENEW}', 1 WHERE EXISTS(SELECT 1 FROM events);
"""

# What ranks a search: stems of what was said and done, in passages of about the same size; see
# search_index.py.
_M015 = """
CREATE VIRTUAL TABLE passages USING fts5(
  title, prompts, answers, calls, content='', contentless_delete=1,
  tokenize="porter unicode61 remove_diacritics 2");
INSERT INTO passages(passages, rank) VALUES('hashsize', 16777216);
INSERT INTO passages(passages, rank) VALUES('automerge', 16);
"""

# What a squash was made of, and where in a session its parts are. What was linked before did not
# know: everything is looked at once more.
_M016 = """
ALTER TABLE checkpoints ADD COLUMN squashed_from TEXT NOT NULL DEFAULT '[]';
ALTER TABLE parts ADD COLUMN pieces TEXT NOT NULL DEFAULT '[]';
DELETE FROM linked;
DELETE FROM tips;
"""

# What people and agents say about notes, in order. A note that one of them wrote is of no
# session's events: its session_id is 0, and it says itself where it belongs.
_M017 = """
CREATE TABLE note_statements(
  id INTEGER PRIMARY KEY, key TEXT NOT NULL, at INTEGER NOT NULL, action TEXT NOT NULL, agent TEXT NOT NULL,
  session_id TEXT NOT NULL, body BLOB NOT NULL, UNIQUE(key, at, action));
CREATE INDEX note_statements_of_session ON note_statements(session_id) WHERE session_id<>'';
ALTER TABLE observations ADD COLUMN project_id INTEGER;
ALTER TABLE observations ADD COLUMN branch TEXT;
ALTER TABLE observations ADD COLUMN agent TEXT NOT NULL DEFAULT '';
ALTER TABLE observations ADD COLUMN session_name TEXT NOT NULL DEFAULT '';
ALTER TABLE observations ADD COLUMN pinned INTEGER NOT NULL DEFAULT 0;
ALTER TABLE observations ADD COLUMN replaces TEXT;
CREATE INDEX observations_replaced ON observations(replaces) WHERE replaces IS NOT NULL;
"""

# One card for each session: what a search for a session as a whole looks at; see search_index.py.
# A new title or commit makes the card anew; of a link that is gone nothing stays.
_M018 = """
CREATE VIRTUAL TABLE cards USING fts5(
  title, prompts, closing, files, commits, learned, content='', contentless_delete=1,
  tokenize="porter unicode61 remove_diacritics 2");
CREATE TRIGGER card_of_title AFTER UPDATE OF title ON sessions WHEN OLD.title IS NOT NEW.title BEGIN
  UPDATE memories SET version=0 WHERE session_id=NEW.id; END;
CREATE TRIGGER card_of_link AFTER INSERT ON parts BEGIN
  UPDATE memories SET version=0 WHERE session_id=NEW.session_id; END;
CREATE TRIGGER card_of_unlink AFTER DELETE ON parts BEGIN
  UPDATE memories SET version=0 WHERE session_id=OLD.session_id;
  DELETE FROM cards WHERE rowid=OLD.session_id; END;
UPDATE memories SET version=0;
"""

# What sessions were told of earlier ones, as their hooks reported it.
_M019 = """
CREATE INDEX signals_told ON signals(session_agent, session_id, at)
  WHERE json_extract(data, '$.memory') IS NOT NULL;
CREATE VIEW injections AS
  SELECT id, at, session_agent, session_id, json_extract(data, '$.memory') AS told
  FROM signals
  WHERE json_extract(data, '$.memory') IS NOT NULL;
"""

# Ranks of titles have room between them: see model/titles.py. Titles from prompts are made anew.
_M020 = """
UPDATE sessions
SET title_rank = CASE title_rank WHEN 0 THEN 40 WHEN 1 THEN 50 WHEN 2 THEN 60 ELSE 80 END
WHERE title_rank >= 0;
"""
_TITLED = 20  # the version that has them

# One note for each command of a project, from the counts of its sessions: see
# recall/command_notes.py. Projects whose counts have changed wait here for theirs.
_M021 = """
ALTER TABLE session_commands ADD COLUMN ok_seq INTEGER NOT NULL DEFAULT 0;
CREATE TABLE changed_commands(project_id INTEGER PRIMARY KEY);
CREATE INDEX observations_of_commands ON observations(project_id) WHERE type='command';
CREATE TRIGGER commands_counted AFTER INSERT ON session_commands BEGIN
  INSERT OR IGNORE INTO changed_commands
    SELECT project_id FROM sessions WHERE id=NEW.session_id AND project_id IS NOT NULL; END;
CREATE TRIGGER commands_deleted AFTER DELETE ON session_commands BEGIN
  INSERT OR IGNORE INTO changed_commands
    SELECT project_id FROM sessions WHERE id=OLD.session_id AND project_id IS NOT NULL; END;
CREATE TRIGGER commands_moved AFTER UPDATE OF project_id ON sessions WHEN OLD.project_id IS NOT NEW.project_id BEGIN
  INSERT OR IGNORE INTO changed_commands
    SELECT p FROM (SELECT OLD.project_id AS p UNION SELECT NEW.project_id)
    WHERE p IS NOT NULL AND EXISTS(SELECT 1 FROM session_commands WHERE session_id=NEW.id); END;
DELETE FROM observations WHERE type='command' AND session_id<>0;
UPDATE memories SET version=0;
"""

# What each response costs at list price, in billionths of a dollar: see usage.py. What it takes to
# say so was not kept until now: everything is read once more.
_M022 = f"""
ALTER TABLE usage ADD COLUMN cache_hour INTEGER;
ALTER TABLE usage ADD COLUMN billed INTEGER;
ALTER TABLE usage ADD COLUMN lump INTEGER NOT NULL DEFAULT 0;
ALTER TABLE usage ADD COLUMN terms TEXT;
ALTER TABLE usage ADD COLUMN reported INTEGER;
ALTER TABLE usage ADD COLUMN cost INTEGER;
ALTER TABLE usage ADD COLUMN saved INTEGER;
ALTER TABLE usage ADD COLUMN partial INTEGER NOT NULL DEFAULT 1;
ALTER TABLE usage ADD COLUMN priced INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN cost INTEGER;
ALTER TABLE sessions ADD COLUMN unpriced INTEGER NOT NULL DEFAULT 0;
ALTER TABLE listed ADD COLUMN cost INTEGER NOT NULL DEFAULT -1;
ALTER TABLE listed ADD COLUMN unpriced INTEGER NOT NULL DEFAULT 0;
CREATE INDEX usage_by_time ON usage(created_at) WHERE counts;
CREATE INDEX listed_by_cost ON listed(cost, session_id) WHERE head=session_id;
INSERT OR REPLACE INTO marks SELECT '{RENEW}', 1 WHERE EXISTS(SELECT 1 FROM events);
"""

# Vectors of what was said, one for each turn: see recall/embeddings. A search reads the signs of
# all, in a table of their own, and the rest of few.
_M023 = """
CREATE TABLE vectors(
  session_id INTEGER PRIMARY KEY, model TEXT NOT NULL, stale INTEGER NOT NULL, turns INTEGER NOT NULL,
  marks BLOB NOT NULL, codes BLOB NOT NULL);
CREATE TABLE vector_bits(session_id INTEGER PRIMARY KEY, model TEXT NOT NULL, bits BLOB NOT NULL);
"""

# Who wrote the lines of a commit, computed once; the row without a path is about the commit. Links
# that change, and sessions that were at work meanwhile and are read later, make it anew.
_M024 = """
CREATE TABLE authored_lines(
  sha TEXT NOT NULL, path TEXT NOT NULL, blob TEXT NOT NULL, begun_at INTEGER NOT NULL,
  committed_at INTEGER NOT NULL, inferred INTEGER NOT NULL, body BLOB NOT NULL,
  PRIMARY KEY(sha, path)) WITHOUT ROWID;
CREATE INDEX authored_lines_by_time ON authored_lines(committed_at) WHERE inferred AND path='';
CREATE TRIGGER lines_of_link AFTER INSERT ON parts BEGIN
  DELETE FROM authored_lines WHERE sha=NEW.sha; END;
CREATE TRIGGER lines_of_unlink AFTER DELETE ON parts BEGIN
  DELETE FROM authored_lines WHERE sha=OLD.sha; END;
CREATE TRIGGER lines_of_session AFTER UPDATE OF started_at, ended_at ON sessions
WHEN NEW.started_at IS NOT NULL AND NEW.ended_at IS NOT NULL
  AND (NEW.started_at IS NOT OLD.started_at OR NEW.ended_at IS NOT OLD.ended_at) BEGIN
  DELETE FROM authored_lines WHERE sha IN (
    SELECT sha FROM authored_lines
    WHERE path='' AND inferred AND committed_at >= NEW.started_at - 10000
      AND begun_at <= NEW.ended_at); END;
"""

# The files of a note are deleted with it, by its key.
_M025 = """
CREATE INDEX observation_files_of_note ON observation_files(key);
"""

# Tasks: what trackers and people say of them, and which part of which session was spent on them.
# Runs are derived, see story/tasks; a new link may name a task.
_M026 = """
CREATE TABLE task_issues(
  project TEXT NOT NULL, key TEXT NOT NULL, closed_by TEXT NOT NULL, body BLOB NOT NULL,
  PRIMARY KEY(project, key)) WITHOUT ROWID;
CREATE INDEX task_issues_closed ON task_issues(closed_by) WHERE closed_by<>'';
CREATE TABLE task_statements(
  id INTEGER PRIMARY KEY, project TEXT NOT NULL, key TEXT NOT NULL, at INTEGER NOT NULL, action TEXT NOT NULL,
  agent TEXT NOT NULL, session_id TEXT NOT NULL, body BLOB NOT NULL,
  UNIQUE(key, project, at, action, agent, session_id));
CREATE INDEX task_statements_of_session ON task_statements(session_id) WHERE session_id<>'';
CREATE TABLE task_scans(session_id INTEGER PRIMARY KEY, last_seq INTEGER NOT NULL, version INTEGER NOT NULL);
CREATE TABLE task_runs(
  session_id INTEGER NOT NULL, key TEXT NOT NULL, body BLOB NOT NULL, PRIMARY KEY(session_id, key)) WITHOUT ROWID;
CREATE INDEX task_runs_by_key ON task_runs(key);
CREATE TRIGGER tasks_of_link AFTER INSERT ON parts BEGIN
  UPDATE task_scans SET version=0 WHERE session_id=NEW.session_id; END;
CREATE TRIGGER tasks_of_unlink AFTER DELETE ON parts BEGIN
  UPDATE task_scans SET version=0 WHERE session_id=OLD.session_id; END;
"""

# Which projects are shared, what waits to be sent of them, what was sent, and each try. A story is
# put there by whatever saves it, in the same transaction: see sqlite/outbox.py.
_M027 = """
CREATE TABLE remotes(project_id INTEGER PRIMARY KEY, share TEXT NOT NULL);
CREATE TABLE outbox(
  id INTEGER PRIMARY KEY, project_id INTEGER NOT NULL, kind TEXT NOT NULL, name TEXT NOT NULL, state TEXT NOT NULL,
  added_at INTEGER NOT NULL, attempts INTEGER NOT NULL DEFAULT 0, next_at INTEGER NOT NULL DEFAULT 0, error TEXT,
  sent_at INTEGER, size INTEGER, redacted INTEGER, digest TEXT, UNIQUE(project_id, kind, name));
CREATE INDEX outbox_by_state ON outbox(state, next_at);
CREATE TABLE sent(
  project_id INTEGER NOT NULL, agent TEXT NOT NULL, path TEXT NOT NULL, generation INTEGER NOT NULL,
  rules TEXT NOT NULL, segments TEXT NOT NULL, PRIMARY KEY(project_id, agent, path)) WITHOUT ROWID;
CREATE TABLE sync_tries(
  id INTEGER PRIMARY KEY, at INTEGER NOT NULL, why TEXT NOT NULL, project TEXT NOT NULL, sent INTEGER NOT NULL,
  refused INTEGER NOT NULL, error TEXT, took INTEGER NOT NULL);
CREATE TRIGGER outbox_of_story AFTER INSERT ON checkpoints
WHEN EXISTS(SELECT 1 FROM remotes WHERE project_id=NEW.project_id) BEGIN
  INSERT INTO outbox(project_id, kind, name, state, added_at)
    VALUES(NEW.project_id, 'commit', NEW.sha, 'local', unixepoch() * 1000)
    ON CONFLICT(project_id, kind, name) DO UPDATE SET
      state=CASE WHEN state IN ('sent', 'refused') THEN 'waits' ELSE state END, next_at=0, error=NULL; END;
CREATE TRIGGER outbox_of_no_story AFTER DELETE ON checkpoints
WHEN EXISTS(SELECT 1 FROM remotes WHERE project_id=OLD.project_id) BEGIN
  UPDATE outbox SET state=CASE WHEN state IN ('sent', 'refused') THEN 'waits' ELSE state END, next_at=0
    WHERE project_id=OLD.project_id AND kind='commit' AND name=OLD.sha; END;
"""

# What agents asked to be allowed and who answered, one row for each request, made of events and
# signals: see story/approval_log.py. What is forgotten there is forgotten here.
_M028 = """
CREATE TABLE approvals(
  id INTEGER PRIMARY KEY, agent TEXT NOT NULL, session_id TEXT NOT NULL, asked_at INTEGER NOT NULL,
  decision TEXT NOT NULL, answered_by TEXT NOT NULL, body BLOB NOT NULL);
CREATE INDEX approvals_of_session ON approvals(agent, session_id);
CREATE INDEX approvals_newest ON approvals(asked_at);
CREATE INDEX approvals_waiting ON approvals(asked_at) WHERE decision='waiting';
CREATE TABLE approval_scans(session_id INTEGER PRIMARY KEY, last_seq INTEGER NOT NULL);
CREATE TRIGGER approvals_of_signal AFTER DELETE ON signals WHEN OLD.session_id IS NOT NULL BEGIN
  DELETE FROM approvals WHERE agent=OLD.session_agent AND session_id=OLD.session_id; END;
CREATE TRIGGER approvals_of_deleted AFTER DELETE ON sessions BEGIN
  DELETE FROM approvals WHERE agent=OLD.agent AND session_id=OLD.session_id;
  DELETE FROM approval_scans WHERE session_id=OLD.id; END;
"""

# What the monitor told is among the signals: see model/attention.py.
_M029 = """
CREATE INDEX signals_attention ON signals(at) WHERE event='WhyforAttention';
"""

# What shell commands changed in files, as hooks saw it: few sessions have any.
_M030 = """
CREATE INDEX signals_shell ON signals(session_agent, session_id) WHERE event='ShellEdits';
"""

MIGRATIONS = (
    _M001,
    _M002,
    _M003,
    _M004,
    _M005,
    _M006,
    _M007,
    _M008,
    _M009,
    _M010,
    _M011,
    _M012,
    _M013,
    _M014,
    _M015,
    _M016,
    _M017,
    _M018,
    _M019,
    _M020,
    _M021,
    _M022,
    _M023,
    _M024,
    _M025,
    _M026,
    _M027,
    _M028,
    _M029,
    _M030,
)
_INDEXED = 15  # the version whose search index is made anew
VERSION = len(MIGRATIONS)


def migrate(db: StoreConnection) -> None:
    """Migrate the database to this version, inside the caller's transaction. Raises NewerStore if
    it is newer."""
    version = schema_version(db)
    if version > VERSION:
        raise NewerStore(
            f"the database is of version {version}, this program knows {VERSION}",
            "Upgrade Whyfor: pip install --upgrade whyfor",
        )
    for number in range(version, VERSION):
        db.execute(MIGRATIONS[number])
    if 0 < version < _LISTED:
        fill_listing(db)
    if 0 < version < _INDEXED:
        _tell("Making a new search index for this version of Whyfor. This happens once.")
        index_all(db)
    if 0 < version < _TITLED:
        name_sessions(db)
    if version < VERSION:
        db.pragma("user_version", VERSION)


def _tell(line: str) -> None:
    """Say what takes long to somebody at a terminal, and to nobody else."""
    if raw_stream(stderr=True).isatty() and not options.quiet:
        say(line, stderr=True)


def missing_tables(db: StoreConnection) -> set[str]:
    """Return the tables that this version needs and the database lacks; none unless it is
    damaged."""
    wanted = set(re.findall(r"CREATE (?:VIRTUAL )?TABLE (\w+)", "".join(MIGRATIONS)))
    return wanted - {
        name for (name,) in db.execute("SELECT name FROM sqlite_schema WHERE type='table'")
    }


def schema_version(db: StoreConnection) -> int:
    found = db.pragma("user_version")
    return int(found) if isinstance(found, int) else 0

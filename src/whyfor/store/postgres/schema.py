"""The schema on PostgreSQL, as numbered migrations that only go forward.

Every table with content has two columns more than on SQLite: the project it is of in the team, and
the person who sent it. Row-level security decides by these two alone, for everybody, the owner of
the tables too. Who is a member of what stands in tables that the server's role cannot read: the
functions that do are owned by a role that cannot log in.
"""

from __future__ import annotations

import re

from whyfor.store.postgres.access_schema import NEW_TABLES, accounts_schema, assign_functions
from whyfor.store.postgres.candidate_functions import candidate_schema
from whyfor.store.postgres.change_schema import change_schema
from whyfor.store.postgres.entry_schema import entry_schema
from whyfor.store.postgres.purge_schema import purge_schema
from whyfor.store.postgres.retention_schema import retention_schema
from whyfor.store.postgres.search_functions import marked_search

_PLAIN = "events usage touches docs words passages cards listed long_texts segments unparsed "
_PLAIN += "unknown_types hiding sources sessions places aliases signals commits checkpoints parts "
_PLAIN += "overrides notes leaf_titles marks changes memories observations observation_files "
_PLAIN += "session_commands note_statements changed_commands linked tips acts vectors vector_bits search_sizes"
_OF_FIRST = tuple(_PLAIN.split())
TASKS = ("task_issues", "task_statements", "task_scans", "task_runs")
CONTENT = (*_OF_FIRST, *TASKS)  # of one person each
SHARED = ("projects",)  # of all who are members
EXCHANGED = ("tombstones", "shared_changes")  # of one person each, told to machines
FIRST_ACCOUNTS = ("organisations", "people", "memberships", "team_projects", "project_members")
ACCOUNTS = (*FIRST_ACCOUNTS, *NEW_TABLES)  # of the organisation
_NUMBERED = ("note_statements", "projects", "sessions", "signals", "sources")
SEARCHED = ("words", "passages", "cards", "search_sizes")
APP, FINDER = "whyfor_app", "whyfor_find"
_OWNED = "team_project integer NOT NULL DEFAULT current_project(), person integer NOT NULL DEFAULT current_person()"

_ROLES = f"""
DO $$ BEGIN CREATE ROLE {APP} NOLOGIN NOBYPASSRLS; EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$;
DO $$ BEGIN CREATE ROLE {FINDER} NOLOGIN NOBYPASSRLS; EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$;
GRANT {FINDER} TO CURRENT_USER;
GRANT USAGE ON SCHEMA whyfor TO {APP}, {FINDER};
"""

# Who there is, and what they may. Nobody but the functions below reads these.
_ACCOUNTS = """
CREATE TABLE organisations(
  id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text NOT NULL, created_at bigint NOT NULL);
CREATE TABLE people(
  id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY, email text NOT NULL, name text NOT NULL,
  state text NOT NULL DEFAULT 'active' CHECK(state IN ('active', 'suspended', 'erased')), created_at bigint NOT NULL);
CREATE UNIQUE INDEX people_by_email ON people(lower(email));
CREATE TABLE memberships(
  organisation_id integer NOT NULL REFERENCES organisations(id) ON DELETE CASCADE,
  person_id integer NOT NULL REFERENCES people(id) ON DELETE CASCADE,
  role text NOT NULL CHECK(role IN ('owner', 'admin', 'member')), PRIMARY KEY(organisation_id, person_id));
CREATE TABLE team_projects(
  id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  organisation_id integer NOT NULL REFERENCES organisations(id) ON DELETE CASCADE, name text NOT NULL,
  visibility text NOT NULL DEFAULT 'stories' CHECK(visibility IN ('stories', 'metrics')), created_at bigint NOT NULL,
  UNIQUE(organisation_id, name));
CREATE TABLE project_members(
  team_project integer NOT NULL REFERENCES team_projects(id) ON DELETE CASCADE,
  person_id integer NOT NULL REFERENCES people(id) ON DELETE CASCADE,
  role text NOT NULL CHECK(role IN ('admin', 'member', 'viewer')), PRIMARY KEY(person_id, team_project));
"""

# Who asks, of which project, and what that person may see and write. Each is meant to stand in a
# subquery, which a statement runs once.
_ACCESS = """
CREATE FUNCTION current_person() RETURNS integer LANGUAGE sql STABLE PARALLEL SAFE
  AS $$ SELECT nullif(current_setting('whyfor.person', true), '')::integer $$;
CREATE FUNCTION current_project() RETURNS integer LANGUAGE sql STABLE PARALLEL SAFE
  AS $$ SELECT nullif(current_setting('whyfor.project', true), '')::integer $$;

CREATE FUNCTION joined_projects() RETURNS integer[] LANGUAGE sql STABLE SECURITY DEFINER PARALLEL SAFE
  SET search_path = whyfor, pg_temp AS $$
  SELECT coalesce(array_agg(m.team_project), '{}')
  FROM project_members m
  JOIN people p ON p.id = m.person_id AND p.state = 'active'
  JOIN team_projects t ON t.id = m.team_project
  JOIN memberships o ON o.organisation_id = t.organisation_id AND o.person_id = m.person_id
  WHERE m.person_id = current_person() AND (current_project() IS NULL OR m.team_project = current_project())
$$;
CREATE FUNCTION readable_projects() RETURNS integer[] LANGUAGE sql STABLE SECURITY DEFINER PARALLEL SAFE
  SET search_path = whyfor, pg_temp AS $$
  SELECT coalesce(array_agg(t.id), '{}')
  FROM team_projects t
  WHERE t.id = ANY(joined_projects()) AND t.visibility = 'stories'
    AND coalesce(current_setting('whyfor.writing', true), '') <> 'on'
$$;
CREATE FUNCTION writable_project() RETURNS integer LANGUAGE sql STABLE SECURITY DEFINER PARALLEL SAFE
  SET search_path = whyfor, pg_temp AS $$
  SELECT m.team_project
  FROM project_members m
  WHERE m.person_id = current_person() AND m.team_project = ANY(joined_projects())
    AND m.team_project = current_project() AND m.role IN ('admin', 'member')
    AND current_setting('whyfor.writing', true) = 'on'
$$;
"""

_TABLES = """
CREATE TABLE projects(
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, identity text NOT NULL, evidence text NOT NULL,
  name text NOT NULL, remote text, root_commit text, path text, OWNED, UNIQUE(team_project, identity));
CREATE TABLE places(
  cwd text NOT NULL, project_id bigint NOT NULL, observed_at bigint NOT NULL, OWNED,
  PRIMARY KEY(team_project, person, cwd));
CREATE TABLE aliases(
  path text NOT NULL, identity text NOT NULL, at bigint NOT NULL, OWNED, PRIMARY KEY(team_project, person, path));

CREATE TABLE sources(
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, agent text NOT NULL, path text NOT NULL,
  session_id text NOT NULL, parent text, framing text NOT NULL, sidecar text, cwd text,
  generation bigint NOT NULL DEFAULT 0, position bigint NOT NULL DEFAULT 0, tail bigint NOT NULL DEFAULT 0,
  inode bigint, size bigint, mtime bigint, head_hash text, end_hash text, state text NOT NULL DEFAULT '{}',
  records bigint NOT NULL DEFAULT 0, unparsed bigint NOT NULL DEFAULT 0, error text, OWNED,
  UNIQUE(team_project, person, agent, path));
CREATE INDEX sources_by_session ON sources(session_id);
CREATE TABLE segments(
  source_id bigint NOT NULL, generation bigint NOT NULL, start bigint NOT NULL, stop bigint NOT NULL,
  digest text NOT NULL, observed_at bigint NOT NULL, partial boolean NOT NULL DEFAULT false, gaps text, OWNED,
  PRIMARY KEY(source_id, generation, start));
CREATE INDEX segments_by_digest ON segments(team_project, digest);
CREATE TABLE unparsed(
  source_id bigint NOT NULL, generation bigint NOT NULL, start bigint NOT NULL, size bigint NOT NULL,
  reason text NOT NULL, OWNED, PRIMARY KEY(source_id, generation, start));
CREATE TABLE unknown_types(
  agent text NOT NULL, name text NOT NULL, source_id bigint NOT NULL, records bigint NOT NULL, OWNED,
  PRIMARY KEY(agent, name, source_id));
CREATE TABLE hiding(source_id bigint PRIMARY KEY, body text NOT NULL, OWNED);

CREATE TABLE sessions(
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, agent text NOT NULL, session_id text NOT NULL, parent text,
  subagent text, project_id bigint, cwd text, branch text, title text, title_rank bigint NOT NULL DEFAULT -1,
  version text, forked_from text, started_at bigint, ended_at bigint, last_seq bigint NOT NULL DEFAULT 0,
  turn bigint NOT NULL DEFAULT 0, prompts bigint NOT NULL DEFAULT 0, messages bigint NOT NULL DEFAULT 0,
  tool_calls bigint NOT NULL DEFAULT 0, unparsed bigint NOT NULL DEFAULT 0, models text NOT NULL DEFAULT '[]',
  input bigint, cache_read bigint, cache_write bigint, output bigint, reasoning bigint,
  copied_to bigint NOT NULL DEFAULT 0, restored_from text, copy_of text, copy_kind text,
  own_from bigint NOT NULL DEFAULT 1, original text, cost bigint, unpriced bigint NOT NULL DEFAULT 0, OWNED,
  UNIQUE(team_project, person, agent, session_id));
CREATE INDEX sessions_by_name ON sessions(agent, session_id);
CREATE INDEX sessions_by_time ON sessions(team_project, started_at);
CREATE INDEX sessions_by_parent ON sessions(parent) WHERE parent IS NOT NULL;
CREATE INDEX sessions_lately ON sessions(project_id, ended_at) WHERE parent IS NULL;
CREATE INDEX sessions_forked ON sessions(forked_from) WHERE forked_from IS NOT NULL;
CREATE INDEX sessions_restored ON sessions(restored_from) WHERE restored_from IS NOT NULL;
CREATE INDEX sessions_copied ON sessions(copy_of) WHERE copy_of IS NOT NULL;
CREATE TABLE events(
  id bigint PRIMARY KEY, session_id bigint NOT NULL, key bigint NOT NULL, turn bigint NOT NULL, kind text NOT NULL,
  source text NOT NULL, confidence text NOT NULL, created_at bigint, observed_at bigint NOT NULL,
  actor text NOT NULL, name text, text text NOT NULL, data text, failed boolean NOT NULL DEFAULT false,
  interrupted boolean NOT NULL DEFAULT false, denied boolean NOT NULL DEFAULT false, OWNED);
CREATE UNIQUE INDEX events_by_key ON events(session_id, key);
CREATE INDEX events_asked ON events(session_id, created_at) WHERE kind='user.prompt' AND actor='user';
CREATE INDEX events_returned ON events(session_id, created_at) WHERE kind='tool.result';
CREATE INDEX events_approvals ON events(session_id, created_at)
  WHERE kind IN ('approval.requested', 'approval.resolved');
CREATE INDEX events_wrong ON events(session_id, turn)
  WHERE kind='error' OR interrupted OR kind='approval.resolved' AND denied OR failed AND NOT denied;
CREATE INDEX events_questions ON events(session_id) WHERE kind='question.asked';
CREATE TABLE long_texts(
  id bigint PRIMARY KEY, source_id bigint NOT NULL, generation bigint NOT NULL, at bigint NOT NULL,
  size bigint NOT NULL, lines bigint NOT NULL, OWNED);
CREATE TABLE usage(
  session_id bigint NOT NULL, key bigint NOT NULL, turn bigint NOT NULL, created_at bigint, model text, input bigint,
  cache_read bigint, cache_write bigint, output bigint, reasoning bigint, counts boolean NOT NULL DEFAULT true,
  cache_hour bigint, billed bigint, lump bigint NOT NULL DEFAULT 0, terms text, reported bigint, cost bigint,
  saved bigint, partial bigint NOT NULL DEFAULT 1, priced bigint NOT NULL DEFAULT 0, OWNED,
  PRIMARY KEY(session_id, key));
CREATE INDEX usage_by_key ON usage(key);
CREATE TABLE touches(
  session_id bigint NOT NULL, path text NOT NULL, action text NOT NULL, seq bigint NOT NULL, turn bigint NOT NULL,
  OWNED, PRIMARY KEY(session_id, seq, path, action));
CREATE INDEX touches_by_path ON touches(path) WHERE action='write';
CREATE TABLE leaf_titles(key bigint NOT NULL, title text NOT NULL, OWNED, PRIMARY KEY(team_project, person, key));
CREATE TABLE listed(
  session_id bigint PRIMARY KEY, head bigint NOT NULL, turns bigint NOT NULL, worked bigint NOT NULL, asked bigint,
  failed bigint, files bigint NOT NULL, shown bigint NOT NULL, last_at bigint NOT NULL DEFAULT 0,
  began_at bigint NOT NULL DEFAULT 0, worked_all bigint NOT NULL DEFAULT 0, tokens bigint NOT NULL DEFAULT -1,
  cost bigint NOT NULL DEFAULT -1, unpriced bigint NOT NULL DEFAULT 0, OWNED);
CREATE INDEX listed_by_head ON listed(head);
CREATE INDEX listed_by_last ON listed(team_project, last_at, session_id) WHERE head=session_id;

CREATE TABLE signals(
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, at bigint NOT NULL, agent text NOT NULL, event text NOT NULL,
  cwd text, session_agent text, session_id text, how text, repository text, sha text,
  data text NOT NULL DEFAULT '{}', OWNED);
CREATE INDEX signals_by_session ON signals(session_agent, session_id, at) WHERE session_id IS NOT NULL;
CREATE TABLE acts(session_id bigint PRIMARY KEY, last_seq bigint NOT NULL, body bytea NOT NULL, OWNED);
CREATE TABLE linked(
  project_id bigint NOT NULL, session_id bigint NOT NULL, last_seq bigint NOT NULL, OWNED,
  PRIMARY KEY(project_id, session_id));
CREATE TABLE tips(project_id bigint NOT NULL, shas text NOT NULL, OWNED, PRIMARY KEY(team_project, person, project_id));
CREATE TABLE commits(
  sha text NOT NULL, project_id bigint NOT NULL, authored_at bigint NOT NULL, committed_at bigint NOT NULL,
  reason text, nearby text, OWNED, PRIMARY KEY(team_project, person, sha));
CREATE TABLE checkpoints(
  sha text NOT NULL, id text NOT NULL, project_id bigint NOT NULL, subject text NOT NULL, author text NOT NULL,
  email text NOT NULL, authored_at bigint NOT NULL, committed_at bigint NOT NULL, parents text NOT NULL,
  is_merge boolean NOT NULL, patch_id text, files text NOT NULL, evidence text, confidence text,
  group_root text NOT NULL, superseded_by text, annotation text, squashed_from text NOT NULL DEFAULT '[]', OWNED,
  PRIMARY KEY(team_project, person, sha), UNIQUE(team_project, person, id));
CREATE INDEX checkpoints_by_sha ON checkpoints(sha);
CREATE INDEX checkpoints_by_project ON checkpoints(project_id, committed_at);
CREATE INDEX checkpoints_by_group ON checkpoints(group_root);
CREATE TABLE parts(
  sha text NOT NULL, session_id bigint NOT NULL, evidence text NOT NULL, confidence text NOT NULL, role text NOT NULL,
  cut bigint NOT NULL, first bigint NOT NULL, last bigint NOT NULL, messages bigint NOT NULL,
  new_messages bigint NOT NULL, prompts bigint NOT NULL, turns bigint NOT NULL, continued boolean NOT NULL,
  lines bigint NOT NULL, share double precision, why text NOT NULL, pieces text NOT NULL DEFAULT '[]', OWNED,
  PRIMARY KEY(sha, session_id));
CREATE INDEX parts_by_session ON parts(session_id, cut);
CREATE TABLE overrides(
  sha text NOT NULL, agent text NOT NULL, session_id text NOT NULL, action text NOT NULL, at bigint NOT NULL, OWNED,
  PRIMARY KEY(team_project, person, sha, agent, session_id));
CREATE TABLE notes(
  sha text NOT NULL, at bigint NOT NULL, by text NOT NULL, body text NOT NULL, OWNED,
  PRIMARY KEY(team_project, person, sha, at));
CREATE TABLE marks(name text NOT NULL, value bigint NOT NULL, OWNED, PRIMARY KEY(team_project, person, name));
CREATE TABLE changes(
  id bigint NOT NULL, event bigint, sha text, project_id bigint, sessions text, OWNED,
  PRIMARY KEY(team_project, person, id), UNIQUE(team_project, person, event), UNIQUE(team_project, person, sha));

CREATE TABLE memories(
  session_id bigint PRIMARY KEY, first_seq bigint NOT NULL, last_seq bigint NOT NULL, version bigint NOT NULL,
  summary bytea NOT NULL, OWNED);
CREATE TABLE observations(
  key text NOT NULL, session_id bigint NOT NULL, type text NOT NULL, state text NOT NULL, at bigint,
  body bytea NOT NULL, project_id bigint, branch text, agent text NOT NULL DEFAULT '',
  session_name text NOT NULL DEFAULT '', pinned boolean NOT NULL DEFAULT false, replaces text, OWNED,
  PRIMARY KEY(team_project, person, key));
CREATE INDEX observations_by_key ON observations(key);
CREATE INDEX observations_of_session ON observations(session_id);
CREATE INDEX observations_newest ON observations(team_project, at);
CREATE INDEX observations_replaced ON observations(replaces) WHERE replaces IS NOT NULL;
CREATE TABLE observation_files(
  path text NOT NULL, key text NOT NULL, OWNED, PRIMARY KEY(team_project, person, path, key));
CREATE INDEX observation_files_of_note ON observation_files(key);
CREATE TABLE session_commands(
  session_id bigint NOT NULL, family text NOT NULL, command text NOT NULL, runs bigint NOT NULL, ok bigint NOT NULL,
  failed bigint NOT NULL, last_ok bigint, ok_seq bigint NOT NULL DEFAULT 0, OWNED, PRIMARY KEY(session_id, family));
CREATE TABLE changed_commands(project_id bigint NOT NULL, OWNED, PRIMARY KEY(team_project, person, project_id));
CREATE TABLE note_statements(
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, key text NOT NULL, at bigint NOT NULL, action text NOT NULL,
  agent text NOT NULL, session_id text NOT NULL, body bytea NOT NULL, OWNED,
  UNIQUE(team_project, person, key, at, action));

CREATE TABLE vectors(
  session_id bigint PRIMARY KEY, model text NOT NULL, stale bigint NOT NULL, turns bigint NOT NULL,
  marks bytea NOT NULL, codes bytea NOT NULL, OWNED);
CREATE TABLE vector_bits(session_id bigint PRIMARY KEY, model text NOT NULL, bits bytea NOT NULL, OWNED);

CREATE TABLE docs(
  id bigint PRIMARY KEY, last_seq bigint NOT NULL, turn bigint NOT NULL, created_at bigint, OWNED);
CREATE TABLE words(id bigint PRIMARY KEY, v tsvector NOT NULL, len integer NOT NULL, OWNED);
CREATE TABLE passages(id bigint PRIMARY KEY, v tsvector NOT NULL, len integer NOT NULL, OWNED);
CREATE TABLE cards(id bigint PRIMARY KEY, v tsvector NOT NULL, len integer NOT NULL, OWNED);
CREATE INDEX words_found ON words USING gin(v);
CREATE INDEX passages_found ON passages USING gin(v);
CREATE INDEX cards_found ON cards USING gin(v);
CREATE TABLE search_sizes(
  kind text NOT NULL, texts bigint NOT NULL, tokens bigint NOT NULL, OWNED, PRIMARY KEY(team_project, person, kind));
"""

# What the facets' SQL asks that PostgreSQL calls otherwise, or has not.
_FUNCTIONS = """
CREATE FUNCTION max(bigint, bigint) RETURNS bigint LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
  AS $$ SELECT greatest($1, $2) $$;
CREATE FUNCTION max(text, text) RETURNS text LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
  AS $$ SELECT greatest($1, $2) $$;
CREATE FUNCTION substr(text, bigint, bigint) RETURNS text LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
  AS $$ SELECT substr($1, $2::integer, $3::integer) $$;
CREATE FUNCTION instr(text, text) RETURNS integer LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
  AS $$ SELECT strpos($1, $2) $$;
CREATE FUNCTION count_true(bigint, boolean) RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE
  AS $$ SELECT CASE WHEN $2 IS NULL THEN $1 ELSE coalesce($1, 0) + $2::integer END $$;
CREATE AGGREGATE sum(boolean) (SFUNC = count_true, STYPE = bigint);
CREATE FUNCTION joined_text(text, text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
  AS $$ SELECT CASE WHEN $2 IS NULL THEN $1 WHEN $1 IS NULL THEN $2 ELSE $1 || ',' || $2 END $$;
CREATE AGGREGATE group_concat(text) (SFUNC = joined_text, STYPE = text);
CREATE FUNCTION json_path(text) RETURNS text[] LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
  AS $$ SELECT CASE WHEN $1 LIKE '$.%' THEN string_to_array(substr($1, 3), '.') ELSE ARRAY[$1] END $$;
CREATE FUNCTION json_text(text, text) RETURNS text LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
  AS $$ SELECT $1::json #>> json_path($2) $$;
CREATE FUNCTION json_part(text, text) RETURNS text LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
  AS $$ SELECT ($1::json #> json_path($2))::text $$;
CREATE OPERATOR ->> (LEFTARG = text, RIGHTARG = text, FUNCTION = json_text);
CREATE OPERATOR -> (LEFTARG = text, RIGHTARG = text, FUNCTION = json_part);
CREATE FUNCTION json_extract(text, text) RETURNS text LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
  AS $$ SELECT $1::json #>> json_path($2) $$;
CREATE FUNCTION json_type(text, text) RETURNS text LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
  AS $$ SELECT json_typeof($1::json #> json_path($2)) $$;
CREATE FUNCTION strftime(form text, seconds bigint, text, text) RETURNS text LANGUAGE sql STABLE PARALLEL SAFE
  AS $$ SELECT to_char(to_timestamp(seconds), CASE form WHEN '%Y-%m' THEN 'YYYY-MM' ELSE 'YYYY-MM-DD' END) $$;
CREATE FUNCTION call_text(body text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  WITH RECURSIVE tree(node, place) AS (
    SELECT body::json -> 'input', ARRAY[]::bigint[]
    UNION ALL
    SELECT child.node, tree.place || child.number
    FROM tree, LATERAL (
      SELECT value AS node, ordinality AS number
      FROM json_each(CASE WHEN json_typeof(tree.node) = 'object' THEN tree.node END) WITH ORDINALITY
      UNION ALL
      SELECT value, ordinality
      FROM json_array_elements(CASE WHEN json_typeof(tree.node) = 'array' THEN tree.node END) WITH ORDINALITY) child)
  SELECT coalesce(string_agg(node #>> '{}', chr(10) ORDER BY place), '')
  FROM tree WHERE json_typeof(node) IN ('string', 'number')
$$;
CREATE VIEW event_texts WITH (security_invoker = true) AS
  SELECT id, turn, kind, name, created_at,
    CASE WHEN kind<>'tool.call' OR text<>'' OR data IS NULL THEN text ELSE call_text(data) END AS text
  FROM events;
CREATE VIEW injections WITH (security_invoker = true) AS
  SELECT id, at, session_agent, session_id, json_part(data, '$.memory') AS told
  FROM signals WHERE json_part(data, '$.memory') IS NOT NULL;
"""

# A new title or commit makes a session's card anew; of a link that is gone nothing stays. How many
# texts and words an index has is counted as they come and go.
_TRIGGERS = """
CREATE FUNCTION renew_card() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  UPDATE memories SET version=0 WHERE session_id=(CASE TG_TABLE_NAME WHEN 'sessions' THEN to_jsonb(NEW) ->> 'id'
    ELSE to_jsonb(NEW) ->> 'session_id' END)::bigint;
  RETURN NULL; END $$;
CREATE FUNCTION drop_card() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  UPDATE memories SET version=0 WHERE session_id=OLD.session_id;
  DELETE FROM cards WHERE id=OLD.session_id;
  RETURN NULL; END $$;
CREATE TRIGGER card_of_title AFTER UPDATE OF title ON sessions FOR EACH ROW
  WHEN (OLD.title IS DISTINCT FROM NEW.title) EXECUTE FUNCTION renew_card();
CREATE TRIGGER card_of_link AFTER INSERT ON parts FOR EACH ROW EXECUTE FUNCTION renew_card();
CREATE TRIGGER card_of_unlink AFTER DELETE ON parts FOR EACH ROW EXECUTE FUNCTION drop_card();
CREATE FUNCTION note_commands() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  INSERT INTO changed_commands SELECT project_id FROM sessions
    WHERE id=(CASE TG_OP WHEN 'DELETE' THEN OLD.session_id ELSE NEW.session_id END) AND project_id IS NOT NULL
    ON CONFLICT DO NOTHING;
  RETURN NULL; END $$;
CREATE FUNCTION move_commands() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  INSERT INTO changed_commands SELECT p FROM (VALUES (OLD.project_id), (NEW.project_id)) AS both_of(p)
    WHERE p IS NOT NULL AND EXISTS(SELECT 1 FROM session_commands WHERE session_id=NEW.id)
    ON CONFLICT DO NOTHING;
  RETURN NULL; END $$;
CREATE TRIGGER commands_counted AFTER INSERT OR DELETE ON session_commands FOR EACH ROW EXECUTE FUNCTION note_commands();
CREATE TRIGGER commands_moved AFTER UPDATE OF project_id ON sessions FOR EACH ROW
  WHEN (OLD.project_id IS DISTINCT FROM NEW.project_id) EXECUTE FUNCTION move_commands();
CREATE FUNCTION count_added() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  INSERT INTO search_sizes AS s (kind, texts, tokens, team_project, person)
    SELECT TG_TABLE_NAME, count(*), sum(len), team_project, person FROM changed GROUP BY team_project, person
    ON CONFLICT(team_project, person, kind)
    DO UPDATE SET texts = s.texts + excluded.texts, tokens = s.tokens + excluded.tokens;
  RETURN NULL; END $$;
CREATE FUNCTION count_removed() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  UPDATE search_sizes s SET texts = s.texts - c.texts, tokens = s.tokens - c.tokens
    FROM (SELECT team_project, person, count(*) AS texts, sum(len) AS tokens FROM changed GROUP BY 1, 2) c
    WHERE s.kind = TG_TABLE_NAME AND s.team_project = c.team_project AND s.person = c.person;
  RETURN NULL; END $$;
"""
_COUNTED = """
CREATE TRIGGER count_added AFTER INSERT ON {table} REFERENCING NEW TABLE AS changed
  FOR EACH STATEMENT EXECUTE FUNCTION count_added();
CREATE TRIGGER count_removed AFTER DELETE ON {table} REFERENCING OLD TABLE AS changed
  FOR EACH STATEMENT EXECUTE FUNCTION count_removed();
"""

# Who may read and write the rows of a table: the members of a project where its words may be read,
# and everybody their own; one writes one's own, in one project.
_VISIBLE = """
  team_project = ANY((SELECT readable_projects())::integer[])
  OR person = (SELECT current_person()) AND team_project = ANY((SELECT joined_projects())::integer[])
"""
_OWN = "person = (SELECT current_person()) AND team_project = (SELECT writable_project())"
_GUARD = """
ALTER TABLE {table} ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY readers ON {table} FOR SELECT TO {app} USING ({visible});
CREATE POLICY authors ON {table} FOR INSERT TO {app} WITH CHECK ({own});
CREATE POLICY changers ON {table} FOR UPDATE TO {app} USING ({own}) WITH CHECK ({own});
CREATE POLICY removers ON {table} FOR DELETE TO {app} USING ({own});
GRANT SELECT, INSERT, UPDATE, DELETE ON {table} TO {app};
"""
_LOCKED = """
ALTER TABLE {table} ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY finder ON {table} FOR SELECT TO {finder} USING (true);
CREATE POLICY keeper ON {table} TO CURRENT_USER USING (true) WITH CHECK (true);
GRANT SELECT ON {table} TO {finder};
"""
_FOUND = """
CREATE POLICY finder ON {table} FOR SELECT TO {finder} USING (true);
GRANT SELECT ON {table} TO {finder};
"""

# A word is looked up by a role that sees every row, because PostgreSQL uses no full text index on
# a table whose policies it must check first. Which rows may be returned is decided inside.
_FIND = """
CREATE FUNCTION found_{table}(query tsquery, most bigint) RETURNS TABLE(id bigint)
  LANGUAGE plpgsql STABLE SECURITY DEFINER ROWS 500 SET search_path = whyfor, pg_temp AS $$ BEGIN
  RETURN QUERY EXECUTE 'SELECT t.id FROM whyfor.{table} t WHERE t.v @@ $1 AND ({mine}) LIMIT $5'
    USING query, readable_projects(), current_person(), joined_projects(), most; END $$;
CREATE FUNCTION count_{table}(query tsquery, most bigint) RETURNS bigint
  LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = whyfor, pg_temp AS $$ DECLARE found bigint; BEGIN
  EXECUTE 'SELECT count(*) FROM (SELECT 1 FROM whyfor.{table} t WHERE t.v @@ $1 AND ({mine}) LIMIT $5) c'
    INTO found USING query, readable_projects(), current_person(), joined_projects(), most;
  RETURN found; END $$;
"""
# Planned anew each time, with what is looked for: a plan for any word would not use the index.
_MINE = "t.team_project = ANY($2) OR t.person = $3 AND t.team_project = ANY($4)"
_VOCABULARY = """
CREATE FUNCTION known_words(beginning text, most bigint, looked_at bigint) RETURNS TABLE(word text)
  LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = whyfor, pg_temp AS $$
  DECLARE readable integer[] := readable_projects(); joined integer[] := joined_projects();
  BEGIN RETURN QUERY
    SELECT substr(s.word, 2) FROM ts_stat(format(
      'SELECT v FROM whyfor.words WHERE team_project = ANY(%L) OR person = %L AND team_project = ANY(%L)
       ORDER BY id DESC LIMIT %s', readable, current_person(), joined, looked_at)) s
    WHERE starts_with(substr(s.word, 2), beginning)
    GROUP BY 1 ORDER BY sum(s.ndoc) DESC, 1 LIMIT most;
  END $$;
"""


def _definers() -> str:
    names = ["joined_projects()", "readable_projects()", "writable_project()"]
    names += ["known_words(text, bigint, bigint)"]
    for table in ("words", "passages", "cards"):
        names += [f"found_{table}(tsquery, bigint)", f"count_{table}(tsquery, bigint)"]
    return _given(*names)


def _given(*names: str) -> str:
    return assign_functions(FINDER, APP, *names)


def _owned_tables(tables: str) -> str:
    """Return the definitions of tables with whose rows they are. Texts are compared byte by byte,
    as SQLite does, whatever the database's own order is."""
    tables = re.sub(r"(?<=\w) text(?= NOT NULL|,|\))", ' text COLLATE "C"', tables)
    return tables.replace("OWNED", _OWNED)


def _first() -> str:
    tables = _owned_tables(_TABLES)
    parts = [_ROLES, _ACCOUNTS, _ACCESS, tables, _FUNCTIONS, _TRIGGERS]
    names = {"app": APP, "finder": FINDER}
    parts += [_COUNTED.format(table=table) for table in ("words", "passages", "cards")]
    parts += [
        _GUARD.format(table=table, visible=_VISIBLE, own=_OWN, **names) for table in _OF_FIRST
    ]
    members = "team_project = ANY((SELECT joined_projects())::integer[])"
    parts += [_GUARD.format(table=table, visible=members, own=_OWN, **names) for table in SHARED]
    parts += [_LOCKED.format(table=table, **names) for table in FIRST_ACCOUNTS]
    parts += [_FOUND.format(table=table, **names) for table in SEARCHED]
    parts += [_FIND.format(table=table, mine=_MINE) for table in ("words", "passages", "cards")]
    parts += [f"GRANT SELECT ON event_texts, injections TO {APP};"]
    parts += [f"GRANT USAGE ON SEQUENCE {table}_id_seq TO {APP};" for table in _NUMBERED]
    parts += [_VOCABULARY, _definers()]
    return "\n".join(parts)


# Whether an object may go: not while anybody of the project still has it.
_USED = """
CREATE POLICY finder ON segments FOR SELECT TO {finder} USING (true);
GRANT SELECT ON segments TO {finder};
CREATE FUNCTION used_digests(digests text[]) RETURNS TABLE(digest text)
  LANGUAGE sql STABLE SECURITY DEFINER SET search_path = whyfor, pg_temp AS $$
  SELECT DISTINCT g.digest FROM segments g
  WHERE g.digest = ANY(digests) AND g.team_project = (SELECT writable_project())
$$;
"""


def _second() -> str:
    return _USED.format(finder=FINDER) + _given("used_digests(text[])")


# Tasks: see the migration of the same name for SQLite.
_TASK_TABLES = """
CREATE TABLE task_issues(
  project text NOT NULL, key text NOT NULL, closed_by text NOT NULL, body bytea NOT NULL, OWNED,
  PRIMARY KEY(team_project, person, project, key));
CREATE INDEX task_issues_closed ON task_issues(closed_by) WHERE closed_by <> '';
CREATE TABLE task_statements(
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, project text NOT NULL, key text NOT NULL,
  at bigint NOT NULL, action text NOT NULL, agent text NOT NULL, session_id text NOT NULL, body bytea NOT NULL, OWNED,
  UNIQUE(team_project, person, key, project, at, action, agent, session_id));
CREATE TABLE task_scans(
  session_id bigint PRIMARY KEY, last_seq bigint NOT NULL, version bigint NOT NULL, OWNED);
CREATE TABLE task_runs(
  session_id bigint NOT NULL, key text NOT NULL, body bytea NOT NULL, OWNED, PRIMARY KEY(session_id, key));
CREATE INDEX task_runs_by_key ON task_runs(team_project, key);
CREATE FUNCTION scan_tasks() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  UPDATE task_scans SET version=0
    WHERE session_id=(CASE TG_OP WHEN 'DELETE' THEN OLD.session_id ELSE NEW.session_id END);
  RETURN NULL; END $$;
CREATE TRIGGER tasks_of_link AFTER INSERT OR DELETE ON parts FOR EACH ROW EXECUTE FUNCTION scan_tasks();
"""


def _third() -> str:
    parts = [_owned_tables(_TASK_TABLES)]
    parts += [_GUARD.format(table=table, visible=_VISIBLE, own=_OWN, app=APP) for table in TASKS]
    parts += [f"GRANT USAGE ON SEQUENCE task_statements_id_seq TO {APP};"]
    return "\n".join(parts)


# What was taken back for good, and what changed for those who keep copies. Nobody may send again
# what anybody of the project has taken back.
_SHARED = """
CREATE TABLE tombstones(
  kind text NOT NULL, name text NOT NULL, at bigint NOT NULL, OWNED,
  PRIMARY KEY(team_project, person, kind, name));
CREATE INDEX tombstones_by_name ON tombstones(team_project, kind, name);
CREATE TABLE shared_changes(
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, kind text NOT NULL, name text NOT NULL, at bigint NOT NULL, OWNED);
CREATE INDEX shared_changes_of_project ON shared_changes(team_project, id);
CREATE INDEX checkpoints_by_patch ON checkpoints(team_project, patch_id) WHERE patch_id IS NOT NULL;
"""
_BURIED = """
CREATE POLICY finder ON tombstones FOR SELECT TO {finder} USING (true);
GRANT SELECT ON tombstones TO {finder};
CREATE FUNCTION buried(wanted text, names text[]) RETURNS TABLE(name text)
  LANGUAGE sql STABLE SECURITY DEFINER SET search_path = whyfor, pg_temp AS $$
  SELECT DISTINCT t.name FROM tombstones t
  WHERE t.kind = wanted AND t.name = ANY(names) AND t.team_project = (SELECT writable_project())
$$;
CREATE FUNCTION people_names(numbers integer[]) RETURNS TABLE(person integer, name text)
  LANGUAGE sql STABLE SECURITY DEFINER SET search_path = whyfor, pg_temp AS $$
  SELECT p.id, CASE p.state WHEN 'erased' THEN 'former member ' || p.id ELSE p.name END FROM people p
  WHERE p.id = ANY(numbers) AND EXISTS(
    SELECT 1 FROM project_members m WHERE m.person_id = p.id AND m.team_project = ANY(joined_projects()))
$$;
"""


def _fourth() -> str:
    tables = re.sub(r"(?<=\w) text(?= NOT NULL|,|\))", ' text COLLATE "C"', _SHARED)
    parts = [tables.replace("OWNED", _OWNED)]
    names = {"app": APP, "finder": FINDER}
    for table in EXCHANGED:
        parts.append(_GUARD.format(table=table, visible=_VISIBLE, own=_OWN, **names))
    parts.append("GRANT USAGE ON SEQUENCE shared_changes_id_seq TO " + APP + ";")
    parts.append(_BURIED.format(finder=FINDER))
    parts.append(_given("buried(text, text[])", "people_names(integer[])"))
    return "\n".join(parts)


def _fifth() -> str:
    return marked_search(_given)


def _sixth() -> str:
    return accounts_schema(APP, FINDER)


def _seventh() -> str:
    return entry_schema(APP, FINDER)


def _eighth() -> str:
    return change_schema()


def _ninth() -> str:
    return purge_schema(APP)


def _tenth() -> str:
    return retention_schema(APP, FINDER)


def _eleventh() -> str:
    return candidate_schema(_given)


MIGRATIONS = (
    *(_first, _second, _third, _fourth, _fifth),
    *(_sixth, _seventh, _eighth, _ninth, _tenth, _eleventh),
)
VERSION = len(MIGRATIONS)

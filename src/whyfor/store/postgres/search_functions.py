"""What looks words up on PostgreSQL, as functions of a role that sees every row.

PostgreSQL uses no full text index on a table whose policies it must check first. So these functions
decide inside which rows may be returned, by the same rule as the policies. A row's vector also has
a mark of its project: the index then leaves out what is of other projects, and what a search costs
depends on the size of the projects that are searched, not on the size of the database.
"""

from __future__ import annotations

from collections.abc import Callable

TABLES = ("words", "passages", "cards")
MINE = "t.team_project = ANY($2) OR t.person = $3 AND t.team_project = ANY($4)"
WHO = "readable_projects(), current_person(), joined_projects()"
# Planned anew each time, with what is looked for. Reading the whole table always looks cheaper than
# it is: vectors are stored beside it, packed.
HOW = """LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = whyfor, pg_temp
  SET enable_seqscan = off"""

_MARKS = """
CREATE FUNCTION project_marks() RETURNS tsquery LANGUAGE sql STABLE SECURITY DEFINER
  SET search_path = whyfor, pg_temp AS $$
  SELECT string_agg('''#' || p || '''', ' | ')::tsquery FROM unnest(joined_projects()) p
$$;
CREATE FUNCTION mark_project() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  NEW.v := NEW.v || ('#' || NEW.team_project)::tsvector;
  RETURN NEW; END $$;
"""
_MARKED = """
ALTER TABLE {table} NO FORCE ROW LEVEL SECURITY;
UPDATE {table} SET v = v || ('#' || team_project)::tsvector;
ALTER TABLE {table} FORCE ROW LEVEL SECURITY;
CREATE TRIGGER mark_project BEFORE INSERT ON {table} FOR EACH ROW EXECUTE FUNCTION mark_project();
"""
_OF_TABLE = """
CREATE OR REPLACE FUNCTION found_{table}(query tsquery, most bigint) RETURNS TABLE(id bigint)
  ROWS 500 {how} AS $$ BEGIN
  RETURN QUERY EXECUTE 'SELECT t.id FROM whyfor.{table} t WHERE t.v @@ $1 AND ({mine}) LIMIT $5'
    USING project_marks() && query, {who}, most; END $$;
CREATE FUNCTION best_{table}(query tsquery, most bigint, ranked bigint)
  RETURNS TABLE(id bigint, v tsvector, len integer, rank real) ROWS 400 {how} AS $$ BEGIN
  RETURN QUERY EXECUTE '
    WITH hits AS MATERIALIZED (
      SELECT t.id, t.v, t.len FROM whyfor.{table} t WHERE t.v @@ $1 AND ({mine}) LIMIT $5)
    SELECT h.id, h.v, h.len, ts_rank(h.v, $6) FROM hits h ORDER BY 4 DESC, 1 LIMIT $7'
    USING project_marks() && query, {who}, most, query, ranked; END $$;
CREATE FUNCTION counts_{table}(queries tsquery[], most bigint) RETURNS bigint[] {how} AS $$
  DECLARE found bigint; counts bigint[] := '{{}}'; query tsquery; BEGIN
  FOREACH query IN ARRAY queries LOOP
    EXECUTE '
      SELECT count(*) FROM (
        SELECT 1 FROM whyfor.{table} t WHERE t.v @@ $1 AND ({mine}) LIMIT $5) c'
      INTO found USING project_marks() && query, {who}, most;
    counts := counts || found;
  END LOOP;
  RETURN counts; END $$;
"""
_VOCABULARY = """
CREATE OR REPLACE FUNCTION known_words(beginning text, most bigint, looked_at bigint)
  RETURNS TABLE(word text) {how} AS $$
  DECLARE readable integer[] := readable_projects(); joined integer[] := joined_projects();
  BEGIN RETURN QUERY
    SELECT substr(s.word, 2) FROM ts_stat(format(
      'WITH hits AS MATERIALIZED (
         SELECT t.id, t.v FROM whyfor.words t
         WHERE t.v @@ %L::tsquery
           AND (t.team_project = ANY(%L) OR t.person = %L AND t.team_project = ANY(%L))
         LIMIT 20000)
       SELECT v FROM hits ORDER BY id DESC LIMIT %s',
      project_marks(), readable, current_person(), joined, looked_at)) s
    WHERE starts_with(substr(s.word, 2), beginning) AND NOT starts_with(s.word, '#')
    GROUP BY 1 ORDER BY sum(s.ndoc) DESC, 1 LIMIT most;
  END $$;
"""


def marked_search(given: Callable[..., str]) -> str:
    """The migration that marks vectors with their project, and looks up by these marks. `given`
    hands functions to the role that sees every row."""
    parts = [_MARKS]
    parts += [_MARKED.format(table=table) for table in TABLES]
    parts += [_OF_TABLE.format(table=table, how=HOW, mine=MINE, who=WHO) for table in TABLES]
    names = ["project_marks()"]
    for table in TABLES:
        names += [f"best_{table}(tsquery, bigint, bigint)", f"counts_{table}(tsquery[], bigint)"]
    return "\n".join([*parts, _VOCABULARY.format(how=HOW), given(*names)])

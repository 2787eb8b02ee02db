"""Which texts are ranked when more have the words of a query than can be.

The index returns what it finds in the order in which it was stored. So what is looked for first is
told: queries that each find the likely best, one after the other, until there are enough. Of each,
the newest are taken.
"""

from __future__ import annotations

from collections.abc import Callable

from whyfor.store.postgres.search_functions import HOW, MINE, TABLES, WHO

LOOKED_AT = 20_000  # texts that one query is followed to
_OF_TABLE = """
CREATE FUNCTION likely_{table}(queries tsquery[], most bigint) RETURNS bigint[] {how} AS $$
  DECLARE ids bigint[] := '{{}}'; more bigint[]; query tsquery; marks tsquery := project_marks(); BEGIN
  FOREACH query IN ARRAY queries LOOP
    EXECUTE '
      WITH hits AS MATERIALIZED (
        SELECT t.id FROM whyfor.{table} t WHERE t.v @@ $1 AND ({mine}) LIMIT {looked})
      SELECT coalesce(array_agg(c.id), ''{{}}'') FROM (
        SELECT h.id FROM hits h WHERE h.id <> ALL($5) ORDER BY h.id DESC LIMIT $6) c'
      INTO more USING marks && query, {who}, ids, most - cardinality(ids);
    ids := ids || more;
    EXIT WHEN cardinality(ids) >= most;
  END LOOP;
  RETURN ids; END $$;
CREATE FUNCTION top_{table}(queries tsquery[], rank_by tsquery, most bigint, ranked bigint)
  RETURNS TABLE(id bigint, v tsvector, len integer, rank real) ROWS 400 {how} AS $$ BEGIN
  RETURN QUERY SELECT t.id, t.v, t.len, ts_rank(t.v, rank_by) FROM {table} t
    WHERE t.id = ANY(likely_{table}(queries, most)) ORDER BY 4 DESC, 1 LIMIT ranked; END $$;
"""


def candidate_schema(given: Callable[..., str]) -> str:
    """The migration. `given` hands functions to the role that sees every row."""
    parts = [
        _OF_TABLE.format(table=table, how=HOW, mine=MINE, who=WHO, looked=LOOKED_AT)
        for table in TABLES
    ]
    names = []
    for table in TABLES:
        names.append(f"likely_{table}(tsquery[], bigint)")
        names.append(f"top_{table}(tsquery[], tsquery, bigint, bigint)")
    return "\n".join([*parts, given(*names)])

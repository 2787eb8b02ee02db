"""Deleting a project whose time to be kept is over.

The role that does it sees rows of such projects only: whatever it was made to do, it could not
touch others.
"""

from __future__ import annotations

from whyfor.store.postgres.access_schema import KEEPER, assign_functions

_DUE = """
CREATE FUNCTION due_projects() RETURNS integer[] LANGUAGE sql STABLE SECURITY DEFINER
  SET search_path = whyfor, pg_temp AS $$
  SELECT coalesce(array_agg(t.id ORDER BY t.delete_at), '{}') FROM team_projects t
  WHERE t.delete_at <= extract(epoch FROM clock_timestamp()) * 1000
$$;
"""
# Every table with rows of projects, but for who is a member, which goes with the project, and the
# audit log, which stays. A table that is added later needs its own such policy.
_POLICIES = """
DO $$ DECLARE name text; BEGIN
  FOR name IN SELECT * FROM project_tables() LOOP
    EXECUTE format('CREATE POLICY purger ON %I TO {keeper}
      USING (team_project = ANY((SELECT due_projects())::integer[]))
      WITH CHECK (team_project = ANY((SELECT due_projects())::integer[]))', name);
    EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON %I TO {keeper}', name);
  END LOOP; END $$;
"""
_TABLES = """
CREATE FUNCTION project_tables() RETURNS TABLE(name text) LANGUAGE sql STABLE AS $$
  SELECT c.relname::text FROM pg_class c
  JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'team_project' AND NOT a.attisdropped
  WHERE c.relnamespace = 'whyfor'::regnamespace AND c.relkind = 'r'
    AND c.relname NOT IN ('project_members', 'audit')
  ORDER BY c.relname <> 'sessions', c.relname
$$;
"""
# Sessions go first, so that nothing is counted anew for them.
_PURGE = """
CREATE FUNCTION purge_project(project integer) RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER
  SET search_path = whyfor, pg_temp AS $$
  DECLARE name text; BEGIN
    IF NOT project = ANY(due_projects()) THEN RETURN false; END IF;
    FOR name IN SELECT * FROM project_tables() LOOP
      EXECUTE format('DELETE FROM whyfor.%I WHERE team_project = $1', name) USING project;
    END LOOP;
    DELETE FROM team_projects t WHERE t.id = project;
    RETURN true;
  END $$;
GRANT DELETE ON team_projects TO {keeper};
"""


def purge_schema(app: str) -> str:
    """Return the migration."""
    text = (_DUE + _TABLES + _POLICIES + _PURGE).replace("{keeper}", KEEPER)
    return text + assign_functions(KEEPER, app, "due_projects()", "purge_project(integer)")

"""How long a project keeps what was sent to it.

Sessions are deleted in the name of the person who sent them, by the code that deletes what a person
takes back, also if that person has left. The scope that allows it reaches the rows of one person in
one project, and only while the project has a time after which it keeps nothing.
"""

from __future__ import annotations

from whyfor.store.postgres.access_schema import assign_functions

_DEFINER = "SECURITY DEFINER SET search_path = whyfor, pg_temp"
_FORCE = "t.retention_days IS NOT NULL AND coalesce(t.retention_from, 0) <= {moment}"
_NOW = "extract(epoch FROM clock_timestamp()) * 1000"

_SCOPE = f"""
ALTER TABLE team_projects ADD COLUMN retention_from bigint;
GRANT UPDATE(retention_from) ON team_projects TO {{app}};
CREATE FUNCTION expiring_project() RETURNS integer LANGUAGE sql STABLE PARALLEL SAFE {_DEFINER} AS $$
  SELECT t.id FROM team_projects t
  WHERE current_setting('whyfor.writing', true) = 'expire' AND t.id = current_project()
    AND {_FORCE.format(moment=_NOW)}
$$;
CREATE OR REPLACE FUNCTION joined_projects() RETURNS integer[] LANGUAGE sql STABLE PARALLEL SAFE
  {_DEFINER} AS $$
  SELECT coalesce(array_agg(m.team_project), '{{}}') || array_remove(ARRAY[expiring_project()], NULL)
  FROM project_members m
  JOIN people p ON p.id = m.person_id AND p.state = 'active'
  JOIN team_projects t ON t.id = m.team_project
  JOIN memberships o ON o.organisation_id = t.organisation_id AND o.person_id = m.person_id
  WHERE m.person_id = current_person() AND (current_project() IS NULL OR m.team_project = current_project())
    AND (current_projects() IS NULL OR m.team_project = ANY(current_projects()))
$$;
CREATE OR REPLACE FUNCTION readable_projects() RETURNS integer[] LANGUAGE sql STABLE PARALLEL SAFE
  {_DEFINER} AS $$
  SELECT coalesce(array_agg(t.id), '{{}}')
  FROM team_projects t
  WHERE t.id = ANY(joined_projects()) AND t.visibility = 'stories'
    AND coalesce(current_setting('whyfor.writing', true), '') = ''
$$;
CREATE OR REPLACE FUNCTION writable_project() RETURNS integer LANGUAGE sql STABLE PARALLEL SAFE
  {_DEFINER} AS $$
  SELECT coalesce(expiring_project(), (
    SELECT m.team_project
    FROM project_members m
    WHERE m.person_id = current_person() AND m.team_project = ANY(joined_projects())
      AND m.team_project = current_project() AND m.role IN ('admin', 'member')
      AND current_setting('whyfor.writing', true) = 'on'))
$$;
"""
# A session is as old as its last event; one without times is as old as what was received of it.
_EXPIRED = f"""
CREATE POLICY finder ON sources FOR SELECT TO {{finder}} USING (true);
GRANT SELECT ON sources TO {{finder}};
CREATE FUNCTION session_age(s sessions) RETURNS bigint LANGUAGE sql STABLE AS $$
  SELECT coalesce(s.ended_at, s.started_at, (
    SELECT max(g.observed_at) FROM sources o JOIN segments g ON g.source_id = o.id
    WHERE o.team_project = s.team_project AND o.person = s.person AND o.agent = s.agent
      AND o.session_id = s.session_id))
$$;
CREATE FUNCTION expired_sessions(moment bigint, most bigint)
  RETURNS TABLE(project integer, person integer, agent text, session_id text)
  LANGUAGE sql STABLE {_DEFINER} AS $$
  SELECT s.team_project, s.person, s.agent, s.session_id
  FROM team_projects t JOIN sessions s ON s.team_project = t.id
  WHERE {_FORCE.format(moment="moment")} AND s.parent IS NULL
    AND session_age(s) < moment - t.retention_days * 86400000::bigint
  ORDER BY 1, 2, 3, 4 LIMIT most
$$;
CREATE FUNCTION count_older(project integer, before bigint) RETURNS bigint
  LANGUAGE sql STABLE {_DEFINER} AS $$
  SELECT count(*) FROM sessions s
  WHERE s.team_project = project AND project = ANY(managed_projects()) AND s.parent IS NULL
    AND session_age(s) < before
$$;
"""


def retention_schema(app: str, finder: str) -> str:
    """Return the migration."""
    text = (_SCOPE + _EXPIRED).replace("{app}", app).replace("{finder}", finder)
    names = ["expiring_project()", "expired_sessions(bigint, bigint)"]
    return text + assign_functions(finder, app, *names, "count_older(integer, bigint)")

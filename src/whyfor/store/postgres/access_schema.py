"""The schema of accounts: tokens, passkeys, invitations, the audit log, and who may read them.

The server's role reads and changes accounts under policies as well: a person sees the people of
their own projects, an admin those of the organisation. What has to be asked before anybody is
known, such as whose a token is, is answered by functions of a role that cannot log in. Hashes of
tokens and links are in columns that the server's role cannot read.
"""

from __future__ import annotations

KEEPER = "whyfor_keep"

_ROLE = """
DO $$ BEGIN CREATE ROLE {keeper} NOLOGIN NOBYPASSRLS; EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$;
GRANT {keeper} TO CURRENT_USER;
GRANT USAGE ON SCHEMA whyfor TO {keeper};
"""

_TABLES = """
ALTER TABLE team_projects
  ADD COLUMN retention_days integer CHECK(retention_days > 0), ADD COLUMN quota_bytes bigint CHECK(quota_bytes > 0),
  ADD COLUMN taking boolean NOT NULL DEFAULT true, ADD COLUMN delete_at bigint;

CREATE TABLE tokens(
  id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY, hash bytea NOT NULL UNIQUE CHECK(length(hash) = 32),
  person_id integer NOT NULL REFERENCES people(id) ON DELETE CASCADE,
  kind text NOT NULL CHECK(kind IN ('web', 'device', 'personal', 'ci')), name text NOT NULL,
  beginning text NOT NULL DEFAULT '',
  scopes text[] NOT NULL CHECK(scopes <@ ARRAY['read', 'write', 'admin']), projects integer[],
  created_at bigint NOT NULL, expires_at bigint NOT NULL, last_used_at bigint, revoked_at bigint,
  CHECK(expires_at <= created_at + 31622400000 OR kind = 'device'));
CREATE INDEX tokens_of_person ON tokens(person_id);
CREATE TABLE passkeys(
  id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY, credential_id bytea NOT NULL UNIQUE,
  person_id integer NOT NULL REFERENCES people(id) ON DELETE CASCADE, public_key bytea NOT NULL,
  sign_count bigint NOT NULL DEFAULT 0, name text NOT NULL, created_at bigint NOT NULL, last_used_at bigint);
CREATE INDEX passkeys_of_person ON passkeys(person_id);
CREATE TABLE identities(
  issuer text NOT NULL, subject text NOT NULL, person_id integer NOT NULL REFERENCES people(id) ON DELETE CASCADE,
  created_at bigint NOT NULL, PRIMARY KEY(issuer, subject));
CREATE TABLE invites(
  id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY, hash bytea NOT NULL UNIQUE CHECK(length(hash) = 32),
  organisation_id integer NOT NULL REFERENCES organisations(id) ON DELETE CASCADE,
  person_id integer REFERENCES people(id) ON DELETE CASCADE, email text,
  role text NOT NULL CHECK(role IN ('owner', 'admin', 'member')),
  projects integer[] NOT NULL DEFAULT '{}', project_role text CHECK(project_role IN ('admin', 'member', 'viewer')),
  created_by integer REFERENCES people(id) ON DELETE SET NULL, created_at bigint NOT NULL, expires_at bigint NOT NULL,
  used_by integer REFERENCES people(id) ON DELETE SET NULL, used_at bigint, withdrawn_at bigint);
CREATE TABLE challenges(
  hash bytea PRIMARY KEY, purpose text NOT NULL, person_id integer REFERENCES people(id) ON DELETE CASCADE,
  expires_at bigint NOT NULL);
CREATE TABLE device_codes(
  hash bytea PRIMARY KEY, user_code text NOT NULL UNIQUE, name text NOT NULL, ip text NOT NULL, scopes text[] NOT NULL,
  person_id integer REFERENCES people(id) ON DELETE CASCADE,
  state text NOT NULL DEFAULT 'pending' CHECK(state IN ('pending', 'approved', 'denied', 'used')),
  created_at bigint NOT NULL, expires_at bigint NOT NULL, polled_at bigint, interval_ms bigint NOT NULL DEFAULT 5000);
CREATE TABLE audit(
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, organisation_id integer NOT NULL, at bigint NOT NULL,
  person_id integer, token_id integer, ip text NOT NULL,
  did text NOT NULL CHECK(did IN ('looked', 'sent', 'changed', 'refused', 'signed in')), action text NOT NULL,
  team_project integer,
  object text NOT NULL, outcome text NOT NULL, previous bytea NOT NULL, hash bytea NOT NULL);
CREATE INDEX audit_newest ON audit(organisation_id, id);
CREATE UNLOGGED TABLE counters(
  key text NOT NULL, started bigint NOT NULL, used bigint NOT NULL, PRIMARY KEY(key, started));
"""

# Who asks, and whom and what that person may manage.
_ACCESS = """
CREATE FUNCTION current_projects() RETURNS integer[] LANGUAGE sql STABLE PARALLEL SAFE
  AS $$ SELECT string_to_array(nullif(current_setting('whyfor.only', true), ''), ',')::integer[] $$;
CREATE OR REPLACE FUNCTION joined_projects() RETURNS integer[] LANGUAGE sql STABLE SECURITY DEFINER PARALLEL SAFE
  SET search_path = whyfor, pg_temp AS $$
  SELECT coalesce(array_agg(m.team_project), '{}')
  FROM project_members m
  JOIN people p ON p.id = m.person_id AND p.state = 'active'
  JOIN team_projects t ON t.id = m.team_project
  JOIN memberships o ON o.organisation_id = t.organisation_id AND o.person_id = m.person_id
  WHERE m.person_id = current_person() AND (current_project() IS NULL OR m.team_project = current_project())
    AND (current_projects() IS NULL OR m.team_project = ANY(current_projects()))
$$;
CREATE FUNCTION organisations_as(roles text[]) RETURNS integer[] LANGUAGE sql STABLE SECURITY DEFINER PARALLEL SAFE
  SET search_path = whyfor, pg_temp AS $$
  SELECT coalesce(array_agg(o.organisation_id), '{}')
  FROM memberships o JOIN people p ON p.id = o.person_id AND p.state = 'active'
  WHERE o.person_id = current_person() AND o.role = ANY(roles)
$$;
CREATE FUNCTION managed_projects() RETURNS integer[] LANGUAGE sql STABLE SECURITY DEFINER PARALLEL SAFE
  SET search_path = whyfor, pg_temp AS $$
  SELECT coalesce(array_agg(t.id), '{}')
  FROM team_projects t
  WHERE (current_project() IS NULL OR t.id = current_project())
    AND (current_projects() IS NULL OR t.id = ANY(current_projects()))
    AND (t.organisation_id = ANY(organisations_as('{owner,admin}')) OR t.id = ANY(joined_projects())
      AND EXISTS(SELECT 1 FROM project_members m
        WHERE m.team_project = t.id AND m.person_id = current_person() AND m.role = 'admin'))
$$;
CREATE FUNCTION managed_people() RETURNS integer[] LANGUAGE sql STABLE SECURITY DEFINER PARALLEL SAFE
  SET search_path = whyfor, pg_temp AS $$
  SELECT coalesce(array_agg(o.person_id), '{}')
  FROM memberships o
  WHERE o.person_id <> current_person() AND (o.organisation_id = ANY(organisations_as('{owner}'))
    OR o.role <> 'owner' AND o.organisation_id = ANY(organisations_as('{admin}')))
$$;
CREATE FUNCTION known_people() RETURNS integer[] LANGUAGE sql STABLE SECURITY DEFINER PARALLEL SAFE
  SET search_path = whyfor, pg_temp AS $$
  SELECT coalesce(array_agg(p.id), '{}') FROM people p
  WHERE p.id IN (
    SELECT q.id FROM people q WHERE q.id = current_person() AND q.state = 'active'
    UNION SELECT m.person_id FROM project_members m
      WHERE m.team_project = ANY(joined_projects() || managed_projects())
    UNION SELECT o.person_id FROM memberships o WHERE o.organisation_id = ANY(organisations_as('{owner,admin}')))
$$;
CREATE FUNCTION is_colleague(person integer, project integer) RETURNS boolean
  LANGUAGE sql STABLE SECURITY DEFINER PARALLEL SAFE SET search_path = whyfor, pg_temp AS $$
  SELECT EXISTS(SELECT 1 FROM team_projects t
    JOIN memberships o ON o.organisation_id = t.organisation_id AND o.person_id = person
    WHERE t.id = project)
$$;
"""

# Whose a token is. A browser's session ends when it was not used for 12 hours; a device's lives
# for 90 days after its last use.
_AUTHENTICATE = """
CREATE FUNCTION authenticate_token(digest bytea, moment bigint)
  RETURNS TABLE(person integer, name text, email text, organisation integer, role text,
    token integer, kind text, scopes text[], projects integer[], expires_at bigint)
  LANGUAGE plpgsql SECURITY DEFINER SET search_path = whyfor, pg_temp AS $$
  DECLARE found tokens%ROWTYPE;
  BEGIN
    SELECT * INTO found FROM tokens t
      WHERE t.hash = digest AND t.revoked_at IS NULL AND t.expires_at > moment
        AND (t.kind <> 'web' OR coalesce(t.last_used_at, t.created_at) > moment - 43200000);
    IF found.id IS NULL THEN RETURN; END IF;
    IF coalesce(found.last_used_at, 0) < moment - 60000 THEN
      UPDATE tokens t SET last_used_at = moment,
          expires_at = CASE t.kind WHEN 'device' THEN moment + 7776000000 ELSE t.expires_at END
        WHERE t.id = found.id;
    END IF;
    RETURN QUERY SELECT p.id, p.name, p.email, o.organisation_id, o.role,
        found.id, found.kind, found.scopes, found.projects, found.expires_at
      FROM people p JOIN memberships o ON o.person_id = p.id
      WHERE p.id = found.person_id AND p.state = 'active' ORDER BY o.organisation_id LIMIT 1;
  END $$;
"""

# Of what is cached or streamed, everybody is told that it may have ended.
_TOLD = """
CREATE FUNCTION tell_access() RETURNS trigger LANGUAGE plpgsql AS $$
  DECLARE gone jsonb := to_jsonb(OLD); BEGIN
  PERFORM pg_notify('whyfor_access', CASE TG_TABLE_NAME
    WHEN 'people' THEN 'person ' || (gone ->> 'id')
    WHEN 'team_projects' THEN 'project ' || (gone ->> 'id')
    ELSE 'person ' || (gone ->> 'person_id') END);
  RETURN NULL; END $$;
CREATE TRIGGER told AFTER UPDATE OF revoked_at OR DELETE ON tokens FOR EACH ROW EXECUTE FUNCTION tell_access();
CREATE TRIGGER told AFTER UPDATE OF state OR DELETE ON people FOR EACH ROW EXECUTE FUNCTION tell_access();
CREATE TRIGGER told AFTER UPDATE OR DELETE ON memberships FOR EACH ROW EXECUTE FUNCTION tell_access();
CREATE TRIGGER told AFTER UPDATE OR DELETE ON project_members FOR EACH ROW EXECUTE FUNCTION tell_access();
CREATE TRIGGER told AFTER UPDATE OR DELETE ON team_projects FOR EACH ROW EXECUTE FUNCTION tell_access();
"""

NEW_TABLES = tuple(
    "tokens passkeys identities invites challenges device_codes audit counters".split()
)
_FORCE = """
ALTER TABLE {table} ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY owner ON {table} TO CURRENT_USER USING (true) WITH CHECK (true);
"""
_KEPT = "CREATE POLICY keeper_role ON {table} TO {keeper} USING (true) WITH CHECK (true);"

_MANAGED_ORGANISATION = (
    "organisation_id = ANY((SELECT organisations_as('{owner,admin}'))::integer[])"
)
_OWNED_ORGANISATION = "organisation_id = ANY((SELECT organisations_as('{owner}'))::integer[])"
_MANAGED_PROJECT = "team_project = ANY((SELECT managed_projects())::integer[])"
_SELF = (
    "person_id = (SELECT current_person()) AND person_id = ANY((SELECT known_people())::integer[])"
)
_MANAGED_PERSON = "person_id = ANY((SELECT managed_people())::integer[])"
_OWNER_ROLE = f"(role <> 'owner' OR {_OWNED_ORGANISATION})"

_POLICIES = f"""
CREATE POLICY members ON organisations FOR SELECT TO whyfor_app
  USING (id = ANY((SELECT organisations_as('{{owner,admin,member}}'))::integer[]));
GRANT SELECT ON organisations TO whyfor_app;

CREATE POLICY known ON people FOR SELECT TO whyfor_app USING (id = ANY((SELECT known_people())::integer[]));
CREATE POLICY managers ON people FOR UPDATE TO whyfor_app USING (id = ANY((SELECT managed_people())::integer[]));
GRANT SELECT, UPDATE(state) ON people TO whyfor_app;

CREATE POLICY known ON memberships FOR SELECT TO whyfor_app
  USING (person_id = ANY((SELECT known_people())::integer[])
    AND organisation_id = ANY((SELECT organisations_as('{{owner,admin,member}}'))::integer[]));
CREATE POLICY managers ON memberships FOR UPDATE TO whyfor_app
  USING ({_MANAGED_PERSON} AND {_MANAGED_ORGANISATION}) WITH CHECK ({_MANAGED_ORGANISATION} AND {_OWNER_ROLE});
GRANT SELECT, UPDATE(role) ON memberships TO whyfor_app;

CREATE POLICY members ON team_projects FOR SELECT TO whyfor_app
  USING (id = ANY((SELECT joined_projects())::integer[]) OR id = ANY((SELECT managed_projects())::integer[]));
CREATE POLICY managers ON team_projects FOR UPDATE TO whyfor_app
  USING (id = ANY((SELECT managed_projects())::integer[]));
GRANT SELECT, UPDATE(name, visibility, retention_days, quota_bytes, taking, delete_at) ON team_projects TO whyfor_app;

CREATE POLICY members ON project_members FOR SELECT TO whyfor_app
  USING (team_project = ANY((SELECT joined_projects())::integer[]) OR {_MANAGED_PROJECT});
CREATE POLICY managers ON project_members FOR INSERT TO whyfor_app
  WITH CHECK ({_MANAGED_PROJECT} AND person_id <> (SELECT current_person()) AND is_colleague(person_id, team_project));
CREATE POLICY changers ON project_members FOR UPDATE TO whyfor_app
  USING ({_MANAGED_PROJECT} AND person_id <> (SELECT current_person()))
  WITH CHECK ({_MANAGED_PROJECT} AND person_id <> (SELECT current_person()));
CREATE POLICY removers ON project_members FOR DELETE TO whyfor_app
  USING ({_MANAGED_PROJECT} OR person_id = (SELECT current_person())
    AND team_project = ANY((SELECT joined_projects())::integer[]));
GRANT SELECT, INSERT, UPDATE(role), DELETE ON project_members TO whyfor_app;

CREATE POLICY known ON tokens FOR SELECT TO whyfor_app USING ({_SELF} OR {_MANAGED_PERSON});
CREATE POLICY own ON tokens FOR INSERT TO whyfor_app WITH CHECK ({_SELF});
CREATE POLICY revokers ON tokens FOR UPDATE TO whyfor_app USING ({_SELF} OR {_MANAGED_PERSON});
GRANT SELECT(id, person_id, kind, name, beginning, scopes, projects, created_at, expires_at, last_used_at, revoked_at),
  INSERT, UPDATE(revoked_at) ON tokens TO whyfor_app;

CREATE POLICY known ON passkeys FOR SELECT TO whyfor_app USING ({_SELF} OR {_MANAGED_PERSON});
CREATE POLICY own ON passkeys FOR INSERT TO whyfor_app WITH CHECK ({_SELF});
CREATE POLICY removers ON passkeys FOR DELETE TO whyfor_app USING ({_SELF} OR {_MANAGED_PERSON});
GRANT SELECT(id, credential_id, person_id, name, created_at, last_used_at), INSERT, DELETE ON passkeys TO whyfor_app;

CREATE POLICY managers ON invites FOR SELECT TO whyfor_app USING ({_MANAGED_ORGANISATION});
CREATE POLICY inviters ON invites FOR INSERT TO whyfor_app WITH CHECK ({_MANAGED_ORGANISATION} AND {_OWNER_ROLE}
  AND created_by = (SELECT current_person()) AND (person_id IS NULL OR {_MANAGED_PERSON}));
CREATE POLICY withdrawers ON invites FOR UPDATE TO whyfor_app USING ({_MANAGED_ORGANISATION});
GRANT SELECT(id, organisation_id, person_id, email, role, projects, project_role, created_by, created_at, expires_at,
  used_by, used_at, withdrawn_at), INSERT, UPDATE(withdrawn_at) ON invites TO whyfor_app;

CREATE POLICY managers ON audit FOR SELECT TO whyfor_app USING ({_MANAGED_ORGANISATION} OR {_MANAGED_PROJECT});
GRANT SELECT ON audit TO whyfor_app;
GRANT USAGE ON SEQUENCE tokens_id_seq, passkeys_id_seq, invites_id_seq TO whyfor_app;
GRANT SELECT ON tokens, passkeys, invites TO whyfor_find;
"""
_KEEPERS_GRANTS = """
GRANT SELECT ON organisations TO {keeper};
GRANT SELECT, INSERT, UPDATE ON people, memberships, team_projects, project_members TO {keeper};
GRANT SELECT, INSERT, UPDATE ON tokens, passkeys, identities, invites TO {keeper};
GRANT SELECT, INSERT, UPDATE, DELETE ON challenges, device_codes, counters TO {keeper};
GRANT SELECT, INSERT ON audit TO {keeper};
GRANT USAGE ON ALL SEQUENCES IN SCHEMA whyfor TO {keeper};
GRANT EXECUTE ON FUNCTION organisations_as(text[]), joined_projects(), managed_projects() TO {keeper};
"""
_ACCOUNTS = ("organisations", "people", "memberships", "team_projects", "project_members")


def assign_functions(owner: str, app: str, *names: str) -> str:
    """Give functions that see every row to a role that nobody is, and to nobody else."""
    lines = [f"GRANT CREATE ON SCHEMA whyfor TO {owner};"]
    for name in names:
        lines.append(f"ALTER FUNCTION {name} OWNER TO {owner};")
        lines.append(f"REVOKE ALL ON FUNCTION {name} FROM PUBLIC;")
        lines.append(f"GRANT EXECUTE ON FUNCTION {name} TO {app};")
    lines.append(f"REVOKE CREATE ON SCHEMA whyfor FROM {owner};")
    return "\n".join(lines)


def accounts_schema(app: str, finder: str) -> str:
    """Return the migration that adds accounts."""
    finders = ["organisations_as(text[])", "managed_projects()", "managed_people()"]
    finders += ["known_people()", "is_colleague(integer, integer)"]
    parts = [_ROLE, _TABLES, _ACCESS, _AUTHENTICATE, _TOLD]
    parts += [_FORCE.format(table=table) for table in NEW_TABLES]
    parts += [_KEPT.format(table=table, keeper="{keeper}") for table in (*_ACCOUNTS, *NEW_TABLES)]
    text = "\n".join(parts).replace("{keeper}", KEEPER) + _POLICIES
    text += assign_functions(finder, app, *finders)
    text += assign_functions(KEEPER, app, "authenticate_token(bytea, bigint)")
    return text + _KEEPERS_GRANTS.replace("{keeper}", KEEPER)

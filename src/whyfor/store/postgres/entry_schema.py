"""Functions of accounts: how somebody enters before anybody is known, the audit log, counters.

Each does one thing and decides inside what it may do. They are owned by a role that cannot log in.
"""

from __future__ import annotations

from whyfor.store.postgres.access_schema import KEEPER, assign_functions

_DEFINER = "SECURITY DEFINER SET search_path = whyfor, pg_temp"

_INVITES = f"""
CREATE FUNCTION open_invite(digest bytea, moment bigint)
  RETURNS TABLE(id integer, organisation integer, team text, people bigint, inviter text, person integer, email text,
    role text, projects text[], project_role text, expires_at bigint)
  LANGUAGE sql STABLE {_DEFINER} AS $$
  SELECT i.id, o.id, o.name, (SELECT count(*) FROM memberships m WHERE m.organisation_id = o.id),
    coalesce(b.name, ''), i.person_id, i.email, i.role,
    ARRAY(SELECT t.name FROM team_projects t WHERE t.id = ANY(i.projects) ORDER BY t.name), i.project_role, i.expires_at
  FROM invites i JOIN organisations o ON o.id = i.organisation_id LEFT JOIN people b ON b.id = i.created_by
  WHERE i.hash = digest AND i.used_at IS NULL AND i.withdrawn_at IS NULL AND i.expires_at > moment
$$;
CREATE FUNCTION accept_invite(digest bytea, moment bigint, person_name text, person_email text)
  RETURNS TABLE(person integer, organisation integer)
  LANGUAGE plpgsql {_DEFINER} AS $$
  DECLARE taken invites%ROWTYPE; made integer; BEGIN
    UPDATE invites i SET used_at = moment
      WHERE i.hash = digest AND i.used_at IS NULL AND i.withdrawn_at IS NULL AND i.expires_at > moment
      RETURNING * INTO taken;
    IF taken.id IS NULL THEN RETURN; END IF;
    made := taken.person_id;
    IF made IS NULL THEN
      INSERT INTO people(email, name, created_at) VALUES(coalesce(taken.email, person_email), person_name, moment)
        RETURNING people.id INTO made;
      INSERT INTO memberships VALUES(taken.organisation_id, made, taken.role);
      INSERT INTO project_members(team_project, person_id, role, since)
        SELECT t.id, made, coalesce(taken.project_role, 'member'), moment FROM team_projects t
        WHERE t.id = ANY(taken.projects) AND t.organisation_id = taken.organisation_id;
    END IF;
    UPDATE invites i SET used_by = made WHERE i.id = taken.id;
    RETURN QUERY SELECT made, taken.organisation_id;
  END $$;
"""

_KEYS = f"""
CREATE FUNCTION put_challenge(digest bytea, what text, whose integer, until bigint) RETURNS void
  LANGUAGE sql {_DEFINER} AS $$ INSERT INTO challenges VALUES(digest, what, whose, until) $$;
CREATE FUNCTION take_challenge(digest bytea, what text, moment bigint) RETURNS boolean
  LANGUAGE plpgsql {_DEFINER} AS $$
  DECLARE until bigint; BEGIN
    DELETE FROM challenges c WHERE c.hash = digest AND c.purpose = what RETURNING c.expires_at INTO until;
    RETURN coalesce(until > moment, false);
  END $$;
CREATE FUNCTION passkey_of(credential bytea) RETURNS TABLE(person integer, public_key bytea, sign_count bigint)
  LANGUAGE sql STABLE {_DEFINER} AS $$
  SELECT k.person_id, k.public_key, k.sign_count FROM passkeys k JOIN people p ON p.id = k.person_id
  WHERE k.credential_id = credential AND p.state = 'active'
    AND EXISTS(SELECT 1 FROM memberships m WHERE m.person_id = p.id)
$$;
CREATE FUNCTION use_passkey(credential bytea, seen bigint, moment bigint) RETURNS void
  LANGUAGE sql {_DEFINER} AS $$
  UPDATE passkeys SET sign_count = greatest(sign_count, seen), last_used_at = moment WHERE credential_id = credential
$$;
CREATE FUNCTION person_of_identity(who text, what text) RETURNS integer
  LANGUAGE sql STABLE {_DEFINER} AS $$
  SELECT i.person_id FROM identities i JOIN people p ON p.id = i.person_id
  WHERE i.issuer = who AND i.subject = what AND p.state = 'active'
    AND EXISTS(SELECT 1 FROM memberships m WHERE m.person_id = p.id)
$$;
CREATE FUNCTION add_identity(who text, what text, moment bigint) RETURNS void
  LANGUAGE sql {_DEFINER} AS $$
  INSERT INTO identities SELECT who, what, current_person(), moment WHERE current_person() IS NOT NULL
$$;
CREATE FUNCTION join_team(team integer, person_name text, person_email text, moment bigint) RETURNS integer
  LANGUAGE plpgsql {_DEFINER} AS $$
  DECLARE made integer; BEGIN
    INSERT INTO people(email, name, created_at) VALUES(person_email, person_name, moment) RETURNING id INTO made;
    INSERT INTO memberships VALUES(team, made, 'member');
    RETURN made;
  END $$;
CREATE FUNCTION teams() RETURNS TABLE(id integer, name text)
  LANGUAGE sql STABLE {_DEFINER} AS $$ SELECT o.id, o.name FROM organisations o ORDER BY o.id $$;
"""

# RFC 8628: a device asks, a person lets it in, the device asks again and gets its token.
_DEVICES = f"""
CREATE FUNCTION start_device(digest bytea, code text, device text, address text, wanted text[], moment bigint, until bigint)
  RETURNS void LANGUAGE sql {_DEFINER} AS $$
  INSERT INTO device_codes(hash, user_code, name, ip, scopes, created_at, expires_at)
  VALUES(digest, code, device, address, wanted, moment, until)
$$;
CREATE FUNCTION waiting_device(code text, moment bigint)
  RETURNS TABLE(name text, ip text, scopes text[], created_at bigint, expires_at bigint)
  LANGUAGE sql STABLE {_DEFINER} AS $$
  SELECT d.name, d.ip, d.scopes, d.created_at, d.expires_at FROM device_codes d
  WHERE d.user_code = code AND d.state = 'pending' AND d.expires_at > moment AND current_person() IS NOT NULL
$$;
CREATE FUNCTION answer_device(code text, allowed boolean, moment bigint) RETURNS boolean
  LANGUAGE plpgsql {_DEFINER} AS $$
  BEGIN
    UPDATE device_codes d SET state = CASE WHEN allowed THEN 'approved' ELSE 'denied' END, person_id = current_person()
      WHERE d.user_code = code AND d.state = 'pending' AND d.expires_at > moment
        AND current_person() = ANY(known_people());
    RETURN FOUND;
  END $$;
CREATE FUNCTION poll_device(digest bytea, moment bigint)
  RETURNS TABLE(state text, person integer, scopes text[], name text)
  LANGUAGE plpgsql {_DEFINER} AS $$
  DECLARE found device_codes%ROWTYPE; answer text; BEGIN
    SELECT * INTO found FROM device_codes d WHERE d.hash = digest FOR UPDATE;
    IF found.hash IS NULL OR found.expires_at <= moment OR found.state = 'used' THEN answer := 'expired';
    ELSIF found.polled_at + found.interval_ms > moment THEN answer := 'slow_down';
    ELSE answer := found.state; END IF;
    UPDATE device_codes d SET polled_at = moment,
        interval_ms = d.interval_ms + CASE answer WHEN 'slow_down' THEN 5000 ELSE 0 END,
        state = CASE answer WHEN 'approved' THEN 'used' ELSE d.state END
      WHERE d.hash = digest;
    RETURN QUERY SELECT answer, found.person_id, found.scopes, found.name;
  END $$;
"""

_TEAM = f"""
ALTER TABLE project_members ADD COLUMN since bigint NOT NULL DEFAULT 0;
CREATE FUNCTION create_project(team integer, title text, moment bigint) RETURNS integer
  LANGUAGE plpgsql {_DEFINER} AS $$
  DECLARE made integer; BEGIN
    IF NOT team = ANY(organisations_as('{{owner,admin}}')) OR current_projects() IS NOT NULL THEN
      RAISE insufficient_privilege; END IF;
    INSERT INTO team_projects(organisation_id, name, created_at) VALUES(team, title, moment) RETURNING id INTO made;
    INSERT INTO project_members(team_project, person_id, role, since) VALUES(made, current_person(), 'admin', moment);
    RETURN made;
  END $$;
CREATE FUNCTION find_colleague(address text, project integer) RETURNS integer
  LANGUAGE sql STABLE {_DEFINER} AS $$
  SELECT p.id FROM people p WHERE lower(p.email) = lower(address) AND p.state = 'active'
    AND project = ANY(managed_projects()) AND is_colleague(p.id, project)
$$;
CREATE FUNCTION keep_an_owner() RETURNS trigger LANGUAGE plpgsql {_DEFINER} AS $$
  DECLARE before jsonb := to_jsonb(OLD); BEGIN
  IF EXISTS(SELECT 1 FROM organisations o
      WHERE CASE TG_TABLE_NAME WHEN 'memberships'
          THEN before ->> 'role' = 'owner' AND o.id = (before ->> 'organisation_id')::integer
          ELSE EXISTS(SELECT 1 FROM memberships m WHERE m.organisation_id = o.id AND m.role = 'owner'
            AND m.person_id = (before ->> 'id')::integer) END
        AND NOT EXISTS(SELECT 1 FROM memberships m JOIN people p ON p.id = m.person_id AND p.state = 'active'
          WHERE m.organisation_id = o.id AND m.role = 'owner')) THEN
    RAISE check_violation USING MESSAGE = 'a team keeps an owner'; END IF;
  RETURN NULL; END $$;
CREATE TRIGGER keep_an_owner AFTER UPDATE OF role ON memberships FOR EACH ROW EXECUTE FUNCTION keep_an_owner();
CREATE TRIGGER keep_an_owner AFTER UPDATE OF state ON people FOR EACH ROW EXECUTE FUNCTION keep_an_owner();
"""

# Each entry holds the hash of the one before it: whoever changes or removes one breaks the chain.
_AUDIT = f"""
CREATE FUNCTION audit_hash(previous bytea, entry audit) RETURNS bytea LANGUAGE sql IMMUTABLE AS $$
  SELECT sha256(previous || convert_to(jsonb_build_array(entry.id, entry.organisation_id, entry.at, entry.person_id,
    entry.token_id, entry.ip, entry.did, entry.action, entry.team_project, entry.object, entry.outcome)::text, 'UTF8'))
$$;
CREATE FUNCTION append_audit(team integer, moment bigint, token integer, address text, done text, what text,
    project integer, which text, how text) RETURNS bigint
  LANGUAGE plpgsql {_DEFINER} AS $$
  DECLARE entry audit%ROWTYPE; BEGIN
    PERFORM pg_advisory_xact_lock(7718905312 + team);
    SELECT a.hash INTO entry.previous FROM audit a WHERE a.organisation_id = team ORDER BY a.id DESC LIMIT 1;
    entry.previous := coalesce(entry.previous, ''::bytea);
    entry.id := nextval('audit_id_seq');
    entry.organisation_id := team; entry.at := moment; entry.person_id := current_person(); entry.token_id := token;
    entry.ip := address; entry.did := done; entry.action := what; entry.team_project := project;
    entry.object := which; entry.outcome := how;
    entry.hash := audit_hash(entry.previous, entry);
    INSERT INTO audit OVERRIDING SYSTEM VALUE VALUES(entry.*);
    RETURN entry.id;
  END $$;
CREATE FUNCTION check_audit() RETURNS TABLE(team integer, entries bigint, head bytea, broken bigint)
  LANGUAGE sql STABLE {_DEFINER} AS $$
  SELECT c.organisation_id, count(*), (array_agg(c.hash ORDER BY c.id DESC))[1],
    min(c.id) FILTER (WHERE c.previous <> c.before OR c.hash <> audit_hash(c.previous, c.entry))
  FROM (SELECT a.id, a.organisation_id, a.previous, a.hash, a AS entry,
      lag(a.hash, 1, ''::bytea) OVER (PARTITION BY a.organisation_id ORDER BY a.id) AS before FROM audit a) c
  GROUP BY c.organisation_id
$$;
"""

_COUNTERS = f"""
CREATE FUNCTION count_use(what text, period bigint, amount bigint, moment bigint) RETURNS bigint
  LANGUAGE sql {_DEFINER} AS $$
  INSERT INTO counters AS c VALUES(what, moment / period * period, amount)
    ON CONFLICT(key, started) DO UPDATE SET used = c.used + excluded.used RETURNING used
$$;
CREATE FUNCTION tidy_accounts(moment bigint) RETURNS void
  LANGUAGE sql {_DEFINER} AS $$
  DELETE FROM counters WHERE started < moment - 86400000;
  DELETE FROM challenges WHERE expires_at < moment;
  DELETE FROM device_codes WHERE expires_at < moment - 86400000;
$$;
"""

# Numbers of projects, without words: for members of projects that show figures only, too.
_FIGURES = f"""
CREATE FUNCTION project_figures(since bigint)
  RETURNS TABLE(project integer, sessions bigint, last_at bigint, agents text[], people integer[])
  LANGUAGE sql STABLE {_DEFINER} AS $$
  SELECT s.team_project, count(*), max(coalesce(s.ended_at, s.started_at)),
    array_agg(DISTINCT s.agent ORDER BY s.agent), array_agg(DISTINCT s.person)
  FROM sessions s WHERE s.team_project = ANY(joined_projects()) AND s.started_at >= since AND s.parent IS NULL
  GROUP BY s.team_project
$$;
CREATE FUNCTION project_commits(since bigint)
  RETURNS TABLE(project integer, day bigint, commits bigint)
  LANGUAGE sql STABLE {_DEFINER} AS $$
  SELECT c.team_project, c.committed_at / 86400000, count(DISTINCT c.sha)
  FROM checkpoints c WHERE c.team_project = ANY(joined_projects()) AND c.committed_at >= since
    AND c.superseded_by IS NULL AND NOT c.is_merge
  GROUP BY 1, 2
$$;
CREATE FUNCTION project_sizes() RETURNS TABLE(project integer, sessions bigint, stories bigint)
  LANGUAGE sql STABLE {_DEFINER} AS $$
  SELECT t.id, (SELECT count(*) FROM sessions s WHERE s.team_project = t.id),
    (SELECT count(DISTINCT c.sha) FROM checkpoints c WHERE c.team_project = t.id)
  FROM team_projects t WHERE t.id = ANY(managed_projects())
$$;
CREATE POLICY finder ON sessions FOR SELECT TO {{finder}} USING (true);
CREATE POLICY finder ON checkpoints FOR SELECT TO {{finder}} USING (true);
GRANT SELECT ON sessions, checkpoints TO {{finder}};
"""

_KEEPERS = """
open_invite(bytea, bigint)
accept_invite(bytea, bigint, text, text)
put_challenge(bytea, text, integer, bigint)
take_challenge(bytea, text, bigint)
passkey_of(bytea)
use_passkey(bytea, bigint, bigint)
person_of_identity(text, text)
add_identity(text, text, bigint)
join_team(integer, text, text, bigint)
teams()
start_device(bytea, text, text, text, text[], bigint, bigint)
waiting_device(text, bigint)
answer_device(text, boolean, bigint)
poll_device(bytea, bigint)
create_project(integer, text, bigint)
find_colleague(text, integer)
keep_an_owner()
append_audit(integer, bigint, integer, text, text, text, integer, text, text)
check_audit()
count_use(text, bigint, bigint, bigint)
tidy_accounts(bigint)
"""
_FINDERS = """
project_figures(bigint)
project_commits(bigint)
project_sizes()
"""


def entry_schema(app: str, finder: str) -> str:
    """Return the migration that adds the functions of accounts."""
    parts = [_TEAM, _INVITES, _KEYS, _DEVICES, _AUDIT, _COUNTERS]
    parts += [_FIGURES.replace("{finder}", finder)]
    parts += [assign_functions(KEEPER, app, *_KEEPERS.strip().splitlines())]
    parts += [assign_functions(finder, app, *_FINDERS.strip().splitlines())]
    asked = "is_colleague(integer, integer), known_people(), current_projects()"
    parts += [f"GRANT EXECUTE ON FUNCTION {asked} TO {KEEPER};"]
    return "\n".join(parts)

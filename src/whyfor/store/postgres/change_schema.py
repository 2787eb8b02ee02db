"""What tells all server processes that a project changed."""

from __future__ import annotations

CHANGES = "whyfor_changes"  # its payload: a project and the number of a change


def change_schema() -> str:
    """The migration that tells of changes. Notices are outside of policies: numbers alone."""
    return f"""
CREATE FUNCTION tell_change() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  PERFORM pg_notify('{CHANGES}', NEW.team_project || ' ' || NEW.id);
  RETURN NULL; END $$;
CREATE TRIGGER told AFTER INSERT ON shared_changes FOR EACH ROW EXECUTE FUNCTION tell_change();
"""

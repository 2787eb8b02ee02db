"""Accounts in PostgreSQL: who there is, what they may, and what they did.

Statements here have no filter of their own for who may see what: policies decide, by who asks.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import msgspec
from psycopg import errors

from whyfor.model.accounts import (
    AuditChain,
    AuditEntry,
    AuditNote,
    AuditQuery,
    DevicePoll,
    DeviceRequest,
    ExpiredSession,
    Invite,
    Member,
    NewInvite,
    NewPasskey,
    NewToken,
    OpenInvite,
    Passkey,
    PasskeyProof,
    ProjectChange,
    ProjectFigures,
    ProjectMember,
    ProjectStanding,
    TeamPerson,
    TeamStory,
    TeamToken,
)
from whyfor.model.errors import BadInput, Forbidden, NotFound
from whyfor.store.postgres.connection import ScopedConnection, StoreScope
from whyfor.store.postgres.pool import PostgresPool

T = TypeVar("T", bound=msgspec.Struct)
AUDIT_COUNTED = 10_000  # entries; more are "over 10,000"

_PROJECT = """
    SELECT t.id, t.name, t.visibility, m.role, t.taking, t.retention_days, t.quota_bytes,
           t.delete_at, t.retention_from
    FROM team_projects t
    LEFT JOIN project_members m ON m.team_project = t.id AND m.person_id = (SELECT current_person())
"""
_TOKENS = """
    SELECT t.id, t.person_id, p.name, t.kind, t.name, t.beginning, t.scopes, t.projects,
           t.created_at, t.expires_at, t.last_used_at, t.revoked_at
    FROM tokens t JOIN people p ON p.id = t.person_id
"""
_AUDIT = """
    SELECT a.id, a.at, a.person_id, p.name, a.token_id, t.kind, t.name, a.ip, a.did, a.action,
           a.team_project, r.name, a.object, a.outcome
    FROM audit a LEFT JOIN people p ON p.id = a.person_id LEFT JOIN tokens t ON t.id = a.token_id
    LEFT JOIN team_projects r ON r.id = a.team_project
"""


class AccountConnection(ScopedConnection):
    """A connection whose refusals are told to people."""

    def explained(self, error: Exception) -> Exception:
        if isinstance(error, errors.UniqueViolation):
            return BadInput("there is one of this name or address already", "Choose another.")
        if isinstance(error, errors.CheckViolation):
            said = error.diag.message_primary or ""
            words = said if said.startswith("a team") else "this value is not allowed"
            return BadInput(words, "Choose another.")
        if isinstance(error, errors.InsufficientPrivilege):
            return Forbidden("this is not yours to change", "Ask an admin.")
        return super().explained(error)


class AccountTransaction:
    """What somebody asks or changes about accounts, in one transaction."""

    def __init__(self, db: AccountConnection) -> None:
        self.db = db

    def _rows(self, kind: type[T], sql: str, values: Any = ()) -> list[T]:
        names = kind.__struct_fields__
        found = self.db.run(sql, values).fetchall()
        return [msgspec.convert(dict(zip(names, row, strict=True)), kind) for row in found]

    def _row(self, kind: type[T], sql: str, values: Any = ()) -> T | None:
        found = self._rows(kind, sql, values)
        return found[0] if found else None

    def _number(self, sql: str, values: Any = ()) -> int | None:
        row = self.db.run(sql, values).fetchone()
        return row[0] if row else None

    def _change(self, sql: str, values: Any) -> None:
        if self.db.run(sql, values).rowcount == 0:
            raise NotFound("there is no such person or thing, or it is not yours", "")

    def become(self, person: int) -> None:
        """Continue the transaction as a person who has just proved to be that one."""
        self.db.run("SELECT set_config('whyfor.person', %s, true)", (str(person),))

    # -- entering ----------------------------------------------------------------------------------

    def open_invite(self, digest: bytes, now: int) -> OpenInvite | None:
        return self._row(OpenInvite, "SELECT * FROM open_invite(%s, %s)", (digest, now))

    def accept_invite(self, digest: bytes, now: int, name: str, email: str) -> int | None:
        """Use an invitation up; return the person. None if it cannot be used (any more)."""
        sql = "SELECT person FROM accept_invite(%s, %s, %s, %s)"
        return self._number(sql, (digest, now, name, email))

    def join_team(self, organisation: int, name: str, email: str, now: int) -> int:
        sql = "SELECT join_team(%s::integer, %s, %s, %s)"
        return self._number(sql, (organisation, name, email, now)) or 0

    def own_team(self) -> int:
        """Return the organisation of the one who asks."""
        sql = "SELECT organisation_id FROM memberships WHERE person_id=(SELECT current_person())"
        return self._number(f"{sql} ORDER BY 1 LIMIT 1") or 0

    def teams(self) -> list[tuple[int, str]]:
        return [(number, name) for number, name in self.db.run("SELECT * FROM teams()")]

    def put_challenge(self, digest: bytes, purpose: str, until: int) -> None:
        self.db.run("SELECT put_challenge(%s, %s, NULL, %s)", (digest, purpose, until))

    def take_challenge(self, digest: bytes, purpose: str, now: int) -> bool:
        return bool(self._number("SELECT take_challenge(%s, %s, %s)", (digest, purpose, now)))

    def passkey_proof(self, credential: bytes) -> PasskeyProof | None:
        return self._row(PasskeyProof, "SELECT * FROM passkey_of(%s)", (credential,))

    def use_passkey(self, credential: bytes, sign_count: int, now: int) -> None:
        self.db.run("SELECT use_passkey(%s, %s, %s)", (credential, sign_count, now))

    def person_of_identity(self, issuer: str, subject: str) -> int | None:
        return self._number("SELECT person_of_identity(%s, %s)", (issuer, subject))

    def add_identity(self, issuer: str, subject: str, now: int) -> None:
        self.db.run("SELECT add_identity(%s, %s, %s)", (issuer, subject, now))

    def add_passkey(self, new: NewPasskey, now: int) -> None:
        sql = """
            INSERT INTO passkeys(credential_id, person_id, public_key, sign_count, name, created_at)
            VALUES(%s, (SELECT current_person()), %s, %s, %s, %s)
        """
        self.db.run(sql, (new.credential_id, new.public_key, new.sign_count, new.name, now))

    def add_token(self, new: NewToken, now: int) -> None:
        projects = None if new.projects is None else list(new.projects)
        sql = """
            INSERT INTO tokens(hash, person_id, kind, name, beginning, scopes, projects, created_at,
              expires_at)
            VALUES(%s, (SELECT current_person()), %s, %s, %s, %s, %s::integer[], %s, %s)
        """
        row = (new.hash, new.kind, new.name, new.beginning, list(new.scopes), projects)
        self.db.run(sql, (*row, now, new.expires_at))

    # -- devices -----------------------------------------------------------------------------------

    def start_device(self, digest: bytes, code: str, asked: DeviceRequest) -> None:
        sql = "SELECT start_device(%s, %s, %s, %s, %s, %s, %s)"
        row = (digest, code, asked.name, asked.ip, list(asked.scopes))
        self.db.run(sql, (*row, asked.created_at, asked.expires_at))

    def waiting_device(self, code: str, now: int) -> DeviceRequest | None:
        return self._row(DeviceRequest, "SELECT * FROM waiting_device(%s, %s)", (code, now))

    def answer_device(self, code: str, allowed: bool, now: int) -> bool:
        return bool(self._number("SELECT answer_device(%s, %s, %s)", (code, allowed, now)))

    def poll_device(self, digest: bytes, now: int) -> DevicePoll:
        found = self._row(DevicePoll, "SELECT * FROM poll_device(%s, %s)", (digest, now))
        assert found is not None
        return found

    # -- people ------------------------------------------------------------------------------------

    def people(self) -> list[TeamPerson]:
        sql = """
            SELECT p.id, p.name, p.email, p.state, o.role,
              (SELECT count(*) FROM project_members m WHERE m.person_id = p.id), p.created_at
            FROM people p JOIN memberships o ON o.person_id = p.id
            WHERE p.state <> 'erased' ORDER BY lower(p.name), p.id
        """
        return self._rows(TeamPerson, sql)

    def set_role(self, person: int, role: str) -> None:
        sql = "UPDATE memberships SET role=%s WHERE person_id=%s AND role<>%s"
        self._change(sql, (role, person, role))

    def set_state(self, person: int, state: str) -> None:
        self._change("UPDATE people SET state=%s WHERE id=%s AND state<>'erased'", (state, person))

    def revoke_all(self, person: int, now: int) -> None:
        """Revoke all tokens and sessions of a person."""
        sql = "UPDATE tokens SET revoked_at=%s WHERE person_id=%s AND revoked_at IS NULL"
        self.db.run(sql, (now, person))

    def tokens(self) -> list[TeamToken]:
        """Return tokens that are not a browser's session, with those that ended lately."""
        sql = f"{_TOKENS} WHERE t.kind <> 'web' ORDER BY t.id DESC LIMIT 500"
        return self._rows(TeamToken, sql)

    def revoke(self, token: int, now: int) -> TeamToken:
        found = self._row(TeamToken, f"{_TOKENS} WHERE t.id=%s", (token,))
        if found is None:
            raise NotFound("there is no such token, or it is not yours", "")
        sql = "UPDATE tokens SET revoked_at=coalesce(revoked_at, %s) WHERE id=%s"
        self._change(sql, (now, token))
        return found

    def passkeys(self) -> list[Passkey]:
        sql = "SELECT id, person_id, name, created_at, last_used_at FROM passkeys ORDER BY id"
        return self._rows(Passkey, sql)

    def remove_passkey(self, number: int) -> None:
        self._change("DELETE FROM passkeys WHERE id=%s", (number,))

    def credential_ids(self) -> list[bytes]:
        """Return the passkeys of the one who asks."""
        sql = "SELECT credential_id FROM passkeys WHERE person_id=(SELECT current_person())"
        return [bytes(found) for (found,) in self.db.run(sql)]

    def invites(self, now: int) -> list[Invite]:
        sql = """
            SELECT i.id, i.email, w.name, i.role,
              ARRAY(SELECT t.name FROM team_projects t WHERE t.id=ANY(i.projects) ORDER BY t.name),
              i.project_role, b.name, i.created_at, i.expires_at
            FROM invites i LEFT JOIN people b ON b.id = i.created_by
            LEFT JOIN people w ON w.id = i.person_id
            WHERE i.used_at IS NULL AND i.withdrawn_at IS NULL AND i.expires_at > %s ORDER BY i.id
        """
        return self._rows(Invite, sql, (now,))

    def add_invite(self, new: NewInvite, now: int) -> None:
        sql = """
            INSERT INTO invites(hash, organisation_id, role, expires_at, email, person_id, projects,
              project_role, created_by, created_at)
            VALUES(%s, %s, %s, %s, %s, %s, %s::integer[], %s, (SELECT current_person()), %s)
        """
        row = (new.hash, new.organisation, new.role, new.expires_at, new.email, new.person)
        self.db.run(sql, (*row, list(new.projects), new.project_role, now))

    def withdraw_invite(self, number: int, now: int) -> NewInvite:
        """Withdraw an invitation; return what it was, without its link."""
        sql = """
            UPDATE invites SET withdrawn_at=%s
            WHERE id=%s AND used_at IS NULL AND withdrawn_at IS NULL
            RETURNING ''::bytea, organisation_id, role, expires_at, email, person_id, projects,
              project_role
        """
        found = self._row(NewInvite, sql, (now, number))
        if found is None:
            raise NotFound("this invitation was used or withdrawn already", "")
        return found

    # -- projects ----------------------------------------------------------------------------------

    def project(self, project: int) -> ProjectStanding | None:
        return self._row(ProjectStanding, f"{_PROJECT} WHERE t.id=%s", (project,))

    def projects(self) -> list[ProjectStanding]:
        return self._rows(ProjectStanding, f"{_PROJECT} ORDER BY lower(t.name), t.id")

    def create_project(self, organisation: int, name: str, now: int) -> int:
        sql = "SELECT create_project(%s::integer, %s, %s)"
        return self._number(sql, (organisation, name, now)) or 0

    def change_project(self, project: int, new: ProjectChange) -> None:
        sql = """
            UPDATE team_projects SET name=%s, visibility=%s, retention_days=%s, quota_bytes=%s,
              taking=%s, delete_at=%s, retention_from=%s WHERE id=%s
        """
        self._change(sql, (*msgspec.structs.astuple(new), project))

    def due_projects(self) -> list[int]:
        """Return the projects whose time to be deleted has come."""
        [(found,)] = self.db.run("SELECT due_projects()").fetchall()
        return list(found)

    def purge_project(self, project: int) -> bool:
        """Delete all rows of a project that is due; return whether it was."""
        return bool(self._number("SELECT purge_project(%s::integer)", (project,)))

    def expired_sessions(self, now: int, most: int) -> list[ExpiredSession]:
        """Return sessions that their projects keep no longer."""
        sql = "SELECT project, person, agent, session_id FROM expired_sessions(%s, %s)"
        return self._rows(ExpiredSession, sql, (now, most))

    def count_older(self, project: int, before: int) -> int:
        """Return how many sessions of a managed project are older than a moment."""
        return self._number("SELECT count_older(%s::integer, %s)", (project, before)) or 0

    def members(self, project: int) -> list[ProjectMember]:
        sql = """
            SELECT p.id, p.name, p.email, p.state, m.role, m.since
            FROM project_members m JOIN people p ON p.id = m.person_id
            WHERE m.team_project=%s ORDER BY lower(p.name), p.id
        """
        return self._rows(ProjectMember, sql, (project,))

    def add_member(self, project: int, email: str, role: str, now: int) -> int:
        person = self._number("SELECT find_colleague(%s, %s::integer)", (email, project))
        if person is None:
            raise NotFound("nobody of the team has this address", "Invite them first.")
        sql = (
            "INSERT INTO project_members(team_project, person_id, role, since) VALUES(%s,%s,%s,%s)"
        )
        self.db.run(sql, (project, person, role, now))
        return person

    def set_project_role(self, project: int, person: int, role: str) -> None:
        sql = "UPDATE project_members SET role=%s WHERE team_project=%s AND person_id=%s"
        self._change(sql, (role, project, person))

    def remove_member(self, project: int, person: int) -> None:
        sql = "DELETE FROM project_members WHERE team_project=%s AND person_id=%s"
        self._change(sql, (project, person))

    def figures(self, since: int) -> list[ProjectFigures]:
        return self._rows(ProjectFigures, "SELECT * FROM project_figures(%s)", (since,))

    def commits_by_day(self, since: int) -> dict[tuple[int, int], int]:
        """Return how many commits have a story, by project and day since 1970."""
        found = self.db.run("SELECT project, day, commits FROM project_commits(%s)", (since,))
        return {(project, day): commits for project, day, commits in found}

    def sizes(self, project: int) -> tuple[int, int]:
        """Return how many sessions and stories a project has."""
        sql = "SELECT sessions, stories FROM project_sizes() WHERE project=%s"
        row = self.db.run(sql, (project,)).fetchone()
        return (row[0], row[1]) if row else (0, 0)

    def names(self) -> dict[int, str]:
        """Return the names of all people that the one who asks knows."""
        return dict(self.db.run("SELECT id, name FROM people").fetchall())

    def stories(self, limit: int) -> list[TeamStory]:
        """Return the newest commits with a story whose words the one who asks may read."""
        sql = """
            SELECT c.team_project, c.sha, c.subject, p.name,
              ARRAY(SELECT DISTINCT s.agent FROM parts r JOIN sessions s ON s.id = r.session_id
                WHERE r.sha = c.sha AND r.team_project = c.team_project ORDER BY 1), c.committed_at,
              (SELECT left(e.text, 400) FROM parts r JOIN events e ON e.session_id = r.session_id
                  AND e.id BETWEEN (r.session_id << 24) + r.first AND (r.session_id << 24) + r.last
                WHERE r.sha = c.sha AND r.team_project = c.team_project AND r.person = c.person
                  AND e.kind = 'user.prompt' AND e.actor = 'user'
                ORDER BY e.created_at, e.id LIMIT 1)
            FROM checkpoints c JOIN people p ON p.id = c.person
            WHERE c.superseded_by IS NULL AND NOT c.is_merge
            ORDER BY c.committed_at DESC LIMIT %s
        """
        return self._rows(TeamStory, sql, (limit,))

    # -- the audit log -----------------------------------------------------------------------------

    def audit(
        self, organisation: int, note: AuditNote, *, token: int | None, ip: str, now: int
    ) -> None:
        sql = "SELECT append_audit(%s::integer, %s, %s::integer, %s, %s, %s, %s::integer, %s, %s)"
        what = (note.did, note.action, note.project, note.object[:400], note.outcome)
        self.db.run(sql, (organisation, now, token, ip, *what))

    def audit_entries(self, asked: AuditQuery, limit: int) -> list[AuditEntry]:
        where, values = _audit_filter(asked)
        if asked.before is not None:
            where += " AND a.id < %s"
            values.append(asked.before)
        sql = f"{_AUDIT} WHERE {where} ORDER BY a.id DESC LIMIT %s"
        return self._rows(AuditEntry, sql, (*values, limit))

    def count_audit(self, asked: AuditQuery) -> int:
        """Return how many entries there are, up to one more than AUDIT_COUNTED."""
        where, values = _audit_filter(asked)
        sql = f"SELECT count(*) FROM ({_AUDIT} WHERE {where} LIMIT %s) c"
        return self._number(sql, (*values, AUDIT_COUNTED + 1)) or 0

    def audit_chains(self) -> list[AuditChain]:
        return self._rows(AuditChain, "SELECT * FROM check_audit()")

    # -- counters ----------------------------------------------------------------------------------

    def count_use(self, key: str, period: int, amount: int, now: int) -> int:
        """Add to a counter of the running period, in milliseconds; return what it has now."""
        return self._number("SELECT count_use(%s, %s, %s, %s)", (key, period, amount, now)) or 0

    def tidy(self, now: int) -> None:
        """Delete what has ended and is of no use."""
        self.db.run("SELECT tidy_accounts(%s)", (now,))


def _audit_filter(asked: AuditQuery) -> tuple[str, list[Any]]:
    parts: list[str] = ["true"]
    values: list[Any] = []
    if asked.text:
        found = "(p.name ILIKE %s OR a.object ILIKE %s OR a.ip ILIKE %s OR a.action ILIKE %s)"
        parts.append(found)
        like = "%" + asked.text.replace("\\", "\\\\").replace("%", r"\%").replace("_", r"\_") + "%"
        values += [like] * 4
    named = {"a.person_id": asked.person, "a.team_project": asked.project, "a.did": asked.did}
    for column, value in named.items():
        if value is not None:
            parts.append(f"{column} = %s")
            values.append(value)
    if asked.since is not None:
        parts.append("a.at >= %s")
        values.append(asked.since)
    return " AND ".join(parts), values


class PostgresAccounts:
    """Accounts, in transactions that know who asks."""

    def __init__(self, pool: PostgresPool) -> None:
        self.pool = pool

    @contextmanager
    def by(self, member: Member | None) -> Iterator[AccountTransaction]:
        """Begin a transaction of a member, or of nobody who is known yet; it is committed at the
        end, unless something is raised."""
        scope = StoreScope(None)
        if member is not None:
            scope = StoreScope(member.person, only=member.projects)
        with self.pool.scoped(scope, AccountConnection) as db:
            yield AccountTransaction(db)
            db.commit()

    def member_of_token(self, digest: bytes, now: int) -> Member | None:
        """Return whose a token is, by its hash; None if it ended or its person may not enter."""
        with self.by(None) as accounts:
            sql = "SELECT * FROM authenticate_token(%s, %s)"
            return accounts._row(Member, sql, (digest, now))

    def project(self, member: Member, project: int) -> ProjectStanding | None:
        """Return a project; None if it does not exist, or is nothing to this person."""
        with self.by(member) as accounts:
            return accounts.project(project)

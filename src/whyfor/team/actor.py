"""Somebody who asks, from some address: as whom a change is made, and written down."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from whyfor.model.accounts import AuditNote, Member
from whyfor.store.shared import AUDIT_COUNTED, AccountTransaction
from whyfor.team.resources import TeamResources

__all__ = ["AUDIT_COUNTED", "AccountTransaction", "TeamActor"]


class TeamActor:
    def __init__(self, resources: TeamResources, member: Member, ip: str) -> None:
        self.resources = resources
        self.member = member
        self.ip = ip
        self.now = resources.now()

    @contextmanager
    def reading(self) -> Iterator[AccountTransaction]:
        """Begin a transaction as this person."""
        with self.resources.database.accounts.by(self.member) as accounts:
            yield accounts

    @contextmanager
    def changing(self, note: AuditNote) -> Iterator[AccountTransaction]:
        """Begin a transaction whose changes are written down with them, or not made at all."""
        with self.reading() as accounts:
            yield accounts
            self.write(accounts, note)

    def write(self, accounts: AccountTransaction, note: AuditNote) -> None:
        """Write an entry into the audit log."""
        accounts.audit(
            self.member.organisation, note, token=self.member.token, ip=self.ip, now=self.now
        )

    def record(self, note: AuditNote) -> None:
        """Write an entry into the audit log, in a transaction of its own."""
        with self.reading() as accounts:
            self.write(accounts, note)

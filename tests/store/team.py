"""Teams in a real PostgreSQL: people, projects, and stores that are opened for them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from tests.postgres import DEBIAN, PostgresCluster, running
from whyfor.store.postgres.connection import StoreScope
from whyfor.store.postgres.store import PostgresStore, open_postgres


class TeamProject:
    """A project, and a member who writes."""

    def __init__(self, team: Team, number: int, person: int) -> None:
        self.team = team
        self.number = number
        self.person = person

    def writer(self, person: int | None = None) -> PostgresStore:
        """A store that sees and writes what is a person's own."""
        return self._open(StoreScope(person or self.person, self.number, writing=True))

    def reader(self, person: int | None = None) -> PostgresStore:
        """A store that sees what a person may read of the project."""
        return self._open(StoreScope(person or self.person, self.number))

    def _open(self, scope: StoreScope) -> PostgresStore:
        return self.team.open(scope)

    def add(self, role: str) -> int:
        """A new person who is a member of the project; returns their number."""
        person = self.team.new_person()
        self.team.admin.execute(
            "INSERT INTO project_members VALUES(%s, %s, %s)", (self.number, person, role)
        )
        return person


class Team:
    """A database with one organisation."""

    def __init__(self, cluster: PostgresCluster) -> None:
        self.cluster = cluster
        options = "-c search_path=whyfor"
        self.admin = psycopg.connect(cluster.admin(), options=options, autocommit=True)
        self._names = itertools.count()
        self.organisation = self.insert("organisations(name, created_at)", "team", 0)

    def insert(self, table: str, *values: Any) -> int:
        marks = ", ".join(["%s"] * len(values))
        sql = f"INSERT INTO {table} VALUES({marks}) RETURNING id"
        [(number,)] = self.admin.execute(sql, values)
        return int(number)

    def new_person(self, role: str = "member") -> int:
        """A person of the organisation, who is a member of no project."""
        name = f"person-{next(self._names)}"
        person = self.insert("people(email, name, created_at)", f"{name}@example.com", name, 0)
        self.admin.execute(
            "INSERT INTO memberships VALUES(%s, %s, %s)", (self.organisation, person, role)
        )
        return person

    def new_project(self, visibility: str = "stories") -> TeamProject:
        """An empty project, and its first member."""
        number = self.insert(
            "team_projects(organisation_id, name, visibility, created_at)",
            *(self.organisation, f"project-{next(self._names)}", visibility, 0),
        )
        project = TeamProject(self, number, 0)
        project.person = project.add("member")
        return project

    def open(self, scope: StoreScope) -> PostgresStore:
        return open_postgres(self.cluster.app(), scope)


def _team(version: int) -> Iterator[Team]:
    with running(version) as cluster:
        cluster.make_database()
        team = Team(cluster)
        yield team
        team.admin.close()


@pytest.fixture(scope="session")
def postgres_18() -> Iterator[Team]:
    yield from _team(18)


@pytest.fixture(scope="session")
def postgres_debian() -> Iterator[Team]:
    yield from _team(DEBIAN)

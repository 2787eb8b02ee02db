"""Who may see what, by the database alone: every statement here lacks the filter that it has in
the product."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing
from typing import Any

import psycopg
import pytest

from tests.cases import check_each
from tests.store.postgres.conftest import TwoProjects, fill
from tests.store.team import Team
from whyfor.model.errors import StoreError
from whyfor.model.query import Atom, Filters, PassageQuery, Query
from whyfor.store.postgres.access_schema import KEEPER
from whyfor.store.postgres.connection import StoreScope
from whyfor.store.postgres.schema import ACCOUNTS, APP, CONTENT, EXCHANGED, FINDER, SHARED
from whyfor.store.postgres.store import PostgresStore

pytestmark = pytest.mark.slow
GUARDED = (*CONTENT, *SHARED, *EXCHANGED)
UNGUARDED = {"schema_version"}  # a number
UNREAD = {"identities", "challenges", "device_codes", "counters"}  # by functions only
NOBODY = 999_999


def rows(store: PostgresStore, sql: str, values: Any = ()) -> list[Any]:
    return store.db.run(sql, values).fetchall()


def told(store: PostgresStore) -> str:
    """Everything that a store lets somebody read."""
    return "\n".join(str(rows(store, f"SELECT * FROM {table}")) for table in GUARDED)


# -- the catalogue ---------------------------------------------------------------------------------


def test_every_table_is_guarded_and_a_new_one_must_be(postgres_18: Team) -> None:
    found = postgres_18.admin.execute(
        """
        SELECT relname, relrowsecurity AND relforcerowsecurity
        FROM pg_class WHERE relnamespace = 'whyfor'::regnamespace AND relkind IN ('r', 'p')
        """
    ).fetchall()
    assert {name for name, forced in found if not forced} == UNGUARDED
    assert {name for name, _ in found} == {*GUARDED, *ACCOUNTS, *UNGUARDED}
    policies = postgres_18.admin.execute(
        "SELECT tablename, cmd, roles::text FROM pg_policies WHERE schemaname = 'whyfor'"
    ).fetchall()
    for table in GUARDED:
        mine = {
            command for name, command, roles in policies if (name, roles) == (table, f"{{{APP}}}")
        }
        assert mine == {"SELECT", "INSERT", "UPDATE", "DELETE"}, table
    everybody = [name for name, _, roles in policies if "public" in roles]
    assert everybody == []


def test_no_role_of_the_server_is_above_the_policies(postgres_18: Team) -> None:
    roles = ["app", APP, FINDER, KEEPER]
    found = postgres_18.admin.execute(
        "SELECT rolname, rolsuper, rolbypassrls, rolcreaterole FROM pg_roles WHERE rolname = ANY(%s)",
        (roles,),
    ).fetchall()
    assert sorted(found) == [(name, False, False, False) for name in roles]
    owned = postgres_18.admin.execute(
        "SELECT relname FROM pg_class JOIN pg_roles r ON r.oid = relowner WHERE r.rolname = ANY(%s)",
        (roles,),
    ).fetchall()
    assert owned == []


def test_functions_with_other_rights_are_pinned_and_nobody_elses(postgres_18: Team) -> None:
    found = postgres_18.admin.execute(
        """
        SELECT p.proname, r.rolname, p.proconfig, has_function_privilege('public', p.oid, 'EXECUTE')
        FROM pg_proc p JOIN pg_roles r ON r.oid = p.proowner
        WHERE p.pronamespace = 'whyfor'::regnamespace AND p.prosecdef
        """
    ).fetchall()
    assert len(found) >= 26
    for name, owner, config, public in found:
        assert owner in (FINDER, KEEPER), name
        assert not public, name
        assert config[0] == "search_path=whyfor, pg_temp", name


def test_views_ask_as_who_reads_them(postgres_18: Team) -> None:
    found = postgres_18.admin.execute(
        """
        SELECT relname, reloptions FROM pg_class
        WHERE relnamespace = 'whyfor'::regnamespace AND relkind IN ('v', 'm')
        """
    ).fetchall()
    assert found
    assert all(options == ["security_invoker=true"] for _, options in found)


# -- reading ---------------------------------------------------------------------------------------


def test_what_is_kept_has_the_word_in_every_table(projects: TwoProjects) -> None:
    """Else nothing here would prove anything."""
    with closing(projects.here.reader()) as store:
        empty = [table for table in GUARDED if not rows(store, f"SELECT 1 FROM {table} LIMIT 1")]
    assert empty == []


def test_a_member_reads_the_own_project_and_nothing_of_another(projects: TwoProjects) -> None:
    for project, own, other in (
        (projects.here, "herring", "walrus"),
        (projects.there, "walrus", "herring"),
    ):
        for scope in (
            StoreScope(project.person),
            StoreScope(project.person, project.number),
            StoreScope(project.person, project.number, writing=True),
        ):
            with closing(projects.team.open(scope)) as store:
                text = told(store)
            assert own in text
            assert other not in text


def strangers(projects: TwoProjects) -> dict[str, StoreScope]:
    """Who may read nothing here, whatever they say they ask of."""
    team, here = projects.team, projects.here
    left = here.add("member")
    team.admin.execute("DELETE FROM memberships WHERE person_id=%s", (left,))
    suspended = here.add("admin")
    team.admin.execute("UPDATE people SET state='suspended' WHERE id=%s", (suspended,))
    found = {
        "a member of another project": projects.there.person,
        "a person of no project": team.new_person(),
        "an admin of the organisation": team.new_person("admin"),
        "the owner of the organisation": team.new_person("owner"),
        "somebody who left the organisation": left,
        "somebody suspended": suspended,
        "somebody unknown": NOBODY,
    }
    return {name: StoreScope(person, here.number) for name, person in found.items()}


def test_strangers_read_nothing_and_write_nothing(projects: TwoProjects) -> None:
    def check(scope: StoreScope) -> None:
        with closing(projects.team.open(scope)) as store:
            assert "herring" not in told(store)
        writing = StoreScope(scope.person, scope.project, writing=True)
        with closing(projects.team.open(writing)) as store:
            assert "herring" not in told(store)
            with pytest.raises(StoreError), store.transaction():
                store.set_mark("x", 1)

    check_each(strangers(projects).items(), check)


def test_without_saying_who_asks_there_is_nothing(projects: TwoProjects) -> None:
    url = projects.team.cluster.app()
    with psycopg.connect(url, options="-c search_path=whyfor", autocommit=True) as driver:
        for table in GUARDED:
            assert driver.execute(f"SELECT count(*) FROM {table}").fetchone() == (0,), table
        for table in ACCOUNTS:
            try:
                assert driver.execute(f"SELECT count(*) FROM {table}").fetchone() == (0,), table
            except psycopg.errors.InsufficientPrivilege:
                assert table in UNREAD


def test_nobody_reads_what_proves_who_somebody_is(projects: TwoProjects) -> None:
    owner = projects.team.new_person("owner")
    secrets = ["tokens", "invites", "passkeys", *UNREAD]
    for table in secrets:
        with closing(projects.team.open(StoreScope(owner))) as store, pytest.raises(StoreError):
            rows(store, f"SELECT * FROM {table}")


def test_nothing_of_a_transaction_is_left_on_its_connection(projects: TwoProjects) -> None:
    with closing(projects.here.reader()) as store:
        for end in (store.commit, store.rollback):
            assert "herring" in told(store)
            end()
            left = store.db.driver.execute("SELECT count(*) FROM sessions").fetchone()
            store.db.driver.rollback()
            assert left == (0,)
        with pytest.raises(StoreError):
            store.db.run("SELECT 1 FROM nowhere")
        assert store.db.driver.execute("SELECT count(*) FROM sessions").fetchone() == (0,)


def test_of_a_project_that_shows_figures_words_are_read_by_their_author_alone(
    postgres_18: Team,
) -> None:
    project = postgres_18.new_project("metrics")
    fill(project, "otter")
    other = project.add("admin")
    with closing(project.reader()) as own, closing(project.reader(other)) as theirs:
        assert "otter" in told(own)
        assert "otter" not in told(theirs)
        assert theirs.search.match(Query(clauses=((Atom("otter"),),)), Filters(), 9) == []


# -- writing ---------------------------------------------------------------------------------------


def test_a_viewer_reads_and_does_not_write(projects: TwoProjects) -> None:
    viewer = projects.here.add("viewer")
    with closing(projects.here.reader(viewer)) as store:
        assert "herring" in told(store)
    refused = pytest.raises(StoreError, match="may not be written")
    with closing(projects.here.writer(viewer)) as store, refused, store.transaction():
        store.set_mark("x", 1)


def test_nobody_changes_what_another_wrote_or_writes_in_their_name(projects: TwoProjects) -> None:
    colleague = projects.here.add("member")
    author = projects.here.person

    def check(table: str) -> None:
        with closing(projects.here.writer(colleague)) as store:
            assert (
                rows(store, f"SELECT 1 FROM {table} WHERE person={author}") == [] or table in SHARED
            )
            assert store.db.run(f"UPDATE {table} SET person=person").rowcount == 0
            assert store.db.run(f"DELETE FROM {table}").rowcount == 0
        with closing(projects.here.reader(colleague)) as store:
            assert store.db.run(f"DELETE FROM {table}").rowcount == 0

    check_each([(table, table) for table in GUARDED], check)
    forged = "INSERT INTO marks(name, value, team_project, person) VALUES('forged', 1, %s, %s)"
    here, there = projects.here.number, projects.there.number
    for place in ((here, author), (there, colleague), (there, author)):
        with closing(projects.here.writer(colleague)) as store, pytest.raises(StoreError):
            store.db.run(forged, place)
    with closing(projects.here.reader(author)) as store, pytest.raises(StoreError):
        store.db.run("INSERT INTO marks(name, value) VALUES('x', 1)")


def test_two_people_with_the_same_session_and_commit_both_keep_theirs(postgres_18: Team) -> None:
    project = postgres_18.new_project()
    colleague = project.add("member")
    fill(project, "seal")
    fill(project, "seal", colleague)
    with closing(project.reader()) as store:
        assert len(rows(store, "SELECT 1 FROM sessions WHERE session_id='seal'")) == 2
        assert len(rows(store, "SELECT 1 FROM checkpoints WHERE subject='seal'")) == 2
        assert len(rows(store, "SELECT 1 FROM projects")) == 1


# -- the full text index ---------------------------------------------------------------------------


def words(*texts: str) -> Query:
    return Query(clauses=tuple((Atom(text),) for text in texts))


def test_a_search_finds_no_word_of_another_project(projects: TwoProjects) -> None:
    with closing(projects.team.open(StoreScope(projects.here.person))) as store:
        for word, expected in (("herring", True), ("walrus", False)):
            said = PassageQuery(words(word).clauses, every=True, within=Query())
            found: Iterable[object] = [
                *store.search.match(words(word), Filters(), 9),
                *store.search.match(words(word), Filters(), 9, newest=True),
                *store.search.passages(said, Filters(), 9),
                *store.search.cards([word], Filters(), 9),
                *store.search.places(words(word), said, Filters(), 9),
                *store.search.words_like(word[:4], 9),
                *store.search.commits([word], Filters(), 9),
            ]
            assert bool(found) == expected
            for table in ("words", "passages", "cards"):
                form = word if table == "words" else store.search.stem(word)
                query = f"'p{form}' | 't{form}' | 'a{form}'"
                [(count,)] = rows(store, f"SELECT count_{table}(%s::tsquery, 99)", (query,))
                [(counts,)] = rows(store, f"SELECT counts_{table}(%s::tsquery[], 99)", ([query],))
                best = rows(store, f"SELECT id FROM best_{table}(%s::tsquery, 99, 9)", (query,))
                assert bool(count) == bool(counts[0]) == bool(best) == expected


def test_a_search_uses_the_index_under_row_level_security(projects: TwoProjects) -> None:
    team = projects.team
    with team.admin.transaction():  # many rows of others, so that the index is worth it
        team.admin.execute(
            """
            INSERT INTO words(id, v, len, team_project, person)
            SELECT -n, to_tsvector('simple', 'p' || md5(n::text) || ' p' || md5((n / 7)::text)), 2, %s, %s
            FROM generate_series(1, 20000) n
            """,
            (projects.there.number, projects.there.person),
        )
    team.admin.execute("VACUUM ANALYZE words")  # the new rows are then in the index proper

    def scans() -> int:
        team.admin.execute("SELECT pg_stat_force_next_flush()")
        [(count,)] = team.admin.execute(
            "SELECT idx_scan FROM pg_stat_user_indexes WHERE indexrelname='words_found'"
        )
        return int(count)

    with closing(projects.here.reader()) as store:
        before = scans()
        assert store.search.match(words("herring"), Filters(), 9)
        store.db.run("SELECT pg_stat_force_next_flush()")
        store.commit()
        assert scans() > before
        plan = str(rows(store, "EXPLAIN SELECT id FROM words WHERE v @@ 'pherring'::tsquery"))
    assert "words_found" not in plan, "then the functions with other rights are not needed any more"
    team.admin.execute("DELETE FROM words WHERE id < 0")

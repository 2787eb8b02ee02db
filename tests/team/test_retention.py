"""What a project keeps: for how long, and how much."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator

import pytest
import zstandard

from tests.store.team import Team
from tests.team.shop import SharedShop, shared_shop
from tests.team.test_entry import actor
from whyfor.model.errors import StoreError
from whyfor.store.postgres.schema import CONTENT, EXCHANGED
from whyfor.team.access import MANAGE, project_access
from whyfor.team.projects import UNDO_MS, set_retention
from whyfor.team.resources import ProjectSizes
from whyfor.team.retention import delete_expired

pytestmark = pytest.mark.slow
DAY = 86_400_000


@pytest.fixture
def shop(postgres_18: Team, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SharedShop]:
    with shared_shop(postgres_18, tmp_path_factory.mktemp("shop")) as made:
        yield made


def keep_for(shop: SharedShop, days: int | None, start: int | None = None) -> None:
    shop.server.team.admin.execute(
        "UPDATE team_projects SET retention_days=%s, retention_from=%s WHERE id=%s",
        (days, start, shop.project.number),
    )


def age(shop: SharedShop, person: int, days: int) -> None:
    at = int(time.time() * 1000) - days * DAY
    shop.server.team.admin.execute(
        "UPDATE sessions SET started_at=%s, ended_at=%s WHERE person=%s", (at, at, person)
    )


def rows(shop: SharedShop, person: int) -> dict[str, int]:
    found = {}
    for table in (*CONTENT, *EXCHANGED):
        sql = f"SELECT count(*) FROM {table} WHERE person=%s AND team_project=%s"
        [(count,)] = shop.server.team.admin.execute(sql, (person, shop.project.number))
        found[table] = int(count)
    return found


def test_sessions_go_with_all_that_came_of_them_also_of_somebody_who_left(
    shop: SharedShop,
) -> None:
    team = shop.served.app.resources
    blobs = team.blobs(shop.project.number)
    age(shop, shop.ann, 40)
    age(shop, shop.bob, 20)
    [(name,)] = shop.server.team.admin.execute(
        "SELECT agent || ':' || session_id FROM sessions WHERE person=%s", (shop.ann,)
    )
    before = set(blobs.digests())
    bobs = rows(shop, shop.bob)
    assert delete_expired(team) == 0, "it keeps everything for good"
    keep_for(shop, 30, int(time.time() * 1000) + DAY)
    assert delete_expired(team) == 0, "not yet"
    lent = team.database.expiring(shop.ann, shop.project.number)
    with pytest.raises(StoreError), lent as store, store.transaction():
        store.set_mark("x", 1)
    keep_for(shop, 30)
    shop.server.team.admin.execute(
        "DELETE FROM project_members WHERE person_id=%s AND team_project=%s",
        (shop.ann, shop.project.number),
    )
    assert delete_expired(team) == 1
    assert delete_expired(team) == 0
    left = {table for table, count in rows(shop, shop.ann).items() if count}
    # where a session would be read on from, without its words; what to tell machines; numbers
    assert left <= {
        "sources",
        "shared_changes",
        "places",
        "marks",
        "changes",
        "search_sizes",
        "task_issues",
    }
    assert rows(shop, shop.bob) == bobs
    assert set(blobs.digests()) < before
    page = shop.get(f"{shop.base}/sessions", shop.bob)
    assert "heron" not in page
    assert "walrus" in page
    told = shop.served.get(f"{shop.api}/sync/changes", shop.tokens[shop.bob]).json()
    assert [each["name"] for each in told["changes"] if each["kind"] == "forgotten"] == [name]


def test_a_shorter_time_is_asked_about_and_holds_in_seven_days(shop: SharedShop) -> None:
    served, number = shop.served, shop.project.number
    person = served.person("member", {number: "admin"})
    age(shop, shop.ann, 40)
    doing = actor(served, person)

    def now() -> tuple[int | None, int | None]:
        sql = "SELECT retention_days, retention_from FROM team_projects WHERE id=%s"
        [found] = served.team.admin.execute(sql, (number,)).fetchall()
        return found

    def keep(days: int | None) -> None:
        access = project_access(served.app.resources, doing.member, number, MANAGE)
        set_retention(doing, access, days)

    page = served.get(f"/projects/{number}/settings?ask=keep-30", served.cookie(person))
    assert "1 session would go" in page.text
    keep(30)
    assert now() == (30, doing.now + UNDO_MS)
    keep(90)
    assert now() == (90, doing.now + UNDO_MS), "longer than what was asked for, not than what was"
    keep(None)
    assert now() == (None, None)


def test_a_full_project_takes_no_more_and_says_so(shop: SharedShop) -> None:
    member = shop.tokens[shop.ann]
    team = shop.served.app.resources
    content = b'{"type":"user"}\n' * 100
    digest = hashlib.sha256(content).hexdigest()
    packed = zstandard.ZstdCompressor().compress(content)

    def put(room: int) -> int:
        size = team.blobs(shop.project.number).size()
        shop.server.team.admin.execute(
            "UPDATE team_projects SET quota_bytes=%s WHERE id=%s",
            (size + room, shop.project.number),
        )
        path = f"{shop.api}/objects/{digest}"
        return shop.served.ask("PUT", path, member, content=packed).status_code

    team.sizes = ProjectSizes()
    assert put(len(packed) - 1) == 507
    assert put(len(packed)) == 201
    assert put(-1) == 200, "what is there already needs no room"


def test_objects_are_listed_once_a_minute(shop: SharedShop) -> None:
    clock = [0.0]
    sizes = ProjectSizes(lambda: clock[0])
    blobs = shop.served.app.resources.blobs(shop.other.number)
    assert sizes.size(blobs) == 0
    blobs.put(b"words of somebody else")
    sizes.add(blobs, 7)
    assert sizes.size(blobs) == 7
    clock[0] += 61
    assert sizes.size(blobs) == blobs.size() > 7

"""A project's pages and API on the team server: the laptop's own, for its members."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.cases import check_each
from tests.store.team import Team
from tests.team.shop import SharedShop, shared_shop
from whyfor.model.query import Filters
from whyfor.store.postgres.connection import ScopedConnection, StoreScope


@pytest.fixture(scope="module")
def shop(postgres_18: Team, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SharedShop]:
    with shared_shop(postgres_18, tmp_path_factory.mktemp("shop")) as made:
        yield made


def session_paths(page: str, base: str) -> list[str]:
    return sorted(set(re.findall(rf'href="({base}/sessions/claude/[\w-]+)"', page)))


def test_members_see_each_others_sessions_and_whose_they_are(shop: SharedShop) -> None:
    page = shop.get(f"{shop.base}/sessions", shop.bob)
    assert "Ann" in page
    assert "Bob" in page
    assert len(session_paths(page, shop.base)) == 2
    only = shop.get(f"{shop.base}/sessions?who={shop.ann}", shop.bob)
    [path] = session_paths(only, shop.base)
    talk = shop.get(path, shop.bob)
    assert "build a gate for the heron, please" in talk
    assert '<span class="prompt-name">Ann' in talk
    assert '<span class="prompt-name">You' not in talk
    assert '<span class="prompt-name">You' in shop.get(path, shop.ann)
    assert "claude --resume" not in talk


def test_the_first_page_has_the_newest_stories_and_what_was_asked(shop: SharedShop) -> None:
    page = shop.get("/projects", shop.bob)
    for word in ("heron", "walrus"):
        assert f"Paint the {word} gate" in page
        assert f"now paint the {word} gate green" in page
    outside = shop.get("/projects", shop.outsider)
    assert "gate" not in outside


def test_every_page_of_a_project_answers_its_members(shop: SharedShop) -> None:
    listed = shop.get(f"{shop.base}/sessions")
    sessions = session_paths(listed, shop.base)
    expected = {
        f"{shop.base}/timeline": "Paint the walrus gate",
        f"{shop.base}/commits/{shop.bob_commit}": "now paint the walrus gate green",
        f"{shop.base}/search?q=walrus": "walrus",
        f"{shop.base}/insights": "Insights",
        f"{shop.base}/insights?view=cost": "Cost",
        f"{shop.base}/memory": "Memory",
        f"{shop.base}/tasks": "Tasks",
        f"{shop.base}/map": "Paint the walrus gate",
        f"{shop.base}/map?branch=never": "No commit here has a story",
        f"{shop.base}/file?path=/home/bob/shop/notes.txt": "Paint the walrus gate",
        f"{shop.base}/file?path=never.py": "Nobody has shared a commit",
        f"{sessions[0]}/peek": "gate",
        f"{shop.base}/timeline/related/{shop.ann_commit}": "heron",
    }

    def check(path: str) -> None:
        page = shop.get(path)
        assert expected[path] in page
        outside = re.findall(
            r'(?:href|action)="(/(?:sessions|timeline|commits|search|memory|insights|tasks|file|map)[^"]*)',
            page,
        )
        assert not outside, "links stay in the project"
        assert 'method="post"' not in page, "what laptops alone may change has no form here"
        linked.update(
            html.unescape(link) for link in re.findall(rf'href="({shop.base}[^"#]*)', page)
        )

    linked: set[str] = set()
    check_each(((path, path) for path in expected), check)
    timeline = shop.get(f"{shop.base}/timeline")
    assert "repository gone" not in timeline
    assert 'aria-hidden="true">B</span>Bob' in timeline
    assert any("/file?" in link for link in linked)
    token = shop.tokens[shop.ann]
    answers = {link: shop.served.get(link, token).status_code for link in sorted(linked)}
    assert [link for link, status in answers.items() if status not in (200, 303)] == []


def test_lines_that_people_shared_are_counted_by_turn_without_a_repository(
    shop: SharedShop,
) -> None:
    drawn = shop.get(f"{shop.base}/map")
    assert "from 2 sessions: 4 lines in 1 file" in drawn
    assert drawn.count('class="band agent-claude') == 8, "each commit has a line of one session"
    assert "nobody can place" not in drawn
    for asked in ("build a gate for the walrus, please", "now paint the walrus gate green"):
        session = session_paths(shop.get(f"{shop.base}/sessions?who={shop.bob}"), shop.base)[0]
        chosen = session.partition("/claude/")[2]
        assert asked in shop.get(f"{shop.base}/map?session=claude:{chosen}")
    page = shop.get(f"{shop.base}/file?path=notes.txt")
    assert "Of 4 lines: 4 Claude Code" in page
    for asked in ("heron, please", "walrus, please", "heron gate green", "walrus gate green"):
        assert asked in page
    assert page.count('<span class="because-n">1 line</span>') == 4
    # what was counted for a session is what the map tells, though a person added lines too
    change = "UPDATE checkpoints SET files=replace(files, %s, %s) WHERE sha=%s"
    one, three = '["notes.txt",1,', '["notes.txt",3,'
    shop.server.team.admin.execute(change, (one, three, shop.ann_commit))
    try:
        drawn = shop.get(f"{shop.base}/map")
        assert "2 lines nobody can place are left out" in drawn
        assert "Several: 2 lines of notes.txt" in drawn
        page = shop.get(f"{shop.base}/file?path=notes.txt")
        assert "Of 6 lines: 4 Claude Code, 2 unknown" in page
    finally:
        shop.server.team.admin.execute(change, (three, one, shop.ann_commit))


def test_nobody_else_opens_a_page_or_hears_of_it(shop: SharedShop) -> None:
    listed = shop.get(f"{shop.base}/sessions")
    paths = [
        *session_paths(listed, shop.base),
        *(
            f"{shop.base}/{page}"
            for page in ("sessions", "timeline", "memory", "insights", "tasks")
        ),
        f"{shop.base}/search?q=walrus",
        f"{shop.base}/commits/{shop.ann_commit}",
        *(f"{shop.api}/{page}" for page in ("sessions", "search?q=heron", "stats", "notes")),
    ]

    def elsewhere(path: str, project: int) -> str:
        return path.replace(f"/projects/{shop.project.number}/", f"/projects/{project}/", 1)

    def check(path: str) -> None:
        token = shop.tokens[shop.outsider]
        refused = shop.served.get(path, token)
        unknown = shop.served.get(elsewhere(path, 2147483000), token)
        assert refused.status_code == unknown.status_code == 404
        assert refused.content == unknown.content
        own = shop.served.get(elsewhere(path, shop.other.number), token)
        assert own.status_code in (200, 404)
        for word in (b"heron", b"walrus", b"Ann", b"Bob"):
            if word.decode() not in path:
                assert word not in own.content
        assert shop.served.get(path).status_code in (303, 401)

    check_each(((path, path) for path in paths), check)


def test_the_api_of_a_project_has_the_shapes_of_the_laptops(shop: SharedShop) -> None:
    def get(path: str) -> dict[str, object]:
        answer = shop.served.get(f"{shop.api}/{path}", shop.tokens[shop.bob])
        assert answer.status_code == 200, answer.text
        found: dict[str, object] = answer.json()
        return found

    items = get("sessions")["items"]
    assert isinstance(items, list)
    assert len(items) == 2
    story = get(f"commits/{shop.ann_commit}")
    assert story["subject"] == "Paint the heron gate"
    commits = get(f"commits?project=team:{shop.project.number}")["items"]
    assert isinstance(commits, list)
    assert {commit["commit"] for commit in commits} >= {shop.ann_commit, shop.bob_commit}
    assert get("search?q=heron")["items"]
    refused = shop.served.get(f"{shop.api}/sessions?nonsense=1", shop.tokens[shop.ann])
    assert refused.status_code == 400


def test_where_figures_are_shown_others_words_are_not(shop: SharedShop) -> None:
    admin = shop.server.team.admin
    admin.execute(
        "UPDATE team_projects SET visibility='metrics' WHERE id=%s", (shop.project.number,)
    )
    try:
        page = shop.get(f"{shop.base}/sessions", shop.bob)
        assert "walrus" in page, "one's own"
        assert "heron" not in page
        assert "heron" not in shop.get(f"{shop.base}/timeline", shop.bob)
        missing = shop.served.get(f"{shop.base}/commits/{shop.ann_commit}", shop.tokens[shop.bob])
        assert missing.status_code == 404
    finally:
        admin.execute(
            "UPDATE team_projects SET visibility='stories' WHERE id=%s", (shop.project.number,)
        )


def test_pages_are_narrowed_to_one_person(shop: SharedShop) -> None:
    def check(page: str) -> None:
        question = "&" if "?" in page else "?"
        everybody = shop.get(f"{shop.base}/{page}", shop.bob)
        one = shop.get(f"{shop.base}/{page}{question}who={shop.ann}", shop.bob)
        assert f'<option value="{shop.ann}" selected>Ann</option>' in one.replace("\n", "")
        assert f'<option value="{shop.bob}">Bob</option>' in everybody.replace("\n", "")
        assert "walrus" in everybody or page.startswith("insights")
        if page == "memory":  # a note may say by whose it was replaced
            assert 0 < one.count("data-key=") < everybody.count("data-key=")
        else:
            assert "walrus" not in one
        refused = shop.served.get(
            f"{shop.base}/{page}{question}who=x",
            shop.tokens[shop.bob],
            headers={"accept": "text/html"},
        )
        assert "no such person" in refused.text.lower()

    token = shop.tokens[shop.bob]
    assert shop.served.get(f"{shop.api}/sync/changes?after={10**21}", token).status_code == 400
    listed = shop.served.get(f"{shop.api}/sessions?who={shop.ann}", token).json()
    assert ["heron" in (one["title"] or "") for one in listed["items"]] == [True]
    pages = ("sessions", "search?q=gate", "memory", "insights", "insights?view=cost")
    check_each(((page, page) for page in pages), check)
    typed = shop.get(f"{shop.base}/search?q=gate+person:ann", shop.bob)
    assert "heron" in typed
    assert "walrus" not in typed
    assert "hit-person" in typed


def test_commits_are_narrowed_to_a_branch_of_their_sessions(shop: SharedShop) -> None:
    sql = "UPDATE sessions SET branch='heronry' WHERE team_project=%s AND person=%s"
    shop.served.team.admin.execute(sql, (shop.project.number, shop.ann))
    token = shop.tokens[shop.bob]
    page = shop.get(f"{shop.base}/timeline?branch=heronry", shop.bob)
    listed = shop.served.get(f"{shop.api}/commits?branch=heronry", token).json()
    assert '<option value="heronry" selected>' in page
    assert "heronry" in listed["branches"]
    for told in (page, str(listed["items"])):
        assert "Paint the heron gate" in told
        assert "Paint the walrus gate" not in told
    assert shop.served.get(f"{shop.api}/commits?branch=never", token).json()["items"] == []
    assert "Paint the walrus gate" in shop.get(f"{shop.base}/timeline", shop.bob)


def test_the_context_of_a_branch_is_one_answer(shop: SharedShop) -> None:
    answer = shop.served.get(f"{shop.api}/context", shop.tokens[shop.bob])
    assert answer.status_code == 200, answer.text
    told = answer.json()
    assert sorted(one["who"] for one in told["sessions"]) == ["Ann", "Bob"]
    words = [quote["text"] for one in told["sessions"] for quote in one["summary"]["request"]]
    assert any("heron" in word for word in words)
    none = shop.served.get(f"{shop.api}/context?branch=nowhere", shop.tokens[shop.bob])
    assert none.json() == {"branch": "nowhere", "sessions": [], "decisions": []}


def test_row_level_security_alone_gives_the_same_rows(shop: SharedShop) -> None:
    """Every question of the pages, asked with its project left out of its conditions."""
    resources = shop.served.app.resources
    member = resources.look_up(shop.tokens[shop.bob])
    assert member is not None
    scope = StoreScope(member.person, shop.project.number)
    seen: list[tuple[str, list[Any], list[Any]]] = []
    run = ScopedConnection.run

    def watched(db: ScopedConnection, sql: str, values: Any = ()) -> Any:
        if "team_project = %s" in sql and sql.lstrip().startswith("SELECT"):
            kept = run(db, sql, values).fetchall()
            given = list(values)
            at = sql[: sql.index("team_project = %s")].count("%s")
            bare = sql.replace("team_project = %s", "TRUE", 1)
            stripped = run(db, bare, given[:at] + given[at + 1 :]).fetchall()
            seen.append((sql, kept, stripped))
        return run(db, sql, values)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ScopedConnection, "run", watched)
        with resources.database.pool.store(scope) as store:
            session = store.sessions.matching(Filters(), limit=9, subagents=False)
            store.uploads.stories([shop.ann_commit, shop.bob_commit])
            store.uploads.authors()
            store.uploads.owners_of([each.id for each in session])
            store.uploads.owners("claude", session[0].session_id)
            store.uploads.changes(0, 99)
            store.uploads.last_change()
            store.uploads.has_digest("0" * 64)
    assert len(seen) == 7
    for sql, kept, stripped in seen:
        assert kept == stripped, sql

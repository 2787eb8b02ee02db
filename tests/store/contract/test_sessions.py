"""Sessions: found by any beginning of their id, by filters, by what they wrote."""

from __future__ import annotations

import pytest

from tests.store.contract.build import NOW, SHOP, Build, checkpoint, part
from whyfor.model.errors import Ambiguous, NotFound
from whyfor.model.events import Touch
from whyfor.model.listing import ListFilter
from whyfor.model.query import Filters
from whyfor.model.sessions import NamedSession, SessionFile, SessionPlace
from whyfor.model.signals import Signal
from whyfor.model.titles import TITLE_AGENT
from whyfor.store.protocol import SharedStore

SESSIONS = (
    ("claude", "3f05aaaa", None),
    ("claude", "3f05bbbb", None),
    ("claude", "3f05bbbb-and-more", None),
    ("claude", "77aa0001", None),
    ("claude", "77aa0001-child", "77aa0001"),
    ("claude", "agent-1@77aa0001", "77aa0001"),
    ("claude", "agent-1@3f05aaaa", "3f05aaaa"),
    ("claude", "99990000", None),
    ("codex", "99990000", None),
    ("codex", "88880000", None),
    ("codex", "100%_\\'\"", None),
)


@pytest.fixture
def crowd(store: SharedStore, build: Build) -> SharedStore:
    for number, (agent, ident, parent) in enumerate(SESSIONS):
        event = build.event("user.prompt", f"prompt {number}")
        build.session(ident, event, agent=agent, parent=parent)
    return store


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("3f05a", "3f05aaaa"),
        ("3f05aaaa", "3f05aaaa"),
        ("7", "77aa0001"),
        ("8", "88880000"),
        ("agent-1@7", "agent-1@77aa0001"),
        ("100%", "100%_\\'\""),
        ("100%_\\'", "100%_\\'\""),
    ],
)
def test_a_beginning_that_fits_one_session_names_it(
    given: str, expected: str, crowd: SharedStore
) -> None:
    assert crowd.sessions.find(given).session_id == expected


def test_a_whole_id_wins_over_those_it_begins(crowd: SharedStore) -> None:
    assert crowd.sessions.find("3f05bbbb").session_id == "3f05bbbb"


def test_a_main_session_wins_over_subagents(crowd: SharedStore) -> None:
    assert crowd.sessions.find("77aa").session_id == "77aa0001"
    assert crowd.sessions.find("77aa0001-c").session_id == "77aa0001-child"


@pytest.mark.parametrize(
    ("given", "number"), [("3f05", 3), ("3f05b", 2), ("agent-1", 2), ("9999", 2), ("99990000", 2)]
)
def test_a_beginning_that_fits_several_is_ambiguous_and_names_them(
    given: str, number: int, crowd: SharedStore
) -> None:
    with pytest.raises(Ambiguous, match=f"fits {number} sessions: (claude|codex):"):
        crowd.sessions.find(given)


@pytest.mark.parametrize("given", ["", "zz", "3f05aaaab", "%", "_", "3F05A\x00", "\U0010ffff"])
def test_what_begins_no_session_is_not_found(given: str, crowd: SharedStore) -> None:
    with pytest.raises(NotFound):
        crowd.sessions.find(given)


def test_a_crowd_of_subagents_hides_neither_a_whole_id_nor_a_main_session(
    store: SharedStore, build: Build
) -> None:
    for number in range(300):
        build.session(f"agent-{number}@abcd", parent="abcd")
    build.session("agent-", parent="abcd")
    build.session("abcd")
    assert store.sessions.find("a").session_id == "abcd"
    assert store.sessions.find("agent-").session_id == "agent-"


def test_an_agents_name_tells_equal_ids_apart(crowd: SharedStore) -> None:
    for agent in ("claude", "codex"):
        assert crowd.sessions.find("99990000", agent).agent == agent
    with pytest.raises(NotFound):
        crowd.sessions.find("99990000", "gemini")


def test_sessions_are_listed_newest_first_and_subagents_apart(crowd: SharedStore) -> None:
    main = [s.session_id for s in crowd.sessions.matching(Filters(), limit=None, subagents=False)]
    assert main == [ident for _, ident, parent in reversed(SESSIONS) if parent is None]
    assert len(crowd.sessions.matching(Filters(), limit=None, subagents=True)) == len(SESSIONS)
    children = crowd.sessions.children(["77aa0001"])
    assert [(s.session_id, s.parent_session_id) for s in children] == [
        ("77aa0001-child", "77aa0001"),
        ("agent-1@77aa0001", "77aa0001"),
    ]
    assert [
        s.session_id for s in crowd.sessions.matching(Filters(), limit=2, subagents=False)
    ] == main[:2]


def test_numbers_and_names_say_the_same(store: SharedStore, build: Build) -> None:
    build.project()
    main = build.session("main", build.event("user.prompt", "go"), facts={"cwd": "/shop"})
    child = build.session("child", parent="main")
    assert store.sessions.numbers([("claude", "main"), ("codex", "main")]) == {
        ("claude", "main"): main
    }
    assert store.sessions.by_number([main, -1]) == {main: store.sessions.find("main")}
    assert store.sessions.names([main, child]) == {
        main: NamedSession("claude", "main", None, SHOP.identity),
        child: NamedSession("claude", "child", "main", SHOP.identity),
    }
    assert store.sessions.last_seqs([main, child]) == {main: 1, child: 0}
    assert {brief.session_id: brief.last_seq for brief in store.sessions.briefs([main])} == {
        "main": 1
    }


def test_a_page_goes_on_where_the_last_one_ended(crowd: SharedStore) -> None:
    whole = crowd.sessions.page(Filters(), None, 99, subagents=True)
    assert len(whole) == len(SESSIONS)
    first = crowd.sessions.page(Filters(), None, 4, subagents=True)
    rest = crowd.sessions.page(Filters(), first[-1][0], 99, subagents=True)
    assert [*first, *rest] == whole
    assert all(
        not s.parent_session_id
        for _, s in crowd.sessions.page(Filters(), None, 99, subagents=False)
    )


def test_filters_are_by_agent_project_branch_and_time(store: SharedStore, build: Build) -> None:
    project = build.project()
    build.session(
        "a", build.event("user.prompt", "go", at=NOW), facts={"cwd": "/shop", "branch": "x"}
    )
    build.session("b", build.event("user.prompt", "go", at=NOW + 10), agent="codex")

    def found(filters: Filters) -> list[str]:
        listed = store.sessions.matching(filters, limit=None, subagents=False)
        return [session.session_id for session in listed]

    assert found(Filters(agent="codex")) == ["b"]
    assert found(Filters(agents=("claude", "gemini"))) == ["a"]
    assert found(Filters(projects=(project,))) == ["a"]
    assert found(Filters(projects=())) == []
    assert found(Filters(branch="x")) == ["a"]
    assert found(Filters(since=NOW + 1)) == ["b"]
    assert found(Filters(until=NOW + 1)) == ["a"]


def test_what_a_session_wrote_is_known_by_folder_and_since_an_event(
    store: SharedStore, build: Build
) -> None:
    one, two = build.event("tool.call", "edit"), build.event("tool.call", "edit")
    touches = [Touch(one.key, "/shop/a.py", "write"), Touch(two.key, "/shop/b/c.py", "write")]
    number = build.session("main", one, two, more=touches)
    child = build.event("tool.call", "edit")
    build.session("child", child, parent="main", more=[Touch(child.key, "/shop2/d.py", "write")])
    sessions = store.sessions
    assert sessions.written_paths([number]) == {"/shop/a.py", "/shop/b/c.py"}
    assert sessions.writing_below(["/shop"]) == {number}
    assert sessions.writing_below(["/shop/b/", "/elsewhere"]) == {number}
    assert sessions.writing_below(["/sho"]) == set()
    assert sessions.files_after(number, 1) == {"/shop/b/c.py"}
    main = sessions.find("main")
    assert sessions.files_since(main, 1, 0) == {"/shop/b/c.py", "/shop2/d.py"}
    assert sessions.files_since(main, 1, NOW * 2) == {"/shop/b/c.py"}
    assert main.files_modified == ["/shop/a.py", "/shop/b/c.py"]


def test_who_was_active_is_told_by_transcripts_and_hooks(store: SharedStore, build: Build) -> None:
    build.session("old", build.event("user.prompt", "go", at=NOW))
    build.session("new", build.event("user.prompt", "go", at=NOW + 100))
    build.session("child", build.event("user.prompt", "go", at=NOW + 200), parent="new")
    build.signals(Signal(NOW + 50, "codex", "Stop", session_agent="codex", session_id="heard"))
    found = store.sessions.active_since(NOW + 20)
    assert sorted(found) == [("claude", "new"), ("codex", "heard")]
    family = store.sessions.family("claude", "new", NOW + 20)
    assert sorted((brief.session_id, brief.parent) for brief in family) == [
        ("child", "new"),
        ("new", None),
    ]
    assert store.sessions.family("claude", "new", NOW + 300)[0].session_id == "new"


def test_a_project_knows_when_it_began_and_who_worked_lately(
    store: SharedStore, build: Build
) -> None:
    project = build.project()
    number = build.session("a", build.event("user.prompt", "go", at=NOW), facts={"cwd": "/shop"})
    later = build.session(
        "b", build.event("user.prompt", "go", at=NOW + 50), facts={"cwd": "/shop"}
    )
    build.checkpoint(project, checkpoint("c1", part("b", 1, 1)))
    sessions = store.sessions
    assert sessions.first_started(project) == NOW
    assert sessions.first_started(project + 1) is None
    assert (sessions.count_since(project, 0), sessions.count_since(project, NOW + 50)) == (2, 1)
    assert sessions.recent(project, NOW - 1, 9) == [(later, 1), (number, 0)]
    assert (sessions.last_ended("claude"), sessions.last_started("claude")) == (NOW + 50, NOW + 50)
    assert (sessions.last_ended("codex"), sessions.last_started("codex")) == (None, None)
    assert sessions.others_active([number], NOW + 40, NOW + 60)
    assert not sessions.others_active([number, later], NOW, NOW + 60)


def test_where_a_session_began_and_what_it_was_read_from(store: SharedStore, build: Build) -> None:
    facts = {"cwd": "/shop", "version": "1.2", "title": "Mend it", "title_rank": TITLE_AGENT}
    number = build.session("a", build.event("user.prompt", "go", at=NOW), facts=facts)
    build.session("child", parent="a")
    build.source("/logs/a.jsonl", "a", size=7)
    assert store.sessions.places() == [SessionPlace("claude", "a", "/shop")]
    assert store.sessions.begun_in("/shop") == [
        SessionFile("claude", "a", "Mend it", NOW, "/logs/a.jsonl", 7)
    ]
    assert store.sessions.begun_in("/elsewhere") == []
    assert store.sessions.agent_version(number) == "1.2"


def test_a_short_id_names_its_session_alone(crowd: SharedStore) -> None:
    names = [(agent, ident) for agent, ident, _ in SESSIONS]
    short = crowd.sessions.short_ids(names, 4)
    assert len(set(short.values())) == len(SESSIONS)
    for agent, ident in names:
        text = short[f"{agent}:{ident}"]
        given, _, rest = text.partition(":")
        found = crowd.sessions.find(rest, given) if rest else crowd.sessions.find(text)
        assert (found.agent, found.session_id) == (agent, ident)
    assert short["claude:3f05aaaa"] == "3f05a"
    assert short["claude:agent-1@77aa0001"] == "agent-1@7"
    assert short["codex:88880000"] == "8888"
    assert short["codex:99990000"] == "codex:99990000"


def test_the_short_id_of_a_session_that_is_not_kept_is_a_beginning_of_it(
    crowd: SharedStore,
) -> None:
    assert crowd.sessions.short_ids([("gemini", "3f05aaab")], 4) == {"gemini:3f05aaab": "3f05aaab"}
    assert crowd.sessions.short_ids([], 4) == {}


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        ("login.py", {"one", "windows"}),
        ("auth/login.py", {"one", "windows"}),
        ("auth", {"one", "windows"}),
        ("/shop/auth/login.py", {"one"}),
        ("ogin.py", set()),
        ("b.py", {"one"}),
        ("read.py", set()),
    ],
)
def test_sessions_are_found_by_a_file_that_they_or_their_subagents_wrote(
    file: str, expected: set[str], store: SharedStore, build: Build
) -> None:
    call = build.event("tool.call", "edit")
    touches = [
        Touch(call.key, "/shop/auth/login.py", "write"),
        Touch(call.key, "/shop/read.py", "read"),
    ]
    build.session("one", call, more=touches)
    child = build.event("tool.call", "edit")
    build.session("child", child, parent="one", more=[Touch(child.key, "/shop/b.py", "write")])
    other = build.event("tool.call", "edit")
    path = r"C:\shop\auth\login.py"
    build.session("windows", other, more=[Touch(other.key, path, "write")])
    found = store.sessions.matching(Filters(file=file), limit=None, subagents=False)
    assert {session.session_id for session in found} == expected
    rows = store.listing.page(ListFilter(file=file), "last", None)
    assert {row.session_id for _, row in rows} == expected

"""What is remembered of sessions."""

from __future__ import annotations

from typing import Any

import pytest

from tests.store.contract.build import NOW, SHOP, Build, checkpoint, part
from whyfor.model.errors import Ambiguous, NotFound
from whyfor.model.events import Touch
from whyfor.model.memory import (
    PRINTED_MAX,
    CommandCount,
    MemoryFilter,
    ModelCall,
    NoteCounts,
    NotePlace,
    NoteStatement,
    Observation,
    Quote,
    SearchCard,
    SessionMemory,
    SessionSummary,
    StoredObservation,
    TouchedFile,
    WaitingSession,
)
from whyfor.model.query import Filters
from whyfor.model.sessions import Project
from whyfor.model.titles import TITLE_AGENT
from whyfor.store.protocol import SharedStore

SUMMARY = SessionSummary(request=(Quote(1, 0, 6, "Fix it"),), investigated=("/shop/a.py",))


def note(key: str, at: int | None = NOW, **more: object) -> Observation:
    given = {"type": "discovery", "state": "stated", "title": key, "turn": 1, **more}
    return Observation(key=key, at=at, **given)  # type: ignore[arg-type]


def remember(store: SharedStore, session: int, *notes: Observation, version: int = 1) -> None:
    memory = SessionMemory(SUMMARY, notes, (CommandCount("pytest", "pytest -q", 4, 2, 1, NOW),))
    last = store.sessions.last_seqs([session])[session]
    with store.transaction():
        store.memory.save(WaitingSession(session, "claude", "a", 1, last), memory, version)


def keys(found: list[StoredObservation]) -> list[str]:
    return [each.observation.key for each in found]


def test_a_session_waits_until_its_memory_is_as_new_as_it_is(
    store: SharedStore, build: Build
) -> None:
    session = build.session("a", build.event("user.prompt", "Fix it"))
    assert store.memory.waiting(1) == [WaitingSession(session, "claude", "a", 1, 1)]
    remember(store, session)
    assert store.memory.waiting(1) == []
    assert [each.number for each in store.memory.waiting(2)] == [session]
    build.session("a", build.event("assistant.message", "Done"))
    assert store.memory.waiting(1) == [WaitingSession(session, "claude", "a", 1, 2)]


def test_memory_is_made_from_the_words_and_what_was_done(store: SharedStore, build: Build) -> None:
    """What was printed is cut, what was thought is left out, and a call's words are in its data."""
    given = {"id": "c1", "input": {"command": "make"}}
    session = build.session(
        "a",
        build.event("user.prompt", "Fix it"),
        build.event("assistant.thinking", "Hm"),
        build.event("tool.call", "make", name="Bash", data=given),
        build.event("tool.result", "x" * 1000, data={"id": "c1", "failed": True}),
        build.event("assistant.message", "Done"),
    )
    found = list(store.memory.events(WaitingSession(session, "claude", "a", 2, 5)))
    assert [(each.seq, each.kind, each.text, each.data) for each in found] == [
        (2, "assistant.thinking", "", None),
        (3, "tool.call", "", given),
        (4, "tool.result", "x" * PRINTED_MAX, {"id": "c1", "failed": True}),
        (5, "assistant.message", "Done", None),
    ]
    assert found[1].name == "Bash"


def test_a_memory_takes_the_place_of_the_one_before(store: SharedStore, build: Build) -> None:
    session = build.session("a", build.event("user.prompt", "Fix it"))
    remember(store, session, note("a1", files_written=("/shop/a.py",)), note("a2"))
    remember(store, session, note("a2"), note("a3", NOW + 1))
    assert keys(store.memory.observations(MemoryFilter(), None)) == ["a3", "a2"]
    assert store.memory.observations(MemoryFilter(file="/shop/a.py"), None) == []
    assert store.memory.summary(session) == SUMMARY


def test_notes_are_found_by_type_state_file_and_session(store: SharedStore, build: Build) -> None:
    shop = build.project(SHOP)
    session = build.session(
        "a", build.event("user.prompt", "x"), facts={"cwd": "/shop", "branch": "main"}
    )
    other = build.session("b", build.event("user.prompt", "y"), agent="codex")
    rule = note("a1", NOW + 2, type="rule", files_read=("/shop/lib/a%b.py",))
    guess = note("a2", NOW + 1, state="hypothesis")
    remember(store, session, rule, guess)
    remember(store, other, note("b1"))

    def found(**wanted: object) -> list[str]:
        return keys(store.memory.observations(MemoryFilter(**wanted), None))  # type: ignore[arg-type]

    assert found() == ["a1", "a2", "b1"]
    assert found(types=("rule", "decision")) == ["a1"]
    assert found(states=("hypothesis",)) == ["a2"]
    assert found(file="lib/a%b.py") == ["a1"]
    assert found(file="b/a%b.py") == []
    assert found(file="ib/a%b.py") == []
    assert found(sessions=Filters(agent="codex")) == ["b1"]
    assert found(sessions=Filters(since=NOW + 1)) == ["a1", "a2"]
    assert found(sessions=Filters(projects=(shop,))) == ["a1", "a2"]
    assert keys(store.memory.observations(MemoryFilter(), 1)) == ["a1"]
    assert store.memory.observation("a1") == StoredObservation(
        rule, "claude", "a", None, SHOP.identity, "main"
    )


def test_a_note_is_found_by_the_beginning_of_its_key(store: SharedStore, build: Build) -> None:
    session = build.session("a", build.event("user.prompt", "x"))
    remember(store, session, note("abc1"), note("abd2"))
    assert store.memory.observation("abd").observation.key == "abd2"
    with pytest.raises(Ambiguous):
        store.memory.observation("ab")
    for missing in ("x", "", "abc12"):
        with pytest.raises(NotFound):
            store.memory.observation(missing)


def test_commands_are_counted_over_the_sessions_of_a_project(
    store: SharedStore, build: Build
) -> None:
    shop = build.project(SHOP)
    for name in ("a", "b"):
        prompt = build.event("user.prompt", "x")
        remember(store, build.session(name, prompt, facts={"cwd": "/shop"}))
    assert store.memory.commands([shop]) == [CommandCount("pytest", "pytest -q", 8, 4, 2, NOW)]
    assert store.memory.commands([]) == []


def count(family: str, ok: int, last: int | None, seq: int = 1) -> CommandCount:
    return CommandCount(family, f"{family} -q", ok + 1, ok, 1, last, seq)


def ran(store: SharedStore, session: int, *counts: CommandCount) -> None:
    waiting = next(each for each in store.memory.waiting(99) if each.number == session)
    with store.transaction():
        store.memory.save(waiting, SessionMemory(SUMMARY, (), counts), 1)


def settle(store: SharedStore, project: int, *notes: tuple[int, Observation]) -> None:
    with store.transaction():
        store.memory.save_commands(project, notes)


def test_a_project_waits_for_the_notes_on_its_commands(store: SharedStore, build: Build) -> None:
    shop = build.project(SHOP)
    one, two = (
        build.session(name, build.event("user.prompt", "x"), facts={"cwd": "/shop"})
        for name in ("a", "b")
    )
    assert store.memory.changed_commands() == []
    ran(store, one, count("pytest", 3, NOW + 9), count("make lint", 0, None))
    ran(store, two, count("pytest", 2, NOW), count("make test", 4, NOW))
    assert store.memory.changed_commands() == [shop]
    found = store.memory.project_commands(shop)
    assert [(each.count.family, each.count.ok, each.sessions) for each in found] == [
        ("pytest", 5, 2),
        ("make test", 4, 1),
    ]
    assert (found[0].session, found[0].turn, found[0].count.last_ok) == (one, 1, NOW + 9)
    settle(store, shop, (one, note("c1", type="command")), (two, note("c2", type="command")))
    assert store.memory.changed_commands() == []
    settle(store, shop, (one, note("c1", type="command")))
    assert keys(store.memory.observations(MemoryFilter(types=("command",)), None)) == ["c1"]
    with store.transaction():
        store.removal.delete_session(one)
    assert store.memory.changed_commands() == [shop]
    assert [each.count.ok for each in store.memory.project_commands(shop)] == [4, 2]


def test_a_session_that_turns_out_to_be_of_another_project_takes_its_commands_along(
    store: SharedStore, build: Build
) -> None:
    shop = build.project(SHOP)
    session = build.session("a", build.event("user.prompt", "x"), facts={"cwd": "/shop"})
    ran(store, session, count("pytest", 1, NOW))
    settle(store, shop, (session, note("c1", type="command")))
    till = Project("example.com/till", "remote", "till", path="/till")
    with store.transaction():
        other = store.records.writer().learn_place("/shop", till, [SHOP.identity], NOW)
    assert store.memory.changed_commands() == sorted((shop, other))
    assert store.memory.project_commands(shop) == []
    assert len(store.memory.project_commands(other)) == 1


def test_what_was_said_about_a_command_stays_when_its_note_is_made_again(
    store: SharedStore, build: Build
) -> None:
    shop = build.project(SHOP)
    session = build.session("a", build.event("user.prompt", "x"), facts={"cwd": "/shop"})
    settle(
        store, shop, (session, note("c1", type="command")), (session, note("c2", type="command"))
    )
    with store.transaction():
        store.memory.state(NoteStatement(key="c1", at=NOW, by="person", action="pin"))
        store.memory.state(NoteStatement(key="c2", at=NOW, by="person", action="forget"))
    settle(
        store, shop, (session, note("c1", type="command")), (session, note("c2", type="command"))
    )
    (kept,) = store.memory.observations(MemoryFilter(), None)
    assert (kept.observation.key, kept.observation.pinned) == ("c1", True)


def test_files_are_those_that_a_projects_sessions_used_last(
    store: SharedStore, build: Build
) -> None:
    shop = build.project(SHOP)
    for name, at in (("a", NOW), ("b", NOW + 5_000)):
        read = build.event("tool.call", name="Read", at=at)
        more = [
            Touch(read.key, "/shop/both.py", "read"),
            Touch(read.key, f"/shop/{name}.py", "write"),
        ]
        build.session(name, read, facts={"cwd": "/shop"}, more=more)
    assert store.memory.files([shop], 10) == [
        TouchedFile("/shop/both.py", NOW + 5_000, 2, False),
        TouchedFile("/shop/b.py", NOW + 5_000, 1, True),
        TouchedFile("/shop/a.py", NOW, 1, True),
    ]
    assert len(store.memory.files([shop], 1)) == 1


def test_what_is_forgotten_is_not_remembered(store: SharedStore, build: Build) -> None:
    session = build.session("a", build.event("user.prompt", "x"))
    remember(store, session, note("a1", files_read=("/shop/a.py",)))
    with store.transaction():
        store.removal.empty_session(session)
    assert store.memory.observations(MemoryFilter(), None) == []
    assert store.memory.observations(MemoryFilter(file="/shop/a.py"), None) == []
    assert store.memory.summary(session) is None
    assert [each.number for each in store.memory.waiting(1)] == [session]


def said(key: str, action: str, at: int = NOW, **more: Any) -> NoteStatement:
    given = {"key": key, "at": at, "by": "person", "action": action, **more}
    return NoteStatement(**given)


def test_what_is_said_of_a_note_is_kept_and_changes_it(store: SharedStore, build: Build) -> None:
    session = build.session("a", build.event("user.prompt", "x"))
    remember(store, session, note("a1"))
    whose: Any = {"agent": "claude", "session_id": "a"}
    told = [
        said("a1", "pin", **whose),
        said("a1", "write", NOW + 1, text="It is so.", type="rule", **whose),
    ]
    with store.transaction():
        for statement in (*told, told[0]):  # the same twice changes nothing
            store.memory.state(statement)
    found = store.memory.observation("a1")
    assert (found.observation.title, found.observation.type) == ("It is so.", "rule")
    assert (found.observation.pinned, found.session_id) == (True, "a")
    assert store.memory.said("a1") == store.memory.all_said() == told
    remember(store, session, note("a1"))
    assert store.memory.observation("a1") == found
    remember(store, session)  # the rules see it no more: what a person wrote stays
    assert store.memory.observation("a1").observation.title == "It is so."
    with store.transaction():
        store.memory.keep_said(told[:1])
    assert store.memory.said("a1") == told[:1]
    with pytest.raises(NotFound):
        store.memory.observation("a1")


def test_a_note_without_a_session_says_where_it_belongs(store: SharedStore, build: Build) -> None:
    shop = build.project(SHOP)
    more: Any = {"project": SHOP.identity, "branch": "main", "files": ("lib/a.py",)}
    with store.transaction():
        store.memory.state(said("b1", "write", text="Keep it.", **more))
        store.memory.state(said("b2", "write", NOW + 1, text="Not so.", replaces="b1", **more))
    wanted = MemoryFilter(Filters(projects=(shop,), branch="main"), file="a.py")
    assert keys(store.memory.observations(wanted, None)) == ["b2", "b1"]
    assert store.memory.observation("b1").superseded_by == "b2"
    with store.transaction():
        store.memory.state(said("b2", "forget", NOW + 2))
    assert keys(store.memory.observations(MemoryFilter(), None)) == ["b1"]
    assert store.memory.observation("b1").superseded_by is None


def test_shown_ids_fit_one_note_only(store: SharedStore, build: Build) -> None:
    session = build.session("a", build.event("user.prompt", "x"))
    remember(store, session, note("abcdefgh1x"), note("abcdefgh2x"), note("b" * 16))
    assert store.memory.short_keys(["abcdefgh1x", "b" * 16]) == {
        "abcdefgh1x": "abcdefgh1",
        "b" * 16: "b" * 8,
    }


def test_a_session_that_a_model_was_asked_about_is_not_asked_about_again(
    store: SharedStore, build: Build
) -> None:
    number = build.session("a", build.event("user.prompt", "x"))
    (ended,) = (each.ended_at for each in store.sessions.by_number([number]).values())
    assert ended is not None
    found = store.memory.unasked(ended, ended, 5)
    assert [(each.number, each.agent, each.session_id) for each in found] == [
        (number, "claude", "a")
    ]
    assert store.memory.unasked(ended + 1, ended + 2, 5) == []
    call = ModelCall("small-1", 900, 70, 0.5, kept=1, rejected=0, outcome="ok")
    whose: Any = {"agent": "claude", "session_id": "a", "call": call}
    with store.transaction():
        store.memory.state(said("m1", "asked", **whose))
    assert store.memory.unasked(ended, ended, 5) == []
    assert store.memory.model_calls(NOW) == [call]
    assert store.memory.model_calls(NOW + 1) == []
    assert store.memory.observations(MemoryFilter(), None) == []


def test_notes_are_read_page_by_page_each_once(store: SharedStore, build: Build) -> None:
    session = build.session("a", build.event("user.prompt", "x"))
    undated = [note(f"u{number}", at=None) for number in range(2)]
    alike = [note(f"s{number}") for number in range(3)]
    remember(store, session, *undated, *alike, note("n1", NOW + 1))
    found: list[StoredObservation] = []
    place: NotePlace | None = None
    while page := store.memory.note_page(MemoryFilter(), 2, place):
        found += page
        last = page[-1].observation
        place = NotePlace(-1 if last.at is None else last.at, last.key)
    assert keys(found) == ["n1", "s0", "s1", "s2", "u0", "u1"]


def test_notes_are_found_by_words_sessions_and_whole_paths(
    store: SharedStore, build: Build
) -> None:
    one = build.session("a", build.event("user.prompt", "x"))
    two = build.session("b", build.event("user.prompt", "y"))
    remember(
        store,
        one,
        note("a1", title="Use pnpm", files_written=("/shop/a.py",)),
        note("a2", narrative="50% of it"),
    )
    remember(store, two, note("b1", facts=("pytest failed",), files_read=("/shop/lib/a.py",)))

    def found(**wanted: object) -> list[str]:
        return keys(store.memory.note_page(MemoryFilter(**wanted), 10, None))  # type: ignore[arg-type]

    assert found(words=("PNPM", "use")) == ["a1"]
    assert found(words=("50%",)) == ["a2"]
    assert found(words=("5_%",)) == []
    assert found(words=("failed",)) == ["b1"]
    assert found(words=("narrative",)) == []
    assert found(numbers=(two,)) == ["b1"]
    assert found(numbers=()) == []
    assert found(paths=("/shop/a.py", "/shop/b.py")) == ["a1"]
    assert found(paths=()) == []


def test_notes_are_counted_with_those_that_still_hold(store: SharedStore, build: Build) -> None:
    build.project(SHOP)
    session = build.session("a", build.event("user.prompt", "x"), facts={"cwd": "/shop"})
    other = build.session("b", build.event("user.prompt", "y"))
    remember(store, session, note("a1"), note("a2"), note("a3", NOW + 3))
    remember(store, other, note("b1"))
    with store.transaction():
        store.memory.state(said("a1", "wrong", agent="claude", session_id="a"))
        new = said("new", "write", text="Better", replaces="a2", project=SHOP.identity)
        store.memory.state(new)
    assert store.memory.count(MemoryFilter()) == NoteCounts(notes=5, sessions=2, current=3)
    held = store.memory.note_page(MemoryFilter(current=True), 10, None)
    assert set(keys(held)) == {"a1", "a3", "b1", "new"}
    refuted = MemoryFilter(states=("refuted",))
    assert store.memory.count(refuted) == NoteCounts(notes=1, sessions=1, current=0)
    (shop,) = store.memory.projects()
    assert (shop.identity, shop.notes) == (SHOP.identity, 4)


def card(store: SharedStore, session: int, card: SearchCard, name: str = "a") -> None:
    last = store.sessions.last_seqs([session])[session]
    memory = SessionMemory(SUMMARY, (), (), card)
    with store.transaction():
        store.memory.save(WaitingSession(session, "claude", name, 1, last), memory, 1)


def carded(store: SharedStore, *asked: str, every: bool = False, **where: Any) -> list[int]:
    found = store.search.cards(asked, Filters(**where), 9, every=every)
    return [each.session for each in found]


def test_a_card_finds_its_session_by_any_form_of_its_words(
    store: SharedStore, build: Build
) -> None:
    asked = build.event("user.prompt", "Mend it")
    gate = build.session("a", asked, more=[Touch(asked.key, "/x/parseQuery.py", "write")])
    wall = build.session("b", build.event("user.prompt", "Paint it"))
    card(store, gate, SearchCard(prompts="encrypting the gate", commits="Add north_gate"))
    card(store, wall, SearchCard(closing="the wall is painted", learned="paint dries"), "b")
    assert carded(store, "encryption") == [gate]
    assert carded(store, "north") == carded(store, "query") == [gate]
    assert carded(store, "paint", "gate") == [wall, gate]
    assert carded(store, "paint", "gate", every=True) == []
    assert carded(store, "gate", agent="codex") == []
    assert carded(store, "gate", fields=("prompts",)) == []
    assert carded(store, "", "…") == []
    with store.transaction():
        store.memory.delete(gate)
    assert carded(store, "gate") == []


def test_a_card_follows_titles_and_commits(store: SharedStore, build: Build) -> None:
    number = build.project()
    session = build.session("a", build.event("user.prompt", "Mend it"), facts={"cwd": "/shop"})
    card(store, session, SearchCard())
    assert store.memory.waiting(1) == []
    with store.transaction():
        store.checkpoints.save(number, checkpoint("c1", part("a", 1, 1), subject="Oil the hinge"))
    assert [each.number for each in store.memory.waiting(1)] == [session]
    card(store, session, SearchCard())
    assert carded(store, "hinges") == [session]
    with store.transaction():
        store.checkpoints.remove("c1")
    assert carded(store, "hinges") == []
    assert [each.number for each in store.memory.waiting(1)] == [session]
    card(store, session, SearchCard())
    build.session("a", facts={"title": "The pelican", "title_rank": TITLE_AGENT})
    assert [each.number for each in store.memory.waiting(1)] == [session]
    card(store, session, SearchCard())
    assert carded(store, "pelicans") == [session]


def test_the_last_session_that_used_a_file_or_a_command_is_known(
    store: SharedStore, build: Build
) -> None:
    shop = build.project(SHOP)
    numbers = []
    for name, at in (("a", NOW), ("b", NOW + 5_000)):
        read = build.event("tool.call", name="Read", at=at)
        more = [Touch(read.key, f"/shop/src/{name}.py", "read")]
        numbers.append(build.session(name, read, facts={"cwd": "/shop"}, more=more))
    remember(store, numbers[0])
    first, last = numbers
    assert store.memory.last_user("file", "src/", [shop]) == last
    assert store.memory.last_user("file", "src/a.py", [shop]) == first
    assert store.memory.last_user("file", "./", [shop]) == last
    assert store.memory.last_user("file", "rc/", [shop]) is None
    assert store.memory.last_user("run", "pytest", [shop]) == first
    assert store.memory.last_user("run", "pytest", []) is None
    assert store.memory.touched(last) == {"/shop/src/b.py"}


def test_what_a_session_asked_whyfor_is_known(store: SharedStore, build: Build) -> None:
    asked = build.event("tool.call", "1f3a5b7c", name="mcp__whyfor__get")
    shell = build.event("tool.call", "whyfor memory show 1f3a", name="Bash")
    other = build.event("tool.call", "ls", name="Bash")
    number = build.session("a", asked, shell, other)
    assert store.memory.questions(number) == ["1f3a5b7c", "whyfor memory show 1f3a"]


def test_what_the_tools_of_a_session_printed_is_known(store: SharedStore, build: Build) -> None:
    call = build.event("tool.call", "ls", name="Bash")
    result = build.event("tool.result", "a.py b.py", actor="tool")
    number = build.session("a", call, result, build.event("assistant.message", "Two files."))
    assert store.memory.printed(number) == ["a.py b.py"]

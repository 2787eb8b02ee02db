"""What is told of a session, and what is not."""

from __future__ import annotations

from tests.cases import check_each
from tests.story.attention.session import Events

CONFLICT = "Auto-merging a.py\nCONFLICT (content): Merge conflict in a.py\nerror: could not apply 1"
NOBODY = "Claude requested permissions to use Bash, but you haven't granted it yet."
NO = "The user doesn't want to proceed with this tool use."
LOGIN = "Invalid API key · Please run /login"
SPENT = "You've hit your limit · resets 6pm (UTC)"
ASSERT = "Exit code 1\nE  assert 1 == 2\n1 failed in 0.{n}s"


def _asks(events: Events) -> Events:
    events.call("AskUserQuestion", questions=[])
    return events.add("question.asked", "Redis or files?", id=f"c{events.calls}")


def _failed(events: Events, times: int, text: str = "boom {n}") -> Events:
    for n in range(times):
        events.fail(f"tool{n}", text.format(n=n))
    return events


def _same(events: Events, times: int, command: str, text: str, *, edit: bool) -> Events:
    for n in range(times):
        events.fail(command, text.format(n=n))
        if edit:
            events.edit("a.py", f"x{n}", f"y{n}")
    return events


# What happens after a prompt, and what is told of it: cause and level.
TOLD = {
    "a model that answers within three minutes": (Events().prompt().wait(2.9).add("x"), []),
    "a model that owes an answer for more than that": (
        Events().prompt().run("ls").wait(4).add("assistant.message", "so"),
        [("quiet", "look")],
    ),
    "silence after a person left an open turn": (
        Events().prompt().run("ls").wait(400).prompt("again"),
        [],
    ),
    "silence after the agent's last words": (
        Events().prompt().add("assistant.message", "Done.").wait(60).prompt(),
        [],
    ),
    "a command that runs for eleven minutes": (
        Events().prompt().call("Bash", command="make").wait(11).back(),
        [("long", "look")],
    ),
    "a subagent that works for an hour": (
        Events().prompt().call("Task", prompt="x").wait(60).back(),
        [],
    ),
    "a call that nobody may allow, three times": (
        _same(Events().prompt(), 3, "rm x", NOBODY, edit=False),
        [("wall", "act")],
    ),
    "a call that failed three times in a row": (
        _same(Events().prompt(), 3, "make", "no rule {n}", edit=False),
        [("wall", "look")],
    ),
    "a call that fails, then one that nobody may allow": (
        _same(
            _same(Events().prompt(), 3, "make", "no rule {n}", edit=False).run("ls"),
            4, "rm x", NOBODY, edit=False,
        ),
        [("wall", "look"), ("wall", "act")],
    ),
    "a call that fails three times, and later again": (
        _same(Events().prompt(), 3, "make", "no rule {n}", edit=False).run("ls").fail(
            "make", "no rule 9"
        ),
        [("wall", "look")],
    ),
    "one call that fails five times": (
        _same(Events().prompt(), 5, "make", "no rule {n}", edit=False),
        [("wall", "look")],
    ),
    "a person's no, three times": (_same(Events().prompt(), 3, "rm x", NO, edit=False), []),
    "a test that fails three times with the same words between edits": (
        _same(Events().prompt(), 3, "pytest", ASSERT, edit=True),
        [("repeats", "look")],
    ),
    "a test that fails three times with other words": (
        _same(Events().prompt(), 3, "pytest", "{n}" * 9 + "E failed in test_{n}", edit=True)
        .fail("pytest", "other words altogether"),
        [("repeats", "look")],
    ),
    "five failed calls": (_failed(Events().prompt(), 5), [("failing", "look")]),
    "four failed calls": (_failed(Events().prompt(), 4), []),
    "five searches that find nothing": (_failed(Events().prompt(), 5, "Exit code 1"), []),
    "echoes of a failed sibling": (
        _failed(Events().prompt(), 6, "Sibling tool call errored"),
        [],
    ),
    "the same look four times": (
        Events().prompt().run("ls").run("ls").run("ls").run("ls"),
        [("spinning", "look")],
    ),
    "the same look four times with other results": (
        Events().prompt().run("ls", "a").run("ls", "b").run("ls", "c").run("ls", "d"),
        [],
    ),
    "the same look four times with an edit between": (
        Events().prompt().run("ls").run("ls").edit("a").run("ls").run("ls"),
        [],
    ),
    "an edit taken back twice": (
        Events().prompt().edit("a", "1", "2").edit("a", "2", "1").edit("a", "1", "2")
        .edit("a", "2", "1"),
        [("undone", "look")],
    ),
    "an edit taken back once": (Events().prompt().edit("a", "1", "2").edit("a", "2", "1"), []),
    "a sign-in that fails while the person looks": (
        Events().prompt().add("error", LOGIN),
        [("sign-in", "look")],
    ),
    "a sign-in that expires in the middle of long work": (
        Events().prompt().wait(2.5).run("ls").add("error", "API Error: 401 unauthorized"),
        [("sign-in", "act")],
    ),
    "a limit that is reached in the middle of long work": (
        Events().prompt().wait(2.5).run("ls").add("error", SPENT).prompt().add("error", SPENT),
        [("limit", "act")],
    ),
    "a limit that is only a word in some output": (
        Events().prompt().wait(2.5).fail("curl x", "429 Too Many Requests"),
        [],
    ),
    "a request that is tried again four times": (
        Events().prompt().add("error", "529", actor="system", attempt=4).add("assistant.message"),
        [],
    ),
    "a request that is tried again five times": (
        Events().prompt().add("error", "529", actor="system", attempt=5),
        [("retrying", "look")],
    ),
    "an API that fails for good": (
        Events().prompt().add("error", "Request timed out"),
        [("retrying", "look")],
    ),
    "an error of the agent's own command": (
        Events().prompt().add("error", "Please provide at least one path to add."),
        [],
    ),
    "a host that is not found": (
        Events().prompt().fail("npm install", "npm error code ENOTFOUND registry"),
        [("network", "look")],
    ),
    "a service on this machine that is not there": (
        Events().prompt().fail("curl localhost:1", "connect ECONNREFUSED 127.0.0.1:1"),
        [],
    ),
    "a test that remarks that a host is not found": (
        Events().prompt().fail("npm test", "ENOTFOUND updates, using what is installed"),
        [],
    ),
    "a rebase that stops": (
        Events().prompt().fail("git rebase main", CONFLICT),
        [("conflict", "look")],
    ),
    "a file that tells of a conflict": (Events().prompt().run("cat notes", CONFLICT), []),
    "a context that is nearly full": (
        Events().prompt().used(170_000).add("assistant.message", "x"),
        [("context", "look")],
    ),
    "a context of a model nobody knows": (
        Events().prompt().used(170_000, model="m-1").add("assistant.message", "x"),
        [],
    ),
    "a context that is larger than the model's": (
        Events().prompt().used(270_000).add("assistant.message", "x"),
        [],
    ),
    "an expensive turn": (
        Events().prompt().used(9, 3.0).used(9, 3.0).add("assistant.message", "x"),
        [("spend", "look")],
    ),
    "a question": (_asks(Events().prompt()).back("Redis"), [("asks", "look")]),
    "a question that waits for six minutes": (
        _asks(Events().prompt()).wait(6).back("Redis"),
        [("asks", "act")],
    ),
    "a turn that ends with green tests": (
        Events().prompt().edit("a").run("pytest -q", "3 passed").over(),
        [("done", "know")],
    ),
    "tests whose end a pipe hides": (
        Events().prompt().edit("a").run("pytest -q | tail -3", "3 passed").over(),
        [],
    ),
    "tests that passed before the last edit": (
        Events().prompt().edit("a").run("pytest -q").edit("a", "b", "c").over(),
        [],
    ),
    "tests that a person interrupted": (
        Events().prompt().edit("a").run("pytest -q").over(interrupted=True),
        [],
    ),
    "a subagent that is blocked": (
        Events().prompt().call("Task", prompt="x")
        .run("rm x", NOBODY, child="k", failed=True)
        .run("rm x", NOBODY, child="k", failed=True)
        .run("rm x", NOBODY, child="k", failed=True),
        [("wall", "act")],
    ),
    "a subagent that is blocked while its caller's call fails": (
        _same(Events().prompt(), 3, "make", "no rule {n}", edit=False)
        .run("rm x", NOBODY, child="k", failed=True)
        .run("rm x", NOBODY, child="k", failed=True)
        .run("rm x", NOBODY, child="k", failed=True),
        [("wall", "look"), ("wall", "act")],
    ),
}  # fmt: skip


def test_what_is_told_and_what_is_not() -> None:
    def check(case: tuple[Events, list[tuple[str, str]]]) -> None:
        events, told = case
        assert events.told() == told

    check_each(TOLD.items(), check)


def test_a_turn_is_expensive_only_beside_what_turns_usually_cost() -> None:
    events = Events().prompt().used(9, 8.0).add("assistant.message", "x")
    assert events.told(typical=1.0) == []
    assert events.told(typical=0.5) == [("spend", "look")]


def test_every_firing_says_what_how_and_what_next() -> None:
    for name, (events, _) in TOLD.items():
        for firing in events.firings():
            found = firing.found
            words = (found.fact, found.evidence, found.step)
            assert all(words) and not any("\n" in text for text in words), name
            assert found.at <= firing.told_at, name


def test_what_holds_is_told_once_and_cleared_when_it_ends() -> None:
    events = Events().prompt()
    _failed(events, 7).run("ls")
    (firing,) = events.firings()
    assert firing.found.fact == "7 calls failed in a row."
    assert firing.cleared_at is not None and firing.cleared_at > firing.told_at


def test_a_conflict_is_over_when_git_goes_on() -> None:
    events = Events().prompt().fail("git rebase main", CONFLICT)
    (firing,) = events.firings()
    assert firing.cleared_at is None and "a.py" in firing.found.fact
    (firing,) = events.run("git add a.py && git rebase --continue").firings()
    assert firing.cleared_at is not None


def test_a_limit_says_until_when() -> None:
    (firing,) = Events().prompt().add("error", SPENT).firings()
    assert firing.found.fact == "Its usage limit is reached until 6pm (UTC); the turn stopped."
    assert firing.found.command == "whyfor handoff claude:s"


def test_of_an_answer_in_json_its_message_is_the_evidence() -> None:
    error = (
        'API Error: 401 {"error":{"type":"authentication_error","message":"Token \\"x\\" ended"}}'
    )
    (firing,) = Events().prompt().add("error", error).firings()
    assert firing.found.evidence == 'transcript, high · Token "x" ended'


def test_a_read_without_a_result_is_no_long_command() -> None:
    (firing,) = Events().prompt().call("Read", file_path="a.py").wait(11).back().firings()
    assert firing.found.fact.endswith("It takes seconds: it waits for you, or hangs.")


def test_the_next_turn_may_be_told_of_again() -> None:
    events = _failed(Events().prompt(), 5).prompt()
    assert _failed(events, 5).told() == [("failing", "look")] * 2

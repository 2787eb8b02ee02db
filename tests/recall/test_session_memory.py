"""What is remembered of a session: facts from what was recorded, words only as quotes."""

from __future__ import annotations

import time
from typing import Any

import pytest

from tests.cases import check_each
from whyfor.model.events import StoredEvent
from whyfor.model.memory import Observation, SessionMemory
from whyfor.recall.sentences import sentences
from whyfor.recall.session_memory import PER_SESSION, derive_memory
from whyfor.story.command_families import check_in

NOW = 1_777_629_600_000


class Story:
    """A session's events, written one after the other."""

    def __init__(self) -> None:
        self.events: list[StoredEvent] = []
        self.turn = 0

    def add(self, kind: str, text: str = "", actor: str = "assistant", **more: Any) -> None:
        seq = len(self.events) + 1
        self.events.append(
            StoredEvent(
                seq,
                self.turn,
                kind,
                "transcript",
                "high",
                NOW + seq * 1000,
                NOW,
                actor,
                text,
                more.get("name"),
                more.get("data"),
            )
        )

    def prompt(self, text: str) -> Story:
        self.turn += 1
        self.add("user.prompt", text, "user")
        return self

    def say(self, text: str) -> Story:
        self.add("assistant.message", text)
        return self

    def run(self, command: str, *, failed: bool = False, output: str = "") -> Story:
        return self._call("Bash", {"command": command}, failed, output)

    def edit(self, path: str, *, failed: bool = False) -> Story:
        given = {"file_path": path, "old_string": "a", "new_string": "b"}
        return self._call("Edit", given, failed, "")

    def read(self, path: str) -> Story:
        return self._call("Read", {"file_path": path}, False, "")

    def _call(self, name: str, given: dict[str, str], failed: bool, output: str) -> Story:
        ident = f"call-{len(self.events)}"
        self.add("tool.call", name=name, data={"id": ident, "input": given})
        self.add("tool.result", output, "tool", data={"id": ident, "failed": failed})
        return self

    def memory(self) -> SessionMemory:
        return derive_memory("claude:s1", "claude", self.events)

    def notes(self, kind: str) -> list[Observation]:
        return [note for note in self.memory().observations if note.type == kind]


def test_a_check_that_failed_and_passes_after_a_change_is_a_verified_fix() -> None:
    story = Story().prompt("the tests fail").run("pytest tests/a.py -x", failed=True)
    story.edit("/shop/pay.py").run("cd /shop && pytest tests/a.py").say("Fixed.")
    (note,) = story.notes("bugfix")
    assert note.state == "verified"
    assert note.files_written == ("/shop/pay.py",)
    assert note.facts[0] == "`pytest tests/a.py -x` failed"
    assert note.evidence[0].seq == 3


@pytest.mark.parametrize(
    "between",
    [
        pytest.param(lambda story: story, id="nothing changed"),
        pytest.param(lambda story: story.edit("/shop/pay.py", failed=True), id="the edit failed"),
    ],
)
def test_a_check_that_passes_by_itself_verifies_nothing(between: Any) -> None:
    story = Story().prompt("again").run("pytest", failed=True)
    between(story).run("pytest")
    assert story.notes("bugfix") == []


@pytest.mark.parametrize(
    ("failed", "passed"),
    [
        ("pytest tests/a.py", "pytest tests/b.py"),
        ("pytest", "pytest tests/b.py"),
        ("pytest tests", "pytest tests --deselect=tests/a.py"),
        ("cd web && npm test", "cd api && npm test"),
        ("npm install && npm test", "npm test"),  # the installation may have failed
        ("ruff check . && pytest", "pytest"),
    ],
)
def test_a_check_of_something_else_verifies_nothing(failed: str, passed: str) -> None:
    story = Story().prompt("fix it").run(failed, failed=True).edit("/shop/pay.py").run(passed)
    assert [note for note in story.memory().observations if note.type != "command"] == []


@pytest.mark.parametrize(
    "said",
    [
        "<tool_use_error>Sibling tool call errored</tool_use_error>",
        "The user doesn't want to proceed with this tool use.",
    ],
)
def test_a_check_that_was_not_run_did_not_fail(said: str) -> None:
    story = Story().prompt("fix it").run("pytest", failed=True, output=said)
    story.edit("/shop/pay.py").run("pytest")
    assert story.notes("bugfix") == []
    assert [count.failed for count in story.memory().commands] == [0]


def test_a_check_left_in_the_background_did_not_pass() -> None:
    story = Story().prompt("test it").run("tox", output="Command running in background with ID: b2")
    assert story.memory().observations == ()
    assert story.memory().commands == ()


def test_a_wider_check_that_passes_verifies() -> None:
    story = Story().prompt("fix it").run("pytest tests/a.py -k retry", failed=True)
    story.edit("/shop/pay.py").run("pytest -q")
    assert [note.state for note in story.notes("bugfix")] == ["verified"]


def test_a_linter_that_passes_again_is_a_change_and_no_bugfix() -> None:
    story = Story().prompt("tidy").run("make lint", failed=True).edit("/shop/a.py").run("make lint")
    assert story.notes("bugfix") == []
    assert [note.state for note in story.notes("change")] == ["verified"]


def test_commands_are_counted_with_the_event_in_which_they_passed_last() -> None:
    story = Story().prompt("x").run("make test").run("make test", failed=True).run("make lint")
    counts = {each.family: each for each in story.memory().commands}
    count = counts["make test"]
    assert (count.runs, count.ok, count.failed) == (2, 1, 1)
    passed = next(event for event in story.events if event.seq == count.ok_seq)
    assert (passed.kind, passed.created_at) == ("tool.result", count.last_ok)
    assert story.notes("command") == []  # they are of the project, not of a session


def test_another_check_that_passes_verifies_nothing() -> None:
    story = (
        Story().prompt("fix it").run("pytest", failed=True).edit("/shop/pay.py").run("make lint")
    )
    assert story.notes("bugfix") == []


def test_what_an_agent_found_out_is_quoted_and_never_verified() -> None:
    said = "The retry failed because the socket was closed before the header was read."
    story = Story().prompt("why?").run("pytest").say(f"I looked.\n\n{said} Now it works.")
    (note,) = story.notes("discovery")
    assert note.state == "stated"
    (quote,) = note.evidence
    message = next(event for event in story.events if event.seq == quote.seq)
    assert message.text[quote.start : quote.end] == said


def test_a_guess_is_a_hypothesis() -> None:
    story = Story().prompt("why?").say("It probably hangs because the lock is never released here.")
    assert [note.state for note in story.notes("discovery")] == ["hypothesis"]


def test_a_decision_with_its_reason_is_kept() -> None:
    said = "We use a queue instead of a thread because the hook must not wait for the disk."
    story = Story().prompt("design it").say(said)
    assert [note.narrative for note in story.notes("decision")] == [said]


def test_code_tables_and_quoted_blocks_are_no_findings() -> None:
    text = (
        "```\nfails because the file is gone and nobody looked\n```\n"
        "| it fails because | of the lock in there |\n"
        "> it fails because somebody else said so here\n"
    )
    assert Story().prompt("why?").say(text).memory().observations == ()


def test_a_correction_quotes_what_it_corrects() -> None:
    story = Story().prompt("make it blue").say("The button in `form.css` is blue now.")
    story.prompt("no, the header should be blue, not the button").say("Changed the header instead.")
    (note,) = story.notes("correction")
    assert note.evidence[0].text.startswith("no, the header")
    assert note.evidence[1].text == "The button in `form.css` is blue now."


def test_what_a_person_corrects_is_refuted_and_what_stood_beside_it_is_doubtful() -> None:
    wrong = "The page is empty because `load()` in `page.py` is never called at the start."
    beside = "It also means that the cache is cold because nothing fills it before noon."
    story = Story().prompt("why?").say(f"{wrong} {beside}")
    story.prompt("that's not it, load() is called").say("Then I look at the template.")
    states = {note.narrative: note.state for note in story.memory().observations}
    assert (states[wrong], states[beside]) == ("refuted", "hypothesis")
    assert [quote.text for quote in story.memory().summary.learned] == [beside]


def test_a_note_names_the_files_and_things_it_is_about() -> None:
    story = Story().prompt("why?").read("/shop/a.py").read("/shop/basket.py")
    story.say("It is slow because `price_of` in basket.py reads the disk twice.")
    (note,) = story.notes("discovery")
    assert note.anchors == ("/shop/basket.py",)
    assert note.concepts == ("price_of",)


def test_a_question_that_was_answered_is_not_left_open() -> None:
    story = Story().prompt("ship it")
    story.add("tool.call", name="AskUserQuestion", data={"id": "q1", "input": {}})
    story.add("question.asked", "Which region?", data={"id": "q1"})
    assert [quote.text for quote in story.memory().summary.next_steps] == ["Which region?"]
    story.add("tool.result", "Europe", "user", data={"id": "q1"})
    assert story.memory().summary.next_steps == ()
    said = Story().prompt("ship it")
    said.add("question.asked", "Which region?", data={"id": "q2"})
    said.say("I took the nearest region and shipped it there.")
    assert said.memory().summary.next_steps == ()


def test_a_question_of_an_earlier_turn_is_not_left_open() -> None:
    story = Story().prompt("ship it").say("Shipped to one region. Which region should be next?")
    assert [quote.text for quote in story.memory().summary.next_steps] == [
        "Which region should be next?"
    ]
    story.prompt("Europe").say("Shipped it to Europe as well.")
    assert story.memory().summary.next_steps == ()


def steps(story: Story) -> list[str]:
    return [quote.text for quote in story.memory().summary.next_steps]


def test_a_question_is_not_left_open_if_the_turn_went_on_after_it() -> None:
    asked = Story().prompt("ship it").say("The table has no such column. Shall I add one to it?")
    assert steps(asked) == []  # an offer
    asked = Story().prompt("ship it").say("The table has two keys. Which key should the page use?")
    assert steps(asked) == ["Which key should the page use?"]
    asked.run("psql -c 'alter table'")  # answered in a dialog, and cut off after that
    assert steps(asked) == []
    typed = Story().prompt("ship it")
    typed.add("question.asked", "Which region?", data={"id": "q1"})
    typed.add("user.prompt", "Europe", "user")  # typed while it waited: the same turn
    assert steps(typed) == []


def test_a_request_that_was_interrupted_and_went_on_is_not_left_open() -> None:
    story = Story().prompt("Write the page for the basket now.")
    story.add("turn.completed", data={"interrupted": True})
    assert steps(story) == ["Write the page for the basket now."]
    story.run("make page").say("The page is written.")
    assert steps(story) == []


def test_a_list_that_nobody_kept_up_to_date_says_nothing_of_what_is_open() -> None:
    story = Story().prompt("ship it")
    items = [{"content": "Warm the cache", "status": "pending"}]
    story.add("tool.call", name="TodoWrite", data={"id": "t", "input": {"todos": items}})
    assert steps(story) == ["Warm the cache"]
    for number in range(11):
        story.edit(f"/shop/{number}.py")
    assert steps(story.say("All of it is done.")) == []


@pytest.mark.parametrize(
    "words",
    [
        "The remaining changed files are pre-existing and not part of this.",
        "I saved a todo for the second database in the folder of plans.",
        "I wrote the readme. Is there anything else I can help you with?",
        "I wrote the readme. What would you like to do next?",
    ],
)
def test_what_only_sounds_like_work_is_not_left_open(words: str) -> None:
    assert steps(Story().prompt("Write the readme for it").say(words)) == []


def test_a_request_that_nothing_followed_is_left_open() -> None:
    story = Story().prompt("ship it").say("Shipped. The remaining work is the page for it.")
    story.prompt("Write the page for it now.")
    assert [quote.text for quote in story.memory().summary.next_steps] == [
        "Write the page for it now."
    ]


def test_open_items_and_a_check_that_failed_last_are_left_open() -> None:
    story = Story().prompt("ship it")
    for done in ("pending", "completed"):
        items = [
            {"content": "Write the page", "status": done},
            {"content": "Warm the cache", "status": "pending"},
        ]
        story.add("tool.call", name="TodoWrite", data={"id": done, "input": {"todos": items}})
    story.run("make test", failed=True).say("I stopped here for today.")
    assert [quote.text for quote in story.memory().summary.next_steps] == [
        "Warm the cache",
        "`make test` failed when it was last run",
    ]
    story.run("make test | tail -3")  # whether it passed is not known
    assert [quote.text for quote in story.memory().summary.next_steps] == ["Warm the cache"]


def test_no_as_an_answer_to_a_question_is_no_correction() -> None:
    story = (
        Story().prompt("rename it").say("Renamed `a` to `b` in two files. Rename the tests too?")
    )
    story.prompt("no, keep them as they are")
    assert story.notes("correction") == []


def test_standing_rules_are_caught_wherever_they_stand_in_a_prompt() -> None:
    story = Story().prompt("Add the page. Use pnpm, not npm. Never push to main by yourself.")
    assert [note.title for note in story.notes("rule")] == [
        "Use pnpm, not npm.",
        "Never push to main by yourself.",
    ]


def test_what_an_agent_tells_its_subagent_is_no_rule_of_a_person() -> None:
    story = Story().prompt("Look for callers. Never change a file.")
    assert derive_memory("claude:s1", "claude", story.events, by_person=False).observations == ()


def test_a_question_about_a_rule_is_none() -> None:
    assert Story().prompt("Never mind the log. Always the same error?").notes("rule") == []


def test_the_request_is_the_first_prompt_that_asks_for_something() -> None:
    story = Story().prompt("continue").say("ok").prompt("Add a retry to the payment client")
    (quote,) = story.memory().summary.request
    assert quote.text == "Add a retry to the payment client"
    plan = Story().prompt("Implement the following plan:\n\n# Retry payments\n\nDo it so.")
    assert [quote.text for quote in plan.memory().summary.request] == ["Retry payments"]


def test_files_that_were_read_and_not_changed_were_investigated() -> None:
    story = Story().prompt("x").read("/shop/a.py").read("/shop/b.py").edit("/shop/b.py")
    assert story.memory().summary.investigated == ("/shop/a.py",)


def test_what_is_left_to_do_comes_from_the_last_closing_words() -> None:
    story = Story().prompt("x").say("Done with the parser. The remaining work is the page for it.")
    story.prompt("and?").say("You'll need to restart the server before the new page is shown.")
    assert [quote.text for quote in story.memory().summary.next_steps] == [
        "You'll need to restart the server before the new page is shown."
    ]


def test_commands_are_counted_by_family() -> None:
    story = Story().prompt("x").run("npm run build", failed=True).run("CI=1 npm run build 2>&1")
    (count,) = story.memory().commands
    assert (count.family, count.command) == ("npm build", "npm run build")
    assert (count.runs, count.ok, count.failed) == (2, 1, 1)


def test_a_result_that_a_pipe_hides_counts_as_a_run_only() -> None:
    story = (
        Story().prompt("x").run("pytest", failed=True).edit("/shop/a.py").run("pytest | tail -3")
    )
    (count,) = story.memory().commands
    assert (count.runs, count.ok, count.failed) == (2, 0, 1)
    assert story.notes("bugfix") == []


FAMILIES = {
    "npx jest --testPathPattern=pay --listTests": None,
    "pytest --collect-only -q": None,
    "pnpm exec mocha --version": None,
    "terraform validate --help": None,
    "pytest -q": "pytest",
    "cd /x && FOO=1 timeout 60 uv run pytest tests": "pytest",
    "python3 -m mypy src": "mypy",
    ".venv/bin/ruff check .": "ruff",
    "npx tsc --noEmit": "tsc",
    "pnpm -s test": "pnpm test",
    "cargo test --workspace": "cargo test",
    "make": "make",
    "make clean": None,
    "npm install": None,
    "git commit -m 'make test'": None,
    "": None,
}
HIDDEN = {
    "pytest | tail -3": True,
    "set -o pipefail; pytest | tail -3": False,
    "pytest; echo done": True,
    "ruff check . && pytest": False,
}


def test_whose_exit_code_it_is() -> None:
    def check(line: str) -> None:
        found = check_in(line)
        assert found is not None
        assert found.family == "pytest"
        assert found.decides is not HIDDEN[line]

    check_each(((line, line) for line in HIDDEN), check)


def test_the_family_of_a_command() -> None:
    def check(line: str) -> None:
        found = check_in(line)
        assert (found.family if found else None) == FAMILIES[line]

    check_each(((line, line) for line in FAMILIES), check)


def test_the_same_events_give_the_same_memory() -> None:
    story = Story().prompt("why?").say("It fails because the lock is held by the other process.")
    assert story.memory() == story.memory()
    first = {note.key for note in story.memory().observations}
    story.say("It also fails because the disk is full on the second machine.")
    assert first < {note.key for note in story.memory().observations}


def test_a_session_in_which_every_sentence_is_a_finding_stays_small() -> None:
    story = Story()
    for number in range(200):
        story.prompt(f"never do {number}").say(
            " ".join(f"It fails because of the reason number {number} {n}." for n in range(50))
        )
    said = [note for note in story.memory().observations if note.type == "discovery"]
    assert 0 < len(said) <= PER_SESSION


def test_sentences_know_their_place() -> None:
    text = "## Why\n- It works, e.g. with `a.b`. It is fast!\n\nLast one"
    found = list(sentences(text))
    assert [each.text for each in found] == [
        "Why",
        "It works, e.g. with `a.b`.",
        "It is fast!",
        "Last one",
    ]
    assert all(text[each.start : each.end] == each.text for each in found)
    assert [each.heading for each in found] == [True, False, False, False]


CUES = (
    "It turns out we decided to use pnpm, not npm, because the root cause silently fails;"
    " always remaining next steps, once you revert, careful, maybe otherwise."
)


def test_a_hostile_session_costs_in_proportion_to_its_size() -> None:
    """Sentences with every cue, checks of ever new families, files and failures without end."""

    def seconds(size: int) -> float:
        story = Story()
        for number in range(size):
            story.prompt(f"no, {CUES} " * 20).say(f"{CUES} " * 20)
            story.run(f"make test{number}", failed=True).edit(f"/shop/{number}.py")
            story.run(f"make test{number % 7}").say("**__" * 500 + "`" * 500)
        begun = time.process_time()
        found = story.memory()
        assert len(found.observations) < 100 + size
        return time.process_time() - begun

    seconds(20)
    small = min(seconds(50) for _ in range(3))
    assert min(seconds(400) for _ in range(2)) < 24 * small  # eight times as much


@pytest.mark.parametrize(
    "text",
    [
        "x" * 20_000_000,
        "use " * 5_000_000,
        CUES * 100_000,
        "(" * 10_000_000,
        "because. " * 2_000_000,
    ],
    ids=["one word", "rules", "cues", "brackets", "short"],
)
def test_a_huge_text_costs_little_more_than_its_ends(text: str) -> None:
    begun = time.process_time()
    story = Story().prompt(text).say(text)
    story.prompt("go on").say(text).run(text[:5_000_000]).prompt("no, not that")
    found = story.memory()
    assert len(found.observations) < 60
    assert all(len(note.narrative) <= 400 for note in found.observations)
    assert time.process_time() - begun < 5


def test_deeply_nested_input_is_no_obstacle() -> None:
    nested: Any = {"command": "list files"}
    for _ in range(5_000):
        nested = {"input": [nested]}
    story = Story().prompt("x")
    for name in ("Bash", "Edit", "TodoWrite", "Read"):
        story.add("tool.call", name=name, data={"id": name, "input": nested})
        story.add("tool.result", "", "tool", data={"id": name})
    assert story.memory().observations == ()

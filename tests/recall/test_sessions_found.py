"""Search gives sessions: one result each, the right one first, whatever form a word has."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Result
from tests.transcripts import Transcript

Cli = Callable[..., Result]
Found = list[dict[str, Any]]
FILLER = "lorem ipsum dolor sit amet " * 200


class Library:
    """Sessions of a home, and what a search finds in them."""

    def __init__(self, home: Path, cli: Cli) -> None:
        self.home = home
        self.cli = cli

    def session(self, name: str, *said: tuple[str, str], day: str = "2026-05-01") -> Transcript:
        """Write a session of prompts and answers."""
        made = Transcript(name, day=day)
        for prompt, answer in said:
            made.prompt(prompt)
            made.say(answer)
        made.save(self.home)
        return made

    def search(self, *arguments: str) -> Found:
        assert self.cli("ingest").code == 0
        result = self.cli("search", *arguments, "--json")
        assert result.code == 0, result.out
        found = result.json
        assert isinstance(found, list)
        return found

    def names(self, *arguments: str) -> list[str]:
        return [hit["session_id"] for hit in self.search(*arguments)]


@pytest.fixture
def library(home: Path, cli: Cli) -> Library:
    return Library(home, cli)


def test_a_session_is_one_result_with_its_best_passages(library: Library) -> None:
    said = [(f"Question {number} about the harbour", "Ships") for number in range(9)]
    long = library.session("long", *said)
    other = library.session("other", ("The harbour gate", "Closed"))
    found = library.search("harbour")
    assert {hit["session_id"] for hit in found} == {long.session_id, other.session_id}
    assert len(found) == 2
    [hit] = [hit for hit in found if hit["session_id"] == long.session_id]
    turns = [passage["turn"] for passage in hit["passages"]]
    assert len(turns) == len(set(turns)) == 3
    first = hit["passages"][0]
    names = ("seq", "turn", "kind", "snippet")
    assert [hit[name] for name in names] == [first[name] for name in names]
    shown = first["snippet"]
    assert [shown[start:end] for start, end in first["marks"]] == ["harbour"]


def copy_of(first: Transcript, name: str, home: Path) -> Transcript:
    """A fork: the records of the first session under another id."""
    made = Transcript(name)
    for line in first.lines:
        origin = {"sessionId": first.session_id, "messageUuid": line["uuid"]}
        made.lines.append({**line, "sessionId": made.session_id, "forkedFrom": origin})
    made.save(home)
    return made


def test_a_fork_is_folded_under_the_session_it_repeats(library: Library) -> None:
    first = library.session("first", ("Paint the lighthouse", "White"), ("And the door", "Red"))
    copies = [copy_of(first, f"copy {number}", library.home) for number in range(3)]
    [hit] = library.search("lighthouse")
    assert (hit["session_id"], hit["found_in"]) == (first.session_id, first.session_id)
    assert len(hit["passages"]) == 1
    assert set(hit["copies"]) == {f"claude:{copy.session_id}" for copy in copies}
    copies[1].prompt("Now the kingfisher weathervane")
    copies[1].save(library.home)
    [hit] = library.search("kingfisher")
    assert (hit["session_id"], hit["turn"]) == (copies[1].session_id, 3)
    assert f"claude:{first.session_id}" in hit["copies"]
    printed = library.cli("search", "lighthouse").out
    assert printed.count("Paint the lighthouse") == 2, "its title and its prompt, once"
    assert "forked 3 times" in printed


def test_what_a_subagent_did_is_found_in_the_session_it_worked_for(library: Library) -> None:
    caller = library.session("caller", ("Look at the cliffs", "I sent somebody"))
    sent = Transcript("sent")
    sent.prompt("Count the puffins")
    sent.say("There are forty puffins")
    lines = [
        {**line, "isSidechain": True, "agentId": "a1", "sessionId": caller.session_id}
        for line in sent.lines
    ]
    path = caller.path(library.home).with_suffix("") / "subagents" / "agent-a1.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    [hit] = library.search("puffins")
    assert hit["session_id"] == caller.session_id
    assert hit["title"] == "Look at the cliffs"
    assert hit["found_in"] == f"agent-a1@{caller.session_id}"
    assert "subagent" in library.cli("search", "puffins").out


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("encrypting", "The encryption of backups"),
        ("encryption", "We encrypted the backups"),
        ("retries", "Retry the call once"),
        ("Configured", "configuring the port"),
    ],
)
def test_a_word_is_found_in_every_form(library: Library, typed: str, said: str) -> None:
    wanted = library.session("wanted", (said, "Done"))
    library.session("other", ("Something else entirely", "Done"))
    [hit] = library.search(typed)
    assert hit["session_id"] == wanted.session_id
    [(start, end)] = hit["passages"][0]["marks"]
    assert hit["snippet"][start:end].lower()[:4] == typed.lower()[:4], "and marked"
    assert library.search(f'"{typed}"') == [], "but in quotes only as it was typed"


def test_words_with_a_hyphen_may_stand_apart(library: Library) -> None:
    wanted = library.session("wanted", ("Add references that cross documents", "Done"))
    library.session("other", ("Add a document", "Done"))
    assert library.names("cross-references") == [wanted.session_id]
    assert library.names('"cross-references"') == []


def test_function_words_do_not_choose_the_session(library: Library) -> None:
    wanted = library.session("wanted", ("Rotation of the signing key", FILLER))
    for number in range(8):
        library.session(
            f"other {number}", ("Why did we do this when it was not what they were to have?", "Ok")
        )
    assert library.names("when did we rotate the signing keys and why")[0] == wanted.session_id


def test_a_question_that_a_turn_half_answers_finds_it(library: Library) -> None:
    wanted = library.session("wanted", ("Recipients cannot open a shared folder", FILLER))
    library.session("other", ("Sort the list of files by date", "Done"))
    question = "which recipients were locked out of folders after that migration broke permissions"
    assert library.names(question)[0] == wanted.session_id


def test_a_long_session_does_not_win_by_its_length(library: Library) -> None:
    """One that says each of the words in some of its hundred turns, never together."""
    words = ["anchor", "buoy", "chain"]
    said = [(f"{words[number % 3]} {FILLER[:900]} {number}", "ok") for number in range(60)]
    library.session("long", *said)
    short = library.session("short", (f"{FILLER[:1500]} The anchor chain of the buoy", "ok"))
    assert library.names("anchor buoy chain")[0] == short.session_id


def test_what_was_said_is_before_what_a_tool_printed(library: Library) -> None:
    for number in range(4):
        printed = Transcript(f"printed {number}")
        printed.prompt("Show the log")
        printed.call("Bash", {"command": "git log"}, "Mend the harbour gate\n" * 20)
        printed.save(library.home)
    said = library.session("said", ("The gate of the harbour should be mended", FILLER))
    assert library.names("mend the harbour gate")[0] == said.session_id
    assert len(library.names("harbour gate")) == 5


def long_result(library: Library, result: str) -> Transcript:
    made = Transcript("read")
    made.prompt("Read the file")
    made.call("Read", {"file_path": "/code/shop/big.txt"}, result)
    made.save(library.home)
    return made


def test_a_word_deep_in_a_long_result_is_found_when_asked_for(library: Library) -> None:
    result = f"first {FILLER} the kingfisher nests here {FILLER} last"
    made = long_result(library, result)
    assert library.names("first lorem") == [made.session_id]
    assert library.names("last lorem") == [made.session_id]
    assert library.search("kingfisher") == []
    assert "--deep" in library.cli("search", "kingfisher").err
    [hit] = library.search("kingfishers", "nesting", "--deep")
    assert (hit["session_id"], hit["kind"], hit["turn"]) == (made.session_id, "tool.result", 1)
    assert "the kingfisher nests here" in hit["snippet"]
    for narrower in (
        ["--in", "prompts"],
        ["--agent", "codex"],
        ["--until", "2026-04-01"],
        ["--since", "2026-06-01"],
        ["-nests"],
        ["tool:Bash"],
        ["file:other.txt"],
    ):
        assert library.search("kingfisher", "--deep", *narrower) == [], narrower
    for fitting in (["tool:Read"], ["file:big.txt"], ["--in", "tools"], ["--sort", "time"]):
        assert library.names("kingfisher", "--deep", *fitting) == [made.session_id], fitting


def test_deep_search_does_not_mind_accents_and_escapes(library: Library) -> None:
    made = long_result(library, f"{FILLER} the Kîngfisher\nnêsts {FILLER}")
    assert library.names("kingfisher", "nests", "--deep") == [made.session_id]
    path = made.path(library.home)
    path.write_text("".join(json.dumps(line) + "\n" for line in made.lines), encoding="ascii")
    assert library.names("kingfisher", "nests", "--deep") == [made.session_id]


def test_what_was_forgotten_is_not_found_in_the_segments(library: Library) -> None:
    made = long_result(library, f"{FILLER} kingfisher {FILLER}")
    assert library.names("kingfisher", "--deep") == [made.session_id]
    assert library.cli("forget", made.session_id, "--yes").code == 0
    assert library.search("kingfisher", "--deep") == []


def test_words_that_stand_apart_find_the_session_as_a_whole(library: Library) -> None:
    """No passage has both words: one is in the first prompt, one in the last answer."""
    filler = FILLER[:1500]
    apart = library.session(
        "apart", ("Mend the lantern", filler), ("Go on", f"{filler}"), ("And?", "The wick is new")
    )
    library.session("near", ("A lamp", "Lit"))
    assert library.names("lantern wick") == [apart.session_id]
    assert library.names('"lantern" wick') == []


def test_a_session_is_found_by_the_message_it_committed_with(library: Library) -> None:
    made = library.session("made", ("Go on", "Done"))
    message = "\"$(cat <<'EOF'\nTeach retry_budget about jitter\n\nWhy not.\nEOF\n)\""
    made.call("Bash", {"command": f"git add -A && git commit -m {message} && git push"})
    made.save(library.home)
    library.session("other", ("Talk of a budget", "Much jitter, and a retry of the budget"))
    assert library.names("teach the budget jitter of retries")[0] == made.session_id


def test_turns_are_a_flat_list_if_asked_for(library: Library) -> None:
    said = [(f"Question {number} about the harbour", "Ships") for number in range(4)]
    long = library.session("long", *said)
    other = library.session("other", ("The harbour gate", "Closed"), day="2026-05-02")
    found = library.search("harbour", "--turns")
    assert len(found) == 5
    assert sorted((hit["session_id"], hit["turn"]) for hit in found) == sorted(
        [*((long.session_id, turn) for turn in (1, 2, 3, 4)), (other.session_id, 1)]
    )
    assert all(len(hit["passages"]) == 1 for hit in found)
    newest = library.search("harbour", "--turns", "--sort", "time")
    assert newest[0]["session_id"] == other.session_id
    assert len(library.search("harbour", "--turns", "--limit", "2")) == 2


def test_notes_of_a_session_are_found_with_it(library: Library) -> None:
    cause = "The upload failed because the proxy drops the pelican header."
    library.session("cause", ("Why does it fail?", cause))
    [hit] = library.search("pelican header")
    [note] = hit["notes"]
    assert note["title"].startswith("The upload failed because")
    assert library.search("fail zebra mountain")[0]["notes"] == []
    shown = library.cli("search", "pelican", "header")
    assert f"note {note['id'][:8]}" in shown.out

"""Annotations without a model."""

from __future__ import annotations

import pytest

from whyfor.model.checkpoints import TAGS, ChangedFile, Note
from whyfor.model.events import StoredEvent
from whyfor.story.annotate import TITLE, change_summary, derive, noted, shortened, tag

FILES = [ChangedFile("src/http.py", 12, 3), ChangedFile("tests/test_http.py", 20, 0)]


def event(kind: str, text: str, seq: int = 1) -> StoredEvent:
    return StoredEvent(seq, 1, kind, "transcript", "high", 0, 0, "assistant", text, None, None)


def test_intent_goes_from_the_request_to_the_effect() -> None:
    made = derive(
        "Retry dropped connections",
        "",
        FILES,
        ["Fetching fails once in ten runs. Make it robust."],
        [
            event("assistant.message", "Looking."),
            event("assistant.message", "`fetch` now tries **four** times.\n\nMore."),
        ],
    )
    assert (
        made.intent
        == "Fetching fails once in ten runs. → Retry dropped connections → fetch now tries four times."
    )
    assert (made.title, made.by, made.tag) == ("Retry dropped connections", "derived", "BUGFIX")
    assert made.summary == "2 files, +32 −3: tests/test_http.py, src/http.py"


def test_what_was_weighed_is_kept() -> None:
    words = (
        "I considered a retry library and left it out: one function is enough here. Then I wrote "
        "it."
    )
    made = derive("x", "", [], [], [event("assistant.thinking", words)])
    assert made.alternatives == [
        "I considered a retry library and left it out: one function is enough here."
    ]


def test_a_title_is_always_short() -> None:
    long = "Make the harbour server's retries wait a little longer each time they fail in a row"
    assert shortened(long) == "Make the harbour server's retries wait a little…"
    assert len(shortened("x" * 500)) == TITLE
    assert shortened("Short") == "Short"


@pytest.mark.parametrize(
    "subject, paths, wanted",
    [
        ("feat(cli): choose the harbour", ["a.py"], "FEATURE"),
        ("fix!: wrong tide", ["a.py"], "BUGFIX"),
        ("Handle a dropped connection", ["a.py"], "BUGFIX"),
        ("Rename tide to water level", ["a.py"], "REFACTORING"),
        ("More cases", ["tests/test_a.py", "a.spec.ts"], "TEST"),
        ("Say how to start", ["docs/start.md", "README.md"], "DOCS"),
        ("Bump version to 1.2", ["pyproject.toml"], "CHORE"),
        ("Choose the harbour", ["a.py"], "FEATURE"),
    ],
)
def test_tags(subject: str, paths: list[str], wanted: str) -> None:
    assert tag(subject, [ChangedFile(path, 3, 1) for path in paths]) == wanted
    assert wanted in TAGS


def test_a_commit_without_files_says_so() -> None:
    assert change_summary([]) == "no file changes"


def test_a_note_replaces_what_it_names_and_nothing_else() -> None:
    made = derive("Subject", "", FILES, ["Please."], [])
    changed = noted(made, "claude", Note(intent="because", alternatives=[]))
    assert (changed.intent, changed.alternatives, changed.by) == ("because", [], "claude")
    assert (changed.title, changed.summary, changed.tag) == (made.title, made.summary, made.tag)

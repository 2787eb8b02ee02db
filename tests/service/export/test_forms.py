"""Every field of an export may be hostile; the page and the Markdown around it hold."""

from __future__ import annotations

import re

import pytest

from tests.service.export.hostile import ALL, FORGE, PAYLOADS, Page, outside_code, shown
from whyfor.model.checkpoints import Annotation, ChangedFile, Checkpoint, Part
from whyfor.model.sessions import Session, Tokens
from whyfor.model.stories import Commit, CommitStory, FullStory
from whyfor.service.export import html, markdown
from whyfor.service.export.document import Chapter, Document, DocumentCall, DocumentLine

MENTIONS = "@ada fixes #12, closes acme/shop#3 | `a|b` https://forge.example/o/r/issues/7"
STARTS = ("# Head", "- item", "1. item", "===", "/close", "    code")
ROLES = ("request", "question", "answer", "said", "thinking", "calls")
SHA = "4be07d1a" * 5


def _document(words: str) -> Document:
    """A commit with a story, one without, and every field that comes from outside set to the
    same words."""
    part = Part(words, words, "output", "high", "made", 1, 1, 9, 3, 2, why=words)
    note = Annotation(words, words, [words, words], words, "FEATURE", words)
    commit = Commit(SHA, (), words, words, 1_780_000_000_000, 1_780_000_000_000, words, words)
    checkpoint = Checkpoint(
        commit=SHA,
        project=words,
        subject=words,
        author=words,
        email=words,
        authored_at=0,
        committed_at=0,
        parents=[],
        is_merge=False,
        patch_id=None,
        files=[ChangedFile(words, 3, 1)],
        parts=[part],
        evidence="output",
        confidence="high",
        group_root="ctx-1",
        superseded_by=None,
        annotation=note,
    )
    session = Session(
        1,
        words,
        words,
        words,
        words,
        words,
        words,
        None,
        None,
        1,
        2,
        3,
        Tokens(),
        [words],
        [words],
        None,
        None,
        0,
    )
    without = CommitStory(Commit("0d41be9f" * 5, (), words, words, 0, 0, words, ""), None, words)
    story = FullStory(
        CommitStory(commit, checkpoint, None),
        [],
        {f"{words}:{words}": session},
        Tokens(1, 2, 3, 4),
        [checkpoint],
        without,
    )
    call = DocumentCall(words, words, f"+{words}\n-{words}\n{words}", words, "failed")
    lines = [
        DocumentLine(role, words, words, seq, 0, words, [call] if role == "calls" else [])
        for seq, role in enumerate(ROLES)
    ]
    silent = FullStory(without, [], {}, Tokens(), [])
    return Document(words, [words], [Chapter(story, lines, SHA), Chapter(silent, [])], lines)


@pytest.mark.parametrize("words", [*PAYLOADS, ALL, MENTIONS])
def test_nothing_in_the_page_can_run_or_load(words: str) -> None:
    text = html.write_html(_document(words))
    page = Page(text)
    assert page.problems == []
    assert page.tags.count("style") == 1
    assert "script" not in page.tags
    assert all(link.startswith(("#c-", "https://", "http://")) for link in page.links)
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f\u202e]", text)


def test_the_page_forbids_what_it_does_not_need() -> None:
    text = html.write_html(_document("words"))
    assert "default-src 'none'; style-src 'unsafe-inline'; img-src data:" in text
    assert "http" not in text.replace("http-equiv", "")
    assert "url(" not in text


@pytest.mark.parametrize("words", [*PAYLOADS, ALL, MENTIONS, *STARTS])
def test_the_markdown_keeps_its_own_structure(words: str) -> None:
    text = markdown.write_markdown(_document(words))
    tokens = FORGE.parse(text)
    heads = [token.tag for token in tokens if token.type == "heading_open" and token.tag < "h5"]
    assert heads == ["h1", "h2", "h2"]
    assert not [line for line in outside_code(text) if line.startswith("/")]
    blocks = [token.content.strip() for token in tokens if token.type == "html_block"]
    assert {re.sub("<code>.*</code>", "", block) for block in blocks} == {
        "<details><summary></summary>",
        "<details><summary>Thinking</summary>",
        "<details><summary>Sessions and files</summary>",
        "</details>",
    }
    assert all(
        "<" not in found for block in blocks for found in re.findall("<code>(.*)</code>", block)
    )
    assert len([block for block in blocks if block == "</details>"]) * 2 == len(blocks)
    assert not [
        c for token in tokens for c in token.children or [] if c.type in ("html_inline", "image")
    ]


def test_every_row_of_a_table_has_as_many_cells_as_its_head() -> None:
    text = markdown.write_markdown(_document(MENTIONS))
    cells = [t for t in FORGE.parse(text) if t.type in ("th_open", "td_open", "tr_open")]
    rows = "".join({"tr_open": "\n", "th_open": "h", "td_open": "d"}[t.type] for t in cells).split()
    assert rows == ["hhhhh", "ddddd", "ddddd", "hhhh", "dddd", "hhh", "ddd"]


def test_nobody_is_called_and_nothing_is_closed() -> None:
    text = markdown.write_markdown(_document(MENTIONS))
    assert "ada fixes #" in shown(text)
    assert not re.search(r"@ada|#12|#3|issues/7", shown(text))


def test_what_was_said_is_all_there() -> None:
    for text in (
        html.write_html(_document("Keep it simple")),
        markdown.write_markdown(_document("Keep it simple")),
    ):
        for words in (
            "Asked",
            "Answered",
            "asked back",
            "Thinking",
            "Same request as",
            "4be07d1a",
            "No story: Keep it",
        ):
            assert words in text
        for words in (
            "+3",
            "−1",
            "output, high confidence",
            "1–9",
            "2 of 3",
            "tokens in 1",
            "failed",
            "It reverts",
        ):
            assert words in text

"""Words out of a transcript stay words, whatever they are put into."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.service.export.hostile import ALL, FORGE, PAYLOADS, Page, outside_code, shown, tokens
from whyfor.service.export import prose

MARKS = "@ada|#12|fixes #3|!7|GH-4|a_b|__init__|*|**|`|``|```|~~~|- |1. |> |# |===|---|/close|[x]: y|[|](|)|<|\\|!".split(
    "|"
)
ODD = ("\n", "\n\n", "\n    ", "\t", " ", "|", "|-|-|", ":-:", "&amp;", "é", "word")
ADDRESSES = ("https://e.example/a_b", "https://e.example/o/r/issues/1")
PIECES = st.lists(st.sampled_from([*PAYLOADS, *MARKS, *ODD, *ADDRESSES]), max_size=30).map("".join)


def _harmless(markdown: str) -> None:
    kinds = {token.type for token in tokens(markdown)}
    assert not kinds & {"html_block", "html_inline", "image"}
    assert not re.search(r"[@#][\w]", shown(markdown))
    for token in tokens(markdown):
        assert token.type != "heading_open" or token.tag == "h5"
        if token.type == "link_open":
            href = str(token.attrGet("href"))
            assert href.startswith(("http://", "https://", "mailto:"))
            assert "/issues/" not in href
    assert not [line for line in outside_code(markdown) if line.startswith("/")]


def _stays_inside(markdown: str) -> None:
    """Whatever comes after it is not swallowed."""
    found = FORGE.parse(f"{markdown}\n\n## After\n")
    assert [t.type for t in found[-3:]] == ["heading_open", "inline", "heading_close"]
    assert (found[-2].content, found[-3].level) == ("After", 0)


@settings(max_examples=120, deadline=None)
@given(PIECES)
def test_what_an_agent_wrote_can_do_nothing(text: str) -> None:
    markdown = prose.agent_prose(text)
    _harmless(markdown)
    _stays_inside(markdown)


@settings(max_examples=120, deadline=None)
@given(PIECES)
def test_what_a_person_typed_can_do_nothing_and_every_line_is_quoted(text: str) -> None:
    markdown = prose.quote_lines(text)
    _harmless(markdown)
    _stays_inside(markdown)
    assert all(line.startswith(">") for line in markdown.split("\n"))


@settings(max_examples=120, deadline=None)
@given(PIECES)
def test_one_line_stays_one_line_of_plain_words(text: str) -> None:
    for markdown in (f"## {prose.inline_text(text)}", f"x {prose.inline_text(text)}"):
        assert "\n" not in markdown
        kinds = {token.type for token in tokens(markdown)}
        assert not kinds & {
            "html_block",
            "html_inline",
            "image",
            "em_open",
            "strong_open",
            "table_open",
        }
        assert not re.search(r"[@#][\w]", shown(markdown))


@settings(max_examples=120, deadline=None)
@given(PIECES)
def test_html_of_an_agents_words_has_no_tag_but_ours(text: str) -> None:
    page = Page(prose.html(text))
    assert page.problems == []
    assert all(link.startswith(("http://", "https://", "mailto:")) for link in page.links)
    assert set(page.styles) <= {"text-align:left", "text-align:right", "text-align:center"}


@pytest.mark.parametrize(
    ("said", "written"),
    [
        ("thanks @ada, fixes #12", "thanks @&#8203;ada, fixes #&#8203;12"),
        ("closes acme/shop#3 and GH-4", "closes acme/shop#&#8203;3 and GH-&#8203;4"),
        ("see https://e.example/a_b.", "see <https://e.example/a_b>."),
        (
            "closes https://forge.example/o/r/issues/9",
            "closes `https://forge.example/o/r/issues/9`",
        ),
        ("[it](https://forge.example/o/r/pull/9)", "it (`https://forge.example/o/r/pull/9`)"),
        ("`@dataclass` and `List<int>`", "`@dataclass` and `List<int>`"),
        ("a <b>bold</b> claim", "a &lt;b&gt;bold&lt;/b&gt; claim"),
        ("# Done", "##### Done"),
        ("/close", "\\/close"),
        ("![cat](http://e.example/cat.png)", "\\[image: cat\\]"),
        ("*a* **b** ~~c~~", "*a* **b** ~~c~~"),
        ("3. c\n4. d", "3. c\n4. d"),
        ("- a\n  - b", "- a\n  - b"),
        ("```py\n@x\n", "```py\n@x\n```"),
        ("````\n```\n````", "````\n```\n````"),
        ("a | b\n--|--\n1 | `2`", "| a | b |\n|---|---|\n| 1 | `2` |"),
    ],
)
def test_markup_stays_and_references_do_not(said: str, written: str) -> None:
    assert prose.agent_prose(said) == written


def test_a_prompt_is_shown_as_it_was_typed() -> None:
    typed = "edit __init__.py and *.py\n    indented\n- not a list\n\n```\n@keep\n```"
    assert prose.quote_lines(typed).split("\n") == [
        "> edit \\_\\_init\\_\\_.py and \\*.py\\",
        "> &nbsp;&nbsp;&nbsp;&nbsp;indented\\",
        "> \\- not a list",
        ">",
        "> ```",
        "> @keep",
        "> ```",
    ]


def test_escape_sequences_and_control_characters_are_gone() -> None:
    for made in (
        prose.agent_prose(ALL),
        prose.quote_lines(ALL),
        prose.inline_text(ALL),
        prose.html(ALL),
        prose.code_span(ALL),
    ):
        assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f\u202e]", made)


def test_a_link_may_be_followed_but_tells_nothing() -> None:
    made = prose.html("[docs](https://e.example/docs)")
    assert '<a href="https://e.example/docs" rel="noopener noreferrer nofollow">docs</a>' in made

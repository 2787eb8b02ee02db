"""What agents said, laid out for a terminal."""

from __future__ import annotations

from copy import copy
from functools import cache
from typing import TYPE_CHECKING

from whyfor.model.text import clean

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from rich.markdown import Markdown

# Both packages are imported on first use: that takes as long as all else that shows a commit.


def markdown(text: str) -> Markdown:
    """Return a text that is Markdown, without what could act on the terminal."""
    shown = copy(_blank())
    shown.markup = clean(text)
    shown.parsed = _parser().parse(shown.markup)
    return shown


@cache
def _blank() -> Markdown:
    from rich.markdown import Markdown

    return Markdown("", code_theme="ansi_dark", hyperlinks=False)


@cache
def _parser() -> MarkdownIt:
    """The parser that `Markdown` makes anew for each text, which takes longer than to use it."""
    from markdown_it import MarkdownIt

    return MarkdownIt().enable("strikethrough").enable("table")

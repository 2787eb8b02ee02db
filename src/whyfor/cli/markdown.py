"""What agents said, laid out for a terminal."""

from __future__ import annotations

from copy import copy
from functools import cache

from markdown_it import MarkdownIt
from rich.markdown import Markdown

from whyfor.model.text import clean


def markdown(text: str) -> Markdown:
    """Return a text that is Markdown, without what could act on the terminal."""
    shown = copy(_blank())
    shown.markup = clean(text)
    shown.parsed = _parser().parse(shown.markup)
    return shown


@cache
def _blank() -> Markdown:
    return Markdown("", code_theme="ansi_dark", hyperlinks=False)


@cache
def _parser() -> MarkdownIt:
    """The parser that `Markdown` makes anew for each text, which takes longer than to use it."""
    return MarkdownIt().enable("strikethrough").enable("table")

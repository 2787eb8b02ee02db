"""A console on which only our own styles act: every word that is printed on it is cleaned first.

Strings and texts are cleaned before they are laid out, so that columns fit; every segment is
looked at once more when it is rendered, whatever it came from.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.padding import Padding
from rich.segment import Segment
from rich.style import Style
from rich.text import Span, Text

from whyfor.cli.quick_text import quick_lines, quick_padding
from whyfor.model.characters import show_hidden
from whyfor.terminal import on_one_line


class CleanConsole(Console):
    """A console that cleans everything it prints. A string is one line; a Text may have several."""

    def print(self, *objects: Any, **options: Any) -> None:
        super().print(
            *(on_one_line(each) if isinstance(each, str) else each for each in objects), **options
        )

    def on_broken_pipe(self) -> None:
        """Let `run_command` end it: a reader who has seen enough is no error."""
        raise BrokenPipeError

    def render_str(self, text: str, **options: Any) -> Text:
        return super().render_str(show_hidden(text), **options)

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        if isinstance(renderable, Text):
            renderable = clean_text(renderable)
        if isinstance(renderable, (Text, Padding)):
            quick = self._quick(renderable, options or self.options)
            if quick is not None:
                yield from quick
                return
        for segment in super().render(renderable, options):
            text, style, control = segment  # control: the console's own, such as moving the cursor
            plain = text == "\n" or (text.isascii() and text.isprintable())
            if control or (plain and (style is None or not style.link)):
                yield segment
            else:
                yield _clean_segment(text, style)

    def _quick(self, shown: Text | Padding, options: ConsoleOptions) -> list[Segment] | None:
        """Return what a plain text, or one with blanks around it, renders to; None if it is left
        to rich."""
        if options.no_wrap or options.overflow:
            return None
        if isinstance(shown, Text):
            lines = quick_lines(self, shown, options.max_width, options.justify)
            return None if lines is None else [*_joined(lines), Segment(shown.end)]
        inside = shown.renderable
        around = (shown.top, shown.right, shown.bottom, shown.style, shown.expand)
        if not isinstance(inside, Text) or around != (0, 0, 0, "none", False):
            return None
        text = clean_text(inside)
        lines = quick_padding(self, text, shown.left, options.max_width, options.justify)
        return None if lines is None else [*_joined(lines), Segment.line()]


def _joined(lines: list[list[Segment]]) -> Iterator[Segment]:
    """Yield the segments of lines, with a line feed between two lines."""
    for number, line in enumerate(lines):
        if number:
            yield Segment.line()
        yield from line


def clean_text(text: Text, *, one_line: bool = False) -> Text:
    """Return the text with hidden characters shown by number; its styles stay in place."""
    clean = _flatten if one_line else show_hidden
    plain = text.plain
    if clean(plain) == plain:
        return text
    last = len(plain)
    cuts = {0, last}
    for span in text.spans:
        cuts |= {min(span.start, last), min(span.end, last)}
    places, words = {0: 0}, ""
    for start, end in pairwise(sorted(cuts)):
        words += clean(plain[start:end])
        places[end] = len(words)
    spans = []
    for span in text.spans:
        start, end = places[min(span.start, last)], places[min(span.end, last)]
        spans.append(Span(start, end, span.style))
    cleaned = text.blank_copy(words)
    cleaned.spans = spans
    return cleaned


def _flatten(text: str) -> str:
    return show_hidden(text).replace("\n", " ")


def _clean_segment(text: str, style: Style | None) -> Segment:
    if style is not None and style.link:
        style = style.update_link(None)
    return Segment(show_hidden(text), style)

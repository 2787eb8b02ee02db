"""What the screens are made of: widgets on which every word is clean before it is laid out."""

from __future__ import annotations

from rich.text import Text
from textual.visual import VisualType
from textual.widgets import Static

from whyfor.cli.console import clean_text
from whyfor.model.characters import show_hidden


class CleanText(Static):
    """Text, or a renderable, which the app's own console cleans; nothing in it is markup."""

    def __init__(
        self, content: VisualType = "", *, id: str | None = None, classes: str | None = None
    ) -> None:
        super().__init__(_clean(content), id=id, classes=classes, markup=False)

    def update(self, content: VisualType = "", *, layout: bool = True) -> None:
        super().update(_clean(content), layout=layout)


def _clean(content: VisualType) -> VisualType:
    if isinstance(content, str):
        return show_hidden(content)
    return clean_text(content) if isinstance(content, Text) else content

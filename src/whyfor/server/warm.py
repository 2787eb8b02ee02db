"""Compile templates and load languages before the first page needs them."""

from __future__ import annotations

import gc

from jinja2 import Environment

from whyfor.server.render import highlight, render_prose

# Of the page that is looked at first.
FIRST = ("now.html", "now/board.html", "now/cards.html", "base.html", "parts.html", "sprite.html")
_LANGUAGES = ("x.py", "x.ts", "x.md", "bash", "json", "diff")
_PROSE = "# A\n\nb `c`\n\n- d\n\n```python\ne = 1\n```\n"


def warm(templates: Environment) -> None:
    """Warm up in a thread; a request that comes earlier does its own part."""
    gc.freeze()  # what is there stays: it need not be looked through again and again
    for name in dict.fromkeys([*FIRST, *templates.list_templates()]):
        templates.get_template(name)
    render_prose(_PROSE)
    for language in _LANGUAGES:
        highlight("a = 1\n", language)
    gc.collect()
    gc.freeze()

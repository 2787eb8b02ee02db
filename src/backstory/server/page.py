"""A page: a template and what it shows."""

from __future__ import annotations

from typing import Any

from litestar.di import NamedDependency
from litestar.response import Template

from backstory.config import Settings
from backstory.service.live import Hub

Kept = NamedDependency[Settings]  # a handler's `settings`: the home that is shown
Live = NamedDependency[Hub]  # a handler's `hub`


def page(template: str, *, here: str = "", **shown: Any) -> Template:
    """`here` is the page's word in the top bar: now, timeline, search or insights."""
    return Template(template, context={"here": here, **shown})

"""A page: a template and its values."""

from __future__ import annotations

import re
from contextvars import ContextVar
from typing import Any

import msgspec
from jinja2 import Environment
from litestar.di import NamedDependency
from litestar.response import Template
from litestar.response.base import ASGIResponse

from whyfor.config import Settings
from whyfor.live.hub import Hub

Kept = NamedDependency[Settings]  # a handler's `settings`: the home that is shown
Live = NamedDependency[Hub]  # a handler's `hub`
TEMPLATES: ContextVar[Environment] = ContextVar("templates")  # of the application that was asked


class NavPage(msgspec.Struct, frozen=True):
    """A page in the navigation. `bar` says when it stands in the top bar: always, on wide
    screens only, or never; otherwise it is under More. `key` goes there after g."""

    word: str
    path: str
    title: str
    icon: str
    key: str = ""
    bar: str = "wide"


NAVIGATION = (
    NavPage("now", "/", "Now", "i-live", "n", "always"),
    NavPage("sessions", "/sessions", "Sessions", "i-list", "s", "always"),
    NavPage("timeline", "/timeline", "Timeline", "i-commit", "t"),
    NavPage("search", "/search", "Search", "i-search", bar="always"),
    NavPage("memory", "/memory", "Memory", "i-think", "m"),
    NavPage("insights", "/insights", "Insights", "i-gauge", "i"),
    NavPage("feed", "/feed", "Feed", "i-list", "f", "never"),
    NavPage("approvals", "/approvals", "Approvals", "i-shield", "a", "never"),
    NavPage("tasks", "/tasks", "Tasks", "i-task", "k", "never"),
    NavPage("map", "/map", "Map", "i-fork", "p", bar="never"),
    NavPage("sync", "/sync", "Sync", "i-export", "y", bar="never"),
)


# Pages that a team has for each project: links to them lead to the project that is shown.
OF_PROJECT = "sessions timeline commits search memory insights file tasks map"
_TAG = re.compile(rb"<[a-zA-Z][^<>]*>")
_LINK = re.compile(rb'="/(?=(?:%s)[/?#"])' % OF_PROJECT.replace(" ", "|").encode())


def rendered(template: str, shown: dict[str, Any]) -> bytes:
    templates = TEMPLATES.get()
    page = templates.get_template(template).render(shown).encode("utf-8", "replace")
    link_base: Any = templates.globals["link_base"]
    base: str = link_base()
    return prefix_links(page, base) if base else page


def prefix_links(page: bytes, base: str) -> bytes:
    """Return a page whose links to pages of a project begin with `base`. Only attributes of tags
    are changed: in text, angle brackets are escaped."""
    made = b'="%s/' % base.encode()
    return _TAG.sub(lambda tag: _LINK.sub(made, tag[0]), page)


class RenderedPage(Template):
    """A page rendered in the thread that read its data, because a long page must not block the
    streams."""

    def __init__(self, template: str, shown: dict[str, Any]) -> None:
        super().__init__(template)
        self._body = rendered(template, shown)

    def to_asgi_response(self, *_: Any, **options: Any) -> ASGIResponse:
        return ASGIResponse(
            body=self._body,
            media_type="text/html",
            headers=self.headers,
            is_head_response=options.get("is_head_response", False),
            status_code=self.status_code,
        )


def render_page(template: str, *, here: str = "", **shown: Any) -> Template:
    """Render a page; `here` is its word in NAVIGATION."""
    return RenderedPage(template, {"here": here, **shown})

"""Sync: what this machine sends to a team, what it would send, and what it does not."""

from __future__ import annotations

import re
import threading
from pathlib import Path

import msgspec
from litestar import get, post
from litestar.params import FromPath
from litestar.response import Redirect, Template

from whyfor.server.forms import FormData, go_to
from whyfor.server.page import Kept, render_page
from whyfor.server.pages.sessions import Short
from whyfor.service.remote import change_remote
from whyfor.service.share import keep_local, share
from whyfor.service.sync import sync_now
from whyfor.service.sync_page import require_item, sync_page

SHOWN = 60  # lines of a story, unless all are asked for
_REDACTED = re.compile(r"\[REDACTED:([^\]\s]{1,80})\]")
SHARES = {
    "push": "on git push, after I looked",
    "all": "every session",
    "ask": "only what I name",
}


class ShareForm(msgspec.Struct, frozen=True):
    """How a project is shared."""

    project: str = ""
    share: str = ""
    paused: str = ""


class EmptyForm(msgspec.Struct, frozen=True):
    """A form without fields of its own."""

    back: str = ""


def size_words(number: int) -> str:
    """Return a size in words: 96 kB."""
    return f"{number / 1000:,.0f} kB" if number < 10_000_000 else f"{number / 1_000_000:,.0f} MB"


def redacted_pieces(text: str) -> list[tuple[str, str]]:
    """Return a text in pieces: words that are sent, each with what was taken out after it; empty if
    nothing was."""
    parts = _REDACTED.split(text)
    names = [name.replace("#", " ") for name in parts[1::2]]
    return list(zip(parts[::2], [*names, ""], strict=True))


@get("/sync", include_in_schema=False, sync_to_thread=True)
def show(settings: Kept, at: Short = "", sent: Short = "", whole: Short = "") -> Template:
    found = sync_page(settings, at)
    return render_page(
        "sync.html",
        here="sync",
        found=found,
        shares=SHARES,
        sent=bool(sent),
        kb=size_words,
        pieces=redacted_pieces,
        most=None if whole else SHOWN,
    )


@post("/sync/now", include_in_schema=False, sync_to_thread=True)
def try_now(settings: Kept, data: FormData[EmptyForm]) -> Redirect:
    """Try to send at once. The page does not wait for it."""
    del data
    threading.Thread(target=sync_now, args=(settings, "Try now"), daemon=True).start()
    return go_to("/sync", "/sync")


@post("/sync/terms", include_in_schema=False, sync_to_thread=True)
def change_terms(settings: Kept, data: FormData[ShareForm]) -> Redirect:
    paused = {"on": True, "off": False}.get(data.paused)
    change_remote(settings, data.project, share=data.share or None, paused=paused)
    return go_to("/sync", "/sync")


@post("/sync/{number:int}/hold", include_in_schema=False, sync_to_thread=True)
def hold_back(settings: Kept, number: FromPath[int], data: FormData[EmptyForm]) -> Redirect:
    """Keep a story here; what was sent of it is taken back."""
    del data
    keep_local(settings, require_item(settings, number).name, Path.cwd())
    return go_to("/sync", "/sync")


@post("/sync/{number:int}/send", include_in_schema=False, sync_to_thread=True)
def send_again(settings: Kept, number: FromPath[int], data: FormData[EmptyForm]) -> Redirect:
    """Send a story that was held back or refused."""
    del data
    share(settings, require_item(settings, number).name, Path.cwd())
    return go_to("/sync", "/sync")


router = [show, try_now, change_terms, hold_back, send_again]

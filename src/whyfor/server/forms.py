"""Forms: the only way to change something through a page.

A change is a POST of one of our own forms. A browser says with it which page it comes from, and
the form holds a token that only a page of the same sign-in has. The guard checks both before any
route sees the request, so that no route can leave it out. Routes answer with a redirect.
"""

from __future__ import annotations

import re
from typing import Annotated, TypeVar
from urllib.parse import parse_qs

from litestar.enums import RequestEncodingType
from litestar.params import Body
from litestar.response import Redirect
from litestar.types import HTTPRequestEvent, Receive, ReceiveMessage

from whyfor.server.problems import Refusal

FIELD = "form"  # the name of the token in a form
FIELDS_MAX = 500
_TYPE = "application/x-www-form-urlencoded"
_LOCAL = re.compile(r"/(?![/\\])[\x21-\x7e]{0,4000}")
_SAME_PAGE = "Load the page again, then send it from there."

T = TypeVar("T")
FormData = Annotated[T, Body(media_type=RequestEncodingType.URL_ENCODED)]  # a handler's `data`


def judge_form_headers(headers: dict[str, list[str]], own: list[str]) -> None:
    """Refuse a POST that does not say that it comes from a page of our own origin, or is no
    form."""
    if "authorization" in headers:
        raise Refusal(403, "forbidden", "a form is sent by a browser that is signed in")
    if [origin.lower() for origin in headers.get("origin", [])] != own:
        raise Refusal(403, "forbidden", "a change must come from a page of this server")
    if headers.get("sec-fetch-site", ["same-origin"]) != ["same-origin"]:
        raise Refusal(403, "forbidden", "a change must come from a page of this server")
    kinds = [kind.partition(";")[0].strip().lower() for kind in headers.get("content-type", [])]
    if kinds != [_TYPE]:
        raise Refusal(415, "bad_input", "a change is sent as a form", f"Its type is {_TYPE}.")


async def read_form_body(receive: Receive) -> bytes:
    """Return the whole body; the guard has limited its length before."""
    parts = []
    more = True
    while more:
        message = await receive()
        if message["type"] != "http.request":
            raise Refusal(400, "bad_input", "the form did not arrive whole")
        parts.append(message.get("body", b""))
        more = message.get("more_body", False)
    return b"".join(parts)


def read_form_token(body: bytes) -> str:
    """Return the token in a form; refuse a form without one, or with several."""
    try:
        fields = parse_qs(body.decode("latin-1"), max_num_fields=FIELDS_MAX)
    except ValueError:
        raise Refusal(400, "bad_input", f"a form may have {FIELDS_MAX} fields") from None
    tokens = fields.get(FIELD, [])
    if len(tokens) != 1:
        raise Refusal(403, "forbidden", "this form has no token", _SAME_PAGE)
    return tokens[0]


def stale_form() -> Refusal:
    return Refusal(
        403, "forbidden", "this form is of an earlier sign-in, or of another server", _SAME_PAGE
    )


def replay_body(body: bytes, receive: Receive) -> Receive:
    """Return a `receive` that gives the body again to whoever handles the request."""
    left: list[HTTPRequestEvent] = [{"type": "http.request", "body": body, "more_body": False}]

    async def again() -> ReceiveMessage:
        return left.pop() if left else await receive()

    return again


def go_to(path: str, otherwise: str) -> Redirect:
    """Return a redirect to a path on this server; `otherwise` if that is not what it is."""
    return Redirect(path if _LOCAL.fullmatch(path) else otherwise, status_code=303)

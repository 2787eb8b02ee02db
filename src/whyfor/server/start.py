"""One start of the server on one port, and what it gives to browsers: cookies, page keys,
proofs.

A cookie ends with the start that made it, so whoever gets hold of one after the server has
stopped has nothing. An open page finds its way to the next start by a key that is in the page
and is never sent: each side shows the other that it has the key, by signing a number the page
made up, this port and this start. The server signs first.
"""

from __future__ import annotations

import hmac
import re
import secrets
import time
from hashlib import sha256

from whyfor.service.serve import same_text

LIFE_SECONDS = 7 * 24 * 3600  # from the one-time link on; nothing that comes of it lasts longer
_WORD = re.compile(r"[A-Za-z0-9_-]{16,64}")


class Start:
    def __init__(self, token: str, port: int) -> None:
        self.name = secrets.token_urlsafe(16)
        self.port = port
        self._token = token

    # -- cookies ----------------------------------------------------------------------------------

    def make_cookie(self, until: int) -> str:
        """Return a cookie's value that is good until that second, at this start."""
        return f"{until}.{self._sign_cookie(until)}"

    def read_cookie(self, cookie: str) -> int | None:
        """Return the second until which a cookie is good; None if it is not."""
        until, _, signature = cookie.partition(".")
        end = _read_time(until)
        if end is None or not same_text(signature, self._sign_cookie(end)):
            return None
        return end

    def _sign_cookie(self, until: int) -> str:
        return sign(self._token, "cookie", self.port, self.name, until)

    def make_form_token(self, until: int) -> str:
        """Return the token of the forms that are shown to whoever has the cookie of that second."""
        return sign(self._token, "form", self.port, self.name, until)

    # -- pages ------------------------------------------------------------------------------------

    def make_page_key(self, until: int) -> str:
        """Return what a page keeps to itself: its name, until when it is good, its secret, and
        this start."""
        page = secrets.token_urlsafe(16)
        return f"{page}.{until}.{self._page_secret(page, until)}.{self.name}"

    def answer_page(self, name: str, nonce: str) -> str | None:
        """Return the server's proof for a page, named `page.until`; None if that page is too old
        or never was."""
        known = self._read_page(name, nonce)
        return sign(known[1], "server", self.port, self.name, nonce) if known else None

    def admit_page(self, name: str, nonce: str, proof: str) -> int | None:
        """Return until when a page that proves itself to this start is good; None if it does
        not."""
        known = self._read_page(name, nonce)
        if known is None:
            return None
        until, secret = known
        return (
            until if same_text(proof, sign(secret, "page", self.port, self.name, nonce)) else None
        )

    def _read_page(self, name: str, nonce: str) -> tuple[int, str] | None:
        page, _, until = name.partition(".")
        end = _read_time(until)
        if end is None or not _WORD.fullmatch(page) or not _WORD.fullmatch(nonce):
            return None
        return end, self._page_secret(page, end)

    def _page_secret(self, page: str, until: int) -> str:
        """It is made from the token, which every start has: no list of pages needs to be kept."""
        return sign(self._token, "page", self.port, page, until)


def sign(secret: str, *words: str | int) -> str:
    """Return the HMAC of words, of which none holds a line feed."""
    text = "\n".join(map(str, words))
    return hmac.new(secret.encode(), text.encode(), sha256).hexdigest()


def _read_time(text: str) -> int | None:
    """Return a second that is still to come; None if it is past or no number."""
    if not re.fullmatch(r"[0-9]{1,12}", text):
        return None
    return int(text) if int(text) > time.time() else None

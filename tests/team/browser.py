"""A browser without a screen: its cookies, and the forms of the page it is on."""

from __future__ import annotations

import re
from typing import Any

import httpx

from tests.team.served import HTML, PUBLIC, ServedTeam


class Browser:
    def __init__(self, served: ServedTeam) -> None:
        self.served = served
        self.cookies: dict[str, str] = {}
        self.page = ""

    def get(self, path: str) -> httpx.Response:
        return self._ask("GET", path, headers=HTML)

    def post(self, path: str, **fields: Any) -> httpx.Response:
        """Send a form of the page that was opened last."""
        [token, *_] = re.findall(r'name="form" value="([^"]+)"', self.page)
        own = {**HTML, "origin": PUBLIC, "sec-fetch-site": "same-origin"}
        return self._ask("POST", path, headers=own, data={"form": token, **fields})

    def _ask(self, method: str, path: str, headers: dict[str, str], **more: Any) -> httpx.Response:
        kept = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        sent = {**headers, **({"cookie": kept} if kept else {})}
        answer = self.served.ask(method, path, headers=sent, **more)
        for cookie in answer.headers.get_list("set-cookie"):
            pair, *flags = cookie.split("; ")
            assert {"Path=/", "Secure", "HttpOnly", "SameSite=Lax"} <= set(flags), cookie
            name, _, value = pair.partition("=")
            assert name.startswith("__Host-")
            self.cookies[name] = value
        if answer.headers.get("content-type", "").startswith("text/html"):
            self.page = answer.text
        return answer

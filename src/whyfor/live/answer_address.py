"""Where an agent asks for an answer from the browser, and what it must show there."""

from __future__ import annotations

import os
from pathlib import Path

from whyfor.agents import AGENTS
from whyfor.agents.hooks import ANSWERS
from whyfor.capture.manifest import ANSWER_KEY, hook_folder
from whyfor.config import Settings
from whyfor.live.serve_lock import PORT, serve_file
from whyfor.model.paths import to_text

ANSWER_SECONDS = 600  # how long a request waits for an answer from the browser


def read_answer_key(settings: Settings) -> str:
    """Return the key; empty if nobody asked for answers from the browser."""
    try:
        return (hook_folder(settings) / ANSWER_KEY).read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        return ""


def answers_address(settings: Settings, agent: str, key: str) -> dict[str, str]:
    """Return where an agent asks for an answer from the browser, what it must show, and the file
    in which a server on another port says so."""
    url = f"http://127.0.0.1:{PORT}{ANSWERS}{agent}"
    return {"url": url, "key": key, "server": to_text(serve_file(settings))}


def asked_port(agent: str, rules: bool) -> int:
    """Return the port where an agent asks by itself, so that its hook asks a server elsewhere; 0
    where it does not ask."""
    form = AGENTS[agent].facts.approvals
    return PORT if rules and form is not None and form.over_http else 0


def answer_key(settings: Settings) -> str:
    """Return what an agent must show when it asks; made once."""
    path: Path = hook_folder(settings) / ANSWER_KEY
    try:
        return path.read_text(encoding="ascii").strip()
    except FileNotFoundError:
        import secrets  # here: it brings OpenSSL along, and the key is made once

        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        made = secrets.token_urlsafe(32)
        fd = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        with os.fdopen(fd, "w") as file:
            file.write(made)
        return made

"""What the words of a result or an error mean, looked for only in records of the right kind."""

from __future__ import annotations

import re
from hashlib import blake2b

import msgspec

from whyfor.agents.tools import refused_by, was_denied
from whyfor.model.events import StoredEvent
from whyfor.model.text import one_line
from whyfor.story.failures import kind_of

_HEAD = 400  # characters of a result that say why it failed
_SIGN_IN = re.compile(
    r"invalid api key|invalid x-api-key|/login\b|\b401\b|oauth token has expired"
    r"|authentication_error|not (?:signed|logged) in|log ?in again|unauthorized"
    r"|credentials? (?:have |has )?expired",
    re.I,
)
_LIMIT = re.compile(
    r"usage limit|out of .{0,20}usage|hit your .{0,20}limit|\b429\b|rate[ _-]?limit"
    r"|too many requests|overloaded|\b529\b|quota|credit balance",
    re.I,
)
_CONTEXT = re.compile(r"too long|context (?:window|length|limit)|input length", re.I)
# Of other errors: what a model's API says, not what an agent's own commands do.
_API = re.compile(
    r"api[ _]error|request (?:timed out|failed)|fetch failed|connection|\b5\d\d\b|stream"
    r"|server error|unavailable|network|no response",
    re.I,
)
_UNTIL = re.compile(
    r"(?:resets?(?: at)?|try again (?:at|in)|retry after)\s+([\w:., ()/+-]{2,40})", re.I
)
# What an API's answer says in words, among its JSON.
_MESSAGE = re.compile(r'"message":\s*("(?:[^"\\\x00-\x1f]|\\["\\/bfnrt]){4,}")')
_NETWORK = re.compile(
    r"\bECONN(?:REFUSED|RESET|ABORTED)\b|\bENOTFOUND\b|\bEAI_AGAIN\b|\bETIMEDOUT\b"
    r"|could not resolve (?:host|proxy)|temporary failure in name resolution"
    r"|name or service not known|network is unreachable|no route to host"
    r"|connection (?:timed out|refused|reset by peer)|failed to connect to"
    r"|unable to access 'https?:",
    re.I,
)
# Of other programs, such a line is often only a remark.
_CLIENTS = re.compile(
    r"(?:^|[\s;&|(/])(?:curl|wget|ssh|scp|sftp|rsync|nc|ping|dig|nslookup|telnet|gh|glab|docker|podman"
    r"|kubectl|helm|brew|apt|apt-get|dnf|yum|apk|gem|bundle"
    r"|git\s+(?:clone|fetch|pull|push|ls-remote|submodule)"
    r"|(?:npm|pnpm|yarn|bun)\s+(?:i|ci|install|add|update|publish|view|info)"
    r"|(?:pip3?|uv|poetry|pipx)\s+\S*\s*(?:install|add|sync|lock|download)"
    r"|cargo\s+(?:fetch|install|update|add)|go\s+(?:get|install|mod))\b"
)
_LOOPBACK = re.compile(r"127\.0\.0\.1|localhost|\[?::1\]?[:\]/ ]|0\.0\.0\.0", re.I)
_CONFLICT = re.compile(r"^CONFLICT \(|^error: could not apply |^hint: .*resolve.*conflicts", re.M)
_CONFLICTING = re.compile(r"^CONFLICT \([^)]*\): .*? in (.+)$", re.M)
_GIT = re.compile(r"(?:^|[\s;&|(])git(?:\s+-[cC]\s+\S+|\s+--?[\w-]+(?:=\S+)?)*\s+([\w-]+)")
_MERGES = frozenset("merge rebase cherry-pick pull revert am stash".split())
_SETTLES = re.compile(r"--(?:continue|abort|skip|quit)\b")
_NOISE = re.compile(r"[\d\s]+|0x[0-9a-f]+|[0-9a-f]{7,40}\b")
# Only a person can change that; of other refusals the agent finds a way around by itself.
_UNALLOWED = re.compile(
    r"requires approval|requested permissions|permission to use|denied in ", re.I
)
_EMPTY = re.compile(r"(?:exit code \d+|error|command failed|\W)*\Z", re.I)


class Trouble(msgspec.Struct, frozen=True):
    """Why a model's API did not answer."""

    kind: str  # sign-in | limit | context | other | unknown: of no API
    at: int
    seq: int
    text: str
    until: str = ""  # as the error says it


def text_digest(text: str) -> bytes:
    """Return a short value that is the same for the same text."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()


def error_digest(text: str) -> bytes:
    """The same for an error whatever numbers, hashes and spaces it has."""
    return text_digest(_NOISE.sub("", text[:4000]).lower())


def api_trouble(event: StoredEvent, at: int) -> Trouble:
    """Return what an error of the model's API says."""
    text = event.text[:2000]
    until = _UNTIL.search(text)
    kind = "other" if _API.search(text) else "unknown"
    if _SIGN_IN.search(text):
        kind = "sign-in"
    elif _LIMIT.search(text):
        kind = "limit"
    elif _CONTEXT.search(text):
        kind = "context"
    said = _MESSAGE.search(text)
    words = msgspec.json.decode(said[1]) if said else text
    return Trouble(kind, at, event.seq, one_line(words)[:160], _tidy(until[1]) if until else "")


def _tidy(text: str) -> str:
    """Return the words up to where a sentence ends."""
    return one_line(text).rstrip(" .,")


def failure_kind(event: StoredEvent, agent: str) -> str | None:
    """Return what a failed result is: `no` (a person's), `blocked` (nobody may allow it), `echo`
    (of another failure), `failed`; None if it did not fail."""
    data = event.data or {}
    denied = was_denied(data, event.text)
    if not data.get("failed") and not denied:
        return None
    head = event.text[:_HEAD]
    if denied:
        return "blocked" if refused_by(head, agent) in ("nobody", "agent") else "no"
    kind = kind_of("tool.result", head, data.get("exit_code") is not None)
    if kind is None:
        return "echo"
    if kind == "denied" or data.get("interrupted"):
        return "no"
    return "blocked" if kind == "blocked" and _UNALLOWED.search(head) else "failed"


def says_nothing(text: str) -> bool:
    """Whether a failed result has no words of its own: a search that found nothing."""
    return _EMPTY.match(text[:_HEAD]) is not None


def no_network(command: str, text: str) -> str:
    """Return the line that says that a host was not reached; empty if none does, or if the command
    is not one that asks for hosts. A service on this machine is no network."""
    if command and not _CLIENTS.search(command):
        return ""
    for found in _NETWORK.finditer(text[:4000]):
        start = text.rfind("\n", 0, found.start()) + 1
        end = text.find("\n", found.end())
        line = text[start : end if end >= 0 else len(text)]
        if not _LOOPBACK.search(line):
            return one_line(line)[:160]
    return ""


def git_words(command: str) -> list[str]:
    """Return what git is asked to do in a command: merge, rebase, commit, …"""
    return _GIT.findall(command)


def conflict_in(command: str, result: str) -> list[str] | None:
    """Return the files that git could not merge; None if the result is of no conflict."""
    if _MERGES.isdisjoint(git_words(command)) or not _CONFLICT.search(result):
        return None
    return [name.strip() for name in _CONFLICTING.findall(result)]


def settles_conflict(command: str) -> bool:
    """Whether a command that succeeded ends a merge that had stopped."""
    words = git_words(command)
    if "commit" in words:
        return True
    return bool(_SETTLES.search(command)) and not _MERGES.isdisjoint(words)

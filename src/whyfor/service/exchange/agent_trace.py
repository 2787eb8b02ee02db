"""Agent Trace 0.1.0: one JSON record for each commit."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from urllib.parse import quote

import msgspec

from whyfor import __version__
from whyfor.model.blame import LineWho
from whyfor.model.lines import MODIFIED_LINE
from whyfor.model.times import to_iso
from whyfor.service.exchange.owned_lines import OwnedCommit, OwnedFile, OwnedRange, is_agents

TRACE_VERSION = "0.1.0"
_NAMESPACE = uuid.UUID("5a1d7c52-4a5e-5c51-9f0f-6b6f3f0a7d11")  # ours; the same for ever
_MODEL_MAX = 250
_VENDORS = {"claude": "anthropic", "gpt": "openai", "o1": "openai", "o3": "openai", "o4": "openai"}
_VENDORS |= {"codex": "openai", "gemini": "google", "grok": "xai", "mistral": "mistral"}
_VENDORS |= {"devstral": "mistral", "qwen": "alibaba", "kimi": "moonshotai", "glm": "zhipuai"}


class TraceContributor(msgspec.Struct, frozen=True, omit_defaults=True):
    type: str
    model_id: str | None = None


class TraceRange(msgspec.Struct, frozen=True):
    start_line: int
    end_line: int
    content_hash: str


class TraceConversation(msgspec.Struct, frozen=True, omit_defaults=True):
    contributor: TraceContributor
    ranges: list[TraceRange]
    url: str | None = None


class TraceFile(msgspec.Struct, frozen=True):
    path: str
    conversations: list[TraceConversation]


class TraceRecord(msgspec.Struct, frozen=True):
    version: str
    id: str
    timestamp: str
    vcs: dict[str, str]
    tool: dict[str, str]
    files: list[TraceFile]
    metadata: dict[str, object]


def trace_record(commit: OwnedCommit) -> TraceRecord:
    """Return the record of a commit; exported again, it is the same."""
    name = f"{commit.project}\n{commit.sha}"
    return TraceRecord(
        version=TRACE_VERSION,
        id=str(uuid.uuid5(_NAMESPACE, name)),
        timestamp=to_iso(commit.authored_at) or "",
        vcs={"type": "git", "revision": commit.sha},
        tool={"name": "whyfor", "version": __version__},
        files=[_file(file) for file in commit.files],
        metadata={
            "content_hash": "sha256 of the lines, joined by LF, without the last line's end",
            "whyfor": {"evidence": _evidence(commit)},
        },
    )


def trace_lines(commits: Iterable[OwnedCommit]) -> str:
    """Return JSON lines, one record each."""
    records = (msgspec.json.encode(trace_record(commit)).decode() for commit in commits)
    return "".join(f"{record}\n" for record in records)


def _file(file: OwnedFile) -> TraceFile:
    """A conversation is one turn of a session; what nobody is known for stands apart."""
    groups: dict[tuple[str | None, TraceContributor], list[OwnedRange]] = {}
    for each in file.ranges:
        key = (_url(each.who), _contributor(each.who))
        groups.setdefault(key, []).append(each)
    found = []
    for (url, contributor), ranges in groups.items():
        told = [TraceRange(one.first, one.last, f"sha256:{one.digest}") for one in ranges]
        found.append(TraceConversation(contributor, told, url))
    return TraceFile(file.path, found)


def _url(who: LineWho) -> str | None:
    if not is_agents(who):
        return None
    turn = f"#turn-{who.turn}" if who.turn else ""
    return f"whyfor://session/{quote(who.agent, safe='')}/{quote(who.session_id, safe='')}{turn}"


def _contributor(who: LineWho) -> TraceContributor:
    """A person is never claimed: what no session wrote is unknown."""
    if not is_agents(who):
        return TraceContributor("unknown")
    kind = "mixed" if who.kind == MODIFIED_LINE else "ai"
    return TraceContributor(kind, vendor_model(who.model))


def vendor_model(model: str | None) -> str | None:
    """Return a model as models.dev writes it, `vendor/model`; as it is if the vendor is not
    known."""
    if not model:
        return None
    vendor = next((name for word, name in _VENDORS.items() if model.startswith(word)), "")
    full = f"{vendor}/{model}" if vendor and "/" not in model else model
    return full[:_MODEL_MAX]


def _evidence(commit: OwnedCommit) -> list[dict[str, object]]:
    """How each range is known: in our own field, since the format has none."""
    found: list[dict[str, object]] = []
    for file in commit.files:
        for each in file.ranges:
            if is_agents(each.who):
                told = {"path": file.path, "start_line": each.first, "end_line": each.last}
                call = each.who.writer.call if each.who.writer else None
                how = {"evidence": each.who.evidence, "confidence": each.who.confidence}
                found.append({**told, **how, "call": call})
    return found

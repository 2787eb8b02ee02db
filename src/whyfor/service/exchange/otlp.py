"""export --otlp: sessions as traces for other tools, by the conventions for generative AI. One
trace per turn; its ids are hashes, so that sending it twice makes the same trace."""

from __future__ import annotations

import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator
from hashlib import sha256
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import msgspec

from whyfor import __version__
from whyfor.agents import AGENTS
from whyfor.agents.tools import tool_kind
from whyfor.config import Settings
from whyfor.model.errors import BadInput, WhyforError
from whyfor.model.events import StoredEvent
from whyfor.model.query import SessionFilter
from whyfor.model.reports import Conversation
from whyfor.model.telemetry import StoredResponse
from whyfor.model.turns import Turn
from whyfor.privacy.redacted_text import redacted
from whyfor.service.exchange.otlp_wire import (
    CLIENT,
    AttributeValue,
    OtlpScope,
    OtlpSpan,
    encode_spans,
)
from whyfor.store.open import reading_local
from whyfor.story.session_lookup import find_session, load_conversation, parse_filters

CONVENTIONS = "1.41.0"  # of OpenTelemetry's semantic conventions; gen_ai.* is in development there
SCOPE = OtlpScope("whyfor", __version__, f"https://opentelemetry.io/schemas/{CONVENTIONS}")
_BATCH = 500  # spans in one request
_PATIENCE = 30.0  # seconds for an answer
_TEXT_MAX = 20_000  # characters of one text
# What models' names begin with → who provides them.
_PROVIDERS = {"claude": "anthropic", "gpt": "openai", "o": "openai", "gemini": "gcp.gemini"}
Attributes = dict[str, AttributeValue]


class OtlpRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What is sent where."""

    url: str
    headers: dict[str, str] = {}
    content: bool = False  # also prompts, answers, arguments and results
    reference: str | None = None  # a session; None: those since
    since: str = "7d"


class OtlpReport(msgspec.Struct, frozen=True):
    """What was sent."""

    url: str
    sessions: int
    traces: int
    spans: int
    redacted: int  # secrets that were taken out


def export_otlp(settings: Settings, wanted: OtlpRequest) -> OtlpReport:
    """Send sessions as traces. Raises BadInput for an address or a session that is none, and
    WhyforError if it is not taken."""
    url = traces_address(wanted.url)
    sessions = traces = sent = secrets = 0
    for name in _chosen(settings, wanted):
        found = load_conversation(settings, name, whole=False)
        with reading_local(settings) as store:
            told = store.telemetry.responses(found.session.agent, found.session.session_id)
        own = [each for each in told if each.session == found.session.id]
        spans = list(session_spans(found, own, content=wanted.content))
        clean, secret = redacted(settings, spans, rendered=False, session=found.session.session_id)
        for at in range(0, len(clean), _BATCH):
            _send(url, wanted.headers, _encoded(found, clean[at : at + _BATCH]))
        sessions += bool(clean)
        traces += len({span.trace_id for span in clean})
        sent += len(clean)
        secrets += sum(secret.counts.values())
    return OtlpReport(url, sessions, traces, sent, secrets)


def traces_address(url: str) -> str:
    """Return where traces are sent: an address without a path is a collector's."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise BadInput(f"not an address: {url}", "Give one such as http://127.0.0.1:4318")
    path = parts.path.rstrip("/")
    path = path if path.endswith("/v1/traces") else f"{path}/v1/traces"
    return urlunsplit((parts.scheme, parts.netloc, path, parts.query, ""))


def _chosen(settings: Settings, wanted: OtlpRequest) -> list[str]:
    with reading_local(settings) as store:
        if wanted.reference is not None:
            return [find_session(store, wanted.reference).name]
        where = parse_filters(store, SessionFilter(since=wanted.since))
        found = store.sessions.matching(where, limit=None, subagents=False)
        return [session.name for session in found]


def _encoded(found: Conversation, spans: list[OtlpSpan]) -> bytes:
    session = found.session
    resource: Attributes = {"service.name": f"whyfor-{session.agent}"}
    if session.project:
        resource["whyfor.project"] = session.project
    return encode_spans(resource, SCOPE, spans)


def _send(url: str, headers: dict[str, str], body: bytes) -> None:
    told = {"Content-Type": "application/x-protobuf", **headers}
    request = urllib.request.Request(url, body, told, method="POST")
    try:
        with urllib.request.urlopen(request, timeout=_PATIENCE) as answer:
            answer.read(1 << 16)
    except urllib.error.HTTPError as error:
        hint = "Check the address and --header."
        raise WhyforError(f"{url} answered {error.code}", hint) from None
    except OSError as error:
        why = getattr(error, "reason", error)
        raise WhyforError(f"{url} cannot be reached: {why}", "Is the collector running?") from None


# -- spans ---------------------------------------------------------------------------------------


def session_spans(
    found: Conversation, responses: Iterable[StoredResponse], *, content: bool
) -> Iterator[OtlpSpan]:
    """Yield the spans of a session: per turn the agent's own, one per response, one per call."""
    by_turn: dict[int, list[StoredEvent]] = {}
    for event in found.events:
        if event.seq >= found.session.own_from:
            by_turn.setdefault(event.turn, []).append(event)
    answers: dict[int, list[StoredResponse]] = {}
    for response in responses:
        answers.setdefault(response.turn, []).append(response)
    for turn in found.turns:
        is_work = turn.prompt or turn.tools or turn.turn in answers
        if turn.started_at is not None and turn.turn in by_turn and is_work:
            spans = _TurnSpans(found, turn, content)
            yield spans.agent(answers.get(turn.turn, []))
            yield from spans.chats(answers.get(turn.turn, []))
            yield from spans.tools(by_turn[turn.turn])


class _TurnSpans:
    """The spans of one turn."""

    def __init__(self, found: Conversation, turn: Turn, content: bool) -> None:
        self.session = found.session
        self.turn = turn
        self.content = content
        self.start = turn.started_at or 0
        self.end = max(self.start, turn.ended_at or 0)
        self.trace = _hash(16, self.session.name, turn.turn)
        self.root = _hash(8, self.session.name, turn.turn, "agent")

    def agent(self, responses: list[StoredResponse]) -> OtlpSpan:
        title = AGENTS[self.session.agent].title if self.session.agent in AGENTS else ""
        given = self._about("invoke_agent")
        given["gen_ai.agent.name"] = title or self.session.agent
        models = list(dict.fromkeys(each.model for each in responses if each.model))
        if models:
            given["gen_ai.request.model"] = models[0]
            given |= _provider(models[0])
        if self.content and self.turn.prompt:
            given["gen_ai.input.messages"] = _message_text("user", self.turn.prompt)
        if self.content and self.turn.closing:
            given["gen_ai.output.messages"] = _message_text("assistant", self.turn.closing)
        return OtlpSpan(
            trace_id=self.trace,
            span_id=self.root,
            name=f"invoke_agent {self.session.agent}",
            start=self.start,
            end=self.end,
            attributes=given,
            failed=bool(self.turn.errors),
        )

    def chats(self, responses: list[StoredResponse]) -> Iterator[OtlpSpan]:
        """A transcript says when a response was there, not when it was asked for: a span begins
        where the one before it ended."""
        before = self.start
        for response in responses:
            end = min(max(response.at or before, before), max(self.end, before))
            model = response.model or "unknown"
            given = self._about("chat")
            given |= _usage(response.tokens)
            if response.model:
                given["gen_ai.request.model"] = given["gen_ai.response.model"] = response.model
                given |= _provider(response.model)
            yield OtlpSpan(
                trace_id=self.trace,
                span_id=_hash(8, self.session.name, self.turn.turn, "chat", response.key),
                parent_id=self.root,
                name=f"chat {model}",
                kind=CLIENT,
                start=before,
                end=end,
                attributes=given,
            )
            before = end

    def tools(self, events: list[StoredEvent]) -> Iterator[OtlpSpan]:
        results = {e.get("id"): e for e in events if e.kind == "tool.result"}
        for call in events:
            if call.kind == "tool.call":
                yield self._tool(call, results.get(call.get("id")))

    def _tool(self, call: StoredEvent, result: StoredEvent | None) -> OtlpSpan:
        name = call.name or "unknown"
        given = self._about("execute_tool")
        given["gen_ai.tool.name"] = name
        given["gen_ai.tool.type"] = "function"
        ident = call.get("id")
        if isinstance(ident, str):
            given["gen_ai.tool.call.id"] = ident
        kind = tool_kind(name, self.session.agent, call.get("input"))
        if kind:
            given["whyfor.tool.kind"] = kind
        failed = result is not None and bool(result.get("failed"))
        if failed:
            given["error.type"] = "_OTHER"
        if self.content:
            arguments = msgspec.json.encode(call.get("input")).decode()
            given["gen_ai.tool.call.arguments"] = arguments[:_TEXT_MAX]
            if result is not None:
                given["gen_ai.tool.call.result"] = result.text[:_TEXT_MAX]
        start = call.created_at or self.start
        end = result.created_at if result and result.created_at else start
        return OtlpSpan(
            trace_id=self.trace,
            span_id=_hash(8, self.session.name, "tool", call.seq),
            parent_id=self.root,
            name=f"execute_tool {name}",
            start=start,
            end=end,
            attributes=given,
            failed=failed,
        )

    def _about(self, operation: str) -> Attributes:
        return {
            "gen_ai.operation.name": operation,
            "gen_ai.conversation.id": self.session.session_id,
        }


def _usage(tokens: tuple[int | None, ...]) -> Attributes:
    """The input of the conventions includes what came from the cache and went there. Tokens stand
    with responses only: who adds up spans would else count them twice. What is unknown is left
    out."""
    fresh, read, written, output = tokens
    told = {
        "gen_ai.usage.input_tokens": _whole_input(fresh, read, written),
        "gen_ai.usage.output_tokens": output,
        "gen_ai.usage.cache_read.input_tokens": read,
        "gen_ai.usage.cache_creation.input_tokens": written,
    }
    return {name: count for name, count in told.items() if count is not None}


def _whole_input(fresh: int | None, read: int | None, written: int | None) -> int | None:
    return None if fresh is None else fresh + (read or 0) + (written or 0)


def _provider(model: str) -> Attributes:
    name = model.lower().rpartition("/")[2]
    for start, provider in _PROVIDERS.items():
        if name.startswith(start) and (start != "o" or name[1:2].isdigit()):
            return {"gen_ai.provider.name": provider}
    return {}


def _message_text(role: str, text: str) -> str:
    part: dict[str, Any] = {"type": "text", "content": text[:_TEXT_MAX]}
    return msgspec.json.encode([{"role": role, "parts": [part]}]).decode()


def _hash(size: int, *parts: object) -> bytes:
    text = "\x1f".join(map(str, ("whyfor", *parts)))
    return sha256(text.encode("utf-8", "surrogatepass")).digest()[:size]

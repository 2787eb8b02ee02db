"""Rules: what a person lets Whyfor answer when an agent asks to run a command."""

from __future__ import annotations

from datetime import date
from typing import Annotated, Literal

import msgspec

RuleMode = Literal["off", "dry-run", "on"]
RuleDecision = Literal["allow", "ask", "deny"]
LIMIT_MS = 150  # how long a hook may take that an agent waits for


class CommandRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One rule of rules.toml."""

    id: Annotated[str, msgspec.Meta(pattern="^[A-Za-z0-9_-]{1,40}$")]
    run: list[str]  # how the command begins, word by word
    project: str = "*"  # its identity, or * for all
    agents: list[str] = []  # empty: all
    tool: Literal["shell"] = "shell"
    may: list[str] = []  # options beside those of the program's table: `--silent`, `-t *`
    decision: RuleDecision = "allow"
    until: date | None = None  # the last day it counts
    added: date | None = None
    source: str = msgspec.field(default="", name="from")  # what it was suggested by


class RulesFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The content of rules.toml."""

    mode: RuleMode = "off"
    limit_ms: Annotated[int, msgspec.Meta(ge=20, le=5_000)] = LIMIT_MS
    declined: list[str] = []  # suggestions a person does not want
    rules: list[CommandRule] = msgspec.field(default_factory=list, name="rule")


class RuleAnswer(msgspec.Struct, frozen=True):
    """What the rules said of one request, as it was recorded when the request was made."""

    answer: str  # allow | deny | ask | never | abstain
    by: str = "rule"  # rule | browser
    rule: str = ""
    dry: bool = False
    reason: str = ""
    ms: int = 0

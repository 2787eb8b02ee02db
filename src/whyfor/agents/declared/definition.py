"""The definition of an agent in a TOML file: where its files are, and what their records mean."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, get_args

import msgspec

from whyfor.agents.facts import AgentFacts, ArgumentNames
from whyfor.model.errors import BadInput
from whyfor.model.tools import ToolKind

Meaning = Literal[
    "session",
    "title",
    "prompt",
    "say",
    "think",
    "call",
    "result",
    "tokens",
    "error",
    "compaction",
    "injected",
    "skip",
]
Condition = dict[str, str | int | bool | list[str]]

_NAME = re.compile(r"[a-z][a-z0-9-]{1,30}")
_COLOUR = re.compile(r"#[0-9a-fA-F]{6}")
_HINT = "See docs/agents.md, or start from: whyfor agents new NAME"
_LARGEST = 256 << 10  # bytes
_DEEPEST = 3  # lists inside lists
# Which paths a meaning needs; the others it may have.
_NEEDED: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("prompt", "say", "think", "title", "error", "injected"), ("text",)),
    "call": ("call", "tool"),
    "result": ("call",),
}


class RecordRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename={"as_": "as"}):
    """What records mean that fulfil a condition. Texts are paths in a record: `message.role`."""

    when: Condition = {}
    as_: Meaning | None = None
    each: str = ""  # a list in the record, to whose elements the rules in `part` apply
    part: tuple[RecordRule, ...] = ()
    text: str = ""
    model: str = ""
    # of a session
    cwd: str = ""
    branch: str = ""
    version: str = ""
    forked_from: str = ""
    # of a call and its result
    call: str = ""
    tool: str = ""
    input: str = ""
    exit_code: str = ""
    failed: str = ""
    diff: str = ""
    path: str = ""
    # of tokens
    input_tokens: str = ""
    cache_read: str = ""
    cache_write: str = ""
    output_tokens: str = ""
    reasoning: str = ""
    cost: str = ""  # dollars
    includes_cache: bool = False  # the input counts what came from the cache


class SessionRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How a file is recognised: one of its first records fulfils a condition."""

    when: Condition
    id: str = ""  # where the session's id stands in that record; empty: the file's name
    cwd: str = ""


class RecordNames(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What stands in every record."""

    time: str = "timestamp"
    id: str = "id"


class AgentDefinition(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    name: str
    title: str
    folders: tuple[str, ...]  # with ~ and $VARIABLE
    session: SessionRule
    read: tuple[RecordRule, ...]
    files: tuple[str, ...] = ("*.jsonl",)
    record: RecordNames = RecordNames()
    resume: str = ""  # a command with {id}
    mark: str = ""
    colour: str = "#8a8f98"
    tools: dict[str, list[str]] = {}  # names by what they do
    arguments: ArgumentNames = ArgumentNames()

    @property
    def facts(self) -> AgentFacts:
        tools: dict[str, ToolKind] = {}
        for kind, names in self.tools.items():
            tools |= dict.fromkeys((name.lower() for name in names), _as_kind(kind))
        return AgentFacts(
            mark=self.mark or self.name[:2].capitalize(),
            colour=self.colour,
            tools=tools,
            arguments=self.arguments,
            untold=tuple(self._untold()),
        )

    def _untold(self) -> Iterator[str]:
        rules = list(walk_rules(self.read))
        meanings = {rule.as_ for rule in rules}
        places = [rule for rule in rules if rule.as_ == "session"]
        if "think" not in meanings:
            yield "thinking"
        if not any(rule.branch for rule in places):
            yield "branch"
        if not any(rule.exit_code for rule in rules):
            yield "exit codes"
        if "tokens" not in meanings:
            yield "tokens per answer"


def read_definition(path: Path) -> AgentDefinition:
    """Return the definition in a file. Raises BadInput that names what is wrong."""
    try:
        if path.stat().st_size > _LARGEST:
            raise BadInput(f"{path.name} has more than {_LARGEST >> 10} KB", _HINT)
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"cannot read {path.name}: {error}", "Make it readable text.") from None
    return parse_definition(text, path.name)


def parse_definition(text: str, name: str) -> AgentDefinition:
    """Return the definition in a text; `name` stands in errors. Raises BadInput."""
    try:
        found = msgspec.convert(tomllib.loads(text), AgentDefinition)
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise BadInput(f"{name}: {error}", _HINT) from None
    for problem in _problems(found):
        raise BadInput(f"{name}: {problem}", _HINT)
    return found


def walk_rules(rules: tuple[RecordRule, ...]) -> Iterator[RecordRule]:
    """Yield the rules and those for the parts of what they match."""
    for rule in rules:
        yield rule
        yield from walk_rules(rule.part)


def _problems(found: AgentDefinition) -> Iterator[str]:
    if not _NAME.fullmatch(found.name):
        yield "`name` is a word of lower-case letters, digits and dashes"
    if found.mark and not (len(found.mark) == 2 and found.mark.isalnum()):
        yield "`mark` is two letters"
    if not _COLOUR.fullmatch(found.colour):
        yield "`colour` is six hexadecimal digits after a #"
    if not found.folders:
        yield "`folders` names no folder"
    if not found.session.when:
        yield "`session.when` is empty: it would take every file"
    if found.resume and "{id}" not in found.resume:
        yield "`resume` has no {id}"
    for kind in found.tools:
        if kind not in get_args(ToolKind):
            yield f"`tools.{kind}` is no kind of tool: {', '.join(get_args(ToolKind))}"
    yield from _rule_problems(found.read, "read", _DEEPEST)


def _rule_problems(rules: tuple[RecordRule, ...], place: str, deepest: int) -> Iterator[str]:
    if deepest == 0:
        yield f"`{place}` is nested too deeply"
        return
    for number, rule in enumerate(rules, 1):
        where = f"{place} {number}"
        if bool(rule.as_) == bool(rule.each):
            yield f"`{where}` needs one of `as` and `each`"
        if rule.each and not rule.part:
            yield f"`{where}` has `each` and no `part`"
        for name in _NEEDED.get(rule.as_ or "", ()):
            if not getattr(rule, name):
                yield f"`{where}`, as {rule.as_}, needs `{name}`"
        yield from _rule_problems(rule.part, f"{where} part", deepest - 1) if rule.part else ()


def _as_kind(kind: str) -> ToolKind:
    known: Mapping[str, ToolKind] = {name: name for name in get_args(ToolKind)}
    return known[kind]


def find_value(record: object, path: str) -> Any:
    """Return what stands at a path such as `message.content.0.text`; None if nothing does, or the
    path is empty."""
    found = record
    for step in path.split(".") if path else ("",):
        if isinstance(found, dict):
            found = found.get(step)
        elif isinstance(found, list) and step.isdecimal() and int(step) < len(found):
            found = found[int(step)]
        else:
            return None
    return found


def is_met(record: object, condition: Condition) -> bool:
    """Whether a record fulfils a condition: each path has the value, one of the values, or with
    `*` any value."""
    for path, wanted in condition.items():
        found = find_value(record, path)
        if wanted == "*":
            if found is None:
                return False
        elif isinstance(wanted, list):
            if found not in wanted:
                return False
        elif type(found) is not type(wanted) or found != wanted:
            return False
    return True

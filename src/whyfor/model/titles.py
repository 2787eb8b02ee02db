"""What a session is called, from what was asked in it: a plan's heading, or the first sentence that
says something."""

from __future__ import annotations

import re

import msgspec

# Where a title comes from; a higher rank wins.
TITLE_WORK = 0  # nothing was said: what it ran
TITLE_WEAK = 10  # words that ask for nothing: hi, continue
TITLE_COMMAND = 15  # a command with what it was told
TITLE_TEMPLATE = 20  # words inside a template that a command brought
TITLE_COMMIT = 30  # the first message it committed with
TITLE_PROMPT = 40  # the first sentence of a person's own
TITLE_DERIVED = 50  # the agent's name for another session that this one continues
TITLE_AGENT = 60
TITLE_PLAN = 70  # the heading of the plan it was told to carry out
TITLE_PERSON = 80
_SOURCES = {
    TITLE_WORK: "work",
    TITLE_WEAK: "request",
    TITLE_COMMAND: "request",
    TITLE_TEMPLATE: "template",
    TITLE_COMMIT: "commit",
    TITLE_PROMPT: "request",
    TITLE_DERIVED: "agent",
    TITLE_AGENT: "agent",
    TITLE_PLAN: "plan",
    TITLE_PERSON: "person",
}

CONTROL = re.compile(
    r"(?:y(?:es|ep|eah)?|no?|ok(?:ay)?|sure|go(?: ahead| on)?|(?:please )?(?:continue|proceed)"
    r"|resume(?: please)?|commit(?: (?:it|this|and push))?|push(?: it)?|done|thanks?(?: you)?"
    r"|perfect|great|nice|good|next|stop|retry|try again|do it|lgtm|looks good|hi|hello|hey"
    r"|exit|quit|\d{1,2})[\s.!?]*$",
    re.I,
)
# A command that begins work: it belongs to a plugin, or says something in words of its own.
WORK_COMMAND = re.compile(r"/[\w.-]+(?::[\w.:-]+\s+\S|\s+\S+\s+\S+\s+\S)")
PLAN = re.compile(r"\s*implement the following plan:?\s*", re.I)
_HEAD = 8_000  # characters of a prompt that are looked at
_MARKER = re.compile(r"^\s*(?:#{1,6}\s+|[-*+•]\s+|\d{1,3}[.)]\s+)")
_HEADING = re.compile(r"^\s*#{1,6}\s+(?:(?:implementation )?plan\s*[:\u2013\u2014-]\s*)?(.+)", re.I)
_FENCE = re.compile(r"^\s*(?:```|~~~)")
_TAG = re.compile(r"^\s*<(/?)([A-Za-z][\w:.-]*)(?:\s[^<>]*)?>")
_COMMAND = re.compile(r"^[/$!][A-Za-z][\w:.-]*(?:\s|$)")
_PASTED = re.compile(
    r"^\s*(?:\||>|\$ |% |\[\[ ##|[{}\[\]]\s*$|\[?\d{4}-\d\d-\d\d[T ]\d\d:|\[?\d\d:\d\d:\d\d"
    r"|Traceback \(|\s+at \S+\(|File \"|Caveat: |\[Image|\[Request interrupted"
    r"|(?:DEBUG|INFO|WARN|WARNING|ERROR|FATAL)\b\W|[-=*_]{3,}\s*$)"
)


class ProposedTitle(msgspec.Struct, frozen=True):
    rank: int
    text: str


def title_source(rank: int) -> str | None:
    """Return in a word where a title of a rank comes from; None without a title."""
    return _SOURCES.get(rank)


def title_of_prompt(text: str) -> ProposedTitle | None:
    """Return what a prompt calls its session; None if it has no words."""
    head = text[:_HEAD]
    planned = PLAN.match(head)
    if planned and planned.end() < len(head):
        rest = head[planned.end() :]
        headings = filter(None, map(_HEADING.match, rest.splitlines()))
        first = next(headings, None)
        named = ProposedTitle(TITLE_PLAN, first[1].strip(" #*")) if first else title_of_prompt(rest)
        return named and msgspec.structs.replace(named, rank=TITLE_PLAN)
    best: ProposedTitle | None = None
    for rank, line in _own_lines(head):
        if best is None or rank > best.rank:
            best = ProposedTitle(rank, line)
        if rank == TITLE_PROMPT:
            break
    return best


def _own_lines(text: str) -> list[tuple[int, str]]:
    """Return the lines that may be titles, and how good they are as one."""
    found: list[tuple[int, str]] = []
    fenced = False
    inside: list[str] = []  # tags that are open
    for line in text.splitlines():
        if _FENCE.match(line):
            fenced = not fenced
            continue
        words, template = _without_tags(line, inside)
        if fenced or not words:
            continue
        pasted = _PASTED.match(line) or _COMMAND.match(words)
        found.append((TITLE_WEAK if pasted else _rank(words, template), words))
    return found


def _without_tags(line: str, inside: list[str]) -> tuple[str, bool]:
    """Return a line without the tags around it, and whether it stands between tags; `inside` are
    those that are open, which it may close or add to."""
    rest = line.strip()
    template = bool(inside)
    while match := _TAG.match(rest):
        closing, name = match.groups()
        rest = rest[match.end() :].strip()
        if not closing:
            inside.append(name)
            template = True
        elif name in inside:
            del inside[inside.index(name) :]
            template = bool(inside)
    if inside and rest.endswith(f"</{inside[-1]}>"):
        rest = rest.removesuffix(f"</{inside.pop()}>").strip()
    return _MARKER.sub("", rest), template


def _rank(words: str, template: bool) -> int:
    if CONTROL.match(words) or (words.isascii() and len(words.split()) < 2):
        return TITLE_WEAK
    return TITLE_TEMPLATE if template else TITLE_PROMPT

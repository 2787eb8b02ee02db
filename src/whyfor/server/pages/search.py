"""Search: words in everything that was asked, answered, thought and done, and in what came of
it."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Annotated, Any
from urllib.parse import urlencode

import msgspec
from litestar import get
from litestar.params import FromQuery, QueryParameter
from litestar.response import Template
from markupsafe import Markup

from whyfor.model.query import FoundPassage
from whyfor.server.page import Kept, render_page
from whyfor.server.render import render_marked
from whyfor.service.agents import agents_shown
from whyfor.service.search import WHEN, CommitHit, NoteHit, SearchRequest, search_page

LIMIT = 20
_KINDS = (
    ("", "Everything"),
    ("prompts", "Prompts"),
    ("answers", "Answers"),
    ("tools", "Tool calls"),
    ("thinking", "Thinking"),
    ("commits", "Commits"),
)
# By the kind of event: class, icon, word.
_LOOKS = {
    "user.prompt": ("prompt", "i-chev", "Prompt"),
    "assistant.message": ("answer", "i-list", "Answer"),
    "assistant.thinking": ("thinking", "i-think", "Thinking"),
    "tool.call": ("tool", "i-term", "Tool call"),
    "tool.result": ("tool", "i-term", "Tool result"),
    "question.asked": ("answer", "i-ask", "Question"),
    "approval.requested": ("tool", "i-ask", "Approval"),
    "compaction": ("answer", "i-fold", "Summary"),
    "error": ("tool", "i-warn", "Error"),
}
_OTHER = ("answer", "i-info", "Event")
# an agent's words, though it leads to the prompt they stand for
_TITLE = ("answer", "i-list", "Title")
_SIGNS = re.compile(
    r"`{3}\w* ?|(?<![\w*])\*\*(?=\S)|(?<=\S)\*\*(?![\w*])"
)  # of Markdown: fences, and bold around words
# as agents number the lines of a file they read
_NUMBERED = re.compile(r"\s{0,12}(\d{1,7})(?:→|\t)")


@get("/search", include_in_schema=False, sync_to_thread=True)
def show(
    settings: Kept,
    q: FromQuery[str] = "",
    kind: FromQuery[str] = "",
    agent: FromQuery[list[str] | None] = None,
    project: FromQuery[str] = "",
    when: FromQuery[str] = "",
    commit: FromQuery[str] = "",
    sort: FromQuery[str] = "rank",
    deep: FromQuery[str] = "",
    who: FromQuery[str] = "",
    after: Annotated[int, QueryParameter(ge=0, le=100_000)] = 0,
) -> Template:
    shown = agents_shown(settings)
    agents = tuple(dict.fromkeys(agent or ()))
    agents = () if set(agents) >= set(shown) else agents  # all of them is no filter
    wanted = SearchRequest(
        q, kind, agents, project, when, bool(commit), sort or "rank", after, bool(deep), who
    )
    return render_page(
        "search.html",
        here="search",
        wanted=wanted,
        found=search_page(settings, wanted, limit=LIMIT),
        kinds=_KINDS,
        whens=WHEN,
        agents=shown,
        link=lambda **changed: search_link(wanted, **changed),
        look=look,
        code=code_lines,
        words=marked_words,
        spoken=spoken,
        moment_of=moment_of,
        is_commit=lambda hit: isinstance(hit, CommitHit),
        is_note=lambda hit: isinstance(hit, NoteHit),
    )


def search_link(wanted: SearchRequest, **changed: Any) -> str:
    """The same search with something changed; from its beginning, unless that is said."""
    new = msgspec.structs.replace(wanted, **{"after": 0, **changed})
    given: list[tuple[str, str | int]] = [
        ("q", new.q),
        ("kind", new.kind),
        *(("agent", name) for name in new.agents),
        ("project", new.project),
        ("who", new.who),
    ]
    given += [
        ("when", new.when),
        ("commit", "1" if new.committed else ""),
        ("after", new.after or ""),
    ]
    given += [("sort", new.sort if new.sort != "rank" else ""), ("deep", "1" if new.deep else "")]
    asked = urlencode([(name, value) for name, value in given if value])
    return f"/search?{asked}" if asked else "/search"


def look(found: FoundPassage) -> tuple[str, str, str]:
    return _TITLE if found.named else _LOOKS.get(found.kind, _OTHER)


def marked_words(text: str, marks: list[tuple[int, int]]) -> Markup:
    """Words that were looked for and stand side by side have one mark."""
    joined: list[tuple[int, int]] = []
    for start, end in marks:
        if joined and start >= joined[-1][1] and text[joined[-1][1] : start].isspace():
            joined[-1] = (joined[-1][0], end)
        else:
            joined.append((start, end))
    return render_marked(text, joined)


def spoken(text: str, marks: list[tuple[int, int]]) -> Markup:
    """An agent's words: the signs of its Markdown would only stand between them."""
    for sign in reversed(list(_SIGNS.finditer(text))):
        start, end = sign.span()
        if not any(a < end and b > start for a, b in marks):
            text = text[:start] + text[end:]
            gone = end - start
            marks = [(a - gone, b - gone) if a >= end else (a, b) for a, b in marks]
    return marked_words(text, marks)


def code_lines(passage: FoundPassage) -> list[tuple[str, Markup]]:
    """The lines of a call or its result: number, if the agent wrote one, and text."""
    found, at = [], 0
    for line in passage.snippet.split("\n"):
        skip = numbered.end() if (numbered := _NUMBERED.match(line)) else 0
        begin, end = at + skip, at + len(line)
        marks = [
            (max(a, begin) - begin, min(b, end) - begin)
            for a, b in passage.marks
            if a < end and b > begin
        ]
        found.append((numbered[1] if numbered else "", marked_words(line[skip:], marks)))
        at = end + 1
    first = next((at for at, (number, line) in enumerate(found) if number or line.strip()), 0)
    return found[first:]


def moment_of(millis: int | None) -> str:
    """today 13:47, 9 Nov, 9 Nov 2025."""
    if millis is None:
        return "time unknown"
    when, today = datetime.fromtimestamp(millis / 1000), datetime.now()
    if when.date() == today.date():
        return f"today {when:%H:%M}"
    return f"{when.day} {when:%b}" if when.year == today.year else f"{when.day} {when:%b %Y}"


router = [show]

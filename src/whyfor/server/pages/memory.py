"""Memory: what the next session in a project is told, and the notes it is made of."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote, urlencode

import msgspec
from litestar import get, post
from litestar.params import FromPath, QueryParameter
from litestar.response import Redirect, Template

from whyfor.config import Settings
from whyfor.model.errors import NotFound, WhyforError
from whyfor.model.text import one_line
from whyfor.server.forms import FormData, go_to
from whyfor.server.page import TEMPLATES, Kept, render_page
from whyfor.server.pages.sessions import Short, Word, count_word, filter_choices
from whyfor.service.agents import agent_title, agents_shown
from whyfor.service.memory import (
    NOTE_MAX,
    TYPES,
    NewNote,
    add_note,
    edit_note,
    forget_note,
    mark_wrong,
    note_detail,
    pin,
    unpin,
)
from whyfor.service.memory_page import (
    MemoryRequest,
    NoteList,
    NoteView,
    note_list,
    note_projects,
    note_view,
)
from whyfor.service.memory_told import ToldBlock, told_block

ALL = "*"  # in the place of a project: all of them
BUDGETS = (500, 1_000, 1_500, 2_000)
STATES = {
    "": "Any",
    "verified": "Verified",
    "stated": "Stated",
    "hypothesis": "Hypothesis",
    "stale": "Stale",
    "superseded": "Superseded",
    "refuted": "Wrong",
    "pinned": "Pinned",
}
SECTIONS = {
    "rules": "rules",
    "threads": "open threads",
    "sessions": "last sessions",
    "findings": "findings",
    "failures": "what went wrong",
}
_DONE = {
    "pin": "Pinned. The next session here is told it first.",
    "unpin": "Unpinned.",
    "edit": "Saved. The old words are in its history.",
    "wrong": "Marked as wrong. It is never told again.",
    "forget": "Forgotten.",
}
_UNDO = {"pin": "unpin", "unpin": "pin"}
_NAMES = {"q": "words", "file": "file", "branch": "branch", "since": "since", "who": "person"}
State = Annotated[str, QueryParameter(max_length=40, name="state")]  # Litestar's own is another
Budget = Annotated[int, QueryParameter(ge=0, le=2_250)]


class ActionNotice(msgspec.Struct, frozen=True):
    """What was just done, and where to undo it."""

    words: str
    undo: str = ""


class NoteForm(msgspec.Struct, frozen=True):
    """A form about a note: what a person wrote, and where the page was."""

    back: str = ""
    text: str = ""


@get("/memory", include_in_schema=False, sync_to_thread=True)
def show(
    settings: Kept,
    project: Word = "",
    q: Short = "",
    type: Short = "",
    state_name: State = "",
    file: Short = "",
    branch: Short = "",
    agent: Short = "",
    since: Short = "",
    after: Short = "",
    who: Short = "",
    at: Short = "",
    on: Short = "",
    tokens: Budget = 0,
    did: Short = "",
) -> Template:
    known = note_projects(settings)
    project = project or _project_of(settings, at) or (known[0].identity if known else "")
    asked = MemoryRequest(
        "" if project == ALL else project, q.strip(), type, state_name, file.strip(), branch, agent
    )
    asked = msgspec.structs.replace(asked, since=since, after=after, who=who)
    link = _linker(asked, {"on": on, "tokens": str(tokens or ""), "at": at})
    budget = tokens or settings.memory.tokens
    if not known:
        return render_page("memory.html", here="memory", asked=asked, projects=[], **_NOTHING)
    found = note_list(settings, asked)
    told, fault = _told(settings, asked.project, on, budget)
    view = _chosen(settings, at or next((row.observation.key for row in found.rows), ""))
    return render_page(
        "memory.html",
        here="memory",
        asked=asked,
        found=found,
        told=told,
        fault=fault,
        told_notes=_told_notes(told),
        meter=_meter(told),
        section_words=SECTIONS,
        projects=_project_choices(known, asked.project),
        branches_on=[(name, one_line(name)) for name in told.branches] if told else [],
        budgets=_budget_choices(budget),
        on=on or (told.branch or "" if told else ""),
        tokens=budget,
        choices=_choices(settings, found, asked),
        drops=_drops(found, link),
        view=view,
        at=view.note.observation.key if view else "",
        back=link(),
        link=link,
        clear=_linker(MemoryRequest(asked.project or ALL), {})(),
        fragment=lambda key: f"/memory/{quote(key, safe='')}?{urlencode({'back': link(at=key)})}",
        did=_notice(did, at),
        note_max=NOTE_MAX,
        count_word=count_word,
    )


@get("/memory/{key:str}", include_in_schema=False, sync_to_thread=True)
def note(settings: Kept, key: FromPath[str], back: Word = "") -> Template:
    """One note beside the list, for a page that is open."""
    view = note_view(settings, key)
    asked = MemoryRequest(project=view.note.project or ALL)
    return render_page(
        "memory/note.html", view=view, link=_linker(asked, {}), back=back, note_max=NOTE_MAX
    )


_NOTHING: dict[str, Any] = {"found": None, "told": None, "did": None}


# -- actions -------------------------------------------------------------------------------------


@post("/memory/{key:str}/pin", include_in_schema=False, sync_to_thread=True)
def pin_note(settings: Kept, key: FromPath[str], data: FormData[NoteForm]) -> Redirect:
    pin(settings, key)
    return _done("pin", key, data.back)


@post("/memory/{key:str}/unpin", include_in_schema=False, sync_to_thread=True)
def unpin_note(settings: Kept, key: FromPath[str], data: FormData[NoteForm]) -> Redirect:
    unpin(settings, key)
    return _done("unpin", key, data.back)


@post("/memory/{key:str}/edit", include_in_schema=False, sync_to_thread=True)
def change_note(settings: Kept, key: FromPath[str], data: FormData[NoteForm]) -> Redirect:
    edit_note(settings, key, data.text)
    return _done("edit", key, data.back)


@post("/memory/{key:str}/wrong", include_in_schema=False, sync_to_thread=True)
def reject_note(settings: Kept, key: FromPath[str], data: FormData[NoteForm]) -> Redirect:
    """Mark a note as wrong; what a person says instead takes its place, pinned."""
    rejected = note_detail(settings, key).note
    if data.text.strip():
        new = NewNote(
            text=data.text,
            type=rejected.observation.type,
            files=rejected.observation.files_written,
            replaces=rejected.observation.key,
            project=rejected.project,
            branch=rejected.branch,
        )
        pin(settings, add_note(settings, Path.cwd(), new).observation.key)
    mark_wrong(settings, key)
    return _done("wrong", key, data.back)


@post("/memory/{key:str}/forget", include_in_schema=False, sync_to_thread=True)
def erase(settings: Kept, key: FromPath[str], data: FormData[NoteForm]) -> Redirect:
    forget_note(settings, key)
    return _done("forget", "", data.back)


def _done(action: str, key: str, back: str) -> Redirect:
    """Return to the page, which says what was done."""
    path, _, query = back.partition("?")
    kept = [
        part for part in query.split("&") if part and part.partition("=")[0] not in ("did", "at")
    ]
    kept.append(urlencode({"did": action} | ({"at": key} if key else {})))
    return go_to(f"{path}?{'&'.join(kept)}", "/memory")


def _notice(did: str, at: str) -> ActionNotice | None:
    if did not in _DONE:
        return None
    undo = f"/memory/{quote(at, safe='')}/{_UNDO[did]}" if did in _UNDO and at else ""
    return ActionNotice(_DONE[did], undo)


# -- parts of the page ---------------------------------------------------------------------------


def _told(
    settings: Settings, project: str, on: str, tokens: int
) -> tuple[ToldBlock | None, WhyforError | None]:
    if not project:
        return None, None
    try:
        return told_block(settings, project, on, tokens), None
    except NotFound:
        raise
    except WhyforError as error:
        return None, error


def _told_notes(told: ToldBlock | None) -> int:
    return sum(1 for line in told.lines if line.source and line.source.note) if told else 0


def _meter(told: ToldBlock | None) -> list[tuple[float, float]]:
    """Return where the bar of each section begins and how wide it is, of 300."""
    bars: list[tuple[float, float]] = []
    at = 0.0
    for tokens in told.sections.values() if told and told.block else ():
        width = 300 * tokens / max(1, told.block.budget)  # type: ignore[union-attr]
        bars.append((round(at, 1), round(max(width - 1, 0.5), 1)))
        at += width
    return bars


def _project_of(settings: Settings, key: str) -> str:
    """Return the project of a note that is asked for alone."""
    if not key:
        return ""
    try:
        return note_detail(settings, key).note.project or ALL
    except WhyforError:
        return ""


def _chosen(settings: Settings, key: str) -> NoteView | None:
    try:
        return note_view(settings, key) if key else None
    except WhyforError:
        return None  # it was forgotten since


def _linker(asked: MemoryRequest, more: dict[str, str]) -> Callable[..., str]:
    def link(**changed: str) -> str:
        """This page with something changed."""
        given = msgspec.structs.asdict(asked) | {"project": asked.project or ALL} | more | changed
        return "/memory?" + urlencode({name: value for name, value in given.items() if value})

    return link


# -- words ---------------------------------------------------------------------------------------


def _project_choices(known: list[Any], chosen: str) -> list[tuple[str, str]]:
    named: Callable[[str], str] = TEMPLATES.get().filters["project"]
    found = [(one.identity, named(one.identity)) for one in known]
    if chosen and chosen not in dict(found):
        found.insert(0, (chosen, named(chosen)))
    return [*found, (ALL, "All projects")]


def _budget_choices(tokens: int) -> list[tuple[int, str]]:
    sizes = sorted({*BUDGETS, tokens})
    return [(size, f"{size:,} tokens") for size in sizes]


def _choices(
    settings: Settings, found: NoteList, asked: MemoryRequest
) -> dict[str, list[tuple[str, str]]]:
    shown = agents_shown(settings)
    choices = filter_choices(shown, found.branches, asked.branch, asked.since)
    types = [("", "Any"), *((name, name.capitalize()) for name in TYPES)]
    people = [("", "Anyone"), *((str(one.id), one_line(one.name)) for one in found.members)]
    return {**choices, "type": types, "state": list(STATES.items()), "who": people}


def _drops(found: NoteList, link: Callable[..., str]) -> list[tuple[str, str, int]]:
    """The filters that can be left out when nothing was found: words, where they lead, and how
    many notes are there then."""
    return [
        (_drop_word(one.name, one.value), link(**{one.name: "", "after": "", "at": ""}), one.notes)
        for one in found.drops
    ]


def _drop_word(name: str, value: str) -> str:
    if name == "agent":
        return f"Without {agent_title(value)}"
    if name in ("type", "state"):
        return f"Without {name} {value}"
    return f"Without {_NAMES[name]} {one_line(value)}"


READING = [show, note]
router = [*READING, pin_note, unpin_note, change_note, reject_note, erase]

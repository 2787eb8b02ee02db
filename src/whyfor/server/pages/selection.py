"""What can be done with the list: export sessions, forget them, keep a filter."""

from __future__ import annotations

import io
import zipfile
from typing import Annotated
from urllib.parse import parse_qs

import msgspec
from litestar import Response, get, post
from litestar.params import QueryParameter
from litestar.response import Redirect, Template

from whyfor.model.errors import BadInput
from whyfor.server.forms import FormData
from whyfor.server.page import Kept, render_page
from whyfor.server.pages.sessions import filter_link, filter_words
from whyfor.service.export import encoded, export_sessions
from whyfor.service.forget import ForgetArguments, forget
from whyfor.service.saved_filters import NAME_MAX, remove_filter, save_filter
from whyfor.service.session_list import ListRequest, chosen_rows

MOST = 300  # sessions at once: as many as a page of the list has
Query = Annotated[str, QueryParameter(max_length=4000)]
Chosen = Annotated[list[str] | None, QueryParameter(name="s", max_items=MOST)]


class ForgetForm(msgspec.Struct, frozen=True):
    """The sessions that a person has agreed to forget, as agent:id, one in a line."""

    form: str
    sessions: str


class FilterForm(msgspec.Struct, frozen=True):
    """A filter to keep: its name, and the query of the page it is of."""

    form: str
    name: str
    query: str


class FilterName(msgspec.Struct, frozen=True):
    form: str
    name: str


@get("/sessions/filter", include_in_schema=False, sync_to_thread=True)
def name_filter(of: Query = "") -> Template:
    """Ask how a filter is to be called."""
    asked = _asked(of)
    words = filter_words(asked)
    return render_page(
        "sessions/save.html",
        here="sessions",
        query=of,
        words=words,
        name=", ".join(words)[:NAME_MAX],
        back=filter_link(asked),
    )


@post("/sessions/filters", include_in_schema=False, sync_to_thread=True, status_code=303)
def keep_filter(settings: Kept, data: FormData[FilterForm]) -> Redirect:
    asked = _asked(data.query)
    save_filter(settings, data.name, asked)
    return Redirect(filter_link(asked), status_code=303)


@post("/sessions/filters/removed", include_in_schema=False, sync_to_thread=True, status_code=303)
def drop_filter(settings: Kept, data: FormData[FilterName]) -> Redirect:
    remove_filter(settings, data.name)
    return Redirect("/sessions", status_code=303)


def _asked(query: str) -> ListRequest:
    """What a page's query asks for; names that the page does not know are left out."""
    given = {name: values[0] for name, values in parse_qs(query, max_num_fields=40).items()}
    known = {name: given[name] for name in ListRequest.__struct_fields__ if name in given}
    return ListRequest(**known)


@get("/sessions/export", include_in_schema=False, sync_to_thread=True)
def export_chosen(settings: Kept, chosen: Chosen = None) -> Response[bytes]:
    """One session is a Markdown file, several are an archive of such files; without secrets."""
    rows = chosen_rows(settings, _given(chosen))
    files = export_sessions(settings, [row.name for row in rows])
    if len(files) == 1:
        ((name, text),) = files.items()
        return _download(name, "text/markdown; charset=utf-8", encoded(text))
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(name, encoded(text))
    return _download("whyfor-sessions.zip", "application/zip", packed.getvalue())


@get("/sessions/forget", include_in_schema=False, sync_to_thread=True)
def confirm_forget(settings: Kept, chosen: Chosen = None) -> Template:
    """Ask again: what would go, and what would stay."""
    rows = chosen_rows(settings, _given(chosen))
    names = [name for row in rows for name in row.part_names]
    planned = forget(settings, settings.home, ForgetArguments(sessions=tuple(names)), dry_run=True)
    return render_page(
        "sessions/forget.html", here="sessions", rows=rows, names=names, planned=planned
    )


@post("/sessions/forgotten", include_in_schema=False, sync_to_thread=True, status_code=303)
def forget_chosen(settings: Kept, data: FormData[ForgetForm]) -> Redirect:
    names = tuple(data.sessions.splitlines())
    if not names:
        raise BadInput("no session is chosen", "Choose some in the list.")
    # a button clicked twice asks twice: the second finds nothing left, and says what went
    asked = ForgetArguments(sessions=names, gone_already=True)
    done = forget(settings, settings.home, asked)
    gone = [session for session in done.sessions if not session.subagent]
    return Redirect(f"/sessions?forgotten={len(gone) or len(names)}", status_code=303)


def _given(chosen: list[str] | None) -> list[str]:
    if not chosen:
        raise BadInput("no session is chosen", "Choose some in the list.")
    return chosen


def _download(name: str, kind: str, content: bytes) -> Response[bytes]:
    headers = {"content-disposition": f'attachment; filename="{name}"'}
    return Response(content, media_type=kind, headers=headers)


router = [export_chosen, confirm_forget, forget_chosen, name_filter, keep_filter, drop_filter]

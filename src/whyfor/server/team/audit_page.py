"""The audit log: who looked at what, and who changed what."""

from __future__ import annotations

import csv
import io
from datetime import datetime
from itertools import groupby
from typing import Annotated
from urllib.parse import urlencode

from litestar import Response, get
from litestar.params import QueryParameter
from litestar.response import Template

from whyfor.model.accounts import AuditEntry, AuditNote, AuditQuery
from whyfor.model.errors import Forbidden
from whyfor.model.times import DAY, to_iso
from whyfor.server.page import render_page
from whyfor.server.team.context import Asked
from whyfor.team.access import MEMBER
from whyfor.team.actor import AUDIT_COUNTED, TeamActor

PAGE = 50
_CSV_MOST = 10_000
_DID = ("looked", "sent", "changed", "refused", "signed in")
_SINCE = {"1": "1 day", "7": "7 days", "30": "30 days", "180": "180 days", "": "any time"}
Word = Annotated[str, QueryParameter(max_length=100)]
Number = Annotated[int | None, QueryParameter(ge=1, le=1 << 62)]


@get("/audit", opt={"access": MEMBER}, include_in_schema=False, sync_to_thread=True)
def audit_page(
    context: Asked,
    q: Word = "",
    who: Word = "",
    where: Word = "",
    since: Word = "7",
    did: Word = "",
    before: Number = None,
) -> Template:
    actor = context.actor
    asked = _asked(actor, {"q": q, "who": who, "where": where, "since": since, "did": did})
    with actor.reading() as accounts:
        projects = accounts.projects()
        _check_manages(actor, any(each.role == "admin" for each in projects))
        names = accounts.names()
        found = accounts.audit_entries(_before(asked, before), PAGE + 1)
        total = accounts.count_audit(asked)
        actor.write(accounts, AuditNote("looked", "audit.read"))
    given = {"q": q, "who": who, "where": where, "since": since, "did": did}
    older = {**given, "before": str(found[PAGE - 1].id)} if len(found) > PAGE else {}
    return render_page(
        "audit.html",
        here="audit",
        days=[(at, list(entries)) for at, entries in groupby(found[:PAGE], key=_day)],
        shown=len(found[:PAGE]),
        total=total if total <= AUDIT_COUNTED else None,
        older="/audit?" + urlencode(older) if older else "",
        csv="/audit.csv?" + urlencode(given),
        asked=given,
        me=actor.member,
        people=[("", "Anyone"), *((str(number), name) for number, name in names.items())],
        projects=[("", "All"), *((str(each.id), each.name) for each in projects)],
        sinces=list(_SINCE.items()),
        dids=[("", "All"), *((each, each.capitalize()) for each in _DID)],
    )


@get("/audit.csv", opt={"access": MEMBER}, include_in_schema=False, sync_to_thread=True)
def audit_csv(
    context: Asked,
    q: Word = "",
    who: Word = "",
    where: Word = "",
    since: Word = "7",
    did: Word = "",
) -> Response[str]:
    actor = context.actor
    asked = _asked(actor, {"q": q, "who": who, "where": where, "since": since, "did": did})
    with actor.reading() as accounts:
        _check_manages(actor, any(each.role == "admin" for each in accounts.projects()))
        found = accounts.audit_entries(asked, _CSV_MOST)
        actor.write(accounts, AuditNote("looked", "audit.download"))
    text = io.StringIO()
    rows = csv.writer(text)
    rows.writerow(["time", "person", "did", "action", "object", "project", "from", "outcome"])
    for entry in found:
        rows.writerow([_cell(value) for value in _columns(entry)])
    headers = {"content-disposition": 'attachment; filename="audit.csv"'}
    return Response(text.getvalue(), media_type="text/csv; charset=utf-8", headers=headers)


def _columns(entry: AuditEntry) -> list[str]:
    return [
        to_iso(entry.at) or "",
        entry.name or "",
        *(entry.did, entry.action, entry.object, entry.project_name or "", entry.ip, entry.outcome),
    ]


def _cell(value: str) -> str:
    """Return a value that no spreadsheet takes for a formula."""
    return f"'{value}" if value[:1] in "=+-@\t\r" and value else value


def _asked(actor: TeamActor, given: dict[str, str]) -> AuditQuery:
    since = (
        actor.now - int(given["since"]) * DAY
        if given["since"] in _SINCE and given["since"]
        else None
    )
    return AuditQuery(
        text=given["q"],
        person=_number(given["who"]),
        project=_number(given["where"]),
        since=since,
        did=given["did"] if given["did"] in _DID else None,
    )


def _before(asked: AuditQuery, before: int | None) -> AuditQuery:
    return AuditQuery(asked.text, asked.person, asked.project, asked.since, asked.did, before)


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None


def _check_manages(actor: TeamActor, admin: bool) -> None:
    if not (admin or actor.member.is_manager) or "admin" not in actor.member.scopes:
        raise Forbidden("only admins of a project or of the team see the log", "Ask one of them.")


def _day(entry: AuditEntry) -> str:
    return datetime.fromtimestamp(entry.at / 1000).astimezone().strftime("%a %-d %b %Y")


HANDLERS = [audit_page, audit_csv]

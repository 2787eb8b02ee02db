"""Every project holds a word of its own in everything that is kept of it. Everything that can be
asked is asked as everybody, and whatever comes back is read: pages, answers, streams, downloads,
errors, headers, logs and metrics. And PostgreSQL gives the same rows when the product forgets to
ask for its project."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.cases import check_each
from tests.store.contract.build import SHOP
from tests.store.postgres.conftest import sha_of
from tests.store.team import Team
from tests.team.served import HTML, serve_team
from tests.team.test_matrix import ALL, MANAGERS, OF_PROJECT, ROLES, Asked, Caller, Two, routes
from whyfor.store.postgres.connection import ScopedConnection

pytestmark = pytest.mark.slow
WORDS = ("herringword", "walrusword")
# What a route is asked with, beside its path.
QUERIES = {
    "search": "?q={word}",
    "context": "?branch={word}",
    "task": "?key={word}",
    "tasks": "?q={word}",
    "sessions": "?branch={word}",
    "timeline": "?branch={word}",
    "part": "?at=1",
    "sync/sessions": "?name={word}",
    "audit": "?q={word}",
    "audit.csv": "?q={word}",
    "peek": "?q={word}",
    "file": "?path=a.py",
    "commits": f"?project={SHOP.identity}",
    "memory": f"?project={SHOP.identity}",
}


@pytest.fixture(scope="module")
def two(postgres_18: Team, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Two]:
    with serve_team(postgres_18, tmp_path_factory.mktemp("objects")) as served:
        yield Two(served)


def addresses(asked: Asked, project: int, word: str) -> list[str]:
    """A route with the word of a project wherever it takes one; alone, and with a question."""
    path = re.sub(r"\{project_id(:int)?\}", str(project), asked.path)
    path = re.sub(r"\{\w+:int\}", "1", path).replace("{agent:str}", "claude")
    path = path.replace("{sha:str}", sha_of(word))
    path = re.sub(r"\{\w+(:\w+)?\}", word, path)
    last = path.rpartition("/")[2]
    query = QUERIES.get("sync/sessions" if path.endswith("sync/sessions") else last, "")
    query = query.format(word=word)
    return [path, path + query] if query else [path]


def foreign_words(caller: Caller) -> set[str]:
    if caller.role == "outsider":
        return {"herringword"}
    return set(WORDS) if caller.role in MANAGERS else {"walrusword"}


def without_names(text: str) -> str:
    """The audit log names sessions and commits by their ids, and nothing else of them."""
    return re.sub(r"(claude:|Commit |commit\.read,)(herring|walrus)word", "", text)


def test_nothing_that_anybody_is_told_has_a_word_of_another_project(two: Two) -> None:
    journal = two.served.app.guard.journal
    journal.output = io.StringIO()
    projects = dict(zip(WORDS, (two.here, two.there), strict=True))
    own: set[str] = set()

    def check(case: tuple[Asked, Caller, str]) -> None:
        asked, caller, word = case
        foreign = foreign_words(caller)
        cookie = two.served.cookie(caller.person)
        for path in addresses(asked, projects[word], word):
            for key, accept in ((caller.token, "application/json"), (cookie, "text/html")):
                answer = two.served.get(path, key, headers={"accept": accept})
                assert answer.status_code < 500, path
                told = without_names(answer.text + str(answer.headers))
                for given in (path, path.replace("?", "%3F").replace("=", "%3D")):
                    told = told.replace(given, "")
                said = {each for each in foreign if each in told}
                # who is refused may be told what they asked for, and nothing else
                assert not said or (said == {word} and answer.status_code == 200 and "?q=" in path)
                if said:
                    other = path.replace(word, "otterword")
                    plain = two.served.get(other, key, headers={"accept": accept})
                    echoed = without_names(plain.text).replace("otterword", word)
                    assert echoed.count(word) == without_names(answer.text).count(word)
                if word not in foreign and answer.status_code == 200 and word in told:
                    own.add(asked.path)

    cases = [
        (f"{asked.name} as {caller.name} of {word}", (asked, caller, word))
        for asked in routes(two.served)
        for caller in two.callers
        for word in WORDS
        if asked.method == "GET" and not asked.handler.opt.get("stream")
        if not asked.path.startswith(("/static", "/signin", "/join", "/api/schema"))
        if asked.need in OF_PROJECT or (word == "herringword" and caller.name in ROLES)
    ]
    check_each(cases, check)
    silent = {asked.path for asked in routes(two.served) if _tells_words(asked)} - own
    assert silent == set(), (
        "these must tell members their own words, or nothing here proves anything"
    )
    logged = journal.output.getvalue()
    assert logged.count("\n") > 1000
    told = logged + journal.text()
    assert [word for word in WORDS if word in told] == []


def _tells_words(asked: Asked) -> bool:
    """Whether a route's answer has words of the project that `fill` put there."""
    if asked.method != "GET" or asked.need not in ("read", "figures"):
        return False
    silent = ("/images/", "/objects/", "/stream", "/conversation", "/insights", "/recording")
    if any(part in asked.path for part in silent):
        return False
    # a redirect, and a block that is made of longer conversations
    return not asked.path.endswith(("{project_id:int}", "/api/v1/projects/{project_id:int}/memory"))


def test_questions_that_are_sent_tell_nothing_of_another_project(two: Two) -> None:
    """What is read by POST: stories by commit, what is missing, objects by their digest."""
    outsider = two.served.token(two.people["outsider"], ALL)
    member = two.served.token(two.people["member"], ALL)
    asked = {"commits": [sha_of("herringword")], "patches": ["herringword"], "sources": True}
    digest = "ab" * 32
    two.served.app.resources.blobs(two.here).put(b"herringword\n")
    [stored] = two.served.app.resources.blobs(two.here).digests()

    def told(project: int, token: str) -> str:
        base = f"/api/v1/projects/{project}"
        stories = two.served.ask("POST", f"{base}/sync/stories", token, json=asked)
        found = [two.served.get(f"{base}/objects/{name}", token) for name in (stored, digest)]
        source = {
            "machine": "m",
            "agent": "claude",
            "session_id": "s",
            "path": "p",
            "framing": "lines",
            "generation": 0,
            "segments": [{"start": 0, "end": 12, "digest": stored}],
        }
        plan = two.served.ask("POST", f"{base}/sync/plan", token, json={"sources": [source]})
        return "\n".join([stories.text, found[0].text, plan.text])

    assert "herringword" in told(two.here, member)
    elsewhere = told(two.there, outsider)
    assert "herringword" not in elsewhere
    assert stored in elsewhere.splitlines()[-1], "it is missing there, whoever else has it"


def test_a_question_without_its_project_has_the_same_rows(two: Two) -> None:
    """Each statement of each page and answer is run again, without the project in its conditions
    and without the project that the request was for. For somebody of one project nothing may come
    of that but what came before."""
    person = two.people["viewer"]
    token = two.served.token(person, ("read",))
    run = ScopedConnection.run
    compared: dict[str, int] = {}
    wrong: list[str] = []

    def watched(db: ScopedConnection, sql: str, values: Any = ()) -> Any:
        if not re.match(r"\s*(SELECT|WITH)\b", sql) or db.scope.writing or "set_config" in sql:
            return run(db, sql, values)
        if re.search(r"SELECT (append_audit|count_use|authenticate_token|tidy)", sql):
            return run(db, sql, values)
        kept = run(db, sql, values).fetchall()
        given = list(values)
        bare = sql
        while found := re.search(r"\b(\w+\.)?team_project ?= ?%s", bare):
            del given[bare[: found.start()].count("%s")]
            bare = bare[: found.start()] + "TRUE" + bare[found.end() :]
        if db.scope.person is not None:
            run(db, "SELECT set_config('whyfor.project', '', true)")
        stripped = run(db, bare, given).fetchall()
        project = "" if db.scope.project is None else str(db.scope.project)
        run(db, "SELECT set_config('whyfor.project', %s, true)", (project,))
        if sorted(map(str, kept)) != sorted(map(str, stripped)):
            wrong.append(sql)
        compared[sql] = compared.get(sql, 0) + bool(kept)
        return run(db, sql, values)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ScopedConnection, "run", watched)
        for asked in routes(two.served):
            if asked.method != "GET" or asked.need != "read" or asked.handler.opt.get("stream"):
                continue
            for path in addresses(asked, two.here, "herringword"):
                answer = two.served.get(path, token, headers=HTML)
                assert answer.status_code < 500, (path, answer.text[:200])
    assert wrong == []
    assert len(compared) > 100, len(compared)
    assert sum(1 for count in compared.values() if count) > 50

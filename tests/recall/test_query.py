"""What people type, understood."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whyfor.model.errors import BadInput
from whyfor.model.query import Atom, Query
from whyfor.recall.query import parse_query, phrase


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("retry backoff", Query(((Atom("retry"),), (Atom("backoff"),)))),
        (
            '"connection reset" now',
            Query(((Atom("connection reset", quoted=True),), (Atom("now"),))),
        ),
        ("retr*", Query(((Atom("retr", prefix=True),),))),
        ("cache OR redis fast", Query(((Atom("cache"), Atom("redis")), (Atom("fast"),)))),
        ("cache -redis", Query(((Atom("cache"),),), (Atom("redis"),))),
        ('cache -"cold start"', Query(((Atom("cache"),),), (Atom("cold start", quoted=True),))),
        ("file:src/app.py", Query(files=("src/app.py",))),
        ("tool:Bash push", Query(((Atom("push"),),), tools=("Bash",))),
        (
            "fix(cli): add --trust flag",
            Query(((Atom("fix(cli):"),), (Atom("add"),), (Atom("-trust"),), (Atom("flag"),))),
        ),
        ("a & b", Query(((Atom("a"),), (Atom("b"),)))),
        ("src/app.py parse_when()", Query(((Atom("src/app.py"),), (Atom("parse_when()"),)))),
    ],
)
def test_a_query_is_understood(text: str, query: Query) -> None:
    assert parse_query(text) == query


@pytest.mark.parametrize(
    "text", ["", "   ", "!!!", '"', 'a "b', "-a", "OR a", "a OR", "a OR OR b", '""']
)
def test_a_query_without_sense_is_refused(text: str) -> None:
    with pytest.raises(BadInput):
        parse_query(text)


def test_a_longer_plain_query_is_also_a_phrase() -> None:
    assert phrase(parse_query("make the cache faster")) == Atom(
        "make the cache faster", quoted=True
    )
    assert phrase(parse_query("cache faster")) is None
    assert phrase(parse_query("make OR break the cache")) is None


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.text(max_size=60))
def test_no_text_makes_the_parser_fail_otherwise(text: str) -> None:
    try:
        found = parse_query(text)
    except BadInput:
        return
    assert found.clauses or found.files or found.tools

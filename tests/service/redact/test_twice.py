"""Redacting twice is redacting once, and what is not in a span is left alone: on texts made to
break it."""

from __future__ import annotations

import io
import json
import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from whyfor.privacy import rules
from whyfor.privacy.engine import Engine
from whyfor.privacy.records import intact
from whyfor.privacy.samples import expand
from whyfor.privacy.stream import Text
from whyfor.privacy.structure_redactor import StructureRedactor

LABEL = re.compile(rb"\[REDACTED:[a-z0-9-]+(?:#\d+)?\]|~")
ENGINE = Engine(rules.load_rules(personal=True))
SECRETS = [
    expand(t)
    for t in ("ghp_{A36}", "{A32}", "{p14}", "{h40}", "{uuid}", "{jwt}", "{A12}", "{a20}", "{b64}=")
]
NAMES = [
    "password",
    "API_KEY",
    "token",
    "x-api-key",
    "Authorization",
    "DB_PASS",
    "secret",
    "aws_secret_access_key",
    "key",
]
BETWEEN = [
    "=",
    ": ",
    ' = "',
    "': '",
    '\\": \\"',
    " => ",
    "\n",
    "\r\n",
    "\t",
    " is ",
    "&",
    "%3D",
    ":",
    "://u:",
    "@host",
    '"',
    "'",
]
NOISE = [
    *(
        "\x1b[31m",
        "\x1b[0m",
        "\\u001b[1m",
        "[REDACTED:token#1]",
        "[REDACTED:password]",
        "[REDACTED:",
        "#2]",
    ),
    *(
        "<private>",
        "</private>",
        "-----BEGIN RSA PRIVATE KEY-----\n",
        "\n-----END RSA PRIVATE KEY-----",
        "Bearer ",
    ),
    *(
        "curl -u ",
        "\\n",
        "\\",
        "{",
        "}",
        "[",
        "]",
        ",",
        "\x00",
        "\udcff",
        "é",
        "ada@mail.test.org",
        "+",
        "-",
        "12→",
    ),
    *("<", ">", "export ", "echo ", " ", "/home/ada/x"),
]
WORDS = st.sampled_from([*SECRETS, *NAMES, *BETWEEN, *NOISE])
TEXTS = st.lists(WORDS, max_size=24).map("".join)
MANY = settings(
    max_examples=400,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)


def read(data: bytes) -> Text:
    text = Text(ENGINE, io.BytesIO(data), 0, len(data))
    text.read()
    return text


def left(text: Text) -> bytes:
    return b"".join(clean for _, clean in text.redacted())


@MANY
@given(TEXTS)
def test_a_text_redacted_twice_is_a_text_redacted_once(words: str) -> None:
    data = words.encode("utf-8", "surrogateescape")
    once = left(read(data))
    assert left(read(once)) == once


LONG = [expand("{A40}" + " " * n).strip() for n in range(6)]
HARD = {
    "many after one name": "the token is " + " ".join(LONG),
    "the next comes into sight": f"password {LONG[0]} {'word ' * 14} {LONG[1]} {LONG[2]}",
    "records beside text": f'{{"token": 544657872402763, "x": "{LONG[0]}="}}\nuse {expand("dop_v1_{h64}")} pwd\n',
    "far below in a table": "id,token,note\n"
    + "".join(f"{n},{one},{'w ' * 900}\n" for n, one in enumerate(LONG)),
    "escapes far apart": f"%20{'w ' * 1500}%20 API_KEY%3D{LONG[0]}{'w ' * 1500}%20token%3D{LONG[1]}",
}


@pytest.mark.parametrize("text", HARD.values(), ids=HARD)
def test_what_replacing_brings_into_sight_goes_the_first_time(text: str) -> None:
    once = left(read(text.encode()))
    assert once != text.encode()
    assert left(read(once)) == once


def test_a_structure_redacted_twice_is_the_same_structure() -> None:
    odd = f'key "{LONG[0]}" and \\ {LONG[1]}'
    given = {
        "client_secret": odd,
        "the token \udcff": "x",
        "id": f"ghp_{LONG[3][:36]} token={LONG[4]}",
        "n": [odd],
    }
    once = StructureRedactor(ENGINE).anything(given)
    assert StructureRedactor(ENGINE).anything(once) == once
    assert not any(secret in str(once) for secret in (*LONG[:2], LONG[3][:36]))


@MANY
@given(
    st.lists(
        st.dictionaries(TEXTS, TEXTS | st.lists(TEXTS, max_size=3), max_size=3),
        min_size=1,
        max_size=4,
    ),
    st.booleans(),
)
def test_records_redacted_twice_are_the_same_records(
    bodies: list[dict[str, object]], plain: bool
) -> None:
    lines = [
        json.dumps(body, ensure_ascii=not plain).encode("utf-8", "surrogateescape")
        for body in bodies
    ]
    data = b"\n".join(lines)
    once = left(read(data))
    after = once.split(b"\n")
    assert len(after) == len(lines)
    assert all(intact(before, now) for before, now in zip(lines, after, strict=True))
    assert left(read(once)) == once


@MANY
@given(TEXTS)
def test_what_is_missing_is_what_was_found(words: str) -> None:
    data = words.encode("utf-8", "surrogateescape")
    text = read(data)
    clean, at, done = left(text), 0, 0
    for item in text.found:
        assert done <= item.start < item.end <= len(data)
        kept = data[done : item.start]
        label = LABEL.match(clean, at + len(kept))
        assert clean.startswith(kept, at) and label
        at, done = label.end(), item.end
    assert clean[at:] == data[done:]


@pytest.mark.parametrize("secret", SECRETS)
def test_no_copy_of_a_value_stays(secret: str) -> None:
    data = f"first {secret} then\nAPI_TOKEN='{secret}'\nlast: {secret}.".encode()
    text = read(data)
    assert text.found, "the name gives it away"
    if len(secret) >= 12 and not all(c in "0123456789abcdef-" for c in secret):
        assert secret.encode() not in left(text)

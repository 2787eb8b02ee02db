"""Secrets that hide in how they are written down: beside their name, in a table, over several
records or strings."""

from __future__ import annotations

import io
import json
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Result
from whyfor.privacy import rules
from whyfor.privacy.engine import Engine
from whyfor.privacy.redactor import Redactor
from whyfor.privacy.samples import expand
from whyfor.privacy.spread import SpreadKey
from whyfor.privacy.stream import Text
from whyfor.privacy.structure_redactor import StructureRedactor

Cli = Callable[..., Result]
ENGINE = Engine(rules.load_rules())
VALUE = "kX9mQ2vLp8RtZ4wYb7NcJ5sD"
KEY_ID, SECRET = "AKIAY3KDLQPWMZ7XN2VB", "wJ4lrXUtnF9MI/K7MDnG/bPxRfiCYqzTvL8sEKq2"
GITHUB = expand("ghp_{A36}")


def redacted(text: str) -> str:
    """As a file is redacted; doing it twice changes nothing."""
    once = _text(text.encode())
    assert _text(once) == once
    return once.decode()


def _text(data: bytes) -> bytes:
    text = Text(ENGINE, io.BytesIO(data), 0, len(data))
    text.read()
    clean = b"".join(part for _, part in text.redacted())
    if text.document:
        text.check_document(clean)
    return clean


# -- a name and its value, side by side ----------------------------------------------------------

PAIRS: list[Any] = [
    {"name": "API_KEY", "value": VALUE},
    {"value": VALUE, "name": "API_KEY"},
    {"key": "API_KEY", "value": VALUE, "enabled": True},  # Postman
    {"key": "token", "value": VALUE, "type": "string"},
    {"name": "DB_PASSWORD", "type": "text", "value": VALUE},
    {"variable": "STRIPE_SECRET", "val": VALUE},
    {"id": "API_TOKEN", "secret": VALUE},
    {"Name": "API_KEY", "Value": VALUE},
    {"ParameterKey": "DbPassword", "ParameterValue": VALUE},
    {"value": VALUE, "type": "secret", "description": "for the shop", "name": "API_KEY"},
    {"env": [{"name": "A", "value": "b"}, {"name": "API_TOKEN", "value": VALUE}]},  # Kubernetes
    {"Config": {"Env": ["PATH=/usr/bin", f"API_KEY={VALUE}"]}},  # docker inspect
]


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: json.dumps(pair)[:40])
def test_a_value_beside_its_name_goes_however_it_is_written(pair: Any) -> None:
    for text in (
        json.dumps(pair),
        json.dumps(pair, separators=(",", ":")),
        json.dumps(pair, indent=2),
        json.dumps({"content": json.dumps(pair)}),
        json.dumps({"content": json.dumps(pair, indent=2)}),
        json.dumps({"content": json.dumps({"stdout": json.dumps(pair)})}),
    ):
        assert VALUE not in redacted(text), text
    assert VALUE not in json.dumps(StructureRedactor(ENGINE).anything(pair))


@pytest.mark.parametrize(
    "text",
    [
        "- name: API_KEY\n  value: {}\n",
        '- name: API_KEY\n  value: "{}"\n',
        "- value: {}\n  name: API_KEY\n",
        "env:\n- name: A\n  value: b\n- name: API_TOKEN\n  value: {}\n",
    ],
)
def test_so_does_it_in_yaml(text: str) -> None:
    whole = text.format(VALUE)
    assert VALUE not in redacted(whole)
    assert VALUE not in redacted(json.dumps({"content": whole}))


@pytest.mark.parametrize(
    "pair",
    [
        {"name": "API_KEY", "value": "${API_KEY}"},
        {"name": "API_KEY", "valueFrom": {"secretKeyRef": {"name": "shop", "key": "api-key"}}},
        {"key": "password", "value": "Mot de passe oublié"},
        {"name": "token_count", "value": "kX9mQ2vLp8RtZ4wYb7NcJ5sD"},
        {"name": "LOG_LEVEL", "value": "debug"},
        {"id": "password-reset", "value": "/account/password/reset"},
        {"name": "public_key", "value": "kX9mQ2vLp8RtZ4wYb7NcJ5sD"},
    ],
    ids=lambda pair: json.dumps(pair)[:40],
)
def test_what_is_no_secret_beside_a_name_stays(pair: Any) -> None:
    for text in (json.dumps(pair), json.dumps({"content": json.dumps(pair)})):
        assert redacted(text) == text


# -- tables --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "head", ["", "Access key ID,Secret access key\n", "\ufeffAccess key ID,Secret access key\r\n"]
)
@pytest.mark.parametrize(
    "row",
    [
        "{},{}\n",
        '"{}","{}"\n',
        "{}, {}\r\n",
        "bob,,{},{},https://x\n",
        "{}\t{}\n",
        "{};{}\n",
        "{}:{}\n",
    ],
)
def test_the_secret_of_an_aws_key_goes_with_its_id(head: str, row: str) -> None:
    text = head + row.format(KEY_ID, SECRET)
    for given in (
        text,
        json.dumps({"content": text}),
        json.dumps({"content": json.dumps({"stdout": text})}),
    ):
        left = redacted(given)
        assert SECRET not in left
        assert KEY_ID not in left


def test_the_other_order_goes_too_and_a_commit_beside_an_id_stays() -> None:
    assert SECRET not in redacted(f"{SECRET},{KEY_ID}\n")
    sha = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
    assert sha in redacted(f"{KEY_ID},{sha}\n")


# -- a private key over several records ----------------------------------------------------------

BEGIN, END = "-----BEGIN RSA PRIVATE KEY-----", "-----END RSA PRIVATE KEY-----"


def body(seed: int) -> list[str]:
    dice = random.Random(seed)
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    return ["".join(dice.choices(letters, k=64)) for _ in range(6)] + [
        "".join(dice.choices(letters, k=22)) + "=="
    ]


def record(text: str, number: int) -> str:
    ids = {
        "uuid": f"00000000-0000-4000-8000-{number:012}",
        "requestId": f"req_011CSHoEeqs5C35K2UUqR7F{number % 10}",
    }
    block = {
        "type": "tool_result",
        "tool_use_id": f"toolu_01A09q90qw90lq91778{number}",
        "content": text,
    }
    return json.dumps({**ids, "type": "user", "message": {"content": [block]}}) + "\n"


SHAPES: dict[str, Callable[[list[str]], str]] = {
    "one line a record": lambda lines: "".join(record(line, n) for n, line in enumerate(lines)),
    "with line ends": lambda lines: "".join(record(line + "\n", n) for n, line in enumerate(lines)),
    "numbered": lambda lines: "".join(record(f"{n:6}→{line}", n) for n, line in enumerate(lines)),
    "numbered with tabs": lambda lines: "".join(
        record(f"{n:6}\t{line}\n", n) for n, line in enumerate(lines)
    ),
    "two at a time": lambda lines: "".join(
        record("\n".join(lines[n : n + 2]), n) for n in range(0, len(lines), 2)
    ),
    "others between": lambda lines: "".join(
        record(line, n) + record("more", n) for n, line in enumerate(lines)
    ),
    "strings of one record": lambda lines: json.dumps({"type": "user", "content": lines}) + "\n",
    "strings without an end": lambda lines: (
        json.dumps({"type": "user", "content": lines[:-1]}) + "\n"
    ),
    "no end yet": lambda lines: "".join(record(line, n) for n, line in enumerate(lines[:-1])),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_a_private_key_over_several_records_goes_line_by_line(shape: str) -> None:
    lines = body(1)
    before, after = record("hello", 98), record("the digest is " + "Zq8" * 9 + "Zx", 99)
    given = before + SHAPES[shape]([BEGIN, *lines, END]) + after
    left = redacted(given)
    assert not [line for line in lines if line in left]
    assert left.startswith(before)
    assert left.endswith(after)
    for old, new in zip(
        map(json.loads, given.splitlines()), map(json.loads, left.splitlines()), strict=True
    ):
        assert (new.get("uuid"), new.get("requestId")) == (old.get("uuid"), old.get("requestId"))


def test_a_key_goes_too_where_it_lies_across_the_stretches_a_file_is_read_in(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("whyfor.privacy.passages.BLOCK", 700)
    lines = body(2)
    left = redacted(SHAPES["one line a record"]([BEGIN, *lines, END]))
    assert not [line for line in lines if line in left]


def test_without_a_beginning_lines_like_these_stay() -> None:
    lines = body(3)
    for others in (["hello"], [END], ["-----BEGIN CERTIFICATE-----"], [BEGIN, END]):
        given = SHAPES["one line a record"]([*others, *lines])
        assert redacted(given) == given


def test_hashes_and_prose_after_a_beginning_stay() -> None:
    words = [
        "a" * 40,
        "0123456789abcdef" * 4,
        "internationalization of everything",
        "src/whyfor/privacy/spread.py",
    ]
    given = SHAPES["one line a record"]([f"if {BEGIN!r} in text:", *words])
    assert redacted(given) == given


@pytest.mark.parametrize("cut", range(1, 9))
def test_a_transcript_that_grows_ends_as_if_it_were_read_at_once(
    cut: int, cli: Cli, tmp_path: Path
) -> None:
    records = [record(line, n) for n, line in enumerate(["hello", BEGIN, *body(4), END, "bye"])]
    source, grown, whole = (tmp_path / name for name in ("a.jsonl", "grown.jsonl", "whole.jsonl"))
    source.write_text("".join(records[:cut]))
    assert cli("redact", source, "--output", grown).code == 0
    source.write_text("".join(records))
    assert cli("redact", source, "--output", grown).code == 0
    assert cli("redact", source, "--output", whole, "--from-scratch").code == 0
    assert grown.read_text() == whole.read_text()
    assert not [line for line in body(4) if line in grown.read_text()]


def test_a_key_over_several_events_of_an_export_goes() -> None:
    lines = body(5)
    events = [{"kind": "tool.result", "text": line} for line in [BEGIN, *lines, END]]
    left = json.dumps(StructureRedactor(ENGINE).anything(events))
    assert not [line for line in lines if line in left]


# -- a key over two strings of one message -------------------------------------------------------


def blocks(*texts: str, **more: str) -> str:
    content = [{"type": "text", "text": text, **more} for text in texts]
    return json.dumps({"type": "user", "message": {"role": "user", "content": content}})


def split_shapes(one: str, other: str) -> list[str]:
    return [
        blocks(one, other),
        blocks(one, other).replace(", ", ",").replace(": ", ":"),
        json.dumps({"content": [{"text": one, "type": "text"}, {"text": other, "type": "text"}]}),
        json.dumps(
            {
                "content": [
                    {"type": "input_text", "text": one},
                    {"type": "input_text", "text": other},
                ]
            }
        ),
        json.dumps({"parts": [{"text": one}, {"text": other}]}),
        json.dumps({"content": [one, other]}),
        json.dumps({"content": ["first", one, other, "last"]}),
    ]


@pytest.mark.parametrize("at", [4, 8, 20, 30, 38])
@pytest.mark.parametrize("number", range(7))
def test_a_key_split_over_two_strings_goes_in_both(number: int, at: int) -> None:
    one, other = f"use this {GITHUB[:at]}", f"{GITHUB[at:]} please"
    given = split_shapes(one, other)[number]
    left = redacted(given)
    assert GITHUB[at:] not in left
    assert at < 8 or GITHUB[:at] not in left
    words = json.dumps(json.loads(left))
    assert "use this [REDACTED:" in words
    assert "] please" in words
    clean = Redactor(ENGINE).jsonl(given.encode() + b"\n")
    assert GITHUB[at:].encode() not in clean


def test_three_strings_are_no_help() -> None:
    left = redacted(blocks(f"a {GITHUB[:10]}", GITHUB[10:25], f"{GITHUB[25:]} b"))
    assert not [part for part in (GITHUB[:10], GITHUB[10:25], GITHUB[25:]) if part in left]


def test_a_structure_loses_both_parts_too() -> None:
    content = [
        {"type": "text", "text": f"a {GITHUB[:20]}"},
        {"type": "text", "text": f"{GITHUB[20:]} b"},
    ]
    left = json.dumps(StructureRedactor(ENGINE).anything(content))
    assert GITHUB[:20] not in left
    assert GITHUB[20:] not in left


@pytest.mark.parametrize(
    "given",
    [
        blocks("my github token is", "below, in the next message"),
        blocks("see ghp_", "and then the rest of the sentence follows here without an end"),
        json.dumps({"ghp_a": "b", "c": "d"}),
        json.dumps({"content": ["alpha", "beta", "gamma"]}),
        blocks("heroku api key", "12345678-1234-1234-1234-1234567890ab is the id of the run"),
    ],
)
def test_two_strings_that_make_no_key_stay(given: str) -> None:
    assert redacted(given) == given


@pytest.mark.parametrize(
    "piece", ['","', '"},{"type":"text","text":"', '["', "-----BEGIN RSA PRIVATE KEY-----", "\\n"]
)
def test_looking_for_split_keys_costs_what_the_size_costs(piece: str) -> None:
    costs = []
    for size in (1, 4, 16):
        data = b'{"content":["' + (piece.encode() * (size * 8_000 // len(piece))) + b'"]}\n'
        taken = []
        for _ in range(3):
            begun = time.process_time()
            ENGINE.find_split(data)
            list(Redactor(ENGINE).spread(data, SpreadKey()))
            taken.append(time.process_time() - begun)
        costs.append(max(min(taken), 0.0005) / len(data))
    assert costs[2] < 4 * costs[0]

"""The structure promise: what is redacted is the same session, on every real transcript we have."""

from __future__ import annotations

import io
import json
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from whyfor.privacy import rules
from whyfor.privacy.engine import Engine
from whyfor.privacy.samples import expand
from whyfor.privacy.stream import Text
from whyfor.privacy.structure import IDENTITIES, SEALED

LABEL = re.compile(r"\[REDACTED:[a-z0-9-]+(?:#\d+)?\]")
ROOTS = 6  # tests the corpus is divided into


@pytest.fixture(scope="module")
def engine() -> Engine:
    return Engine(rules.load_rules())


def redacted(engine: Engine, data: bytes) -> bytes:
    text = Text(engine, io.BytesIO(data), 0, len(data))
    text.read()
    return b"".join(clean for _, clean in text.redacted())


def files(corpus: Path, share: int) -> list[Path]:
    found = sorted(
        path for path in corpus.rglob("*") if path.suffix in (".jsonl", ".json") and path.is_file()
    )
    assert len(found) > 300
    return found[share::ROOTS]


def parsed(line: bytes) -> Any:
    try:
        return msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def leaves(value: Any, key: str = "") -> Iterator[tuple[str, Any]]:
    """Every value that is no list and no object, with the key above it; keys of objects as
    values of nothing."""
    if isinstance(value, dict):
        for name, item in value.items():
            yield "", name
            yield from leaves(item, name)
    elif isinstance(value, list):
        for item in value:
            yield from leaves(item, key)
    else:
        yield key, value


def shape(value: Any) -> Any:
    if isinstance(value, dict):
        return [shape(item) for item in value.values()]
    return [shape(item) for item in value] if isinstance(value, list) else type(value)


def documents(path: Path, data: bytes) -> list[bytes]:
    return [data] if path.suffix == ".json" else data.split(b"\n")


@pytest.mark.parametrize("share", range(ROOTS))
def test_every_real_transcript_is_the_same_session_after(
    corpus: Path, engine: Engine, share: int
) -> None:
    for path in files(corpus, share):
        before = path.read_bytes()
        after = redacted(engine, before)
        if after == before:
            continue
        old, new = documents(path, before), documents(path, after)
        assert len(old) == len(new)
        for one, other in zip(old, new, strict=True):
            if one == other:
                continue
            first, second = parsed(one), parsed(other)
            assert shape(first) == shape(second), path
            for (key, a), (_, b) in zip(leaves(first), leaves(second), strict=True):
                if key.lower() in IDENTITIES or key.lower() in SEALED or not isinstance(a, str):
                    assert a == b, (path, key)
                elif a != b:
                    kept = LABEL.split(b)
                    assert len(kept) > 1 and a.startswith(kept[0]) and a.endswith(kept[-1])
        assert redacted(engine, after) == after


TEMPLATES = (
    ("ghp_{A36}", "{}"),
    ("{A32}", "export API_TOKEN={}"),
    ("{A24}", "the password is {}"),
    ("{a40}", '{{"client_secret": "{}"}}'),
    ("{A16}", "postgres://app:{}@db.internal:5432/app"),
    ("{A20}", "DB_PASSWORD='{}'"),
    ("{jwt}", "Authorization: Bearer {}"),
)


def planted(record: Any, chance: random.Random, number: int) -> tuple[Any, str] | None:
    """The record with a secret in one of its strings, between words."""
    places = [
        (key, value)
        for key, value in leaves(record)
        if isinstance(value, str)
        and key
        and " " in value
        and key.lower() not in IDENTITIES | SEALED
    ]
    if not places or any(LABEL.search(value) for _, value in places):
        return None
    key, value = chance.choice(places)
    template, carrier = TEMPLATES[number % len(TEMPLATES)]
    secret = (
        expand(template.replace("{", "{", 1))
        if number < 7
        else expand(f"{template}" + " " * number).strip()
    )
    words = value.split(" ")
    words.insert(chance.randrange(len(words) + 1), f"\n{carrier.format(secret)}\n")
    return put(record, key, value, " ".join(words)), secret


def put(value: Any, key: str, old: str, new: str, above: str = "") -> Any:
    if isinstance(value, dict):
        return {name: put(item, key, old, new, name) for name, item in value.items()}
    if isinstance(value, list):
        return [put(item, key, old, new, above) for item in value]
    return new if value == old and above == key else value


@pytest.mark.parametrize("share", range(ROOTS))
def test_secrets_planted_in_real_records_go_and_nothing_else_does(
    corpus: Path, engine: Engine, share: int
) -> None:
    chance = random.Random(f"planted {share}")
    count = 0
    for path in files(corpus, share)[::3]:
        lines = path.read_bytes().split(b"\n")
        whole = b"\n".join(lines)
        if path.suffix != ".jsonl" or len(whole) > 1_500_000 or redacted(engine, whole) != whole:
            continue
        records = {
            n: record for n, line in enumerate(lines) if isinstance(record := parsed(line), dict)
        }
        secrets = {}
        for number in chance.sample(sorted(records), min(5, len(records))):
            if (made := planted(records[number], chance, count)) is None:
                continue
            records[number], secrets[number] = made
            lines[number] = json.dumps(
                made[0], ensure_ascii=chance.random() < 0.5, separators=(",", ":")
            ).encode()
            count += 1
        after = redacted(engine, b"\n".join(lines)).split(b"\n")
        assert len(after) == len(lines)
        assert not [
            secret for secret in secrets.values() if secret.encode() in b"\n".join(after)
        ], path
        for number, line in enumerate(after):
            if number not in secrets:
                assert line == lines[number], path
                continue
            hidden = [
                (k, v.replace(secrets[number], "|") if isinstance(v, str) else v)
                for k, v in leaves(records[number])
            ]
            shown = [
                (k, LABEL.sub("|", v) if isinstance(v, str) else v) for k, v in leaves(parsed(line))
            ]
            assert hidden == shown, path
    assert count > 30

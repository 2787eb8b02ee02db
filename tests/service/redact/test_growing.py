"""A transcript redacted again after it grew: only what is new is read, and the result is as if
all had been."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

import pytest

from tests.conftest import Result
from tests.transcripts import Transcript
from whyfor.privacy import incremental as growing
from whyfor.privacy import stream as passes
from whyfor.privacy.passages import Passage, passages
from whyfor.privacy.samples import expand

Cli = Callable[..., Result]
TOKENS = [expand("ghp_{A36}" + " " * n).strip() for n in range(6)]
SECRET = expand("{A32}")


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return tmp_path / "session.jsonl"


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out.jsonl"


class Read:
    """How many bytes were looked at, by which range of the file."""

    def __init__(self) -> None:
        self.ranges: list[tuple[int, int]] = []

    def __call__(self, file: BinaryIO, start: int, stop: int) -> Iterator[Passage]:
        self.ranges.append((start, stop))
        return passages(file, start, stop)

    @property
    def bytes(self) -> int:
        return sum(stop - start for start, stop in self.ranges)


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> Read:
    counted = Read()
    monkeypatch.setattr(passes, "passages", counted)
    return counted


def append(path: Path, *texts: str) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.writelines(json.dumps({"type": "user", "text": text}) + "\n" for text in texts)


def same_as_from_scratch(cli: Cli, source: Path, out: Path) -> bool:
    fresh = out.with_name("fresh.jsonl")
    assert cli("redact", source, "--output", fresh, "--from-scratch").code == 0
    return fresh.read_bytes() == out.read_bytes()


def test_only_new_lines_are_read_whatever_was_before(
    cli: Cli, source: Path, out: Path, read: Read
) -> None:
    costs = []
    for size in (10, 10_000):
        source.unlink(missing_ok=True)
        append(source, f"use {TOKENS[0]}", *(f"line {n}" for n in range(size)))
        assert cli("redact", source, "--output", out).code == 0
        read.ranges.clear()
        append(source, f"again {TOKENS[0]}")
        before = source.stat().st_size
        result = cli("redact", source, "--output", out)
        where = f"Written to {out}, from byte {read.ranges[0][0]:,} on\n"
        assert result.err == f"1 secret redacted: 1 github-token\n{where}"
        assert {stop for _, stop in read.ranges} == {before}
        costs.append(read.bytes)
        assert out.read_text().count("[REDACTED:github-token#1]") == 2
        assert same_as_from_scratch(cli, source, out)
    assert costs[0] == costs[1] < 600


def test_numbers_go_on_and_known_values_stay_known(
    cli: Cli, source: Path, out: Path, read: Read
) -> None:
    append(source, f"{TOKENS[1]} {TOKENS[0]}", f"API_TOKEN={SECRET}")
    cli("redact", source, "--output", out)
    inode = out.stat().st_ino
    append(source, f"{TOKENS[2]}, {TOKENS[0]}", f"only {SECRET}")
    cli("redact", source, "--output", out)
    lines = [json.loads(line)["text"] for line in out.read_text().splitlines()]
    assert lines[2:] == [
        "[REDACTED:github-token#3], [REDACTED:github-token#2]",
        "only [REDACTED:token#1]",
    ]
    assert out.stat().st_ino == inode
    assert same_as_from_scratch(cli, source, out)


def test_a_value_named_only_later_is_taken_out_of_what_was_before(
    cli: Cli, source: Path, out: Path, read: Read
) -> None:
    append(source, f"look at {SECRET}", "and more")
    cli("redact", source, "--output", out)
    assert SECRET in out.read_text()
    append(source, f"API_TOKEN={SECRET}")
    cli("redact", source, "--output", out)
    assert SECRET not in out.read_text()
    assert out.read_text().count("[REDACTED:token#1]") == 2
    assert same_as_from_scratch(cli, source, out)


def test_an_unfinished_line_is_replaced_when_it_is_finished(
    cli: Cli, source: Path, out: Path, read: Read
) -> None:
    append(source, *(f"line {n}" for n in range(100)))
    whole = json.dumps({"text": f"pass {TOKENS[3]} on"}) + "\n"
    for cut in (20, 30, len(whole) - 1, len(whole)):
        kept = source.read_text()[: source.read_text().rfind("\n") + 1]
        source.write_text(kept + whole[:cut])
        assert cli("redact", source, "--output", out).code == 0
        assert same_as_from_scratch(cli, source, out)
    read.ranges.clear()
    cli("redact", source, "--output", out)
    assert read.bytes < 300


def test_what_is_remembered_holds_no_secret(
    cli: Cli, source: Path, out: Path, tmp_path: Path
) -> None:
    append(source, f"password = '{SECRET}'", *TOKENS)
    cli("redact", source, "--output", out)
    folder = tmp_path / "whyfor" / "redacted"
    (kept,) = folder.iterdir()
    assert (folder.stat().st_mode & 0o777, kept.stat().st_mode & 0o777) == (0o700, 0o600)
    text = kept.read_text()
    assert not any(secret in text for secret in (SECRET, *TOKENS))
    data = source.read_bytes()
    assert [data[start:end].decode() for _, start, end in json.loads(text)["values"]] == [
        SECRET,
        *dict.fromkeys(TOKENS),
    ]


def test_whatever_is_not_as_it_was_left_is_redone(
    cli: Cli, source: Path, out: Path, tmp_path: Path, read: Read
) -> None:
    def start() -> None:
        source.unlink(missing_ok=True)
        append(source, *(f"line {n} {TOKENS[n % 3]}" for n in range(50)))
        assert cli("redact", source, "--output", out, "--from-scratch").code == 0
        read.ranges.clear()

    def torn() -> None:
        with out.open("ab") as file:
            file.write(b'{"half of')

    def edited() -> None:
        text = source.read_text().replace("line 0", "LINE 0")
        with source.open("r+") as file:
            file.write(text)

    def shorter() -> None:
        with source.open("r+b") as file:
            file.truncate(file.read().rfind(b'{"type"'))

    def replaced() -> None:
        text = source.read_text()
        source.with_name("new").write_text(text)
        source.with_name("new").rename(source)

    def other_rules() -> None:
        (tmp_path / "whyfor" / "config.toml").write_text("[redact]\nallow = ['nothing']\n")

    def changed() -> None:
        out.write_bytes(out.read_bytes()[:-3] + b"??\n")

    for harm in (
        torn,
        edited,
        shorter,
        replaced,
        other_rules,
        changed,
        out.unlink,
        lambda: out.write_text(""),
    ):
        start()
        harm()
        append(source, "new")
        assert cli("redact", source, "--output", out).code == 0
        assert read.ranges[0][0] == 0, harm
        assert same_as_from_scratch(cli, source, out)
    for path in (tmp_path / "whyfor" / "redacted").iterdir():
        path.write_text("{not json")
    append(source, "new")
    assert cli("redact", source, "--output", out).code == 0
    assert same_as_from_scratch(cli, source, out)


def test_personal_data_is_another_set_of_rules(
    cli: Cli, source: Path, out: Path, read: Read
) -> None:
    append(source, "write to ada.lovelace@mail.test.org soon")
    cli("redact", source, "--output", out)
    assert "ada.lovelace@" in out.read_text()
    cli("redact", source, "--output", out, "--personal")
    assert "ada.lovelace@" not in out.read_text()


def test_a_run_that_dies_while_it_appends_is_noticed(
    cli: Cli, source: Path, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    append(source, "first", "second")
    cli("redact", source, "--output", out)
    append(source, f"third {TOKENS[0]}")

    class Dead(BaseException):
        pass

    def dies(*_: object) -> None:
        raise Dead

    with monkeypatch.context() as patch:
        patch.setattr(growing, "save_progress", dies)
        with pytest.raises(Dead):
            cli("redact", source, "--output", out)
    assert out.read_text().count("\n") == 3
    append(source, "fourth")
    cli("redact", source, "--output", out)
    assert same_as_from_scratch(cli, source, out)


def test_an_append_that_fails_leaves_the_output_as_it_was(
    cli: Cli, source: Path, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    append(source, "first")
    with source.open("a") as file:
        file.write('{"torn":')
    cli("redact", source, "--output", out)
    before = out.read_bytes()
    with source.open("a") as file:
        file.write('1}\n{"more":"x"}\n')
    fsync = os.fsync

    def full(fd: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    result = cli("redact", source, "--output", out)
    assert (result.code, "No space left" in result.err) == (2, True)
    assert out.read_bytes() == before
    monkeypatch.setattr(os, "fsync", fsync)
    cli("redact", source, "--output", out)
    assert same_as_from_scratch(cli, source, out)


def test_text_that_is_no_transcript_is_always_redone(
    cli: Cli, source: Path, out: Path, tmp_path: Path
) -> None:
    source.write_text("the key:\n-----BEGIN RSA PRIVATE KEY-----\n")
    cli("redact", source, "--output", out)
    with source.open("a") as file:
        file.write(expand("{b64}\n{b64}\n-----END RSA PRIVATE KEY-----\n"))
    cli("redact", source, "--output", out)
    assert out.read_text() == "the key:\n[REDACTED:private-key#1]\n"
    assert list((tmp_path / "whyfor").glob("redacted/*")) == []


def test_any_way_of_growing_comes_to_the_same(
    cli: Cli, source: Path, out: Path, home: Path
) -> None:
    chance = random.Random(7)
    session = Transcript("grows")
    for number in range(40):
        secret = chance.choice(
            [
                TOKENS[number % 6],
                SECRET,
                f"password={expand('{A20}')}",
                "nothing",
                f"TOKEN={SECRET}",
            ]
        )
        session.prompt(f"number {number}: {secret}")
        session.call("Bash", {"command": f"echo {secret}"}, f"{secret}\n" * chance.randrange(3))
    data = session.text().encode()
    at = 0
    while at < len(data):
        at = min(len(data), at + chance.randrange(1, 3000))
        source.write_bytes(data[:at]) if not source.exists() else _extend(source, data[:at])
        assert cli("redact", source, "--output", out).code == 0
    assert same_as_from_scratch(cli, source, out)


def _extend(path: Path, data: bytes) -> None:
    with path.open("ab") as file:
        file.write(data[file.tell() :])


def test_the_digest_covers_the_rules_and_the_code_that_applies_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Or a new version of a rule would leave what an old one wrote."""
    folder = tmp_path / "privacy"
    (folder / "rules").mkdir(parents=True)
    (folder / "engine.py").write_text("one")
    (folder / "rules" / "formats.toml").write_text("one")
    monkeypatch.setattr(growing, "__file__", str(folder / "incremental.py"))
    before = growing.rules_digest()
    (folder / "rules" / "formats.toml").write_text("two")
    changed = growing.rules_digest()
    (folder / "engine.py").write_text("two")
    assert len({before, changed, growing.rules_digest()}) == 3

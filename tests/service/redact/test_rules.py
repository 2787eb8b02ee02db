"""A person's own rules, allow-lists and their trial by doctor."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Result
from whyfor.privacy import rule_check as trial
from whyfor.privacy.samples import expand

Cli = Callable[..., Result]
ACME = """
[[redact.rule]]
id = "acme-key"
title = "Key of our own service"
anchors = ["acme_"]
pattern = 'acme_[a-z0-9]{24}'
match = ["acme_{a24}", "key acme_{a24}, please"]
ignore = ["acme_short", "acme_aaaaaaaaaaaaaaaaaaaaaaaa"]
"""
KEY = expand("acme_{a24}")
TOKEN = expand("ghp_{A36}")


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str], None]:
    def write(text: str) -> None:
        path = tmp_path / "whyfor" / "config.toml"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)

    return write


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "notes.txt"
    path.write_text(f"use {KEY} and {TOKEN}\nmail ada.lovelace@mail.test.org\n")
    return path


def problems(cli: Cli) -> list[tuple[bool, str]]:
    found = cli("doctor", "--json").json["problems"]
    return [
        (problem["dropped"], problem["what"]) for problem in found if "[redact]" in problem["what"]
    ]


def test_a_rule_of_ones_own_is_used_like_the_others(
    cli: Cli, write: Callable[[str], None], text: Path
) -> None:
    assert KEY in cli("redact", text).out
    write(ACME)
    assert cli("redact", text).out.startswith(
        "use [REDACTED:acme-key#1] and [REDACTED:github-token#1]\n"
    )
    assert problems(cli) == []


def test_what_is_allowed_stays(cli: Cli, write: Callable[[str], None], text: Path) -> None:
    write(f"[redact]\nallow = ['^{TOKEN[:10]}']\n" + ACME)
    assert cli("redact", text).out.startswith(f"use [REDACTED:acme-key#1] and {TOKEN}\n")


def test_personal_data_stays_unless_it_is_asked_for(
    cli: Cli, write: Callable[[str], None], text: Path
) -> None:
    assert "ada.lovelace@mail.test.org" in cli("redact", text).out
    assert "ada.lovelace@mail.test.org" not in cli("redact", text, "--personal").out
    write("[redact]\npersonal = true\n")
    assert "ada.lovelace@mail.test.org" not in cli("redact", text).out


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (ACME.replace("{24}'", "{24'"), "not found"),
        (ACME.replace("acme_[a-z0-9]{24}'", "acme_(['"), "rule acme-key: its pattern is not right"),
        (
            ACME.replace('["acme_"]', '["ACME_"]'),
            "rule acme-key: anchors must be given, in small letters",
        ),
        (ACME.replace('["acme_"]', "[]"), "rule acme-key: anchors must be given, in small letters"),
        (ACME + "chek = 'varied'\n", "chek"),
        (ACME + "check = 'sure'\n", "no such check: sure"),
        (ACME.replace('"acme-key"', '"Acme Key"'), "an id is made of small letters"),
        (ACME.replace('"acme-key"', '"private"'), "an id is made of small letters"),
        (ACME.replace("redact.rule", "redact.rules"), "[redact] in config.toml is not right"),
        ("[redact]\nallow = ['(']\n", "allow: '(' is not a pattern"),
        ("[redact]\npersonal = 'yes'\n", "[redact] in config.toml is not right"),
    ],
)
def test_a_broken_rule_stops_what_leaves_and_nothing_else(
    cli: Cli, write: Callable[[str], None], text: Path, config: str, message: str
) -> None:
    write(config)
    assert any(message in what and dropped for dropped, what in problems(cli))
    assert cli("doctor").code == 1
    assert cli("ingest").code == 0
    if message != "not found":
        result = cli("redact", text)
        assert (result.code, result.out) == (2, "")
        assert message in result.err


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"acme_{a24}", ', '"acme_{a20}", ', "its sample 'acme_{a20}' is not found"),
        (
            "pattern = 'acme_[a-z0-9]{24}'",
            "edges = false\npattern = 'acme_[a-z0-9]{20}'",
            "is found, but not whole",
        ),
        ('"acme_short"', '"acme_{a24}"', "is found, and is no secret"),
        (
            '"key acme_{a24}, please"',
            '"{user} acme_{a9} {x1}"',
            "its sample '{user} acme_{a9} {x1}' is not found",
        ),
        ('match = ["acme_{a24}", "key acme_{a24}, please"]', "", "it has no sample in match"),
    ],
)
def test_samples_that_do_not_hold_are_named(
    cli: Cli, write: Callable[[str], None], old: str, new: str, message: str
) -> None:
    assert old in ACME
    write(ACME.replace(old, new))
    assert [dropped for dropped, what in problems(cli) if message in what]


def test_a_sample_that_is_allowed_is_not_found(cli: Cli, write: Callable[[str], None]) -> None:
    write("[redact]\nallow = ['^acme_']\n" + ACME)
    assert len(problems(cli)) == 2


def test_a_pattern_that_runs_away_is_warned_of(
    cli: Cli, write: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trial, "SECONDS", 2.0)
    write(ACME.replace("acme_[a-z0-9]{24}'", "acme_(?:[a-z]+)+!'"))
    ((dropped, what),) = problems(cli)
    assert "takes for ever on hostile text" in what
    assert not dropped

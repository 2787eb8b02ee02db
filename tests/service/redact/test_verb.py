"""whyfor redact, as it is run: files, pipes, odd bytes, and what comes out where."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from tests.conftest import Result
from tests.transcripts import Transcript
from whyfor.privacy import passages
from whyfor.privacy.samples import expand

Cli = Callable[..., Result]
TOKEN = expand("ghp_{A36}")
OTHER = expand("gho_{A36}")
KEY = expand("-----BEGIN RSA PRIVATE KEY-----\n{b64}\n{b64}\n{b32}\n-----END RSA PRIVATE KEY-----")
TEXT = f"see {TOKEN}\r\nünï token: {TOKEN} and {OTHER}\n\n{KEY}\nlast {TOKEN}"


def piped(data: bytes, *arguments: str, **options: object) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "whyfor", "redact", *arguments]
    return subprocess.run(
        command, input=data, capture_output=True, check=False, env=dict(os.environ)
    )


def redacted(data: bytes) -> bytes:
    done = piped(data)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_text_comes_out_without_its_secrets_and_otherwise_as_it_was(
    cli: Cli, tmp_path: Path
) -> None:
    path = tmp_path / "notes.txt"
    path.write_bytes(TEXT.encode())
    result = cli("redact", path)
    label, other = "[REDACTED:github-token#1]", "[REDACTED:github-token#2]"
    expected = (
        TEXT.replace(TOKEN, label).replace(OTHER, other).replace(KEY, "[REDACTED:private-key#1]")
    )
    assert result.code == 0
    assert path.read_bytes() == TEXT.encode()
    assert redacted(TEXT.encode()) == expected.encode()
    assert result.err == "3 secrets redacted in 5 places: 2 github-token, 1 private-key\n"
    assert redacted(expected.encode()) == expected.encode()


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\n",
        b"no newline at the end",
        b"\r\n\r\nmac\rand windows\r\n",
        bytes(range(256)) * 40,
        b"\xff\xfe\x00t\x00o\x00k\x00e\x00n",
        b"\x00" * 5000 + b'{"a":1}\n' + b"\x00" * 100,
        b'{"a":"torn',
        b'\xef\xbb\xbf{"a":"with a mark"}\n',
        b'{"a":1}{"b":2}\n[1,2]\nnull\n\n{"a":"\\ud800"}\n',
        "\u2028\u0085\x0b\x0c lines for some".encode(),
    ],
    ids=range(11),
)
def test_what_has_no_secret_passes_byte_for_byte(data: bytes) -> None:
    done = piped(data)
    assert (done.returncode, done.stdout, done.stderr) == (0, data, b"")


def test_odd_bytes_around_a_secret_stay(tmp_path: Path) -> None:
    secret = TOKEN.encode()
    for template in (
        b"\xff\xfe%s\xff",
        b"a\x00%s\x00b\n\xf0\x9f",
        b'\x00\x00{"a":"%s"}\n\xc3',
        b"%s",
        b"%s\r",
        b"\r\n%s\r\n",
    ):
        assert redacted(template % secret) == template % b"[REDACTED:github-token#1]"


def test_spans_are_characters_of_the_whole_text(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_bytes(b"\xff" + TEXT.encode() + b"\n\xc3")
    text = path.read_bytes().decode("utf-8", "surrogateescape")
    result = cli("redact", path, "--json")
    assert (result.code, result.err) == (0, "")
    found = result.json
    assert [text[span["start"] : span["end"]] for span in found["spans"]] == [
        TOKEN,
        TOKEN,
        OTHER,
        KEY,
        TOKEN,
    ]
    places = [(span["line"], span["column"], span["rule"]) for span in found["spans"]]
    token = "github-token"
    assert places == [
        (1, 6, token),
        (2, 12, token),
        (2, 57, token),
        (4, 1, "private-key"),
        (9, 6, token),
    ]
    assert found["counts"] == {"github-token": 4, "private-key": 1}
    assert found["values"] == {"github-token": 2, "private-key": 1}
    assert found["bytes"] == path.stat().st_size
    kept, done = "", 0
    for span in found["spans"]:
        kept, done = kept + text[done : span["start"]] + "|", span["end"]
    left = piped(path.read_bytes()).stdout.decode("utf-8", "surrogateescape")
    for label in (
        "[REDACTED:github-token#1]",
        "[REDACTED:github-token#2]",
        "[REDACTED:private-key#1]",
    ):
        left = left.replace(label, "|")
    assert kept + text[done:] == left


def test_a_table_goes_where_the_text_does_not(cli: Cli, tmp_path: Path) -> None:
    path, target = tmp_path / "notes.txt", tmp_path / "out.txt"
    path.write_bytes(TEXT.encode())
    beside = cli("redact", path, "--stats")
    assert "[REDACTED:github-token#1]" in beside.out
    assert [line.split() for line in beside.err.splitlines()] == [
        ["rule", "places", "values"],
        ["github-token", "4", "2"],
        ["private-key", "1", "1"],
        ["all", "5", "3"],
    ]
    alone = cli("redact", path, "--stats", "--output", target)
    assert (alone.out, alone.err) == (beside.err, f"Written to {target}\n")
    assert target.read_text().count("[REDACTED:") == 5
    assert target.stat().st_mode & 0o777 == 0o600


def test_records_keep_their_shape_and_copies_before_the_name_go_too(
    cli: Cli, tmp_path: Path
) -> None:
    value = expand("{A32}")
    session = Transcript("shape")
    session.prompt(f"use {value} please")
    session.call(
        "Bash",
        {"command": f"curl -H 'x: {value}'", "env": {value: 1}},
        f"API_TOKEN={value}\n<private>x</private>",
    )
    path = session.save(tmp_path)
    after = redacted(path.read_bytes()).decode()
    assert value not in after
    assert "<private>" not in after
    records = [json.loads(line) for line in after.splitlines()]
    for old, new in zip(session.lines, records, strict=True):
        assert {k: v for k, v in old.items() if k not in ("message", "toolUseResult")} == {
            k: v for k, v in new.items() if k not in ("message", "toolUseResult")
        }
    assert records[0]["message"]["content"] == "use [REDACTED:token#1] please"
    assert records[1]["message"]["content"][0]["input"]["env"] == {"[REDACTED:token#1]": 1}
    assert (
        records[2]["toolUseResult"]["stdout"] == "API_TOKEN=[REDACTED:token#1]\n[REDACTED:private]"
    )


def test_a_packed_transcript_is_read_like_any_other(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "rollout.jsonl.zst"
    path.write_bytes(
        zstandard.compress(json.dumps({"a": TOKEN}).encode() + b"\n")
        + zstandard.compress(b'{"b":1}\n')
    )
    assert cli("redact", path).out == '{"a": "[REDACTED:github-token#1]"}\n{"b":1}\n'
    path.write_bytes(path.read_bytes()[:20])
    short = cli("redact", path)
    assert (short.code, short.out) == (2, "")
    path.write_bytes(path.read_bytes()[:8] + b"\xff" * 30)
    damaged = cli("redact", path)
    assert (damaged.code, damaged.out, "damaged" in damaged.err) == (2, "", True)


def test_one_json_document_over_many_lines_stays_one(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    body = {
        "id": "x" * 30,
        "servers": [{"password": expand("{A24}"), "port": 1}],
        "key": KEY,
        "list": [TOKEN, None],
    }
    path.write_text(json.dumps(body, indent=2))
    after = cli("redact", path)
    assert after.code == 0, after.err
    made = json.loads(after.out)
    assert made["servers"] == [{"password": "[REDACTED:password#1]", "port": 1}]
    assert (made["key"], made["list"]) == (
        "[REDACTED:private-key#1]",
        ["[REDACTED:github-token#1]", None],
    )
    assert made["id"] == body["id"]


def test_secrets_over_several_lines_are_found_among_records(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "mixed.log"
    path.write_text(f'{{"a":1}}\n{KEY}\n{{"b":"{TOKEN}"}}\n{{"c":2}}\n{KEY}')
    key = "[REDACTED:private-key#1]"
    assert (
        cli("redact", path).out
        == f'{{"a":1}}\n{key}\n{{"b":"[REDACTED:github-token#1]"}}\n{{"c":2}}\n{key}'
    )


def test_private_text_goes_however_long_it_is(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(passages, "BLOCK", 2000)
    monkeypatch.setattr(passages, "AROUND", 1000)
    path = tmp_path / "notes.txt"
    inside = "\n".join(f"line {n} <private>{n}</private>" for n in range(500))
    path.write_text(
        f"before\n<PRIVATE>{inside}</private > after\n</private>{TOKEN}<private>to the end\n"
        + "x\n" * 3000
    )
    expected = (
        "before\n[REDACTED:private] after\n</private>[REDACTED:github-token#1][REDACTED:private]"
    )
    assert cli("redact", path).out == expected
    path.write_text(
        '{"a":"<private>one"}\n'
        + f'{{"b":"{TOKEN}"}}\n'
        + '{"c":"\\u003cprivate\\u003etwo\\u003c/private>"}\n'
    )
    assert cli("redact", path).out == (
        '{"a":"[REDACTED:private]"}\n{"b":"[REDACTED:github-token#1]"}\n{"c":"[REDACTED:private]"}\n'
    )


def test_where_a_text_is_cut_makes_no_difference(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Blocks of a few hundred bytes: keys, pairs and values lie across every cut sooner or
    later."""
    value = expand("{A40}")
    parts = [
        KEY,
        f"password:\n    {value}",
        f"ünï {TOKEN}",
        f'{{"a":"{TOKEN}","b":"{value}"}}',
        "x" * 700,
        TOKEN * 3,
        "",
    ]
    text = "\n".join(parts[(n * n + n // 7) % len(parts)] for n in range(200))
    path = tmp_path / "notes.txt"
    path.write_text(text)
    whole, spans = cli("redact", path).out, cli("redact", path, "--json").json
    assert spans["counts"]["private-key"] > 10
    for block in (256, 301, 1000):
        monkeypatch.setattr(passages, "BLOCK", block)
        monkeypatch.setattr(passages, "AROUND", 2048)
        assert cli("redact", path).out == whole
        assert cli("redact", path, "--json").json == spans


def test_a_line_of_any_length_is_read(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "long.jsonl"
    record = json.dumps({"text": "lorem ipsum " * 900_000 + TOKEN, "id": "1"})
    for line, end in (
        (record, "\n"),
        (record, ""),
        ("é" * 5_000_001 + TOKEN + " y" * 3_000_000, ""),
    ):
        path.write_text(line + end)
        result = cli("redact", path, "--output", tmp_path / "out")
        assert result.code == 0, result.err
        assert (tmp_path / "out").read_text() == line.replace(
            TOKEN, "[REDACTED:github-token#1]"
        ) + end


def test_errors_leave_nothing_behind(cli: Cli, tmp_path: Path) -> None:
    path, target = tmp_path / "notes.txt", tmp_path / "out.txt"
    target.write_text("as it was")
    for arguments in (
        [tmp_path / "none.txt"],
        [tmp_path],
        [path, "--output", tmp_path / "no" / "folder"],
    ):
        path.write_text(TOKEN)
        result = cli("redact", *arguments)
        assert (result.code, result.out) == (2, "")
        assert len(result.err.splitlines()) == 2
    config = tmp_path / "whyfor" / "config.toml"
    config.parent.mkdir(exist_ok=True)
    config.write_text("[[redact.rule]]\nid = 'x'\ntitle = 'x'\nanchors = ['x']\npattern = '('\n")
    broken = cli("redact", path, "--output", target)
    assert (broken.code, broken.out) == (2, "")
    assert "rule x: its pattern is not right" in broken.err
    assert target.read_text() == "as it was"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["home", "notes.txt", "out.txt", "whyfor"]


def test_a_file_is_redacted_in_its_own_place(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "notes.jsonl"
    path.write_text(f'{{"a":"{TOKEN}"}}\n')
    path.chmod(0o640)
    for _ in range(2):
        assert cli("redact", path, "--output", path).code == 0
        assert path.read_text() == '{"a":"[REDACTED:github-token#1]"}\n'
    assert path.stat().st_mode & 0o777 == 0o640


def test_a_pipe_and_a_device_are_written_to_and_not_replaced(cli: Cli, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = subprocess.Popen(["cat", str(pipe)], stdout=subprocess.PIPE)
    path = tmp_path / "notes.txt"
    path.write_text(TOKEN)
    assert cli("redact", path, "--output", pipe).code == 0
    assert reader.communicate(timeout=20)[0] == b"[REDACTED:github-token#1]"
    assert pipe.is_fifo()


def test_a_pipe_is_read_and_a_dash_is_stdin(tmp_path: Path) -> None:
    assert piped(TOKEN.encode(), "-").stdout == b"[REDACTED:github-token#1]"
    spans = json.loads(piped(f"a {TOKEN}".encode(), "--json").stdout)["spans"]
    assert spans == [{"rule": "github-token", "start": 2, "end": 42, "line": 1, "column": 3}]
    with (tmp_path / "given").open("w+b") as file:
        file.write(f"skip\n{TOKEN}".encode())
        file.flush()
        file.seek(5)
        command = [sys.executable, "-m", "whyfor", "redact"]
        done = subprocess.run(command, stdin=file, capture_output=True, check=True)
    assert done.stdout == b"[REDACTED:github-token#1]"


def test_a_key_in_a_list_of_lines_goes_line_by_line(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "lines.jsonl"
    path.write_text(json.dumps({"id": "7", "lines": ["before", *KEY.splitlines(), "after"]}) + "\n")
    result = cli("redact", path)
    assert result.code == 0, result.err
    made = json.loads(result.out)
    assert (made["id"], len(made["lines"])) == ("7", len(KEY.splitlines()) + 2)
    assert (made["lines"][0], made["lines"][-1]) == ("before", "after")
    assert not [line for line in KEY.splitlines()[1:-1] if line in result.out]
    path.write_text(json.dumps(made | {"lines": KEY.splitlines()}, indent=1))
    pretty = cli("redact", path)
    assert pretty.code == 0, pretty.err
    assert len(json.loads(pretty.out)["lines"]) == len(KEY.splitlines())
    assert not [line for line in KEY.splitlines()[1:-1] if line in pretty.out]


def test_a_number_that_is_a_secret_becomes_a_string(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "numbers.jsonl"
    path.write_text('{"apiKey": 8374928374928312, "n": 1}\n{"a": "apiKey: 8374928374928312, n"}\n')
    label = "[REDACTED:api-key#1]"
    assert (
        cli("redact", path).out
        == f'{{"apiKey": "{label}", "n": 1}}\n{{"a": "apiKey: {label}, n"}}\n'
    )
    path.write_text(json.dumps({"apiKey": 8374928374928312, "b": ["<private>x"], "c": 2}, indent=1))
    assert json.loads(cli("redact", path).out) == {
        "apiKey": label,
        "b": ["[REDACTED:private]"],
        "c": 2,
    }


def test_a_string_that_never_ends_is_read_once(cli: Cli, tmp_path: Path) -> None:
    """Were it read again from every quote in it, this would take an hour."""
    path = tmp_path / "torn.jsonl"
    for end in ("", "}\n"):
        path.write_text('{"a":"' + TOKEN + ' \\"' * 300_000 + end)
        assert cli("redact", path).out == '{"a":"[REDACTED:github-token#1]' + ' \\"' * 300_000 + end

"""Where a secret can stand, what looks like one and is none, and what hostile text costs."""

from __future__ import annotations

import base64
import html
import json
import time
from functools import cache
from urllib.parse import quote

import pytest

from whyfor.privacy.engine import Engine
from whyfor.privacy.redactor import Redactor
from whyfor.privacy.rules import load_rules
from whyfor.privacy.samples import expand

SECRET = expand("{A32}")  # of no provider: only what stands around it gives it away
GITHUB = expand("ghp_{A36}")
HEX = expand("{h40}")


@cache
def engine() -> Engine:
    return Engine(load_rules())


def left(text: str) -> str:
    """The text without its secrets."""
    return Redactor(engine()).plain(text.encode()).decode()


CARRIERS = {
    "env": "export API_TOKEN={s}\nPORT=80",
    "go": "var apiToken string = `{s}`",
    "python": 'api_token: str = "{s}"',
    "rust": 'const API_TOKEN: &\'static str = "{s}";',
    "java": 'System.setProperty("API_TOKEN", "{s}");',
    "constructor": 'token = Secret("{s}")',
    "php": "'api_token' => '{s}',",
    "make": "API_TOKEN ?= {s}",
    "yaml": "api_token: {s}",
    "yaml pair": "- name: API_TOKEN\n  value: {s}",
    "yaml block": "api_token: |\n  {s}\n",
    "terraform": 'variable "api_token" {\n  type    = string\n  default = "{s}"\n}',
    "xml": "<apiToken>\n    {s}\n</apiToken>",
    "html": "<td>api token</td><td><code>{s}</code></td>",
    "markdown table": "| name | token |\n|---|---|\n| ci | {s} |",
    "csv": "name,secret_key,created\nci,{s},2031",
    "flag": "deploy --api-token {s} --region eu",
    "flag with =": "deploy --api-token={s}",
    "docker": 'ENV API_TOKEN "{s}"',
    "netrc": "machine h login me password {s}",
    "query": "https://api.example.org/v1?x=1&access_token={s}&y=2",
    "userinfo": "postgres://app:{s}@db:5432/app",
    "user alone": "https://{s}@git.example.org/app.git",
    "header": "X-Api-Key: {s}",
    "bearer": "curl -H 'Authorization: Bearer {s}' https://example.org",
    "pairs": "Server=db;User Id=sa;Password={s};Encrypt=true",
    "wrapped": "API_TOKEN={a}\\\n{b}\n",
    "strings": 'api_token = (\n    "{a}"\n    "{b}"\n)',
    "diff": "@@ -1 +1 @@\n-api_token: x\n+api_token: {s}",
    "grep": "src/app.py:12:API_TOKEN = '{s}'",
    "numbered": "    12→API_TOKEN={s}",
    "commented": "# api_token = '{s}'  # old",
    "prose": "The staging api token is {s}, please rotate it.",
    "prose before": "use {s} as the api token",
    "next line": "Here is the token:\n\n{s}\n",
    "colours": "\x1b[32mAPI_TOKEN\x1b[0m=\x1b[1m{s}\x1b[0m",
    "sql": "CREATE USER app IDENTIFIED BY '{s}';",
    "command": "sshpass -p {s} ssh root@example.org",
}


@pytest.mark.parametrize("template", CARRIERS.values(), ids=CARRIERS.keys())
@pytest.mark.parametrize("around", ["plain", "json", "json in json", "url", "html"])
def test_a_secret_is_found_whatever_carries_it(template: str, around: str) -> None:
    text = template.replace("{s}", SECRET).replace("{a}", SECRET[:17]).replace("{b}", SECRET[17:])
    if around == "json":
        text = json.dumps({"content": text})
    elif around == "json in json":
        text = json.dumps({"content": json.dumps({"stdout": text})})
    elif around == "url":
        text = quote(text, safe="") if "\x1b" not in text and "{a}" not in template else text
    elif around == "html":
        text = html.escape(text)
    clean = left(text)
    for piece in (SECRET, SECRET[:17], SECRET[17:]):
        assert piece not in clean, clean
    assert "[REDACTED:" in clean
    assert left(clean) == clean, "twice is not the same as once"


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_base64_of_a_text_with_a_secret_is_looked_into(depth: int) -> None:
    text = f"PORT=80\nAPI_TOKEN={SECRET}\nDEBUG=1\n"
    for _ in range(depth):
        text = base64.b64encode(text.encode()).decode()
    assert left(f"echo {text} | base64 -d") == "echo [REDACTED:token#1] | base64 -d"


def test_base64_of_a_secret_alone_is_one_and_of_other_things_is_not() -> None:
    def packed(data: bytes) -> str:
        return base64.b64encode(data).decode()

    assert packed(SECRET.encode()) not in left(f"data:\n  blob: {packed(SECRET.encode())}")
    for harmless in (
        b"hello world, this is a greeting",
        b"\x89PNG\r\n\x1a\n" + bytes(range(200)),
        HEX.encode(),
    ):
        line = f"data:\n  blob: {packed(harmless)}"
        assert left(line) == line


def test_the_same_value_has_the_same_number_and_its_copies_go_too() -> None:
    other = expand("{A33}")
    text = f"TOKEN={SECRET}\nAPI_TOKEN={other}\nagain {SECRET} and in /tmp/{SECRET}.txt\n"
    assert left(text) == (
        "TOKEN=[REDACTED:token#1]\nAPI_TOKEN=[REDACTED:token#2]\n"
        "again [REDACTED:token#1] and in /tmp/[REDACTED:token#1].txt\n"
    )


def test_records_keep_their_structure_and_their_ids() -> None:
    uuid = expand("{uuid}")
    record = {
        "uuid": uuid,
        "sessionId": uuid,
        "message": {
            "id": "msg_01" + expand("{A22}"),
            "content": [
                {
                    "type": "thinking",
                    "thinking": f"the token: {SECRET}",
                    "signature": expand("{b200}") + GITHUB,
                },
                {
                    "type": "tool_use",
                    "id": "toolu_01" + expand("{A22}"),
                    "input": {"GITHUB_TOKEN": GITHUB, GITHUB: 1},
                },
                {
                    "type": "tool_result",
                    "content": f'{{"token": "{SECRET}", "sha": "{HEX}"}}',
                    "is_error": False,
                },
            ],
        },
        "token": uuid,
        "cwd": f"/home/me/{HEX}",
    }
    line = json.dumps(record).encode() + b"\n"
    clean = Redactor(engine()).jsonl(line)
    after = json.loads(clean)
    thinking, call, result = after["message"]["content"]
    assert after["uuid"] == after["sessionId"] == uuid and after["cwd"] == record["cwd"]
    assert after["token"] == "[REDACTED:token#2]"
    assert thinking["thinking"] == "the token: [REDACTED:token#1]"
    assert thinking["signature"] == record["message"]["content"][0]["signature"]  # type: ignore[index]
    assert call["input"] == {
        "GITHUB_TOKEN": "[REDACTED:github-token#1]",
        "[REDACTED:github-token#1]": 1,
    }
    assert json.loads(result["content"]) == {"token": "[REDACTED:token#1]", "sha": HEX}
    assert SECRET.encode() not in clean


def test_a_record_is_never_read_across_its_line() -> None:
    lines = b'{"text": "the token is:"}\n{"text": "' + SECRET.encode() + b'"}\n'
    assert Redactor(engine()).jsonl(lines) == lines


@pytest.mark.parametrize(
    "line",
    [
        f"commit {HEX}",
        f"index {HEX[:7]}..{HEX[8:15]} 100644",
        f'"integrity": "sha512-{expand("{b86}")}=="',
        f"golang.org/x/text v0.3.7 h1:{expand('{b43}')}=",
        f"tool_use_id: toolu_01{expand('{A22}')}",
        f"assets/app-{HEX[:8]}.js",
        "def test_token_is_refreshed_after_24h(): ...",
        "--- PASS: TestTokenRefresh/expires_in_3600s (0.00s)",
        'token = os.environ["API_TOKEN"]',
        "const apiKey = config.services.billing2.apiKey;",
        "password: ${{ secrets.DB_PASSWORD }}",
        '"usage": {"input_tokens": 18234, "cache_read_input_tokens": 1234567}',
        "token=[REDACTED:github-token#1] and more words",
        "if (token !== expectedToken2) throw new Error('bad')",
        f"public key: {expand('{b43}')}=",
        "key: v2:users:1234:profile",
        "api_key=<your-key>",
        "password: Contraseña",
    ],
)
def test_what_is_no_secret_stays(line: str) -> None:
    assert left(line) == line
    assert (
        Redactor(engine()).jsonl(json.dumps({"content": line}).encode())
        == json.dumps({"content": line}).encode()
    )


HOSTILE = {
    "names": b"token=",
    "quotes": b'password="',
    "words": b"password: ",
    "cells": b"|token",
    "lines": b"token\n",
    "escaped lines": rb"token\n",
    "keys": b"-----BEGIN PRIVATE KEY-----",
    "tokens": b"eyJa.",
    "addresses": b"://a:",
    "colours": b"\x1b[0m",
    "percent": b"%3d",
    "base64": b"dG9rZW49",
    "backslashes": b"\\",
    "commands": b"curl -u ",
    "prose": b"abcdefgh1 is token ",
    "cookies": b"cookie: a=b;",
    "blocks": b'variable "token" {\n a = b\n',
    "tags": b"token</td><td>",
    "placeholders": b"[REDACTED:token#1]",
}


@pytest.mark.slow
@pytest.mark.parametrize("piece", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_text_costs_in_proportion_to_its_size(piece: bytes) -> None:
    """Four times the text, about four times the work; were it quadratic, sixteen times."""

    def cost(size: int) -> float:
        text = (piece * (size // len(piece) + 1))[:size]
        begun = time.process_time()
        engine().find(text)
        return time.process_time() - begun

    cost(1000)
    small, large = min(cost(24_000) for _ in range(2)), cost(96_000)
    assert large < 9 * small + 0.05

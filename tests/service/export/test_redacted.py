"""What leaves in an export has no secret in it, wherever it was said, in every form."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.conftest import Result
from tests.service.export.hostile import Page
from tests.service.export.test_export import commit, git
from tests.transcripts import Transcript
from whyfor.privacy.samples import expand

Cli = Callable[..., Result]
FORMS = ("markdown", "html", "json")
TOKEN = expand("ghp_{A36}")
LATE = expand("{A32}")  # given away by its name only at the very end
PLACES = {
    name: expand(template)
    for name, template in {
        "prompt": "gho_{A36}",
        "answer": "{A28}",
        "thinking": "ghu_{A36}",
        "input": "{A30}",
        "result": "{A26}",
        "diff": "{A34}",
        "file": "ghs_{A36}",
        "note": "ghr_{A36}",
        "intent": "{A22}",
        "message": "ghp_{A40}",
        "colour": "ghp_{A38}",
        "key": "-----BEGIN RSA PRIVATE KEY-----\n{b64}\n{b64}\n-----END RSA PRIVATE KEY-----",
        "entity": "pw<&>{A18}\"'",
        "private": "the word nobody shall read",
        "branch": "ghp_{A42}",
    }.items()
}


class Told(NamedTuple):
    session: str
    repository: Path


@pytest.fixture
def told(home: Path, tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> Told:
    said = PLACES
    repository = tmp_path / "shop"
    git(tmp_path, "init", "-q", "-b", "main", str(repository))
    git(repository, "commit", "-q", "--allow-empty", "-m", "First")
    session = Transcript("secretive", cwd=str(repository), branch=f"fix/{said['branch']}")
    session.prompt(f"Use {TOKEN} and {said['prompt']}; {LATE} too. password: {said['entity']!r}")
    session.think(f"perhaps {said['thinking']}, with {TOKEN}")
    session.call(
        "Bash",
        {"command": "x" * 190 + f" API_TOKEN={said['input']} {TOKEN}"},
        f"DB_PASSWORD={said['result']}",
    )
    new = f"a = 1\nclient_secret = '{said['diff']}'\n{said['key']}\n"
    session.call(
        "Edit",
        {"file_path": f"{said['file']}.py", "old_string": "a = 1", "new_string": new},
        "done",
    )
    coloured = said["colour"][:9] + "\x1b[31m\x01" + said["colour"][9:]
    session.call(
        "Bash", {"command": "env"}, f"{coloured}\n" + "\n".join(f"line {n}" for n in range(300))
    )
    (repository / f"{said['file']}.py").write_text(new)
    commit(session, repository, f"Use {said['message']}")
    session.say(f"The token is {said['answer']}. **Done** with `{TOKEN}`. export API_TOKEN={LATE}")
    session.save(home)
    monkeypatch.chdir(repository)
    assert cli("ingest").code == 0
    note = cli(
        *("note", "--title", f"Rotate {said['note']}", "--summary", f"token {said['note']}"),
        *("--intent", f"a <private>{said['private']}</private> word; password={said['intent']}"),
    )
    assert note.code == 0, note.err
    return Told(session.session_id, repository)


def hidden(text: str) -> str:
    """The same as a reader may see it: without markup, entities and line breaks."""
    plain = html.unescape(re.sub(r"<[^>]*>|\\|\u200b", "", text))
    return text + plain + json.dumps(plain)


def left(text: str, *names: str) -> list[str]:
    seen = hidden(text)
    pieces = {
        name: [line for line in value.splitlines() if "-----" not in line]
        for name, value in PLACES.items()
    }
    found = [name for name, lines in pieces.items() if any(line in seen for line in lines)]
    return found + [value for value in (TOKEN, LATE) if value in seen]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("what", ["HEAD", "HEAD~1..HEAD", "session"])
def test_no_secret_leaves_wherever_it_was_said(told: Told, cli: Cli, form: str, what: str) -> None:
    reference = told.session if what == "session" else what
    result = cli("export", reference, "--format", form, "--thinking", "--tools")
    assert result.code == 0
    assert left(result.out) == []
    assert re.fullmatch(r"\d+ secrets redacted(?: in \d+ places)?: .*github-token.*\n", result.err)
    assert "[REDACTED:github-token#" in hidden(result.out)
    if form == "html":
        assert Page(result.out).problems == []
    if form == "json":
        json.loads(result.out)


@pytest.mark.parametrize("form", FORMS)
def test_what_is_left_out_must_be_asked_for_and_is_named(
    told: Told, cli: Cli, form: str, tmp_path: Path
) -> None:
    target = tmp_path / "story"
    result = cli("export", "HEAD", "--format", form, "--no-redact", "--output", target)
    assert result.code == 0
    text = target.read_text()
    assert TOKEN in text and PLACES["prompt"] in text
    written, said = result.err.splitlines()
    assert written == f"Written to {target}"
    assert re.match(r"NOT REDACTED: \d+ secrets in it now: ", said)
    assert "github-token" in said
    assert told.session in said
    assert not any(value in result.err for value in PLACES.values())


def test_ids_and_hashes_survive(told: Told, cli: Cli) -> None:
    sha = git(told.repository, "rev-parse", "HEAD")
    body = cli("export", "HEAD", "--json").json
    plain = cli("show", "HEAD", "--json").json
    assert body["commit"] == sha
    assert body["group"] == plain["group"]
    checkpoint = body["checkpoint"]
    assert checkpoint["id"] == plain["checkpoint"]["id"]
    assert [part["session_id"] for part in checkpoint["sessions"]] == [told.session]
    session = cli("export", told.session, "--json").json
    shown = cli("show", told.session, "--json").json
    assert [(e["seq"], e["kind"], (e["data"] or {}).get("id")) for e in session["events"]] == [
        (e["seq"], e["kind"], (e["data"] or {}).get("id")) for e in shown["events"]
    ]
    assert session["session"]["session_id"] == told.session


def test_show_does_not_redact_for_the_owner(told: Told, cli: Cli) -> None:
    assert TOKEN in cli("show", "HEAD", "--markdown").out
    assert TOKEN in cli("show", told.session, "--json").out


def test_if_redaction_fails_nothing_is_written(told: Told, cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "whyfor" / "config.toml").write_text("[[redact.rule]]\nid = 'x'\n")
    target = tmp_path / "story.md"
    for arguments in (["--output", target], ["--json"], ["--no-redact"]):
        result = cli("export", "HEAD", *arguments)
        assert result.code == 2
        assert TOKEN not in result.out
    assert not target.exists()


def test_a_number_may_be_a_secret_too(home: Path, cli: Cli) -> None:
    session = Transcript("number")
    session.prompt("Go on")
    session.call(
        "Post", {"apiKey": 8374928374928312, "at": 1_700_000_000_000, "id": 9374928374928312}
    )
    session.save(home)
    cli("ingest")
    (call,) = [
        e
        for e in cli("export", session.session_id, "--json").json["events"]
        if e["kind"] == "tool.call"
    ]
    assert call["data"]["input"] == {
        "apiKey": "[REDACTED:api-key#1]",
        "at": 1_700_000_000_000,
        "id": 9374928374928312,
    }


def test_a_title_that_was_cut_gives_nothing_away(home: Path, cli: Cli) -> None:
    session = Transcript("cut")
    session.prompt("x" * 180 + f" {TOKEN}")
    session.save(home)
    cli("ingest")
    title = cli("show", session.session_id, "--json").json["session"]["title"]
    assert TOKEN[:15] in title
    assert TOKEN not in title
    for form in FORMS:
        assert TOKEN[:8] not in cli("export", session.session_id, "--format", form).out


def test_a_value_keeps_its_number_through_the_whole_export(told: Told, cli: Cli) -> None:
    text = cli("export", told.session, "--tools", "--thinking").out
    numbers = set(re.findall(r"Use \\\[(\S+?)\\\] and|Done\*\* with `\[(\S+?)\]`", text))
    labels = {re.sub(r"\\|&#8203;", "", one or other) for one, other in numbers}
    assert len(numbers) == 2
    assert len(labels) == 1

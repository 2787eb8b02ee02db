"""Who wrote lines, in the formats of other tools."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import uuid
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.conftest import Result
from tests.story.links.workshop import Agent, Clock, Repo, Workshop
from whyfor.service.exchange.agent_trace import vendor_model

Cli = Callable[..., Result]
_BY_HAND = "# a person wrote this line\n"
_WRITTEN = "def tide(hour):\n    return 3 * hour + 4\n"


@pytest.fixture
def shop(tmp_path: Path, home: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> Workshop:
    """A repository with a commit to which a session and a person wrote lines."""
    repo = Repo.made(tmp_path / "code" / "shop", Clock())
    monkeypatch.chdir(repo.path)
    made = Workshop(home, repo, cli, hooked=False)
    agent = Agent("s1", repo)
    agent.prompt("Compute the tide")
    agent.write("tide table.py", _WRITTEN)
    agent.say("It is computed.")
    repo.write("tide table.py", _WRITTEN + _BY_HAND)
    repo.commit("Compute the tide")
    made.ingest(agent)
    return made


def records(cli: Cli, *words: str) -> list[dict[str, Any]]:
    done = cli("export", *words, "--format", "agent-trace")
    assert done.code == 0, done.err
    return [json.loads(line) for line in done.out.splitlines()]


def check_trace(record: dict[str, Any]) -> None:
    """What the schema of Agent Trace 0.1.0 demands."""
    assert set(record) <= {"version", "id", "timestamp", "vcs", "tool", "files", "metadata"}
    assert re.fullmatch(r"\d+\.\d+\.\d+", record["version"])
    uuid.UUID(record["id"])
    assert datetime.fromisoformat(record["timestamp"]).tzinfo
    assert record["vcs"]["type"] in ("git", "jj", "hg", "svn") and record["vcs"]["revision"]
    assert record["tool"]["name"]
    for file in record["files"]:
        assert set(file) == {"path", "conversations"}
        for talk in file["conversations"]:
            assert set(talk) <= {"url", "contributor", "ranges", "related"}
            assert "url" not in talk or urlsplit(talk["url"]).scheme
            assert talk["contributor"]["type"] in ("human", "ai", "mixed", "unknown")
            assert len(talk["contributor"].get("model_id", "")) <= 250
            for each in talk["ranges"]:
                assert set(each) <= {"start_line", "end_line", "content_hash", "contributor"}
                assert 1 <= each["start_line"] <= each["end_line"]


def test_a_trace_names_the_turn_of_each_line_and_claims_no_person(shop: Workshop, cli: Cli) -> None:
    [record] = records(cli, "HEAD")
    check_trace(record)
    assert record["vcs"]["revision"] == shop.repo.head
    [file] = record["files"]
    assert file["path"] == "tide table.py"
    by_agent, rest = file["conversations"]
    assert by_agent["url"].startswith("whyfor://session/claude/")
    assert by_agent["url"].endswith("#turn-1")
    assert by_agent["contributor"]["type"] == "ai"
    [found] = by_agent["ranges"]
    assert (found["start_line"], found["end_line"]) == (1, 2)
    digest = hashlib.sha256(_WRITTEN.rstrip("\n").encode()).hexdigest()
    assert found["content_hash"] == f"sha256:{digest}"
    assert (rest["contributor"], "url" in rest) == ({"type": "unknown"}, False)
    assert rest["ranges"][0]["start_line"] == 3
    [how] = record["metadata"]["whyfor"]["evidence"]
    assert (how["evidence"], how["confidence"], how["end_line"]) == ("exact", "high", 2)
    assert records(cli, "HEAD") == [record]


def test_commits_without_a_story_are_in_no_trace(shop: Workshop, cli: Cli) -> None:
    shop.repo.write("notes.txt", "by hand\n")
    shop.repo.commit("Write notes")
    assert [one["vcs"]["revision"] for one in records(cli, "HEAD~1..HEAD")] == []
    refused = cli("export", "gone..HEAD", "--format", "agent-trace")
    assert refused.code == 2


def note_of(repo: Repo, sha: str, ref: str = "ai") -> str | None:
    done = subprocess.run(
        ["git", "notes", f"--ref={ref}", "show", sha],
        cwd=repo.path,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout if done.returncode == 0 else None


def test_a_git_ai_note_has_its_layout_and_is_written_only_when_asked(
    shop: Workshop, cli: Cli
) -> None:
    done = cli("export", "HEAD", "--format", "git-ai")
    assert done.code == 0, done.err
    first, _, text = done.out.partition("\n")
    assert first == f"commit {shop.repo.head}"
    attested, _, told = text.partition("\n---\n")
    path, entry = attested.split("\n")
    assert path == '"tide table.py"'
    match = re.fullmatch(r"  (s_[0-9a-f]{14})::t_[0-9a-f]{14} 1-2", entry)
    assert match, entry
    body = json.loads(told)
    assert body["schema_version"] == "authorship/3.0.0"
    assert body["base_commit_sha"] == shop.repo.head
    agent = body["sessions"][match[1]]["agent_id"]
    name = f"{agent['tool']}:{agent['id']}"
    assert match[1] == "s_" + hashlib.sha256(name.encode()).hexdigest()[:14]
    assert note_of(shop.repo, shop.repo.head) is None


def test_notes_are_written_once_and_never_over_another_tools(
    shop: Workshop, cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sha = shop.repo.head
    for name, value in (("user.name", "Robin"), ("user.email", "robin@example.com")):
        subprocess.run(["git", "config", name, value], cwd=shop.repo.path, check=True)
    assert "1 note written" in cli("export", "HEAD", "--format", "git-ai", "--write").err
    kept = note_of(shop.repo, sha)
    assert kept and '"writer": "whyfor"' in kept
    assert "0 notes written" in cli("export", "HEAD", "--format", "git-ai", "--write").err
    other = ["git", "notes", "--ref=ai", "add", "-f", "-m", "of another tool", sha]
    subprocess.run(other, cwd=shop.repo.path, check=True, capture_output=True)
    done = cli("export", "HEAD", "--format", "git-ai", "--write")
    assert "1 commit with a note of another tool" in done.err
    assert note_of(shop.repo, sha) == "of another tool\n"
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "git-ai").write_text("#!/bin/sh\n")
    (programs / "git-ai").chmod(0o755)
    monkeypatch.setenv("PATH", str(programs), prepend=":")
    refused = cli("export", "HEAD", "--format", "git-ai", "--write")
    assert (refused.code, "git-ai is installed" in refused.err) == (2, True)
    assert cli("export", "HEAD", "--format", "json", "--write").code == 2


def test_models_are_named_with_their_vendor() -> None:
    named = {
        "claude-opus-5-5": "anthropic/claude-opus-5-5",
        "gpt-6": "openai/gpt-6",
        "gemini-4-pro": "google/gemini-4-pro",
        "acme/own": "acme/own",
        "own-model": "own-model",
    }
    assert {name: vendor_model(name) for name in named} == named
    assert vendor_model(None) is None


# -- notes of git-ai -----------------------------------------------------------------------------

_THEIRS = """{path}
  s_c9883b05a2487d::t_9f8e7d6c5b4a32 2
  h_31dce776f88375 1
  abcdef0123456789 3,90-92
---
{metadata}"""
_METADATA = {
    "schema_version": "authorship/3.0.0",
    "base_commit_sha": "",
    "prompts": {"abcdef0123456789": {"agent_id": {"tool": "cursor", "id": "c9", "model": "m"}}},
    "humans": {"h_31dce776f88375": {"author": "Robin <robin@example.com>"}},
    "sessions": {
        "s_c9883b05a2487d": {"agent_id": {"tool": "codex", "id": "conv-1", "model": "gpt-6"}}
    },
}


def annotate(repo: Repo, sha: str, text: str, ref: str = "ai") -> None:
    who = ("-c", "user.name=Robin", "-c", "user.email=robin@example.com")
    subprocess.run(
        ["git", *who, "notes", f"--ref={ref}", "add", "-f", "-F", "-", sha],
        cwd=repo.path,
        input=text,
        text=True,
        check=True,
        capture_output=True,
    )


@pytest.fixture
def noted(shop: Workshop) -> Workshop:
    """A commit that no session of ours wrote, with a note of git-ai."""
    shop.repo.write("harbour log.txt", "one\ntwo\nthree\nfour\n")
    shop.repo.commit("Keep a log")
    told = _THEIRS.format(path='"harbour log.txt"', metadata=json.dumps(_METADATA))
    annotate(shop.repo, shop.repo.head, told)
    return shop


def test_lines_of_git_ai_notes_are_taken_over_as_evidence(noted: Workshop, cli: Cli) -> None:
    done = cli("notes", "import", "--json")
    assert done.code == 0, done.err
    report = done.json
    assert (report["commits"], report["lines"], report["refused"]) == (1, 3, 3)
    assert report["unread"] == []
    rows = cli("blame", "harbour log.txt", "--json").json["lines"]
    whos = [row["who"] for row in rows]
    assert [who["kind"] for who in whos] == ["person", "agent", "agent", "unknown"]
    assert [who["agent"] for who in whos[1:3]] == ["codex", "cursor"]
    assert (whos[1]["evidence"], whos[1]["model"], whos[1]["session"]) == (
        "note",
        "gpt-6",
        "conv-1",
    )
    assert "two" in cli("blame", "harbour log.txt").out
    counts = cli("lines", "HEAD", "--json").json["total"]
    assert (counts["added"], counts["agent"], counts["person"], counts["unknown"]) == (4, 2, 1, 1)
    assert cli("why", "harbour log.txt:2").code == 0
    assert cli("notes", "import", "--json").json == report


def test_our_own_exact_records_are_surer_than_a_note(shop: Workshop, cli: Cli) -> None:
    told = _THEIRS.format(path='"tide table.py"', metadata=json.dumps(_METADATA))
    annotate(shop.repo, shop.repo.head, told)
    cli("notes", "import")
    rows = cli("blame", "tide table.py", "--json").json["lines"]
    assert [row["who"]["evidence"] for row in rows] == ["exact", "exact", "note"]
    assert rows[1]["who"]["agent"] == "claude"


def test_notes_that_are_not_git_ais_or_ours_are_left_alone(shop: Workshop, cli: Cli) -> None:
    assert cli("notes", "import").code == 2
    assert cli("notes", "import", "--ref", "refs/heads/main").code == 2
    for text in (
        "a person's note",
        "x\n---\nno json",
        '---\n{"schema_version": "other"}',
        "---\n[]",
    ):
        annotate(shop.repo, shop.repo.head, text)
        report = cli("notes", "import", "--json").json
        assert (report["commits"], len(report["unread"])) == (0, 1), text
    for name, value in (("user.name", "Robin"), ("user.email", "robin@example.com")):
        subprocess.run(["git", "config", name, value], cwd=shop.repo.path, check=True)
    subprocess.run(["git", "notes", "--ref=ai", "remove", "HEAD"], cwd=shop.repo.path, check=True)
    cli("export", "HEAD", "--format", "git-ai", "--write")
    report = cli("notes", "import", "--json").json
    assert (report["commits"], report["lines"]) == (0, 0)

"""whyfor export, from real sessions and a real repository to what a reader gets."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Result
from tests.service.export.hostile import ALL, Page
from tests.transcripts import Transcript
from whyfor import demo as demos
from whyfor.store.sql.conversation import SqlConversation

Cli = Callable[..., Result]


@pytest.fixture
def demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli) -> demos.Demo:
    """Five commits after the first: two of one request, one of Codex, one of the agent's lines,
    one of nobody's."""
    made = demos.build(tmp_path / "demo")
    monkeypatch.setenv("HOME", str(made.home))
    monkeypatch.chdir(made.repository)
    assert cli("ingest").code == 0
    return made


def git(folder: Path, *arguments: str, at: str = "2026-05-01T09:00:00Z") -> str:
    command = ["git", "-c", "user.name=Ada", "-c", "user.email=ada@example.com", *arguments]
    env = {**os.environ, "GIT_AUTHOR_DATE": at, "GIT_COMMITTER_DATE": at}
    return subprocess.run(
        command, cwd=folder, env=env, capture_output=True, text=True, check=True
    ).stdout.strip()


def commit(session: Transcript, repository: Path, subject: str) -> None:
    """By the agent, while its call runs."""
    at = datetime.fromisoformat(session.lines[-1]["timestamp"]) + timedelta(seconds=7)
    git(repository, "add", "--all")
    git(repository, "commit", "-q", "--allow-empty", "-m", subject, at=at.isoformat())
    printed = f"[main {git(repository, 'rev-parse', '--short', 'HEAD')}] {subject}"
    session.call("Bash", {"command": f"git commit -m '{subject}'"}, printed)


def test_a_branch_is_told_oldest_first_with_a_table_and_what_was_said(
    demo: demos.Demo, cli: Cli
) -> None:
    result = cli("export", "HEAD~5..HEAD")
    assert (result.code, result.err) == (0, "")
    lines = result.out.splitlines()
    assert lines[0] == "# The story of main"
    assert lines[2].endswith("5 commits · 4 with a story · 3 sessions · Claude Code, Codex")
    heads = [line.split("` ", 1)[1] for line in lines if line.startswith("## ")]
    assert heads == [
        "Retry dropped connections with exponential backoff",
        "Say which harbour stays silent",
        "Choose the harbour on the command line",
        "Explain the retries in the readme",
        "Pin the Python version",
    ]
    rows = [line for line in lines if line.startswith("| `")][:5]
    assert "| FEATURE | Codex | output, high confidence |" in rows[2]
    assert "none: no session" in rows[4]
    for words in (
        "> Keep four, change the test. Then commit.",
        "- I considered a retry library and left it out: one function is enough here.",
        "**Claude Code asked back**",
        "> Name the harbour",
        "`fetch` now tries **four times**",
        "| `tidewatch/http.py` | +11 | −2 |",
        "content, high confidence",
        "tokens in",
    ):
        assert words in result.out


def test_a_request_of_two_commits_is_told_once(demo: demos.Demo, cli: Cli) -> None:
    text = cli("export", "HEAD~5..HEAD").out
    assert text.count("> Keep four, change the test. Then commit.") == 1
    first = git(demo.repository, "rev-parse", "HEAD~4")[:8]
    assert f"Same request as `{first}`." in text


def test_one_commit_is_what_show_gives_as_markdown(demo: demos.Demo, cli: Cli) -> None:
    text = cli("export", "HEAD~3").out
    assert text == cli("show", "HEAD~3", "--markdown").out
    assert text.startswith("## `")
    assert "> Keep four, change the test. Then commit." in text


def test_thoughts_and_tools_are_there_when_they_are_asked_for(demo: demos.Demo, cli: Cli) -> None:
    plain = cli("export", "HEAD~4").out
    assert "fits; the last error" not in plain
    assert "```diff" not in plain
    text = cli("export", "HEAD~4", "--thinking", "--tools").out
    thought, failed, closing = (
        text.index(words)
        for words in ("fits; the last error", "pytest -q` failed", "Which one is right?")
    )
    assert thought < failed < closing
    assert "+def fetch(url: str, attempts: int = 4) -> bytes:" in text
    assert str(demo.repository) not in text
    assert text.count("<details>") == text.count("</details>") > 2


def test_a_session_is_told_from_its_first_prompt_to_its_last_words(
    demo: demos.Demo, cli: Cli
) -> None:
    text = cli("export", "5b1d").out
    assert text.startswith(
        "# Retry dropped connections to the harbour server\n\nClaude Code 5b1d0c3e"
    )
    assert "▸ Read, Task, Write, Bash" in text
    assert text.rstrip().endswith("Both changes are committed.")
    assert "```diff" in cli("export", "claude:5b1d", "--tools").out


def test_a_page_is_one_file_for_its_owner_alone(demo: demos.Demo, cli: Cli, tmp_path: Path) -> None:
    target = tmp_path / "story.html"
    result = cli(
        "export", "HEAD~5..HEAD", "--format", "html", "--output", target, "--tools", "--thinking"
    )
    assert (result.code, result.out) == (0, "")
    assert result.err == f"Written to {target}\n"
    assert target.stat().st_mode & 0o777 == 0o600
    page = Page(target.read_text(encoding="utf-8"))
    assert page.problems == []
    assert page.tags.count("article") == 5
    assert {link for link in page.links if link.startswith("#")} == {
        f"#c-{git(demo.repository, 'rev-parse', f'HEAD~{n}')[:12]}" for n in range(5)
    }
    assert any("ConnectionResetError" in words for words in page.words)
    assert cli("export", "5b1d", "--format", "html", "--output", target).code == 0
    again = Page(target.read_text(encoding="utf-8"))
    assert (again.problems, again.tags.count("article")) == ([], 0)
    assert [path.name for path in tmp_path.iterdir() if "story.html" in path.name] == ["story.html"]


def test_json_is_what_the_other_commands_give(demo: demos.Demo, cli: Cli) -> None:
    one = cli("export", "HEAD~4", "--format", "json").json
    assert one == cli("show", "HEAD~4", "--json").json
    assert cli("export", "5b1d", "--json").json == cli("show", "5b1d", "--json").json
    many: list[dict[str, Any]] = cli("export", "HEAD~5..HEAD", "--json").json
    log = {entry["commit"]: entry for entry in cli("log", "--json").json}
    assert many[0] == one
    assert [{name: entry[name] for name in log[entry["commit"]]} for entry in many] == [
        log[entry["commit"]] for entry in many
    ]


@pytest.mark.parametrize(
    ("arguments", "message", "hint"),
    [
        (["nothing"], "no session and no commit begins with 'nothing'", "whyfor sessions"),
        (["HEAD..HEAD"], "no commits in HEAD..HEAD", "main..HEAD"),
        (["nothing..HEAD"], "git does not understand 'nothing..HEAD'", "main..HEAD"),
        (["HEAD", "--output", "/dev/null/x"], "cannot write /dev/null/x", "--output"),
    ],
)
def test_what_cannot_be_exported_is_said_in_two_lines(
    demo: demos.Demo, cli: Cli, arguments: list[str], message: str, hint: str
) -> None:
    result = cli("export", *arguments)
    assert (result.code, result.out) == (2, "")
    first, second = result.err.splitlines()
    assert first.startswith(f"error: {message}")
    assert hint in second


def test_a_range_needs_a_repository(
    demo: demos.Demo, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(demo.home)
    result = cli("export", "main..HEAD")
    assert result.code == 2
    assert "is not in a git repository" in result.err
    assert cli("export", "5b1d").code == 0


def test_a_session_of_hostile_words_makes_a_harmless_page(
    home: Path, tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository = tmp_path / "shop"
    git(tmp_path, "init", "-q", "-b", 'x"><script>alert(1)</script>', str(repository))
    session = Transcript("hostile", cwd=str(repository), branch=ALL)
    session.prompt(ALL + "HALF")
    session.think(ALL)
    (repository / "<img src=x onerror=1>.py").write_text(
        "changed = 'by the agent'\n", encoding="utf-8"
    )
    session.call(ALL, {"command": ALL}, ALL)
    commit(session, repository, "First")
    commit(session, repository, " ".join(ALL.replace("\0", "").split()))
    session.say(ALL)
    path = session.save(home)
    path.write_text(session.text().replace("HALF", "\\ud800"), encoding="utf-8")
    monkeypatch.chdir(repository)
    assert cli("ingest").code == 0
    for reference in ("HEAD", "HEAD~1..HEAD", "HEAD~1", f"claude:{session.session_id}"):
        result = cli("export", reference, "--format", "html", "--tools", "--thinking")
        assert result.code == 0
        page = Page(result.out)
        assert page.problems == []
        assert "No story" not in result.out
        assert any("alert(1)" in words for words in page.words)
        assert cli("export", reference, "--tools", "--thinking").code == 0


def test_a_long_branch_of_one_session_is_read_about_once(
    home: Path, tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository = tmp_path / "shop"
    git(tmp_path, "init", "-q", "-b", "main", str(repository))
    git(repository, "commit", "-q", "--allow-empty", "-m", "First")
    session = Transcript("long", cwd=str(repository))
    session.prompt("Do it all, step by step")
    for number in range(30):
        commit(session, repository, f"Step {number}")
    session.save(home)
    monkeypatch.chdir(repository)
    assert cli("ingest").code == 0
    read = 0
    events = SqlConversation.events

    def counted(self: SqlConversation, *arguments: int) -> Iterator[Any]:
        nonlocal read
        for event in events(self, *arguments):
            read += 1
            yield event

    monkeypatch.setattr(SqlConversation, "events", counted)
    text = cli("export", "HEAD~30..HEAD").out
    assert text.count("Same request as") == 29
    assert read <= 3 * 62

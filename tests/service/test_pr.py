"""The story of a pull request as one comment: what it tells, and how it is posted."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Result
from tests.story.links.workshop import Agent, Clock, Repo, Workshop, body
from whyfor import config
from whyfor.service.file_page import FileQuery, file_page
from whyfor.service.map_page import MapQuery, map_page

Cli = Callable[..., Result]
SECRET = "sk_live_" + "4eC39HqLyjWDarjtT1zdp7dc"
# A program that keeps comments in a file and says what it was asked, as gh and glab answer.
FORGE = f"""#!{sys.executable}
import json, os, re, sys
state = os.environ["FORGE_STATE"]
told = json.load(open(state))
told["asked"].append(sys.argv[1:])
words = sys.argv[1:]
if words[:2] in (["pr", "view"], ["mr", "view"]):
    if told.get("none"):
        sys.exit("no pull requests found for branch")
    print(json.dumps({{"number": 7, "iid": 7}}))
elif "-X" in words:
    method, path = words[words.index("-X") + 1], words[words.index("-X") + 2]
    given = json.load(sys.stdin)
    if method == "POST":
        told["comments"].append({{"id": 100 + len(told["comments"]), "body": given["body"]}})
    else:
        wanted = int(path.rsplit("/", 1)[1])
        for one in told["comments"]:
            if one["id"] == wanted:
                one["body"] = given["body"]
    print("{{}}")
else:
    page = int(re.search(r"[?&]page=(\\d+)", words[1])[1])
    print(json.dumps(told["comments"][(page - 1) * 100 : page * 100]))
json.dump(told, open(state, "w"))
"""


@pytest.fixture
def shop(tmp_path: Path, home: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> Workshop:
    repo = Repo.made(tmp_path / "code" / "shop", Clock())
    monkeypatch.chdir(repo.path)
    repo.git("checkout", "-q", "-b", "topic")
    agent = Agent("s1", repo)
    agent.prompt(f"Write the rules. cc @ada, fixes #12, key {SECRET}")
    agent.write("rules.py", body("rule", 8))
    agent.call("Bash", {"command": "pytest -q"}, "1 failed", failed=True)
    agent.call("Bash", {"command": "pytest -q"}, "8 passed")
    agent.say("The rules are there. <img src=x> @ada")
    agent.commit("Rules")
    agent.prompt("Show them.")
    agent.ask("As a table?", "No, as a list")
    agent.write("show.py", body("show", 4))
    agent.say("A list it is.")
    agent.commit("Show the rules")
    repo.commit("By hand", {"notes.md": "one\ntwo\n", "blob.bin": "a\0b"})
    made = Workshop(home, repo, cli, hooked=False)
    made.ingest(agent)
    return made


def test_the_comment_tells_lines_prompts_and_checks_without_secrets_or_calls(
    shop: Workshop, cli: Cli
) -> None:
    text = cli("pr").out
    assert text.startswith(
        "<!-- whyfor:pr -->\n\n**12 of 14 added lines by agents (86 %)**, 2 unknown"
    )
    assert "2 prompts, 1 session" in text
    assert "| `rules.py` | 8 | 100 % | 0 | 0 | 1 |" in text
    assert "| `notes.md` | 2 | 0 % | 0 | 2 |  |" in text
    assert "| `blob.bin` | binary |" in text
    assert "| `pytest -q` | passed | not recorded | 2 | 1 |" in text
    assert "> No, as a list" in text and "As a table?" in text
    assert SECRET not in text and "@ada" not in text and "#12" not in text and "<img" not in text
    told = cli("pr", "main..topic", "--json").json
    assert told["lines"]["total"]["added"] == 14 and told["posted"] is None
    assert [prompt["lines"] for prompt in told["prompts"]] == [8, 4]


def test_a_long_story_fits_into_a_comment(shop: Workshop, cli: Cli) -> None:
    agent = Agent("long", shop.repo)
    for number in range(40):
        agent.prompt(f"Step {number}: " + "many words " * 400)
        agent.write(f"step_{number}.py", body(f"step{number}", 2))
    agent.commit("Steps")
    shop.ingest(agent)
    text = cli("pr").out
    assert 50_000 < len(text) <= 60_000
    assert "more prompts not shown." in text and "### Checked" in text
    table, _, folded = text.partition("<details><summary>32 more files</summary>")
    assert (table.count("\n| `"), folded.partition("</details>")[0].count("\n| `")) == (12, 32)
    assert "| `rules.py` | 8 | 100 % | 0 | 0 |" in table


@pytest.mark.parametrize("tool", ["gh", "glab"])
def test_one_comment_is_created_then_changed_in_place(
    shop: Workshop, cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tool: str
) -> None:
    state = tmp_path / "forge.json"
    others = [{"id": n, "body": f"comment {n} <!-- whyfor:pr -->"} for n in range(1, 102)]
    state.write_text(json.dumps({"asked": [], "comments": others}))
    program = tmp_path / "bin" / tool
    program.parent.mkdir()
    program.write_text(FORGE)
    program.chmod(0o755)
    monkeypatch.setenv("FORGE_STATE", str(state))
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    assert cli("pr", "--post", tool, "--dry-run").out == cli("pr").out
    assert json.loads(state.read_text())["asked"] == []
    assert cli("pr", "--post", tool, "--json").json["posted"] == "created"
    assert cli("pr", "--post", tool, "--json").json["posted"] == "unchanged"
    shop.repo.commit("More", {"more.md": "three\n"})
    assert cli("pr", "--post", tool, "--json").json["posted"] == "updated"
    comments = json.loads(state.read_text())["comments"]
    assert len(comments) == 102 and comments[-1]["body"] == cli("pr").out
    assert comments[:101] == others
    state.write_text(json.dumps({"asked": [], "comments": [], "none": True}))
    refused = cli("pr", "--post", tool)
    assert refused.code != 0 and "no pull requests found" in refused.err


def test_what_cannot_be_told_is_answered(
    shop: Workshop, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    for revision in ("f" * 40, "nowhere..HEAD", "--output=x"):
        told = cli("pr", "--", revision)
        assert told.code not in (0, None) and "Traceback" not in told.err
    shop.repo.git("checkout", "-q", "main")
    assert "main branch" in cli("pr").err
    shop.repo.git("checkout", "-q", "topic")
    git = Path(shutil.which("git") or "").parent
    monkeypatch.setenv("PATH", str(git))
    if not (git / "gh").exists():
        assert "gh is not installed" in cli("pr", "--post", "gh").err


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="needs another owner")
def test_a_repository_of_somebody_else_is_not_asked(shop: Workshop, cli: Cli) -> None:
    """Its git configuration would be theirs. The pages tell what was kept."""
    project = f"git:{shop.repo.sha('main')}"
    for path in (shop.repo.path, *shop.repo.path.rglob("*")):
        os.lchown(path, 12345, 12345)
    for words in (["pr"], ["review"], ["review", "HEAD"], ["lines"]):
        told = cli(*words)
        assert told.code == 2 and "is not in a git repository" in told.err
    settings = config.load()
    page = file_page(settings, FileQuery(project, "rules.py"))
    assert (page.state, len(page.versions)) == ("no-git", 1)
    assert map_page(settings, MapQuery(project)).state == "no-git"


def test_nothing_that_a_repository_names_is_run(shop: Workshop, cli: Cli, tmp_path: Path) -> None:
    ran, repo = tmp_path / "ran", shop.repo
    project = f"git:{repo.sha('main')}"
    for name in ("core.fsmonitor", "diff.external", "core.pager", "core.hooksPath"):
        repo.git("config", name, f"touch {ran}")
    repo.git("config", "diff.evil.textconv", f"touch {ran}; cat")
    (repo.path / ".git" / "info" / "attributes").write_text("* diff=evil\n")
    ran.unlink(missing_ok=True)
    assert cli("pr").code == 0
    settings = config.load()
    assert file_page(settings, FileQuery(project, "rules.py")).total == 8
    assert map_page(settings, MapQuery(project)).commits
    assert not ran.exists()

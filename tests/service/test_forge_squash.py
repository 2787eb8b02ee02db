"""A forge squashes a branch and its commits are gone: lines still have their turns, in any clone."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Result
from tests.story.links.workshop import Agent, Clock, Repo, Workshop, body
from whyfor import config
from whyfor.model.branch_map import BY_HAND
from whyfor.service.file_page import FileQuery, file_page
from whyfor.service.map_page import MapQuery, map_page

Cli = Callable[..., Result]
BASE = body("base", 10)
REMOTE = "git@example.com:acme/shop.git"


@pytest.fixture
def shop(tmp_path: Path, home: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> Workshop:
    """Two turns and a person on a branch, all of it linked."""
    repo = Repo.made(tmp_path / "code" / "shop", Clock())
    repo.git("remote", "add", "origin", REMOTE)
    monkeypatch.chdir(repo.path)
    repo.commit("Base", {"a.py": BASE})
    repo.git("checkout", "-q", "-b", "topic")
    agent = Agent("s1", repo)
    agent.prompt("Write the rules")
    agent.write("rules.py", body("rule", 8))
    agent.say("There they are.")
    agent.commit("Rules")
    agent.prompt("Show them")
    agent.edit("a.py", BASE.splitlines(keepends=True)[3], body("shown", 4))
    agent.say("They are shown.")
    agent.commit("Show")
    repo.commit("By hand", {"b.py": body("hand", 3)})
    made = Workshop(home, repo, cli, hooked=False)
    made.ingest(agent)
    return made


def _squash(repo: Repo, folder: Path, days: int) -> Path:
    """As a forge does: another author, another time, on top of what came meanwhile."""
    repo.git("checkout", "-q", "main")
    repo.commit("Upstream", {"a.py": "first = 1\nsecond = 2\n" + repo.read("a.py")})
    repo.clock.tick(days * 86_400)
    forge = folder / "forge"
    subprocess.run(["git", "clone", "-q", str(repo.path), str(forge)], check=True)
    other = Repo(forge, repo.clock, author="GitHub")
    other.git("fetch", "-q", "origin", "topic:topic")
    other.git("merge", "--squash", "-q", "topic")
    other.git("commit", "-q", "-m", "Rules and more (#12)")
    repo.git("branch", "-D", "topic")
    repo.git("fetch", "-q", str(forge), "main")
    repo.git("reset", "-q", "--hard", "FETCH_HEAD")
    repo.git("reflog", "expire", "--expire=now", "--all")
    repo.git("gc", "-q", "--prune=now")
    return forge


def _writers(cli: Cli, path: str) -> dict[tuple[str, int | None], int]:
    found: dict[tuple[str, int | None], int] = {}
    for row in cli("blame", path, "--json").json["lines"]:
        key = (row["who"]["kind"], row["who"]["turn"])
        found[key] = found.get(key, 0) + 1
    return found


@pytest.mark.parametrize(("days", "kept"), [(1, False), (75, False), (75, True)])
def test_lines_keep_their_turns_when_a_forge_squashes_them(
    shop: Workshop,
    cli: Cli,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    days: int,
    kept: bool,
) -> None:
    forge = _squash(shop.repo, tmp_path, days)
    if not kept:  # the forge deletes the branch
        subprocess.run(["git", "branch", "-q", "-D", "topic"], cwd=forge, check=True)
    squashed = shop.repo.head
    clone = tmp_path / "new" / "clone"
    clone.parent.mkdir()
    subprocess.run(["git", "clone", "-q", str(forge), str(clone)], check=True)
    subprocess.run(["git", "remote", "set-url", "origin", REMOTE], cwd=clone, check=True)
    for folder in (clone, shop.repo.path):
        monkeypatch.chdir(folder)
        assert _writers(cli, "rules.py") == {("agent", 1): 8}
        assert _writers(cli, "a.py") == {("agent", 2): 4, ("unknown", None): 11}
        by_hand = _writers(cli, "b.py")
        assert sum(by_hand.values()) == 3 and ("agent", 1) not in by_hand
    (told,) = cli("why", "rules.py:3", "--json").json
    assert (told["commit"], told["asked"]) == (squashed, "Write the rules")
    assert cli("lines", "HEAD~1..HEAD", "--json").json["total"]["agent"] == 12
    page = file_page(config.load(), FileQuery("example.com/acme/shop", "a.py"))
    assert [card.label for card in page.cards if card.session_id] == ["Cc T2"]


def test_a_commit_that_only_touches_the_same_file_claims_nothing(
    shop: Workshop, cli: Cli, tmp_path: Path
) -> None:
    _squash(shop.repo, tmp_path, 75)
    shop.repo.git("reset", "-q", "--hard", "HEAD~1")
    shop.repo.commit("Another way", {"rules.py": body("other", 9), "a.py": BASE + body("more", 4)})
    assert _writers(cli, "rules.py") == {("unknown", None): 9}
    assert ("agent", 2) not in _writers(cli, "a.py")


def test_what_is_older_than_a_shallow_clone_is_nobodys(
    shop: Workshop, cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its first commit seems to add every line, of which its session wrote a few."""
    shop.repo.git("branch", "shown", "HEAD~1")
    clone = tmp_path / "clone"
    options = ["--depth", "1", "-q", "-b", "shown"]
    subprocess.run(["git", "clone", *options, f"file://{shop.repo.path}", str(clone)], check=True)
    subprocess.run(["git", "remote", "set-url", "origin", REMOTE], cwd=clone, check=True)
    monkeypatch.chdir(clone)
    assert _writers(cli, "a.py") == {("agent", 2): 4, ("unknown", None): 9}
    total = cli("lines", "HEAD", "--json").json["total"]
    assert (total["agent"], total["person"]) == (4, 0)
    drawn = map_page(config.load(), MapQuery("example.com/acme/shop"))
    assert not [band for band in drawn.bands if band.source == BY_HAND]

"""Which project a folder belongs to, asked of real repositories."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Result
from tests.transcripts import Transcript
from whyfor.config import Settings
from whyfor.git.identity import identify, normalise
from whyfor.model.sessions import Project
from whyfor.store.open import reading

Cli = Callable[..., Result]
Repo = Callable[..., Path]

SHOP = "https://example.com/ada/shop.git"


def git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(folder), *arguments], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    """Make a repository by its path; with a remote, and with commits unless told otherwise."""

    def make(name: str, *, remote: str | None = None, commits: int = 1) -> Path:
        folder = tmp_path / name
        folder.mkdir(parents=True)
        git(folder, "init", "-q", "-b", "main")
        git(folder, "config", "user.name", "Ada")
        git(folder, "config", "user.email", "ada@example.com")
        for number in range(commits):
            # The path makes the root commit of each repository its own.
            git(folder, "commit", "-q", "--allow-empty", "-m", f"{name} {number}")
        if remote:
            git(folder, "remote", "add", "origin", remote)
        return folder

    return make


def root_of(folder: Path) -> str:
    return f"git:{git(folder, 'rev-list', '--max-parents=0', 'HEAD')}"


# -- the spelling of a remote --------------------------------------------------------------------


@pytest.mark.parametrize(
    "url",
    [
        "https://example.com/ada/shop.git",
        "https://example.com/ada/shop",
        "https://example.com/ada/shop/",
        "https://example.com/ada/shop.git/",
        "http://example.com/ada/shop",
        "https://example.com:8443/ada/shop.git",
        "https://ada@example.com/ada/shop.git",
        "https://ada:s3cret@example.com/ada/shop.git",
        "https://x-access-token:gho_abc@example.com:443/ada/shop",
        "HTTPS://Example.COM/Ada/Shop.git",
        "https://example.com/Ada/Shop.GIT",
        "ssh://git@example.com/ada/shop.git",
        "ssh://git@example.com:2222/ada/shop.git",
        "ssh://example.com/ada/shop",
        "git+ssh://git@example.com/ada/shop.git",
        "git://example.com/ada/shop.git",
        "git@example.com:ada/shop.git",
        "git@example.com:ada/shop",
        "git@example.com:/ada/shop.git",
        "example.com:ada/shop.git/",
        "GIT@EXAMPLE.com:Ada/shop.git",
        "  git@example.com:ada/shop.git\n",
    ],
)
def test_every_spelling_of_a_remote_is_one_identity(url: str) -> None:
    assert normalise(url) == "example.com/ada/shop"


def test_what_is_another_remote_stays_another() -> None:
    others = [
        "git@example.com:ada/shop2",
        "git@example.org:ada/shop",
        "git@example.com:bob/shop",
        "git@example.com:shop",
    ]
    assert len({normalise(url) for url in [SHOP, *others]}) == 5


def test_a_remote_on_this_machine_is_its_path() -> None:
    assert (
        normalise("/srv/git/shop.git") == normalise("file:///srv/git/shop.git/") == "/srv/git/shop"
    )
    assert normalise("/srv/Git/Shop") == "/srv/Git/Shop", "paths may differ by case alone"
    assert normalise("C:\\git\\shop.git") == "C:\\git\\shop"


@pytest.mark.parametrize(
    "url", ["", "/", ":", "://", "x:", "https://", "https://example.com", "file://", "\x00"]
)
def test_any_text_may_stand_where_a_remote_should(url: str) -> None:
    assert normalise(url) == normalise(normalise(url)), url


def test_no_credential_becomes_part_of_an_identity(repo: Repo) -> None:
    found = identify(str(repo("shop", remote="https://ada:s3cret@example.com/ada/shop.git")))
    assert "s3cret" not in repr(found)


# -- a folder's project --------------------------------------------------------------------------


def test_a_repository_with_a_remote_is_known_by_it(repo: Repo) -> None:
    folder = repo("shop", remote=SHOP)
    found = identify(str(folder))
    assert (found.identity, found.evidence, found.name) == (
        "example.com/ada/shop",
        "remote",
        "shop",
    )
    assert (found.remote, found.path) == ("example.com/ada/shop", str(folder))


def test_origin_is_the_remote_that_counts_and_else_the_first(repo: Repo) -> None:
    folder = repo("shop", remote=SHOP)
    git(folder, "remote", "add", "fork", "git@example.com:bob/shop.git")
    assert identify(str(folder)).identity == "example.com/ada/shop"
    git(folder, "remote", "rename", "origin", "upstream")
    assert identify(str(folder)).identity == "example.com/bob/shop"


def test_a_shortened_remote_is_known_by_what_it_stands_for(repo: Repo) -> None:
    folder = repo("shop", remote="work:ada/shop.git")
    git(folder, "config", "url.ssh://git@example.com/.insteadOf", "work:")
    assert identify(str(folder)).identity == "example.com/ada/shop"


def test_without_a_remote_it_is_known_by_its_root_commit(repo: Repo) -> None:
    folder = repo("shop", commits=3)
    found = identify(str(folder))
    assert (found.identity, found.evidence, found.name) == (root_of(folder), "root", "shop")
    assert f"git:{found.root_commit}" == found.identity


def test_without_a_commit_it_is_known_by_its_path(repo: Repo) -> None:
    folder = repo("shop", commits=0)
    (folder / "src").mkdir()
    expected = Project(str(folder), "path", "shop", path=str(folder))
    assert identify(str(folder)) == identify(str(folder / "src")) == expected


def test_a_folder_in_no_repository_is_known_by_its_path(tmp_path: Path) -> None:
    folder = tmp_path / "notes"
    folder.mkdir()
    assert identify(str(folder)) == Project(str(folder), "path", "notes", path=str(folder))


@pytest.mark.parametrize("remote", [None, SHOP])
def test_every_folder_of_a_repository_is_the_same_project(remote: str | None, repo: Repo) -> None:
    folder = repo("shop", remote=remote)
    (folder / "src" / "deep").mkdir(parents=True)
    assert identify(str(folder / "src" / "deep")) == identify(str(folder))


@pytest.mark.parametrize("remote", [None, SHOP])
def test_a_linked_worktree_is_the_same_project(
    remote: str | None, repo: Repo, tmp_path: Path
) -> None:
    folder = repo("shop", remote=remote)
    git(folder, "worktree", "add", "-q", str(tmp_path / "elsewhere"), "-b", "feature")
    assert identify(str(tmp_path / "elsewhere")) == identify(str(folder))


def test_clones_of_one_remote_are_one_project(repo: Repo, tmp_path: Path) -> None:
    origin = repo("origin")
    for name, url in (("a/shop", SHOP), ("b/shop-again", "git@example.com:ada/shop.git")):
        git(tmp_path, "clone", "-q", str(origin), name)
        git(tmp_path / name, "remote", "set-url", "origin", url)
    found = [identify(str(tmp_path / name)).identity for name in ("a/shop", "b/shop-again")]
    assert found == ["example.com/ada/shop"] * 2


def test_clones_of_a_hub_on_this_machine_are_one_project(repo: Repo, tmp_path: Path) -> None:
    git(tmp_path, "clone", "-q", "--bare", str(repo("origin")), "hub.git")
    for name in ("one", "two"):
        git(tmp_path, "clone", "-q", str(tmp_path / "hub.git"), name)
    git(tmp_path / "two", "remote", "set-url", "origin", "../hub.git")
    assert identify(str(tmp_path / "one")).identity == identify(str(tmp_path / "two")).identity


def test_a_clone_of_a_repository_on_this_machine_is_its_project(repo: Repo, tmp_path: Path) -> None:
    folder = repo("shop")
    git(tmp_path, "clone", "-q", str(folder), "copy")
    assert identify(str(tmp_path / "copy")).identity == identify(str(folder)).identity


def test_a_bare_repository_is_a_project_where_the_user_names_it(repo: Repo, tmp_path: Path) -> None:
    folder = repo("shop")
    git(tmp_path, "clone", "-q", "--bare", str(folder), "hub.git")
    hub = tmp_path / "hub.git"
    git(hub, "remote", "remove", "origin")
    assert identify(str(hub), named=True).identity == root_of(folder)
    assert identify(str(hub / "refs"), named=True).identity == root_of(folder)
    assert identify(str(hub)) == Project(str(hub), "path", "hub.git", path=str(hub)), (
        "an agent that ran there did not"
    )


def test_a_bare_repository_in_a_work_tree_is_part_of_that_work_tree(repo: Repo) -> None:
    folder = repo("shop", remote=SHOP)
    git(folder, "init", "-q", "--bare", "vendor/hub.git")
    git(
        folder / "vendor" / "hub.git",
        "config",
        "remote.origin.url",
        "https://example.com/eve/other.git",
    )
    for named in (False, True):
        assert (
            identify(str(folder / "vendor" / "hub.git" / "refs"), named=named).identity
            == "example.com/ada/shop"
        )


def test_a_remote_inside_the_work_tree_that_names_it_is_not_asked(repo: Repo) -> None:
    folder = repo("shop", remote="./vendor/hub.git")
    git(folder, "clone", "-q", "--bare", ".", "vendor/hub.git")
    git(
        folder / "vendor" / "hub.git",
        "config",
        "remote.origin.url",
        "https://example.com/eve/other.git",
    )
    assert identify(str(folder)).identity == str(folder / "vendor" / "hub")


def test_partial_clones_and_a_full_clone_of_one_remote_are_one_project(
    repo: Repo, tmp_path: Path
) -> None:
    origin = repo("origin")
    git(origin, "config", "uploadpack.allowFilter", "true")
    for name, options in (("a", ["--filter=blob:none"]), ("b", ["--filter=tree:0"]), ("c", [])):
        git(tmp_path, "clone", "-q", *options, f"file://{origin}", name)
        git(tmp_path / name, "remote", "set-url", "origin", SHOP)
    found = [identify(str(tmp_path / name)) for name in ("a", "b", "c")]
    assert [(project.identity, project.evidence) for project in found] == [
        ("example.com/ada/shop", "remote")
    ] * 3


def test_a_repository_in_a_repository_is_its_own_project(repo: Repo) -> None:
    outer = repo("shop", remote=SHOP)
    inner = repo("shop/vendor/lib")
    assert identify(str(inner)).identity == root_of(inner)
    assert identify(str(outer)).identity == "example.com/ada/shop"


# -- what is gone --------------------------------------------------------------------------------


def test_a_removed_worktree_inside_a_repository_was_of_that_repository(repo: Repo) -> None:
    folder = repo("shop")
    worktrees = folder / ".claude" / "worktrees"
    for name in ("one", "two"):
        git(folder, "worktree", "add", "-q", str(worktrees / name), "-b", name)
    git(folder, "worktree", "remove", str(worktrees / "one"))
    assert identify(str(worktrees / "one")).identity == root_of(folder), (
        "while another worktree is still there"
    )
    git(folder, "worktree", "remove", str(worktrees / "two"))
    assert identify(str(worktrees / "two" / "src")).identity == root_of(folder)
    shutil.rmtree(folder / ".claude")
    assert identify(str(worktrees / "one")).identity == root_of(folder)


def test_a_folder_that_is_gone_is_known_by_its_path(tmp_path: Path) -> None:
    gone = str(tmp_path / "gone" / "shop")
    assert identify(gone) == Project(gone, "path", "shop", path=gone)


@pytest.mark.parametrize(
    "inside", [".claude/worktrees/feature", ".claude/worktrees/a/src", ".worktrees/feature"]
)
def test_a_worktree_that_is_gone_with_its_repository_was_of_it(tmp_path: Path, inside: str) -> None:
    gone = str(tmp_path / "gone" / "shop")
    assert identify(f"{gone}/{inside}") == identify(gone)
    windows = r"C:\code\shop"
    assert identify(windows + "\\" + inside.replace("/", "\\")).identity == windows
    assert identify(f"{gone}/.worktrees").identity == f"{gone}/.worktrees", "it is in none"


def test_a_home_under_version_control_does_not_take_in_what_is_gone(home: Path) -> None:
    git(home, "init", "-q")
    gone = str(home / "projects" / "shop")
    assert identify(gone) == Project(gone, "path", "shop", path=gone)


@pytest.mark.parametrize(
    "cwd",
    ["/nowhere/at/all", "relative", "C:\\work\\shop", "/w/\udcff", "/" + "x" * 5000, "/a\x00b"],
)
def test_any_text_may_stand_where_a_folder_should(cwd: str) -> None:
    found = identify(cwd)
    assert (found.identity, found.evidence) == (cwd, "path")


def test_a_folder_on_windows_is_named_by_its_last_part() -> None:
    assert identify("C:\\work\\shop").name == "shop"


def test_a_repository_git_cannot_read_is_known_by_its_path(repo: Repo) -> None:
    folder = repo("shop")
    (folder / ".git" / "HEAD").write_text("nonsense")
    assert identify(str(folder)) == Project(str(folder), "path", "shop", path=str(folder))


# -- never shared --------------------------------------------------------------------------------


def test_two_repositories_with_the_same_folder_name_never_share(repo: Repo) -> None:
    pairs: list[tuple[dict[str, Any], dict[str, Any]]] = [
        ({}, {}),
        ({"commits": 0}, {"commits": 0}),
        ({"remote": SHOP}, {"remote": "https://example.com/bob/shop.git"}),
        ({"remote": SHOP}, {}),
    ]
    for number, (one, two) in enumerate(pairs):
        folders = repo(f"{number}/a/shop", **one), repo(f"{number}/b/shop", **two)
        found = [identify(str(folder)) for folder in folders]
        assert found[0].identity != found[1].identity
        assert [project.name for project in found] == ["shop", "shop"]


def test_remotes_beside_two_repositories_are_two_remotes(repo: Repo) -> None:
    folders = [repo(f"{name}/shop", remote="../hub.git") for name in ("a", "b")]
    first, second = (identify(str(folder)).identity for folder in folders)
    assert first != second


# -- through ingest ------------------------------------------------------------------------------


class Ingested:
    """Sessions in folders, ingested one after the other."""

    def __init__(self, home: Path, cli: Cli) -> None:
        self.home = home
        self.cli = cli

    def session(self, name: str, cwd: Path) -> Transcript:
        made = Transcript(name, cwd=str(cwd))
        made.prompt(f"Prompt of {name}")
        self.save(made)
        return made

    def save(self, made: Transcript) -> None:
        made.save(self.home)
        assert self.cli("ingest", "--json").code == 0

    def rebuild(self) -> None:
        assert self.cli("rebuild", "--json").code == 0

    @property
    def projects(self) -> dict[str, str]:
        """Of each session by its title."""
        return {
            s["title"].removeprefix("Prompt of "): s["project"]
            for s in self.cli("sessions", "--json").json
        }


@pytest.fixture
def ingested(home: Path, cli: Cli) -> Ingested:
    return Ingested(home, cli)


@pytest.mark.parametrize(
    "variable", ["GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR", "GIT_CONFIG", "GIT_NAMESPACE"]
)
def test_what_a_shell_exports_for_git_does_not_mislabel_a_folder(
    variable: str, repo: Repo, ingested: Ingested, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    other, plain = repo("other", remote="https://example.com/eve/other.git"), tmp_path / "plain"
    folder = repo("shop", remote=SHOP)
    plain.mkdir()
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "remote.origin.url")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "https://example.com/eve/other.git")
    monkeypatch.setenv(
        "GIT_CONFIG_PARAMETERS", "'remote.origin.url=https://example.com/eve/other.git'"
    )
    monkeypatch.setenv(variable, str(other if variable == "GIT_WORK_TREE" else other / ".git"))
    ingested.session("one", folder)
    ingested.session("two", plain)
    assert ingested.projects == {"one": "example.com/ada/shop", "two": str(plain)}
    monkeypatch.chdir(folder)
    assert [told["subject"] for told in ingested.cli("log", "--json").json] == ["shop 0"]


def test_a_repository_that_gets_its_first_commit_and_then_a_remote_stays_one_project(
    repo: Repo, ingested: Ingested
) -> None:
    folder = repo("shop", commits=0)
    ingested.session("one", folder)
    assert ingested.projects == {"one": str(folder)}
    git(folder, "commit", "-q", "--allow-empty", "-m", "first")
    ingested.session("two", folder)
    assert ingested.projects == dict.fromkeys(("one", "two"), root_of(folder))
    git(folder, "remote", "add", "origin", SHOP)
    ingested.session("three", folder)
    assert ingested.projects == dict.fromkeys(("one", "two", "three"), "example.com/ada/shop")
    assert [row["name"] for row in ingested.cli("stats", "--json").json["by_project"]] == [
        "example.com/ada/shop"
    ]
    ingested.rebuild()
    assert ingested.projects == dict.fromkeys(("one", "two", "three"), "example.com/ada/shop")


def test_a_repository_that_gets_a_remote_another_clone_has_joins_it(
    repo: Repo, ingested: Ingested
) -> None:
    first, second = repo("a/shop"), repo("b/shop", remote=SHOP)
    ingested.session("one", first)
    ingested.session("two", second)
    git(first, "remote", "add", "origin", SHOP)
    ingested.session("three", first)
    assert ingested.projects == dict.fromkeys(("one", "two", "three"), "example.com/ada/shop")
    ingested.rebuild()
    assert ingested.projects == dict.fromkeys(("one", "two", "three"), "example.com/ada/shop")


def test_what_is_known_of_a_project_is_the_same_after_a_rebuild(
    repo: Repo, ingested: Ingested, settings: Settings
) -> None:
    def known() -> list[Project]:
        with reading(settings) as library:
            return [project for _, project in library.projects.known()]

    first, second = repo("a/shop", remote=SHOP), repo("b/shop", remote=SHOP)
    for name, folder in (("one", first), ("two", second), ("three", first)):
        ingested.session(name, folder)
    before = known()
    ingested.rebuild()
    assert known() == before


def test_another_repository_in_the_same_place_is_another_project(
    repo: Repo, ingested: Ingested
) -> None:
    folder = repo("shop")
    root = root_of(folder)
    ingested.session("one", folder)
    shutil.rmtree(folder)
    repo("another", remote=SHOP).rename(folder)
    ingested.session("two", folder)
    assert ingested.projects == {"one": root, "two": "example.com/ada/shop"}
    ingested.rebuild()
    assert ingested.projects == {"one": root, "two": "example.com/ada/shop"}


@pytest.mark.parametrize("remote", [None, SHOP])
def test_a_folder_that_is_gone_later_keeps_its_project(
    remote: str | None, repo: Repo, ingested: Ingested
) -> None:
    folder = repo("shop", remote=remote)
    known = identify(str(folder)).identity
    made = ingested.session("one", folder)
    shutil.rmtree(folder)
    made.say("More, after the folder was gone")
    ingested.save(made)
    ingested.session("two", folder)
    assert ingested.projects == {"one": known, "two": known}
    ingested.rebuild()
    assert ingested.projects == {"one": known, "two": known}


def test_sessions_that_name_their_remote_are_of_one_project_though_their_folders_are_gone(
    ingested: Ingested, tmp_path: Path
) -> None:
    day = ingested.home / ".codex/sessions/2026/05/01"
    day.mkdir(parents=True)
    for number, (url, cwd) in enumerate(
        ((SHOP, "shop"), ("git@example.com:ada/shop.git", "wt/feature"), ("../bare", "other"))
    ):
        ident = f"019d0000-000{number}-7000-8000-000000000001"
        head = {"id": ident, "cwd": str(tmp_path / "gone" / cwd), "git": {"repository_url": url}}
        lines = [
            {"timestamp": "2026-05-01T10:00:00Z", "type": "session_meta", "payload": head},
            {
                "timestamp": "2026-05-01T10:00:01Z",
                "type": "event_msg",
                "payload": {"type": "user_message", "message": f"Prompt of {cwd}"},
            },
        ]
        text = "".join(json.dumps(line) + "\n" for line in lines)
        (day / f"rollout-2026-05-01T10-00-00-{ident}.jsonl").write_text(text)
    ingested.session("claude's", tmp_path / "gone" / "wt/feature")
    shop, other = "example.com/ada/shop", str(tmp_path / "gone" / "other")
    wanted = {"shop": shop, "wt/feature": shop, "claude's": shop, "other": other}
    assert ingested.projects == wanted
    ingested.rebuild()
    assert ingested.projects == wanted


@pytest.mark.parametrize("first", ["caller", "subagent"])
def test_a_subagent_that_does_not_say_where_it_ran_is_of_its_callers_project(
    first: str, repo: Repo, ingested: Ingested
) -> None:
    folder = repo("shop", remote=SHOP)
    caller, child = Transcript("caller", cwd=str(folder)), Transcript("child")
    caller.prompt("Prompt of caller")
    child.session_id = caller.session_id
    child.prompt("Prompt of child")
    for line in child.lines:
        del line["cwd"]
        line |= {"agentId": "a1b2c3", "isSidechain": True}
    below = caller.path(ingested.home).with_suffix("") / "subagents" / "agent-a1b2c3.jsonl"
    below.parent.mkdir(parents=True)
    text = "".join(json.dumps(line) + "\n" for line in child.lines)
    if first == "caller":
        ingested.save(caller)
        below.write_text(text)
        assert ingested.cli("ingest", "--json").code == 0
    else:
        below.write_text(text)
        assert ingested.cli("ingest", "--json").code == 0
        ingested.save(caller)
    for _ in range(2):
        listed = ingested.cli("sessions", "--all", "--json").json
        assert [session["project"] for session in listed] == ["example.com/ada/shop"] * 2
        ingested.rebuild()


def test_sessions_of_clones_and_worktrees_are_listed_together(
    repo: Repo, ingested: Ingested, tmp_path: Path
) -> None:
    folder = repo("shop", remote=SHOP)
    git(folder, "worktree", "add", "-q", str(tmp_path / "tree"), "-b", "feature")
    (folder / "src").mkdir()
    for name, cwd in (("one", folder), ("two", tmp_path / "tree"), ("three", folder / "src")):
        ingested.session(name, cwd)
    ingested.session("other", repo("b/shop"))
    for asked in ("example.com/ada/shop", SHOP, str(folder / "src"), str(tmp_path / "tree")):
        found = json.loads(ingested.cli("sessions", "--project", asked, "--json").out)
        assert {s["title"].removeprefix("Prompt of ") for s in found} == {"one", "two", "three"}

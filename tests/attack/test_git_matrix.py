"""No program that a repository names is run by us, whatever is asked of it and wherever it comes
from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.attack.hostile import KINDS, Hostile
from tests.conftest import Result
from tests.server.wire import served
from tests.story.links.workshop import Agent, Repo, body
from whyfor import config
from whyfor.live.loop import LiveLoop
from whyfor.model.attention import Firing
from whyfor.model.status import LiveStatus
from whyfor.service.ingest import sweep

Cli = Callable[..., Result]
BUG = 3  # the exit code of an error nobody expected


@pytest.fixture
def hostile(
    request: pytest.FixtureRequest, tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> Hostile:
    made = Hostile(request.param, tmp_path / "there", home)
    made.canary.ran()
    monkeypatch.chdir(made.cwd)
    monkeypatch.setenv("PATH", str(made.canary.programs), prepend=":")
    return made


def verbs(hostile: Hostile) -> Iterator[list[str]]:
    """Everything that asks git."""
    first, last = hostile.made[0], hostile.made[-1]
    yield ["ingest"]
    yield ["log", "--limit", "0"]
    yield ["log", "--all", "--json"]
    yield ["show"]
    yield ["show", first]
    yield ["show", last, "--json"]
    yield ["status"]
    yield ["status", "--json"]
    yield ["diff", first, last]
    yield ["blame", "numbat.py"]
    yield ["blame", "--line-porcelain", "-w", "-C", "quokka.py", "HEAD"]
    yield ["why", "numbat.py:1"]
    yield ["why", "--gone", "quokka"]
    yield ["lines", f"{first}..HEAD"]
    yield ["export", f"{first}..HEAD"]
    yield ["export", last, "--tools"]
    yield ["restore", last, "--yes"]
    yield ["projects"]
    yield ["projects", "alias", "/old/place", "."]
    yield ["link"]
    yield ["note", last, "--title", "Add a numbat"]
    yield ["search", "numbat"]
    yield ["sessions", "--project", "."]
    yield ["stats"]
    yield ["pause", "--repo", "."]
    yield ["resume", "--repo", "."]
    yield ["forget", first, "--dry-run"]
    yield ["init", "--dry-run"]
    yield ["doctor"]
    yield ["init"]
    yield ["doctor"]
    yield ["ingest"]
    yield ["uninstall", "--all"]
    yield ["rebuild"]


class Audience:
    """Whoever looks on while the live loop reads."""

    trouble: str | None = None

    def publish(self) -> None: ...

    def stand(self, standings: Iterable[LiveStatus]) -> None: ...

    def attend(self, firings: list[Firing], told: list[Firing]) -> None: ...


@pytest.mark.parametrize("hostile", KINDS, indirect=True)
def test_no_verb_runs_a_program_that_a_repository_names(hostile: Hostile, cli: Cli) -> None:
    for verb in verbs(hostile):
        done = cli(*verb)
        assert hostile.canary.ran() == set(), verb
        assert done.code != BUG, (verb, done.err)


@pytest.mark.parametrize("hostile", KINDS, indirect=True)
def test_neither_the_live_loop_nor_a_page_runs_one(hostile: Hostile) -> None:
    settings = config.load()
    clock = [1000.0]
    watching = LiveLoop(settings, Audience(), sweep, clock=lambda: clock[0])
    for _ in range(40):
        clock[0] += max(watching.turn(), 0.05)
    watching.close()
    assert hostile.canary.ran() == set()
    with served(settings) as server:
        projects = server.get("/api/v1/projects").json["items"]
        assert projects
        pages = ["/", "/now/board", "/timeline", *(f"/commits/{sha}" for sha in hostile.made)]
        for project in projects:
            name = quote(project["identity"], safe="")
            pages += [f"/timeline?project={name}", f"/timeline?project={name}&branch=*"]
            pages += [f"/api/v1/commits?project={name}", f"/api/v1/sessions?project={name}"]
        for page in pages:
            assert server.get(page).status < 500, page
            assert hostile.canary.ran() == set(), page
        told = server.get(f"/commits/{hostile.made[-1]}")
        assert "Add numbat" in told.everything


# -- the matrix can fail -------------------------------------------------------------------------


@pytest.mark.parametrize("hostile", ["plain"], indirect=True)
def test_plain_git_runs_them_in_a_repository_somebody_unpacked(hostile: Hostile) -> None:
    quokka, numbat = hostile.made
    (hostile.cwd / "README.md").touch()
    commands: dict[tuple[str, ...], set[str]] = {
        ("diff-tree", "-p", numbat): {"core.fsmonitor"},
        ("status",): {"core.fsmonitor", "filter.process"},
        ("-c", "filter.longer.process=", "status"): {"filter.clean", "hook.post-index-change"},
        ("diff", "--", "numbat.py"): {"diff.command"},
        ("diff", "--no-ext-diff", quokka, numbat): {"diff.textconv"},
        ("log", "-1"): {"gpg.program"},
        ("branch", "x"): {"hook.reference-transaction"},
        ("fetch", "o"): {"remote.uploadpack"},
        ("fetch", "ext"): {"remote.ext"},
        ("fetch", "ssh"): {"core.sshCommand"},
        ("fetch", "proxied"): {"core.gitProxy"},
        ("fetch", "vcs"): {"git-remote-canary"},
        ("cat-file", "-p", f"{quokka}:quokka.py"): {
            "remote.uploadpack",
            "remote.ext",
            "core.sshCommand",
        },
    }
    for command, expected in commands.items():
        hostile.git(*command)
        assert hostile.canary.ran() >= expected, command


@pytest.mark.parametrize("hostile", ["embedded bare", "embedded work tree"], indirect=True)
def test_plain_git_runs_them_in_a_folder_of_a_clone(hostile: Hostile) -> None:
    hostile.git("rev-list", "--max-parents=0", "HEAD", "--")
    assert "remote.uploadpack" in hostile.canary.ran()
    if hostile.cwd.name == "hub":
        hostile.git("diff-tree", "-p", "HEAD", "--")
        assert "core.fsmonitor" in hostile.canary.ran(), "it has a work tree"


# -- what is still told --------------------------------------------------------------------------


@pytest.mark.parametrize("hostile", ["embedded bare", "embedded work tree"], indirect=True)
def test_a_session_in_such_a_folder_is_of_the_repository_around_it(
    hostile: Hostile, cli: Cli
) -> None:
    assert cli("ingest").code == 0
    root = hostile.shop.git("rev-list", "--max-parents=0", "HEAD")
    assert {session["project"] for session in cli("sessions", "--json").json} == {f"git:{root}"}
    assert [told["commit"] for told in cli("log", "--json").json][1:3] == hostile.made[::-1]


@pytest.mark.parametrize("hostile", ["embedded bare"], indirect=True)
def test_without_a_repository_around_it_the_folder_is_known_by_its_path(
    hostile: Hostile, cli: Cli
) -> None:
    hostile.shop.path.joinpath(".git").rename(hostile.shop.path / "git-is-gone")
    assert cli("ingest").code == 0
    assert hostile.canary.ran() == set()
    found = {session["cwd"]: session["project"] for session in cli("sessions", "--json").json}
    assert found[str(hostile.cwd)] == str(hostile.cwd)


@pytest.mark.parametrize("hostile", ["plain"], indirect=True)
def test_status_says_which_files_it_could_not_look_at(hostile: Hostile, cli: Cli) -> None:
    assert cli("ingest").code == 0
    found = cli("status", "--json").json
    assert [Path(path).name for item in found["open"] for path in item["files"]] == ["bilby.py"]
    assert [Path(item["path"]).name for item in found["unread"]] == ["numbat.py", "quokka.py"]
    assert "the filter canary" in found["unread"][0]["reason"]
    assert "Could not look at" in cli("status").out


@pytest.mark.parametrize("hostile", ["plain"], indirect=True)
def test_a_repository_that_git_cannot_read_stops_no_other(
    hostile: Hostile, cli: Cli, tmp_path: Path, home: Path
) -> None:
    root = hostile.shop.sha(f"{hostile.made[0]}~1")
    (hostile.cwd / ".git" / "objects" / root[:2] / root[2:]).unlink()
    other = Repo.made(tmp_path / "other", hostile.clock)
    agent = Agent("elsewhere", other)
    agent.prompt("Write a wombat")
    agent.write("wombat.py", body("wombat"))
    made = agent.commit("Add wombat")
    agent.save(home)
    done = cli("ingest")
    assert (done.code, hostile.canary.ran()) == (0, set()), done.err
    assert cli("show", made, "--json").json["checkpoint"]["sessions"]
    assert "git does not understand" in cli("log").err, "it is said where it is asked for"

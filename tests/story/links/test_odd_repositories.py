"""Repositories that are not like others, and folders that are gone."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.story.links.workshop import Agent, Cli, Clock, Repo, Workshop, body, linked, part_of
from whyfor.git import history
from whyfor.git import run as git_run
from whyfor.story.links import resolve


def work(agent: Agent, name: str = "cart") -> str:
    agent.prompt(f"Add a {name}")
    agent.write(f"{name}.py", body(name))
    made = agent.commit(f"Add a {name}")
    agent.say(f"The {name} is there.")
    return made


def evidence(shop: Workshop) -> str:
    return "hook" if shop.hooked else "output"


def moved(agent: Agent, folder: str) -> None:
    """As if everything had happened in another folder."""
    text, old = agent.text(), agent.cwd
    agent.lines = [_replaced(line, old, folder) for line in agent.lines]
    assert old in text
    agent.cwd = folder


def _replaced(value: Any, old: str, new: str) -> Any:
    if isinstance(value, dict):
        return {name: _replaced(item, old, new) for name, item in value.items()}
    if isinstance(value, list):
        return [_replaced(item, old, new) for item in value]
    if isinstance(value, str):
        windows = "\\" in new and value.startswith(old)
        return value.replace(old, new).replace("/", "\\") if windows else value.replace(old, new)
    return value


# -- kinds of repositories -----------------------------------------------------------------------


def test_a_worktree(shop: Workshop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shop.repo.git("worktree", "add", "-q", str(tmp_path / "code" / "beside"))
    beside = shop.repo.at(tmp_path / "code" / "beside")
    agent = Agent("s1", beside)
    made = work(agent)
    agent.write("till.py", body("till"))
    by_hand = beside.commit("A till")
    shop.ingest(agent)
    monkeypatch.chdir(beside.path)
    assert [shop.links()[sha] for sha in (made, by_hand)] == [
        {agent.session_id: evidence(shop)},
        {agent.session_id: "content"},
    ]
    monkeypatch.chdir(shop.repo.path)
    assert shop.links("beside")[made] == {agent.session_id: evidence(shop)}


def test_a_worktree_that_was_taken_away_again(shop: Workshop) -> None:
    """Agents make them below the repository for one task."""
    where = shop.repo.path / ".claude" / "worktrees" / "task"
    shop.repo.write(".gitignore", ".claude/\n")
    shop.repo.commit("Not these")
    shop.repo.git("worktree", "add", "-q", "-b", "task", str(where))
    beside = shop.repo.at(where)
    agent = Agent("s1", beside)
    agent.prompt("Add a cart")
    agent.write("cart.py", body("cart"))
    by_hand = beside.commit("A cart")
    made = work(agent, "till")
    shop.repo.git("worktree", "remove", "--force", str(where))
    shop.repo.git("merge", "-q", "--ff-only", "task")
    shop.ingest(agent)
    links = shop.links()
    assert links[by_hand] == {agent.session_id: "content"}
    assert links[made] == {agent.session_id: evidence(shop)}


def test_a_submodule_is_a_project_of_its_own(
    shop: Workshop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = Repo.made(tmp_path / "code" / "library", shop.repo.clock, first=False)
    library.commit("Library", {"README.md": "A library.\n"})
    shop.repo.git(
        "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(library.path), "library"
    )
    shop.repo.commit("With the library")
    inside = shop.repo.at(shop.repo.path / "library")
    if shop.hooked:
        shop.install(inside)
    agent = Agent("s1", shop.repo)
    agent.prompt("Add a saw to the library")
    agent.write("saw.py", body("saw"), repo=inside)
    inner = agent.commit("Add a saw", repo=inside)
    outer = agent.commit("Take the new library")
    shop.ingest(agent)
    assert shop.links()[outer] == {agent.session_id: evidence(shop)}
    monkeypatch.chdir(inside.path)
    assert shop.links()[inner] == {agent.session_id: evidence(shop)}


def test_a_detached_head(shop: Workshop) -> None:
    shop.repo.git("checkout", "-q", "--detach")
    agent = Agent("s1", shop.repo)
    made = work(agent)
    shop.ingest(agent)
    assert shop.links()[made] == {agent.session_id: evidence(shop)}
    shop.repo.git("checkout", "-q", "main")
    assert linked(shop.show(made)) == {agent.session_id: evidence(shop)}
    assert shop.show(made)["checkpoint"]["superseded_by"] is None


@pytest.mark.parametrize("hooks", [False, True], ids=["inferred", "hooked"])
def test_the_first_commit(
    tmp_path: Path, home: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch, hooks: bool
) -> None:
    repo = Repo.made(tmp_path / "code" / "fresh", Clock(), first=False)
    monkeypatch.chdir(repo.path)
    shop = Workshop(home, repo, cli, hooked=hooks)
    agent = Agent("s1", repo)
    agent.prompt("Begin")
    shop.ingest(agent)
    assert shop.log() == {}
    agent.write("cart.py", body("cart"))
    made = agent.commit("Begin with a cart")
    shop.ingest(agent)
    assert shop.links() == {made: {agent.session_id: evidence(shop)}}
    assert part_of(shop.log()[made], agent)["from"] == 1


def test_an_empty_commit(shop: Workshop) -> None:
    agent = Agent("s1", shop.repo)
    agent.prompt("Start the build")
    agent.run("git commit --allow-empty -m 'Start the build'")
    made = shop.repo.head
    by_hand = shop.repo.commit("Again", {}, "--allow-empty")
    shop.ingest(agent)
    assert shop.links()[made] == {agent.session_id: evidence(shop)}
    assert shop.links()[by_hand] == {}
    assert shop.show(made)["files"] == []


def test_a_shallow_clone(shop: Workshop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its oldest commit seems to add every line there is: that is nobody's work."""
    agent = Agent("s1", shop.repo)
    work(agent)
    agent.write("till.py", body("till"))
    shop.repo.commit("A till")
    edge = shop.repo.commit("Mine", {"mine.py": body("mine")})
    last = work(agent, "door")
    shop.repo.git(
        "clone", "-q", "--depth=2", f"file://{shop.repo.path}", str(tmp_path / "work" / "shop")
    )
    shop.ingest(agent)
    monkeypatch.chdir(tmp_path / "work" / "shop")
    assert shop.links() == {last: {agent.session_id: evidence(shop)}, edge: {}}


def test_a_shallow_clone_alone(
    plain: Workshop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The original is gone, and its sessions were told to belong here."""
    agent = Agent("s1", plain.repo)
    work(agent)
    edge = plain.repo.commit("Mine", {"mine.py": body("mine")})
    last = work(agent, "door")
    clone = tmp_path / "work" / "shop"
    plain.repo.git("clone", "-q", "--depth=2", f"file://{plain.repo.path}", str(clone))
    moved(agent, "/code/elsewhere/shop")
    shutil.rmtree(plain.repo.path)
    monkeypatch.chdir(clone)
    plain.ingest(agent)
    assert (
        plain.cli("projects", "alias", "/code/elsewhere/shop", ".", "--json").json["sessions"] == 1
    )
    assert plain.links() == {last: {agent.session_id: "output"}, edge: {}}


def test_a_bare_repository_that_is_pushed_to(
    shop: Workshop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.repo.git("init", "-q", "--bare", "-b", "main", str(tmp_path / "hub.git"))
    shop.repo.git("remote", "add", "origin", str(tmp_path / "hub.git"))
    agent = Agent("s1", shop.repo)
    made = work(agent)
    agent.run("git push -q origin main")
    shop.ingest(agent)
    assert shop.links()[made] == {agent.session_id: evidence(shop)}
    monkeypatch.chdir(tmp_path / "hub.git")
    assert shop.links()[made] == {agent.session_id: evidence(shop)}


def test_a_repository_without_commits(
    tmp_path: Path, home: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo = Repo.made(tmp_path / "code" / "fresh", Clock(), first=False)
    monkeypatch.chdir(repo.path)
    shop = Workshop(home, repo, cli, hooked=True)
    agent = Agent("s1", repo)
    agent.prompt("Begin")
    agent.write("cart.py", body("cart"))
    shop.ingest(agent)
    assert shop.log() == {}
    assert cli("status", "--json").json["head"] is None
    failed = cli("show", "HEAD")
    assert (failed.code != 0, "Traceback" in failed.err) == (True, False)


def test_a_repository_with_long_hashes(
    tmp_path: Path, home: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo = Repo.made(tmp_path / "code" / "long", Clock(), "--object-format=sha256")
    monkeypatch.chdir(repo.path)
    shop = Workshop(home, repo, cli, hooked=True)
    agent = Agent("s1", repo)
    made = work(agent)
    assert len(made) == 64
    agent.write("till.py", body("till"))
    by_hand = repo.commit("A till")
    repo.git("commit", "-q", "--amend", "-m", "A till of mine")
    shop.ingest(agent)
    links = shop.links()
    assert links[made] == {agent.session_id: "hook"}
    assert agent.session_id in links[repo.head]
    assert shop.show(by_hand)["checkpoint"]["superseded_by"] == repo.head
    ident = shop.show(made)["checkpoint"]["id"]
    shutil.rmtree(repo.path)
    monkeypatch.chdir(tmp_path)
    assert shop.show(made)["checkpoint"]["id"] == ident


@pytest.mark.parametrize("quote", ["true", "false"])
@pytest.mark.parametrize(
    "name", ["größe/naïve ☃.py", 'with "quotes".py', "tab\there.py", "a b/c d.py", "-dash.py"]
)
def test_odd_names_of_files(plain: Workshop, name: str, quote: str) -> None:
    plain.repo.git("config", "core.quotePath", quote)
    agent = Agent("s1", plain.repo)
    agent.prompt("Write that file")
    agent.write(name, body("odd"))
    made = plain.repo.commit("A file with an odd name")
    plain.ingest(agent)
    assert plain.links()[made] == {agent.session_id: "content"}
    assert plain.show(made)["files"] == [{"path": name, "added": 6, "removed": 0}]


def test_a_repository_in_a_folder_with_an_odd_name(
    tmp_path: Path, home: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo = Repo.made(tmp_path / "code" / 'größe "x" $HOME', Clock())
    monkeypatch.chdir(repo.path)
    shop = Workshop(home, repo, cli, hooked=True)
    agent = Agent("s1", repo)
    made = work(agent)
    shop.ingest(agent)
    assert shop.links()[made] == {agent.session_id: "hook"}


def test_files_renamed_by_the_agent(shop: Workshop) -> None:
    shop.repo.commit("Start", {"cart.py": body("cart", 20)})
    agent = Agent("s1", shop.repo)
    agent.prompt("Call it basket")
    agent.run("git mv cart.py basket.py")
    made = shop.repo.commit("Baskets")
    shop.ingest(agent)
    assert shop.links()[made] == {agent.session_id: "content"}


# -- a long history ------------------------------------------------------------------------------


def test_a_history_of_fifty_thousand_commits_is_not_all_looked_at(
    plain: Workshop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = 50_000
    first = plain.repo.clock.now - 86_400 * 400
    stream = "".join(
        f"commit refs/heads/long\ncommitter Ada <ada@example.org> {first + n * 60} +0000\ndata "
        f"3\nx{n % 10}\n"
        f"M 100644 inline f{n % 7}.txt\ndata {len(str(n)) + 1}\n{n}\n\n"
        for n in range(old)
    )
    (tmp_path / "stream").write_text(stream)
    plain.repo.shell(f"git fast-import --quiet < {tmp_path / 'stream'}")
    plain.repo.git("checkout", "-q", "long")
    agent = Agent("s1", plain.repo)
    made = work(agent)
    counted = Counted(monkeypatch)
    plain.ingest(agent)
    assert 1 <= counted.judged <= 10
    assert counted.processes < 60
    counted.reset()
    told = plain.cli("log", "--json").json
    assert (len(told), told[0]["commit"]) == (old + 1, made)
    assert counted.judged == 0
    assert counted.processes < 40
    counted.reset()
    agent.prompt("And a till")
    agent.write("till.py", body("till"))
    second = agent.commit("Add a till")
    plain.ingest(agent)
    assert 1 <= counted.judged <= 10
    assert linked(plain.show(second)) == {agent.session_id: "output"}


class Counted:
    """How many commits were diffed, and how often git was asked."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.judged = self.processes = 0
        changes = history.read_changes

        def counting(folder: Path, shas: Any) -> Any:
            listed = list(shas)
            self.judged += len(listed)
            return changes(folder, listed)

        def one(function: Any) -> Any:
            def call(*arguments: Any, **options: Any) -> Any:
                self.processes += 1
                return function(*arguments, **options)

            return call

        monkeypatch.setattr(history, "read_changes", counting)
        monkeypatch.setattr(git_run, "_started", one(git_run._started))

    def reset(self) -> None:
        self.judged = self.processes = 0


# -- folders that are gone -----------------------------------------------------------------------


def test_a_repository_deleted_after_it_was_read(
    shop: Workshop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = Agent("s1", shop.repo)
    made = work(agent)
    shop.ingest(agent)
    before = shop.show(made)
    monkeypatch.chdir(tmp_path)
    shutil.rmtree(shop.repo.path)
    shop.ingest(agent)
    for name in (made, made[:10], before["checkpoint"]["id"], before["checkpoint"]["id"][:12]):
        assert shop.show(name)["checkpoint"] == before["checkpoint"]
        assert shop.show(name)["conversation"] == before["conversation"]
    assert shop.cli("rebuild", "--json").code == 0
    assert shop.show(made)["checkpoint"] == before["checkpoint"]
    assert shop.cli("log").code != 0


def test_a_repository_that_moved(
    shop: Workshop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = Agent("s1", shop.repo)
    made = work(agent)
    agent.write("till.py", body("till"))
    by_hand = shop.repo.commit("A till")
    monkeypatch.chdir(tmp_path)
    shop.repo.path.rename(tmp_path / "moved")
    shop.ingest(agent)
    monkeypatch.chdir(tmp_path / "moved")
    done = shop.cli("projects", "alias", str(shop.repo.path), ".", "--json").json
    assert done["sessions"] == 1
    assert done["stories"] == 2
    links = shop.links()
    assert links[made] == {agent.session_id: evidence(shop)}
    assert links[by_hand] == {agent.session_id: "content"}


@pytest.mark.parametrize(
    ("folder", "alias"),
    [
        ("/home/me/shop", "/home/me/shop"),
        ("/home/me/shop/src/till", "/home/me/shop"),
        ("/home/me/shop", "/home/me/shop/"),
        ("C:\\Users\\me\\shop", "C:\\Users\\me\\shop"),
        ("C:\\Users\\me\\shop\\src", "C:\\Users\\me\\shop"),
    ],
)
@pytest.mark.parametrize("when", ["before", "after"])
def test_an_alias_for_a_path_of_another_machine(
    plain: Workshop, folder: str, alias: str, when: str, cli: Cli
) -> None:
    """Sessions read before it, and sessions read after it."""
    sub = folder.replace("\\", "/").removeprefix(alias.replace("\\", "/").rstrip("/")).strip("/")
    agent = Agent("s1", plain.repo)
    agent.prompt("Add a cart")
    agent.write("cart.py", body("cart"))
    by_hand = plain.repo.commit("A cart")
    made = work(agent, "till")
    moved(agent, alias.rstrip("/\\"))
    if sub:
        for line in agent.lines:
            line["cwd"] = folder
    other = Agent("s2", plain.repo, cwd="/home/me/shopping")
    other.prompt("Something else")
    plain.ingest(other)
    if when == "before":
        plain.ingest(agent)
        assert set(map(str, plain.links().values())) == {"{}"}
    assert cli("projects", "alias", alias, ".").code == 0
    if when == "after":
        plain.ingest(agent)
    links = plain.links()
    assert links[made] == {agent.session_id: "output"}
    assert links[by_hand] == {agent.session_id: "content"}
    before = plain.log()
    (known,) = (k for k in cli("projects", "--json").json if k["aliases"])
    assert known["sessions"] == 1  # not those of a folder whose name only begins alike
    assert cli("rebuild", "--json").code == 0
    assert plain.log() == before


def test_several_aliases_are_linked_in_one_run_over_the_commits_in_reach(
    plain: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo = plain.repo
    folders = ["/home/me/shop", "/mnt/laptop/shop", "/home/me/shop-2"]
    agents, made = [], []
    for number, folder in enumerate(folders):
        agent = Agent(f"s{number}", repo)
        made.append(work(agent, f"part_{number}"))
        moved(agent, folder)
        agents.append(agent)
    repo.clock.tick(40 * 86_400)
    for number in range(12):
        repo.commit(f"By hand {number}", {"part_0.py": body(f"hand_{number}")})
    plain.ingest(*agents)
    runs: list[Any] = []
    compute = resolve.compute

    def counting(*arguments: Any, **options: Any) -> Any:
        runs.append(compute(*arguments, **options))
        return runs[-1]

    monkeypatch.setattr(resolve, "compute", counting)
    counted = Counted(monkeypatch)
    done = plain.cli("projects", "alias", *folders, ".", "--json")
    assert done.code == 0, done.err
    assert (done.json["sessions"], done.json["stories"]) == (3, 3)
    assert len(runs) == 1, "for all paths together"
    assert counted.judged <= 4, "the first commit is near enough in time; those by hand are not"
    assert counted.processes < 30
    links = plain.links()
    assert [links[sha] for sha in made] == [{agent.session_id: "output"} for agent in agents]


def test_a_remote_added_later_keeps_the_stories(shop: Workshop) -> None:
    agent = Agent("s1", shop.repo)
    made = work(agent)
    agent.write("till.py", body("till"))
    by_hand = shop.repo.commit("A till")
    shop.ingest(agent)
    before = shop.log()
    assert linked(before[by_hand])
    shop.repo.git("remote", "add", "origin", "https://forge.example/acme/shop.git")
    assert shop.log() == before
    agent.prompt("And a door")
    agent.write("door.py", body("door"))
    more = agent.commit("Add a door")
    shop.ingest(agent)
    links = shop.links()
    assert (links[made], links[by_hand]) == (linked(before[made]), linked(before[by_hand]))
    assert links[more] == {agent.session_id: evidence(shop)}
    after = shop.log()
    assert shop.cli("rebuild", "--json").code == 0
    assert shop.log() == after

"""The same answer however it was come by: again, rebuilt, in any order, on demand, and by
commands that only read."""

from __future__ import annotations

import copy
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from tests.capture.snapshot import on_disk
from tests.conftest import set_home
from tests.story.links.workshop import Agent, Cli, Clock, Repo, Workshop, body, linked
from whyfor import config
from whyfor.config import Settings

_TABLES = {
    "checkpoints": "SELECT sha, subject, files, evidence, confidence, group_root, superseded_by, annotation "
    "FROM checkpoints ORDER BY sha",
    "parts": "SELECT p.sha, s.session_id, p.evidence, cut, first, last, p.messages, new_messages, p.prompts, turns, "
    "continued, lines, share FROM parts p JOIN sessions s ON s.id=p.session_id ORDER BY 1, 2",
    "commits": "SELECT sha, reason, nearby FROM commits ORDER BY sha",
    "signals": "SELECT at, event, session_id, sha FROM signals ORDER BY id",
}


def rows(settings: Settings, *tables: str) -> dict[str, list[Any]]:
    db = apsw.Connection(str(settings.database), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        return {name: list(db.execute(_TABLES[name])) for name in tables or _TABLES}
    finally:
        db.close()


def busy(repo: Repo, then: Callable[..., None] = lambda *agents: None) -> tuple[Agent, Agent]:
    """An afternoon with everything in it; `then` is called after each thing that happened."""
    one, two = Agent("s1", repo), Agent("s2", repo)

    def step(*agents: Agent) -> None:
        then(*agents)

    one.prompt("Add a cart")
    one.write("cart.py", body("cart"))
    one.commit("Add a cart")
    step(one)
    one.say("The cart is there.")
    two.prompt("Add a till")
    two.write("till.py", body("till"))
    step(one, two)
    repo.commit("A till", {})  # by a person
    step()
    two.say("A till, for you to commit.")
    repo.commit("Mine", {"mine.py": body("mine")})
    step(two)
    one.prompt("Add wheels")
    one.write("cart.py", body("cart") + body("wheels"))
    repo.git("checkout", "-q", "-b", "topic")
    one.commit("Add wheels to the cart")
    step(one)
    repo.write("cart.py", body("cart") + body("wheels") + "brake = True\n")
    repo.git("commit", "-q", "-a", "--amend", "-m", "Wheels, and a brake")
    step()
    two.prompt("And a drawer")
    two.write("till.py", body("till") + body("drawer"))
    step(two)
    repo.git("commit", "-q", "-a", "-m", "A drawer for the till")
    one.say("Wheels it has.")
    repo.git("checkout", "-q", "main")
    repo.commit("Meanwhile", {"other.py": body("other")})
    step(one)
    repo.git("rebase", "-q", "main", "topic")
    step()
    repo.git("checkout", "-q", "main")
    repo.git("merge", "-q", "--no-ff", "--no-edit", "topic")
    one.prompt("Thanks, that is all")
    one.say("Good bye.")
    step(one, two)
    return one, two


class Afternoon:
    """What `busy` left, before anything of it is read; made once and had again by each test."""

    def __init__(self, folder: Path, *, hooked: bool) -> None:
        self.hooked = hooked
        self.now, self._kept = folder / "now", folder / "kept"
        self.home, self.own = self.now / "home", self.now / "whyfor"
        self.told: dict[str, Any] = {}

    def live_through(self, cli: Cli) -> None:
        self.home.mkdir(parents=True)
        repo = Repo.made(self.now / "code" / "shop", Clock())
        os.chdir(repo.path)
        shop = Workshop(self.home, repo, cli, hooked=self.hooked)
        self._agents = busy(repo)
        shutil.copytree(self.now, self._kept)
        shop.ingest(*self._agents)
        self.told = everything(shop)

    def again(self, cli: Cli) -> tuple[Workshop, Agent, Agent]:
        os.chdir(self.now.parent)
        shutil.rmtree(self.now)
        shutil.copytree(self._kept, self.now)
        one, two = copy.deepcopy(self._agents)
        os.chdir(one.repo.path)
        # the index knows the files by their times and numbers, which are others now
        one.repo.git("update-index", "-q", "--refresh")
        shop = Workshop(self.home, one.repo, cli, hooked=False)
        shop.hooked = self.hooked
        return shop, one, two


class Worked:
    """One test's copy of the afternoon."""

    def __init__(self, afternoon: Afternoon, cli: Cli) -> None:
        self.shop, self.one, self.two = afternoon.again(cli)
        self.settings = config.load()
        self.told = afternoon.told  # all there is to read once everything was ingested at once


@pytest.fixture(scope="module", params=[False, True], ids=["inferred", "hooked"])
def afternoon(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Afternoon:
    return Afternoon(tmp_path_factory.mktemp("afternoon"), hooked=request.param)


@pytest.fixture
def worked(afternoon: Afternoon, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> Worked:
    set_home(monkeypatch, afternoon.home)
    monkeypatch.setenv("WHYFOR_HOME", str(afternoon.own))
    if not afternoon.told:
        afternoon.live_through(cli)
    return Worked(afternoon, cli)


def everything(shop: Workshop) -> dict[str, Any]:
    """All that can be read of the repository."""
    told = shop.log()
    return {"log": list(told.values()), **{sha: shop.show(sha) for sha in told}}


def journal(settings: Settings) -> bytes:
    return settings.journal.read_bytes()


def assert_same(got: dict[str, Any], wanted: dict[str, Any]) -> None:
    differ = list(_differences("", got, wanted))
    assert not differ, "\n".join(differ[:10])


def _differences(at: str, got: Any, wanted: Any) -> Iterator[str]:
    if isinstance(got, dict) and isinstance(wanted, dict):
        for name in {**got, **wanted}:
            yield from _differences(f"{at}/{name}", got.get(name), wanted.get(name))
    elif isinstance(got, list) and isinstance(wanted, list) and len(got) == len(wanted):
        for number, pair in enumerate(zip(got, wanted, strict=True)):
            yield from _differences(f"{at}/{number}", *pair)
    elif got != wanted:
        yield f"{at}: got {str(got)[:200]}, wanted {str(wanted)[:200]}"


# -- again ---------------------------------------------------------------------------------------


def test_linking_again_changes_nothing(worked: Worked) -> None:
    shop, settings = worked.shop, worked.settings
    shop.ingest(worked.one, worked.two)
    written, kept = journal(settings), rows(settings)
    assert sum(bool(linked(told)) for told in worked.told["log"]) == 4
    shop.ingest()
    assert (rows(settings), journal(settings)) == (kept, written)
    for arguments in (("link",), ("link", "HEAD~3..HEAD"), ("link", "--json")):
        assert shop.cli(*arguments).code == 0
        assert_same(rows(settings), kept)
        assert journal(settings)[len(written) :] == b""
    assert_same(everything(shop), worked.told)


def test_rebuilding_gives_the_same_stories(worked: Worked) -> None:
    shop, settings = worked.shop, worked.settings
    shop.ingest(worked.one, worked.two)
    kept = rows(settings, "checkpoints", "parts", "signals")
    assert shop.cli("rebuild", "--json").code == 0
    assert rows(settings, "checkpoints", "parts", "signals") == kept
    assert_same(everything(shop), worked.told)
    shop.ingest()
    assert rows(settings, "checkpoints", "parts", "signals") == kept
    assert_same(everything(shop), worked.told)


def test_a_lost_database_comes_back_with_the_next_ingest(worked: Worked) -> None:
    shop, settings = worked.shop, worked.settings
    shop.ingest(worked.one, worked.two)
    for path in settings.home.glob(f"{settings.database.name}*"):
        path.unlink()
    shop.ingest()
    assert_same(everything(shop), worked.told)


# -- in any order --------------------------------------------------------------------------------


def forget(settings: Settings) -> None:
    """As if nothing had ever been read; what hooks announced is still in the spool."""
    for path in settings.home.iterdir():
        if path.name not in ("spool", "hook"):
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def test_read_as_it_happens_or_all_at_once(shop: Workshop, settings: Settings) -> None:
    agents = busy(shop.repo, lambda *some: shop.ingest(*some))
    live = everything(shop)
    forget(settings)
    shop.ingest(*agents)
    at_once = everything(shop)
    # nobody can tell any more which commits there were before, if no session printed them
    if not shop.hooked:
        live, at_once = without_why(live), without_why(at_once)
    assert_same(live, at_once)


def without_why(told: Any) -> Any:
    if isinstance(told, dict):
        return {name: without_why(value) for name, value in told.items() if name != "why"}
    return [without_why(value) for value in told] if isinstance(told, list) else told


def _pieces(text: str, number: int) -> list[str]:
    lines = text.splitlines(keepends=True)
    size = max(1, len(lines) // number)
    return ["".join(lines[: at + size]) for at in range(0, len(lines), size)]


@pytest.mark.parametrize("order", ["commits first", "other first", "in pieces", "in turns"])
def test_sessions_read_in_another_order(worked: Worked, order: str) -> None:
    shop, one, two = worked.shop, worked.one, worked.two
    one.path(shop.home).parent.mkdir(parents=True)
    if order == "commits first":
        stranger = Agent("s3", shop.repo)
        stranger.clock = type(shop.repo.clock)(shop.repo.clock.now - 500)
        stranger.prompt("Nothing to do with it")
        shop.ingest(stranger)
        shop.ingest(one)
        shop.ingest(two)
    elif order == "other first":
        shop.ingest(two)
        shop.ingest(one)
    elif order == "in pieces":
        for agent in (two, one):
            for piece in _pieces(agent.text(), 5):
                agent.path(shop.home).write_text(piece)
                shop.ingest()
    else:
        for some in zip(_pieces(one.text(), 4), _pieces(two.text(), 4), strict=False):
            for agent, piece in zip((one, two), some, strict=True):
                agent.path(shop.home).write_text(piece)
            shop.ingest()
        shop.ingest(one, two)
    assert_same(everything(shop), worked.told)


def test_a_session_read_after_the_commits_it_made_in_another_repository(
    plain: Workshop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools = Repo.made(tmp_path / "code" / "tools", plain.repo.clock, first=False)
    tools.commit("Tools", {"README.md": "Tools.\n"})
    here, there = Agent("s1", plain.repo), Agent("s2", tools)
    there.prompt("What is here?")
    here.prompt("Add a saw over there")
    here.write("saw.py", body("saw"), repo=tools)
    made = tools.commit("A saw")
    there.say("A saw.")
    plain.ingest(there)
    monkeypatch.chdir(tools.path)
    assert plain.links()[made] == {}
    plain.ingest(here)
    assert plain.links()[made] == {here.session_id: "content"}


def test_a_commit_nobody_has_looked_at_is_told_as_after_an_ingest(
    plain: Workshop, settings: Settings
) -> None:
    agent = Agent("s1", plain.repo)
    agent.prompt("Add a cart and a till")
    agent.write("cart.py", body("cart"))
    plain.ingest(agent)
    agent.write("till.py", body("till"))
    plain.ingest(agent)
    plain.repo.git("add", "cart.py")
    plain.repo.git("commit", "-q", "-m", "A cart")
    plain.repo.commit("A till")
    plain.repo.git("checkout", "-q", "-b", "topic", "HEAD~1")
    plain.repo.git("cherry-pick", "main")
    plain.repo.git("checkout", "-q", "main")
    plain.repo.commit("Mine", {"mine.py": body("mine")})
    before = rows(settings, "checkpoints")
    asked = {**everything(plain), "topic": plain.show("topic")}
    assert rows(settings, "checkpoints") == before == {"checkpoints": []}
    assert plain.cli("link").code == 0
    assert rows(settings, "checkpoints") != before
    assert_same({**everything(plain), "topic": plain.show("topic")}, asked)


# -- a person's word -----------------------------------------------------------------------------


def test_what_a_person_said_stays(worked: Worked) -> None:
    shop, one, two = worked.shop, worked.one, worked.two
    shop.ingest(one, two)
    mine = next(sha for sha, told in shop.log().items() if told["subject"] == "Mine")
    cart = next(sha for sha, told in shop.log().items() if told["subject"] == "Add a cart")
    assert shop.cli("link", mine, two.session_id).code == 0
    assert shop.cli("unlink", cart, one.session_id).code == 0
    assert shop.cli("note", mine, "--title", "A file of my own", "--tag", "CHORE").code == 0

    def as_said() -> None:
        told = shop.log()
        assert linked(told[mine]) == {two.session_id: "person"}
        assert told[mine]["checkpoint"]["annotation"]["title"] == "A file of my own"
        assert told[mine]["checkpoint"]["annotation"]["by"] == "person"
        assert told[cart]["checkpoint"] is None
        assert told[cart]["reason"]

    as_said()
    before = everything(shop)
    assert shop.cli("link").code == 0
    as_said()
    assert_same(everything(shop), before)
    assert shop.cli("rebuild", "--json").code == 0
    as_said()
    assert_same(everything(shop), before)
    one.prompt("One more thing")
    shop.ingest(one)
    as_said()


def test_taken_back_and_said_again(worked: Worked) -> None:
    shop, one, two = worked.shop, worked.one, worked.two
    shop.ingest(one, two)
    cart = next(sha for sha, told in shop.log().items() if told["subject"] == "Add a cart")
    before = shop.show(cart)
    assert shop.cli("unlink", cart).code == 0
    assert linked(shop.show(cart)) == {}
    assert shop.cli("unlink", cart).code != 0
    assert shop.cli("link", cart, one.session_id).code == 0
    after = shop.show(cart)
    assert linked(after) == {one.session_id: "person"}
    assert after["conversation"] == before["conversation"]
    assert shop.cli("link", cart, one.session_id).code == 0
    assert shop.show(cart) == after


@pytest.mark.parametrize("read_between", [False, True], ids=["at-once", "read-between"])
def test_what_was_said_of_a_commit_goes_for_what_replaces_it(
    shop: Workshop, read_between: bool
) -> None:
    one, two = Agent("s1", shop.repo), Agent("s2", shop.repo)
    one.prompt("Add a cart")
    two.prompt("Look on")
    one.write("cart.py", body("cart"))
    one.commit("Add a cart")
    shop.ingest(one, two)
    assert shop.cli("unlink", "HEAD", one.session_id).code == 0
    assert shop.cli("link", "HEAD", two.session_id).code == 0
    assert shop.cli("note", "HEAD", "--title", "A cart, at last").code == 0
    if read_between:
        shop.ingest()
    shop.repo.write("cart.py", body("cart") + "wheels = 4\n")
    shop.repo.git("commit", "-q", "-a", "--amend", "-m", "A cart with wheels")
    shop.repo.git("commit", "-q", "--amend", "-m", "A cart with four wheels")
    shop.ingest()
    told = shop.show("HEAD")
    assert linked(told) == {two.session_id: "person"}
    assert told["checkpoint"]["annotation"]["title"] == "A cart, at last"


# -- reading only --------------------------------------------------------------------------------

READS = (
    ("log",),
    ("log", "--json"),
    ("log", "--all"),
    ("show", "HEAD"),
    ("show", "HEAD~1", "--json"),
    ("show", "HEAD", "--markdown"),
    ("status", "--json"),
    ("diff", "HEAD~2", "HEAD", "--json"),
    ("export", "HEAD~1", "--format", "markdown"),
    ("projects", "--json"),
    ("sessions", "--json"),
    ("search", "cart", "--json"),
)


def test_what_reads_never_writes(worked: Worked) -> None:
    """Even if there are commits that nobody has looked at yet."""
    shop, settings, one = worked.shop, worked.settings, worked.one
    shop.ingest(one, worked.two)
    one.prompt("And a bell")
    one.write("bell.py", body("bell"))
    shop.ingest(one)
    shop.repo.commit("A bell")
    shop.repo.git("commit", "-q", "--amend", "-m", "A louder bell")
    before, git = on_disk(settings.home), on_disk(shop.repo.path / ".git")
    for arguments in READS:
        done = shop.cli(*arguments)
        assert done.code == 0, (arguments, done.err)
        assert on_disk(settings.home) == before, arguments
    assert on_disk(shop.repo.path / ".git") == git


def test_what_reads_waits_for_nobody(worked: Worked) -> None:
    shop, settings = worked.shop, worked.settings
    shop.ingest(worked.one, worked.two)
    code = (
        "import sys\nfrom pathlib import Path\nfrom whyfor.locks import ingest_lock\n"
        "from whyfor.store.sqlite.connection import connect\n"
        "home = Path(sys.argv[1])\nwith ingest_lock(home, 1):\n    db = connect(home / sys.argv[2])\n"
        "    db.execute('BEGIN IMMEDIATE')\n    db.execute('DELETE FROM checkpoints')\n"
        "    print('held', flush=True)\n    sys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(settings.home), settings.database.name],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ},
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdin is not None
        assert holder.stdout.readline() == b"held\n"
        assert_same(everything(shop), worked.told)
        for arguments in READS:
            assert shop.cli(*arguments).code == 0, arguments
        holder.stdin.close()
        assert holder.wait(30) == 0

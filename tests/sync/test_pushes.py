"""A commit is shared when it was seen on its project's own remote, however it got there."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest

from tests.cases import check_each
from tests.conftest import Result
from tests.sync.laptop import Laptop, new_origin
from tests.transcripts import Transcript
from whyfor.git.pushed import own_remotes, pushed_commits
from whyfor.model.sync import Remote
from whyfor.store.open import reading_local
from whyfor.sync.pushes import begun_pushes, find_pushed
from whyfor.sync.remotes import save_remote
from whyfor.sync.worker import refresh_outbox


class Pusher:
    """A clone with commits, whose pushes are looked at."""

    def __init__(self, laptop: Laptop, folder: Path) -> None:
        self.laptop = laptop
        self.folder = folder
        self.git = laptop.git
        self.number = 0

    def commit(self) -> str:
        self.number += 1
        self.git("commit", "-q", "--allow-empty", "-m", f"Change {self.number}")
        return self.git("rev-parse", "HEAD")

    def seen(self, *shas: str) -> list[bool]:
        where = self.laptop.repo
        found = pushed_commits(where, shas, own_remotes(where))
        return [sha in found for sha in shas]


@pytest.fixture
def pusher(laptop: Laptop, tmp_path: Path) -> Pusher:
    return Pusher(laptop, tmp_path)


def _dry_run(on: Pusher) -> bool:
    sha = on.commit()
    on.git("push", "-q", "--dry-run", "origin", "main")
    return on.seen(sha) == [False]


def _plain(on: Pusher) -> bool:
    sha = on.commit()
    on.git("push", "-q", "origin", "main")
    return on.seen(sha) == [True]


def _without_hooks(on: Pusher) -> bool:
    sha = on.commit()
    on.git("push", "-q", "--no-verify", "origin", "main")
    return on.seen(sha) == [True]


def _rejected(on: Pusher) -> bool:
    origin = Path(on.git("remote", "get-url", "origin"))
    hook = origin / "hooks" / "pre-receive"
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)
    sha = on.commit()
    on.git("push", "-q", "origin", "main", ok=False)
    hook.unlink()
    return on.seen(sha) == [False]


def _forced(on: Pusher) -> bool:
    old = on.commit()
    on.git("push", "-q", "origin", "main")
    on.git("reset", "-q", "--hard", "HEAD~1")
    new = on.commit()
    on.git("push", "-q", "--force", "origin", "main")
    return on.seen(old, new) == [False, True]


def _new_branch(on: Pusher) -> bool:
    on.git("checkout", "-q", "-b", "topic")
    sha = on.commit()
    before = on.seen(sha)
    on.git("push", "-q", "origin", "topic")
    on.git("checkout", "-q", "main")
    return (before, on.seen(sha)) == ([False], [True])


def _tag(on: Pusher) -> bool:
    sha = on.commit()
    on.git("tag", "v1")
    on.git("push", "-q", "origin", "v1")
    return on.seen(sha) == [False]


def _deleted(on: Pusher) -> bool:
    on.git("push", "-q", "origin", "main:gone")
    sha = on.commit()
    on.git("push", "-q", "origin", "--delete", "gone")
    return on.seen(sha) == [False]


def _other_remote(on: Pusher) -> bool:
    fork = new_origin(_folder(on, "fork"))
    on.git("remote", "add", "fork", str(fork))
    sha = on.commit()
    on.git("push", "-q", "--force", "fork", "main")
    return on.seen(sha) == [False]


def _pushed_elsewhere(on: Pusher) -> bool:
    other = new_origin(_folder(on, "elsewhere"))
    sha = on.commit()
    on.git("config", "remote.origin.pushurl", str(other))
    on.git("push", "-q", "--force", "origin", "main")
    on.git("config", "--unset", "remote.origin.pushurl")
    on.git("fetch", "-q", "origin")
    return on.seen(sha) == [False]


def _mirror(on: Pusher) -> bool:
    sha = on.commit()
    on.git("push", "-q", "--mirror", "origin")
    return on.seen(sha) == [True]


def _worktree(on: Pusher) -> bool:
    tree = on.folder / "tree"
    on.git("worktree", "add", "-q", "-b", "beside", str(tree))
    on.laptop.git_in(tree, "commit", "-q", "--allow-empty", "-m", "In a work tree")
    sha = on.laptop.git_in(tree, "rev-parse", "HEAD")
    on.laptop.git_in(tree, "push", "-q", "origin", "beside")
    return on.seen(sha) == [True]


def _second_name(on: Pusher) -> bool:
    """Another name for the same address is the same remote."""
    on.git("remote", "add", "mirror", on.git("remote", "get-url", "origin"))
    sha = on.commit()
    on.git("push", "-q", "mirror", "main")
    return on.seen(sha) == [True]


def _forced_over_a_stranger(on: Pusher) -> bool:
    """What is on the remote is not known here."""
    other = _folder(on, "stranger")
    on.laptop.git_in(other, "clone", "-q", on.git("remote", "get-url", "origin"), "clone")
    identity = ("-c", "user.name=S", "-c", "user.email=s@example.com")
    clone = other / "clone"
    on.laptop.git_in(clone, *identity, "commit", "-q", "--allow-empty", "-m", "Not ours")
    on.laptop.git_in(clone, "push", "-q", "origin", "main")
    theirs = on.laptop.git_in(clone, "rev-parse", "HEAD")
    sha = on.commit()
    on.git("push", "-q", "--force", "origin", "main")
    return on.seen(sha, theirs) == [True, False]


def _submodule(on: Pusher) -> bool:
    """A submodule has a remote of its own; a push of it says nothing of what is around it."""
    library = new_origin(_folder(on, "library"))
    add = ("-c", "protocol.file.allow=always", "submodule", "add", "-q", str(library), "lib")
    on.git(*add)
    around = on.commit()
    where = on.laptop.repo / "lib"
    identity = ("-c", "user.name=S", "-c", "user.email=s@example.com")
    on.laptop.git_in(where, *identity, "commit", "-q", "--allow-empty", "-m", "In the library")
    sha = on.laptop.git_in(where, "rev-parse", "HEAD")
    before = pushed_commits(where, [sha], own_remotes(where))
    on.laptop.git_in(where, "push", "-q", "origin", "HEAD:main")
    after = pushed_commits(where, [sha], own_remotes(where))
    return (before, after, on.seen(around, sha)) == (set(), {sha}, [False, False])


def _unknown(on: Pusher) -> bool:
    return on.seen("0" * 40, "f" * 40) == [False, False]


def _folder(on: Pusher, name: str) -> Path:
    made = on.folder / name
    made.mkdir()
    return made


def test_only_what_arrived_on_the_projects_own_remote_counts_as_pushed(pusher: Pusher) -> None:
    cases: list[Callable[[Pusher], bool]] = [
        *(_dry_run, _plain, _without_hooks, _rejected, _forced, _new_branch, _tag, _deleted),
        *(_other_remote, _worktree, _unknown, _mirror, _pushed_elsewhere, _second_name),
        *(_forced_over_a_stranger, _submodule),
    ]

    def check(case: Callable[[Pusher], bool]) -> None:
        assert case(pusher)
        pusher.git("push", "-q", "--force", "origin", "main")

    check_each([(case.__name__, case) for case in cases], check)


def test_a_push_to_an_address_is_confirmed_by_the_remote(laptop: Laptop, origin: Path) -> None:
    told = laptop.transcript("gate")
    sha = laptop.work(told, "Mend the gate")
    laptop.git("push", "-q", str(origin), "main")
    spool = laptop.settings.home / "spool"
    spool.mkdir(parents=True)
    header = {
        "v": 1,
        "at": laptop.time.ms,
        "agent": "git",
        "event": "pre-push",
        "cwd": str(laptop.repo),
        "args": [str(origin)],
        "chain": [],
    }
    payload = f"refs/heads/main {sha} refs/heads/main {'0' * 40}"
    line = b"\n" + msgspec.json.encode(header) + b"\t" + payload.encode() + b"\n"
    (spool / "2026-01-01.spool").write_bytes(line)
    laptop.ingest()
    with reading_local(laptop.settings) as store:
        [(project, _)] = [each for each in store.projects.known() if each[1].evidence != "path"]
        assert [push.tips for push in begun_pushes(store, project, 0)] == [(sha,)]
        assert find_pushed(store, project, [sha]) == {sha}
        assert find_pushed(store, project, [sha], laptop.time.ms + 1) == set(), "long ago"


def test_nothing_of_ours_is_in_what_a_mirror_carries(
    laptop: Laptop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Callable[..., Result]
) -> None:
    told = laptop.transcript("gate")
    laptop.work(told, "Mend the gate", "the walrus")
    for name, value in laptop.settings.env.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(laptop.repo)
    assert cli("init").code == 0
    laptop.ingest()
    save_remote(laptop.settings, Remote("x", "https://whyfor.example", 1))
    mirror = tmp_path / "mirror.git"
    subprocess.run(["git", "init", "-q", "--bare", str(mirror)], check=True)
    laptop.git("push", "-q", "--mirror", str(mirror))
    refs = laptop.git_in(mirror, "for-each-ref", "--format=%(refname)").split()
    assert set(refs) <= {
        *("refs/heads/main", "refs/remotes/origin/main", "refs/remotes/origin/HEAD"),
    }
    packed = laptop.git_in(mirror, "log", "--all", "-p")
    assert "walrus" not in packed


class Hooked(NamedTuple):
    """A laptop whose pushes run our real hook."""

    laptop: Laptop
    origin: Path
    told: Transcript
    env: dict[str, str]

    def announce(self) -> None:
        """As if an ingest were on its way already: these tests do its work themselves."""
        (self.laptop.settings.home / "hook" / "pending").write_text(str(os.getpid()))

    def push(self, *arguments: str, ok: bool = True) -> None:
        self.announce()
        done = subprocess.run(
            ["git", "push", "-q", *arguments],
            cwd=self.laptop.repo,
            env=self.env,
            capture_output=True,
        )
        assert (done.returncode == 0) == ok, done.stderr
        assert b"whyfor" not in done.stdout + done.stderr

    def state_after(self, subject: str, *arguments: str, ok: bool = True) -> str:
        """The state of a new commit's story after a push."""
        self.announce()
        sha = self.laptop.work(self.told, subject)
        self.push(*arguments, ok=ok)
        self.laptop.ingest()
        refresh_outbox(self.laptop.settings, self.laptop.time.clock())
        return self.laptop.states()[sha]


@pytest.fixture
def hooked(
    laptop: Laptop, origin: Path, monkeypatch: pytest.MonkeyPatch, cli: Callable[..., Result]
) -> Hooked:
    for name, value in laptop.settings.env.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(laptop.repo)
    told = laptop.transcript("gate")
    laptop.work(told, "Begin")
    laptop.ingest()
    assert cli("init").code == 0
    with reading_local(laptop.settings) as store:
        [(_, found)] = [each for each in store.projects.known() if each[1].evidence != "path"]
    remote = Remote(found.identity, "http://127.0.0.1:9", 1, "shop", "push", 1)
    save_remote(laptop.settings, remote)
    env = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull}
    return Hooked(laptop, origin, told, env)


def test_with_the_real_hook_only_what_arrives_becomes_ready_to_be_shared(hooked: Hooked) -> None:
    fork = hooked.laptop.folder / "fork.git"
    subprocess.run(["git", "init", "-q", "--bare", str(fork)], check=True)
    hooked.laptop.git("remote", "add", "fork", str(fork))
    hooked.laptop.git("tag", "v1")
    hooked.push("origin", "main:gone")
    refusing = hooked.origin / "hooks" / "pre-receive"
    refusing.write_text("#!/bin/sh\nexit 1\n")
    refusing.chmod(0o755)
    assert hooked.state_after("Rejected", "origin", "main", ok=False) == "local"
    refusing.unlink()
    stays = [
        ("Rehearsed", ("--dry-run", "origin", "main")),
        ("Tagged", ("origin", "v1")),
        ("Deleted", ("origin", "--delete", "gone")),
        ("Forked", ("fork", "main")),
    ]
    check_each(
        [(each[0], each) for each in stays],
        lambda each: _same(hooked.state_after(each[0], *each[1]), "local"),
    )
    hooked.push("origin", "main")
    leaves = [
        ("Pushed", ("origin", "main")),
        ("Without hooks", ("--no-verify", "origin", "main")),
        ("To an address", (str(hooked.origin), "main")),
        ("Forced", ("--force", "origin", "main")),
        ("Mirrored", ("--mirror", "origin")),
    ]
    check_each(
        [(each[0], each) for each in leaves],
        lambda each: _same(hooked.state_after(each[0], *each[1]), "waits"),
    )
    with reading_local(hooked.laptop.settings) as store:
        [(project, _)] = [each for each in store.projects.known() if each[1].evidence != "path"]
        pushes = begun_pushes(store, project, 0)
    assert {push.remote for push in pushes} >= {"origin", "fork"}
    assert all(push.tips for push in pushes), "a deletion has no tip"


def _same(found: str, expected: str) -> None:
    assert found == expected

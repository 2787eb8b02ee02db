"""Stories are shared through a git repository of their own, without a server."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.conftest import Result
from tests.sync.laptop import Laptop
from tests.transcripts import Transcript
from whyfor.service.remote import add_remote, list_remotes
from whyfor.service.share import keep_local
from whyfor.service.sync import agree, preview_sync, remotes_to_confirm
from whyfor.sync.forget import forget_everywhere

Cli = Callable[..., Result]
VALUE = "Qx7vPz2mLk9sTr4w"


class Friends(NamedTuple):
    """Two machines that share through one repository."""

    ann: Laptop
    bob: Laptop
    stories: Path
    told: Transcript
    sha: str

    def everything(self) -> str:
        """All that can be reached in the repository with stories, unpacked."""
        import zstandard

        listed = _git(self.stories, "rev-list", "--objects", "--all").decode().split("\n")
        found = []
        for line in listed:
            name, _, path = line.partition(" ")
            if path and _git(self.stories, "cat-file", "-t", name).strip() == b"blob":
                data = _git(self.stories, "cat-file", "blob", name)
                found.append(zstandard.decompress(data) if path.endswith(".zst") else data)
        return str(found)

    def refs(self) -> list[str]:
        return _git(self.stories, "for-each-ref", "--format=%(refname)").decode().split()


def _git(where: Path, *arguments: str) -> bytes:
    return subprocess.run(
        ["git", "-C", str(where), *arguments], check=True, capture_output=True
    ).stdout


@pytest.fixture
def friends(
    laptop: Laptop, origin: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Friends:
    stories = tmp_path / "stories.git"
    subprocess.run(["git", "init", "-q", "--bare", str(stories)], check=True)
    _git(stories, "config", "uploadpack.allowFilter", "true")
    _git(stories, "config", "uploadpack.allowAnySHA1InWant", "true")
    told = laptop.transcript("gate")
    sha = laptop.work(told, "Mend the gate", "why did the walrus leave?", "because of the gate")
    laptop.git("push", "-q", "origin", "main")
    laptop.ingest()
    bob = Laptop(tmp_path / "bob", origin, "bob")
    own = bob.transcript("own")
    own.prompt("unrelated")
    own.save(bob.home)
    bob.ingest()
    for each in (laptop, bob):
        add_remote(each.settings, each.repo, str(stories), None, "push")
    for name, value in bob.settings.env.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(bob.repo)
    return Friends(laptop, bob, stories, told, sha)


def _share(laptop: Laptop) -> None:
    for remote in remotes_to_confirm(laptop.settings):
        agree(laptop.settings, remote)
    report = laptop.sync()
    assert report.remotes[0].error is None, report


def test_a_story_travels_through_a_repository_of_its_own(friends: Friends, cli: Cli) -> None:
    [(_, [story])] = preview_sync(friends.ann.settings)
    assert story.name == friends.sha
    friends.ann.sync()
    assert friends.refs() == [], "nothing leaves before a person agreed"
    _share(friends.ann)
    [ref] = friends.refs()
    assert ref.startswith("refs/whyfor/v1/")
    assert str(friends.ann.home) not in friends.everything()
    assert cli("log", "--json").json[0]["from"] == "laptop"
    [copy] = (friends.bob.settings.home / "stories").iterdir()
    for path in copy.rglob("*"):
        assert path.stat().st_mode & 0o077 == 0, path
    missing = _git(copy, "rev-list", "--objects", "--all", "--missing=print").decode()
    assert "\n?" in missing, "records are fetched when they are read"
    shown = cli("show", friends.sha)
    assert "why did the walrus leave?" in shown.out, shown.err
    assert "From laptop, " in shown.err
    [line] = cli("blame", "notes.txt", "--json").json["lines"]
    assert line["asked"] == "why did the walrus leave?"
    assert "walrus" in cli("show", friends.told.session_id).out
    made = cli("restore", friends.sha, "--yes", "--json")
    assert "words of laptop" in " ".join(made.json["warnings"])
    assert cli("search", "walrus", "--json").json == [], "there is no search"
    [state] = list_remotes(friends.ann.settings)
    assert (state.sent, state.waiting, state.team_project) == (1, 0, "")
    assert friends.ann.sync().sent == 0
    later = friends.ann.work(friends.told, "Paint the gate", "paint the otter")
    friends.ann.git("push", "-q", "origin", "main")
    friends.ann.ingest()
    _share(friends.ann)
    assert int(_git(friends.stories, "rev-list", "--count", ref)) == 2, "the ref only grows"
    friends.bob.git("pull", "-q")
    assert "otter" in cli("show", later).out
    assert friends.ann.git("for-each-ref", "refs/whyfor") == "", "nothing of ours is in the code's"


def test_what_is_taken_back_cannot_be_reached_any_more(friends: Friends, cli: Cli) -> None:
    told = friends.ann.transcript("late")
    later = friends.ann.work(told, "Lock the gate", f"the gate says {VALUE} to the badger")
    friends.ann.git("push", "-q", "origin", "main")
    friends.ann.ingest()
    _share(friends.ann)
    assert VALUE in friends.everything()
    friends.bob.git("pull", "-q")
    assert "badger" in cli("show", later).out
    told.prompt(f"by the way, export GATE_PASSWORD={VALUE}")
    told.save(friends.ann.home)
    friends.ann.ingest()
    _share(friends.ann)
    assert VALUE not in friends.everything(), "the ref was written anew"
    assert "REDACTED" in cli("show", later).out
    assert not _kept(friends, VALUE)
    keep_local(friends.ann.settings, later, friends.ann.repo)
    _share(friends.ann)
    assert "badger" not in friends.everything()
    assert "walrus" in friends.everything()
    forget_everywhere(friends.ann.settings, [f"claude:{friends.told.session_id}"], [])
    _share(friends.ann)
    assert "walrus" not in friends.everything()
    _git(friends.stories, "gc", "-q", "--prune=now")
    assert "walrus" not in cli("show", friends.sha).out
    assert not _kept(friends, "walrus")
    copied = Laptop(friends.bob.folder / "third", friends.bob.folder.parent / "origin.git")
    friends.told.save(copied.home)
    copied.ingest()
    add_remote(copied.settings, copied.repo, str(friends.stories), None, "push")
    for remote in remotes_to_confirm(copied.settings):
        agree(copied.settings, remote)
    assert "forgotten everywhere" in (copied.sync().remotes[0].error or "")
    assert "walrus" not in friends.everything()


def _kept(friends: Friends, word: str) -> bool:
    """Whether a word is in the copies on Bob's machine."""
    import zstandard

    for path in (friends.bob.settings.home / "remote").rglob("*"):
        if path.is_file():
            data = path.read_bytes()
            data += zstandard.decompress(data) if path.suffix == ".zst" else b""
            if word.encode() in data:
                return True
    return False


def test_the_codes_own_repository_and_what_is_none_are_refused(
    friends: Friends, origin: Path, cli: Cli
) -> None:
    friends.bob.git("remote", "add", "fork", "ssh://git@host.example/team/fork.git")
    refused = {
        str(origin): "the code's own repository",
        f"git+file://{origin}": "the code's own repository",
        ".": "the code's own repository",
        "git+ssh://host.example/team/fork.git": "the code's own repository",
        "/no/such/folder": "is not there",
        str(friends.bob.home): "git cannot reach",
        "git+https://host.example/stories.git": "cannot be used",
    }
    for address, why in refused.items():
        done = cli("remote", "add", address)
        assert done.code != 0, address
        assert why in done.err, (address, done.err)
    added = cli("remote", "add", friends.stories)
    assert "There is no search, and there are no roles" in added.out
    assert "stories.git" in cli("remote", "status").out


def test_a_repository_that_cannot_be_reached_is_tried_again(friends: Friends, cli: Cli) -> None:
    away = friends.stories.with_name("away.git")
    for remote in remotes_to_confirm(friends.ann.settings):
        agree(friends.ann.settings, remote)
    friends.stories.rename(away)
    assert friends.ann.sync().remotes[0].error
    assert friends.ann.states() == {friends.sha: "waits"}
    shown = cli("show", friends.sha)
    assert "could not be asked" in shown.err
    away.rename(friends.stories)
    friends.ann.time.ms = max(item.next_at for item in friends.ann.outbox().values())
    assert friends.ann.sync().sent == 1
    assert "walrus" in cli("show", friends.sha).out


def test_what_is_forgotten_here_stays_in_no_copy_of_what_was_shared(
    friends: Friends, monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    _share(friends.ann)
    assert "walrus" in cli("show", friends.sha).out
    assert cli("forget", "--match", "unrelated", "--yes").code == 0
    assert not _kept(friends, "walrus"), "copies of what others shared"
    for name, value in friends.ann.settings.env.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(friends.ann.repo)
    assert (friends.ann.settings.home / "stories").exists()
    assert cli("forget", friends.told.session_id, "--yes", "--everywhere").code == 0
    assert not (friends.ann.settings.home / "stories").exists()
    _share(friends.ann)
    assert "walrus" not in friends.everything()


def test_what_somebody_else_wrote_there_is_never_trusted(friends: Friends, cli: Cli) -> None:
    """Whoever can write to the repository can write anything: it is told, and nothing breaks."""
    sha = friends.sha
    hostile = {
        f"stories/{sha[:2]}/{sha}..json": b"{}",
        "sessions/claude/only/three": b"",
        "sessions/claude/ffffffffffff/x..json/deeper": b"",
        f"sessions/claude/{friends.told.session_id}/..%2f..%2fetc": b"",
        "forgotten/nothing": b"",
        "about.json": b"\xff\x00 not json",
    }
    work = friends.stories.with_name("hostile")
    _git(friends.stories.parent, "init", "-q", str(work))
    for name, content in hostile.items():
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).write_bytes(content)
    _git(work, "add", "-A")
    _git(work, "-c", "user.name=M", "-c", "user.email=m@x", "commit", "-q", "-m", "Hostile")
    _git(work, "push", "-q", str(friends.stories), "HEAD:refs/whyfor/v1/mallory")
    for command in (
        ("show", sha),
        ("log",),
        ("blame", "notes.txt"),
        ("show", friends.told.session_id),
    ):
        done = cli(*command)
        assert "Traceback" not in done.err, done.err
    assert "no story" in cli("show", sha).err
    _share(friends.ann)
    assert friends.ann.states() == {sha: "sent"}, "nor does it keep anybody from sharing"
    assert "walrus" in cli("show", sha).out, "or from reading what others wrote"
    assert "walrus" in cli("show", friends.told.session_id).out


_SSH = """#!/bin/sh
# Takes the place of ssh: the other machine is this one.
echo "$@" >> "$0.log"
while [ "$1" = -o ]; do shift 2; done
shift
exec sh -c "$*"
"""


def test_an_address_of_ssh_is_reached_without_asking_anything(
    friends: Friends, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    program = tmp_path / "bin" / "ssh"
    program.parent.mkdir()
    program.write_text(_SSH)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    address = f"git+ssh://git@host.example{friends.stories}"
    for each in (friends.ann, friends.bob):
        add_remote(each.settings, each.repo, address, None, "push")
    _share(friends.ann)
    assert "walrus" in cli("show", friends.sha).out
    asked = program.with_name("ssh.log").read_text().splitlines()
    assert {"git-receive-pack", "git-upload-pack"} <= set(" ".join(asked).replace("'", " ").split())
    assert all("BatchMode=yes" in line and "git@host.example" in line for line in asked)

"""Everything we write is its owner's alone, whatever the umask of the shell, the agent or git."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.hook import await_that
from tests.service.pause.test_hooks import repository
from tests.transcripts import Transcript

UMASKS = ("000", "022", "077")


def sh(umask: str, command: str, cwd: Path, given: bytes = b"") -> bytes:
    done = subprocess.run(
        ["/bin/sh", "-c", f"umask {umask}; {command}"], cwd=cwd, input=given, capture_output=True
    )
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


def whyfor(umask: str, cwd: Path, *words: str) -> bytes:
    return sh(umask, shlex.join([sys.executable, "-m", "whyfor", *words]), cwd)


def modes(*roots: Path) -> dict[str, str]:
    """What is more open than it should be."""
    found = {}
    for root in roots:
        for path in (root, *root.rglob("*")):
            mode = path.lstat().st_mode & 0o777
            wanted = 0o700 if path.is_dir() else 0o600
            if mode != wanted and not path.is_symlink():
                found[str(path.relative_to(root.parent))] = oct(mode)
    return found


@pytest.mark.parametrize("umask", UMASKS)
def test_everything_we_write_is_its_owners_alone(umask: str, home: Path, tmp_path: Path) -> None:
    own = Path(os.environ["WHYFOR_HOME"])
    (home / ".claude").mkdir()
    shop = repository(tmp_path / "shop")
    said = Transcript("open", cwd=str(shop))
    said.prompt("hello")
    said.say("hello yourself")
    said.save(home)
    whyfor(umask, shop, "init", "--annotate")
    hooks = json.loads((home / ".claude" / "settings.json").read_text())["hooks"]
    for event in ("SessionStart", "UserPromptSubmit"):
        payload = json.dumps({"session_id": said.session_id, "transcript_path": "/t"}).encode()
        sh(umask, hooks[event][0]["hooks"][0]["command"], shop, payload)
    sh(umask, "git -c user.name=a -c user.email=a@b commit -q --allow-empty -m second", shop)
    await_that(lambda: "post-commit" in "".join(p.read_text() for p in (own / "spool").glob("*")))
    (own / "config.toml").write_text('[exclude]\nprojects = ["/code/nowhere"]\n')
    whyfor(umask, shop, "ingest")
    whyfor(umask, shop, "pause", "--repo")
    whyfor(umask, shop, "pause", "--for", "1h")
    whyfor(umask, shop, "resume")
    whyfor(umask, shop, "link", "HEAD", said.session_id)
    whyfor(umask, shop, "note", "--title", "A title")
    whyfor(umask, shop, "rebuild")
    whyfor(umask, shop, "doctor")
    whyfor(umask, shop, "export", "HEAD", "--output", str(tmp_path / "story.md"))
    before = {*home.rglob("*")}
    whyfor(umask, shop, "restore", "HEAD", "--yes", "--json")
    restored = {*home.rglob("*")} - before
    await_that(lambda: not (own / "hook" / "pending").exists())
    assert (own / "hook" / "excluded").exists()
    assert list((own / "hook" / "paused").iterdir())
    assert list((own / "segments").rglob("*.zst"))
    assert modes(own) == {}
    files = [tmp_path / "story.md", *(path for path in restored if path.is_file())]
    assert {
        path.name: oct(path.stat().st_mode & 0o777) for path in files if path.stat().st_mode & 0o077
    } == {}
    assert restored


def test_sqlite_keeps_its_own_files_as_closed_while_it_runs(home: Path, tmp_path: Path) -> None:
    """The write-ahead log comes and goes; while it is there it is as closed as the database."""
    whyfor("000", tmp_path, "ingest")
    own = Path(os.environ["WHYFOR_HOME"])
    program = (
        "import apsw,sys,os;d=apsw.Connection(sys.argv[1]);d.execute('create table "
        "x(y)');os._exit(0)"
    )
    sh("000", shlex.join([sys.executable, "-c", program, str(own / "whyfor.db")]), tmp_path)
    assert (own / "whyfor.db-wal").exists()
    assert modes(own) == {}


def test_what_a_copy_made_open_is_closed_again(home: Path, tmp_path: Path) -> None:
    said = Transcript("one")
    said.prompt("hello")
    said.save(home)
    whyfor("077", tmp_path, "ingest")
    own = Path(os.environ["WHYFOR_HOME"])
    for path in own.rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)
    whyfor("022", tmp_path, "ingest")
    for name in ("whyfor.db", "journal.jsonl", "segments", "ingest.lock"):
        assert (own / name).stat().st_mode & 0o077 == 0, name

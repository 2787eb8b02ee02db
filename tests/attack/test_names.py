"""A name on disk is bytes: what is not UTF-8 is read, stored, shown, moved, forgotten and
rebuilt like any other."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from urllib.request import HTTPCookieProcessor, build_opener

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.capture.snapshot import assert_equal, derived, stored_bytes
from tests.conftest import Result
from tests.transcripts import Transcript
from whyfor import config
from whyfor.capture import spool
from whyfor.config import Settings
from whyfor.model.paths import to_name, to_path, to_text
from whyfor.service.doctor import examine
from whyfor.service.ingest import ingest
from whyfor.service.rebuild import rebuild
from whyfor.store.open import reading_local

Cli = Callable[..., Result]
ODD = os.fsdecode(b"odd\xff\xfe")
LATIN = os.fsdecode(b"caf\xe9")


def story(name: str, cwd: str = "/code/shop") -> Transcript:
    told = Transcript(name, cwd=cwd)
    told.prompt(f"question of {name}")
    told.say("answer")
    return told


def save(home: Path, told: Transcript, folder: str = ODD, name: str = ODD) -> Path:
    path = home / ".claude" / "projects" / folder / f"{name}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in told.lines))
    return path


# -- the text form -------------------------------------------------------------------------------


@given(
    st.lists(
        st.sampled_from(
            [b"\xff", b"\xef\xbf\xbd", b"e9", b"ef", b"\xe9", b"/", b"a", b"\xf0\x9f\x8d\x8e", b"8"]
        )
    )
)
def test_every_name_has_a_text_of_its_own(pieces: list[bytes]) -> None:
    name = os.fsdecode(b"".join(pieces))
    text = to_text(name)
    assert text.encode().decode() == text
    assert to_name(text) == name


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_ordinary_paths_are_stored_as_they_are(name: str) -> None:
    if "\ufffd" not in name:
        assert to_text(name) == name == to_name(name)
    assert to_name(to_text(name)) == name


def test_an_odd_name_is_shown_by_its_bytes() -> None:
    assert to_text(f"/home/{LATIN}") == "/home/caf\ufffde9"
    assert to_path("/home/caf\ufffde9") == Path(f"/home/{LATIN}")
    assert to_text("/a\ufffde9") == "/a\ufffdef\ufffdbf\ufffdbde9"
    assert to_text("/a\ufffd41") == "/a\ufffd41"


# -- a file among others -------------------------------------------------------------------------


def test_a_file_with_an_odd_name_is_captured_like_any_other(
    settings: Settings, home: Path, cli: Cli
) -> None:
    plain, odd = story("plain"), story("odd")
    plain.save(home)
    path = save(home, odd)
    report = ingest(settings)
    assert (report.sessions, report.unreadable) == (2, [])
    assert stored_bytes(settings)[to_text(path)] == path.read_bytes()
    for arguments in (
        ["sessions"],
        ["show", odd.session_id],
        ["doctor"],
        ["search", "question"],
        ["stats"],
    ):
        assert cli(*arguments).code == 0
        assert cli(*arguments, "--json").json
    assert examine(settings, deep=True).ok
    assert ingest(settings).new_records == 0
    before = derived(settings, observed=True)
    rebuild(settings)
    assert_equal(derived(settings, observed=True), before)
    assert ingest(settings).new_records == 0


def test_a_file_with_an_odd_name_grows_moves_and_is_forgotten(
    settings: Settings, home: Path, cli: Cli
) -> None:
    told = story("odd")
    path = save(home, told)
    ingest(settings)
    told.prompt("another question")
    path.write_text(told.text())
    assert ingest(settings).new_records == 1
    moved = path.with_name(f"{ODD}.jsonl").parent.with_name(LATIN) / path.name
    moved.parent.mkdir()
    path.rename(moved)
    assert (ingest(settings).new_records, list(stored_bytes(settings))) == (0, [to_text(moved)])
    rebuild(settings)
    assert ingest(settings).new_records == 0
    report = cli("forget", told.session_id, "--yes", "--json").json
    assert report["files"] == [to_text(moved)]
    assert ingest(settings).sessions == 0
    assert cli("doctor").code == 0


def test_a_session_named_by_its_file_has_an_id_that_can_be_stored(
    settings: Settings, home: Path, cli: Cli
) -> None:
    """Nothing in it says what it is called."""
    path = home / ".claude" / "projects" / "p" / f"{LATIN}.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text('{"type":"summary","summary":"short"}\n')
    results = path.parent / ODD / "tool-results" / "toolu_1.txt"
    results.parent.mkdir(parents=True)
    results.write_text("a large result")
    os.utime(results, (1, 1))
    assert ingest(settings).unreadable == []
    with reading_local(settings) as library:
        found = {name for (name,) in library.db.execute("SELECT session_id FROM sessions")}
    assert found == {"caf\ufffde9", "odd\ufffdff\ufffdfe"}
    assert cli("show", "caf\ufffde9", "--json").code == 0
    rebuild(settings)


def test_a_path_of_an_older_version_is_still_the_same_path(settings: Settings, home: Path) -> None:
    """Of what older versions could store, nothing is written in another way."""
    names = ["ünïcode", "日本", "a\\xff", "a%ff", "a\nb", "\ufffd", "\ufffdzz", " "]
    for name in names:
        save(home, story(name), folder="p", name=name)
    ingest(settings)
    paths = {str(home / ".claude" / "projects" / "p" / f"{name}.jsonl") for name in names}
    assert set(stored_bytes(settings)) == paths


def test_a_folder_in_a_transcript_may_have_half_a_pair_in_it(
    settings: Settings, home: Path, cli: Cli
) -> None:
    for name, cwd in (("byte", "/code/caf\udce9"), ("half", "/code/\ud83d")):
        save(home, story(name, cwd=cwd), folder="p", name=name)
    assert ingest(settings).unreadable == []
    cwds = {row[5] for row in derived(settings)["sessions"]}
    assert cwds == {"/code/caf\ufffde9", "/code/\ufffd"}
    for arguments in (["sessions"], ["projects"], ["stats"]):
        assert cli(*arguments, "--json").code == 0


# -- a home --------------------------------------------------------------------------------------

VERBS = """
ingest|sessions|show SESSION|show HEAD|log|status|doctor|search question|stats|projects|link|link HEAD SESSION
note HEAD --title odd|show HEAD|export HEAD|export SESSION|diff HEAD~1 HEAD|restore HEAD|pause --repo .|status
resume --repo .|redact file|unlink HEAD SESSION|projects alias /old .|rebuild|forget SESSION --yes|doctor
agents|memory|uninstall --dry-run|uninstall
"""


@pytest.fixture
def odd_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home that is not UTF-8, with everything in its usual places below it."""
    home = tmp_path / LATIN
    home.mkdir()
    for name in (
        "WHYFOR_HOME",
        "XDG_DATA_HOME",
        "XDG_CONFIG_HOME",
        "XDG_CACHE_HOME",
        "WHYFOR_DEBUG",
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(home / ".gitconfig"))
    return home


@pytest.fixture
def repository(odd_home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = odd_home / ODD
    folder.mkdir()
    (odd_home / ".gitconfig").write_text("[user]\n\tname = a\n\temail = a@b\n")
    (folder / "file").write_text("plain\n")
    for command in (
        ["init", "-q"],
        ["add", "file"],
        ["commit", "-qm", "one"],
        ["commit", "-qm", "2", "--allow-empty"],
    ):
        subprocess.run(["git", *command], cwd=folder, check=True)
    monkeypatch.chdir(folder)
    return folder


def test_every_verb_works_in_a_home_that_is_not_utf8(
    odd_home: Path, repository: Path, cli: Cli
) -> None:
    told = story("odd", cwd=str(repository))
    save(odd_home, told)
    assert cli("init", "--json").code == 0
    for line in VERBS.replace("\n", "|").split("|"):
        words = [told.session_id if word == "SESSION" else word for word in line.split()]
        if not words:
            continue
        result = cli(*words)
        assert result.code == 0, (words, result)
        assert ODD not in result.out
    assert cli("ingest").code == 0
    assert cli("show", told.session_id).code == 2


def test_a_doctor_in_such_a_home_says_what_is_true(
    odd_home: Path, repository: Path, cli: Cli
) -> None:
    save(odd_home, story("odd"))
    (odd_home / ".claude" / "settings.json").write_text("{}")
    told = cli("init", "--json").json
    assert told["repository"] == to_text(repository)
    health = cli("doctor", "--json")
    assert health.code == 0
    assert [(hook["name"], hook["state"], hook["lost"]) for hook in health.json["hooks"]] == [
        ("ingest", "ok", []),
        ("claude", "ok", []),
        ("git", "ok", []),
    ]
    assert health.json["agents"][0]["records"] == 2
    os.mkfifo(odd_home / ".claude" / "projects" / ODD / "pipe.jsonl")
    assert cli("doctor").code == 1


def test_a_hook_in_an_odd_folder_says_where_it_ran(
    odd_home: Path, repository: Path, cli: Cli
) -> None:
    cli("init", "--json")
    subprocess.run(["git", "commit", "-qm", "three", "--allow-empty"], cwd=repository, check=True)
    settings = config.load()
    announced = time.monotonic()
    while not any(b"post-commit" in file.read_bytes() for file in spool.files(settings.home)):
        assert time.monotonic() - announced < 20, "the hook never said it"
        time.sleep(0.02)
    cli("ingest")
    with reading_local(settings) as library:
        found = [
            cwd
            for (cwd,) in library.db.execute(
                "SELECT repository FROM signals WHERE event='post-commit'"
            )
        ]
    assert {to_path(str(cwd)) for cwd in found} == {repository}


def test_the_server_tells_of_such_a_home_in_utf8(odd_home: Path, repository: Path) -> None:
    told = story("odd", cwd=str(repository))
    save(odd_home, told)
    ingest(config.load())
    command = [sys.executable, "-m", "whyfor", "serve", "--port", "0", "--no-open", "--json"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        assert server.stdout is not None
        where = json.loads(server.stdout.readline())
        browser = build_opener(HTTPCookieProcessor())
        browser.open(where["link"], timeout=20).read()
        for path in ("/", "/timeline", "/api/v1/sessions", "/api/v1/projects"):
            body = browser.open(where["address"] + path, timeout=20).read().decode("utf-8")
            assert "\ufffdff\ufffdfe" in body or path == "/", path
    finally:
        server.terminate()
        assert server.communicate(timeout=20)[1].decode().count("Traceback") == 0

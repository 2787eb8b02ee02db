"""Every face that tells of lines answers bad input clearly: nothing is run, nothing is lost."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tests.cases import check_each
from tests.conftest import Result
from tests.story.links.workshop import Agent, Clock, Repo, Workshop
from whyfor import config
from whyfor.config import Settings
from whyfor.model.errors import BadInput, WhyforError
from whyfor.service.editor import EditorFile, explain_line, turn_blocks
from whyfor.service.file_page import FileQuery, file_page
from whyfor.service.map_page import MapQuery, map_page

Cli = Callable[..., Result]
GONE = "f" * 40
LINES = 1_000_000
PROGRAMS = (
    "core.fsmonitor diff.external core.pager core.hooksPath core.sshCommand core.editor "
    "core.alternateRefsCommand diff.evil.textconv diff.evil.command filter.evil.clean "
    "filter.evil.smudge filter.evil.process merge.evil.driver gpg.program credential.helper "
    "uploadpack.packObjectsHook"
).split()
# what each file is, and what is said of it
ODD = {
    "picture.png": "is not text",
    "link.py": "is a symbolic link",
    "module": "is a submodule",
    "folder": "is a directory",
    "nothing.py": "is not in",
    "huge.txt": "1,000,000 lines",
}


@pytest.fixture
def shop(tmp_path: Path, home: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> Workshop:
    """A repository with a story, in which everything is odd that can be."""
    repo = Repo.made(tmp_path / "code" / "shop", Clock())
    monkeypatch.chdir(repo.path)
    made = Workshop(home, repo, cli, hooked=False)
    repo.commit("First", {"till.py": "one = 1\n"})
    agent = Agent("s1", repo)
    agent.prompt("Count to two")
    agent.edit("till.py", "one = 1\n", "one = 1\nsecond = one + one\n")
    repo.commit("Two")
    made.ingest(agent)
    (repo.path / "picture.png").write_bytes(b"\x89PNG\0\0")
    (repo.path / "link.py").symlink_to("till.py")
    repo.write("folder/inner.py", "inner = 1\n")
    repo.write("model.bin", "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n")
    repo.write("huge.txt", "x\n" * LINES)
    repo.git("add", "-A")
    repo.git("update-index", "--add", "--cacheinfo", f"160000,{repo.head},module")
    repo.git("commit", "-q", "-m", "Odd things")
    return made


@pytest.fixture
def ran(shop: Workshop, tmp_path: Path) -> Path:
    """A file that any program of the repository's configuration makes."""
    made, program = tmp_path / "ran", tmp_path / "evil.sh"
    program.write_text(f"#!/bin/sh\ntouch {made}\ncat\n")
    program.chmod(0o755)
    with (shop.repo.path / ".git" / "config").open("a", encoding="utf-8") as file:
        for name in PROGRAMS:
            section, _, key = name.rpartition(".")
            first, _, rest = section.partition(".")
            head = f'[{first} "{rest}"]' if rest else f"[{first}]"
            file.write(f"{head}\n\t{key} = {program}\n")
    (shop.repo.path / ".git" / "info").mkdir(exist_ok=True)
    (shop.repo.path / ".git" / "info" / "attributes").write_text("* diff=evil filter=evil\n")
    return made


def _refused(cli: Cli, words: list[str], reason: str = "") -> None:
    answered(cli(*words), reason)


def answered(done: Result, reason: str = "") -> None:
    """A message and what to do next, without a trace of the program."""
    assert done.code in (1, 2), (done.code, done.out[:200])
    assert "Traceback" not in done.err
    assert reason in done.err, done.err
    assert len(done.err.strip().splitlines()) >= 2, "no hint"


def test_every_face_answers_what_it_cannot_tell(shop: Workshop, cli: Cli, ran: Path) -> None:
    settings = config.load()
    project = _project(shop)
    outside = shop.repo.path.parent / "outside.py"
    outside.write_text("x = 1\n")
    cases: dict[str, Callable[[], None]] = {}
    for name, reason in ODD.items():
        cases[f"blame {name}"] = partial(_refused, cli, ["blame", name], reason)
        cases[f"blame {name} HEAD"] = partial(_refused, cli, ["blame", name, "HEAD"], reason)
        cases[f"why {name}"] = partial(_why, cli, name)
        cases[f"editor {name}"] = partial(_editor, settings, shop.repo.path / name)
        cases[f"page {name}"] = partial(_page, settings, project, name)
    for name in (str(outside), "../outside.py", "/etc/passwd"):
        for words in (["blame", name], ["why", f"{name}:1"]):
            cases[" ".join(words)] = partial(_refused, cli, words, "not a file in this")
        cases[f"page {name}"] = partial(_no_page, settings, project, name)
    cases["editor outside"] = partial(_editor, settings, outside)
    for words in (["blame", "till.py", GONE], ["why", "till.py:1", GONE], ["lines", GONE]):
        cases[" ".join(words)] = partial(_refused, cli, words)
    for words in (["pr", GONE], ["review", GONE], ["lines", f"{GONE}..HEAD"]):
        cases[" ".join(words)] = partial(_refused, cli, words)
    check_each(list(cases.items()), lambda case: case())
    shop.repo.git("-c", "core.fsmonitor=false", "config", "blame.ignoreRevsFile", "till.py")
    told = cli("blame", "till.py")
    answered(told, "a list of commits to ignore")
    assert "one = 1" not in told.err, "nothing of the file is shown"
    assert not ran.exists()


def test_odd_files_beside_others_leave_them_as_they_are(
    shop: Workshop, cli: Cli, ran: Path
) -> None:
    """A range, a review and the pages have all of them in it."""
    settings = config.load()
    told = cli("lines", "HEAD~1..HEAD", "--json").json
    counted = {file["path"]: file for file in told["files"]}
    assert counted["huge.txt"]["unknown"] == counted["huge.txt"]["added"] == LINES
    for name in ("link.py", "module"):
        assert (counted[name]["added"], counted[name]["unknown"]) == (1, 1)
    numstat = _numstat(shop)
    wanted = {line.split("\t")[2]: line.split("\t")[0] for line in numstat}
    assert {name: str(file["added"]) for name, file in counted.items() if wanted[name] != "-"} == {
        name: added for name, added in wanted.items() if added != "-"
    }
    for words in (["review", "HEAD"], ["pr", "HEAD~1..HEAD"], ["blame", "model.bin"]):
        done = cli(*words)
        assert (done.code, "Traceback" in done.err) == (0, False), done.err
    told = cli("blame", "till.py", "--json").json
    assert [line["who"]["kind"] for line in told["lines"]] == ["unknown", "agent"]
    assert map_page(settings, MapQuery(_project(shop))).commits
    assert not ran.exists()


def _project(shop: Workshop) -> str:
    return f"git:{shop.repo.git('rev-list', '--max-parents=0', 'HEAD').split()[-1]}"


def _numstat(shop: Workshop) -> list[str]:
    plain = ("--no-ext-diff", "--no-textconv", "-r")
    asked = ("diff-tree", "--numstat", *plain, "HEAD~1", "HEAD")
    return shop.repo.git("-c", "core.fsmonitor=false", *asked).splitlines()


def _why(cli: Cli, name: str) -> None:
    done = cli("why", f"{name}:1")
    if name == "huge.txt":
        assert done.code == 0, "one line of a long file can be told"
    else:
        answered(done, ODD[name])


def _editor(settings: Settings, path: Path) -> None:
    """Nothing is shown, or an error of ours says why."""
    text = path.read_text(errors="replace") if path.is_file() else ""
    file = EditorFile(path, text)
    for ask in (lambda: explain_line(settings, file, 1), lambda: turn_blocks(settings, file)):
        try:
            assert not ask()
        except WhyforError as error:
            assert error.message


def _page(settings: Settings, project: str, name: str) -> None:
    page = file_page(settings, FileQuery(project, name))
    if name == "huge.txt":
        assert page.state == "too-large" or page.last <= 2000
    else:
        assert page.state


def _no_page(settings: Settings, project: str, name: str) -> None:
    with pytest.raises(BadInput, match="is not a file in this repository"):
        file_page(settings, FileQuery(project, name))


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="needs another owner")
def test_a_repository_of_somebody_else_is_not_asked(shop: Workshop, cli: Cli, ran: Path) -> None:
    for path in (shop.repo.path, *shop.repo.path.rglob("*")):
        os.lchown(path, 12345, 12345)
    for words in (["blame", "till.py"], ["why", "till.py:2"], ["lines"], ["pr"], ["review"]):
        answered(cli(*words), "is not in a git repository")
    _editor(config.load(), shop.repo.path / "till.py")
    assert not ran.exists()

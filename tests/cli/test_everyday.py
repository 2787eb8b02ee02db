"""What people do every day: where things stand, filters, typing errors, settings, completion and
the manual page."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Result, missing_part
from tests.transcripts import Transcript
from whyfor.cli import COMMANDS

Cli = Callable[..., Result]


def git(folder: Path, *arguments: str, **variables: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(folder), *arguments],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, **variables},
    )
    return done.stdout.strip()


def commit(folder: Path, path: str, *, author: str = "Ada", day: str = "2026-05-01") -> str:
    """Change a file; the commit."""
    file = folder / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"{file.read_text() if file.exists() else ''}{day} {author}\n")
    when = f"{day}T12:00:00+0000"
    git(folder, "add", path)
    names = {"GIT_AUTHOR_NAME": author, "GIT_AUTHOR_EMAIL": f"{author.lower()}@example.com"}
    git(
        folder,
        "commit",
        "-m",
        f"Change {path}",
        **names,
        GIT_AUTHOR_DATE=when,
        GIT_COMMITTER_DATE=when,
    )
    return git(folder, "rev-parse", "HEAD")


@pytest.fixture
def repository(home: Path, tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "shop"
    folder.mkdir()
    for key, value in (("user.name", "Ada"), ("user.email", "ada@example.com")):
        subprocess.run(["git", "config", "--global", key, value], check=True)
    git(folder, "init", "-q", "-b", "main")
    commit(folder, "a.py", day="2026-05-01")
    commit(folder, "src/b.py", author="Bob", day="2026-05-02")
    git(folder, "checkout", "-q", "-b", "spike")
    commit(folder, "src/b.py", author="Eve", day="2026-05-03")
    git(folder, "checkout", "-q", "main")
    commit(folder, "a.py", day="2026-05-04")
    told = Transcript("one", cwd=str(folder))
    told.prompt("Go")
    told.save(home)
    assert cli("ingest").code == 0
    monkeypatch.chdir(folder)
    return folder


# -- log -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "days"),
    [
        ([], [4, 2, 1]),
        (["-n", "1"], [4]),
        (["--", "a.py"], [4, 1]),
        (["a.py"], [4, 1]),
        (["HEAD~1", "--", "a.py"], [1]),
        (["-n", "1", "--", "a.py", "src"], [4]),
        (["--", "*.py"], [4, 2, 1]),
        (["--author", "bob"], [2]),
        (["--author", "ADA@example"], [4, 1]),
        (["--author", "a.*"], []),
        (["--since", "2026-05-02", "--until", "2026-05-03"], [2]),
        (["--branch", "spike"], [3, 2, 1]),
        (["--all"], [4, 3, 2, 1]),
        (["--all", "--author", "Eve"], [3]),
        (["--agent", "codex"], []),
    ],
)
def test_log_shows_the_commits_that_fit(
    repository: Path, cli: Cli, arguments: list[str], days: list[int]
) -> None:
    own = arguments.index("--") if "--" in arguments else len(arguments)
    found = cli("log", *arguments[:own], "--json", *arguments[own:]).json
    assert [int(entry["committed_at"][8:10]) for entry in found] == days


def test_paths_of_log_are_those_of_the_current_directory(
    repository: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(repository / "src")
    assert len(cli("log", "--json", "--", "b.py").json) == 1
    assert len(cli("log", "--json", "--", "../a.py").json) == 2
    assert len(cli("log", "--json", "--", str(repository / "a.py")).json) == 2
    assert cli("log", "--json", "--", "a.py").json == []


def test_log_takes_one_of_all_branch_and_range(repository: Path, cli: Cli) -> None:
    for arguments in (["--all", "main"], ["--all", "--branch", "main"], ["main", "--branch", "x"]):
        assert cli("log", *arguments, "--json").json["error"]["kind"] == "usage"
    assert cli("log", "--branch", "nowhere", "--json").json["error"]["kind"] == "bad_input"
    assert cli("log", "--agent", "nobody", "--json").json["error"]["kind"] == "bad_input"


def test_the_first_line_of_log_is_head_also_where_commits_share_a_request(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    kept = cli("demo", "--keep", "--json").json
    monkeypatch.setenv("HOME", kept["home"])
    monkeypatch.setenv("WHYFOR_HOME", kept["whyfor_home"])
    monkeypatch.chdir(kept["repository"])
    listed = cli("log", "--json").json
    order = [entry["commit"][:8] for entry in listed]
    shared = next(entry["commit"] for entry in listed if entry["subject"].startswith("Say"))
    git(Path(kept["repository"]), "checkout", "-q", shared)
    lines = cli("log").out.splitlines()
    assert shared[:8] in lines[1]
    assert "┌ Say" in lines[1]
    assert "└ Retry" in lines[2]
    assert [entry["commit"][:8] for entry in cli("log", "--json").json] == order[-3:]


# -- sessions ------------------------------------------------------------------------------------


@pytest.fixture
def three(home: Path, cli: Cli) -> None:
    """One that began first and ended last, one that wrote a file, one that used most tokens."""
    long = Transcript("long", day="2026-05-01")
    long.prompt("Long")
    long.day = "2026-05-09"
    long.say("At last")
    writer = Transcript("writer", day="2026-05-03")
    writer.prompt("Writer")
    path = r"C:\code\shop\auth\login.py"
    writer.call("Edit", {"file_path": path, "old_string": "a", "new_string": "b"})
    spender = Transcript("spender", day="2026-05-02")
    spender.prompt("Spender")
    spender.block({"type": "text", "text": "x"}, output=90_000)
    for told in (long, writer, spender):
        told.save(home)
    assert cli("ingest").code == 0


@pytest.mark.parametrize(
    ("arguments", "titles"),
    [
        ([], ["Long", "Writer", "Spender"]),
        (["--sort", "last"], ["Long", "Writer", "Spender"]),
        (["--sort", "started"], ["Writer", "Spender", "Long"]),
        (["--sort", "tokens"], ["Spender", "Writer", "Long"]),
        (["--file", "login.py"], ["Writer"]),
        (["--file", "./auth/login.py"], ["Writer"]),
        (["--file", r"auth\login.py"], ["Writer"]),
        (["--file", "other.py"], []),
    ],
)
def test_sessions_are_sorted_and_found_by_file(
    three: None, cli: Cli, arguments: list[str], titles: list[str]
) -> None:
    assert [each["title"] for each in cli("sessions", *arguments, "--json").json] == titles


def test_what_sessions_are_sorted_by_is_shown(three: None, cli: Cli) -> None:
    shown = cli("sessions").out
    assert "2026-05-09" in shown
    assert "2026-05-01" in cli("sessions", "--sort", "started").out
    assert "tokens" in cli("sessions", "--sort", "tokens").out
    assert "90k" in cli("sessions", "--sort", "tokens").out


def test_ids_of_search_and_of_subagents_name_one_session_each(home: Path, cli: Cli) -> None:
    for number in range(5):
        told = Transcript(f"p{number}")
        told.prompt("Look at the harbour")
        path = told.save(home)
        below = path.parent / told.session_id / "subagents" / f"agent-a7{number}.jsonl"
        below.parent.mkdir(parents=True)
        child = Transcript(f"c{number}")
        child.session_id = told.session_id
        child.prompt("Count the boats in the harbour")
        for line in child.lines:
            line.update(isSidechain=True, agentId=f"a7{number}")
        below.write_text(child.text())
    cli("ingest")
    kept = {each["session_id"] for each in cli("sessions", "--all", "--json").json}
    assert len(kept) == 10
    for ids in (
        re.findall(r"agent-a7\S*", cli("sessions", "--all").out),
        re.findall(r"\b[0-9a-f]{8}[0-9a-f-]*", cli("search", "harbour").out),
    ):
        assert ids
        for ident in ids:
            assert cli("show", ident, "--json").json["session"]["session_id"].startswith(ident)
            assert cli("export", ident, "--json").code == 0


# -- where things stand --------------------------------------------------------------------------


def test_a_bare_call_on_a_new_machine_names_the_next_step(cli: Cli) -> None:
    result = cli()
    assert result.code == 0
    assert "Nothing is kept yet." in result.out
    assert "Next: " in result.out
    assert "whyfor demo" in result.out


def test_a_bare_call_in_a_repository_says_what_is_known_and_what_is_missing(
    repository: Path, cli: Cli
) -> None:
    result = cli()
    assert result.code == 0
    head = git(repository, "rev-parse", "HEAD")[:8]
    assert f"HEAD {head} without a story" in result.out
    assert "Hooks are not installed" in result.out
    assert "Next: whyfor init" in result.out
    assert cli("init").code == 0
    assert "Next: whyfor log" in cli().out


def test_a_bare_call_elsewhere_leads_to_the_sessions(
    repository: Path, cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = cli()
    assert result.code == 0
    assert "Next: whyfor sessions" in result.out


# -- typing errors -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (["sesions"], "sessions"),
        (["lgo"], "log"),
        (["log", "--limt", "3"], "--limit"),
        (["log", "--sinse", "3d"], "--since"),
        (["sessions", "--colour", "never"], "--color"),
        (["search", "x", "--projekt", "y"], "--project"),
        (["projects", "alais"], "alias"),
        (["config", "gte"], "get"),
    ],
)
def test_a_typing_error_gets_one_suggestion(cli: Cli, arguments: list[str], meant: str) -> None:
    result = cli(*arguments)
    assert result.code == 2
    assert result.err.count("Did you mean") == 1
    assert re.search(rf"Did you mean {re.escape(meant)}\?", result.err)


def test_a_branch_whose_name_is_like_a_command_is_shown(repository: Path, cli: Cli) -> None:
    head = git(repository, "rev-parse", "HEAD")[:10]
    assert head in cli("main").out
    git(repository, "branch", "logs")
    assert head in cli("logs").out


def test_what_is_like_nothing_gets_no_suggestion(cli: Cli) -> None:
    result = cli("log", "--frobnicate")
    assert "Did you mean" not in result.err
    assert "See: whyfor log --help" in result.err


# -- words for people ----------------------------------------------------------------------------


def test_no_command_shows_how_things_are_called_inside(
    repository: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    git(repository, "merge", "-q", "--no-ff", "-m", "Merge spike", "spike")
    bare = repository.parent / "tool.git"
    git(repository, "clone", "-q", "--bare", ".", str(bare))
    cli("ingest")
    commands = ("log", "show HEAD", "status", "sessions", "projects", "stats", "diff HEAD~1", "")
    for command in commands:
        result = cli(*command.split())
        assert result.code == 0, result.err
        said = result.out + result.err
        assert "context_reset" not in said
        assert not re.search(r"git:[0-9a-f]{4}", said)
    error = cli("restore", "HEAD")
    assert error.code == 2
    assert "context_reset" not in error.err


# -- settings ------------------------------------------------------------------------------------


def test_settings_are_shown_changed_and_removed(cli: Cli, tmp_path: Path) -> None:
    path = Path(cli("config", "path").out.strip())
    assert path == tmp_path / "whyfor" / "config.toml"
    assert cli("config", "get", "retention.sessions").out.strip() == "–"
    assert cli("config", "set", "retention.sessions", "365").code == 0
    assert cli("config", "set", "exclude.agents", "copilot", "gemini").code == 0
    assert cli("config", "set", "checkout_line", "false").code == 0
    assert cli("config", "get", "exclude.agents").out.splitlines() == ["copilot", "gemini"]
    shown = {each["name"]: each for each in cli("config", "--json").json}
    assert shown["retention.sessions"]["value"] == 365
    assert (shown["checkout_line"]["value"], shown["checkout_line"]["given"]) == (False, True)
    assert cli("config", "set", "--unset", "checkout_line").code == 0
    assert cli("config", "get", "checkout_line").out.strip() == "true"
    assert "checkout_line" not in path.read_text()
    assert path.stat().st_mode & 0o077 == 0


def test_a_change_keeps_everything_else_in_the_file(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "whyfor" / "config.toml"
    path.parent.mkdir(exist_ok=True)
    path.write_text(
        "# mine\n\n[exclude]\nagents = [  # for now\n  'copilot',\n]\n\n"
        "[retention] # days\nsessions = 90 # a quarter\n"
    )
    for arguments in (
        ["retention.sessions", "30"],
        ["retention.signals", "7"],
        ["exclude.projects", "~/x"],
        ["notify.desktop", "true"],
        ["checkout_line", "false"],
        ["exclude.agents", 'with "quotes" \\ and #'],
    ):
        assert cli("config", "set", *arguments).code == 0
    assert path.read_text() == (
        "# mine\ncheckout_line = false\n\n[exclude]\n"
        'agents = ["with \\"quotes\\" \\\\ and #"]\nprojects = ["~/x"]\n\n'
        "[retention] # days\nsessions = 30 # a quarter\nsignals = 7\n\n[notify]\ndesktop = true\n"
    )


@pytest.mark.parametrize(
    ("arguments", "kind"),
    [
        (["get", "nonsense"], "not_found"),
        (["set", "nonsense", "1"], "not_found"),
        (["set", "retention.sessions", "soon"], "bad_input"),
        (["set", "retention.sessions", "0"], "bad_input"),
        (["set", "retention.sessions", "1", "2"], "bad_input"),
        (["set", "notify.when", "never"], "bad_input"),
        (["set", "redact.allow", "("], "bad_input"),
        (["set", "redact.rule", "x"], "bad_input"),
        (["set", "checkout_line"], "usage"),
    ],
)
def test_a_setting_that_does_not_fit_changes_nothing(
    cli: Cli, tmp_path: Path, arguments: list[str], kind: str
) -> None:
    assert cli("config", *arguments, "--json").json["error"]["kind"] == kind
    assert not (tmp_path / "whyfor" / "config.toml").exists()


def test_a_file_written_another_way_is_left_to_its_owner(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "whyfor" / "config.toml"
    path.parent.mkdir(exist_ok=True)
    path.write_text("retention = {sessions = 9}\n")
    result = cli("config", "set", "retention.sessions", "30")
    assert result.code == 2
    assert str(path) in result.err
    assert path.read_text() == "retention = {sessions = 9}\n"


# -- completion and the manual page --------------------------------------------------------------


@pytest.fixture
def program(tmp_path: Path) -> dict[str, str]:
    """An environment in which `whyfor` is this one."""
    folder = tmp_path / "bin"
    folder.mkdir()
    script = folder / "whyfor"
    script.write_text(f'#!/bin/sh\nexec {sys.executable} -m whyfor "$@"\n')
    script.chmod(0o755)
    return {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}


def shell(name: str) -> str:
    return shutil.which(name) or missing_part(f"{name} is not installed")


def test_bash_completes_commands_options_agents_and_sessions(
    three: None, program: dict[str, str], tmp_path: Path
) -> None:
    ids = ids_of_three()
    script = tmp_path / "complete.bash"
    script.write_text(
        "source <(whyfor completion bash)\ncomplete -p whyfor >/dev/null\n"
        'ask() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=(); '
        '_whyfor_completion whyfor "${@: -1}" "${@: -2:1}"; echo "${COMPREPLY[*]}"; }\n'
        f"ask whyfor se\nask whyfor log --si\nask whyfor sessions --agent co\n"
        f"ask whyfor show {ids[0][:4]}\nask whyfor config get ret\n"
    )
    done = subprocess.run(
        [shell("bash"), "--norc", str(script)],
        capture_output=True,
        text=True,
        env=program,
        check=True,
        timeout=120,
    )
    commands, options, agents, sessions, settings = done.stdout.splitlines()
    assert set(commands.split()) == {"sessions", "search", "serve", "server"}
    assert options == "--since"
    assert set(agents.split()) == {"codex", "continue", "copilot"}
    assert ids[0].startswith(sessions)
    assert set(settings.split()) == {
        "retention.sessions",
        "retention.subagents",
        "retention.signals",
    }


def ids_of_three() -> list[str]:
    return [Transcript(name).session_id for name in ("long", "writer", "spender")]


def test_zsh_completes_commands(program: dict[str, str], tmp_path: Path) -> None:
    zsh = shell("zsh")
    folder = tmp_path / "zfunc"
    folder.mkdir()
    made = subprocess.run(
        ["whyfor", "completion", "zsh"], capture_output=True, text=True, env=program, check=True
    )
    (folder / "_whyfor").write_text(made.stdout)
    # Without a line editor: the script's own function, with the words that zsh would give it.
    code = (
        f"fpath=({folder} $fpath); autoload -Uz compinit && compinit -u -d {tmp_path}/dump; "
        "print -r -- ${_comps[whyfor]}; compdef() { : }; "
        "_describe() { print -rl -- ${(P)3} }; compadd() { : }; _path_files() { : }; "
        f"source {folder}/_whyfor; words=(whyfor se); CURRENT=2; _whyfor_completion"
    )
    done = subprocess.run(
        [zsh, "-f", "-c", code], capture_output=True, text=True, env=program, timeout=120
    )
    assert done.stdout.splitlines()[0] == "_whyfor", done.stderr
    assert "sessions:List sessions" in done.stdout


def test_fish_completes_commands(program: dict[str, str], tmp_path: Path) -> None:
    fish = shell("fish")
    code = "whyfor completion fish | source; complete -C 'whyfor se'; complete -C 'whyfor log --si'"
    done = subprocess.run(
        [fish, "--no-config", "-c", code], capture_output=True, text=True, env=program, timeout=120
    )
    words = [line.split("\t")[0] for line in done.stdout.splitlines()]
    assert {"sessions", "search", "serve", "--since"} <= set(words), done.stderr


def test_completing_a_command_imports_none(program: dict[str, str]) -> None:
    code = (
        "import sys; from whyfor.__main__ import main\n"
        "try: main([])\nexcept SystemExit: pass\n"
        "sys.exit(9 if {'rich', 'apsw', 'litestar'} & set(sys.modules) else 0)"
    )
    env = {**program, "_WHYFOR_COMPLETE": "bash_complete", "COMP_WORDS": "whyfor se"}
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={**env, "COMP_CWORD": "1"},
    )
    assert done.returncode == 0, done.stderr
    assert "plain,sessions" in done.stdout


def test_the_manual_page_has_every_command_and_option(cli: Cli, tmp_path: Path) -> None:
    page = cli("man").out
    for name in COMMANDS:
        assert f".SS whyfor {name.replace('-', chr(92) + '-')} " in page
    assert r"\-\-no\-pager" in page
    path = tmp_path / "whyfor.1"
    path.write_text(page)
    man = shutil.which("man") or missing_part("man is not installed")
    shown = subprocess.run(
        [man, "--warnings", "-l", str(path)],
        capture_output=True,
        text=True,
        env={**os.environ, "MANWIDTH": "80", "LC_ALL": "C.UTF-8"},
        check=True,
    )
    assert shown.stderr == ""
    assert "whyfor log --agent codex --since 2w" in shown.stdout
    assert max(map(len, shown.stdout.splitlines())) < 110


def test_an_ingest_that_finds_nothing_new_imports_neither_rich_nor_rules(
    program: dict[str, str],
) -> None:
    code = (
        "import sys; from whyfor.__main__ import main\n"
        "assert main(['ingest']) == 0\n"
        "heavy = {'rich', 'whyfor.story.rules.prepare', 'whyfor.git.snapshots'}\n"
        "print(sorted(heavy & set(sys.modules)), file=sys.stderr)"
    )
    command = [sys.executable, "-c", code]
    subprocess.run(command, check=True, capture_output=True, env=program)
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=program)
    assert done.stderr.strip() == "[]"

"""Nothing that a transcript, a repository or an argument holds acts on a terminal, hides in it
or forges a line."""

from __future__ import annotations

import ast
import asyncio
import html
import json
import os
import re
import signal
import subprocess
import sys
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.attack.terminal import ATTACKS, LINE, Terminal, foreign, forged, walk
from tests.cli.top.conftest import Screen, shown
from tests.cli.top.window import TOP, Window
from tests.conftest import REPOSITORY, Result
from tests.pages.sessions import asking, standing
from tests.transcripts import Transcript
from whyfor import terminal
from whyfor.__main__ import main
from whyfor.capture.faults import log_error
from whyfor.cli import COMMANDS
from whyfor.config import Settings
from whyfor.live import notify as notifying
from whyfor.live.notify import Notification, NotifySettings, send_notice
from whyfor.model import characters
from whyfor.model.text import clean, label, one_line
from whyfor.server import render
from whyfor.service.export import prose
from whyfor.service.ingest import ingest

Cli = Callable[..., Result]
SOURCE = REPOSITORY / "src" / "whyfor"
EVERYTHING = "".join(attack for name, attack in ATTACKS.items() if name != "OSC without an end")


class Hostile(NamedTuple):
    """What was built."""

    repository: Path
    transcript: Path
    sessions: list[str]
    worker: str  # the session that made the commits
    file: str  # the last file it wrote


class Shown(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture
def on_terminal(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Shown]:
    """Run a command in this process, on a terminal."""
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "3000")  # a line that is wrapped is not forged

    def run(*arguments: object) -> Shown:
        out, err = Terminal(), Terminal()
        mask = os.umask(0)
        with monkeypatch.context() as patch:
            patch.setattr(sys, "stdout", out)
            patch.setattr(sys, "stderr", err)
            code = main([str(argument) for argument in arguments])
        os.umask(mask)
        return Shown(code, out.text, err.text)

    return run


def git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(folder), *arguments], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


@pytest.fixture
def hostile(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: Settings
) -> Hostile:
    """A home and a repository in which every name is an attack."""
    folder = "shop" + ATTACKS["window title (OSC 0)"].replace("/", "") + "\u202e\u200b" + LINE
    repository = tmp_path / folder
    repository.mkdir()
    monkeypatch.chdir(repository)
    git(repository, "init", "-q", "-b", "ma\u202ein\u2028FORGED\u200b\x9b2J")
    git(repository, "config", "user.name", f"Eve{EVERYTHING.replace(chr(0), '')}")
    git(repository, "config", "user.email", "eve@example.com")
    worker = Transcript("worker", cwd=str(repository), branch="ma\u202ein" + LINE)
    for number in (1, 2):
        path = repository / f"fi\u202ele\x1b[2J{number}{LINE}.py"
        path.write_text(f"x = {number}  # \u202e\u200b\n", encoding="utf-8")
        git(repository, "add", "-A")
        git(repository, "commit", "-q", "-m", f"Add {number} {EVERYTHING.replace(chr(0), '')}")
        worker.prompt(f"Make {number} {EVERYTHING}")
        worker.call("Write", {"file_path": str(path), "content": path.read_text(encoding="utf-8")})
    worker.say(
        f"Done. {EVERYTHING}\n\n```python\nx = 1 # {EVERYTHING}\n```\n| a |\n|---|\n| {EVERYTHING} "
        "|"
    )
    worker.save(home)
    sessions = [worker.session_id]
    for kind, attack in ATTACKS.items():
        sessions.append(_session(home, kind, attack))
    sessions.append(_half_a_character(home))
    ingest(settings)
    return Hostile(repository, worker.path(home), sessions, worker.session_id, path.name)


def _session(home: Path, kind: str, attack: str) -> str:
    name = f"{attack}n{LINE}"
    made = Transcript(kind, cwd=f"/code/{name}", branch=name)
    made.prompt(f"quokka {attack}")
    made.think(f"thought {attack}")
    made.block({"type": "text", "text": f"said {attack} `{attack}`"}, model=name)
    made.call(name, {"command": f"ls {attack}", "file_path": name}, f"out {attack}", failed=True)
    for _ in range(6):
        made.call(name, {"command": attack}, attack)
    made.call("Edit", {"file_path": name, "old_string": "a", "new_string": f"b{attack}"})
    made.call(
        "AskUserQuestion",
        {"questions": [{"question": attack, "options": [{"label": attack}]}]},
        attack,
    )
    made.add(name, {"role": name, "content": attack}, version=name)
    made.add("system", {}, subtype=name, content=attack, level="error")
    made.say("The end.")
    for line in made.lines:
        line["version"] = name
    made.save(home)
    return made.session_id


def _half_a_character(home: Path) -> str:
    """JSON can hold half a surrogate pair, which no UTF-8 can."""
    made = Transcript("half", branch="\udcff", cwd="/code/\ud800")
    made.prompt("half \ud800 of it")
    made.call("Bash\udfff", {"command": "ls \udc80"}, "\ud83d")
    made.say("said \udcff")
    path = made.path(home)
    path.write_text("".join(json.dumps(line) + "\n" for line in made.lines), encoding="ascii")
    return made.session_id


def checked(label_: str, found: Shown) -> list[str]:
    wrong = [f"{label_} stdout: {each}" for each in foreign(found.out)]
    wrong += [f"{label_} stderr: {each}" for each in foreign(found.err, bars=True)]
    return wrong[:3]


# -- every command -------------------------------------------------------------------------------


READING = """
ingest | ingest --json | sessions | sessions --all | sessions --json | sessions --all --limit 3 | log | log --json
status | status --json | diff HEAD~1 HEAD | diff HEAD~1 HEAD --json | projects | projects --json | stats | stats --json
search quokka | search quokka --json | search said --in answers | search thought --sort time | top --once | top --json
doctor | doctor --json | doctor --deep | show HEAD | show HEAD --json | show HEAD --markdown | rebuild | rebuild --json
export HEAD | export HEAD --format html | export HEAD --json | export HEAD~1..HEAD --tools --thinking
init --dry-run | init --dry-run --json | uninstall --dry-run | link | link --json | link HEAD~1..HEAD --json
--help | serve --help | --version | forget --match quokka --dry-run | forget --match quokka --dry-run --json
context | context --json | mcp --help | memory | memory --json | memory preview | config | config --json | config path | completion bash | man | log --verbose | sessions --color always
agents | agents --json | lines HEAD~1..HEAD | lines HEAD~1..HEAD --json | blame {file} | blame {file} --json
why {file}:1 | why {file}:1 --json | {file}:1
tasks | tasks --json | approvals | approvals --json | rules list | rules list --json | rules suggest | rules test ls
review HEAD~1..HEAD | review HEAD~1..HEAD --json | pr HEAD~1..HEAD --dry-run | pr HEAD~1..HEAD --json
lsp --help | login --help | server --help | attention | attention --json | attention --all | attention --replay
attention --replay --json | alerts | alerts --json | feed | feed --json
"""
OF_SESSIONS = """
show | show --turns | show --thinking --tools | show --json | show --turns --json | show --raw
export | export --tools --thinking | export --format html --tools | export --json | export --no-redact
"""
CHANGING = """
init --no-history | init --json | note --title {all} --intent {all} --alternative {all} | note --title x --json
link HEAD {worker} | show HEAD | show HEAD --markdown | log | export HEAD --tools | status | restore HEAD
unlink HEAD {worker} | pause --repo | status | top --once | resume --repo | pause --session {worker} | resume --session
pause --for 1h | doctor | resume | redact {transcript} | redact {transcript} --stats | redact {transcript} --json
projects alias {all} . | projects | forget {worker} --dry-run | forget {worker} --yes | rebuild | uninstall
uninstall --all --json | demo | import {transcript} | import . --json | notes import | notes import --ref {all}
task start {all} | task done {all} | tasks | show {all} | share HEAD | share {worker} | keep-local {worker} | sync --once
whoami | whoami --json | logout | remote status | remote status --json | sync --preview | sync --preview --json
handoff {worker} | handoff {worker} --json | remote add {all} | agents new {all} | agents check {all} | rules add {all}
"""


def commands(text: str) -> list[list[str]]:
    return [
        each.split()
        for line in text.strip().splitlines()
        for each in line.split("|")
        if each.strip()
    ]


def test_no_command_that_reads_lets_anything_act(
    hostile: Hostile, on_terminal: Callable[..., Shown]
) -> None:
    on_terminal("link", "HEAD", hostile.worker)
    wrong = []
    for words in commands(READING):
        arguments = [word.replace("{file}", hostile.file) for word in words]
        found = on_terminal(*arguments)
        assert found.code in (0, 1), (arguments, found)
        wrong += checked(" ".join(arguments), found)
        if arguments[0] not in ("export", "show"):
            wrong += [f"{arguments} forged {line!r}" for line in forged(found.out + found.err)]
    assert wrong == []


def test_no_conversation_lets_anything_act(
    hostile: Hostile, on_terminal: Callable[..., Shown]
) -> None:
    wrong = []
    ways = commands(OF_SESSIONS)
    for at, session in enumerate(hostile.sessions):
        # it holds all attacks; of the others each is read in three ways
        every = session == hostile.worker
        for verb, *options in ways if every else [ways[2], ways[6 + at % 5], ways[at % 6]]:
            found = on_terminal(verb, session, *options)
            assert found.code == 0, (verb, options, found)
            wrong += checked(f"{verb} {options} {session}", found)
    assert wrong == []


def test_no_command_that_changes_something_lets_anything_act(
    hostile: Hostile, on_terminal: Callable[..., Shown]
) -> None:
    argument = EVERYTHING.replace("\0", "") + LINE
    given = {"{all}": argument, "{worker}": hostile.worker, "{transcript}": str(hostile.transcript)}
    wrong = []
    for words in commands(CHANGING):
        arguments = [given.get(word, word) for word in words]
        found = on_terminal(*arguments)
        assert found.code in (0, 1, 2), (words, found)
        wrong += checked(" ".join(words), found)
    assert wrong == []


def test_every_command_is_tried() -> None:
    tried = {
        arguments[0] for text in (READING, OF_SESSIONS, CHANGING) for arguments in commands(text)
    }
    own = {"run"}  # passes its program's output on, byte for byte: tests/capture/test_recorder.py
    assert set(COMMANDS) <= tried | own


@pytest.fixture
def kept(home: Path, settings: Settings) -> None:
    made = Transcript("plain")
    made.prompt("Hello")
    made.save(home)
    ingest(settings)


ERRORS = """
{} | show {} | show --{} | sessions --agent {} | sessions --since {} | sessions --limit {} | sessions --project {}
export a..{} | log {} | link {} {} | ingest {} | redact {} | projects alias {} {} | pause --for {} | search "{}
"""


@pytest.mark.usefixtures("kept")
def test_an_error_quotes_what_was_typed_and_stays_two_lines(
    on_terminal: Callable[..., Shown],
) -> None:
    for attack in ATTACKS.values():
        typed = attack.replace("\0", "") + LINE
        for words in commands(ERRORS):
            arguments = [word.replace("{}", typed) for word in words]
            found = on_terminal(*arguments)
            assert found.code == 2, (arguments, found)
            assert foreign(found.out) + foreign(found.err, bars=True) + forged(found.err) == [], (
                arguments
            )
            assert found.err.strip().count("\n") <= 1
        told = on_terminal("show", typed, "--json")
        assert foreign(told.out) == [] and "FORGED" in json.loads(told.out)["error"]["message"]


@pytest.mark.usefixtures("kept")
def test_an_argument_that_is_no_text_is_named_and_leaves_valid_json(
    on_terminal: Callable[..., Shown],
) -> None:
    found = on_terminal("ingest", "x\udcff")
    assert found.code == 2 and "x\ufffdff" in found.err
    told = on_terminal("ingest", "x\udcff", "--json")
    assert "x\ufffdff" in json.loads(told.out)["error"]["message"]


# -- data stays data -----------------------------------------------------------------------------


def test_json_says_the_same_on_a_terminal_and_keeps_every_character(
    hostile: Hostile, on_terminal: Callable[..., Shown]
) -> None:
    found = on_terminal("sessions", "--json", "--limit", "0")
    assert foreign(found.out) == []
    strings = set(walk(json.loads(found.out)))
    for attack in ATTACKS.values():
        assert f"{attack}n{LINE}" in strings


def test_what_goes_into_a_file_or_a_pipe_is_not_touched(
    hostile: Hostile, cli: Cli, tmp_path: Path
) -> None:
    whole = hostile.transcript.read_bytes()
    run = [sys.executable, "-m", "whyfor"]
    for arguments in (["show", hostile.worker, "--raw"], ["redact", str(hostile.transcript)]):
        assert subprocess.run([*run, *arguments], capture_output=True, check=True).stdout == whole
    for form in ("markdown", "html", "json"):
        kept = tmp_path / form
        arguments = ["export", hostile.worker, "--tools", "--format", form]
        assert cli(*arguments, "--output", kept).code == 0
        assert cli(*arguments).out == kept.read_text(encoding="utf-8")


def test_an_export_holds_nothing_that_acts_and_shows_what_hides_in_code(
    hostile: Hostile, cli: Cli
) -> None:
    for form in ("markdown", "html"):
        text = cli("export", hostile.worker, "--tools", "--format", form).out
        assert foreign(text) == []
        assert "⟨U+202E⟩" in text and "⟨U+200B⟩" in text


def test_what_is_hidden_in_code_stays_shown_in_an_export_with_secrets(home: Path, cli: Cli) -> None:
    secret = "ghp_" + "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0dF3hJ6"
    made = Transcript("secret")
    made.prompt(f"Use {secret[:20]}\u200b{secret[20:]}")
    made.say("```\nif admin\u202e: pass\n```")
    made.save(home)
    cli("ingest")
    text = cli("export", made.session_id).out
    assert "[REDACTED:" in text and secret[:20] not in text and secret[20:] not in text
    assert "admin⟨U+202E⟩" in text


# -- real terminals ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments",
    [
        ["sessions"],
        ["show", "HEAD"],
        ["doctor"],
        ["export", "HEAD"],
        ["show", "no\x1b]0;owned\x07\u202ene"],
    ],
    ids=["sessions", "show", "doctor", "export", "error"],
)
def test_a_real_terminal_gets_our_styling_and_nothing_else(
    hostile: Hostile, arguments: list[str]
) -> None:
    env = {**os.environ, "TERM": "xterm-256color", "PAGER": "cat -u"}
    with Window(["-m", "whyfor", *arguments], env, 140, 40) as window:
        window.leave()
        assert foreign(window.written, bars=True) == []


@pytest.mark.usefixtures("hostile")
def test_a_server_says_nothing_that_acts() -> None:
    with Window(
        ["-m", "whyfor", "serve", "--port", "0", "--no-open"], os.environ, 140, 40
    ) as window:
        window.see("Stop it with Ctrl-C.")
        window.process.send_signal(signal.SIGINT)
        window.leave()
        assert foreign(window.written, bars=True) == []


def test_a_traceback_on_a_real_terminal_does_not_act(tmp_path: Path) -> None:
    program = "import sys\nfrom whyfor.__main__ import main\nfrom whyfor.cli import log\n"
    program += (
        "log.config.load = lambda: 1 / 0 if 0 else (_ for _ in "
        f"()).throw(ValueError({EVERYTHING!r}))\n"
    )
    program += "sys.exit(main(['log']))"
    with Window(["-c", program], {**os.environ, "WHYFOR_DEBUG": "1"}, 140, 40) as window:
        assert window.leave() == 1
        assert "ValueError" in window.plain
        assert foreign(window.written.replace("\r\n", "\n")) == []


def test_what_a_library_prints_passes_the_same_door(capsys: pytest.CaptureFixture[str]) -> None:
    import logging
    import threading
    import traceback
    import warnings

    def fail() -> None:
        raise ValueError(EVERYTHING)

    with terminal.clean_streams(), warnings.catch_warnings():
        warnings.simplefilter("always")
        print(EVERYTHING)
        sys.stderr.writelines([EVERYTHING, "\n"])
        sys.stderr.write(warnings.formatwarning(EVERYTHING, UserWarning, "x", 1))
        logger = logging.Logger("uvicorn.error")
        logger.addHandler(logging.lastResort or logging.StreamHandler())
        logger.error("Exception in ASGI application %s", EVERYTHING)
        try:
            fail()
        except ValueError as error:
            traceback.print_exception(error)
            threading.__excepthook__(
                threading.ExceptHookArgs((ValueError, error, None, threading.current_thread()))
            )
    found = capsys.readouterr()
    assert foreign(found.out + found.err) == []
    assert (
        found.err.count("Traceback") == 2
        and "Exception in ASGI" in found.err
        and "UserWarning" in found.err
    )


# -- top -----------------------------------------------------------------------------------------


def test_top_shows_names_and_obeys_none(hostile: Hostile, settings: Settings) -> None:
    async def act() -> None:
        async with shown(settings, 120, 60) as screen:
            cards = [asking(f"ask {kind}", attack) for kind, attack in list(ATTACKS.items())[:3]]
            cards += [
                standing(f"s {attack}", "running", status={"activity": attack})
                for attack in list(ATTACKS.values())[3:]
            ]
            screen.app.stand(cards)
            screen.app.notify(EVERYTHING, title=EVERYTHING)
            await screen.see("Needs approval")
            _clean_screen(screen)
            screen.app._tell_trouble([EVERYTHING])
            await screen.pilot.pause()
            _clean_screen(screen)

    asyncio.run(act())


def test_a_conversation_in_top_is_clean_on_a_real_terminal(
    home: Path, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Transcript("now", live=True, cwd=f"/code/n{EVERYTHING}{LINE}", branch=EVERYTHING)
    made.prompt(f"Count the quokkas {EVERYTHING}")
    made.call("Bash", {"command": f"ls {EVERYTHING}"}, EVERYTHING, failed=True)
    made.call("Edit", {"file_path": EVERYTHING, "old_string": "a", "new_string": f"b{EVERYTHING}"})
    made.say(f"All **seen** {EVERYTHING} `{EVERYTHING}`")
    made.save(home)
    ingest(settings)
    with Window(TOP, {**os.environ, "TERM": "xterm-256color"}, 120, 50) as window:
        window.see("Count the")
        window.press("\r")
        window.see("All seen")
        at = window.press("e")
        window.see("ls ", since=at)
        window.press("\x03")
        window.leave()
        assert foreign(window.written, screen=True) == []


def _clean_screen(screen: Screen) -> None:
    assert foreign(screen.text) == []
    assert forged(screen.text) == []


# -- pages ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ATTACKS)
def test_a_page_names_what_is_hidden_whatever_filter_was_forgotten(kind: str) -> None:
    attack = f"n{ATTACKS[kind]}m"
    made = render.environment().from_string(
        "<title>{{ name }}</title><code>{{ name | exact }}</code>"
    )
    assert foreign(made.render(name=attack)) == []
    shown_ = str(render.render_prose(f"{attack}\n\n```python\nx = 1 # {attack}\n```\n`{attack}`"))
    assert (
        foreign(shown_ + str(render.highlight(attack, "python")) + str(render.typed(attack))) == []
    )
    value = render.environment().from_string("{{ name | verbatim }}").render(name=attack)
    assert html.unescape(value) == attack, "what a form sends back is what it was"


def test_code_on_a_page_shows_what_hides_in_it() -> None:
    trojan = "if admin\u202e \u2066# check\u2069 \u2066: pass"
    for made in (
        render.render_prose(f"```python\n{trojan}\n```"),
        render.render_prose(f"`{trojan}`"),
        render.highlight(trojan),
    ):
        words = re.sub(r"<[^>]+>", "", str(made))
        assert "admin⟨U+202E⟩" in words and "⟨U+2066⟩# check" in words


# -- notices and logs ----------------------------------------------------------------------------


def test_a_notice_holds_no_option_and_nothing_hidden(settings: Settings, tmp_path: Path) -> None:
    kept = tmp_path / "kept.json"
    program = (
        "import json,os,sys; from pathlib import Path; "
        f"Path({str(kept)!r}).write_text(json.dumps({{k: v for k, v in os.environ.items() if "
        "'NOTIFY' in k}))"
    )
    wished = NotifySettings(command=[sys.executable, "-c", program])
    bad = f"--urgency=critical {EVERYTHING}{LINE}\ud800"
    assert (
        send_notice(settings, wished, Notification("waiting", f"-x:{EVERYTHING}", bad, bad, bad))
        == []
    )
    given = json.loads(kept.read_text())
    assert len(given) == 6
    for value in given.values():
        assert foreign(value) == [] and "\n" not in value and not value.startswith("-")
    words = {name.removeprefix("WHYFOR_NOTIFY_").lower(): value for name, value in given.items()}
    argv, more = notifying._desktop(words, Notification("waiting", "", "", "", ""))
    assert [foreign(word) for word in (*argv, *more.values()) if foreign(word)] == []


def test_logs_hold_one_clean_line_for_an_error(settings: Settings) -> None:
    log = settings.home / "hook" / "errors.log"
    log.parent.mkdir(parents=True)
    log_error(settings, ValueError(f"{EVERYTHING}{LINE}"))
    text = log.read_text(encoding="utf-8")
    assert foreign(text) == [] and text.count("\n") == 1 and "ValueError" in text


# -- the table -----------------------------------------------------------------------------------


def test_the_detector_sees_every_attack() -> None:
    for kind, attack in ATTACKS.items():
        assert foreign(f"a {attack} b") and foreign(f"a {attack} b", bars=True), kind
        if kind not in ("CSI",):
            assert foreign(f"a {attack} b", screen=True), kind
    assert forged(f"title{LINE}") and not forged("title FORGED")
    assert foreign("\x1b[1;31mbold\x1b[0m \x1b[38;2;1;2;3mx\x1b[39m\n\t·⟨U+202E⟩␛") == []
    assert (
        foreign("\x1b[5mblinks")
        and foreign("\x1b[8mhides")
        and foreign("\x1b[?25l")
        and foreign("\r")
    )


def test_the_detector_sees_what_a_plain_console_lets_through() -> None:
    from rich.console import Console

    for kind, attack in ATTACKS.items():
        out = Terminal()
        Console(file=out, force_terminal=True, markup=False).print(f"n{attack}m")
        assert foreign(out.text), kind


def test_the_console_cleans_every_way_in() -> None:
    from rich.console import Group
    from rich.markdown import Markdown
    from rich.padding import Padding
    from rich.style import Style
    from rich.table import Table
    from rich.text import Text

    from whyfor.cli.console import CleanConsole

    out = Terminal()
    console = CleanConsole(file=out, force_terminal=True, markup=False, width=80)
    plain = Table(EVERYTHING, title=EVERYTHING)
    plain.add_row(Text(EVERYTHING))
    linked = Text("x", style=Style(link=f"https://a.example/{EVERYTHING}"))
    text = Text.assemble(("a\x1b[2J", "red"), ("b\u200bc", "bold"))
    for each in (
        EVERYTHING + LINE,
        Padding(Markdown(EVERYTHING), 1),
        Group(EVERYTHING, plain),
        linked,
        text,
    ):
        console.print(each)
    assert foreign(out.text) == [] and forged(out.text) == []
    assert "\x1b[31ma␛[2J\x1b[0m\x1b[1mb⟨U+200B⟩c\x1b[0m" in out.text


def test_every_character_without_a_shape_is_in_the_table() -> None:
    # have one
    seen = {
        0x600,
        0x601,
        0x602,
        0x603,
        0x604,
        0x605,
        0x6DD,
        0x70F,
        0x890,
        0x891,
        0x8E2,
        0x110BD,
        0x110CD,
    }
    for code in range(0x110000):
        hidden = (
            unicodedata.category(chr(code)) in ("Cc", "Cf", "Cs", "Co", "Zl", "Zp", "Zs")
            and code not in seen
        )
        if hidden and chr(code) not in " \n\t":
            assert characters.class_of(chr(code)) is not None, hex(code)
    for each in characters.TABLE:
        assert each.why
        for code in {edge for pair in each.ranges for edge in pair}:
            found = characters.class_of(chr(code))
            assert found is each, hex(code)
            assert characters.show_code(f"a{chr(code)}b") == f"a{characters.name(chr(code))}b"
            if each.in_prose is not None:
                assert clean(f"a{chr(code)}b") == f"a{each.in_prose}b"
                assert label(f"a{chr(code)}b") == f"a{characters.name(chr(code))}b"


@pytest.mark.parametrize(
    "text",
    [
        "👩‍💻 ❤️ 🏳️‍🌈 👍🏽",
        "1️⃣ #️⃣",
        "🏴󠁧󠁢󠁥󠁮󠁧󠁿",
        "می‌خواهم",
        "क्‍ष",
        "日本語　ü – “x”",
        "שלום עולם",
        "\ue0b0 main",
    ],
)
def test_what_people_write_survives(text: str) -> None:
    assert clean(text) == text and characters.show_hidden(text) == text


def test_a_joiner_that_joins_nothing_is_hidden() -> None:
    assert clean("a\u200db \u200c 👩\u200d x\ufe0f می\u200c\u200cx") == "ab  👩 x میx"
    assert label("main\u200d") == "main⟨U+200D⟩"
    assert characters.show_code("می\u200cx 👩‍💻") == "می⟨U+200C⟩x 👩‍💻"


@pytest.mark.parametrize("kind", ATTACKS)
def test_prose_loses_what_acts_and_keeps_its_words(kind: str) -> None:
    found = clean(f"before {ATTACKS[kind]} after")
    assert found.startswith("before") and found.endswith("after") and foreign(found) == []
    assert clean(found) == found
    assert "\n" not in one_line(f"a{ATTACKS[kind]}{LINE}") + label(f"a{ATTACKS[kind]}{LINE}")


def test_a_sequence_without_an_end_hides_no_words() -> None:
    assert clean("a\x1b]0;title\nthe rest") == "a0;title\nthe rest"
    assert clean("a\x9d0;title the rest") == "a0;title the rest"
    assert clean("\x1b]0;x\x1b\\b\x1b]52;c;eA==\x9cc\x1bPq\nq\x1b\\d") == "bcd"


def test_hidden_characters_cannot_change_the_shape_of_an_export() -> None:
    for sign in ("\u2028", "\u2029", "\x85", "\x0b", "\u200b"):
        assert prose.agent_prose(f"| a |\n|---|\n| x{sign}# b |").count("\n") == 2
        assert "@\u200bnobody" not in prose.agent_prose(
            f"@{sign}nobody"
        ) and "@nobody" not in prose.agent_prose(f"@{sign}nobody")


def test_cleaning_long_text_takes_no_longer_than_it_must() -> None:
    import time

    for evil in (
        "\x1b]",
        "\x9d",
        "\x9b0",
        "\x1bP",
        "\x1b ",
        "✅\u200d",
        "\u200d",
        "\x1b[",
        "a\u2028",
    ):
        begun = time.process_time()
        clean(evil * 20_000)
        characters.show_code(evil * 20_000)
        assert time.process_time() - begun < 2.0, evil


# -- the one layer -------------------------------------------------------------------------------

LAYER = {"terminal.py", "cli/console.py"}
REASONS = {
    ("__main__.py", "print"): "--version: answered before anything is imported",
    ("privacy/rule_check.py", "print"): "a number, to the process that started it",
    ("cli/errors.py", "sys.stdout"): "opened, flushed and closed, not written to",
    ("cli/pager.py", "sys.stdout"): "flushed before it is the pager's, and after",
    ("cli/pager.py", "sys.stderr"): "flushed before it is the pager's, and after",
    ("cli/redact.py", "sys.stdout"): "flushed",
    ("cli/render.py", "sys.stdout"): "flushed",
    ("cli/serve.py", "sys.stdout"): "flushed",
    ("cli/server.py", "sys.stdout"): "flushed",
    (
        "server/team/metrics.py",
        "sys.stderr",
    ): "JSON for a program, which escapes control characters",
    ("cli/top.py", "sys.stdout"): "asked whether it is a terminal",
    ("cli/render.py", "sys.stderr"): "asked whether it is a terminal",
    ("hook/note_request.py", "sys.stdout"): "asked whether it is open",
    ("hook/memory_block.py", "sys.stdout"): "asked whether it is open",
    ("hook/prompt_notes.py", "sys.stdout"): "asked whether it is open",
    ("hook/rule_answer.py", "sys.stdout"): "asked whether it is open",
    ("cli/init.py", "sys.stdout"): "asked whether it is a terminal",
    ("cli/server.py", "click.confirm"): "a question of ours, with a cleaned name",
    ("cli/init.py", "click.confirm"): "a question of ours, word for word",
    ("capture/recorder.py", "os.write"): "what the recorded program writes, byte for byte",
    ("mcp/loop.py", "sys.stdout"): "JSON for a program, which escapes control characters",
    ("mcp/loop.py", "sys.stderr"): "takes the place of stdout, for the agent that started it",
    ("mcp/loop.py", "print_exc"): "to sys.stderr, for the agent that started it",
}


def test_nothing_writes_past_the_layer() -> None:
    found = set()
    for path in SOURCE.rglob("*.py"):
        place = path.relative_to(SOURCE).as_posix()
        if place not in LAYER:
            found |= {
                (place, what) for what in _writers(ast.parse(path.read_text(encoding="utf-8")))
            }
    # to sys.stderr, which is clean: proved above
    found -= {("server/problems.py", "print_exception")}
    assert found == set(REASONS)


def test_the_search_for_writers_can_fail() -> None:
    code = (
        "print(1)\nclick.echo(1)\nsys.stdout.write('')\nfrom rich.console import "
        "Console\nConsole()\nos.write(1, b'')"
    )
    assert _writers(ast.parse(code)) == {"print", "click.echo", "sys.stdout", "Console", "os.write"}


def _writers(tree: ast.AST) -> set[str]:
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and ast.unparse(node) in (
            "sys.stdout",
            "sys.stderr",
            "sys.__stdout__",
        ):
            found.add(ast.unparse(node))
        if not isinstance(node, ast.Call):
            continue
        called = ast.unparse(node.func)
        if called in (
            "print",
            "Console",
            "pprint",
            "click.secho",
            "click.echo",
            "click.confirm",
            "click.prompt",
        ):
            found.add(called)
        if re.fullmatch(r"traceback\.print_\w+", called):
            found.add(called.split(".")[1])
        if called == "os.write" and ast.unparse(node.args[0]) in ("1", "2"):
            found.add(called)
    return found

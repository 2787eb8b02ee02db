"""What a hook costs the agent that waits for it, against the least any program can cost."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median, quantiles
from threading import Thread

import msgspec
from whyfor import hook
from whyfor.hook.block_name import block_key, block_name, notes_name
from whyfor.model.memory import Observation
from whyfor.recall.prompt_index import word_weights

from report import Cell, Check, Report, Table, ratio

_PYTHON = os.path.realpath(sys._base_executable)  # type: ignore[attr-defined]
_BARE = [_PYTHON, "-I", "-S", "-c", "pass"]
_COPY = "import sys; open(sys.argv[1], 'ab', 0).write(sys.stdin.buffer.read())"
_SIZES = {"1 KB": 1_000, "100 KB": 100_000, "2 MB": 2_000_000}
_AT_ONCE = 100
_BLOCK = 6_000  # characters: what the default of 1,500 tokens allows
_NOTES = 60  # as many as an ingest writes down for prompts
_PROMPT = 2_000  # characters
_LINE = "    if (items.length > 0 && total < limit) { return `<b>${items[0].name}</b>`; }"

Times = dict[str, list[float]]


def hooks(report: Report, scratch: Path, rounds: int) -> None:
    home = installed(scratch / "hooks")
    for name, size in _SIZES.items():
        _one(report, home, name, _payload(size), rounds)
    _told(report, home, rounds)
    _told_with_prompt(report, home, rounds)
    _snapshot(report, home, rounds)
    _at_once(report, home)


def _snapshot(report: Report, home: Path, rounds: int) -> None:
    """Before a shell command where `init --shell-edits` is in effect: the hook starts a process."""
    ours = [_PYTHON, "-I", "-S", str(home / "hook" / "hook.py"), "--agent", "claude"]
    asked = [*ours, "--snapshot", "before", "PreToolUse"]
    given = {"command": "sed -i s/a/b/ shop.py"}
    payload = json.dumps(
        {"session_id": "s", "cwd": str(home), "tool_use_id": "c", "tool_input": given}
    ).encode()
    times = _times({"bare": _BARE, "the hook": asked}, payload, rounds, home)
    bare, taken = median(times["bare"]), times["the hook"]
    rows: list[list[Cell]] = [
        ["python -I -S -c pass", bare * 1e3, quantiles(times["bare"], n=20)[-1] * 1e3, 1.0],
        [
            "the hook, starting a snapshot",
            median(taken) * 1e3,
            quantiles(taken, n=20)[-1] * 1e3,
            median(taken) / bare,
        ],
    ]
    report.add(
        Table(
            "Before a shell command, with `--shell-edits`",
            ["", "p50 ms", "p95 ms", "× bare (-I -S)"],
            rows,
            "The agent waits for the hook only, not for the process that it starts.",
        ),
        Check("hook that starts a snapshot / bare interpreter", ratio(median(taken), bare), 1.5),
    )


def installed(home: Path) -> Path:
    folder = home / "hook"
    folder.mkdir(parents=True)
    for name in hook.FILES:
        shutil.copy(Path(hook.__file__).with_name(name), folder)
    (folder / "launch").write_text("/bin/true\n")
    (folder / "snapshot").write_text("/bin/true\n")
    return home


def _payload(size: int) -> bytes:
    """A tool's result: code, quoted as JSON."""
    lines = (f"{_LINE}\\n" * (size // len(_LINE))).replace('"', '\\"')
    return f'{{"session_id":"s","tool_response":"{lines}"}}'.encode()


def _one(report: Report, home: Path, name: str, payload: bytes, rounds: int) -> None:
    ours = [_PYTHON, "-I", "-S", str(home / "hook" / "hook.py"), "--agent", "claude"]
    guard = f"test -x {_PYTHON} && {shlex.join([*ours, 'PostToolUse'])} 2>/dev/null; exit 0"
    commands: dict[str, Sequence[str]] = {
        "python -I -S -c pass": _BARE,
        "the hook": [*ours, "PostToolUse"],
        "the hook, starting an ingest": [*ours, "Stop"],
        "the hook behind its shell guard": ["/bin/sh", "-c", guard],
        "python that copies its stdin to a file": [
            _PYTHON,
            "-I",
            "-S",
            "-c",
            _COPY,
            str(home / "copy"),
        ],
    }
    if node := shutil.which("node"):
        commands["node -e ''"] = [node, "-e", ""]
    else:
        report.skip("node is not installed: hooks are not compared with it")
    times = _times(commands, payload, rounds, home)
    bare = median(times["python -I -S -c pass"])
    rows: list[list[Cell]] = [
        [what, median(taken) * 1e3, quantiles(taken, n=20)[-1] * 1e3, median(taken) / bare]
        for what, taken in times.items()
    ]
    check = Check(
        f"hook at {name} / bare interpreter (-I -S)", ratio(median(times["the hook"]), bare), 1.2
    )
    note = f"Wall time, {rounds} runs of each in turn, {name} on stdin."
    report.add(
        Table(f"One hook, {name}", ["", "p50 ms", "p95 ms", "× bare (-I -S)"], rows, note), check
    )


def _told(report: Report, home: Path, rounds: int) -> None:
    """A session's start where `init --memory` is in effect: the hook prints a block of full size."""
    checkout = home / "checkout"
    (checkout / ".git").mkdir(parents=True)
    (checkout / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    key = block_key(os.fsencode(checkout / ".git"), b"main")
    blocks = home / "hook" / "memory"
    blocks.mkdir()
    facts = b'{"part":"start","sources":[%s]}' % b",".join([b'"claude:0123456789abcdef"'] * 60)
    text = b'"%s"' % (b"x" * _BLOCK)
    (blocks / os.fsdecode(block_name(key))).write_bytes(b"\n".join([key, facts, text, b"{}", b""]))
    ours = [_PYTHON, "-I", "-S", str(home / "hook" / "hook.py"), "--agent", "codex"]
    start = [*ours, "--remember", "SessionStart"]
    payload = b'{"session_id":"s-1","source":"%s"}'
    bare: list[float] = []
    told: list[float] = []
    for number in range(rounds + 1):
        shutil.rmtree(home / "hook" / "told", ignore_errors=True)
        once = _run(_BARE, payload % b"startup", checkout)
        took = _run(start, payload % b"startup", checkout)
        if number:  # the first warms the caches
            bare.append(once)
            told.append(took)
    rows: list[list[Cell]] = [
        ["python -I -S -c pass", median(bare) * 1e3, quantiles(bare, n=20)[-1] * 1e3, 1.0],
        [
            "the hook at a session's start, with a block",
            median(told) * 1e3,
            quantiles(told, n=20)[-1] * 1e3,
            median(told) / median(bare),
        ],
    ]
    note = f"Wall time, {rounds} runs of each in turn; the block has {_BLOCK:,} characters."
    report.add(
        Table("Telling a session", ["", "p50 ms", "p95 ms", "× bare (-I -S)"], rows, note),
        Check("SessionStart with a block / bare interpreter", median(told) / median(bare), 1.5),
    )


def _told_with_prompt(report: Report, home: Path, rounds: int) -> None:
    """A prompt where `init --memory-prompts` is in effect: the hook looks it up in as many notes as
    an ingest writes down, and tells of three."""
    checkout = home / "checkout"
    notes = [_note(number) for number in range(_NOTES)]
    key = block_key(os.fsencode(checkout / ".git"), b"")
    lines = [key, b"<whyfor-memory>\\n", b"</whyfor-memory>", b"3", b"%d" % len(notes)]
    lines += [f"{each.key}\t- [{each.key}] {each.narrative}".encode() for each in notes]
    lines += [b"%s %s" % (w.encode(), b" ".join(p)) for w, p in word_weights(notes).items()]
    (home / "hook" / "memory" / os.fsdecode(notes_name(key))).write_bytes(b"\n".join([*lines, b""]))
    ours = [_PYTHON, "-I", "-S", str(home / "hook" / "hook.py"), "--agent", "codex"]
    command = [*ours, "--recall", "UserPromptSubmit"]
    asked = f"Why is {notes[7].narrative} " + "Please look at each of them in turn. " * 80
    payload = msgspec.json.encode({"session_id": "s-2", "prompt": asked[:_PROMPT]})
    bare: list[float] = []
    told: list[float] = []
    for number in range(rounds + 1):
        shutil.rmtree(home / "hook" / "told", ignore_errors=True)
        once = _run(_BARE, payload, checkout)
        took = _run(command, payload, checkout)
        if number:  # the first warms the caches
            bare.append(once)
            told.append(took)
    shutil.rmtree(home / "hook" / "told", ignore_errors=True)
    said = subprocess.run(command, input=payload, cwd=checkout, stdout=subprocess.PIPE, check=True)
    assert b"whyfor-memory" in said.stdout
    rows: list[list[Cell]] = [
        ["python -I -S -c pass", median(bare) * 1e3, quantiles(bare, n=20)[-1] * 1e3, 1.0],
        [
            "the hook at a prompt, with notes",
            median(told) * 1e3,
            quantiles(told, n=20)[-1] * 1e3,
            median(told) / median(bare),
        ],
    ]
    note = (
        f"Wall time, {rounds} runs of each in turn; {_NOTES} notes, {_PROMPT:,} characters asked."
    )
    report.add(
        Table("Telling a prompt", ["", "p50 ms", "p95 ms", "× bare (-I -S)"], rows, note),
        Check("a prompt with notes / bare interpreter", median(told) / median(bare), 1.5),
    )


def _note(number: int) -> Observation:
    """A note of invented words, some of which others have too."""
    words = [f"word{number * 7 + place}part" for place in range(12)]
    text = f"The `readPrices{number}` of the basket fails because " + " ".join(words)
    return Observation(
        key=f"{number:016x}",
        type="discovery",
        state="stated",
        title=text,
        turn=1,
        at=0,
        narrative=text,
    )


def _times(commands: dict[str, Sequence[str]], payload: bytes, rounds: int, home: Path) -> Times:
    """In turn, so that a busy moment of the machine strikes all alike."""
    times: Times = {what: [] for what in commands}
    for number in range(rounds + 1):
        for what, command in commands.items():
            taken = _run(command, payload)
            if number:  # the first warms the caches
                times[what].append(taken)
        for path in (home / "copy", home / "hook" / "pending", *(home / "spool").iterdir()):
            path.unlink(missing_ok=True)
    return times


def _run(command: Sequence[str], payload: bytes, cwd: Path | None = None) -> float:
    started = time.perf_counter()
    env = {"PATH": "/usr/bin:/bin"}
    subprocess.run(command, input=payload, env=env, check=True, stdout=subprocess.PIPE, cwd=cwd)
    return time.perf_counter() - started


def _at_once(report: Report, home: Path) -> None:
    ours = [_PYTHON, "-I", "-S", str(home / "hook" / "hook.py"), "--agent", "claude", "Stop"]
    payload = _payload(100_000)
    bare = min(_together(_BARE, payload) for _ in range(3))
    taken = [_together(ours, payload) for _ in range(3)]
    written = b"".join(path.read_bytes() for path in (home / "spool").iterdir())
    whole = sum(line.endswith(b"\t" + payload) for line in written.split(b"\n"))
    rows: list[list[Cell]] = [
        [f"{_AT_ONCE} × python -I -S -c pass", bare, 1.0, None],
        [f"{_AT_ONCE} × the hook", min(taken), min(taken) / bare, whole / len(taken)],
    ]
    report.add(
        Table(
            f"{_AT_ONCE} hooks at once, 100 KB each",
            ["", "wall s", "× bare (-I -S)", "whole lines"],
            rows,
            "Until the last has ended; best of 3.",
        ),
        Check(f"{_AT_ONCE} hooks at once / as many bare interpreters", min(taken) / bare, 1.2),
        Check("lines lost or torn", _AT_ONCE * len(taken) - whole, 0, unit=""),
    )


def _together(command: Sequence[str], payload: bytes) -> float:
    started = time.perf_counter()
    threads = [Thread(target=_run, args=(command, payload)) for _ in range(_AT_ONCE)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return time.perf_counter() - started

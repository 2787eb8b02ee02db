"""Rules: what escapes them, and what the hook that answers by them costs an agent."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from statistics import median, quantiles

from whyfor import config
from whyfor.story.rules.bash_parser import bash_parser
from whyfor.story.rules.decide import ALLOW, judge_command
from whyfor.story.rules.prepare import prepare_rules

from hooks import installed
from monitored import monitor_cost
from report import Cell, Check, Report, Table

sys.path.append(str(Path(__file__).parents[1]))

from tests.story.rules.fuzz import SHELLS, Playground, find_escapes
from tests.story.rules.sample_rules import sample_request, sample_rules

from agent_cost import agent_cost
from browser_answers import browser_answers
from recorded_terminal import recorded_terminal
from telemetry import telemetry

_PYTHON = os.path.realpath(sys._base_executable)  # type: ignore[attr-defined]
_CASES = Path(__file__).parents[1] / "tests" / "story" / "rules"
_SEED = 20261118
_ANSWERS = 20
_WATCHED = 15  # seconds
_RULES = 'mode = "on"\nlimit_ms = 5000\n[[rule]]\nid = "r1"\nrun = ["git", "log"]\n'


def supervise(report: Report, scratch: Path, rounds: int, mutations: int) -> None:
    _escapes(report, scratch, mutations)
    _hook(report, scratch / "rules hook", rounds)
    browser_answers(report, scratch / "browser answers", _ANSWERS)
    recorded_terminal(report, scratch / "recorded terminal")
    telemetry(report, scratch / "telemetry")
    agent_cost(report, scratch / "agent cost")
    monitor_cost(report, scratch / "monitor", _WATCHED)


def _escapes(report: Report, scratch: Path, mutations: int) -> None:
    hostile = [json.loads(line)[1] for line in (_CASES / "bypass.jsonl").read_text().splitlines()]
    useful = (_CASES / "useful.txt").read_text().splitlines()
    through = sum(map(_is_allowed, hostile))
    kept = sum(map(_is_allowed, useful)) / len(useful)
    escapes, made = find_escapes(Playground(scratch / "fuzz"), _SEED, mutations)
    rows: list[list[Cell]] = [
        ["lines that must be asked: allowed", through, len(hostile)],
        ["everyday commands: allowed", round(kept * len(useful)), len(useful)],
        [
            f"allowed mutations run in {', '.join(SHELLS)}: changed something",
            len(escapes),
            mutations,
        ],
        ["mutations made until then", made, None],
    ]
    note = f"Seed {_SEED}. The directory, the home and their files are compared after each run."
    report.add(
        Table("What escapes the rules", ["", "number", "of"], rows, note),
        Check("escapes from the bypass corpus", through, 0, ""),
        Check(f"escapes in {mutations:,} allowed mutations that were run", len(escapes), 0, ""),
        Check("everyday commands allowed", kept, 0.95, "", floor=True),
    )


def _is_allowed(line: str) -> bool:
    return judge_command(sample_request(line), sample_rules(), bash_parser()).answer == ALLOW


def _hook(report: Report, home: Path, rounds: int) -> None:
    installed(home)
    home.chmod(0o700)
    (home / "rules.toml").write_text(_RULES)
    (home / "rules.toml").chmod(0o600)
    prepare_rules(config.load({"WHYFOR_HOME": str(home), "HOME": str(home)}), None)
    payload = json.dumps(
        {
            "session_id": "s",
            "cwd": str(home),
            "tool_name": "Bash",
            "tool_input": {"command": "git log --oneline -5"},
        }
    ).encode()
    ours = [_PYTHON, "-I", "-S", str(home / "hook" / "hook.py"), "--agent", "codex"]
    commands = {
        "python -I -S -c pass": [_PYTHON, "-I", "-S", "-c", "pass"],
        "the hook, which only records": [*ours, "PermissionRequest"],
        "the hook, which answers by a rule": [*ours, "--rules", "PermissionRequest"],
    }
    wall: dict[str, list[float]] = {name: [] for name in commands}
    cpu: dict[str, list[float]] = {name: [] for name in commands}
    for number in range(rounds + 1):
        for name, words in commands.items():
            took, used, printed = _run(words, payload)
            assert (b"allow" in printed) == ("rule" in name)
            if number:  # the first warms the caches
                wall[name].append(took)
                cpu[name].append(used)
    bare = median(cpu["python -I -S -c pass"])
    rows: list[list[Cell]] = [
        [
            name,
            median(wall[name]) * 1e3,
            quantiles(wall[name], n=100)[-1] * 1e3,
            median(cpu[name]) * 1e3,
            median(cpu[name]) / bare,
        ]
        for name in commands
    ]
    answering = "the hook, which answers by a rule"
    report.add(
        Table(
            "The hook that answers by rules",
            ["", "p50 ms", "p99 ms", "CPU ms", "CPU × bare"],
            rows,
            f"{rounds} runs of each in turn.",
        ),
        Check("rules hook, p99", quantiles(wall[answering], n=100)[-1] * 1e3, 150, " ms"),
        Check("rules hook, CPU / bare interpreter", median(cpu[answering]) / bare, 5),
    )


def _run(words: list[str], payload: bytes) -> tuple[float, float, bytes]:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begun = time.perf_counter()
    done = subprocess.run(words, input=payload, capture_output=True, check=True)
    took = time.perf_counter() - begun
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return took, used, done.stdout

"""Which turn wrote a line: how often it is told rightly, also after rewrites, and what it costs."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from statistics import median, quantiles

from whyfor import config
from whyfor.config import Settings
from whyfor.service.blame import BlameOptions, BlameTarget, blame_file
from whyfor.service.editor import EditorFile, explain_line
from whyfor.service.lines import count_range_lines
from whyfor.store.open import open_store, reading_local

from formatters import languages
from lines_judge import LineScore, judge, said_lines
from lines_lab import MIXES, Lab, agent_work, library_file, make_lab
from lines_rewrites import OPERATIONS
from measure import Cost, clean_env, run, typical
from report import Cell, Check, Report, Table
from running_lab import ALL_AGENTS, make_running_lab, missing_tool

_SEED = 1
_LAST = 4  # commits that are rewritten
_LONG = 2000  # lines of the file that is blamed
_RUNS = 5
_HOVERS = 40
_NOTE = """Sessions of Claude Code, Codex and Gemini CLI (transcripts as they write them), scripted people and
formatters edit functions of Python's library; the driver keeps an owner beside each line. Judged are the lines that
git calls added. Of equal lines side by side nobody can say which came first: they are compared as a set."""


def lines(report: Report, scratch: Path, program: Path, commits: int) -> None:
    """All figures of lines."""
    total = LineScore()
    rows: list[list[Cell]] = []
    checks: list[Check] = []
    for mix in MIXES:
        folder = scratch / f"lines {mix}".replace(" ", "-").replace("'", "")
        lab = make_lab(folder, mix, commits, _SEED)
        with _home(lab, program) as settings:
            score = judge(lab, said_lines(settings, lab, list(lab.truth)[1:]))
            if mix == MIXES[-1]:
                _rewrites(report, lab, settings)
                _totals(report, lab, settings)
        total.add(score)
        rows.append(_row(mix, score))
        checks.append(_floor(f"lines, {mix}: agent or not", score.accuracy, 0.985))
    rows.append(_row("all", total))
    report.add(
        Table("Lines: who wrote them", _COLUMNS, rows, _NOTE),
        _floor("lines: agent or not, all mixes", total.accuracy, 0.99),
        _floor("lines: precision of agent", total.precision, 0.995),
        _floor("lines: right turn, of agents' lines", total.turns, 0.97),
        *checks,
    )
    running(report, scratch / "lines-running", program, max(2, commits // 8))
    _cost(report, scratch / "lines-long", program)


def running(report: Report, folder: Path, program: Path, commits: int) -> None:
    """The same with real agents that run, and real formatters of three languages."""
    if missing := missing_tool():
        report.skip(f"{missing} is not installed: no lines of running agents")
        return
    formats, absent = languages()
    for reason in absent:
        report.skip(reason)
    lab = make_running_lab(folder, program, list(ALL_AGENTS), formats, commits)
    total = LineScore()
    rows: list[list[Cell]] = []
    checks: list[Check] = []
    with _home(lab, program) as settings:
        said = said_lines(settings, lab, list(lab.agents))
    for name in ALL_AGENTS:
        own = {sha: files for sha, files in said.items() if lab.agents[sha] == name}
        score = judge(lab, own)
        total.add(score)
        rows.append(_row(name, score))
        checks.append(_floor(f"lines, {name} running: agent or not", score.accuracy, 0.985))
    rows.append(_row("all", total))
    unknown = total.unknown / max(1, total.agent_true)
    report.add(
        Table("Lines: who wrote them, agents running", ["agent", *_COLUMNS[1:]], rows, _RUNNING),
        _floor("lines, agents running: agent or not", total.accuracy, 0.99),
        _floor("lines, agents running: precision of agent", total.precision, 0.995),
        _floor("lines, agents running: right turn", total.turns, 0.97),
        Check("lines, agents running: unknown of agents' lines", unknown, 0.01, unit=""),
        *checks,
    )


_RUNNING = """Real agents against a scripted model, with `init --shell-edits`: they edit, create, run
`sed -i` and generators (Claude Code, Codex, Gemini CLI). People add, copy, touch, move and delete between their turns; ruff,
black, prettier and gofmt run before every second commit."""
_COLUMNS = ["mix", "lines", "agent or not", "precision", "recall", "right turn", "unknown"]


def _row(name: str, score: LineScore) -> list[Cell]:
    figures = (score.accuracy, score.precision, score.recall, score.turns)
    return [name, score.lines, *(f"{value:.4f}" for value in figures), score.unknown]


def _floor(name: str, value: float, limit: float) -> Check:
    return Check(name, value, limit, unit="", floor=True)


@contextmanager
def _home(lab: Lab, program: Path) -> Iterator[Settings]:
    """The settings of a laboratory's home, after everything was read."""
    home = lab.folder / "home"
    env = clean_env(home, lab.folder) | {"WHYFOR_HOME": str(lab.folder / "whyfor")}
    run([str(program), "ingest"], env, lab.repository)
    kept = dict(os.environ)
    os.environ.clear()
    os.environ.update(env)
    try:
        yield config.load()
    finally:
        os.environ.clear()
        os.environ.update(kept)


def _rewrites(report: Report, lab: Lab, settings: Settings) -> None:
    rows: list[list[Cell]] = []
    checks: list[Check] = []
    for name, operation in OPERATIONS.items():
        done = operation(lab, _LAST)
        before = judge(lab, said_lines(settings, lab, done.before))
        after = judge(lab, said_lines(settings, lab, done.after))
        kept = min(1.0, after.accuracy / before.accuracy)
        figures = (after.accuracy, after.precision, after.turns)
        told = (name, len(done.before), before.lines, f"{before.accuracy:.4f}", after.lines)
        rows.append([*told, *(f"{value:.4f}" for value in figures)])
        checks.append(_floor(f"lines, {name}: right after / right before", kept, 0.99))
    lab.git("checkout", "-q", "main")
    by_hand = lab.repository / "by_hand.py"
    by_hand.write_text("".join(f"{line}\n" for line in library_file(lab, 6)))
    lab.now += 40 * 86_400_000
    lab.git("add", "-A")
    lab.git("commit", "-qm", "By hand")
    sha = lab.git("rev-parse", "HEAD")
    said = said_lines(settings, lab, [sha])[sha]
    claimed = sum(owner.kind != "unknown" for owners in said.values() for owner in owners.values())
    columns = ["rewrite", "commits", "lines", "right before", "lines after", "right after"]
    report.add(
        Table("Lines after rewrites", [*columns, "precision", "right turn"], rows),
        *checks,
        Check("lines claimed of a commit without a session", claimed, 0, unit=""),
    )


def _totals(report: Report, lab: Lab, settings: Settings) -> None:
    """Whether the counts of every commit, merges too, are git's."""
    lab.git("checkout", "-q", "-B", "merged", "main~2")
    lab.git("merge", "-q", "--no-ff", "-X", "theirs", "-m", "Merge", "main")
    wrong = 0
    names = lab.git("rev-list", "--all", "--min-parents=1").split()
    for sha in names:
        found = count_range_lines(settings, lab.repository, sha)
        git = lab.git("diff-tree", "-r", "-M", "--numstat", f"{sha}^1", sha)
        counted = {}
        for line in git.splitlines():
            added, removed, path = line.split("\t")
            counted[path.replace("{", "").replace("}", "")] = (int(added), int(removed))
        told = {file.path: (file.added, file.removed) for file in found.files}
        sums = all(
            file.agent + file.modified + file.person + file.unknown == file.added
            for file in found.files
        )
        wrong += told != counted or not sums
    report.add(
        Table("Lines: totals against git's", ["commits", "other totals"], [[len(names), wrong]]),
        Check("commits whose line totals are not numstat's", wrong, 0, unit=""),
    )


# -- cost ----------------------------------------------------------------------------------------


def _cost(report: Report, folder: Path, program: Path) -> None:
    """Blame of a long file: git alone, ours with what was kept, ours without."""
    lab = Lab(folder, "agent only", Random(_SEED))
    lab.repository.mkdir(parents=True)
    lab.git("init", "-q", "-b", "main")
    commits = agent_work(lab, _LONG, 150)
    for session in lab.sessions:
        session.save(folder / "home", {})
    with _home(lab, program) as settings:
        env = dict(os.environ)
        git = typical(_RUNS, lambda: _git(lab, env))
        warm = typical(_RUNS, lambda: _ours(lab, env, program, "blame", "big.py", "--json"))
        why = typical(_RUNS, lambda: _ours(lab, env, program, "why", "big.py:900", "--json"))
        inside = _in_process(lab, settings)
        hovers = _hovers(lab, settings)
        with reading_local(settings) as library:
            size = library.lines.size()
        segments = sum(f.stat().st_size for f in settings.segments.rglob("*") if f.is_file())
        store = open_store(settings.database)
        with store.transaction():
            store.lines.clear()
        store.close()
        cold = _ours(lab, env, program, "blame", "big.py", "--json")
    allowed = 3 * git.cpu + 0.03 * commits
    rows: list[list[Cell]] = [
        ["git blame --porcelain", f"{git.cpu * 1000:.0f}", f"{git.wall * 1000:.0f}"],
        ["whyfor blame, kept", f"{warm.cpu * 1000:.0f}", f"{warm.wall * 1000:.0f}"],
        ["the same in a running process", f"{inside * 1000:.0f}", ""],
        [f"whyfor blame, {commits} new commits", f"{cold.cpu * 1000:.0f}", ""],
        ["whyfor why", f"{why.cpu * 1000:.0f}", f"{why.wall * 1000:.0f}"],
        ["hover in an editor, p50", "", f"{median(hovers) * 1000:.0f}"],
        ["hover in an editor, p95", "", f"{_p95(hovers) * 1000:.0f}"],
    ]
    report.add(
        Table(f"Lines: cost, {_LONG:,} lines", ["command", "CPU ms", "wall ms"], rows),
        Check("blame of 2,000 lines, warm CPU / git blame", warm.cpu / git.cpu, 1.3),
        Check("blame of 2,000 lines, cold CPU / allowed", cold.cpu / allowed, 1),
        Check("the same in a running process / git blame", inside / git.cpu, 1.3),
        Check("why, warm CPU", why.cpu * 1000, 150, unit=" ms"),
        Check("hover in an editor, p95", _p95(hovers) * 1000, 200, unit=" ms"),
        Check("cache of lines / segments", 100 * size / segments, 2, unit=" %"),
    )


def _hovers(lab: Lab, settings: Settings) -> list[float]:
    """Wall time of hovers over lines of the long file, as the language server answers them."""
    path = lab.repository / "big.py"
    file = EditorFile(path, path.read_text(encoding="utf-8"))
    explain_line(settings, file, 1)
    found = []
    for line in range(20, _LONG, _LONG // _HOVERS):
        begun = time.perf_counter()
        explain_line(settings, file, line)
        found.append(time.perf_counter() - begun)
    return found


def _p95(times: list[float]) -> float:
    return quantiles(times, n=20)[-1]


def _in_process(lab: Lab, settings: Settings) -> float:
    """CPU of one blame, ours and that of the git it starts: the median of several."""
    target = BlameTarget("big.py", lab.repository)
    found = []
    for _ in range(_RUNS):
        before = os.times()
        blame_file(settings, target, BlameOptions())
        after = os.times()
        found.append(sum(after[:4]) - sum(before[:4]))
    return median(found)


def _git(lab: Lab, env: dict[str, str]) -> Cost:
    command = ["git", "blame", "--porcelain", "HEAD", "--", "big.py"]
    return run(command, env, lab.repository)


def _ours(lab: Lab, env: dict[str, str], program: Path, *arguments: str) -> Cost:
    return run([str(program), *arguments], env, lab.repository)

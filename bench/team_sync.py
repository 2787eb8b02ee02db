"""What sharing with a team costs: a push with and without us, how soon a teammate can read, and
what becomes of uploads when requests fail or the sender is killed.

Part of `make bench ONLY=team`; alone: python bench/team_sync.py [ROUNDS]"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import mean, median, quantiles
from typing import NamedTuple

from report import Cell, Check, Report, Table, show

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.postgres import running
from tests.store.team import Team
from tests.sync.faults import ProxyRequest, fault_proxy
from tests.sync.killed import differences, killed_sync
from tests.sync.laptop import Laptop, SharedServer, new_origin, shared_server
from whyfor.sync.client import Patience
from whyfor.sync.worker import Clock, run_sync


@contextmanager
def team_server(folder: Path) -> Iterator[SharedServer]:
    with running(18) as cluster:
        cluster.make_database()
        team = Team(cluster)
        try:
            with shared_server(team, folder) as server:
                yield server
        finally:
            team.admin.close()


def cpu_and_wall(command: list[str], cwd: Path, env: dict[str, str]) -> tuple[float, float]:
    before, begun = os.times(), time.perf_counter()
    subprocess.run(command, cwd=cwd, env=env, check=True, capture_output=True)
    after = os.times()
    used = after.children_user + after.children_system
    return used - before.children_user - before.children_system, time.perf_counter() - begun


def pushes(report: Report, folder: Path, rounds: int) -> None:
    """Push one commit, again and again, with our hook and without any."""
    laptop = Laptop(folder / "push", new_origin(folder))
    env = {**os.environ, **laptop.settings.env, "GIT_CONFIG_GLOBAL": os.devnull}
    times: dict[str, list[tuple[float, float]]] = {"plain": [], "ours": []}
    installed(laptop, env)
    own = laptop.git("config", "core.hooksPath", ok=False)
    for number in range(2 * rounds):
        name = ("plain", "ours")[number % 2]
        path = "/nonexistent" if name == "plain" else own or ".git/hooks"
        laptop.git(
            "-c", "core.hooksPath=/nonexistent", "commit", "-q", "--allow-empty", "-m", f"{number}"
        )
        # as if an ingest were on its way already: what it costs comes after the push
        (laptop.settings.home / "hook" / "pending").write_text(str(os.getpid()))
        command = ["git", "-c", f"core.hooksPath={path}", "push", "-q", "origin", "main"]
        times[name].append(cpu_and_wall(command, laptop.repo, env))
    rows: list[list[Cell]] = []
    for title, name in (("plain", "plain"), ("with our hook", "ours")):
        cpu = mean(used for used, _ in times[name])
        walls = [wall for _, wall in times[name]]
        rows.append([title, 1000 * cpu, 1000 * min(walls), 1000 * median(walls)])
    note = (
        f"{rounds} pushes of one commit each, in turn, to a folder of this machine. CPU: of git and "
        "of the hook while git waits for it; the time on the wall also has what else runs on the "
        "machine. The hook makes no connection."
    )
    plain, ours = (mean(used for used, _ in times[name]) for name in ("plain", "ours"))
    table = Table("Team: git push", ["", "CPU ms", "fastest ms", "median ms"], rows, note)
    report.add(table, Check("team: git push with our hook / without, CPU", ours / plain, 1.2))


def installed(laptop: Laptop, env: dict[str, str]) -> None:
    """Install our hooks in a clone."""
    program = "from whyfor.__main__ import main; import sys; sys.exit(main(['init']))"
    subprocess.run(
        [sys.executable, "-c", program], cwd=laptop.repo, env=env, check=True, capture_output=True
    )


def visible(report: Report, folder: Path, server: SharedServer, rounds: int) -> None:
    """From the end of a push, by git's hooks alone, to the story on the server."""
    laptop = Laptop(folder / "visible", new_origin(folder))
    project = server.served.project()
    os.environ.update({**laptop.settings.env, "GIT_CONFIG_GLOBAL": os.devnull})
    env = dict(os.environ)
    installed(laptop, env)
    told = laptop.transcript("gate")
    laptop.work(told, "Begin to mend")
    laptop.ingest()
    laptop.share(server, project, server.key(project.person))
    delays = []
    for number in range(rounds):
        sha = laptop.work(told, f"Mend gate {number}")
        subprocess.run(
            ["git", "push", "-q", "origin", "main"], cwd=laptop.repo, env=env, check=True
        )
        begun = time.perf_counter()
        while time.perf_counter() - begun < 60:
            if server.rows("SELECT 1 FROM checkpoints WHERE sha = %s", sha):
                break
            time.sleep(0.05)
        delays.append(time.perf_counter() - begun)
    p95 = quantiles(delays, n=20)[-1] if len(delays) > 1 else delays[0]
    rows: list[list[Cell]] = [[rounds, round(median(delays), 2), round(p95, 2)]]
    table = Table("Team: from a push to the story", ["pushes", "median s", "p95 s"], rows)
    report.add(table, Check("team: from a push to the story on the server, p95", p95, 10, " s"))


class Failing(NamedTuple):
    """What became of stories while requests failed."""

    stories: int
    first: int  # sent in the first pass: at most three tries of each request
    passes: int  # until all were sent
    lost: int
    doubled: int
    requests: int


def uploads(report: Report, folder: Path, server: SharedServer, rounds: int) -> None:
    """Upload stories while requests fail."""
    few = failing(folder, server, 0.1, 10 * rounds)
    many = failing(folder, server, 0.3, 3 * rounds)
    rows: list[list[Cell]] = [["10 % of requests fail", *few], ["30 %", *many]]
    columns = ["", "stories", "in the first pass", "passes", "lost", "doubled", "requests"]
    report.add(
        Table("Team: uploads while requests fail", columns, rows),
        Check(
            "team: uploads within 3 tries, 10 % failing", few.first / few.stories, 0.99, "", True
        ),
        Check("team: stories lost or doubled, 30 % failing", many.lost + many.doubled, 0, ""),
    )


def failing(folder: Path, server: SharedServer, share: float, stories: int) -> Failing:
    """Upload stories while a share of all requests fails."""
    laptop = Laptop(folder / f"failing-{share}", new_origin(folder / str(share)))
    project = server.served.project()
    shas = []
    for number in range(stories):
        told = laptop.transcript(f"gate {number}")
        shas.append(laptop.work(told, f"Mend gate {number}"))
    laptop.git("push", "-q", "origin", "main")
    laptop.ingest()
    dice = random.Random(7)

    def flaky(request: ProxyRequest) -> bool:
        if dice.random() >= share:
            return False
        if dice.random() < 0.5:
            return request.hang_up()
        return request.answer(503)

    with fault_proxy(server.url) as proxy:
        proxy.faults.append(flaky)
        laptop.share(proxy.url, project, server.key(project.person))
        thrice = Patience((1.0, 4.0), connect=2, idle=10)  # three tries of each request
        clock = Clock(lambda: laptop.time.ms, laptop.time.sleep, thrice)
        first = passes = 0
        while passes < 50:
            passes += 1
            run_sync(laptop.settings, "bench", clock)
            sent = sum(state == "sent" for state in laptop.states().values())
            first = first or sent
            if sent == stories:
                break
            laptop.time.ms += 7 * 3600 * 1000
    rows = server.rows("SELECT sha FROM checkpoints WHERE team_project = %s", project.number)
    lost = len(set(shas) - {sha for (sha,) in rows})
    doubled = len(rows) - len({sha for (sha,) in rows})
    return Failing(stories, first, passes, lost, doubled, len(proxy.requests))


def kills(report: Report, folder: Path, server: SharedServer, number: int) -> None:
    """Kill passes over the outbox at a random step, until so many were killed."""
    place = folder / "kills"
    place.mkdir()
    laptop = Laptop(place / "laptop", new_origin(place))
    project = server.served.project()
    told = laptop.transcript("gate 0")
    shas = {laptop.work(told, "Begin to mend")}
    laptop.ingest()
    laptop.share(server, project, server.key(project.person))
    dice = random.Random(11)
    begun = time.perf_counter()
    with killed_sync(laptop) as passes:
        while passes.kills < number:
            if dice.random() < 0.3:  # a session that is known goes on, another begins
                told = laptop.transcript(f"gate {len(shas)}")
            shas.add(laptop.work(told, f"Mend gate {len(shas)}"))
            laptop.git("push", "-q", "origin", "main")
            laptop.ingest()
            for _ in range(4):
                passes.run(dice.randrange(14))
        killed = passes.kills
    laptop.time.ms += 7 * 3600 * 1000
    error = laptop.sync().remotes[0].error
    wrong = differences(laptop, server, project)
    sent = shas & {name for name, state in laptop.states().items() if state == "sent"}
    took = round(time.perf_counter() - begun)
    rows: list[list[Cell]] = [[killed, len(shas), len(sent), len(wrong), took]]
    columns = ["kills", "stories", "sent", "lost or doubled", "s"]
    note = "; ".join([*([error] if error else []), *wrong[:5]])
    report.add(
        Table("Team: killed at a random step", columns, rows, note),
        Check("team: stories lost by kills", len(shas) - len(sent), 0, ""),
        Check("team: events, stories or objects lost or doubled by kills", len(wrong), 0, ""),
    )


def team_sync(report: Report, rounds: int) -> None:
    """Measure everything; `rounds` times a hundred kills."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        for name in ("0.1", "0.3", "push-origin", "visible-origin"):
            (folder / name).mkdir()
        pushes(report, folder / "push-origin", 5 * rounds)
        server = stack.enter_context(team_server(folder / "objects"))
        visible(report, folder / "visible-origin", server, rounds)
        uploads(report, folder, server, rounds)
        kills(report, folder, server, 100 * rounds)


def main() -> None:
    report = Report()
    team_sync(report, int(sys.argv[1]) if len(sys.argv) > 1 else 10)
    show(report.targets())


if __name__ == "__main__":
    main()

"""A pass over the outbox that is killed at a chosen step, as often as one likes.

A step is the moment before or after a request, and before or after a change of the outbox. One
process loads everything once and forks for each pass: a pass costs milliseconds.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import msgspec

from tests.store.team import TeamProject
from tests.sync.laptop import Laptop, SharedServer
from whyfor.store.open import reading_local

_PROGRAM = """
import json, os, signal, sys
from whyfor import config
from whyfor.sync import client, worker
env = json.loads(sys.argv[1])
left = 0

def step():
    global left
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    left -= 1

def deadly(function):
    def run(*given, **named):
        step()
        found = function(*given, **named)
        step()
        return found
    return run

client.TeamClient._once = deadly(client.TeamClient._once)
worker.change_outbox = deadly(worker.change_outbox)
for line in sys.stdin:
    left = int(line)
    child = os.fork()
    if child == 0:
        worker.run_sync(config.load(env), "killed")
        os._exit(0)
    _, status = os.waitpid(child, 0)
    print(int(os.WIFSIGNALED(status)), flush=True)
"""


class KilledSync:
    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.kills = 0

    def run(self, step: int) -> bool:
        """Begin a pass and kill it at a step; return whether it came that far."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{step}\n")
        self.process.stdin.flush()
        killed = self.process.stdout.readline().strip() == "1"
        self.kills += killed
        return killed


@contextmanager
def killed_sync(laptop: Laptop) -> Iterator[KilledSync]:
    env = msgspec.json.encode(laptop.env).decode()
    command = [sys.executable, "-c", _PROGRAM, env]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            yield KilledSync(process)
        finally:
            process.kill()


def differences(laptop: Laptop, server: SharedServer, project: TeamProject) -> list[str]:
    """What the server has otherwise than the laptop: stories and events that are lost or there
    twice, objects that nothing names."""
    rows = server.rows("SELECT sha FROM checkpoints WHERE team_project=%s", project.number)
    there = [sha for (sha,) in rows]
    sent = [name for name, state in laptop.states().items() if state == "sent"]
    found = [f"lost story {sha}" for sha in set(sent) - set(there)]
    found += [f"story {sha} is there twice" for sha in set(there) if there.count(sha) > 1]
    counts = "SELECT s.session_id, count(*), count(DISTINCT e.key) FROM sessions s JOIN events e "
    counts += "ON e.id >> 24 = s.id WHERE s.team_project=%s GROUP BY 1"
    with reading_local(laptop.settings) as store:
        for name, events, distinct in server.rows(counts, project.number):
            here = store.conversation.last_seq(store.sessions.find(name).id)
            if not events == distinct == here:
                found.append(f"session {name}: {events} events, {distinct} keys, {here} here")
    named = "SELECT DISTINCT digest FROM segments WHERE team_project=%s"
    digests = {digest for (digest,) in server.rows(named, project.number)}
    objects = set(server.served.app.resources.blobs(project.number).digests())
    found += [f"lost object {digest}" for digest in digests - objects]
    return found

"""Prove what no recording can: that agents run our hooks, and resume what we restored.

python -m tests.agents.prove qwen pi droid grok

In a home of its own: `whyfor init`, then the agent writes a file and commits it. The commit must
have its story, and the spool must hold the agent's own events. Where sessions can be restored, the
restored copy is resumed, and the model must be sent what was said before.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
import tempfile
import uuid
from pathlib import Path

from whyfor.agents import AGENTS

from .agent import Agent
from .model import ScriptedModel
from .process import run_clean
from .record import PATIENCE, RECIPES, Recording, installed_at
from .script import Call, Json, Say

PROMPT, WORDS = "Write of the quokka", "The quokka is there."


def main(names: list[str]) -> int:
    for name in names or [n for n in RECIPES if RECIPES[n].npm or RECIPES[n].pip]:
        print(name, json.dumps(prove(name)), flush=True)
    return 0


def prove(name: str) -> Json:
    place = installed_at(name, RECIPES[name], sys.executable)
    folder = Path(tempfile.gettempdir(), f"proof{uuid.uuid4().hex[:8]}")
    folder.mkdir()
    try:
        with ScriptedModel() as model:
            return _proof(Recording(name, folder, place, model).agent)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _proof(agent: Agent) -> Json:
    agent.extra_path = (*agent.extra_path, Path(sys.executable).parent)
    _whyfor(agent, "init")
    agent.model.add(
        Call("write", {"path": agent.cwd / "quokka.txt", "content": "it sleeps\nin the shade\n"}),
        Call("shell", {"command": "git add -A && git commit -qm 'Add the quokka'"}),
        Say(WORDS),
    )
    run = agent.run(PROMPT, timeout=PATIENCE, grace=20.0)
    assert run.code == 0, run
    _whyfor(agent, "ingest")
    told = json.loads(_whyfor(agent, "show", "HEAD", "--json"))
    checkpoint = told["checkpoint"] or {}
    sessions = [each["session_id"] for each in checkpoint.get("sessions", ())]
    found: Json = {
        "linked": run.session_id in sessions,
        "evidence": checkpoint.get("evidence"),
        "events": _events(agent),
        "prompts": [e["text"] for e in told.get("conversation", ()) if e["kind"] == "user.prompt"],
    }
    if AGENTS[agent.name].writer():
        found["resumed"] = _resumed(agent, run.session_id)
    return found


def _resumed(agent: Agent, session_id: str) -> bool:
    name = f"{agent.name}:{session_id}"
    said = _whyfor(agent, "restore", name, "--yes", "--json")
    made = json.loads(said)
    taken, _, then = made["command"].partition(" && ")
    if then:
        run_clean(shlex.split(taken), agent.cwd, agent.env, PATIENCE, 20.0)
    agent.model.add(Say("Here I am again."))
    again = agent.resume(made["session_id"], "Go on", timeout=PATIENCE, grace=20.0)
    sent = agent.model.main_requests[-1]
    return again.code == 0 and PROMPT in sent.said("user") and WORDS in sent.said("assistant")


def _events(agent: Agent) -> Json:
    """The events that were announced, by agent."""
    found: dict[str, list[str]] = {}
    spool = agent.home / ".local/share/whyfor/spool"
    for path in sorted(spool.iterdir()) if spool.is_dir() else ():
        for line in path.read_text(errors="replace").split("\n"):
            if not line.startswith("{"):
                continue
            envelope = json.loads(line.split("\t")[0])
            found.setdefault(envelope["agent"], []).append(envelope["event"])
    return found


def _whyfor(agent: Agent, *words: str) -> str:
    env = {key: value for key, value in agent.env.items() if "proxy" not in key.lower()}
    path = os.pathsep.join([str(Path(sys.executable).parent), env["PATH"]])
    done = run_clean(["whyfor", *words], agent.cwd, {**env, "PATH": path}, 120, 20.0)
    assert done.code == 0, done
    return done.stdout


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""The story behind every commit, with the real agents: `whyfor init`, then nothing but agents,
git and reading."""

from __future__ import annotations

import io
import json
import os
import shlex
import shutil
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import chdir, redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from whyfor.__main__ import main

from . import AGENTS, ALL_AGENTS, Agent, Call, Reply, Request, Run, Say, ScriptedModel
from .install import installed
from .process import Finished, run_clean
from .script import Answer, Json, Step, answer
from .terminal import Terminal

# Gemini runs its commands with core.hooksPath set to nothing, so that git's hooks never run there.
# Its own hook tells of commits that git printed; with `git commit -q` only the command says what
# was done.
QUIET = {"claude": "hook", "codex": "hook", "gemini": "output"}
TRUST = {"codex": ["--dangerously-bypass-hook-trust"]}  # what a person does once, in Codex itself
PATIENCE = 30.0  # for what hooks start in the background; nothing waits when it is gone


class Desk:
    """A home, a repository and a model; what is run here is awaited with all that its hooks
    started."""

    def __init__(self, home: Path, repo: Path, model: ScriptedModel) -> None:
        self.home = home
        self.repo = repo
        self.model = model

    @property
    def kept(self) -> Path:
        return self.home / ".local" / "share" / "whyfor"

    @property
    def env(self) -> dict[str, str]:
        """A person's, in a terminal of their own."""
        tools = [
            Path(sys.executable).parent,
            installed(),
            *(Path(shutil.which(name) or "").parent for name in ("git",)),
        ]
        return {
            "PATH": os.pathsep.join(map(str, [*tools, "/usr/local/bin", "/usr/bin", "/bin"])),
            "HOME": str(self.home),
            "LANG": "C.UTF-8",
        }

    def agent(self, name: str, **env: str) -> Agent:
        return ALL_AGENTS[name](
            self.home, self.repo, self.model, env=env, path=[Path(sys.executable).parent]
        )

    def run(self, *argv: str, cwd: Path | None = None) -> Finished:
        done = run_clean(list(argv), cwd or self.repo, self.env, 60, PATIENCE)
        assert done.killed == ()
        return done

    def git(self, *arguments: str, cwd: Path | None = None) -> str:
        """A person's git."""
        done = self.run("git", *arguments, cwd=cwd)
        assert done.code == 0, done.stderr
        return done.stdout.strip()

    def whyfor(self, *arguments: str, cwd: Path | None = None) -> str:
        done = self.run("whyfor", *arguments, cwd=cwd)
        assert (done.code, done.stderr) == (0, ""), done
        return done.stdout

    def read(self, *arguments: str, cwd: Path | None = None) -> Any:
        """What a command that only reads says as JSON; in this process, which starts no other."""
        said = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
        mask = os.umask(0)
        try:
            with (
                mock.patch.dict(os.environ, self.env, clear=True),
                chdir(cwd or self.repo),
                redirect_stdout(said),
            ):
                code = main([*arguments, "--json"])
        finally:
            os.umask(mask)
        said.seek(0)
        assert code == 0, said.read()
        return json.load(said)

    def show(self, commit: str = "HEAD", cwd: Path | None = None) -> Json:
        found: Json = self.read("show", commit, cwd=cwd)
        return found

    def log(self, *arguments: str, cwd: Path | None = None) -> dict[str, Json]:
        """Commits by subject, oldest first."""
        found: list[Json] = self.read("log", *arguments, cwd=cwd)
        return {told["subject"]: told for told in reversed(found)}


@pytest.fixture
def bare(agent_home: Path, agent_repo: Path, scripted_model: ScriptedModel) -> Desk:
    """A desk in a repository with one commit, before `whyfor init`."""
    desk = Desk(agent_home, agent_repo, scripted_model)
    (agent_home / ".config" / "opencode").mkdir(parents=True)  # where it runs, it has this
    desk.git("commit", "-q", "--allow-empty", "-m", "root")
    return desk


@pytest.fixture
def desk(bare: Desk) -> Iterator[Desk]:
    bare.whyfor("init")
    yield bare
    assert not (bare.kept / "hook" / "errors.log").exists(), (
        bare.kept / "hook" / "errors.log"
    ).read_text()


def work(agent: Agent, prompt: str, *steps: Any, resume: Run | None = None) -> Run:
    """One request to an agent, which must leave nothing running."""
    agent.model.add(*steps)
    args = TRUST.get(agent.name, [])
    run = (
        agent.resume(resume.session_id, prompt, *args, grace=PATIENCE)
        if resume
        else agent.run(prompt, *args, grace=PATIENCE)
    )
    assert (run.code, run.killed) == (0, ()), run.stdout + run.stderr
    return run


def write(path: Path, text: str) -> Call:
    return Call("write", {"path": path, "content": text})


def shell(command: str) -> Call:
    return Call("shell", {"command": command})


def commit(message: str, *flags: str, what: str = "-A") -> Call:
    return shell(f"git add {what} && git commit {' '.join(flags)} -m {shlex.quote(message)}")


def poem(animal: str) -> str:
    return f"the {animal} walks over the hill\nthe {animal} sleeps in the shade\n"


def part(told: Json) -> Json:
    """The only session of a commit."""
    sessions: list[Json] = told["checkpoint"]["sessions"]
    assert len(sessions) == 1, sessions
    return sessions[0]


def said(told: Json, *kinds: str) -> list[str]:
    return [
        line["text"]
        for line in told["conversation"]
        if line["kind"] in (kinds or ("user.prompt", "assistant.message"))
    ]


# -- what the agent commits ----------------------------------------------------------------------


@pytest.mark.parametrize("name", ALL_AGENTS)
def test_a_commit_of_the_agents_has_its_story_before_anybody_asks(name: str, desk: Desk) -> None:
    agent = desk.agent(name)
    run = work(
        agent,
        "Write of the quokka",
        Reply(Say("On it."), write(desk.repo / "quokka.txt", poem("quokka"))),
        commit("Add the quokka"),
        Say("The quokka is written."),
    )
    sha = desk.git("rev-parse", "HEAD")
    assert (desk.kept / "hook" / "stories").read_text().startswith(sha), (
        "by the ingest that hooks started"
    )

    told = desk.show()
    checkpoint, session = told["checkpoint"], part(told)
    assert (told["commit"], told["reason"]) == (sha, None)
    assert (checkpoint["evidence"], checkpoint["confidence"]) == ("hook", "high")
    assert checkpoint["group_root"] == checkpoint["id"]
    assert (session["agent"], session["session_id"], session["role"]) == (
        name,
        run.session_id,
        "made",
    )
    assert (session["from"], session["messages"], session["new_messages"]) == (1, 3, 3)
    assert (session["prompts"], session["turns"], session["continued_from_parent"]) == (1, 1, False)
    assert said(told) == ["Write of the quokka", "On it.", "The quokka is written."]
    last = told["conversation"][-1]
    assert (last["text"], last["seq"] <= session["to"]) == ("The quokka is written.", True)
    assert checkpoint["annotation"]["by"] == "derived"
    assert desk.log()["root"]["checkpoint"] is None
    if name not in AGENTS:  # of these, test_restore.py resumes sessions
        sent = resumed_copy(desk, agent)
        assert "Write of the quokka" in sent.said("user")
        assert "The quokka is written." in sent.said("assistant")


def resumed_copy(desk: Desk, agent: Agent) -> Request:
    """Restore the story of HEAD, resume it as the command says; what the model is sent."""
    made = json.loads(desk.whyfor("restore", "--yes", "--json"))
    taken_in, _, resume = made["command"].partition(" && ")
    if resume:
        done = run_clean(shlex.split(taken_in), desk.repo, agent.env, 180, PATIENCE)
        assert done.code == 0, done
    agent.model.add(Say("Here I am again."))
    run = agent.resume(made["session_id"], "Go on", timeout=180, grace=PATIENCE)
    assert (run.code, run.session_id) == (0, made["session_id"]), run
    return agent.model.main_requests[-1]


@pytest.mark.parametrize("name", AGENTS)
def test_three_commits_of_one_request_are_one_group_and_the_next_request_another(
    name: str, desk: Desk
) -> None:
    agent = desk.agent(name)
    first = work(
        agent,
        "Write of three animals",
        write(desk.repo / "quokka.txt", poem("quokka")),
        commit("Add the quokka"),
        Reply(Say("One is there."), write(desk.repo / "numbat.txt", poem("numbat"))),
        commit("Add the numbat", "-q"),
        write(desk.repo / "wombat.txt", poem("wombat")),
        commit("Add the wombat"),
        Say("All three are there."),
    )
    work(
        agent,
        "And of the koala",
        write(desk.repo / "koala.txt", poem("koala")),
        commit("Add the koala", "-q"),
        Say("The koala is there."),
        resume=first,
    )
    log = desk.log()
    told = [log[f"Add the {animal}"] for animal in ("quokka", "numbat", "wombat", "koala")]
    checkpoints = [one["checkpoint"] for one in told]
    assert [c["evidence"] for c in checkpoints] == ["hook", QUIET[name], "hook", QUIET[name]]
    assert [c["confidence"] for c in checkpoints] == ["high"] * 4
    root, other = checkpoints[0]["id"], checkpoints[3]["id"]
    assert [c["group_root"] for c in checkpoints] == [root, root, root, other]

    sessions = [part(one) for one in told]
    assert {session["session_id"] for session in sessions} == {first.session_id}
    assert [s["continued_from_parent"] for s in sessions] == [False, True, True, True]
    assert [s["from"] for s in sessions] == [1, *(s["to"] + 1 for s in sessions[:-1])], (
        "ranges adjoin"
    )
    assert [s["prompts"] for s in sessions] == [1, 0, 0, 1]
    assert sum(s["new_messages"] for s in sessions) == sessions[-1]["messages"] == 5
    stories = [desk.show(one["commit"]) for one in told]
    assert [said(story) for story in stories] == [
        ["Write of three animals"],
        ["One is there."],
        ["All three are there."],
        ["And of the koala", "The koala is there."],
    ]
    assert stories[1]["related"][0]["text"] == "Write of three animals", "the request it stems from"
    results = [
        line["seq"]
        for story in stories
        for line in story["conversation"]
        if line["kind"] == "tool.result"
    ]
    assert len(results) == len(set(results)) == 8


# -- what a person commits -----------------------------------------------------------------------


@pytest.mark.parametrize("name", AGENTS)
def test_a_persons_commits_are_linked_by_what_is_in_them_or_not_at_all(
    name: str, desk: Desk
) -> None:
    agent = desk.agent(name)

    def meanwhile(request: Request) -> Answer:
        """A person commits something else while the agent is at work."""
        (desk.repo / "shopping.txt").write_text(
            "milk and butter for the week\nflour and eggs for the cake\n"
        )
        desk.git("add", "shopping.txt")
        desk.git("commit", "-q", "-m", "Shopping", "--", "shopping.txt")
        return Reply(Say("The quokka is written."))

    run = work(
        agent, "Write of the quokka", write(desk.repo / "quokka.txt", poem("quokka")), meanwhile
    )
    desk.git("add", "-A")
    desk.git("commit", "-q", "-m", "A poem")
    (desk.repo / "later.txt").write_text(
        "all of this I wrote by myself\nand nobody helped me with it\n"
    )
    desk.git("add", "-A")
    desk.git("commit", "-q", "-m", "My own")

    log = desk.log()
    found = log["A poem"]["checkpoint"]
    assert (found["evidence"], part(log["A poem"])["session_id"]) == ("content", run.session_id)
    assert (part(log["A poem"])["role"], part(log["A poem"])["share"]) == ("wrote", 1.0)
    assert said(desk.show()) == []
    for subject in ("Shopping", "My own"):
        assert (log[subject]["checkpoint"], bool(log[subject]["reason"])) == (None, True)
    assert said(desk.show(log["A poem"]["commit"])) == [
        "Write of the quokka",
        "The quokka is written.",
    ]


# -- an agent that is killed ---------------------------------------------------------------------


@pytest.mark.parametrize("name", AGENTS)
def test_what_an_agent_did_before_it_was_killed_has_its_story(name: str, desk: Desk) -> None:
    agent = desk.agent(name)
    agent.model.add(
        write(desk.repo / "quokka.txt", poem("quokka")),
        commit("Add the quokka"),
        write(desk.repo / "numbat.txt", poem("numbat")),
        # agents write their files a moment later: what they never wrote nobody has
        shell("sleep 1; kill -9 $PPID"),
        Say("Nobody will hear this."),
    )
    run = agent.run("Write of the quokka and the numbat", *TRUST.get(name, []), grace=PATIENCE)
    assert run.code != 0
    assert run.killed == ()
    desk.git("add", "-A")
    desk.git("commit", "-q", "-m", "Add the numbat")

    log = desk.log()
    assert [
        log[f"Add the {animal}"]["checkpoint"]["evidence"] for animal in ("quokka", "numbat")
    ] == [
        "hook",
        "content",
    ]
    for animal in ("quokka", "numbat"):
        assert part(log[f"Add the {animal}"])["session_id"] == run.session_id
    assert part(log["Add the numbat"])["from"] == part(log["Add the quokka"])["to"] + 1
    assert said(desk.show(log["Add the quokka"]["commit"])) == [
        "Write of the quokka and the numbat"
    ]


# -- one command, one request --------------------------------------------------------------------


@pytest.mark.parametrize("name", AGENTS)
def test_commits_made_by_one_command_are_one_group(name: str, desk: Desk) -> None:
    animals = ("quokka", "numbat", "wombat")
    at_once = " && ".join(
        f"echo {animal} > {animal} && git add -A && git commit -qm 'Add the {animal}'"
        for animal in animals
    )
    work(desk.agent(name), "Commit three times", shell(at_once), Say("Three commits."))

    log = desk.log()
    told = [log[f"Add the {animal}"] for animal in animals]
    assert [one["checkpoint"]["evidence"] for one in told] == [QUIET[name]] * 3
    assert {one["checkpoint"]["group_root"] for one in told} == {told[0]["checkpoint"]["id"]}
    assert [part(one)["prompts"] for one in told] == [1, 0, 0]
    assert said(desk.show())[-1] == "Three commits."


# -- questions -----------------------------------------------------------------------------------


def told_within(desk: Desk, closing: str, seconds: float = PATIENCE) -> Json:
    """The story of HEAD as soon as it has its last words, with nobody asking for it to be read."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if said(told := desk.show())[-1:] == [closing]:
            return told
    raise AssertionError(f"no story with {closing!r} after {seconds} s")


def test_what_follows_an_answered_question_is_the_same_group(desk: Desk) -> None:
    claude = desk.agent("claude")
    known = {"hasTrustDialogAccepted": True}
    state = {
        "hasCompletedOnboarding": True,
        "customApiKeyResponses": {"approved": ["dummy"], "rejected": []},
        "projects": {str(desk.repo): known},
    }
    (desk.home / ".claude.json").write_text(json.dumps(state))
    options = [
        {"label": "Numbat", "description": "stripes"},
        {"label": "Wombat", "description": "round"},
    ]
    question = {
        "question": "Which one is next?",
        "header": "Next",
        "multiSelect": False,
        "options": options,
    }
    desk.model.add(
        write(desk.repo / "quokka.txt", poem("quokka")),
        commit("Add the quokka", "-q"),
        Call("AskUserQuestion", {"questions": [question]}),
        write(desk.repo / "wombat.txt", poem("wombat")),
        commit("Add the wombat", "-q"),
        Say("Both are written."),
    )
    with Terminal(
        ["claude", "--allowedTools", "Bash Write"], desk.repo, claude.env, PATIENCE
    ) as terminal:
        terminal.see("for shortcuts")
        terminal.enter("Write of two animals")
        terminal.see("Wombat")
        terminal.press("2")
        terminal.see("Both are written.")
        while_open = told_within(desk, "Both are written.")
        terminal.enter("/exit")
        assert terminal.leave() == 0
    assert terminal.killed == ()
    assert said(desk.show()) == said(while_open)

    log = desk.log()
    first, second = log["Add the quokka"], log["Add the wombat"]
    assert [told["checkpoint"]["evidence"] for told in (first, second)] == ["hook", "hook"]
    assert (
        second["checkpoint"]["group_root"]
        == first["checkpoint"]["group_root"]
        == first["checkpoint"]["id"]
    )
    assert (part(second)["session_id"], part(second)["prompts"]) == (part(first)["session_id"], 0)
    related = [(line["role"], line["text"]) for line in desk.show()["related"]]
    assert related[0] == ("request", "Write of two animals")
    assert ("answer", "Wombat") in related
    assert related[-1] == ("closing words", "Both are written.")
    assert any(role == "question" and "Which one is next?" in text for role, text in related)


# -- several at once -----------------------------------------------------------------------------


@pytest.mark.parametrize("names", [("claude", "claude"), ("codex", "codex"), ("claude", "codex")])
def test_of_two_sessions_in_one_folder_each_has_its_own_commit(
    names: tuple[str, str], desk: Desk
) -> None:
    animals = ("quokka", "wombat")
    both_wrote = threading.Barrier(2, timeout=60)
    first_committed = threading.Event()

    def last_moment(mine: int) -> Callable[[Request], Answer]:
        """Both have written before one commits; the second commits while the first is still
        open."""

        def decide(request: Request) -> Answer:
            both_wrote.wait()
            assert mine == 0 or first_committed.wait(60)
            return Reply(commit(f"Add the {animals[mine]}", "-q", what=f"{animals[mine]}.txt"))

        return decide

    def closing(mine: int) -> Callable[[Request], Answer]:
        def decide(request: Request) -> Answer:
            first_committed.set()
            return Reply(Say(f"The {animals[mine]} is there."))

        return decide

    scripts: dict[str, deque[Step]] = {
        f"Write of the {animal}": deque(
            [write(desk.repo / f"{animal}.txt", poem(animal)), last_moment(i), closing(i)]
        )
        for i, animal in enumerate(animals)
    }

    def by_prompt(request: Request) -> Answer:
        (script,) = (script for prompt, script in scripts.items() if prompt in request.said("user"))
        return answer(script.popleft(), request)

    desk.model.add(*[by_prompt] * 6)
    with ThreadPoolExecutor(2) as together:
        list(together.map(lambda name, prompt: work(desk.agent(name), prompt), names, scripts))

    log = desk.log()
    for name, animal in zip(names, animals, strict=True):
        told = desk.show(log[f"Add the {animal}"]["commit"])
        assert (told["checkpoint"]["evidence"], part(told)["agent"]) == ("hook", name)
        assert said(told) == [f"Write of the {animal}", f"The {animal} is there."]


def test_a_subagents_commit_and_what_a_subagent_wrote_belong_to_the_main_session(
    desk: Desk,
) -> None:
    def task(prompt: str) -> Call:
        return Call(
            "Agent", {"description": "help", "prompt": prompt, "subagent_type": "general-purpose"}
        )

    run = work(
        desk.agent("claude"),
        "Let others write",
        task("Write and commit the quokka"),
        write(desk.repo / "quokka.txt", poem("quokka")),
        commit("Add the quokka", "-q"),
        Say("Quokka committed."),
        task("Write the wombat"),
        write(desk.repo / "wombat.txt", poem("wombat")),
        Say("Wombat written."),
        commit("Add the wombat", "-q"),
        Say("Both are there."),
    )
    assert len(run.files) == 3
    log = desk.log()
    first, second = log["Add the quokka"], log["Add the wombat"]
    for told in (first, second):
        assert (told["checkpoint"]["evidence"], part(told)["session_id"]) == (
            "hook",
            run.session_id,
        )
    assert second["checkpoint"]["group_root"] == first["checkpoint"]["id"]
    assert part(second)["from"] == part(first)["to"] + 1
    assert said(desk.show(first["commit"]))[0] == "Let others write"
    assert said(desk.show())[-1] == "Both are there."


@pytest.mark.parametrize(
    ("outer", "inner", "flags"),
    [("claude", "codex", TRUST["codex"]), ("claude", "codex", []), ("codex", "claude", [])],
)
def test_a_commit_of_an_agent_started_by_another_belongs_to_the_inner_one(
    outer: str, inner: str, flags: list[str], desk: Desk
) -> None:
    within = desk.agent(inner)
    around = desk.agent(outer, **within._own_env())
    # A login shell of Codex's has a search path of its own.
    started = shlex.join(
        [f"{installed()}/{inner}", *within.argv("Write of the quokka, use git", *flags)[1:]]
    )
    work(
        around,
        "Let another agent write",
        shell(f"{started} </dev/null 2>&1"),
        write(desk.repo / "quokka.txt", poem("quokka")),
        commit("Add the quokka"),
        Say("The quokka is there."),
        commit("Nothing more", "-q", "--allow-empty"),
        Say("The other one is done."),
    )
    told = desk.show(desk.log()["Add the quokka"]["commit"])
    assert (told["checkpoint"]["evidence"], part(told)["agent"]) == ("hook", inner)
    assert said(told) == ["Write of the quokka, use git", "The quokka is there."]
    own = desk.show()
    assert (own["checkpoint"]["evidence"], part(own)["agent"]) == ("hook", outer)
    assert said(own) == ["Let another agent write", "The other one is done."]


# -- several places ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", AGENTS)
def test_commits_in_another_work_tree_and_another_repository(name: str, desk: Desk) -> None:
    tree, other = desk.repo.with_name("other tree"), desk.repo.with_name("other")
    other.mkdir()
    for arguments in (
        "init -q -b main",
        "config user.name Ada",
        "config user.email ada@example.com",
    ):
        desk.git(*arguments.split(), cwd=other)
    desk.git("commit", "-q", "--allow-empty", "-m", "other root", cwd=other)
    desk.whyfor("init", cwd=other)
    desk.git("worktree", "add", "-q", "-b", "side", str(tree))
    run = work(
        desk.agent(name),
        "Write all over the place",
        shell(
            f"cd {shlex.quote(str(tree))} && echo quokka > q && git add q && git commit -qm 'Add "
            "the quokka'"
        ),
        shell(
            f"echo wombat > {other}/w && git -C {other} add w && git -C {other} commit -qm 'Add "
            "the wombat'"
        ),
        shell("echo numbat > n && git add n && git commit -qm 'Add the numbat'"),
        Say("All are there."),
    )
    found = [
        desk.log("side")["Add the quokka"],
        desk.log()["Add the numbat"],
        desk.log(cwd=other)["Add the wombat"],
    ]
    if name == "gemini":  # it wrote nothing there that could be seen, and no hook told of it
        assert found.pop()["checkpoint"] is None
    assert {told["checkpoint"]["evidence"] for told in found} == {QUIET[name]}
    assert {part(told)["session_id"] for told in found} == {run.session_id}
    assert part(desk.log("side", cwd=tree)["Add the quokka"]) == part(found[0])
    assert desk.log(cwd=other)["other root"]["checkpoint"] is None


# -- rewritten -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", AGENTS)
def test_a_story_is_found_from_the_new_commit_and_from_the_old_one(name: str, desk: Desk) -> None:
    heads: list[str] = []

    def note_head(request: Request) -> Answer:
        heads.append(desk.git("rev-parse", "HEAD"))
        return Reply(shell("git commit -q --amend -m 'Add the small quokka'"))

    run = work(
        desk.agent(name),
        "Write of the quokka",
        write(desk.repo / "quokka.txt", poem("quokka")),
        commit("Add the quokka", "-q"),
        note_head,
        Say("The quokka is there."),
    )
    heads.append(desk.git("rev-parse", "HEAD"))
    desk.git("commit", "-q", "--amend", "-m", "Add the happy quokka")
    heads.append(desk.git("rev-parse", "HEAD"))
    desk.git("checkout", "-q", "-b", "main2", "HEAD~1")
    (desk.repo / "mine.txt").write_text("this is a line of mine alone\n")
    desk.git("add", "-A")
    desk.git("commit", "-q", "-m", "Mine")
    desk.git("rebase", "-q", "main2", "main")
    heads.append(desk.git("rev-parse", "HEAD"))
    assert len(set(heads)) == 4

    told = [desk.show(sha) for sha in heads]
    # Without git's hooks nobody told what was amended: Gemini's first is known as a copy of what is
    # left in the end.
    amended = heads[1] if name != "gemini" else heads[3]
    assert [one["checkpoint"]["superseded_by"] for one in told] == [
        amended,
        heads[2],
        heads[3],
        None,
    ]
    assert [part(one)["session_id"] for one in told] == [run.session_id] * 4
    assert [one["checkpoint"]["confidence"] for one in told] == ["high"] * 4
    # what was said after the last of them is not taken from those it was before
    whole = ["Write of the quokka", "The quokka is there."]
    assert [said(one) for one in told[1:]] == [whole] * 3
    assert said(told[0]) == (whole if name != "gemini" else whole[:1])
    assert desk.log()["Mine"]["checkpoint"] is None


# -- annotation ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", AGENTS)
def test_an_agent_is_asked_once_per_commit_to_write_down_why(name: str, bare: Desk) -> None:
    bare.whyfor("init", "--annotate")
    agent = bare.agent(name)
    note = (
        "whyfor note --title 'A quokka at last' --intent 'no poem had one' --alternative 'a koala' "
        "--tag FEATURE"
    )
    work(
        agent,
        "Write of the quokka",
        write(bare.repo / "quokka.txt", poem("quokka")),
        commit("Add the quokka"),
        shell(f"PATH={shlex.quote(agent.env['PATH'])} {note}"),
        shell("git log -1 --format='[main %h] %s'; echo git commit"),
        Say("The quokka is there."),
    )
    short = bare.git("rev-parse", "HEAD")[:7]
    asked = [
        json.dumps(request.body).count(f"whyfor note {short}")
        for request in agent.model.main_requests
    ]
    assert asked == [0, 0, 1, 1, 1], "after the commit, and never again"

    told = bare.show()
    annotation = told["checkpoint"]["annotation"]
    assert (annotation["title"], annotation["by"]) == ("A quokka at last", name)
    assert (annotation["intent"], annotation["alternatives"]) == ("no poem had one", ["a koala"])
    assert annotation["tag"] == "FEATURE"
    assert said(told) == ["Write of the quokka", "The quokka is there."]
    repeated = [
        line["kind"] for line in told["conversation"] if "Whyfor keeps the story" in line["text"]
    ]
    assert repeated == (["tool.result"] if name == "gemini" else []), (
        "Gemini writes it into the command's own result"
    )


# -- never in the way ----------------------------------------------------------------------------


def without_gossip(stderr: str) -> list[str]:
    """Without what differs from run to run: how long it took, and the session's id."""
    gossip = ("[STARTUP]", "Duration", "Resume")
    return [line for line in stderr.splitlines() if not line.startswith(gossip)]


@pytest.mark.parametrize("name", ALL_AGENTS)
def test_nobody_notices_us_and_we_leave_as_we_came(name: str, bare: Desk) -> None:
    settings = {
        ".claude/settings.json": '{"cleanupPeriodDays":99}',
        ".codex/hooks.json": '{ "hooks" : {} }\n',
    }
    for place, text in settings.items():
        (bare.home / place).parent.mkdir(exist_ok=True)
        (bare.home / place).write_text(text)
    agent = bare.agent(name)
    plugin = ".config/opencode/plugins/whyfor.js"
    places = [*settings, ".gemini/settings.json", ".copilot/hooks/whyfor.json", plugin]
    before = [
        (bare.home / place).read_bytes() if (bare.home / place).exists() else None
        for place in places
    ]
    hooks = sorted(path.name for path in (bare.repo / ".git" / "hooks").iterdir())

    def at_work(number: int) -> tuple[Run, list[str], tuple[int, str, str]]:
        """A run that writes, commits and fails to commit; and a person's commit that fails."""
        asked = len(agent.model.main_requests)
        run = work(
            agent,
            "Write of the quokka",
            write(bare.repo / f"quokka{number}.txt", poem("quokka")),
            shell(
                "git add -A; git commit -qm 'Add the quokka'; echo committed: $?; git commit; echo "
                "again: $?"
            ),
            Say("The quokka is there."),
        )
        sent = [request.history[-1].text for request in agent.model.main_requests[asked:]]
        done = bare.run("git", "commit", "-m", "nothing")
        return run, sent, (done.code, done.stdout, done.stderr)

    plain, _, plain_git = at_work(1)
    bare.whyfor("init")
    hooked, sent, by_hand = at_work(2)
    same = hooked.stdout.replace("quokka2", "quokka1")
    assert (hooked.code, same) == (plain.code, plain.stdout)
    if name == "opencode":  # its words come in chunks, as it happens
        assert "whyfor" not in hooked.stderr.lower()
    elif name != "codex":  # which tells on stderr of every hook it runs
        assert without_gossip(hooked.stderr) == without_gossip(plain.stderr)
    assert "committed: 0" in sent[-1] and "again: 1" in sent[-1]
    assert by_hand == plain_git
    assert "whyfor" not in json.dumps([request.body for request in agent.model.requests]).lower()
    assert part(bare.show())["session_id"] == hooked.session_id

    bare.whyfor("uninstall")
    after = [
        (bare.home / place).read_bytes() if (bare.home / place).exists() else None
        for place in places
    ]
    assert after == before
    assert sorted(path.name for path in (bare.repo / ".git" / "hooks").iterdir()) == hooks


# -- copies of a session -------------------------------------------------------------------------


@pytest.mark.parametrize("name", AGENTS)
def test_a_restored_session_goes_on_with_stories_of_its_own(name: str, desk: Desk) -> None:
    agent = desk.agent(name)
    steps = (
        write(desk.repo / "quokka.txt", poem("quokka")),
        commit("Add the quokka"),
        Say("The quokka is there."),
    )
    first = work(agent, "Write of the quokka", *steps)
    restored = json.loads(desk.whyfor("restore", "HEAD", "--yes", "--json"))["session_id"]
    steps = (
        write(desk.repo / "wombat.txt", poem("wombat")),
        commit("Add the wombat"),
        Say("The wombat is there."),
    )
    work(agent, "Write of the wombat", *steps, resume=replace(first, session_id=restored))

    log = desk.log()
    assert [part(log[f"Add the {animal}"])["session_id"] for animal in ("quokka", "wombat")] == [
        first.session_id,
        restored,
    ]
    told = desk.show()
    assert said(told) == ["Write of the wombat", "The wombat is there."]
    # what was copied from the first session is not counted
    assert (part(told)["prompts"], part(told)["messages"], part(told)["new_messages"]) == (1, 2, 2)
    assert told["checkpoint"]["annotation"]["intent"].startswith("Write of the wombat")
    assert told["checkpoint"]["group_root"] == told["checkpoint"]["id"]


def test_a_fork_of_claudes_has_what_was_said_before_unless_that_has_its_story_already(
    desk: Desk,
) -> None:
    claude = desk.agent("claude")
    first = work(claude, "What of the quokka?", Say("It smiles."))
    steps = (
        write(desk.repo / "quokka.txt", poem("quokka")),
        commit("Add the quokka", "-q"),
        Say("It is there."),
    )
    desk.model.add(*steps)
    second = claude.resume(first.session_id, "Write of it", "--fork-session", grace=PATIENCE)
    assert said(desk.show()) == ["What of the quokka?", "It smiles.", "Write of it", "It is there."]
    steps = (
        write(desk.repo / "wombat.txt", poem("wombat")),
        commit("Add the wombat", "-q"),
        Say("So is this."),
    )
    desk.model.add(*steps)
    third = claude.resume(second.session_id, "And the wombat", "--fork-session", grace=PATIENCE)
    assert said(desk.show()) == ["And the wombat", "So is this."]
    assert (
        len(
            {first.session_id, second.session_id, third.session_id, part(desk.show())["session_id"]}
        )
        == 3
    )

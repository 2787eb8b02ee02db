"""Restored sessions, resumed by the real agents: what counts is what they send to the model."""

from __future__ import annotations

import functools
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.conftest import Result, set_home
from whyfor import config
from whyfor.service.restore import RestoredSource, RestoreReport, RestoreRequest, restore

from . import AGENTS, Agent, Call, Claude, Reply, Request, Run, Say, ScriptedModel
from .conftest import make_repository
from .script import Json

Cli = Callable[..., Result]

COMMIT = "git add -A && git commit -qm 'Plant a fern' && git log --oneline -1"
FIRST, SECOND = "Plant the fern please", "Now water the cactus"


def worked(agent: Agent) -> Run:
    """A request with two calls at once and a commit, then another request in the same session."""
    at_once = [
        Call("write", {"path": agent.cwd / "fern.txt", "content": "green\n"}),
        Call("shell", {"command": "echo soil"}),
    ]
    agent.model.add(
        Reply(Say("Digging."), *at_once),
        Call("shell", {"command": COMMIT}),
        Say("The fern stands."),
    )
    run = agent.run(FIRST)
    assert run.code == 0
    agent.model.add(Say("The cactus is wet."))
    again = agent.resume(run.session_id, SECOND)
    assert again.code == 0, again
    return run


class Garden:
    """An agent whose first session is done, and its home and repository as that left them."""

    def __init__(self, name: str, folder: Path, model: ScriptedModel) -> None:
        home, repo = folder / "now" / "home", folder / "now" / "repo"
        home.mkdir(parents=True)
        make_repository(repo)
        self._now, self._kept = folder / "now", folder / "kept"
        self.agent = AGENTS[name](home, repo, model)
        self.run = worked(self.agent)
        shutil.copytree(self._now, self._kept, symlinks=True)

    def again(self) -> Garden:
        """The same, without what another test did in it."""
        shutil.rmtree(self._now)
        shutil.copytree(self._kept, self._now, symlinks=True)
        self.agent.model.forget_script()
        return self


@pytest.fixture(scope="module")
def gardens(
    agents: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[str], Garden]]:
    with ScriptedModel() as model:
        yield functools.cache(
            lambda name: Garden(name, tmp_path_factory.mktemp(f"garden-{name}"), model)
        )


@pytest.fixture
def garden(
    request: pytest.FixtureRequest,
    gardens: Callable[[str], Garden],
    monkeypatch: pytest.MonkeyPatch,
) -> Garden:
    """The garden of the agent that the test names; its home is this test's."""
    garden = gardens(request.param).again()
    set_home(monkeypatch, garden.agent.home)
    return garden


each_agent = pytest.mark.parametrize("garden", AGENTS, indirect=True)
of_claude = pytest.mark.parametrize("garden", ["claude"], indirect=True)
of_codex = pytest.mark.parametrize("garden", ["codex"], indirect=True)


@pytest.fixture(params=AGENTS)
def agent(
    request: pytest.FixtureRequest,
    agent_home: Path,
    agent_repo: Path,
    scripted_model: ScriptedModel,
) -> Agent:
    return AGENTS[request.param](agent_home, agent_repo, scripted_model)


@pytest.fixture
def claude(agent_home: Path, agent_repo: Path, scripted_model: ScriptedModel) -> Claude:
    return Claude(agent_home, agent_repo, scripted_model)


def results(cli: Cli, session_id: str) -> list[int]:
    found: list[Json] = cli("show", session_id, "--json").json["events"]
    return [event["seq"] for event in found if event["kind"] == "tool.result"]


def bring_back(*taken: RestoredSource, into: Agent, cwd: Path | None = None) -> RestoreReport:
    wish = RestoreRequest(
        list(taken), "Restored 126e95e0: Plant a fern", into.name, cwd or into.cwd
    )
    return restore(config.load(), wish)


def resumed(agent: Agent, session_id: str) -> Request:
    """What the agent sends to the model when it takes up the session."""
    agent.model.add(Say("Here I am again."))
    run = agent.resume(session_id, "Where were we?")
    assert (run.code, run.session_id) == (0, session_id), run.stderr
    assert "Here I am again." in run.stdout
    return agent.model.main_requests[-1]


def whole(request: Request) -> str:
    return "\n".join(message.text for message in request.history)


def kept(agent: Agent) -> dict[Path, tuple[bytes, int]]:
    return {
        path: (path.read_bytes(), path.stat().st_mtime_ns)
        for path in agent.home.glob(agent.sessions)
    }


def in_order(text: str, *words: str) -> bool:
    places = [text.find(word) for word in words]
    return -1 not in places and places == sorted(places)


@each_agent
def test_a_session_cut_at_its_commit_is_resumed_with_all_before_and_nothing_after(
    garden: Garden, cli: Cli
) -> None:
    agent, run = garden.agent, garden.run
    cli("ingest")
    before, tokens = kept(agent), cli("stats", "--json").json["tokens"]

    made = bring_back(
        RestoredSource(agent.name, run.session_id, results(cli, run.session_id)[-1]), into=agent
    )
    assert made.session_id != run.session_id
    assert {path: state for path, state in kept(agent).items() if str(path) != made.path} == before
    assert (Path(made.path).stat().st_mode & 0o777) == 0o600
    cli("ingest")
    assert cli("stats", "--json").json["tokens"] == tokens, "a copy costs nothing"
    assert (
        cli("show", made.session_id, "--json").json["session"]["title"]
        == "Restored 126e95e0: Plant a fern"
    )

    sent = resumed(agent, made.session_id)
    cli("ingest")
    copy = cli("show", made.session_id, "--json").json["session"]
    assert copy["copy_of"] == f"{agent.name}:{run.session_id}"
    assert (copy["copy_kind"], copy["prompts"], copy["messages"]) == ("restored", 1, 2)
    assert FIRST in sent.said("user")
    assert "Digging." in sent.said("assistant")
    assert all(
        text in sent.said("assistant") for text in ("fern.txt", "echo soil", "git commit -qm")
    )
    assert in_order(sent.said("user"), "soil", "Plant a fern", "Where were we?")
    assert not [
        word for word in ("The fern stands.", SECOND, "The cactus is wet.") if word in whole(sent)
    ]


@each_agent
def test_the_story_of_a_commit_is_resumed(
    garden: Garden, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = garden.agent
    cli("ingest")
    monkeypatch.chdir(agent.cwd)

    story = cli("log", "--json").json
    made = cli("restore", "HEAD", "--yes", "--json").json
    assert made["agent"] == agent.name
    assert made["command"].startswith(agent.name) and made["command"].endswith(made["session_id"])
    cli("ingest")
    cli("link")
    assert cli("log", "--json").json == story, "a copy has no part in the commit"

    sent = resumed(agent, made["session_id"])
    assert FIRST in sent.said("user")
    assert "git commit -qm" in sent.said("assistant")
    assert SECOND not in whole(sent)


@each_agent
def test_two_sessions_become_one_by_time_with_a_line_where_they_change(
    garden: Garden, cli: Cli
) -> None:
    agent, first = garden.agent, garden.run
    agent.model.add(Call("shell", {"command": "echo beetle"}), Say("A beetle was seen."))
    second = agent.run("Look for beetles")
    assert second.code == 0, second
    agent.model.add(Say("The rose is cut."))
    third = agent.resume(first.session_id, "Cut the rose")
    assert third.code == 0, third
    cli("ingest")
    tokens = cli("stats", "--json").json["tokens"]

    parts = [
        RestoredSource(agent.name, first.session_id),
        RestoredSource(agent.name, second.session_id),
    ]
    made = bring_back(*parts, into=agent)
    cli("ingest")
    assert cli("stats", "--json").json["tokens"] == tokens
    shown = cli("show", made.session_id, "--json").json
    assert sum(event["kind"] == "user.prompt" for event in shown["events"]) == 4
    assert shown["session"]["prompts"] == 0, "they were asked elsewhere"
    assert shown["abandoned_turns"] == []

    sent = resumed(agent, made.session_id)
    marker, back = f"session {second.session_id}", f"session {first.session_id}"
    said = whole(sent)
    assert in_order(
        said, FIRST, "soil", SECOND, marker, "Look for beetles", "echo beetle", back, "Cut the rose"
    )
    assert in_order(
        said, "The fern stands.", "The cactus is wet.", "A beetle was seen.", "The rose is cut."
    )
    assert said.count("[Whyfor: ") == 2


@pytest.mark.parametrize(
    ("garden", "target"),
    [("claude", "codex"), ("codex", "claude"), ("claude", "gemini"), ("gemini", "codex")],
    indirect=["garden"],
)
def test_work_begun_in_one_agent_goes_on_in_another(garden: Garden, target: str, cli: Cli) -> None:
    begun, run = garden.agent, garden.run
    origin = begun.name
    cli("ingest")
    tokens = cli("stats", "--json").json["tokens"]

    other = AGENTS[target](begun.home, begun.cwd, begun.model)
    made = bring_back(
        RestoredSource(origin, run.session_id, results(cli, run.session_id)[-1]), into=other
    )
    cli("ingest")
    assert cli("stats", "--json").json["tokens"] == tokens
    copy = cli("show", made.session_id, "--json").json
    assert [e["text"] for e in copy["events"] if e["kind"] == "user.prompt"] == [FIRST]
    assert copy["session"]["copy_of"] == f"{origin}:{run.session_id}"
    assert copy["session"]["prompts"] == 0, "it was asked elsewhere"

    sent = resumed(other, made.session_id)
    assert FIRST in sent.said("user")
    assert in_order(sent.said("assistant"), "Digging.", "fern.txt", "echo soil", "git commit -qm")
    assert in_order(sent.said("user"), "tool result", "soil", "Plant a fern", "Where were we?")
    assert SECOND not in whole(sent)


@each_agent
def test_a_session_is_resumed_in_another_work_tree(
    garden: Garden, cli: Cli, tmp_path: Path
) -> None:
    agent, run = garden.agent, garden.run
    cli("ingest")
    # Claude's name for it needs a hash
    elsewhere = tmp_path / "émoji🙂_tree" / ("long" * 40) / "other tree"
    subprocess.run(
        ["git", "worktree", "add", "-q", "--detach", str(elsewhere)], cwd=agent.cwd, check=True
    )

    made = bring_back(
        RestoredSource(agent.name, run.session_id, results(cli, run.session_id)[-1]),
        into=agent,
        cwd=elsewhere,
    )
    there = AGENTS[agent.name](agent.home, elsewhere, agent.model)
    sent = resumed(there, made.session_id)
    assert FIRST in sent.said("user")
    assert "git commit -qm" in sent.said("assistant")
    cli("ingest")
    assert cli("show", made.session_id, "--json").json["session"]["cwd"] == str(elsewhere)


def test_subagents_of_claudes_come_along(claude: Claude, cli: Cli) -> None:
    task = {
        "description": "look for it",
        "prompt": "Look for the wombat",
        "subagent_type": "general-purpose",
    }
    claude.model.add(
        Call("Agent", task), Say("Wombat seen."), Say("It was seen."), Say("No more wombats.")
    )
    run = claude.run("Where is the wombat?")
    claude.resume(run.session_id, "Any more?")
    cli("ingest")
    tokens = cli("stats", "--json").json["tokens"]

    made = bring_back(
        RestoredSource("claude", run.session_id, results(cli, run.session_id)[-1]), into=claude
    )
    folder = Path(made.path).with_suffix("") / "subagents"
    assert sorted(path.name for path in folder.iterdir()) == sorted(
        path.name for path in run.transcript.with_suffix("").joinpath("subagents").iterdir()
    )
    assert {path.stat().st_mode & 0o777 for path in (folder, *folder.iterdir())} == {0o700, 0o600}
    cli("ingest")
    assert cli("stats", "--json").json["tokens"] == tokens
    (child,) = cli("show", made.session_id, "--json").json["subagents"]
    assert child.endswith(f"@{made.session_id}")

    sent = resumed(claude, made.session_id)
    assert in_order(
        whole(sent), "Where is the wombat?", "Look for the wombat", "Wombat seen.", "Where were we?"
    )
    assert "No more wombats." not in whole(sent)


@of_claude
def test_what_claude_compacted_stays_compacted(garden: Garden, cli: Cli) -> None:
    claude, run = garden.agent, garden.run
    claude.resume(run.session_id, "/compact")
    claude.model.add(Say("The orchid blooms."), Say("Nothing new."))
    claude.resume(run.session_id, "What of the orchid?")
    other = claude.run("Anything new?")
    cli("ingest")

    alone = resumed(
        claude, bring_back(RestoredSource("claude", run.session_id), into=claude).session_id
    )
    assert in_order(
        whole(alone), "This session is being continued", "What of the orchid?", "The orchid blooms."
    )
    assert FIRST not in whole(alone)

    parts = [RestoredSource("claude", run.session_id), RestoredSource("claude", other.session_id)]
    both = whole(resumed(claude, bring_back(*parts, into=claude).session_id))
    assert in_order(
        both, "This session is being continued", "The orchid blooms.", "[Whyfor: ", "Nothing new."
    )
    assert FIRST not in both


@of_codex
def test_a_fork_of_codexs_stands_by_itself(garden: Garden, cli: Cli) -> None:
    codex, run = garden.agent, garden.run
    codex.model.add(Say("The lily is yellow."))
    argv = codex.argv("What of the lily?")
    fork = codex._run([*argv[:-1], "fork", run.session_id, argv[-1]], 60, 5)
    assert (fork.code, "history_base" in fork.transcript.read_text()) == (0, True)
    cli("ingest")

    made = bring_back(RestoredSource("codex", fork.session_id), into=codex)
    run.transcript.unlink()
    fork.transcript.unlink()
    sent = resumed(codex, made.session_id)
    assert in_order(
        whole(sent), FIRST, "git commit -qm", SECOND, "What of the lily?", "The lily is yellow."
    )


def test_a_session_restored_in_brief_is_resumed_with_a_summary_and_its_last_turn(
    agent: Agent, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    decided = "I chose moss instead of sand because it keeps the water."
    agent.model.add(Say(decided))
    run = agent.run("Find a soil for the fern. Never use peat.")
    # Gemini takes the same words again and again for a loop, and keeps none of them.
    agent.model.add(Say(" ".join(f"Rain again on day {day}." for day in range(400))))
    agent.resume(run.session_id, "What about the weather?")
    agent.model.add(Call("shell", {"command": "echo loam"}), Say("The cactus is wet."))
    agent.resume(run.session_id, SECOND)
    cli("ingest")
    monkeypatch.chdir(agent.cwd)

    made = cli("restore", run.session_id, "--brief", "--turns", "1", "--yes", "--json").json
    assert made["brief"]["tokens_after"] < made["brief"]["tokens_before"]
    sent = resumed(agent, made["session_id"])
    assert in_order(sent.said("user"), decided, SECOND, "loam", "Where were we?")
    assert "Never use peat." in sent.said("user")
    assert "The cactus is wet." in sent.said("assistant")
    assert "What about the weather?" not in whole(sent)
    assert whole(sent).count("Rain again") < 20, "a sentence of it may be quoted, not all 400"

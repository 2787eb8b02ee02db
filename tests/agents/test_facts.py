"""What is known of agents stands in their packages, and nowhere else."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY
from whyfor.agents import AGENTS
from whyfor.agents.codex.records import CALLS, OUTPUTS, RECORDS
from whyfor.agents.copilot.read import EVENTS, SILENT
from whyfor.agents.facts import AgentFacts
from whyfor.agents.tools import argument_names, names_of, tool_kind
from whyfor.hook import private
from whyfor.model.events import KINDS
from whyfor.privacy import structure
from whyfor.story.status import inputs

SOURCE = REPOSITORY / "src" / "whyfor"
FACTS = {name: agent.facts for name, agent in AGENTS.items()}
# Where the formats stand, and the demo, which writes in them. The hook runs without anything of
# ours; that its copy says the same is tested below.
KNOWING = ("agents/", "hook/", "demo/")
# Words that OpenTelemetry has too.
STANDARD_WORDS = {"service/exchange/otlp.py": {"invoke_agent"}}
# Variables that are not the agents' own.
SHARED_VARIABLES = {"XDG_DATA_HOME"}


def all_of(field: str) -> set[str]:
    """What the agents say together."""
    return {item for facts in FACTS.values() for item in getattr(facts, field)}


# -- nowhere else --------------------------------------------------------------------------------


def is_unmistakable(name: str) -> bool:
    """Words of one part are ordinary English: edit, read, list, task, question, …"""
    return "_" in name or "." in name or any(letter.isupper() for letter in name[1:])


def agents_words() -> set[str]:
    """Names of tools, records and variables that only an agent's format explains."""
    tools = all_of("tools") | {"AskUserQuestion", "ExitPlanMode", "EnterPlanMode", "TodoWrite"}
    tools |= {"MultiEdit", "NotebookEdit", "WebFetch", "WebSearch", "ToolSearch", "TaskCreate"}
    variables = all_of("folder_variables") | all_of("session_variables")
    variables |= all_of("presence_variables")
    records = RECORDS | CALLS | OUTPUTS | ((EVENTS.keys() | SILENT) - set(KINDS))
    records |= {"file-history-snapshot", "isSidechain", "parentUuid", "replacement_history"}
    found = {word for word in tools | records if is_unmistakable(word) or "-" in word}
    return found | (variables - SHARED_VARIABLES)


def strings(path: Path) -> Iterator[tuple[int, str]]:
    """The strings in a module that are no docstrings."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    docs = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs:
            yield node.lineno, node.value


def test_no_name_of_an_agents_format_stands_outside_the_agents() -> None:
    words = agents_words()
    assert {"AskUserQuestion", "request_user_input", "run_shell_command", "exec_command"} <= words
    assert {"CLAUDE_CODE_SESSION_ID", "CODEX_THREAD_ID", "GEMINI_CLI", "COPILOT_HOME"} <= words
    found = []
    for path in sorted(SOURCE.rglob("*.py")):
        place = path.relative_to(SOURCE).as_posix()
        if place.startswith(KNOWING):
            continue
        foreign = words - STANDARD_WORDS.get(place, set())
        for line, text in strings(path):
            found += [f"{place}:{line} {word}" for word in foreign & set(text.split())]
    assert found == []


# -- the copies that must stand alone ------------------------------------------------------------


def hook_words(module: str, name: str) -> set[str]:
    """A list of words in a module of the hook, which only a hook can import."""
    tree = ast.parse((SOURCE / "hook" / f"{module}.py").read_text(encoding="utf-8"))
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name:
            assert isinstance(node.value, ast.Call) and isinstance(node.value.func, ast.Attribute)
            words: bytes = ast.literal_eval(node.value.func.value)
            return {word.decode() for word in words.split()}
    raise LookupError(f"{module}.{name}")


def test_hooks_keep_the_structure_that_agents_name() -> None:
    assert {key.decode() for key in private.STRUCTURE} == all_of("structure")


def test_hooks_hand_on_the_variables_that_name_sessions() -> None:
    told = hook_words("announce", "TOLD")
    assert all_of("session_variables") <= told
    known = all_of("session_variables") | all_of("presence_variables")
    others = {name for name in told - known if not name.startswith(("WHYFOR_", "GIT_"))}
    assert others == {"AI_AGENT"}  # what several agents set, and whose it is it does not say


@pytest.mark.parametrize(
    ("module", "name", "kinds"),
    [
        ("private_turns", "ASKS", {"prompt"}),
        ("announce", "ENDS", {"exited"}),
        ("announce", "WAKES", {"done", "failed", "exited", "compacting"}),
    ],
)
def test_hooks_know_the_events_that_agents_name(module: str, name: str, kinds: set[str]) -> None:
    expected = set()
    for facts in FACTS.values():
        installed = {on.event for on in facts.hooks.events} if facts.hooks else set()
        expected |= {event for event in installed if facts.hook_events.get(event) in kinds}
    of_git = {event for event in hook_words(module, name) if event.startswith("post-")}
    assert hook_words(module, name) - of_git == expected


def test_hooks_look_for_files_where_tools_name_them() -> None:
    assert hook_words("exclusions", "FILES") <= set(argument_names().path)


def test_redaction_leaves_the_keys_alone_that_agents_name() -> None:
    assert all_of("identities") <= structure.IDENTITIES
    assert all_of("sealed") == structure.SEALED
    of_anybody = {"sha", "commit", "hash", "checksum", "integrity", "threadid"}
    assert structure.IDENTITIES - all_of("identities") == of_anybody


# -- what they say -------------------------------------------------------------------------------


@pytest.mark.parametrize("agent", FACTS)
def test_hooks_processes_and_notices_say_something_that_a_status_is_made_of(agent: str) -> None:
    facts = FACTS[agent]
    said = {*facts.hook_events.values(), *facts.notices.values(), *facts.process_states.values()}
    assert said <= set(inputs.KINDS)


@pytest.mark.parametrize("agent", FACTS)
def test_an_agent_is_told_apart_by_mark_and_colour(agent: str) -> None:
    facts = FACTS[agent]
    others = [other for name, other in FACTS.items() if name != agent]
    assert len(facts.mark) == 2 and facts.mark not in {other.mark for other in others}
    assert facts.colour not in {other.colour for other in others}
    assert all(name == name.lower() for name in facts.tools)


@pytest.mark.parametrize("agent", [*FACTS, "", "nobody"])
def test_a_tool_is_known_whoever_calls_it(agent: str) -> None:
    """Forks and MCP servers use the names of others."""
    assert tool_kind("AskUserQuestion", agent) == "question"
    assert tool_kind("run_shell_command", agent) == "shell"
    assert tool_kind("mcp__files__read", agent) == "mcp"
    assert tool_kind("dance", agent) == "other"


def test_a_tool_that_does_several_things_is_known_by_what_it_is_told() -> None:
    assert tool_kind("str_replace_editor", "copilot", {"command": "view"}) == "read"
    assert tool_kind("str_replace_editor", "copilot", {"command": "create"}) == "write"
    assert tool_kind("str_replace_editor", "copilot", {"command": "insert"}) == "edit"


def test_all_question_tools_are_one_set() -> None:
    assert names_of("question") == {
        "askuserquestion",
        "ask_user",
        "ask_user_question",
        "request_user_input",
        "question",
    }


def test_every_agent_says_its_facts() -> None:
    assert all(isinstance(facts, AgentFacts) for facts in FACTS.values())

"""With a prompt, the hook tells of the notes it is about: few, each once; on any error nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.hook import Installed
from tests.hook.test_memory_block import checkout_folder, place
from whyfor.hook.block_name import block_key, notes_name
from whyfor.hook.prompt_words import is_strong, words_in
from whyfor.model.memory import Observation
from whyfor.recall.prompt_index import word_weights

__all__ = ["checkout_folder"]
NOW = 1_777_629_600_000
BASKET = "The basket is slow because every price is read from the disk twice."
RETRY = "`retryPayment` does not wait because the timeout is in seconds."
NOTES = {"b1": BASKET, "c2": RETRY}
ABOUT_BASKET = "Why is our basket so slow, are prices on that disk?"


def write(hook: Installed, folder: Path, most: int = 3, notes: dict[str, str] = NOTES) -> Path:
    observed = [
        Observation(
            key=key, type="discovery", state="stated", title=text, turn=1, at=NOW, narrative=text
        )
        for key, text in notes.items()
    ]
    key = block_key(str(folder / ".git").encode(), b"")
    lines = [key, b"<whyfor-memory>\\n", b"</whyfor-memory>", b"%d" % most, b"%d" % len(notes)]
    lines += [f"{each.key}\t- [{each.key}] {each.narrative}".encode() for each in observed]
    for word, pairs in word_weights(observed).items():
        lines.append(b"%s %s" % (word.encode(), b" ".join(pairs)))
    path = hook.folder / "memory" / notes_name(key).decode()
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"\n".join([*lines, b""]))
    return path


def ask(hook: Installed, folder: Path, prompt: str, agent: str = "claude", **more: object) -> str:
    event = {"gemini": "BeforeAgent", "copilot": "userPromptSubmitted"}.get(
        agent, "UserPromptSubmit"
    )
    given = {"session_id": "s-1", "prompt_id": "p", "prompt": prompt, **more}
    done = hook.run(agent, "--recall", event, payload=json.dumps(given).encode(), cwd=folder)
    assert (done.returncode, done.stderr) == (0, b"")
    if not done.stdout:
        return ""
    printed = json.loads(done.stdout)
    if agent == "copilot":
        assert printed.keys() == {"additionalContext"}
        return str(printed["additionalContext"])
    output = printed["hookSpecificOutput"]
    assert output.keys() == {"hookEventName", "additionalContext"}
    assert output["hookEventName"] == event
    return str(output["additionalContext"])


@pytest.mark.parametrize("agent", ["claude", "codex", "gemini", "copilot"])
def test_a_prompt_is_told_of_the_note_it_is_about_once(
    hook: Installed, checkout_folder: Path, agent: str
) -> None:
    write(hook, checkout_folder)
    told = ask(hook, checkout_folder, ABOUT_BASKET, agent)
    assert told == f"<whyfor-memory>\n- [b1] {BASKET}\n</whyfor-memory>"
    assert ask(hook, checkout_folder, ABOUT_BASKET, agent) == ""
    assert BASKET in ask(hook, checkout_folder, ABOUT_BASKET, agent, session_id="s-2")
    first, second, third = (line.header.get("memory", {}) for line in hook.lines())
    assert (first["part"], first["sources"], second) == ("prompt", ["b1"], {})
    assert first["tokens"] > 10
    assert third["block"] == first["block"]


def test_a_name_in_the_code_is_enough_with_one_more_word(
    hook: Installed, checkout_folder: Path
) -> None:
    write(hook, checkout_folder)
    assert RETRY in ask(hook, checkout_folder, "Give retryPayment a longer timeout")


@pytest.mark.parametrize(
    "prompt",
    [
        "",
        "yes",
        "Please fix the failing tests and commit.",
        "The basket needs another colour",
        f"/review {ABOUT_BASKET}",
        "x " * 30_000,
        "\ud83d \\u12 \\uzzzz basket",
    ],
)
def test_a_prompt_about_something_else_is_told_nothing(
    hook: Installed, checkout_folder: Path, prompt: str
) -> None:
    write(hook, checkout_folder)
    assert ask(hook, checkout_folder, prompt) == ""


def test_what_was_told_at_the_start_is_not_told_again(
    hook: Installed, checkout_folder: Path
) -> None:
    write(hook, checkout_folder)
    block = place(hook, checkout_folder)
    block.write_bytes(block.read_bytes().replace(b'{"part":"start"}', b'{"sources":["b1"]}', 1))
    given = json.dumps({"session_id": "s-1", "source": "startup"}).encode()
    assert hook.run(
        "claude", "--remember", "SessionStart", payload=given, cwd=checkout_folder
    ).stdout
    assert ask(hook, checkout_folder, ABOUT_BASKET) == ""
    assert BASKET in ask(hook, checkout_folder, ABOUT_BASKET, session_id="s-2")


def test_no_more_notes_are_told_than_was_asked_for(hook: Installed, checkout_folder: Path) -> None:
    alike = {f"n{number}": f"{BASKET} ({number})" for number in range(2)}
    write(hook, checkout_folder, most=1, notes=alike)
    assert ask(hook, checkout_folder, ABOUT_BASKET).count("- [") == 1
    assert ask(hook, checkout_folder, ABOUT_BASKET).count("- [n1]") == 1  # the next, not the same
    assert ask(hook, checkout_folder, ABOUT_BASKET) == ""


def test_a_damaged_file_and_private_or_foreign_prompts_are_answered_with_nothing(
    hook: Installed, checkout_folder: Path, tmp_path: Path
) -> None:
    path = write(hook, checkout_folder)
    whole = path.read_bytes()
    assert ask(hook, tmp_path, ABOUT_BASKET) == ""  # no repository
    assert ask(hook, checkout_folder, f"<private>{ABOUT_BASKET}</private>") == ""
    assert ask(hook, checkout_folder, ABOUT_BASKET, agent_id="a") == ""
    for cut in range(0, len(whole), 40):
        path.write_bytes(whole[:cut])
        ask(hook, checkout_folder, ABOUT_BASKET, session_id=f"cut-{cut}")
    path.write_bytes(whole.replace(b"/.git\0", b"/.tig\0"))
    assert ask(hook, checkout_folder, ABOUT_BASKET) == ""  # of another repository
    path.unlink()
    assert ask(hook, checkout_folder, ABOUT_BASKET) == ""


def test_words_are_known_in_any_form_and_common_ones_name_nothing() -> None:
    assert words_in("Please fix the failing tests in src/app.py") == set()
    assert words_in("readPrices read_prices reading Prices") >= {"pric", "readpric", "read_pric"}
    assert words_in("Größe der Körbe") >= {"gröss", "körb"}
    assert is_strong(8, 4, 10) and not is_strong(8, 1, 10) and not is_strong(8, 4, 80)

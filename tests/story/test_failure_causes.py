"""Why something failed, told from its words."""

from __future__ import annotations

from tests.cases import check_each
from whyfor.story.failure_causes import FAILURE_CAUSES, cause_of_failure

CALL, ERROR = "tool.result", "error"
CAUSES: dict[str, tuple[str, str, str | None]] = {
    "a key that is refused": (ERROR, "API Error: 401 invalid x-api-key", "sign-in"),
    "a plan that is used up": (ERROR, "You've hit your limit · resets 6pm", "limit"),
    "a server with too much to do": (ERROR, "529 overloaded_error", "limit"),
    "a prompt that is too long": (ERROR, "prompt is too long: 210000 tokens", "context"),
    "a provider that fails": (ERROR, "API Error: 500 internal server error", "provider"),
    "no connection to the provider": (ERROR, "FailedToOpenSocket", "network"),
    "a rebase": (CALL, "CONFLICT (content): Merge conflict in a.py", "conflict"),
    "a key of git": (CALL, "git@host: Permission denied (publickey).", "sign-in"),
    "a host": (CALL, "Exit code 6\ncurl: (6) Could not resolve host: x.example", "network"),
    "a limit of a service": (CALL, "HTTP 429: Too Many Requests", "limit"),
    "a command that was cut off": (CALL, "Command timed out after 2m 0s", "timeout"),
    "a module": (CALL, "Exit code 1\nModuleNotFoundError: No module named 'x'", "dependency"),
    "a program": (CALL, "Exit code 127\nbash: tox: command not found", "dependency"),
    "a click": (CALL, "TimeoutError: locator.click: Timeout 5000ms exceeded.", "timeout"),
    "a package": (CALL, "error: FailedToOpenSocket downloading package manifest", "network"),
    "ty": (CALL, "error[invalid-argument-type]: Expected `int`", "type"),
    "bun test": (CALL, "Exit code 1\n 1318 pass\n 1 fail\nRan 1319 tests", "test"),
    "tsc": (CALL, "a.ts(3,1): error TS2345: Argument of type", "type"),
    "mypy": (CALL, "a.py:3: error: Incompatible return value type [return-value]", "type"),
    "pytest": (CALL, "Exit code 1\nFAILED tests/test_a.py::test_b\n1 failed, 3 passed", "test"),
    "go test": (CALL, "--- FAIL: TestX (0.00s)", "test"),
    "all tests that passed": (CALL, "Exit code 1\n0 failed, 12 passed", "other"),
    "Python's grammar": (CALL, "SyntaxError: invalid syntax", "syntax"),
    "eslint": (CALL, "eslint found 3 problems (3 errors)", "lint"),
    "make": (CALL, "make: *** [all] Error 2", "build"),
    "an edit": (CALL, "String to replace not found in file.", "edit"),
    "a path": (CALL, "cat: x: No such file or directory", "file"),
    "an option": (CALL, "Exit code 1\ncat: illegal option -- A", "usage"),
    "a push": (CALL, " ! [rejected] main -> main (fetch first)", "git"),
    "a crash": (CALL, "Traceback (most recent call last):\n  KeyError: 1", "crash"),
    "a search that finds nothing": (CALL, "Exit code 1", "nothing"),
    "what nobody could allow": (CALL, "This command requires approval", "blocked"),
    "a person's no": (CALL, "The user doesn't want to proceed", None),
    "an echo": (CALL, "Sibling tool call errored", None),
    "an interruption": ("turn.completed", "", None),
    "words that say nothing": (CALL, "Exit code 3\nhm", "other"),
}


def test_failures_have_the_cause_their_words_say() -> None:
    def check(case: tuple[str, str, str | None]) -> None:
        event, text, cause = case
        assert cause_of_failure(event, text, text, ran=False) == cause

    check_each(CAUSES.items(), check)


def test_every_cause_has_a_title_and_a_case() -> None:
    assert {cause for _, _, cause in CAUSES.values()} - {None} == set(FAILURE_CAUSES)

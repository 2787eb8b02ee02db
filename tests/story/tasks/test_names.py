"""Which words are a task's name, and which only look like one."""

from __future__ import annotations

from tests.cases import check_each
from whyfor.story.tasks.names import (
    TaskNames,
    branch_tasks,
    keyed_tasks,
    linked_tasks,
    trailer_tasks,
)

PLAIN = TaskNames(project="example.com/ann/shop")
NAMES = TaskNames(("SL", "tw"), frozenset({"bd-a1b2", "av-raf.3"}), "example.com/ann/shop")


def test_branches_name_tasks() -> None:
    def check(case: tuple[str, list[str], list[str]]) -> None:
        branch, plain, configured = case
        assert branch_tasks(branch, PLAIN) == plain
        assert branch_tasks(branch, NAMES) == configured

    cases = [
        ("main", [], []),
        ("", [], []),
        ("SL-123-faster-basket", ["SL-123"], ["SL-123"]),
        ("feature/SL-123", ["SL-123"], ["SL-123"]),
        ("sl-123-faster", [], ["SL-123"]),
        ("fix/tw-42", [], ["tw-42"]),
        ("utf-8", [], []),
        ("UTF-8-names", [], []),
        ("SHA-256", [], []),
        ("release-2", [], []),
        ("issue-12", ["#12"], ["#12"]),
        ("issues/12-basket", ["#12"], ["#12"]),
        ("12-faster-basket", ["#12"], ["#12"]),
        ("2024-01-05", [], []),
        ("robin/bd-a1b2-faster", [], ["bd-a1b2"]),
        ("av-raf.3", [], ["av-raf.3"]),
        ("v2-3", [], []),
    ]
    check_each(((str(case[:2]), case) for case in cases), check)


def test_whole_links_and_configured_keys_count_in_prompts_and_nothing_else() -> None:
    def check(case: tuple[str, list[str], list[str]]) -> None:
        text, links, keys = case
        assert linked_tasks(text, NAMES) == links
        assert keyed_tasks(text, NAMES) == keys
        assert keyed_tasks(text, PLAIN) == []

    cases = [
        ("Read it as UTF-8, see C8-53 and SHA-256", [], []),
        ("1. #1 do this\n2. #2 do that", [], []),
        ("Do SL-12 and SL-13, not sl-14 or XSL-15", [], ["SL-12", "SL-13"]),
        ("https://github.com/ann/shop/issues/7 is it", ["#7"], []),
        ("see https://github.com/bob/till/issues/7#issuecomment-1", ["bob/till#7"], []),
        ("https://git.example.com/a/b/c/-/issues/9", ["a/b/c#9"], []),
        ("https://jira.example.com/browse/SL-9", ["SL-9"], []),
        ("https://linear.app/shop/issue/SL-9/faster-basket", ["SL-9"], []),
        ("https://github.com/ann/shop/pull/7", [], []),
        ("https://example.com/browse/of-things", [], []),
    ]
    check_each(((str(case[:2]), case) for case in cases), check)


def test_trailers_close_tasks() -> None:
    def check(case: tuple[str, list[str]]) -> None:
        message, found = case
        assert trailer_tasks(message, NAMES) == found

    cases = [
        ("Fix the basket\n\nFixes: #12", ["#12"]),
        ("Fix the basket (closes #12, #13)", ["#12"]),
        ("Resolves ann/shop#4 and fixes bob/till#5", ["#4", "bob/till#5"]),
        ("Closes: SL-9", ["SL-9"]),
        ("closes av-raf.3.", ["av-raf.3"]),
        ("Fixes: ABC-4", ["ABC-4"]),
        ("Fixes ABC-4 in passing", []),
        ("Fixes UTF-8 names", []),
        ("Fixes: UTF-8", []),
        ("Fix #12 of the list", ["#12"]),
        ("Closes https://github.com/ann/shop/issues/3", ["#3"]),
        ("Prefixes #12", []),
        ("Mention SL-9", []),
    ]
    check_each(((str(case[:2]), case) for case in cases), check)

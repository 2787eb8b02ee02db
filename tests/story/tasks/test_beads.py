"""What beads is told on a command line and through its tools, and what it exports."""

from __future__ import annotations

import json

from tests.cases import check_each
from whyfor.model.tasks import TaskIssue
from whyfor.story.tasks.beads import (
    claimed_key,
    merge_issue,
    read_export,
    says_error,
    shell_calls,
    tool_calls,
)


def test_commands_that_claim_close_and_reopen() -> None:
    def check(case: tuple[str, list[tuple[str, str, bool]]]) -> None:
        command, expected = case
        assert [(each.action, each.key, each.hidden) for each in shell_calls(command)] == expected

    cases = [
        ("bd update tw-1 --claim", [("claim", "tw-1", False)]),
        (
            "bd update tw-1 tw-2 --status in_progress",
            [("claim", k, False) for k in ("tw-1", "tw-2")],
        ),
        ("bd update tw-1 -s in_progress --json", [("claim", "tw-1", False)]),
        ("bd update tw-1 --status=closed", [("close", "tw-1", False)]),
        ("bd update tw-1 --status open", [("unclaim", "tw-1", False)]),
        ("bd update tw-1 --status blocked", []),
        ('bd update av-raf.3 --title "…" 2>&1 | tail -1', []),
        ("bd close tw-1 2>&1 | tail -1", [("close", "tw-1", True)]),
        ("bd done tw-1 --reason fix-two", [("close", "tw-1", False)]),
        ("bd close --reason=ok tw-1 && git push", [("close", "tw-1", False)]),
        ("bd close tw-1; true", [("close", "tw-1", True)]),
        ("cd /shop && bd --json reopen av-raf.3", [("reopen", "av-raf.3", False)]),
        ("bd ready --claim --json", [("claim", "", False)]),
        ("bd ready", []),
        ("bd show tw-1", []),
        ("echo 'bd close tw-1'", []),
        ("grep -r 'bd close tw-1' docs", []),
        ("cat <<'EOF' > a.md\nbd close tw-1\nEOF", []),
        ("BD_ACTOR=ann /usr/bin/bd close tw-1", [("close", "tw-1", False)]),
        ("bd close 'tw-1", []),
    ]
    check_each(((str(case[:2]), case) for case in cases), check)


def test_calls_of_its_tools() -> None:
    def check(case: tuple[str, object, list[tuple[str, str]]]) -> None:
        name, given, expected = case
        assert [(each.action, each.key) for each in tool_calls(name, given)] == expected

    cases = [
        ("mcp__beads__claim", {"issue_id": "tw-1"}, [("claim", "tw-1")]),
        (
            "mcp__plugin_beads_beads__close",
            {"issue_id": "tw-1", "reason": "ok"},
            [("close", "tw-1")],
        ),
        (
            "mcp__beads__update",
            {"issue_id": "tw-1", "status": "in_progress"},
            [("claim", "tw-1")],
        ),
        ("mcp__beads__update", {"issue_id": "tw-1", "title": "New"}, []),
        (
            "mcp__beads__reopen",
            {"issue_ids": ["tw-1", "tw-2"]},
            [("reopen", "tw-1"), ("reopen", "tw-2")],
        ),
        ("mcp__beads__show", {"issue_id": "tw-1"}, []),
        ("mcp__github__close", {"issue_id": "tw-1"}, []),
        ("mcp__beads__close", ["tw-1"], []),
    ]
    check_each(((str(case[:2]), case) for case in cases), check)


def test_what_it_prints() -> None:
    assert says_error("Error: no issue found matching tw-9")
    assert not says_error("✓ Closed tw-1: Say how old an error is")
    assert claimed_key('[{"id": "tw-5", "title": "x"}]') == "tw-5"
    assert claimed_key('{"id": "tw-5"}') == "tw-5"
    assert claimed_key("✓ Claimed tw-5: Faster") == "tw-5"
    assert claimed_key("[]") == ""


def test_an_export_is_read_line_by_line_and_what_is_none_is_left_out() -> None:
    told = {
        "id": "tw-1",
        "title": "Faster",
        "status": "closed",
        "assignee": "robin",
        "started_at": "2026-05-01T10:00:00Z",
        "closed_at": "2026-05-01T12:00:00.5+02:00",
        "close_reason": "Done",
        "closed_by_session": "s-1",
        "labels": ["x"],
    }
    lines = [json.dumps(told), "{torn", "", json.dumps({"title": "no id"}), '{"id": "tw-2"}']
    found = read_export("\n".join(lines).encode(), "shop", 7)
    assert found == [
        TaskIssue(
            *("shop", "tw-1", "beads", "Faster", "closed", "robin"),
            *(1777629600000, 1777629600500, "Done", "s-1", None, 7),
        ),
        TaskIssue("shop", "tw-2", "beads", read_at=7),
    ]


def test_an_issue_that_is_open_again_is_remembered_as_such() -> None:
    def issue(status: str, read_at: int, **more: object) -> TaskIssue:
        return TaskIssue("shop", "tw-1", "beads", status=status, read_at=read_at, **more)  # type: ignore[arg-type]

    assert merge_issue(None, issue("open", 1)) == issue("open", 1)
    assert merge_issue(issue("open", 1), issue("open", 2)) is None
    assert merge_issue(issue("open", 1), issue("closed", 2)) == issue("closed", 2)
    opened = merge_issue(issue("closed", 2), issue("open", 3))
    assert opened == issue("open", 3, reopened_at=3)
    assert opened is not None
    assert merge_issue(opened, issue("open", 4)) is None
    assert merge_issue(opened, issue("closed", 5)) == issue("closed", 5, reopened_at=3)

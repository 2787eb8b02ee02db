"""JSON of a pull request's story."""

from __future__ import annotations

import msgspec

from whyfor.model.pull_request import PostedComment, PullStory
from whyfor.model.wire.lines import WireRangeCounts, wire_range_counts
from whyfor.model.wire.review import WireFinding, wire_finding


class WirePrompt(msgspec.Struct, frozen=True):
    number: int
    agent: str
    session: str
    turn: int | None
    asked: str
    question: str | None
    closing: str | None
    lines: int
    files: list[str]


class WireCheckRun(msgspec.Struct, frozen=True):
    command: str
    outcome: str  # passed | failed
    exit_code: int | None
    runs: int
    failures: int


class WirePull(msgspec.Struct, frozen=True):
    range: str
    lines: WireRangeCounts
    prompts: list[WirePrompt]
    sessions: int
    commits: int
    active_ms: int
    checks: list[WireCheckRun]
    findings: list[WireFinding]
    comment: str
    posted: str | None  # created | updated | unchanged; null: not posted


def wire_pull(story: PullStory, text: str, posted: PostedComment | None) -> WirePull:
    prompts = []
    for one in story.prompts:
        place = (one.number, one.agent, one.session_id, one.turn)
        said = (one.text, one.question, one.closing)
        prompts.append(WirePrompt(*place, *said, one.lines, one.files))
    checks = [
        WireCheckRun(one.command, one.outcome, one.exit_code, one.runs, one.failures)
        for one in story.checks
    ]
    return WirePull(
        range=story.revisions,
        lines=wire_range_counts(story.counts),
        prompts=prompts,
        sessions=story.sessions,
        commits=story.commits,
        active_ms=story.active,
        checks=checks,
        findings=[wire_finding(finding) for finding in story.findings],
        comment=text,
        posted=posted.action if posted else None,
    )

"""The comment of a pull request as Markdown: nothing in it calls anybody or breaks out of its
place."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from whyfor.model.cost import cost_of, short_cost
from whyfor.model.line_counts import FileCounts
from whyfor.model.pull_request import PullFile, PullPrompt, PullStory
from whyfor.model.review import ReviewFinding
from whyfor.model.text import plural
from whyfor.service.agents import agent_title
from whyfor.service.export.prose import (
    agent_prose,
    cell,
    code_span,
    fenced,
    inline_text,
    quote_lines,
)

MARKER = "<!-- whyfor:pr -->"
LIMIT = 60_000  # characters; GitHub takes 65,536
_FILES = 12  # that stand open, those with the most added lines
_FOLDED = 200  # of the others
_PROMPT = 3000  # characters of each
_CLOSING = 1200
_KINDS = {
    "undoes": "undoes what was decided",
    "returns": "brings back what was taken out",
    "failed": "tries again what failed",
    "rule": "breaks a rule",
}


def write_comment(story: PullStory) -> str:
    """Return the comment; prompts that do not fit are counted."""
    head = [MARKER, _sentence(story), _table(story.files)]
    head += _findings(story.findings)
    tail = [*_checks(story), *_approvals(story), _foot()]
    room = LIMIT - len("\n\n".join([*head, *tail])) - 200
    blocks = [*head, *_prompts(story.prompts, room), *tail]
    text = "\n\n".join(block for block in blocks if block) + "\n"
    return text if len(text) <= LIMIT else text[: LIMIT - 40].rsplit("\n", 1)[0] + "\n\n…\n"


def _sentence(story: PullStory) -> str:
    """214 of 260 added lines by agents (82 %), 9 modified, …"""
    total = story.counts.total
    added = total.added or 0
    if not added:
        return "No line is added."
    share = f"{100 * total.agent / added:.0f} %"
    counts = [f"**{total.agent:,} of {added:,} added lines by agents ({share})**"]
    for number, words in (
        (total.modified, "changed by somebody since"),
        (total.person, "a person's (inferred)"),
        (total.unknown, "unknown"),
    ):
        if number:
            counts.append(f"{number:,} {words}")
    if not story.sessions:
        return f"{', '.join(counts)}; no session that is known here took part."
    facts = [plural(len(story.prompts), "prompt"), plural(story.sessions, "session")]
    if story.active:
        facts.append(f"{max(1, story.active // 60_000):,} min")
    cost = cost_of(story.tokens)
    facts.append("price unknown" if cost.usd is None else f"API price {short_cost(cost)}")
    return f"{', '.join(counts)}; {', '.join(facts)}."


def _table(files: Sequence[PullFile]) -> str:
    """The files with the most added lines; of many the others are folded."""
    if len(files) <= _FILES + 3:
        return _rows(files)
    open_ones = sorted(files, key=lambda file: -(file.counts.added or 0))[:_FILES]
    paths = {file.counts.path for file in open_ones}
    others = [file for file in files if file.counts.path not in paths]
    head = f"<details><summary>{plural(len(others), 'more file')}</summary>"
    blocks = [_rows([file for file in files if file.counts.path in paths]), head]
    blocks.append(_rows(others[:_FOLDED]))
    if len(others) > _FOLDED:
        blocks.append(f"and {plural(len(others) - _FOLDED, 'more file')}")
    return "\n\n".join([*blocks, "</details>"])


def _rows(files: Sequence[PullFile]) -> str:
    if not files:
        return ""
    rows = ["| file | added | agent | modified | unknown | prompts |", "|---|--:|--:|--:|--:|---|"]
    return "\n".join([*rows, *map(_row, files)])


def _row(file: PullFile) -> str:
    counts: FileCounts = file.counts
    name = cell(code_span(counts.path))
    if counts.added is None:
        return f"| {name} | binary | | | | |"
    share = f"{100 * counts.agent / counts.added:.0f} %" if counts.added else ""
    other = counts.unknown + counts.person
    prompts = ", ".join(map(str, file.prompts))
    return f"| {name} | {counts.added:,} | {share} | {counts.modified:,} | {other:,} | {prompts} |"


def _findings(findings: Sequence[ReviewFinding]) -> Iterator[str]:
    if not findings:
        return
    yield f"### {plural(len(findings), 'thing')} to look at"
    for finding in findings[:8]:
        first = finding.lines[0]
        where = code_span(f"{finding.path}:{first.number}")
        yield f"- {where} {_KINDS[finding.kind]}: {inline_text(finding.because)}"
        shown = "\n".join(f"{line.sign} {line.text}" for line in finding.lines[:4])
        yield fenced(shown, "diff")
        yield quote_lines(finding.decision.text[:600])


def _prompts(prompts: Sequence[PullPrompt], room: int) -> Iterator[str]:
    if not prompts:
        return
    yield "### Prompts"
    left = room
    for shown, prompt in enumerate(prompts):
        block = _prompt(prompt)
        left -= len(block) + 2
        if left < 0:
            yield f"{plural(len(prompts) - shown, 'more prompt')} not shown."
            return
        yield block


def _prompt(prompt: PullPrompt) -> str:
    agent = agent_title(prompt.agent)
    turn = f" turn {prompt.turn}" if prompt.turn is not None else ""
    lines = plural(prompt.lines, "line")
    files = plural(len(prompt.files), "file")
    head = f"{prompt.number}. {agent}{turn}: {lines} in {files}"
    blocks = [f"<details><summary>{head}</summary>"]
    if prompt.question:
        blocks += [f"**{inline_text(agent)} asked**", agent_prose(prompt.question[:_CLOSING])]
    blocks.append(quote_lines(prompt.text[:_PROMPT]))
    if prompt.intent:
        blocks.append(f"**Why**: {inline_text(prompt.intent)}")
    if prompt.weighed:
        blocks.append("**Weighed**")
        blocks.append("\n".join(f"- {inline_text(text)}" for text in prompt.weighed))
    if prompt.closing:
        blocks.append(agent_prose(prompt.closing[:_CLOSING]))
    return "\n\n".join([*(block for block in blocks if block), "</details>"])


def _checks(story: PullStory) -> Iterator[str]:
    yield "### Checked"
    if not story.checks:
        yield "No check is recorded."
        return
    rows = ["| command | last | exit code | runs | failed |", "|---|---|--:|--:|--:|"]
    for check in story.checks[:30]:
        code = "not recorded" if check.exit_code is None else str(check.exit_code)
        name = cell(code_span(check.command[:300]))
        rows.append(f"| {name} | {check.outcome} | {code} | {check.runs} | {check.failures} |")
    yield "\n".join(rows)


def _approvals(story: PullStory) -> Iterator[str]:
    if not story.approvals:
        return
    blocks = [f"- {code_span(one.command[:400])}: {one.reason}" for one in story.approvals[:30]]
    number = plural(len(story.approvals), "command")
    yield "\n\n".join(
        [
            f"<details><summary>{number} that a person allowed</summary>",
            "\n".join(blocks),
            "</details>",
        ]
    )


def _foot() -> str:
    return (
        "<sub>Told by Whyfor from what was recorded, without secrets. Unknown lines are counted "
        "for nobody.</sub>"
    )

"""An export as Markdown, to be pasted into a pull request."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from html import escape

from whyfor.model.checkpoints import Annotation, Checkpoint, Part
from whyfor.model.stories import CommitStory, FullStory
from whyfor.model.text import one_line, tokens_text
from whyfor.service.agents import agent_title
from whyfor.service.export.document import (
    Chapter,
    Document,
    DocumentCall,
    DocumentLine,
    about,
    agents,
    missing_reason,
    sure,
)
from whyfor.service.export.prose import (
    agent_prose,
    cell,
    code_span,
    fenced,
    inline_text,
    quote_lines,
)


def write_markdown(found: Document) -> str:
    """One commit needs no head but its own."""
    blocks = (
        [] if len(found.chapters) == 1 else [f"# {inline_text(found.title)}", _facts(found.facts)]
    )
    if len(found.chapters) > 1:
        blocks.append(_overview(found.chapters))
    blocks += [_chapter(chapter) for chapter in found.chapters]
    blocks += _conversation(found.lines)
    return "\n\n".join(block for block in blocks if block) + "\n"


def _chapter(found: Chapter) -> str:
    told, checkpoint = found.story.told, found.story.told.checkpoint
    blocks = [f"## {code_span(told.commit.sha[:8])} {inline_text(told.commit.subject)}"]
    if checkpoint is None or not checkpoint.parts:
        blocks += [_facts(about(told)), *_annotation(told.noted)]
        blocks.append(f"No story: {inline_text(missing_reason(told))}.")
    else:
        note = checkpoint.annotation
        blocks += [_facts([note.tag if note else "", *about(told)]), *_annotation(note)]
        if found.same_as:
            blocks.append(f"Same request as {code_span(found.same_as[:8])}.")
        blocks += [*_conversation(found.lines), _details(checkpoint, found.story)]
    if reverts := found.story.reverts:
        blocks.append(
            f"It reverts {code_span(reverts.commit.sha[:8])} {inline_text(reverts.commit.subject)}."
        )
    return "\n\n".join(block for block in blocks if block)


def _facts(facts: Iterable[str]) -> str:
    return " · ".join(inline_text(fact) for fact in facts if fact)


def _overview(chapters: list[Chapter]) -> str:
    rows = [_row(each.story.told) for each in chapters]
    return "\n".join(
        ["| commit | title | tag | agent | evidence |", "|---|---|---|---|---|", *rows]
    )


def _row(told: CommitStory) -> str:
    checkpoint = told.checkpoint
    title, tag, who, how = told.commit.subject, "", "", f"none: {missing_reason(told)}"
    if checkpoint and checkpoint.parts:
        title = checkpoint.annotation.title if checkpoint.annotation else title
        tag = checkpoint.annotation.tag if checkpoint.annotation else ""
        who, how = agents(checkpoint), sure(checkpoint.evidence, checkpoint.confidence)
    cells = [
        code_span(told.commit.sha[:8]),
        *(inline_text(text) for text in (title, tag, who, how)),
    ]
    return f"| {' | '.join(map(cell, cells))} |"


def _annotation(note: Annotation | None) -> Iterator[str]:
    if note is None:
        return
    if note.intent:
        by = "" if note.by == "derived" else f" (noted by {inline_text(note.by)})"
        yield f"**Why**{by}: {inline_text(note.intent)}"
    if note.alternatives:
        yield "**Weighed**"
        yield "\n".join(f"- {inline_text(text)}" for text in note.alternatives)


# -- what was said -------------------------------------------------------------------------------


def _conversation(lines: list[DocumentLine]) -> Iterator[str]:
    for line in lines:
        who = inline_text(agent_title(line.agent))
        gone = " (taken back later)" if line.left else ""
        match line.role:
            case "request":
                yield f"**Asked**{gone}"
                yield quote_lines(line.text)
            case "question":
                yield f"**{who} asked back**"
                yield agent_prose(line.text)
            case "answer":
                yield "**Answered**"
                yield quote_lines(line.text)
            case "said":
                yield f"**{who}**"
                yield agent_prose(line.text)
            case "thinking":
                yield _folded("Thinking", [fenced(line.text)])
            case "calls" if line.calls:
                names = f"<code>{escape(one_line(line.text))}</code>"
                yield _folded(names, [block for call in line.calls for block in _call(call)])
            case "calls":
                yield f"▸ {inline_text(line.text)}"


def _call(call: DocumentCall) -> Iterator[str]:
    outcome = f" {call.outcome}" if call.outcome else ""
    yield f"**{inline_text(call.name)}** {code_span(call.given)}{outcome}"
    if call.diff:
        yield fenced(call.diff, "diff")
    if call.result:
        yield fenced(call.result)


def _folded(summary: str, blocks: Iterable[str]) -> str:
    """Inside a tag nothing is Markdown: the summary is HTML. Forges do not look for references
    in code."""
    return "\n\n".join([f"<details><summary>{summary}</summary>", *blocks, "</details>"])


# -- what it rests on ----------------------------------------------------------------------------


def _details(checkpoint: Checkpoint, story: FullStory) -> str:
    files = [
        f"| {cell(code_span(file.path))} | +{file.added} | −{file.removed} |"
        for file in checkpoint.files
    ]
    sessions = [_session(part, story) for part in checkpoint.parts]
    blocks = [
        "\n".join(["| session | events | messages | how sure |", "|---|---|---|---|", *sessions])
    ]
    if files:
        blocks.append("\n".join(["| file | | |", "|---|---|---|", *files]))
    return _folded("Sessions and files", [*blocks, inline_text(tokens_text(story.tokens))])


def _session(part: Part, story: FullStory) -> str:
    session = story.sessions[part.name]
    agent = inline_text(agent_title(part.agent))
    what = f"{agent} {code_span(part.session_id)} {inline_text(session.title)}"
    why = f": {part.why}" if part.why else ""
    cells = [
        what,
        f"{part.first}–{part.last}",
        f"{part.new_messages} of {part.messages}",
        inline_text(f"{sure(part.evidence, part.confidence)}{why}"),
    ]
    return f"| {' | '.join(map(cell, cells))} |"

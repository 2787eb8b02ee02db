"""An export as one HTML file that needs nothing and runs nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from html import escape
from pathlib import Path

from whyfor.model.characters import show_code
from whyfor.model.checkpoints import Annotation, ChangedFile, Checkpoint, Part
from whyfor.model.stories import CommitStory, FullStory
from whyfor.model.text import clean, label, one_line, tokens_text
from whyfor.service.agents import agent_title
from whyfor.service.export import prose
from whyfor.service.export.document import (
    Chapter,
    Document,
    DocumentCall,
    DocumentLine,
    about,
    agents,
    missing_reason,
    sure,
    utc_text,
)

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
_STEPS = ("Problem", "Solution", "Effect")


def write_html(found: Document) -> str:
    """One commit needs no head but its own."""
    chapters = "".join(_chapter(chapter) for chapter in found.chapters)
    overview = _overview(found.chapters) if len(found.chapters) > 1 else ""
    body = (
        overview
        + chapters
        + (f'<section class="panel">{_lines(found.lines)}</section>' if found.lines else "")
    )
    head = (
        f"<h1>{_text(found.title)}</h1>\n{_facts(found.facts)}\n"
        if len(found.chapters) != 1
        else ""
    )
    style = Path(__file__).with_name("style.css").read_text(encoding="utf-8")
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="referrer" content="no-referrer">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{_text(found.title)} · "
        f"Whyfor</title>\n<style>\n{style}</style>\n</head>\n<body>\n<main>\n"
        f"{head}{body}"
        "<footer>Written by Whyfor, which keeps the conversation behind every commit.</footer>\n"
        "</main>\n</body>\n</html>\n"
    )


def _text(value: str | None) -> str:
    return escape(one_line(value))


def _name(value: str | None) -> str:
    return escape(label(value))


def _block(value: str) -> str:
    return escape(clean(value))


def _code(value: str) -> str:
    return escape(show_code(value))


def _facts(facts: Iterable[str], tag: str = "") -> str:
    chip = f'<li class="tag">{_text(tag)}</li>' if tag else ""
    return (
        "<ul "
        f'class="facts">{chip}{"".join(f"<li>{_name(fact)}</li>" for fact in facts if fact)}</ul>'
    )


def _table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Of cells that are HTML already."""
    head = "".join(f"<th>{_text(name)}</th>" for name in heads)
    body = "".join(f"<tr>{''.join(f'<td>{each}</td>' for each in row)}</tr>\n" for row in rows)
    return (
        "<div "
        f'class="wide"><table><thead><tr>{head}</tr></thead><tbody>\n{body}</tbody></table></div>'
    )


# -- commits -------------------------------------------------------------------------------------


def _overview(chapters: list[Chapter]) -> str:
    heads = ("commit", "title", "tag", "agent", "evidence")
    return (
        f'<nav class="panel">{_table(heads, (_row(each.story.told) for each in chapters))}</nav>\n'
    )


def _row(told: CommitStory) -> Iterator[str]:
    checkpoint = told.checkpoint
    note = checkpoint.annotation if checkpoint else None
    yield (
        f'<a href="#c-{_text(told.commit.sha[:12])}"><code>{_text(told.commit.sha[:8])}</code></a>'
    )
    yield _text(note.title if note else told.commit.subject)
    if checkpoint and checkpoint.parts:
        yield _text(note.tag if note else "")
        yield _text(agents(checkpoint))
        yield _text(sure(checkpoint.evidence, checkpoint.confidence))
    else:
        yield from ("", "", f'<span class="quiet">none: {_text(missing_reason(told))}</span>')


def _chapter(chapter: Chapter) -> str:
    story, told = chapter.story, chapter.story.told
    follows = " follows" if chapter.same_as else ""
    head = f"<h2>{_text(told.commit.subject)}</h2>"
    inside = (
        _with_story(chapter, told.checkpoint)
        if told.checkpoint and told.checkpoint.parts
        else _without(told)
    )
    if story.reverts:
        inside += f'<p class="quiet">It reverts {_commit(story.reverts.commit.sha)}.</p>'
    return (
        f'<article class="commit{follows}" '
        f'id="c-{_text(told.commit.sha[:12])}">\n{head}\n{inside}</article>\n'
    )


def _commit(sha: str) -> str:
    return f"<code>{_text(sha[:8])}</code>"


def _without(told: CommitStory) -> str:
    note = _annotation(told.noted) if told.noted else ""
    return (
        f'{_facts([told.commit.sha[:8], *about(told)])}{note}<p class="quiet">No story: '
        f"{_text(missing_reason(told))}.</p>"
    )


def _with_story(chapter: Chapter, checkpoint: Checkpoint) -> str:
    told = chapter.story.told
    facts = [told.commit.sha[:8], *about(told)]
    same = (
        f'<p class="quiet">Same request as {_commit(chapter.same_as)}.</p>'
        if chapter.same_as
        else ""
    )
    note = checkpoint.annotation
    return (
        f"{_facts(facts, note.tag if note else '')}\n{_annotation(note) if note else ''}{same}"
        f"{_lines(chapter.lines)}{_details(checkpoint, chapter.story)}\n"
    )


def _annotation(note: Annotation) -> str:
    steps = note.intent.split(" → ")
    names = _STEPS if len(steps) == len(_STEPS) else ("Why",)
    words = steps if len(steps) == len(_STEPS) else [note.intent]
    parts = [
        f"<dt>{name}</dt><dd>{_text(step)}</dd>"
        for name, step in zip(names, words, strict=True)
        if step
    ]
    if note.alternatives:
        weighed = "".join(f"<li>{_text(each)}</li>" for each in note.alternatives)
        parts.append(f"<dt>Weighed</dt><dd><ul>{weighed}</ul></dd>")
    by = "" if note.by == "derived" else f'<p class="quiet">Noted by {_text(note.by)}.</p>'
    return f'<dl class="why">{"".join(parts)}</dl>{by}\n'


def _details(checkpoint: Checkpoint, story: FullStory) -> str:
    sessions = _table(
        ("session", "events", "messages", "how sure"),
        (_session(part, story) for part in checkpoint.parts),
    )
    files = _table(("file", "", ""), map(_file, checkpoint.files)) if checkpoint.files else ""
    tokens = f'<p class="quiet">{_text(tokens_text(story.tokens))}</p>'
    return _folded("Sessions and files", sessions + files + tokens)


def _session(part: Part, story: FullStory) -> Iterator[str]:
    session = story.sessions[part.name]
    yield (
        f"{_text(agent_title(part.agent))} <code>{_text(part.session_id)}</code> "
        f"{_text(session.title)}"
    )
    yield f"{part.first}–{part.last}"
    yield f"{part.new_messages} of {part.messages}"
    yield _text(sure(part.evidence, part.confidence) + (f": {part.why}" if part.why else ""))


def _file(file: ChangedFile) -> Iterator[str]:
    yield f'<code class="path">{_name(file.path)}</code>'
    yield f'<span class="plus">+{file.added}</span>'
    yield f'<span class="minus">−{file.removed}</span>'


# -- what was said -------------------------------------------------------------------------------


def _lines(lines: list[DocumentLine]) -> str:
    return "".join(
        f'<div class="left">{_line(line)}</div>\n' if line.left else f"{_line(line)}\n"
        for line in lines
    )


def _line(line: DocumentLine) -> str:
    who = _text(agent_title(line.agent))
    gone = ", taken back later" if line.left else ""
    match line.role:
        case "request" | "answer":
            role = "Asked" if line.role == "request" else "Answered"
            at = utc_text(line.at)
            return (
                f'<p class="who who-you">{role}{f", {at}" if at else ""}{gone}</p>'
                f'<div class="prompt">{_block(line.text)}</div>'
            )
        case "question" | "said":
            role = f"{who} asked back" if line.role == "question" else who
            return f'<p class="who">{role}</p><div class="words">{prose.html(line.text)}</div>'
        case "thinking":
            return _folded("Thinking", f'<div class="thinking">{_block(line.text)}</div>')
        case "calls" if line.calls:
            return _folded(line.text, "".join(map(_call, line.calls)))
    return f'<p class="quiet">▸ {_text(line.text)}</p>'


def _call(call: DocumentCall) -> str:
    bad = f' <span class="bad">{call.outcome}</span>' if call.outcome else ""
    head = f'<p class="call"><b>{_name(call.name)}</b> <code>{_name(call.given)}</code>{bad}</p>'
    diff = (
        f"<pre><code>{''.join(map(_changed_line, call.diff.split(chr(10))))}</code></pre>"
        if call.diff
        else ""
    )
    result = f"<pre><code>{_code(call.result)}</code></pre>" if call.result else ""
    return head + diff + result


def _changed_line(line: str) -> str:
    kind = {"+": "d-add", "-": "d-del"}.get(line[:1])
    return f'<span class="{kind}">{_code(line)}</span>' if kind else f"{_code(line)}\n"


def _folded(summary: str, inside: str) -> str:
    return f"<details><summary>{_text(summary)}</summary>{inside}</details>"

"""Print the story of a commit in a terminal."""

from __future__ import annotations

import msgspec
from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from whyfor.cli.markdown import markdown
from whyfor.cli.render import agent, barred_lines, moment_text, printed_ids
from whyfor.model.checkpoints import Annotation, Checkpoint, Part
from whyfor.model.stories import CommitStory, FullStory, StoryLine, undo_command
from whyfor.model.text import clean, label, one_line, plural, tokens_text
from whyfor.service.agents import agent_mark, agent_title

_FILES = 12
_CLOSING = 1200  # characters of the agent's last words


class NearbySession(msgspec.Struct, frozen=True):
    """A session that a hint names."""

    agent: str
    session_id: str


def print_story(out: Console, story: FullStory) -> None:
    commit, checkpoint = story.told.commit, story.told.checkpoint
    out.print(Text.assemble((commit.sha[:10], "bold"), f"  {one_line(commit.subject)}"))
    facts = [
        commit.author,
        moment_text(commit.committed_at),
        checkpoint.id[:12] if checkpoint else "",
    ]
    out.print("   " + "  ·  ".join(fact for fact in facts if fact), style="dim")
    if checkpoint is None or not checkpoint.parts:
        _without(out, story)
        return
    if checkpoint.superseded_by:
        out.print(
            f"   superseded by {checkpoint.superseded_by[:10]}: the commit was rewritten",
            style="yellow",
        )
    if checkpoint.squashed_from:
        names = ", ".join(sha[:10] for sha in checkpoint.squashed_from)
        out.print(f"   squashed from {names}", style="dim")
    _annotation(out, checkpoint.annotation)
    for said in story.said:
        _said(out, said)
    out.print()
    ids = printed_ids(checkpoint.parts)
    for part in checkpoint.parts:
        _part(out, part, story, ids[part.name])
    _unlinked(out, story.told)
    _files(out, checkpoint)
    out.print(tokens_text(story.tokens).replace("tokens ", "tokens    ", 1), style="dim")
    others = [other for other in story.group if other.commit != commit.sha]
    if others:
        out.print(
            Text(f"group     one request, {plural(len(story.group), 'commit')}:", style="dim")
        )
        for other in story.group:
            here = "→ " if other.commit == commit.sha else "  "
            out.print(f"          {here}{other.commit[:8]}  {one_line(other.subject)}", style="dim")
    first = checkpoint.parts[0]
    out.print()
    out.print(f"Whole conversation: whyfor show {ids[first.name]}", style="dim")
    out.print(f"Go on with it:      whyfor restore {commit.sha[:8]}", style="dim")


def _without(out: Console, story: FullStory) -> None:
    if story.told.commit.is_merge:
        out.print("   A merge: it starts no conversation and ends none.", style="dim")
        return
    _annotation(out, story.told.noted)
    out.print()
    out.print(f"No story: {story.told.reason_text}.")
    _unlinked(out, story.told)
    near = [NearbySession(hint["agent"], hint["session_id"]) for hint in story.told.nearby]
    ids = printed_ids(near)
    for session, hint in zip(near, story.told.nearby, strict=True):
        ident = ids[f"{session.agent}:{session.session_id}"]
        title = agent_title(session.agent)
        out.print(f"   nearby: {title} {ident} {one_line(hint['why'])}", style="dim")
        out.print(f"   If it is this session's: whyfor link {story.told.commit.sha[:8]} {ident}")
    if story.reverts:
        what = "which has a story" if story.reverts.checkpoint else "which has none either"
        out.print(
            f"It reverts {story.reverts.commit.sha[:8]}, {what}: whyfor show "
            f"{story.reverts.commit.sha[:8]}"
        )


def _unlinked(out: Console, told: CommitStory) -> None:
    ids = printed_ids(told.unlinked)
    for one in told.unlinked:
        name = f"{agent_title(one.agent)} {label(ids[f'{one.agent}:{one.session_id}'])}"
        out.print(f"unlinked  {name}, {moment_text(one.at)}, by a person", style="dim")
    if told.unlinked:
        out.print(f"          Undo: {undo_command(told.commit.sha)}", style="dim")


def _annotation(out: Console, note: Annotation | None) -> None:
    if note is None:
        return
    out.print()
    head = Text.assemble((one_line(note.title), "bold"), (f"  {label(note.tag)}", "dim"))
    head.append("" if note.by == "derived" else f"  noted by {label(note.by)}", style="dim")
    out.print(head)
    if note.intent:
        out.print(Text(clean(note.intent)))
    for alternative in note.alternatives:
        out.print(Text(f"  ✗ {one_line(alternative)}", style="dim"))
    if note.by != "derived" and note.summary:
        out.print(Text(clean(note.summary), style="dim"))


def _said(out: Console, said: StoryLine) -> None:
    head = f"turn {said.turn}  {moment_text(said.created_at)}"
    out.print()
    if said.by == "person":
        out.print(
            Text.assemble(
                ("▌ ", "bold #6f7ee0"), (f"{said.role}  {agent_mark(said.agent)} {head}", "dim")
            )
        )
        for line in barred_lines(out, said.text, "bold"):
            out.print(line)
        return
    out.print(Text.assemble("   ", agent(said.agent), (f" {said.role}  {head}", "dim")))
    words = clean(said.text)
    shown = words if len(words) <= _CLOSING else words[:_CLOSING] + " …"
    out.print(Padding(markdown(shown), (0, 0, 0, 3), expand=False))


def _part(out: Console, part: Part, story: FullStory, ident: str) -> None:
    session = story.sessions[part.name]
    line = Text.assemble(
        "session   ",
        agent(part.agent),
        f" {ident}  {one_line(session.title)[:60]}",
    )
    out.print(line)
    origin = (session.copy_of or "").rpartition(":")[2][:8]
    facts = [
        f"{session.copy_kind} from {origin}" if session.copy_kind and origin else "",
        f"events {part.first}–{part.last}",
        f"{plural(part.new_messages, 'message')} of {part.messages}",
        "continued from the parent commit" if part.continued else "",
        f"{part.evidence}, {part.confidence} confidence"
        + (f": {one_line(part.why)}" if part.why else ""),
    ]
    out.print("          " + "  ·  ".join(fact for fact in facts if fact), style="dim")


def _files(out: Console, checkpoint: Checkpoint) -> None:
    for index, file in enumerate(checkpoint.files[:_FILES]):
        line = Text(f"{'files' if index == 0 else '':10}{label(file.path)}  ", style="dim")
        line.append(f"+{file.added}", style="green")
        line.append(f" −{file.removed}", style="red")
        out.print(line)
    if len(checkpoint.files) > _FILES:
        out.print(f"          … {len(checkpoint.files) - _FILES} more", style="dim")

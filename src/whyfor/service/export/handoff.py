"""handoff: what the next person, or agent, must know of a session. No model is asked: every line
was said or recorded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from whyfor.agents.tools import command_of, is_in_background, tool_kind
from whyfor.config import Settings
from whyfor.model.events import StoredEvent
from whyfor.model.memory import MemoryFilter, Quote, SessionSummary
from whyfor.model.query import Filters
from whyfor.model.reports import Conversation
from whyfor.privacy.redacted_text import RedactedSecrets, redacted
from whyfor.service.export.prose import agent_prose, code_span, inline_text, quote_lines
from whyfor.store.open import OpenStore, reading
from whyfor.story.resume import resume_anywhere
from whyfor.story.session_lookup import load_conversation

_NOTES = 200  # that are looked through for those of a session
_KINDS = {"decision": "Decided", "rule": "Told", "correction": "Corrected", "gotcha": "Beware"}
_PROMPTS_MAX = 12
_COMMANDS_MAX = 15
_FILES_MAX = 40
_WORDS = 1_500  # characters of what was said last


class HandoffNote(msgspec.Struct, frozen=True):
    """What is told of a session; each list is in the order of the session."""

    agent: str
    session_id: str
    title: str
    asked: list[str]
    done: list[str]
    decided: list[str]
    open: list[str]
    last_words: str
    commands: list[HandoffCommand]
    commits: list[HandoffCommit]
    files: list[str]
    resume: str | None
    untold: int = 0  # prompts that are left out in the middle


class HandoffCommand(msgspec.Struct, frozen=True):
    """A command as it was run last, and how it ended."""

    command: str
    exit_code: int | None
    failed: bool


class HandoffCommit(msgspec.Struct, frozen=True):
    sha: str
    subject: str


class Handoff(msgspec.Struct, frozen=True):
    note: HandoffNote
    text: str  # Markdown
    found: RedactedSecrets


def write_handoff(settings: Settings, reference: str) -> Handoff:
    """Return the note on a session, without secrets. Raises NotFound, NotRedacted."""
    conversation = load_conversation(settings, reference, whole=False)
    with reading(settings) as library:
        note = _gather(settings, library, conversation)
    clean, found = redacted(settings, note, rendered=True, session=note.session_id)
    return Handoff(clean, "\n".join(_lines(clean)).rstrip() + "\n", found)


def _gather(settings: Settings, library: OpenStore, conversation: Conversation) -> HandoffNote:
    session = conversation.session
    summary = library.memory.summary(session.id) or SessionSummary()
    prompts = [turn.prompt for turn in conversation.turns if turn.prompt]
    asked, untold = _ends_of(prompts)
    closing = [turn.closing for turn in conversation.turns if turn.closing]
    commits = library.checkpoints.of_sessions([session.id]).values()
    live = [each for each in commits if each.superseded_by is None]
    return HandoffNote(
        agent=session.agent,
        session_id=session.session_id,
        title=session.title or "",
        asked=asked,
        done=_texts(summary.completed),
        decided=list(_decided(library, conversation)),
        open=_texts(summary.next_steps),
        last_words=(closing[-1] if closing else "")[:_WORDS],
        commands=list(_commands(conversation.events, session.agent))[-_COMMANDS_MAX:],
        commits=[
            HandoffCommit(each.commit, each.subject)
            for each in sorted(live, key=lambda one: one.committed_at)
        ],
        files=session.files_modified[:_FILES_MAX],
        resume=resume_anywhere(session.agent, session.session_id, session.cwd, settings.user_home),
        untold=untold,
    )


def _ends_of(prompts: list[str]) -> tuple[list[str], int]:
    """Return the first prompt and the last ones, and how many are left out between them."""
    if len(prompts) <= _PROMPTS_MAX:
        return prompts, 0
    return [prompts[0], *prompts[1 - _PROMPTS_MAX :]], len(prompts) - _PROMPTS_MAX


def _texts(quotes: Iterable[Quote]) -> list[str]:
    return [quote.text for quote in quotes]


def _decided(library: OpenStore, conversation: Conversation) -> Iterator[str]:
    session = conversation.session
    wanted = MemoryFilter(
        Filters(agent=session.agent, since=session.started_at, until=session.ended_at),
        tuple(_KINDS),
        ("verified", "stated", "hypothesis"),
    )
    for note in reversed(library.memory.observations(wanted, _NOTES)):
        if session.session_id in (note.session_id, note.parent_session_id):
            words = note.observation.narrative or note.observation.title
            yield f"{_KINDS[note.observation.type]}: {words}"


def _commands(events: list[StoredEvent], agent: str) -> Iterator[HandoffCommand]:
    """Yield each command once, as it was run last."""
    calls: dict[str, tuple[str, object]] = {}
    found: dict[str, HandoffCommand] = {}
    for event in events:
        data = event.data or {}
        ident = str(data.get("id"))
        given = data.get("input")
        if event.kind == "tool.call" and tool_kind(event.name or "", agent, given) == "shell":
            calls[ident] = (command_of(given).strip(), given)
        elif event.kind == "tool.result" and ident in calls:
            command, asked = calls[ident]
            code = data.get("exit_code")
            if command and not is_in_background(asked, event.text):
                found.pop(command, None)
                exit_code = code if isinstance(code, int) else None
                found[command] = HandoffCommand(command, exit_code, bool(data.get("failed")))
    yield from found.values()


# -- Markdown --------------------------------------------------------------------------------------


def _lines(note: HandoffNote) -> Iterator[str]:
    yield f"# Hand-over: {inline_text(note.title) or note.session_id}\n"
    yield f"Session {code_span(f'{note.agent}:{note.session_id}')}\n"
    yield "## Asked\n"
    for index, prompt in enumerate(note.asked):
        if index == 1 and note.untold:
            yield f"… {note.untold} more …\n"
        yield f"{quote_lines(prompt)}\n"
    yield from _list("Done", [inline_text(text) for text in note.done])
    yield from _list("Decided", [inline_text(text) for text in note.decided])
    yield from _list("Still open", [inline_text(text) for text in note.open])
    if note.last_words:
        yield f"## The agent's last words\n\n{agent_prose(note.last_words)}\n"
    yield from _list("Commands, as they ended last", [_command(each) for each in note.commands])
    commits = [f"{code_span(each.sha[:10])} {inline_text(each.subject)}" for each in note.commits]
    yield from _list("Commits", commits)
    yield from _list("Files written", [code_span(path) for path in note.files])
    yield "## How to go on\n"
    if note.resume:
        yield f"- {code_span(note.resume)}"
    yield f"- {code_span(f'whyfor show {note.agent}:{note.session_id}')}"


def _list(title: str, items: list[str]) -> Iterator[str]:
    if items:
        yield f"## {title}\n"
        yield "\n".join(f"- {item}" for item in items) + "\n"


def _command(each: HandoffCommand) -> str:
    if each.exit_code is not None:
        end = f"exit code {each.exit_code}"
    elif each.failed:
        end = "failed"
    else:
        end = "no failure recorded"
    return f"{code_span(each.command)}: {end}"

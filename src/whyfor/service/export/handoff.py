"""handoff: what the next person, or agent, must know of a session. No model is asked: every line
was said or recorded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import PurePath

import msgspec

from whyfor.agents.todos import open_todos
from whyfor.agents.tools import command_of, is_in_background, tool_kind
from whyfor.config import Settings
from whyfor.model.events import StoredEvent
from whyfor.model.memory import MemoryFilter, Quote, SessionSummary
from whyfor.model.printed import printed
from whyfor.model.query import Filters
from whyfor.model.reports import Conversation
from whyfor.model.sessions import Session
from whyfor.model.times import to_iso
from whyfor.model.turns import Turn
from whyfor.privacy.redacted_text import RedactedSecrets, redacted
from whyfor.service.agents import agent_title
from whyfor.service.export.prose import agent_prose, code_span, inline_text, quote_lines
from whyfor.store.open import OpenStore, reading
from whyfor.story.command_families import CheckCommand, check_in, covers
from whyfor.story.resume import resume_anywhere
from whyfor.story.rules.bash_parser import bash_parser
from whyfor.story.rules.programs import find_table
from whyfor.story.rules.shell_commands import Unjudged, read_commands
from whyfor.story.session_lookup import load_conversation

_NOTES = 200  # that are looked through for those of a session
_KINDS = {"decision": "Decided", "rule": "Told", "correction": "Corrected", "gotcha": "Beware"}
_PROMPTS_MAX = 12
_COMMANDS_MAX = 15
_FILES_MAX = 40
_WORDS = 1_500  # characters of what was said last
_TITLE_MAX = 120
_COMMAND_MAX = 160  # characters of a command that are shown


class HandoffNote(msgspec.Struct, frozen=True):
    """What is told of a session; each list is in the order of the session."""

    agent: str
    session_id: str
    title: str
    project: str | None
    branch: str | None
    folder: str | None
    models: list[str]
    started_at: str | None
    ended_at: str | None
    turns: int
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
    looked: int = 0  # commands that are left out because they only looked
    more_files: int = 0  # that are left out


class HandoffCommand(msgspec.Struct, frozen=True):
    """A command as it was run last, and how it ended."""

    command: str
    exit_code: int | None
    failed: bool

    @property
    def ended_badly(self) -> bool:
        return self.failed or bool(self.exit_code)


class HandoffCommit(msgspec.Struct, frozen=True):
    sha: str
    subject: str
    linked: bool = True  # else git printed it, and nobody looked whether it is still there


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
    ran = list(_commands(conversation.events, session.agent))
    told = [each for each in ran if not _only_looks(each.command)]
    files = [_in_folder(path, session.cwd) for path in session.files_modified]
    return HandoffNote(
        agent=session.agent,
        session_id=session.session_id,
        title=session.title or "",
        project=session.project,
        branch=session.branch,
        folder=session.cwd,
        models=session.models,
        started_at=to_iso(session.started_at),
        ended_at=to_iso(session.ended_at),
        turns=len(prompts),
        asked=asked,
        done=_texts(summary.completed),
        decided=list(_decided(library, conversation)),
        open=[*_unfinished(conversation, ran), *_texts(summary.next_steps)],
        last_words=_shortened(closing[-1] if closing else "", _WORDS),
        commands=told[-_COMMANDS_MAX:],
        commits=_linked(library, session) or _printed(conversation.events),
        files=files[:_FILES_MAX],
        resume=resume_anywhere(session.agent, session.session_id, session.cwd, settings.user_home),
        untold=untold,
        looked=len(ran) - len(told),
        more_files=max(0, len(files) - _FILES_MAX),
    )


def _linked(library: OpenStore, session: Session) -> list[HandoffCommit]:
    """Return the commits that are linked to the session, in their order."""
    found = library.checkpoints.of_sessions([session.id]).values()
    live = [each for each in found if each.superseded_by is None]
    live.sort(key=lambda one: one.committed_at)
    return [HandoffCommit(each.commit, each.subject) for each in live]


def _printed(events: list[StoredEvent]) -> list[HandoffCommit]:
    """Return the commits that the session's own commands said they made; some may be gone since."""
    calls: set[str] = set()
    found: dict[str, str] = {}
    for event in events:
        data = event.data or {}
        ident = str(data.get("id"))
        if event.kind == "tool.call":
            if "git commit" in command_of(data.get("input")):
                calls.add(ident)
        elif event.kind == "tool.result" and ident in calls:
            found.update(printed(event.text or ""))
    return [HandoffCommit(sha, subject, linked=False) for sha, subject in found.items()]


def _unfinished(conversation: Conversation, ran: list[HandoffCommand]) -> Iterator[str]:
    """Yield what records say is not finished: how the last turn ended, checks that failed last,
    and the agent's own list of things to do."""
    if conversation.turns:
        yield from _broken_off(conversation.turns[-1])
    for each in _failing_checks(ran):
        yield f"This failed when it was run last: {_cut(each.command)}"
    todos: list[str] = []
    for event in conversation.events:
        if event.kind == "tool.call":
            listed = open_todos((event.data or {}).get("input"))
            todos = todos if listed is None else listed
    yield from (f"On the agent's list: {each}" for each in todos)


def _broken_off(last: Turn) -> Iterator[str]:
    if last.interrupted:
        yield "The last request was interrupted"
    elif last.errors and not last.closing:
        yield f"The last request ended with an error: {last.errors[-1]}"


def _failing_checks(ran: list[HandoffCommand]) -> list[HandoffCommand]:
    """Return the checks that failed and that no later one that passed covers."""
    failing: list[tuple[CheckCommand, HandoffCommand]] = []
    for each in ran:
        check = check_in(each.command)
        if check is None:
            continue
        if each.ended_badly:
            failing = [pair for pair in failing if pair[0].text != check.text]
            failing.append((check, each))
        else:
            failing = [pair for pair in failing if not covers(check, pair[0])]
    return [each for _, each in failing]


def _only_looks(command: str) -> bool:
    """Return whether a command line is plain, and none of its programs changes anything."""
    try:
        found = read_commands(command, bash_parser())
    except (Unjudged, ValueError):
        return False
    return all((known := find_table(argv)) is not None and known[1].reads for argv in found)


def _in_folder(path: str, folder: str | None) -> str:
    """Return a path as it is named in the session's folder, if it is below it."""
    inside = bool(folder) and PurePath(path).is_relative_to(folder or "")
    return str(PurePath(path).relative_to(folder or "")) if inside else path


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
    title = inline_text(_shortened(" ".join(note.title.split()), _TITLE_MAX))
    yield f"# Hand-over: {title or note.session_id}\n"
    yield f"Session {code_span(f'{note.agent}:{note.session_id}')}"
    yield "\n".join(f"- {fact}" for fact in _facts(note)) + "\n"
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
    commands = [_command(each) for each in note.commands]
    if note.looked:
        commands.append(f"and {note.looked} that only looked")
    yield from _list("Commands, as they ended last", commands)
    commits = [f"{code_span(each.sha[:10])} {inline_text(each.subject)}" for each in note.commits]
    seen = all(each.linked for each in note.commits)
    yield from _list("Commits" if seen else "Commits, as git printed them", commits)
    files = [code_span(path) for path in note.files]
    if note.more_files:
        files.append(f"and {note.more_files} more")
    yield from _list("Files written", files)
    yield "## How to go on\n"
    if note.resume:
        yield f"- Resume it: {code_span(note.resume)}"
    else:
        yield "- It cannot be resumed here: its folder is not on this machine, or its agent cannot"
    yield f"- Read all of it: {code_span(f'whyfor show {note.agent}:{note.session_id}')}"


def _facts(note: HandoffNote) -> Iterator[str]:
    who = [agent_title(note.agent), *note.models]
    yield f"{', '.join(map(inline_text, who))}; {note.turns} turn{'s' if note.turns != 1 else ''}"
    if note.started_at:
        last = f" to {_minute(note.ended_at)}" if note.ended_at else ""
        yield f"{_minute(note.started_at)}{last}"
    if note.project:
        yield f"Project {code_span(note.project)}"
    if note.branch:
        yield f"Branch {code_span(note.branch)}"
    if note.folder:
        yield f"Folder {code_span(note.folder)}"


def _minute(moment: str) -> str:
    return f"{datetime.fromisoformat(moment).astimezone():%Y-%m-%d %H:%M}"


def _cut(command: str) -> str:
    return _shortened(" ".join(command.split()), _COMMAND_MAX)


def _shortened(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1].rstrip()}…"


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
    return f"{code_span(_cut(each.command))}: {end}"

"""What is worth remembering of one session, derived from its events without a model.

What was recorded (commands and how they ended, files, commits) is a fact. What somebody said is
quoted, and is never called verified because something else went well. The same events give the
same result.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec

from whyfor.agents.edits import first_text, path_in, written_paths
from whyfor.agents.tools import command_of, tool_kind
from whyfor.model.events import StoredEvent
from whyfor.model.memory import (
    CommandCount,
    Observation,
    ObservationState,
    ObservationType,
    Quote,
    SessionMemory,
    SessionSummary,
)
from whyfor.recall import cues
from whyfor.recall.command_families import check_in
from whyfor.recall.sentences import Sentence, sentences

TITLE_MAX = 120
PER_TURN = 3  # sentences of one kind
PER_SESSION = 12
_FILES_MAX = 20


class _Check(msgspec.Struct):
    """A check that is running, and the last failure of its family."""

    family: str
    command: str
    decides: bool
    seq: int


class _Failure(msgspec.Struct):
    call: _Check
    result: int
    head: str
    written: list[str]  # files since


class _Turn(msgspec.Struct):
    number: int
    at: int | None = None
    prompt: StoredEvent | None = None
    messages: list[StoredEvent] = []
    read: list[str] = []
    written: list[str] = []
    questions: list[StoredEvent] = []
    interrupted: bool = False


class _Walk:
    """Goes through a session's events once."""

    def __init__(self, session: str, agent: str) -> None:
        self.session = session
        self.agent = agent
        self.turns: dict[int, _Turn] = {}
        self.notes: list[Observation] = []
        self.running: dict[str, _Check] = {}
        self.failures: dict[str, _Failure] = {}
        self.commands: dict[str, CommandCount] = {}
        self.pending: dict[str, list[str]] = {}  # files a call writes, until its result

    def add(self, event: StoredEvent) -> None:
        turn = self.turns.get(event.turn)
        if turn is None:
            turn = self.turns[event.turn] = _Turn(event.turn, event.created_at, messages=[])
            turn.read, turn.written, turn.questions = [], [], []
        act = _ACTS.get(event.kind)
        if act:
            act(self, turn, event)

    def prompt(self, turn: _Turn, event: StoredEvent) -> None:
        if turn.prompt is None and event.actor == "user":
            turn.prompt = event

    def message(self, turn: _Turn, event: StoredEvent) -> None:
        if event.text:
            turn.messages.append(event)

    def question(self, turn: _Turn, event: StoredEvent) -> None:
        turn.questions.append(event)

    def end(self, turn: _Turn, event: StoredEvent) -> None:
        turn.interrupted = turn.interrupted or bool((event.data or {}).get("interrupted"))

    def call(self, turn: _Turn, event: StoredEvent) -> None:
        data = event.data or {}
        given = data.get("input")
        ident = first_text(data, "id") or str(event.seq)
        kind = tool_kind(event.name or "", self.agent, given)
        if kind in ("shell", "typed"):
            self._start_check(ident, command_of(given) or event.text, event.seq)
        elif kind == "read":
            path = path_in(given)
            if path:
                turn.read.append(path)
        else:
            self.pending[ident] = written_paths(given, event.text)

    def _start_check(self, ident: str, command: str, seq: int) -> None:
        found = check_in(command)
        if found:
            self.running[ident] = _Check(*found, seq)

    def result(self, turn: _Turn, event: StoredEvent) -> None:
        data = event.data or {}
        ident = first_text(data, "id")
        failed = bool(data.get("failed"))
        written = self.pending.pop(ident, [])
        if not failed:
            turn.written.extend(written)
            for failure in self.failures.values():
                failure.written.extend(written)
        check = self.running.pop(ident, None)
        if check:
            self._count(check, event, failed)
            if check.decides:
                self._judge(check, turn, event, failed)

    def _count(self, check: _Check, event: StoredEvent, failed: bool) -> None:
        known = self.commands.get(check.family) or CommandCount(
            check.family, check.command, runs=0, ok=0, failed=0, last_ok=None
        )
        passed = check.decides and not failed
        self.commands[check.family] = CommandCount(
            check.family,
            known.command if known.ok and not passed else check.command,
            runs=known.runs + 1,
            ok=known.ok + passed,
            failed=known.failed + (check.decides and failed),
            last_ok=event.created_at if passed else known.last_ok,
        )

    def _judge(self, check: _Check, turn: _Turn, event: StoredEvent, failed: bool) -> None:
        if failed:
            self.failures[check.family] = _Failure(check, event.seq, event.text[:200], [])
            return
        before = self.failures.pop(check.family, None)
        if before is None or not before.written:
            return  # nothing changed in between: it may just be flaky
        files = tuple(dict.fromkeys(before.written))[:_FILES_MAX]
        self.notes.append(
            Observation(
                key=self.key(before.call.seq, "fixed"),
                type="bugfix",
                state="verified",
                title=_cut(f"{check.family} failed, and passes after a change in {_names(files)}"),
                turn=turn.number,
                at=event.created_at,
                facts=(
                    f"`{before.call.command}` failed",
                    f"changed: {', '.join(files)}",
                    f"`{check.command}` passed",
                ),
                files_written=files,
                evidence=(
                    Quote(before.result, 0, len(before.head), before.head),
                    Quote(check.seq, 0, 0, check.command),
                ),
            )
        )

    def key(self, seq: int, rule: str) -> str:
        text = f"{self.session}\n{seq}\n{rule}"
        return hashlib.sha256(text.encode()).hexdigest()[:16]


_ACTS: dict[str, Callable[[_Walk, _Turn, StoredEvent], None]] = {
    "user.prompt": _Walk.prompt,
    "assistant.message": _Walk.message,
    "question.asked": _Walk.question,
    "turn.completed": _Walk.end,
    "tool.call": _Walk.call,
    "tool.result": _Walk.result,
}


def derive_memory(
    session: str, agent: str, events: Iterable[StoredEvent], *, by_person: bool = True
) -> SessionMemory:
    """Return the summary, observations and commands of a session. `session` names it for good;
    `by_person`: its prompts are a person's, not those of an agent to its subagent."""
    walk = _Walk(session, agent)
    for event in events:
        walk.add(event)
    turns = [walk.turns[number] for number in sorted(walk.turns)]
    said = list(_said(walk, turns))
    notes = [*walk.notes, *said]
    if by_person:
        notes += _from_person(walk, turns)
    notes.sort(key=lambda note: (note.turn, note.key))
    summary = SessionSummary(
        request=_request(turns),
        investigated=_investigated(turns),
        learned=tuple(note.evidence[0] for note in said if note.type in ("discovery", "gotcha")),
        completed=_completed(turns),
        next_steps=_next_steps(turns),
    )
    commands = sorted(walk.commands.values(), key=lambda each: (-each.ok, each.family))
    return SessionMemory(summary, tuple(notes), tuple(commands))


# -- what the agent said -------------------------------------------------------------------------


def _said(walk: _Walk, turns: Sequence[_Turn]) -> Iterator[Observation]:
    seen: set[str] = set()
    for turn in turns:
        taken = 0
        for event in reversed(turn.messages):  # the closing words first
            if taken >= PER_TURN or len(seen) >= PER_SESSION:
                break
            if not cues.may_tell(event.text):
                continue
            for sentence in sentences(event.text):
                kind = _kind_said(sentence)
                if kind is None or sentence.text.lower() in seen:
                    continue
                seen.add(sentence.text.lower())
                taken += 1
                if taken > PER_TURN or len(seen) > PER_SESSION:
                    break
                yield _note(walk, turn, event, sentence, kind)


def _kind_said(sentence: Sentence) -> ObservationType | None:
    text = sentence.text
    if sentence.heading or text.endswith(("?", ":")):
        return None
    if cues.CHATTER.match(text) or not cues.is_prose(text):
        return None
    if cues.DECIDED.search(text):
        return "decision"
    if not cues.LEARNED.search(text):
        return None
    return "gotcha" if cues.GOTCHA.search(text) else "discovery"


def _note(
    walk: _Walk, turn: _Turn, event: StoredEvent, sentence: Sentence, kind: ObservationType
) -> Observation:
    state: ObservationState = "hypothesis" if cues.HEDGED.search(sentence.text) else "stated"
    return Observation(
        key=walk.key(event.seq, f"{kind} {sentence.start}"),
        type=kind,
        state=state,
        title=_cut(sentence.text),
        turn=turn.number,
        at=event.created_at,
        narrative=sentence.text,
        files_read=tuple(dict.fromkeys(turn.read))[:_FILES_MAX],
        files_written=tuple(dict.fromkeys(turn.written))[:_FILES_MAX],
        evidence=(_quote(event, sentence),),
    )


# -- what the person said ------------------------------------------------------------------------


def _from_person(walk: _Walk, turns: Sequence[_Turn]) -> Iterator[Observation]:
    before: _Turn | None = None
    for turn in turns:
        if turn.prompt is not None:
            yield from _of_prompt(walk, turn, turn.prompt, before)
        before = turn


def _of_prompt(
    walk: _Walk, turn: _Turn, prompt: StoredEvent, before: _Turn | None
) -> Iterator[Observation]:
    ruling = cues.MAY_RULE.search(prompt.text)
    for place, sentence in enumerate(sentences(prompt.text)):
        if place and not ruling:
            break
        if sentence.text.endswith("?"):
            continue
        if cues.RULE.match(sentence.text):
            yield _spoken(walk, turn, sentence, "rule", ())
        elif place == 0 and before and _corrects(sentence, before):
            yield _spoken(walk, turn, sentence, "correction", _claim(before))


def _corrects(sentence: Sentence, before: _Turn) -> bool:
    """Whether a prompt's first sentence says that the turn before it went wrong."""
    if not before.messages or not cues.CORRECTION.match(sentence.text):
        return False
    asked = before.questions or before.messages[-1].text.rstrip().endswith("?")
    return not (asked and cues.ANSWER.match(sentence.text))


def _spoken(
    walk: _Walk,
    turn: _Turn,
    sentence: Sentence,
    kind: ObservationType,
    corrected: tuple[Quote, ...],
) -> Observation:
    event = turn.prompt
    assert event is not None
    return Observation(
        key=walk.key(event.seq, f"{kind} {sentence.start}"),
        type=kind,
        state="stated",
        title=_cut(sentence.text),
        turn=turn.number,
        at=event.created_at,
        narrative=sentence.text,
        files_written=tuple(dict.fromkeys(turn.written))[:_FILES_MAX],
        evidence=(_quote(event, sentence), *corrected),
    )


def _claim(turn: _Turn) -> tuple[Quote, ...]:
    """The sentence that a correction is about: the most telling one of the closing words."""
    best = _outcome(turn)
    return (best,) if best else ()


# -- the summary ---------------------------------------------------------------------------------


def _request(turns: Sequence[_Turn]) -> tuple[Quote, ...]:
    for turn in turns:
        event = turn.prompt
        if event is None:
            continue
        planned = cues.PLAN.match(event.text)
        offset = planned.end() if planned else 0
        for sentence in sentences(event.text):
            if sentence.start < offset or cues.CONTROL.match(sentence.text):
                continue
            if planned and not sentence.heading and not cues.is_prose(sentence.text):
                continue
            if len(sentence.text.split()) >= 3 or sentence.heading:
                return (_quote(event, sentence),)
    return ()


def _investigated(turns: Sequence[_Turn]) -> tuple[str, ...]:
    written = {path for turn in turns for path in turn.written}
    read = dict.fromkeys(path for turn in turns for path in turn.read)
    return tuple(path for path in read if path not in written)[:_FILES_MAX]


def _completed(turns: Sequence[_Turn]) -> tuple[Quote, ...]:
    ended = [turn for turn in turns if turn.messages and not turn.interrupted]
    outcomes = (_outcome(turn) for turn in ended[-PER_SESSION:])
    return tuple(quote for quote in outcomes if quote)


def _outcome(turn: _Turn) -> Quote | None:
    """The most telling sentence of the closing words: early, long enough, about what was done."""
    if not turn.messages:
        return None
    event = turn.messages[-1]
    best: Sentence | None = None
    most = 0.0
    for place, sentence in enumerate(sentences(event.text)):
        score = _told(sentence) - place * 0.15
        if score > most:
            best, most = sentence, score
    return _quote(event, best) if best else None


def _told(sentence: Sentence) -> float:
    """How much a sentence says of what was done; zero or less: nothing."""
    text = sentence.text
    if sentence.heading or text.endswith(("?", ":")):
        return 0
    if cues.CHATTER.match(text) or cues.WEAK_OUTCOME.match(text) or not cues.is_prose(text):
        return 0
    score = 2.0
    score += min(len(text), 160) / 160
    score += 0.5 if "`" in text or "/" in text else 0.0
    return score - (0.7 if sentence.item else 0.0)


def _next_steps(turns: Sequence[_Turn]) -> tuple[Quote, ...]:
    """Of the last turn with words: what is left to do, what was asked and not answered."""
    for turn in reversed(turns):
        if not turn.messages:
            continue
        event = turn.messages[-1]
        found = [
            _quote(event, each)
            for each in sentences(event.text)
            if not each.heading and cues.NEXT.search(each.text) and cues.is_prose(each.text)
        ]
        asked = [Quote(each.seq, 0, len(each.text), each.text) for each in turn.questions]
        return tuple([*asked, *found][:PER_TURN])
    return ()


# -- small things --------------------------------------------------------------------------------


def _quote(event: StoredEvent, sentence: Sentence) -> Quote:
    return Quote(event.seq, sentence.start, sentence.end, sentence.text)


def _names(files: Sequence[str]) -> str:
    names = [path.replace("\\", "/").rpartition("/")[2] for path in files[:3]]
    more = f" and {len(files) - 3} more" if len(files) > 3 else ""
    return ", ".join(names) + more


def _cut(text: str) -> str:
    return text if len(text) <= TITLE_MAX else text[: TITLE_MAX - 1].rstrip() + "…"

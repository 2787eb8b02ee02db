"""What is worth remembering of one session, derived from its events without a model.

What was recorded (commands and how they ended, files, commits) is a fact. What somebody said is
quoted, and is never called verified because something else went well. The same events give the
same result.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

import msgspec

from whyfor.model.checkpoints import Checkpoint
from whyfor.model.events import StoredEvent
from whyfor.model.memory import (
    Observation,
    ObservationState,
    ObservationType,
    Quote,
    SessionMemory,
    SessionSummary,
    cut_title,
)
from whyfor.recall import cues
from whyfor.recall.commit_notes import anchor_notes, commit_notes
from whyfor.recall.sentences import PROSE_MAX, Sentence, sentences
from whyfor.recall.session_walk import FILES_MAX, SessionTurn, SessionWalk

PER_TURN = 3  # sentences of one kind
PER_SESSION = 12
_PER_PROMPT = 10  # rules and corrections
_SPOKEN_MAX = 60  # of them in a session
_ANCHORS = 3  # files of a turn that a note is about, unless it names one
_CONCEPTS = 5
_NAME = re.compile(r"`([^`\s]{2,40})`")
_TOLD_MAX = 3.5  # the most that `_told` returns
_TOLD_LATER = 0.15  # less for each sentence before it
_LIST_HOLDS = 10  # calls after a list of things to do was written
_FAILED_LAST = " failed when it was last run"


def derive_memory(
    session: str,
    agent: str,
    events: Iterable[StoredEvent],
    *,
    by_person: bool = True,
    commits: Sequence[Checkpoint] = (),
) -> SessionMemory:
    """Return the summary, observations and commands of a session. `session` names it for good;
    `by_person`: its prompts are a person's, not those of an agent to its subagent; `commits` are
    those that it is linked to."""
    walk = SessionWalk(session, agent)
    for event in events:
        walk.add(event)
    turns = [walk.turns[number] for number in sorted(walk.turns)]
    spoken = list(islice(_from_person(walk, turns), _SPOKEN_MAX)) if by_person else []
    said = list(_refuted(_said(walk, turns), spoken))
    notes = list(anchor_notes([*walk.notes, *said, *spoken], session, commits))
    notes += commit_notes(walk, turns, commits)
    notes.sort(key=lambda note: (note.turn, note.key))
    summary = SessionSummary(
        request=_request(turns),
        investigated=_investigated(turns),
        learned=tuple(note.evidence[0] for note in said if _is_learned(note)),
        completed=_completed(turns),
        next_steps=_next_steps(walk, turns),
    )
    commands = sorted(walk.commands.values(), key=lambda each: (-each.ok, each.family))
    return SessionMemory(summary, tuple(notes), tuple(commands))


def _is_learned(note: Observation) -> bool:
    return note.type in ("discovery", "gotcha") and note.state != "refuted"


# -- what the agent said -------------------------------------------------------------------------


def _said(walk: SessionWalk, turns: Sequence[SessionTurn]) -> Iterator[Observation]:
    seen: set[str] = set()
    for turn in turns:
        taken = 0
        for event in reversed(turn.messages):  # the closing words first
            if taken >= PER_TURN or len(seen) >= PER_SESSION:
                break
            if not cues.may_tell(_ends(event.text)):
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
    if sentence.heading or text.endswith(("?", ":")) or not cues.may_tell(text):
        return None
    if cues.CHATTER.match(text) or not cues.is_prose(text) or not cues.says_enough(text):
        return None
    if cues.DECIDED.search(text):
        return "decision"
    return "gotcha" if cues.GOTCHA.search(text) else "discovery"


def _note(
    walk: SessionWalk,
    turn: SessionTurn,
    event: StoredEvent,
    sentence: Sentence,
    kind: ObservationType,
) -> Observation:
    state: ObservationState = "hypothesis" if cues.HEDGED.search(sentence.text) else "stated"
    return Observation(
        key=walk.key(event.seq, f"{kind} {sentence.start}"),
        type=kind,
        state=state,
        title=cut_title(sentence.text),
        turn=turn.number,
        at=event.created_at,
        narrative=sentence.text,
        files_read=tuple(dict.fromkeys(turn.read))[:FILES_MAX],
        files_written=tuple(dict.fromkeys(turn.written))[:FILES_MAX],
        concepts=_concepts(sentence.text),
        anchors=_about(sentence.text, turn),
        evidence=(_quote(event, sentence),),
    )


def _about(sentence: str, turn: SessionTurn) -> tuple[str, ...]:
    """The files a sentence is about: those of its turn that it names, else the few it wrote."""
    files = dict.fromkeys((*turn.written, *turn.read))
    named = [path for path in files if path.replace("\\", "/").rpartition("/")[2] in sentence]
    if named:
        return tuple(named[:_ANCHORS])
    written = tuple(dict.fromkeys(turn.written))
    return written if len(written) <= _ANCHORS else ()


def _concepts(text: str) -> tuple[str, ...]:
    """The names of things in the code that a text has in it."""
    return tuple(dict.fromkeys(_NAME.findall(text)))[:_CONCEPTS]


def _refuted(said: Iterable[Observation], spoken: Iterable[Observation]) -> Iterator[Observation]:
    """What a person corrected is wrong; what else was said with it is not certain any more."""
    claims = {
        (quote.seq, quote.start)
        for note in spoken
        if note.type == "correction"
        for quote in note.evidence[1:]
    }
    messages = {seq for seq, _ in claims}
    for note in said:
        words = note.evidence[0]
        if (words.seq, words.start) in claims:
            note = msgspec.structs.replace(note, state="refuted")
        elif words.seq in messages:
            note = msgspec.structs.replace(note, state="hypothesis")
        yield note


# -- what the person said ------------------------------------------------------------------------


def _from_person(walk: SessionWalk, turns: Sequence[SessionTurn]) -> Iterator[Observation]:
    before: SessionTurn | None = None
    for turn in turns:
        if turn.prompt is not None:
            yield from islice(_of_prompt(walk, turn, turn.prompt, before), _PER_PROMPT)
        before = turn


def _of_prompt(
    walk: SessionWalk, turn: SessionTurn, prompt: StoredEvent, before: SessionTurn | None
) -> Iterator[Observation]:
    ruling = cues.may_rule(_ends(prompt.text))
    for place, sentence in enumerate(sentences(prompt.text)):
        if place and not ruling:
            break
        if sentence.text.endswith("?"):
            continue
        if cues.RULE.match(sentence.text):
            yield _spoken(walk, turn, sentence, "rule", ())
        elif place == 0 and before and _corrects(sentence, before):
            yield _spoken(walk, turn, sentence, "correction", _claim(before))


def _corrects(sentence: Sentence, before: SessionTurn) -> bool:
    """Whether a prompt's first sentence says that the turn before it went wrong."""
    if not before.messages or not cues.CORRECTION.match(sentence.text):
        return False
    asked = before.questions or before.messages[-1].text.rstrip().endswith("?")
    return not (asked and cues.ANSWER.match(sentence.text))


def _spoken(
    walk: SessionWalk,
    turn: SessionTurn,
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
        title=cut_title(sentence.text),
        turn=turn.number,
        at=event.created_at,
        narrative=sentence.text,
        files_written=tuple(dict.fromkeys(turn.written))[:FILES_MAX],
        concepts=_concepts(sentence.text),
        evidence=(_quote(event, sentence), *corrected),
    )


def _claim(turn: SessionTurn) -> tuple[Quote, ...]:
    """The sentence that a correction is about: the most telling one of the closing words."""
    best = _outcome(turn)
    return (best,) if best else ()


# -- the summary ---------------------------------------------------------------------------------


def _request(turns: Sequence[SessionTurn]) -> tuple[Quote, ...]:
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


def _investigated(turns: Sequence[SessionTurn]) -> tuple[str, ...]:
    written = {path for turn in turns for path in turn.written}
    read = dict.fromkeys(path for turn in turns for path in turn.read)
    return tuple(path for path in read if path not in written)[:FILES_MAX]


def _completed(turns: Sequence[SessionTurn]) -> tuple[Quote, ...]:
    ended = [turn for turn in turns if turn.messages and not turn.interrupted]
    outcomes = (_outcome(turn) for turn in ended[-PER_SESSION:])
    return tuple(quote for quote in outcomes if quote)


def _outcome(turn: SessionTurn) -> Quote | None:
    """The most telling sentence of the closing words: early, long enough, about what was done."""
    if not turn.messages:
        return None
    event = turn.messages[-1]
    best: Sentence | None = None
    most = 0.0
    for place, sentence in enumerate(sentences(event.text)):
        if _TOLD_MAX - place * _TOLD_LATER <= most:
            break
        score = _told(sentence) - place * _TOLD_LATER
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


def _next_steps(walk: SessionWalk, turns: Sequence[SessionTurn]) -> tuple[Quote, ...]:
    """What was left open when the session ended: a request or a question that nothing followed,
    what the closing words say is left to do, a list's open items, a check that failed last."""
    spoken = [turn for turn in turns if turn.prompt or turn.messages]
    if not spoken:
        return ()
    last = spoken[-1]
    found = [*_unanswered(last), *_open_questions(walk, last), *_left(last), *_open_items(walk)]
    for failure in walk.failures.values():
        if failure.last and failure.turn >= last.number - 1:
            found.append(Quote(failure.result, 0, 0, failed_last(failure.check.command.text)))
    return tuple(found[:PER_TURN])


def failed_last(command: str) -> str:
    """Return how a check that failed last is told of; `failed_command` reads it again."""
    return f"`{command}`{_FAILED_LAST}"


def failed_command(step: str) -> str | None:
    """Return the command that an open thread says has failed; None if it is another thread."""
    if not step.endswith(_FAILED_LAST):
        return None
    return step.removesuffix(_FAILED_LAST).strip("`")


def _unanswered(last: SessionTurn) -> Iterator[Quote]:
    """The request of a turn that nothing followed, or that was interrupted."""
    event = last.prompt
    followed = last.messages or last.last_step
    if event is None or (followed and not last.interrupted):
        return
    for sentence in sentences(event.text):
        if not cues.CONTROL.match(sentence.text) and cues.is_prose(sentence.text):
            yield _quote(event, sentence)
            return


def _open_questions(walk: SessionWalk, last: SessionTurn) -> Iterator[Quote]:
    """Questions that were not answered, and after which nothing was said or done."""
    said = last.messages[-1].seq if last.messages else 0
    for event in last.questions:
        answered = (event.data or {}).get("id") in walk.answered
        if not answered and event.seq > max(said, last.last_step):
            yield Quote(event.seq, 0, len(event.text), event.text)


def _left(last: SessionTurn) -> Iterator[Quote]:
    """The closing sentences that say what is left to do, or ask for something. Words that the
    agent worked on after are no closing words."""
    event = last.messages[-1] if last.messages else None
    if event is None or last.last_step > event.seq:
        return
    if not (cues.NEXT.search(event.text) or "?" in event.text[-200:]):
        return
    told = [each for each in sentences(event.text) if not each.heading]
    for each in told:
        asks = each is told[-1] and each.text.endswith("?") and not cues.is_offer(each.text)
        if (asks or cues.says_left(each.text)) and cues.is_prose(each.text):
            yield _quote(event, each)


def _open_items(walk: SessionWalk) -> list[Quote]:
    """The open items of the last list, unless so much was done since that it says nothing."""
    return walk.todos if walk.since_todos <= _LIST_HOLDS else []


# -- small things --------------------------------------------------------------------------------


def _ends(text: str) -> str:
    """What of a text is looked at: see sentences()."""
    return text if len(text) <= PROSE_MAX else text[: PROSE_MAX // 2] + text[-PROSE_MAX // 2 :]


def _quote(event: StoredEvent, sentence: Sentence) -> Quote:
    return Quote(event.seq, sentence.start, sentence.end, sentence.text)

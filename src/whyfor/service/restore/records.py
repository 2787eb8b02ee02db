"""From stored sessions to the records of one new session: cut at an event, merged by time, or
told in plain words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path

import msgspec

from whyfor.agents import AGENTS, decode
from whyfor.agents.base import Agent
from whyfor.agents.conversation import NewFile, NewSession, SessionWriter, SpokenLine, spoken_turns
from whyfor.agents.facts import MARKER
from whyfor.capture.records import Cut, SegmentPiece, cut, read_records
from whyfor.model.errors import NotFound
from whyfor.model.findings import Record
from whyfor.model.sessions import Session
from whyfor.model.sources import Source
from whyfor.recall.block import token_estimate
from whyfor.service.restore.brief import BriefSize, brief_text, spoken_tokens, turns_note
from whyfor.store.open import OpenStore
from whyfor.story.rewinds import abandoned
from whyfor.story.whole_text import whole_events


class AssembledSession(msgspec.Struct, frozen=True):
    """The records of a new session, and if it is brief, what was left out."""

    records: list[Record]
    size: BriefSize | None = None


class _Run(msgspec.Struct, frozen=True):
    """One turn of one session."""

    at: int
    whose: int
    records: list[Record]


def ended(
    taken: Iterable[tuple[Session, int | None]], library: OpenStore
) -> list[tuple[Session, int]]:
    """Sessions with the event each ends at; a subagent's work is told by the session that called
    it."""
    found: dict[int, tuple[Session, int]] = {}
    for session, given in taken:
        last = given or max(library.conversation.keys(session.id).values(), default=0)
        while session.parent_session_id:
            at = _time(library, session, last)
            try:
                session = library.sessions.find(session.parent_session_id, session.agent)
            except NotFound:
                break  # its transcript is gone: then the subagent's own words
            last = max(
                (
                    e.seq
                    for e in library.conversation.events(session.id)
                    if (e.created_at or 0) <= at
                ),
                default=0,
            )
        if session.id not in found or found[session.id][1] < last:
            found[session.id] = (session, last)
    return list(found.values())


def _time(library: OpenStore, session: Session, last: int) -> int:
    return max(
        (event.created_at or 0 for event in library.conversation.events(session.id, 0, last)),
        default=0,
    )


def assembled(
    library: OpenStore,
    pen: SessionWriter,
    agent: str,
    parts: list[tuple[Session, int]],
    place: NewSession,
    turns: int | None = None,
) -> AssembledSession:
    """Return the records of sessions up to their events as one session; only the last `turns` of
    them word for word, if that is given and there are more."""
    whole = [_native(library, pen, s, last) if s.agent == agent else None for s, last in parts]
    if turns is None and len(whole) == 1 and whole[0] is not None:
        return AssembledSession(pen.exact(whole[0], place))
    runs: list[_Run] = []
    for number, ((session, last), own) in enumerate(zip(parts, whole, strict=True)):
        if own is not None:
            said = _turns(pen, pen.live(own))
        else:
            said = _told(library, pen, session, last)
        runs += _dated(said, number, session, AGENTS[agent])
    if not runs:
        raise _nothing(parts[0][0])
    runs.sort(key=lambda run: run.at)
    told = [own is None for own in whole]
    if turns is None or turns >= len(runs):
        return AssembledSession(pen.joined(list(_merged(pen, runs, parts, told)), place))
    kept = runs[-turns:]
    intro = brief_text(library, parts, turns_note(len(kept), len(runs)))
    first = pen.spoken([SpokenLine("user", intro, runs[0].at)])
    size = BriefSize(
        turns=len(kept),
        of_turns=len(runs),
        tokens_before=spoken_tokens(library, parts),
        tokens_after=token_estimate(intro) + spoken_tokens(library, parts, kept[0].at),
    )
    records = [*first, *_merged(pen, kept, parts, told)]
    return AssembledSession(pen.joined(records, place), size)


def _merged(
    pen: SessionWriter, runs: list[_Run], parts: list[tuple[Session, int]], told: list[bool]
) -> Iterator[Record]:
    """All turns by time, each record once, and a line where the session changes."""
    seen: set[str] = set()
    whose: int | None = None
    for run in runs:
        fresh = [
            record
            for record in run.records
            if (ident := pen.ident(record)) is None or ident not in seen
        ]
        seen.update(ident for record in fresh if (ident := pen.ident(record)))
        if not fresh:
            continue  # a fork's copy of an earlier record
        if run.whose != whose and (whose is not None or told[run.whose]):
            text = _marker(parts[run.whose][0], run.at, told[run.whose])
            yield from pen.spoken([SpokenLine("user", text, run.at)])
        whose = run.whose
        yield from fresh


def _marker(session: Session, at: int, told: bool) -> str:
    when = datetime.fromtimestamp(at / 1000).astimezone().strftime("%Y-%m-%d %H:%M")
    title = " ".join((session.title or "").split())[:80]
    how = "; its tool calls and results are told as text" if told else ""
    who = f"session {session.session_id}, {AGENTS[session.agent].title}"
    return f'{MARKER}from here on {who}, {when}, "{title}"{how}]'


def _turns(pen: SessionWriter, found: list[Record]) -> list[list[Record]]:
    turns: list[list[Record]] = []
    for record in found:
        if not turns or pen.asks(record):
            turns.append([])
        turns[-1].append(record)
    return turns


def _told(
    library: OpenStore, pen: SessionWriter, session: Session, last: int
) -> list[list[Record]]:
    stored = library.conversation.events(session.id, 0, last)
    events = list(whole_events(library, session.id, stored))
    left = abandoned(events)
    said = spoken_turns(
        [event for event in events if event.turn not in left], session.started_at or 0
    )
    return [pen.spoken(turn) for turn in said]


def _dated(turns: list[list[Record]], whose: int, session: Session, agent: Agent) -> Iterator[_Run]:
    """A turn's time is its first record's; never before the turn it follows."""
    at = session.started_at or 0
    for turn in turns:
        times = (agent.stamp(record) for record in turn)
        at = max(at, next((when for one in times if (when := one.at or one.since)), at))
        yield _Run(at, whose, turn)


# -- from the store ------------------------------------------------------------------------------


def _native(
    library: OpenStore, pen: SessionWriter, session: Session, last: int
) -> list[Record] | None:
    """The session's own records up to an event; None if it has no transcript that could be
    resumed."""
    if session.parent_session_id:
        return None
    keys = library.conversation.keys(session.id, last)
    agent = AGENTS[session.agent]
    found = [
        cut(agent, source, _data(library, source), keys)
        for source in _transcripts(library, session)
    ]
    if not found:
        return None
    best = max(range(len(found)), key=lambda index: (found[index].reached, found[index].found))
    own = _whole(pen, found[best])
    if agent.mutable:  # a later file says the same again, but poorer
        own = [record for earlier in found[:best] for record in earlier.before] + own
    own = [*_beginning(library, pen, own), *own]
    if not pen.live(own):
        raise _nothing(session)
    return own


def _nothing(session: Session) -> NotFound:
    return NotFound(
        f"session {session.session_id} has nothing to resume up to there",
        f"See what it holds: whyfor show {session.name}",
    )


def _transcripts(library: OpenStore, session: Session) -> list[Source]:
    """Files of the session itself; Codex's first format is a document that only conversion
    understands."""
    return [
        source
        for source in library.records.sources_of(session)
        if source.session_id == session.session_id
        and source.sidecar is None
        and source.framing in AGENTS[source.agent].rewritable
    ]


def _data(library: OpenStore, source: Source) -> Iterator[SegmentPiece]:
    return (
        SegmentPiece(stored.start, library.blobs.get(stored.address), stored.gaps)
        for stored in library.records.pieces(source)
    )


def _whole(pen: SessionWriter, found: Cut) -> list[Record]:
    """Results of parallel calls are fetched from behind the cut; a last call that never got one
    is taken out."""
    waiting: dict[str, bool] = {}  # call → whether nothing was said since
    answered = False
    for record in found.before:
        # the model went on without an answer
        if pen.asks(record) or (answered and pen.opens(record)):
            waiting = dict.fromkeys(waiting, False)
            answered = False
        waiting |= dict.fromkeys(pen.opens(record), True)
        for call in pen.answers(record):
            answered = waiting.pop(call, None) is not None or answered
    late: list[Record] = []
    for record in found.after if waiting else ():
        if waiting.keys() & pen.answers(record):
            late.append(record)
            waiting = {
                call: last for call, last in waiting.items() if call not in pen.answers(record)
            }
    hanging = {call for call, last in waiting.items() if last}
    kept = [pen.without(record, hanging) for record in found.before] if hanging else found.before
    return [*(record for record in kept if record is not None), *late]


def _beginning(library: OpenStore, pen: SessionWriter, own: list[Record]) -> list[Record]:
    """What a fork shares with the thread it came from, which its own file does not repeat."""
    known: set[str] = set()
    before: list[Record] = []
    while (base := pen.continues(before or own)) is not None and base[0] not in known:
        known.add(base[0])
        source = _forked_from(library, base[0])
        pieces = [piece.before(base[1]) for piece in _data(library, source)]
        before = [*(record for _, _, record in read_records(source, pieces)), *before]
    return before


def _forked_from(library: OpenStore, session_id: str) -> Source:
    try:
        return _transcripts(library, library.sessions.find(session_id))[0]
    except (NotFound, IndexError):
        raise NotFound(
            f"session {session_id}, which it was forked from, is not kept",
            "Read it first: whyfor ingest PATH",
        ) from None


def files_beside(
    library: OpenStore, pen: SessionWriter, session: Session, content: bytes, place: NewSession
) -> Iterator[tuple[str, NewFile]]:
    """Subagents and large results, with the paths they had: those that the restored records
    name."""
    waiting = [
        s
        for s in library.records.sources_of(session)
        if s.sidecar or s.session_id != session.session_id
    ]
    more = True
    while more:  # a subagent may have called another
        more = False
        for source in list(waiting):
            name = (
                Path(source.path)
                .name.removesuffix(".meta.json")
                .removesuffix(".jsonl")
                .removeprefix("agent-")
            )
            if name.rsplit(".", 1)[0].encode() not in content:
                continue
            waiting.remove(source)
            file = _copied(library, pen, source, session, place)
            if file is not None:
                content += file.content
                more = True
                yield source.path, file


def _copied(
    library: OpenStore, pen: SessionWriter, source: Source, session: Session, place: NewSession
) -> NewFile | None:
    lines = source.framing == "lines"
    own = (
        [record for _, _, record in read_records(source, _data(library, source))] if lines else None
    )
    file = pen.beside(source.path, own, session.session_id, place)
    if file is None or lines:
        return file
    text = source.framing == "blob"
    return NewFile(
        file.path,
        b"".join(
            decode.fill_gaps(piece.data, piece.start, piece.gaps, text=text)
            for piece in _data(library, source)
        ),
    )

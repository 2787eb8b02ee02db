"""replay: a recorded terminal, from the stored records."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from whyfor.agents import RECORDED, decode
from whyfor.agents.terminal.cast import TerminalSize, cast_event, header_size, is_header
from whyfor.config import Settings
from whyfor.model.casts import MARKER, OUTPUT, PAUSED, RESIZE, CastEvent, Recording
from whyfor.model.errors import BadInput
from whyfor.model.findings import Record
from whyfor.model.sessions import Session
from whyfor.model.terminal_output import PlayableText
from whyfor.store.open import OpenStore, reading
from whyfor.story.session_lookup import find_session, session_named

REST_MAX = 2.0  # seconds that a rest lasts at most when it is played
_SHOWN_MAX = 24 << 20  # characters that a page is given
_PLAYED = (OUTPUT, RESIZE)


def is_recording(agent: str) -> bool:
    """Return whether sessions of this agent can be played."""
    return agent in RECORDED


def load_recording(settings: Settings, agent: str, session_id: str) -> Recording:
    """Return the recording of a session, for a page; of a long one its beginning."""
    with reading(settings) as library:
        return _collect(library, session_named(library, agent, session_id), _SHOWN_MAX)


def play(
    settings: Settings,
    reference: str,
    write: Callable[[str], None],
    speed: float,
    sleep: Callable[[float], None] = time.sleep,
) -> Recording:
    """Write a recording's output as fast as it came, rests cut short; return it without its
    events. At the end the terminal is as a shell expects it. Raises BadInput if the session was
    not recorded from a terminal."""
    with reading(settings) as library:
        session = find_session(library, reference)
        _require_recording(session)
        playable = PlayableText()
        try:
            return _play_records(_records(library, session), playable, write, speed, sleep)
        finally:
            write(playable.ending)


def _play_records(
    records: Iterator[Record],
    playable: PlayableText,
    write: Callable[[str], None],
    speed: float,
    sleep: Callable[[float], None],
) -> Recording:
    size, seconds = TerminalSize(), 0.0
    for record in records:
        if is_header(record):
            size = header_size(record)
        event = cast_event(record)
        if event is None:
            continue
        seconds += event.interval
        sleep(min(event.interval, REST_MAX) / speed)
        if event.code == OUTPUT:
            write(playable.clean(event.text))
    return Recording(size.columns, size.rows, round(seconds, 3), [])


def _require_recording(session: Session) -> None:
    if session.agent not in RECORDED:
        raise BadInput(
            f"{session.session_id} is no recording of a terminal",
            "Record one: whyfor run -- PROGRAM",
        )


def _collect(library: OpenStore, session: Session, most: int) -> Recording:
    _require_recording(session)
    size, seconds, taken = TerminalSize(), 0.0, 0
    waited = 0.0
    events: list[CastEvent] = []
    for record in _records(library, session):
        if is_header(record):
            size = header_size(record)
        event = cast_event(record)
        if event is None:
            continue
        seconds += event.interval
        waited += event.interval
        is_shown = event.code in _PLAYED or (event.code == MARKER and event.text == PAUSED)
        if is_shown and taken < most:
            taken += len(event.text)
            events.append(CastEvent(round(waited, 6), event.code, event.text))
            waited = 0.0
    return Recording(size.columns, size.rows, round(seconds, 3), events)


def _records(library: OpenStore, session: Session) -> Iterator[Record]:
    for _, stored in library.records.segments(session):
        data = library.blobs.get(stored.address)
        for offset, line in decode.split_lines(data, stored.start, stored.gaps):
            found = decode.decode_line(line, offset)
            if isinstance(found, list):
                yield from found

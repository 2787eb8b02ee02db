"""What was decided in a turn: the person's correction, answer or rule, and the notes about it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property

from whyfor.model.blame import LineWho
from whyfor.model.events import SpokenWord
from whyfor.model.memory import MemoryFilter, StoredObservation
from whyfor.model.query import Filters
from whyfor.model.review import ReviewDecision
from whyfor.recall import cues
from whyfor.recall.sentences import sentences
from whyfor.store.protocol import Store
from whyfor.story.lines.turn_authors import TurnReader

NOTE_TYPES = ("correction", "rule", "decision", "gotcha", "bugfix")
_SENTENCES = 3  # of a prompt that say what it decides
_REQUEST = 400  # characters of a request


class TurnDecisions:
    """Tells what was decided in turns of a project."""

    def __init__(self, store: Store, project: int, turns: TurnReader) -> None:
        self.store = store
        self.project = project
        self.turns = turns
        self._notes: dict[int, list[StoredObservation]] = {}

    def of_turn(self, who: LineWho, path: str) -> Iterator[ReviewDecision]:
        """Yield what was decided in the turn that wrote something, the plainest last: the request
        itself."""
        if who.asked is None or who.writer is None:
            return
        number = who.writer.session
        yield from self._said(number, who.asked)
        for stored in self._notes_of(number):
            note = stored.observation
            if note.turn == who.asked.turn and _is_about(stored, path):
                yield ReviewDecision(note.type, note.narrative or note.title, note=note.key)
        yield ReviewDecision("request", who.asked.text[:_REQUEST])

    def _said(self, number: int, asked: SpokenWord) -> Iterator[ReviewDecision]:
        if asked.role == "answer":
            yield ReviewDecision("answer", asked.text, self.turns.question(number, asked))
            return
        first = [sentence.text for sentence in sentences(asked.text)]
        if first and asked.turn > 1 and cues.CORRECTION.match(first[0]):
            yield ReviewDecision("correction", " ".join(first[:_SENTENCES]))
        for sentence in first:
            if cues.RULE.match(sentence):
                yield ReviewDecision("rule", sentence)

    def _notes_of(self, session: int) -> list[StoredObservation]:
        if session not in self._notes:
            wanted = MemoryFilter(types=NOTE_TYPES, numbers=(session,))
            found = self.store.memory.observations(wanted, None)
            self._notes[session] = list(_holding(found))
        return self._notes[session]

    @cached_property
    def rules(self) -> list[StoredObservation]:
        """The standing rules of the project, newest first."""
        if not self.project:
            return []
        wanted = MemoryFilter(Filters(projects=(self.project,)), types=("rule", "correction"))
        return list(_holding(self.store.memory.observations(wanted, 400)))


def _holding(notes: Iterable[StoredObservation]) -> Iterator[StoredObservation]:
    for stored in notes:
        if stored.observation.state != "refuted" and not stored.superseded_by:
            yield stored


def _is_about(stored: StoredObservation, path: str) -> bool:
    files = (*stored.observation.anchors, *stored.observation.files_written)
    return not files or names_file(files, path)


def names_file(files: Iterable[str], path: str) -> bool:
    """Return whether one of some paths, as agents name them, is a file of the repository."""
    return any(file == path or file.endswith(f"/{path}") for file in files)

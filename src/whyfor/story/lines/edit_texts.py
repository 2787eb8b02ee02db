"""The texts of edits, read again from the events that tell them: linking keeps only keys of
lines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from whyfor.agents.edits import PATCH
from whyfor.agents.tools import command_of, tool_kind
from whyfor.model.events import StoredEvent
from whyfor.store.protocol import Store
from whyfor.story.lines.text_edits import TextEdit, recorded_texts, shell_texts, tool_texts
from whyfor.story.links.activity import WrittenEdit
from whyfor.story.links.shell_records import ShellRecords

_NEAR = 60  # events before a result among which its call is looked for first
_FAR = 3000
_TEXT = 1 << 16  # characters of a call that has no other data
_KEPT = 4000  # results whose edits are remembered


class EditTexts:
    """Reads the calls of sessions; remembers what it read."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: dict[tuple[int, int], list[TextEdit]] = {}  # by session and result
        self.shells = ShellRecords(store)

    def load(self, results: Mapping[int, Iterable[int]]) -> None:
        """Read the edits of results, by the numbers of their sessions."""
        if len(self._known) > _KEPT:
            self._known.clear()
        for session, seqs in results.items():
            missing = sorted({seq for seq in seqs if (session, seq) not in self._known})
            if missing:
                self._load(session, missing)

    def _load(self, session: int, missing: Sequence[int]) -> None:
        seen = self.shells.of(session)
        for seq in missing:
            self._known[session, seq] = recorded_texts(seen[seq].told) if seq in seen else []
        missing = [seq for seq in missing if seq not in seen]
        told = {e.seq: e for e in self._store.conversation.events_at(session, missing, _TEXT)}
        calls = self._calls(session, told)
        asked = self._store.conversation.events_at(session, set(calls.values()), _TEXT)
        by_seq = {event.seq: event for event in asked}
        for seq, result in told.items():
            call = by_seq.get(calls.get(seq, -1))
            if call is not None:
                self._known[session, seq] = _texts(call, result)

    def of(self, session: int, acts: Sequence[WrittenEdit], place: int) -> TextEdit | None:
        """Return the text of one edit; `acts` are all edits of its result, in order, and `place`
        says which. None if it cannot be read any more."""
        wanted = acts[place]
        texts = self._known.get((session, wanted.seq), [])
        if len(texts) == len(acts):
            return texts[place]
        name = wanted.path.rsplit("/", 1)[-1]
        same = [text for text in texts if text.path.replace("\\", "/").endswith(name)]
        return same[0] if len(same) == 1 else None

    def _calls(self, session: int, results: dict[int, StoredEvent]) -> dict[int, int]:
        """The place of the call of each result."""
        wanted = {seq: str(event.get("id") or "") for seq, event in results.items()}
        found: dict[int, int] = {}
        for reach in (_NEAR, _FAR):
            left = [seq for seq in wanted if seq not in found]
            for first, last in _spans(left, reach):
                refs = self._store.conversation.call_refs(session, first, last)
                places = {ref.ident: ref.seq for ref in refs if ref.kind == "tool.call"}
                for seq in left:
                    if first <= seq <= last and wanted[seq] in places:
                        found[seq] = places[wanted[seq]]
        return found


def _spans(seqs: Sequence[int], reach: int) -> Iterator[tuple[int, int]]:
    """What is before these events, as few stretches as there may be."""
    first = last = -1
    for seq in sorted(seqs):
        begin = max(0, seq - reach)
        if first >= 0 and begin <= last:
            last = seq
            continue
        if first >= 0:
            yield first, last
        first, last = begin, seq
    if first >= 0:
        yield first, last


def _texts(call: StoredEvent, result: StoredEvent) -> list[TextEdit]:
    given = (call.data or {}).get("input") or call.text
    data = result.data or {}
    failed = bool(data.get("failed"))
    if tool_kind((call.name or "").lower()) == "shell":
        command = command_of(given)
        if PATCH not in command:
            return shell_texts(command, failed=failed)
    return [] if failed else tool_texts(given, data)

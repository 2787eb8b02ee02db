"""Take out of a block what the output of a tool says word for word: whoever wrote a file or a page
that an agent has read must not speak to the next session."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

import msgspec

from whyfor.model.memory import BlockLine, BlockMaterial, MemoryBlock
from whyfor.model.sessions import SessionName
from whyfor.recall.block import OUTCOME_ARROW, change_lines
from whyfor.store.protocol import SharedStore

_WINDOW = 6  # words that stand together by no chance
_LEFT_OUT = "[…]"
_ENDS = ".,;:!?\"'”)…"
# Lines with words of agents; in the others are those of people, and names.
_PROSE = ("threads", "sessions", "findings", "failures")


def without_quoted_output(
    store: SharedStore, material: BlockMaterial, block: MemoryBlock
) -> MemoryBlock:
    """Return the block without runs of words that a tool printed in the session they come from."""
    notes = (*material.findings, *material.failures)
    owners = {note.observation.key: (note.agent, note.session_id) for note in notes}

    @cache
    def printed(name: SessionName) -> PrintedText:
        number = store.sessions.numbers([name]).get(name)
        return PrintedText(store.memory.printed(number) if number is not None else ())

    def changed(line: BlockLine) -> BlockLine:
        if line.section not in _PROSE:
            return line
        agent, _, ident = line.source.partition(":")
        output = printed(owners.get(line.source, (agent, ident)))
        asked, said = "", line.text
        if line.section == "sessions":  # what a person asked for stands before the arrow
            asked, arrow, said = line.text.partition(OUTCOME_ARROW)
            asked += arrow
        return msgspec.structs.replace(line, text=asked + output.take_out_of(said))

    return change_lines(block, changed)


class PrintedText:
    """What the tools of a session printed."""

    def __init__(self, texts: Iterable[str]) -> None:
        self.text = "\n".join(" ".join(text.split()) for text in texts)

    def take_out_of(self, prose: str) -> str:
        """Return prose without each run of words that was printed so."""
        words = prose.split()
        if not self.text:
            return prose
        hidden: set[int] = set()
        for start in range(len(words) - _WINDOW + 1):
            if start not in hidden and self._has(words[start : start + _WINDOW]):
                hidden.update(self._whole_run(words, start))
        kept: list[str] = []
        for place, word in enumerate(words):
            if place not in hidden:
                kept.append(word)
            elif kept[-1:] != [_LEFT_OUT]:
                kept.append(_LEFT_OUT)
        return " ".join(kept) if hidden else prose

    def _whole_run(self, words: list[str], start: int) -> range:
        """Return the places of the longest run around these words that was printed."""
        end = start + _WINDOW
        while end < len(words) and self._has(words[start : end + 1]):
            end += 1
        while start and self._has(words[start - 1 : end]):
            start -= 1
        return range(start, end)

    def _has(self, words: list[str]) -> bool:
        """A last word may have a sentence's end on it that was not printed."""
        return " ".join(words).rstrip(_ENDS) in self.text

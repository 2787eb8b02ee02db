"""Lines that come back: an earlier turn took them out because a person corrected it, or because
they had failed."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence

import msgspec

from whyfor.agents.tools import command_of, names_of
from whyfor.model.blame import LineWho
from whyfor.model.lines import LineWriter
from whyfor.model.query import Filters
from whyfor.model.review import FAILED, RETURNS, ReviewDecision, ReviewFinding, ReviewLine
from whyfor.recall.reversal_words import line_terms, said_terms
from whyfor.recall.turn_decisions import TurnDecisions
from whyfor.store.open import LocalStore
from whyfor.story.command_families import check_in
from whyfor.story.lines.commit_lines import LineReader
from whyfor.story.lines.file_blame import FileBlamer
from whyfor.story.links.activity import WrittenEdit
from whyfor.story.links.attribution import BELOW
from whyfor.story.links.line_keys import LineKeys, each, norm, telling
from whyfor.story.links.paths import last_part

_SESSIONS = 60  # that wrote a file, the newest
_EVENTS = 5000  # between two edits that are looked at
_MANY = 3  # lines that say enough without the words of a decision
_REMOVES = re.compile(
    r"\b(?:remove|drop|delete|get rid|stop|don't|do not|instead|rather|no longer|revert|undo|not|"
    r"without|replace|wrong)\b",
    re.I,
)
_TOLD = frozenset({"correction", "answer", "rule", "decision", "gotcha", "bugfix"})


class _Removal(msgspec.Struct, frozen=True):
    """An edit that took a line out, and the one that had put it in before, of the same session."""

    session: int
    writer: int
    act: WrittenEdit
    came: WrittenEdit | None = None


class ReturnedLines:
    """Looks for lines of a change among those that edits took out."""

    def __init__(self, library: LocalStore, blamer: FileBlamer, decisions: TurnDecisions) -> None:
        self.library = library
        self.blamer = blamer
        self.decisions = decisions
        repository = blamer.repository
        self.reader = (
            LineReader(library, repository.folder, repository.folders) if repository else None
        )

    def find(
        self,
        path: str,
        lines: Sequence[ReviewLine],
        going: Collection[object],
        until: int | None = None,
    ) -> Iterator[ReviewFinding]:
        """Yield what comes back with new lines of a file. `going` are the turns whose lines go at
        the same time: session and request of each. Edits after `until` are left out."""
        told = [line for line in lines if telling(norm(line.text)) and not _is_import(line.text)]
        if not told or self.reader is None:
            return
        removals = self._removals(path, until)
        groups: dict[tuple[int, int | None], list[tuple[ReviewLine, _Removal]]] = {}
        whos: dict[tuple[int, int | None], LineWho] = {}
        keys = LineKeys.of([line.text for line in told]).numbers
        for line, number in zip(told, keys, strict=True):
            removal = removals.get(number)
            if removal is None:
                continue
            who = self._who(removal)
            key = (removal.session, who.asked.seq if who.asked else None)
            groups.setdefault(key, []).append((line, removal))
            whos[key] = who
        for key, found in groups.items():
            finding = self._judge(path, whos[key], found, is_going=key in going)
            if finding is not None:
                yield finding

    def _removals(self, path: str, until: int | None) -> dict[int, _Removal]:
        """The last edit that took each line out of a file, by the line's key."""
        found: dict[int, _Removal] = {}
        came: dict[tuple[int, int], WrittenEdit] = {}
        for session, writer, act in self._edits(path):
            if until is not None and act.at > until:
                break
            added = each(act.added)
            for number in set(each(act.removed)) - set(added):
                found[number] = _Removal(session, writer, act, came.get((writer, number)))
            for number in added:
                came.setdefault((writer, number), act)
        return found

    def _edits(self, path: str) -> list[tuple[int, int, WrittenEdit]]:
        assert self.reader is not None
        repository = self.blamer.repository
        assert repository is not None
        within = Filters(projects=(repository.id,), file=path)
        found = []
        for session in self.library.sessions.matching(within, limit=_SESSIONS, subagents=False):
            for writer, act in self.reader.edits_of(session.id).get(last_part(path), ()):
                if self.reader.places.same(act.path, path, foreign=False):
                    found.append((session.id, writer, act))
        return sorted(found, key=lambda edit: (edit[2].at, edit[2].seq))

    def _who(self, removal: _Removal) -> LineWho:
        act = removal.act
        seq = act.seq if removal.writer == removal.session else BELOW
        writer = LineWriter(removal.session, seq, act.at, act.call, removal.writer)
        self.blamer.turns.expect_writers([writer])
        return self.blamer.who((writer, "exact"), inferred=False)

    def _judge(
        self,
        path: str,
        who: LineWho,
        found: Sequence[tuple[ReviewLine, _Removal]],
        *,
        is_going: bool,
    ) -> ReviewFinding | None:
        lines = [line for line, _ in found]
        removal = found[0][1]
        terms = {term for line in lines for term in line_terms(line.text)}
        if _is_attempt(removal, who):
            return self._failed(path, who, lines, removal, terms)
        for decision in self.decisions.of_turn(who, path):
            if is_going:
                because = "it puts back what stood there before"
                return ReviewFinding(RETURNS, path, lines, who, decision, because)
            is_told = decision.kind in _TOLD or _REMOVES.search(decision.text) is not None
            is_told = is_told or removal.came is not None
            related = terms & said_terms(f"{decision.question or ''} {decision.text}")
            if is_told and (related or len(lines) >= _MANY):
                because = "an earlier turn took it out"
                return ReviewFinding(RETURNS, path, lines, who, decision, because)
        return None

    def _failed(
        self,
        path: str,
        who: LineWho,
        lines: list[ReviewLine],
        removal: _Removal,
        terms: Collection[str],
    ) -> ReviewFinding | None:
        command = self._failed_check(removal)
        if command is None or (len(lines) < 2 and len(terms) < 3):
            return None
        asked = who.asked.text if who.asked else ""
        because = f"`{command}` failed with it, and it was taken out again"
        return ReviewFinding(FAILED, path, lines, who, ReviewDecision("request", asked), because)

    def _failed_check(self, removal: _Removal) -> str | None:
        """The check that failed between an edit that put a line in and the one that took it
        out."""
        came, act = removal.came, removal.act
        if came is None or not came.seq < act.seq < came.seq + _EVENTS:
            return None
        shells = names_of("shell")
        calls: dict[str, str] = {}
        failed = None
        for event in self.library.conversation.events(removal.writer, came.seq, act.seq):
            ident = str(event.get("id") or "")
            if event.kind == "tool.call" and (event.name or "").lower() in shells:
                calls[ident] = command_of(event.get("input")) or event.text
            elif event.kind == "tool.result" and event.get("failed") and ident in calls:
                check = check_in(calls[ident])
                failed = check.text if check else failed
        return failed


def _is_attempt(removal: _Removal, who: LineWho) -> bool:
    """Whether one turn both wrote a line and took it out again."""
    if removal.came is None or who.asked is None:
        return False
    return removal.came.seq > who.asked.seq


def _is_import(line: str) -> bool:
    return re.match(r"\s*(?:import|from|#include|use|require|using)\b", line) is not None

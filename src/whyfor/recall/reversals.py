"""What a change undoes of what was decided: lines that go although somebody wanted them, lines that
come back, approaches that failed, rules that are broken.

It speaks only where it can say why: in the words of what was decided. A line that is moved,
reformatted, renamed or rewritten in the same words undoes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

import msgspec

from whyfor.git.blame import blame_porcelain, read_porcelain
from whyfor.git.pending import ChangedText, PendingChange
from whyfor.git.place import GitPlace
from whyfor.model.blame import BlameRow, LineWho
from whyfor.model.review import (
    RULE_BROKEN,
    UNDOES,
    ChangeReview,
    ReviewDecision,
    ReviewFinding,
    ReviewLine,
    TouchedTurn,
)
from whyfor.recall.returned_lines import ReturnedLines
from whyfor.recall.reversal_words import (
    WordChange,
    change_of_words,
    line_terms,
    moved_lines,
    renamed,
    said_terms,
    unwanted_terms,
    with_names,
)
from whyfor.recall.turn_decisions import TurnDecisions, names_file
from whyfor.store.open import LocalStore
from whyfor.story.lines.compare import Hunk, changed_hunks
from whyfor.story.lines.file_blame import FileBlamer
from whyfor.story.lines.text_edits import text_lines
from whyfor.story.lines.words import squeeze
from whyfor.story.links.line_keys import norm, telling

_FINDINGS = 30
_WHOLE = 20_000  # lines of a file that is blamed as a whole
_RANGES = 200  # of a longer one
_WORDS = 6  # that are named


class ComparedFile(msgspec.Struct, frozen=True):
    """A file of the change by its lines."""

    path: str
    old_path: str
    before: list[str]
    after: list[str]
    hunks: list[Hunk]

    def going(self, hunk: Hunk) -> list[ReviewLine]:
        first, count = hunk[2], hunk[3]
        lines = self.before[first - 1 : first - 1 + count]
        return [ReviewLine("-", first + at, text) for at, text in enumerate(lines)]

    def coming(self, hunk: Hunk) -> list[ReviewLine]:
        first, count = hunk[0], hunk[1]
        lines = self.after[first - 1 : first - 1 + count]
        return [ReviewLine("+", first + at, text) for at, text in enumerate(lines)]

    def all_going(self) -> Iterator[ReviewLine]:
        return chain.from_iterable(map(self.going, self.hunks))

    def all_coming(self) -> Iterator[ReviewLine]:
        return chain.from_iterable(map(self.coming, self.hunks))


class _TurnLines(msgspec.Struct):
    """The lines of one turn in one file."""

    row: BlameRow  # the first of them
    total: int = 0  # that tell something
    touched: int = 0
    gone: list[ReviewLine] = []
    came: list[str] = []  # in their place

    @property
    def share(self) -> float:
        """How much of what the turn wrote here goes."""
        return sum(telling(norm(line.text)) for line in self.gone) / max(1, self.total)


class ReversalReader:
    """Reviews changes of one repository."""

    def __init__(self, library: LocalStore, folder: GitPlace) -> None:
        self.library = library
        self.blamer = FileBlamer(library, folder)
        repository = self.blamer.repository
        number = repository.id if repository else 0
        self.decisions = TurnDecisions(library, number, self.blamer.turns)
        self.returned = ReturnedLines(library, self.blamer, self.decisions)

    def review(self, change: PendingChange, what: str) -> ChangeReview:
        """Return what a change undoes, the plainest decisions last; nothing of what was taken out
        after the change was made."""
        files = [compare_texts(file) for file in change.files]
        goes = [line.text for file in files for line in file.all_going()]
        comes = [line.text for file in files for line in file.all_coming()]
        self.moved = moved_lines(goes, comes)
        self.names = renamed(goes, comes)
        findings: list[ReviewFinding] = []
        touched: list[TouchedTurn] = []
        for file in files:
            turns: list[_TurnLines] = []
            if change.base is not None and file.before:
                turns = self._turns(change.base, file)
            undone, others = self._undone(file, turns)
            touched += others
            going = {_turn_key(turn.row.who) for turn in turns if turn.gone}
            findings += undone
            findings += self._broken_rules(file)
            findings += self.returned.find(file.path, self._new_lines(file), going, change.made_at)
        findings.sort(key=lambda finding: finding.decision.kind == "request")
        return ChangeReview(
            what=what,
            files=len(files),
            removed=len(goes),
            added=len(comes),
            findings=list(_once(findings))[:_FINDINGS],
            touched=touched,
            left_out=change.left_out,
        )

    def _new_lines(self, file: ComparedFile) -> list[ReviewLine]:
        """The lines that come and were nowhere before."""
        known = set(map(squeeze, file.before))
        return [
            line
            for line in file.all_coming()
            if squeeze(line.text) not in self.moved and squeeze(line.text) not in known
        ]

    # -- lines that go ---------------------------------------------------------------------------

    def _undone(
        self, file: ComparedFile, turns: Iterable[_TurnLines]
    ) -> tuple[list[ReviewFinding], list[TouchedTurn]]:
        findings = []
        touched = []
        for turn in turns:
            if not turn.touched:
                continue
            found = self._judge(file, turn)
            if found is not None:
                findings.append(found)
            else:
                touched.append(TouchedTurn(file.path, turn.row.who, turn.touched))
        return findings, touched

    def _turns(self, base: str, file: ComparedFile) -> list[_TurnLines]:
        hunk_of: dict[int, Hunk] = {}
        for hunk in file.hunks:
            hunk_of.update(dict.fromkeys(range(hunk[2], hunk[2] + hunk[3]), hunk))
        if not hunk_of:
            return []
        turns: dict[tuple[object, ...], _TurnLines] = {}
        hunks: dict[tuple[object, ...], dict[Hunk, None]] = {}
        coming = {squeeze(line.text) for line in file.all_coming()}
        for row in self._blamed(base, file):
            key = _turn_key(row.who)
            if key is None:
                continue
            turn = turns.setdefault(key, _TurnLines(row, gone=[], came=[]))
            turn.total += telling(norm(row.text))
            if row.line in hunk_of:
                turn.touched += 1
                text = with_names(row.text, self.names)
                if squeeze(row.text) not in self.moved and squeeze(text) not in coming:
                    turn.gone.append(ReviewLine("-", row.line, row.text))
                    hunks.setdefault(key, {})[hunk_of[row.line]] = None
        for key, own in hunks.items():
            turns[key].came = [line.text for hunk in own for line in file.coming(hunk)]
        return list(turns.values())

    def _blamed(self, base: str, file: ComparedFile) -> list[BlameRow]:
        ranges: list[str] = []
        if len(file.before) > _WHOLE:
            gone = [hunk for hunk in file.hunks if hunk[3]]
            ranges = [f"-L{hunk[2]},{hunk[2] + hunk[3] - 1}" for hunk in gone[:_RANGES]]
        data = blame_porcelain(self.blamer.folder, base, file.old_path, ranges)
        return self.blamer.with_writers(list(read_porcelain(data)))

    def _judge(self, file: ComparedFile, turn: _TurnLines) -> ReviewFinding | None:
        if not turn.gone:
            return None
        gone = [with_names(line.text, self.names) for line in turn.gone]
        words = change_of_words(gone, turn.came)
        # a word that comes elsewhere in the file is not gone
        kept = chain.from_iterable(line_terms(line.text) for line in file.all_coming())
        words = msgspec.structs.replace(words, gone=words.gone - set(kept))
        row = turn.row
        for decision in self.decisions.of_turn(row.who, file.path):
            because = undone_because(decision, words, turn.share, len(turn.gone))
            if because:
                return ReviewFinding(
                    kind=UNDOES,
                    path=file.path,
                    lines=turn.gone,
                    who=row.who,
                    decision=decision,
                    because=because,
                    commit=row.commit,
                    summary=row.summary,
                    time=row.time,
                )
        return None

    # -- rules -----------------------------------------------------------------------------------

    def _broken_rules(self, file: ComparedFile) -> Iterator[ReviewFinding]:
        """Yield rules that forbid what comes."""
        for stored in self.decisions.rules:
            note = stored.observation
            text = note.narrative or note.title
            is_here = names_file((*note.anchors, *note.files_written), file.path)
            for terms in unwanted_terms(text):
                if len(terms) < 2 and not is_here and not _names_choice(text):
                    continue
                lines = [line for line in self._brought(file, terms) if line]
                if lines:
                    yield ReviewFinding(
                        kind=RULE_BROKEN,
                        path=file.path,
                        lines=lines,
                        who=LineWho(
                            "agent",
                            agent=stored.agent,
                            session_id=stored.session_id,
                            turn=note.turn,
                        ),
                        decision=ReviewDecision(note.type, text, note=note.key),
                        because=f"it brings {', '.join(sorted(terms)[:_WORDS])}",
                    )
                    break

    def _brought(self, file: ComparedFile, terms: frozenset[str]) -> Iterator[ReviewLine]:
        """The lines that have all of some words, where the lines they replace do not."""
        for hunk in file.hunks:
            before = {term for line in file.going(hunk) for term in line_terms(line.text)}
            if terms <= before:
                continue
            for line in file.coming(hunk):
                if terms <= set(line_terms(line.text)) and squeeze(line.text) not in self.moved:
                    yield line


def compare_texts(file: ChangedText) -> ComparedFile:
    """Return a file by its lines, compared."""
    before, after = text_lines(file.before or ""), text_lines(file.after or "")
    hunks = file.hunks if file.hunks is not None else changed_hunks(before, after)
    return ComparedFile(file.path, file.old_path, before, after, hunks)


def undone_because(
    decision: ReviewDecision, words: WordChange, share: float, lines: int
) -> str | None:
    """Return why a decision is undone by lines that go; None if it is not. `share` is how much of
    what the turn wrote in the file goes."""
    said = said_terms(f"{decision.question or ''} {decision.text}")
    related = sorted(words.gone & said)
    numbers = [word for word in related if word[0].isdigit()]
    takes_out = f"it takes out {', '.join(related[:_WORDS])}"
    is_removed = words.kept < 0.5
    if decision.kind == "request":
        if numbers or (related and (share >= 0.6 or (is_removed and len(related) >= 2))):
            return takes_out
        return "all that was written for it goes" if share >= 0.9 and words.kept < 0.2 else None
    if related:
        return takes_out
    if share >= 0.5 and is_removed and lines >= 2:
        return "most of what was written for it goes"
    return None


def _turn_key(who: LineWho) -> tuple[object, ...] | None:
    if who.writer is None or who.asked is None:
        return None
    return who.writer.session, who.asked.seq


def _names_choice(rule: str) -> bool:
    """Whether a rule says what to use instead: `use A, not B`."""
    text = rule.lower()
    return any(word in text for word in (", not ", "instead of", "rather than", " over ", "use "))


def _once(findings: Iterable[ReviewFinding]) -> Iterator[ReviewFinding]:
    """Leave out what says the same of the same file twice."""
    seen: set[tuple[object, ...]] = set()
    for finding in findings:
        key = (finding.kind, finding.path, finding.decision.text, finding.who.session_id)
        if key not in seen:
            seen.add(key)
            yield finding

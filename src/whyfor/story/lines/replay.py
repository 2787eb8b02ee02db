"""Replay the edits of a file, from the text before them to the text that was committed, and tell
for each line whose it is.

Between two edits anybody may have changed the file: what an edit says of the lines around it
counts more than what was replayed. An edit that has no place in the text is set aside; the lines
that remain without an owner are then compared with what such edits wrote (`block`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Sequence

import msgspec

from whyfor.story.lines.carry import (
    BASE,
    BLOCK,
    EXACT,
    MODIFIED,
    MOVED,
    MOVED_CHARACTERS,
    REFORMATTED,
    SHELL,
    UNKNOWN,
    CarriedLine,
    carried_line,
    carry,
)
from whyfor.story.lines.compare import same_blocks
from whyfor.story.lines.place import PlacedText, inline_change
from whyfor.story.lines.text_edits import EditPiece, TextEdit
from whyfor.story.lines.words import line_words, squeeze
from whyfor.story.links.attribution import FileWrite, attribute
from whyfor.story.links.line_keys import LineKeys

LINES_MAX = 30_000  # of a file; the edits of a longer one are not replayed
EDITS_MAX = 400  # of one file that are replayed for a commit, the last ones


class ReplayedFile(msgspec.Struct):
    """A file after its edits: the owner of each committed line, and what is left over."""

    lines: list[CarriedLine]
    # lines that an edit wrote and that are not in the committed text: they may be in another file
    gone: list[tuple[str, int]] = []
    unplaced: list[int] = []  # numbers of edits that have no place in the text
    replayed: bool = True  # false: the file is too long


class _State:
    """The text as it is by now, and who owns each line of it."""

    def __init__(self, lines: Sequence[str]) -> None:
        self.text = PlacedText(lines)
        self.owners = [BASE] * len(self.lines)

    @property
    def lines(self) -> list[str]:
        return self.text.lines

    def reform(
        self, span: range, new: Sequence[str], owner: int, fresh: Container[int] | None = None
    ) -> None:
        """Put in what a command made of lines: those of an edit that it only set anew or moved
        stay that edit's, all others are the command's; with `fresh`, only those among them."""
        old, owners = self.lines[span.start : span.stop], self.owners[span.start : span.stop]
        same: set[int] = set()
        for _, to, size in same_blocks(old, new):
            same.update(range(to, to + size))
        made = []
        for to, line in enumerate(carry(old, owners, new)):
            if to in same or (line.owner >= 0 and line.evidence != MODIFIED):
                made.append(line.owner)
            else:
                made.append(owner if fresh is None or to in fresh else UNKNOWN)
        self._put(span, new, made)

    def splice(self, span: range, new: Sequence[str], owner: int) -> None:
        """Put lines in the place of others. Lines that were there before keep their owners."""
        owners = [owner] * len(new)
        for at, to, size in same_blocks(self.lines[span.start : span.stop], new):
            first = span.start + at
            owners[to : to + size] = self.owners[first : first + size]
        self._put(span, new, owners)

    def correct(self, span: range, told: Sequence[str]) -> None:
        """Somebody else changed these lines before the edit, which tells how they were."""
        old, owners = self.lines[span.start : span.stop], self.owners[span.start : span.stop]
        carried = [
            line.owner if line.evidence != MODIFIED else UNKNOWN
            for line in carry(old, owners, told)
        ]
        self._put(span, told, carried)

    def _put(self, span: range, new: Sequence[str], owners: Sequence[int]) -> None:
        self.text.splice(span, new)
        self.owners[span.start : span.stop] = owners


def replay(
    base: Sequence[str],
    edits: Sequence[TextEdit],
    final: Sequence[str],
    *,
    recent: int = 0,
) -> ReplayedFile:
    """Return who owns the lines of the committed text.

    `base` is the text before, `final` the committed one. Of edits before number `recent` the base
    may hold the result already; where the lines around such an edit are not as it tells, it has
    no say.
    """
    if max(len(base), len(final)) > LINES_MAX:
        return ReplayedFile([CarriedLine()] * len(final), [], list(range(len(edits))), False)
    state = _State(base)
    unplaced = []
    for number, edit in enumerate(edits):
        if not _apply(state, edit, number, bold=number >= recent):
            unplaced.append(number)
    carried = carry(state.lines, state.owners, final)
    lines = carried
    if any(edit.shell for edit in edits):
        lines = [_with_shell(line, edits) for line in carried]
    return ReplayedFile(lines, _gone(state, carried), unplaced)


def _with_shell(line: CarriedLine, edits: Sequence[TextEdit]) -> CarriedLine:
    by_shell = line.owner >= 0 and line.evidence == EXACT and edits[line.owner].shell
    return carried_line(line.owner, SHELL) if by_shell else line


def _gone(state: _State, carried: Sequence[CarriedLine]) -> list[tuple[str, int]]:
    """Lines that an edit wrote, as often as they are not in the committed text."""
    kept = Counter([line.owner for line in carried])
    wrote = Counter(state.owners)
    lost = {owner for owner, count in wrote.items() if owner >= 0 and kept[owner] < count}
    if not lost:
        return []
    pairs = zip(state.lines, state.owners, strict=True)
    return [(squeeze(line), owner) for line, owner in pairs if owner in lost]


# -- one edit ------------------------------------------------------------------------------------


def _apply(state: _State, edit: TextEdit, number: int, *, bold: bool) -> bool:
    """Apply an edit; return whether all of it found its place."""
    if edit.kind in ("gone", "moved", "touched"):
        if edit.kind == "gone":
            state.splice(range(len(state.lines)), [], UNKNOWN)
        return True
    if edit.whole is not None:
        if edit.seen:
            state.reform(range(len(state.lines)), edit.whole, number, edit.fresh)
        else:
            state.splice(range(len(state.lines)), edit.whole, number)
        return True
    if edit.added is not None:
        end = len(state.lines)
        if state.lines[end - len(edit.added) :] != list(edit.added) or bold:
            state.splice(range(end, end), edit.added, number)
        return True
    if edit.loose:
        return False
    done = True
    shift = 0
    for piece in edit.pieces:
        before = len(state.lines)
        if edit.seen:
            done = _apply_seen(state, piece, number, shift) and done
        else:
            done = _apply_piece(state, piece, number, shift, bold=bold) and done
        shift += len(state.lines) - before
    return done


def _apply_seen(state: _State, piece: EditPiece, number: int, shift: int) -> bool:
    """Apply what a command was seen to do: the lines around it were as it tells, whoever had
    changed them before."""
    text = state.text
    near = piece.line - 1 + shift if piece.line is not None else None
    for one in (piece, _without_context(piece)):
        moved = near + (one.line or 0) - (piece.line or 0) if near is not None else None
        at = text.find(one.old, moved)
        if at is not None:
            state.reform(range(at, at + len(one.old)), one.new, number)
            return True
    about = text.about(piece.old, near)
    if about is None:
        return False
    state.correct(about, piece.old)
    state.reform(range(about.start, about.start + len(piece.old)), piece.new, number)
    return True


def _without_context(piece: EditPiece) -> EditPiece:
    """The same without the lines that stay at its beginning and end."""
    old, new = piece.old, piece.new
    most = min(len(old), len(new))
    head = 0
    while head < most and old[head] == new[head]:
        head += 1
    tail = 0
    while tail < most - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    line = piece.line + head if piece.line is not None else None
    return EditPiece(old[head : len(old) - tail], new[head : len(new) - tail], line)


def _apply_piece(state: _State, piece: EditPiece, number: int, shift: int, *, bold: bool) -> bool:
    if piece.inline:
        changes = inline_change(state.lines, piece)
        for span, new in changes:
            state.splice(span, new, number)
        if changes:
            return True
    text = state.text
    near = piece.line - 1 + shift if piece.line is not None else None
    if not bold and piece.new and text.find(piece.new, near) is not None:
        return True  # the text has it already
    at = text.find(piece.old, near)
    if at is not None:
        state.splice(range(at, at + len(piece.old)), piece.new, number)
        return True
    if piece.new and text.find(piece.new, near) is not None:
        return True  # the text has it already
    return bold and _apply_boldly(state, piece, number, near)


def _apply_boldly(state: _State, piece: EditPiece, number: int, near: int | None) -> bool:
    """Apply an edit although the lines around it are not as it tells: a formatter or a person was
    there before it."""
    text = state.text
    place = text.by_words(piece.old, near)
    if place is not None:
        before = [place.before] if line_words(place.before) else []
        after = [place.after] if line_words(place.after) else []
        state.correct(place.span, [*before, *piece.old, *after])
        start = place.span.start + len(before)
        state.splice(range(start, start + len(piece.old)), piece.new, number)
        return True
    about = None if piece.inline else text.about(piece.old, near)
    if about is None:
        return False
    state.correct(about, piece.old)
    state.splice(range(about.start, about.start + len(piece.old)), piece.new, number)
    return True


# -- what is left --------------------------------------------------------------------------------


def claim_blocks(
    final: Sequence[str],
    lines: list[CarriedLine],
    wanted: Iterable[int],
    writes: Sequence[tuple[int, FileWrite]],
) -> None:
    """Give lines without an owner to edits that had no place, by comparing lines alone. `wanted`
    are the places of the lines, `writes` the numbers of edits and what they wrote."""
    left = [at for at in wanted if lines[at].owner == UNKNOWN]
    if not left or not any(write.added for _, write in writes):
        return
    blocks: list[list[int]] = []
    for at in left:
        if blocks and blocks[-1][-1] == at - 1:
            blocks[-1].append(at)
        else:
            blocks.append([at])
    keyed = [LineKeys.of(final[at] for at in block) for block in blocks]
    for block, authors in zip(blocks, attribute(keyed, writes), strict=True):
        for at, author in zip(block, authors, strict=True):
            if author is not None:
                lines[at] = CarriedLine(author.session, BLOCK)


def claim_moved(
    final: Sequence[str],
    lines: list[CarriedLine],
    wanted: Iterable[int],
    gone: dict[str, list[int]],
) -> None:
    """Give long lines without an owner to edits whose lines are gone from another file; `gone`
    has their owners, and loses what is used."""
    for at in wanted if gone else ():
        if lines[at].owner != UNKNOWN:
            continue
        text = squeeze(final[at])
        if len(text) >= MOVED_CHARACTERS and gone.get(text):
            lines[at] = CarriedLine(gone[text].pop(0), MOVED)


def claim_blanks(final: Sequence[str], lines: list[CarriedLine], wanted: set[int]) -> None:
    """Give blank lines without an owner, as formatters put them in, to the edit that wrote the
    lines above and below them."""
    for at in sorted(wanted):
        if final[at].strip() or lines[at].owner != UNKNOWN:
            continue
        below = at + 1
        while below in wanted and not final[below].strip():
            below += 1
        if at - 1 in wanted and below in wanted:
            owner = lines[at - 1].owner
            if owner >= 0 and owner == lines[below].owner:
                lines[at] = CarriedLine(owner, REFORMATTED)


def settle_slides(final: Sequence[str], lines: list[CarriedLine], added: set[int]) -> None:
    """Where the same line stands twice, git may call the other one added: then that one is the
    edit's. `added` are the places git calls so."""
    if len(added) == len(lines):
        return
    spare: dict[str, list[int]] = {}
    for at, line in enumerate(lines):
        if line.owner >= 0 and at not in added:
            spare.setdefault(final[at], []).append(at)
    if not spare:
        return
    for at in sorted(added):
        if lines[at].owner == BASE and spare.get(final[at]):
            near = min(spare[final[at]], key=lambda to: abs(to - at))
            spare[final[at]].remove(near)
            lines[at], lines[near] = lines[near], lines[at]

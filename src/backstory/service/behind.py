"""What is behind one commit, for its page: the story, the change line by line, who wrote each line, and how we know.

Git may be slow or gone, a commit may change a million lines: what is asked for is bounded and kept by its hash, and
what the store knows is told in any case.
"""

from __future__ import annotations

import re
import threading
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path

import msgspec

from backstory.config import Settings
from backstory.git import history
from backstory.git.patch import File, Hunk, Line, Patch, patch
from backstory.model.checkpoints import Checkpoint, Part
from backstory.model.errors import NotFound
from backstory.model.sessions import Project, Session, Tokens
from backstory.service.library import Library, reading
from backstory.service.looking import tell_soon
from backstory.service.repositories import Repository, repository_of
from backstory.service.stories import Told, reverted
from backstory.store.browse import Browser
from backstory.store.checkpoints import Checkpoints
from backstory.store.journal import NoteEntry
from backstory.store.ranges import Ranges, Word
from backstory.story.acts import SHELLS, Acts, Written, acts
from backstory.story.attribution import Pen, attribute, traced
from backstory.story.content import LOOK_BACK, SLACK
from backstory.story.places import Places

SHOWN = 1200  # lines of a page's diffs, all files together
SHOWN_EACH = 300  # of one of them
SHOWN_ALONE = 6000  # of the one file that was asked for
FILES = 300
_KEPT = 60_000  # lines of diffs that are kept in memory
_SHA = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
AGENT, PERSON, UNKNOWN = "agent", "person", "unknown"


class Who(msgspec.Struct, frozen=True):
    """Who wrote some lines: a turn of a session, a person, or nobody we know of."""

    kind: str  # agent | person | unknown
    label: str  # T2, you, ?
    agent: str = ""


class Because(msgspec.Struct):
    """Why some lines of a hunk are there: what a person had said last when they were written."""

    who: Who
    lines: int = 0
    session: Session | None = None
    turn: int = 0
    asked: Word | None = None  # a prompt or an answer
    question: str | None = None  # that it answers
    closing: str | None = None  # the agent's last words of that turn
    since: int | None = None  # of a person: when an agent last wrote here


class Row(msgspec.Struct, frozen=True):
    line: Line
    who: Who | None  # of an added line
    first: bool = False  # of a run of lines by the same


class HunkTold(msgspec.Struct, frozen=True):
    head: str
    about: str
    rows: list[Row]
    because: list[Because]
    more: int = 0  # lines that are not shown


class FileTold(msgspec.Struct, frozen=True):
    number: int
    path: str
    old_path: str | None
    status: str
    added: int | None
    removed: int | None
    hunks: list[HunkTold]
    labels: list[str]  # who wrote in it
    more: int = 0  # lines that are not shown
    whole: bool = True


class Proof(msgspec.Struct, frozen=True):
    evidence: str
    words: str
    code: str = ""
    linked: bool = True


class Source(msgspec.Struct, frozen=True):
    """A session that the commit has something of."""

    part: Part
    session: Session
    turns: tuple[int, int]
    letter: str  # tells sessions apart where there are several
    said: list[Word]


class Behind(msgspec.Struct, frozen=True):
    told: Told
    project: Project | None
    folder: Path | None
    sources: list[Source]
    proofs: list[Proof]
    files: list[FileTold]
    more_files: int
    whole: bool  # all of the change is known
    counts: dict[str, int]  # added lines by agent, "person" and "unknown"
    group: list[Checkpoint]
    was: list[str]  # commits it took the place of
    notes: list[NoteEntry]
    tokens: Tokens
    reverts: Told | None

    @property
    def added(self) -> int:
        return sum(file.added or 0 for file in self.files)

    @property
    def removed(self) -> int:
        return sum(file.removed or 0 for file in self.files)


def behind(settings: Settings, sha: str, *, project: str = "", only: int | None = None) -> Behind:
    """A commit by its whole hash; `project` says where to look for one that was not seen yet, `only` opens one file."""
    if not _SHA.fullmatch(sha):
        raise NotFound(f"{sha[:64]!r} is not the whole hash of a commit", "See: backstory log")
    with reading(settings) as library:
        number = _project(library, sha, project)
        repository = repository_of(library.db, number) if number is not None else None
        told = _told(library, repository, sha, number)
        return _Page(library, repository, told, number).page(only)


def _project(library: Library, sha: str, identity: str) -> int | None:
    number = Browser(library.db).project_of(sha)
    known = Checkpoints(library.db).project(identity) if number is None and identity else None
    return known[0] if known else number


def _told(library: Library, repository: Repository | None, sha: str, number: int | None) -> Told:
    found = history.resolve(repository.folder, [sha]) if repository else {}
    if repository and found:
        commit = history.commits(repository.folder, ["--no-walk=unsorted", sha])[0]
    elif kept := Checkpoints(library.db).of_commits([sha]).get(sha):
        commit = as_commit(kept)
    else:
        raise NotFound(f"commit {sha[:10]} is not kept here, and no repository has it", "See: backstory log")
    begun = Ranges(library.db).begun(number) if number is not None else None
    return tell_soon(library, repository.folder if repository and found else None, [commit], begun)[0]


def as_commit(kept: Checkpoint) -> history.Commit:
    """What is left of a commit that git does not have any more."""
    c = kept
    return history.Commit(c.commit, tuple(c.parents), c.author, c.email, c.authored_at, c.committed_at, c.subject, "")


class _Page:
    def __init__(self, library: Library, repository: Repository | None, told: Told, number: int | None) -> None:
        self.library = library
        self.ranges = Ranges(library.db)
        self.store = Checkpoints(library.db)
        self.repository = repository
        self.told = told
        self.number = number
        self.sha = told.commit.sha
        parts = told.checkpoint.parts if told.checkpoint else []
        self.sources = [self._source(part, place, len(parts)) for place, part in enumerate(parts)]
        self.acts = [list(self._acts(source)) for source in self.sources]
        self.words = [self._words(source, own) for source, own in zip(self.sources, self.acts, strict=True)]
        self.people = [[word for word in words if word.by == "person"] for words in self.words]

    def page(self, only: int | None) -> Behind:
        checkpoint = self.told.checkpoint
        change = self._change()
        pens, counts = self._pens(change)
        files = [
            self._file(number, file, pens[number], room) for number, file, room in _rooms(change.files[:FILES], only)
        ]
        if not change.whole and checkpoint and len(files) < len(checkpoint.files):
            known = {file.path for file in files}
            files += [
                FileTold(len(files) + n, f.path, None, "M", f.added, f.removed, [], [], whole=False)
                for n, f in enumerate(f for f in checkpoint.files if f.path not in known)
            ]
        number = self.number or 0
        group = self.store.of_group(checkpoint.group_root) if checkpoint and checkpoint.parts else {}
        spans = [(source.session.id, source.part.first, source.part.last) for source in self.sources]
        projects = dict(self.library.reader.projects())
        return Behind(
            told=self.told,
            project=projects.get(number),
            folder=self.repository.folder if self.repository else None,
            sources=self.sources,
            proofs=list(self._proofs(counts)),
            files=files[:FILES],
            more_files=max(0, len(change.files) - FILES),
            whole=change.whole,
            counts=counts,
            group=[member for member in group.values() if not member.superseded_by or member.commit == self.sha],
            was=self.ranges.before(number, [self.sha]).get(self.sha, []),
            notes=[entry for entry in self.store.said([self.sha]) if isinstance(entry, NoteEntry)],
            tokens=self.store.spent(spans),
            reverts=reverted(self.library, self.repository.folder, self.told) if self.repository else None,
        )

    # -- sessions --------------------------------------------------------------------------------

    def _source(self, part: Part, place: int, total: int) -> Source:
        number = self.ranges.numbers([(part.agent, part.session_id)])[part.agent, part.session_id]
        session = self.library.reader.by_number([number])[number]
        turns = self.ranges.turns(session.id, part.first, part.last)
        first = part.first if part.prompts else self.library.reader.prompt_before(session.id, part.first) or part.first
        letter = chr(ord("a") + place) if total > 1 and place < 26 else ""
        return Source(part, session, turns, letter, self.ranges.words(session.id, first, part.last))

    def _acts(self, source: Source) -> Iterator[tuple[Acts, bool]]:
        """Its own and its subagents'."""
        yield self._kept(source.session.id, source.part.last), False
        for child in self.library.reader.children([source.session.session_id]):
            if child.agent == source.session.agent:
                yield self._kept(child.id, None), True

    def _kept(self, session: int, last: int | None) -> Acts:
        """As linking kept them, and what came since, as far as it matters here."""
        kept = self.ranges.acts(session)
        known = msgspec.msgpack.decode(kept[1], type=Acts) if kept else Acts()
        after = kept[0] if kept else 0
        if last is None or after < last:
            events = self.library.reader.events(session, after + 1, *([] if last is None else [last]))
            known = acts(events, known)
        return known

    def _words(self, source: Source, own: Sequence[tuple[Acts, bool]]) -> list[Word]:
        """All that was said, from where the first line that may be in it was written to the last words after it."""
        since = self.told.commit.authored_at - LOOK_BACK
        seqs = [act.seq for found, below in own if not below for act in found.written if act.at >= since]
        session, last = source.session.id, source.part.last
        first = min([*seqs, source.part.first])
        begin = self.library.reader.prompt_before(session, first + 1) or first
        return self.ranges.words(session, begin, self.ranges.turn_end(session, last))

    # -- lines -----------------------------------------------------------------------------------

    def _change(self) -> Patch:
        if self.repository is None or self.told.commit.is_merge:
            return Patch([], self.told.commit.is_merge)
        return _patches.get(self.repository.folder, self.sha)

    def _pens(self, change: Patch) -> tuple[list[dict[int, Pen | None]], dict[str, int]]:
        """For each file who wrote the lines it adds, by line number; and how many are whose."""
        folders = self.repository.folders if self.repository else []
        places = Places(folders)
        found: list[dict[int, Pen | None]] = []
        counts: dict[str, int] = {}
        for file in change.files:
            blocks = [block for hunk in file.hunks for block in _blocks(hunk)]
            texts = [[line.text for line in block] for block in blocks]
            known = attribute(texts, self._writes(file, places))
            pens = {
                line.new: pen
                for block, own in zip(blocks, known, strict=True)
                for line, pen in zip(block, own, strict=True)
                if line.new is not None
            }
            for pen in pens.values():
                name = self.sources[pen.session].part.agent if pen else self._else
                counts[name] = counts.get(name, 0) + 1
            found.append(pens)
        return found, counts

    @property
    def _else(self) -> str:
        return PERSON if self._traced else UNKNOWN

    @cached_property
    def _traced(self) -> bool:
        """Whether all that the sessions wrote is known: nothing ran that writes without a trace."""
        return bool(self.sources) and all(
            traced(self.ranges.commands(source.session.id, source.part.first, source.part.last, SHELLS))
            for source in self.sources
        )

    def _writes(self, file: File, places: Places) -> Iterator[tuple[int, Written]]:
        commit = self.told.commit
        paths = [path for path in (file.path, file.old_path) if path]
        for number, own in enumerate(self.acts):
            for found, below in own:
                for act in found.written:
                    in_time = commit.authored_at - LOOK_BACK <= act.at <= commit.committed_at + SLACK
                    if in_time and any(places.same(act.path, path, foreign=False) for path in paths):
                        yield number, self._placed(number, act) if below else act

    def _placed(self, number: int, act: Written) -> Written:
        """A subagent's writing, where its main session was by then."""
        said = [word for word in self.words[number] if word.at is not None and word.at <= act.at]
        return msgspec.structs.replace(act, seq=said[-1].seq if said else 0)

    # -- files and hunks ---------------------------------------------------------------------------

    def _file(self, number: int, file: File, pens: dict[int, Pen | None], room: int) -> FileTold:
        hunks: list[HunkTold] = []
        left = room
        labels: dict[str, None] = {}
        for hunk in file.hunks:
            whos = [self._who(pens[line.new]) if line.sign == "+" and line.new else None for line in hunk.lines]
            labels.update(dict.fromkeys(who.label for who in whos if who and self.sources))
            if left > 0:
                hunks.append(self._hunk(hunk, whos, pens, left))
                left -= len(hunk.lines)
        total = sum(len(hunk.lines) for hunk in file.hunks)
        shown = sum(len(hunk.rows) for hunk in hunks)
        return FileTold(
            number,
            file.path,
            file.old_path,
            file.status,
            file.added,
            file.removed,
            hunks,
            list(labels),
            total - shown,
            file.whole,
        )

    def _hunk(self, hunk: Hunk, whos: Sequence[Who | None], pens: dict[int, Pen | None], room: int) -> HunkTold:
        rows: list[Row] = []
        cards: dict[tuple[object, ...], Because] = {}
        before: Who | None = None
        for line, who in zip(hunk.lines, whos, strict=True):
            if len(rows) < room:
                rows.append(Row(line, who if self.sources else None, first=who != before))
            before = who
            if who is not None and line.new is not None and self.sources:
                pen = pens[line.new]
                key, card = self._because(who, pen, pens)
                cards.setdefault(key, card).lines += 1
        return HunkTold(hunk.head, hunk.about, rows, list(cards.values()), len(hunk.lines) - len(rows))

    def _who(self, pen: Pen | None) -> Who:
        if pen is None:
            return Who(PERSON, "you") if self._traced else Who(UNKNOWN, "?")
        source = self.sources[pen.session]
        asked = self._asked(pen)
        return Who(AGENT, f"T{asked.turn if asked else '?'}{source.letter}", source.part.agent)

    def _asked(self, pen: Pen) -> Word | None:
        """What a person had said last when it was written."""
        said = self.people[pen.session]
        at = bisect_right(said, pen.seq, key=lambda word: word.seq)
        return said[at - 1] if at else None

    def _because(self, who: Who, pen: Pen | None, pens: dict[int, Pen | None]) -> tuple[tuple[object, ...], Because]:
        if pen is None:
            last = max((known.at for known in pens.values() if known), default=None)
            return (who.kind,), Because(who, since=last if who.kind == PERSON else None)
        source, asked = self.sources[pen.session], self._asked(pen)
        if asked is None:
            return (pen.session, 0), Because(who, session=source.session)
        words = [word for word in self.words[pen.session] if word.turn == asked.turn]
        question = [word.text for word in words if word.role == "question" and word.seq < asked.seq]
        closing = [word.text for word in words if word.role == "closing words"]
        answer = asked.role == "answer"
        return (pen.session, asked.seq), Because(
            who,
            session=source.session,
            turn=asked.turn,
            asked=asked,
            question=question[-1] if answer and question else None,
            closing=closing[-1] if closing and not answer else None,
        )

    # -- how we know -------------------------------------------------------------------------------

    def _proofs(self, counts: dict[str, int]) -> Iterator[Proof]:
        hooked = set(self.ranges.hooked(self.sha))
        total = sum(counts.values())
        for source, own in zip(self.sources, self.acts, strict=True):
            part = source.part
            name = f"{part.session_id[:8]}"
            if part.evidence == "person":
                yield Proof("person", "linked by a person to session", name)
            if part.evidence == "hook" or (part.agent, part.session_id) in hooked:
                yield Proof("hook", "the commit ran inside session", name)
            names = [n for found, _ in own for made in found.made for n, _ in made.printed if self.sha.startswith(n)]
            if names:
                yield Proof("output", "a tool result names", names[-1][:10])
            elif part.evidence == "output" or part.why.startswith("same change"):
                yield Proof(part.evidence, part.why)
        lines = total - counts.get(PERSON, 0) - counts.get(UNKNOWN, 0)
        if lines:
            where = "there" if len(self.sources) == 1 else "in these sessions"
            yield Proof("content", f"{lines} of {total} added lines were written {where}")
        elif any(source.part.evidence == "content" for source in self.sources):
            yield Proof("content", next(s.part.why for s in self.sources if s.part.evidence == "content"))
        for hint in self.told.nearby:
            yield Proof("nearby", str(hint.get("why", "")), str(hint.get("agent", "")), linked=False)


def _blocks(hunk: Hunk) -> Iterator[list[Line]]:
    """Added lines that stand together."""
    block: list[Line] = []
    for line in hunk.lines:
        if line.sign == "+":
            block.append(line)
        elif block and line.sign == " ":
            yield block
            block = []
    if block:
        yield block


def _rooms(files: Sequence[File], only: int | None) -> Iterable[tuple[int, File, int]]:
    """How many lines of each file are shown: as many as fit, or only those of the file that was asked for."""
    left = SHOWN
    for number, file in enumerate(files):
        if only is not None:
            yield number, file, SHOWN_ALONE if number == only else 0
        else:
            yield number, file, min(left, SHOWN_EACH)
            left = max(0, left - min(SHOWN_EACH, sum(len(hunk.lines) for hunk in file.hunks)))


class _Patches:
    """Diffs of late, by hash: they never change."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: OrderedDict[tuple[str, str], Patch] = OrderedDict()

    def get(self, folder: Path, sha: str) -> Patch:
        key = (str(folder), sha)
        with self._lock:
            if key in self._known:
                self._known.move_to_end(key)
                return self._known[key]
        found = patch(folder, sha)
        if found.whole:
            with self._lock:
                self._known[key] = found
                while len(self._known) > 1 and sum(map(_size, self._known.values())) > _KEPT:
                    self._known.popitem(last=False)
        return found


def _size(change: Patch) -> int:
    return 20 + sum(len(hunk.lines) for file in change.files for hunk in file.hunks)


_patches = _Patches()

"""Which turns of others wrote lines that nobody here is known for."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import msgspec
from msgspec.structs import replace

from whyfor.config import Settings
from whyfor.git.blame import BlamedCommit, BlamedLine
from whyfor.git.place import GitPlace
from whyfor.model.blame import NOT_COMMITTED, BlameRow, LineWho
from whyfor.model.checkpoints import Checkpoint
from whyfor.model.errors import NotFound, WhyforError
from whyfor.model.lines import LineWriter
from whyfor.model.stories import CommitStory, stored_commit
from whyfor.model.sync import Remote
from whyfor.model.why import GoneText, LineReason
from whyfor.store.open import LocalStore, reading_local
from whyfor.story.lines.file_blame import BlameTarget, FileBlamer
from whyfor.story.lines.reasons import ReasonReader
from whyfor.sync.cache import SharedCache, SharedReading

COMMITS = 200  # that others are asked about at once
FETCHING = 5.0  # seconds in which stories are fetched; the others next time


class SharedLines(msgspec.Struct, frozen=True):
    """Stories that were found for commits of this repository, by commit."""

    stories: dict[str, SharedReading]
    left: int = 0  # that were not fetched in time
    trouble: str = ""

    def by_place(self) -> dict[tuple[str, str], list[str]]:
        """Return the commits of each person's store, by its place and who shared it."""
        found: dict[tuple[str, str], list[str]] = {}
        for sha, reading in self.stories.items():
            found.setdefault((str(reading.settings.home), reading.source), []).append(sha)
        return found

    @property
    def notes(self) -> list[str]:
        """Return what a reader should know."""
        if self.trouble:
            return [f"Only what is kept here; the team's server: {self.trouble}"]
        if self.left:
            return [f"{self.left} more stories of the team were not fetched yet: run it again."]
        return []


class SharedBlamer(FileBlamer):
    """Tells of lines by what one person shared of commits of a repository."""

    def __init__(
        self, library: LocalStore, place: GitPlace, told: Mapping[str, Checkpoint], person: str
    ) -> None:
        super().__init__(library, place)
        self.person = person
        self.told = {
            sha: CommitStory(stored_commit(replace(known, commit=sha)), known, None)
            for sha, known in told.items()
        }

    def _stories(self, times: Mapping[str, int]) -> dict[str, CommitStory]:
        return {sha: self.told[sha] for sha in times if sha in self.told}

    def judged_stories(self, shas: list[str]) -> list[CommitStory]:
        found = [self.told[sha] for sha in shas if sha in self.told]
        if len(found) < len(shas):
            raise NotFound("nobody shared a story of this commit", "")
        return found

    def _who(self, writer: LineWriter, evidence: str) -> LineWho:
        return replace(super()._who(writer, evidence), person=self.person)


class SharedReasons(ReasonReader):
    """Tells why lines are there by what one person shared."""

    def __init__(self, blamer: SharedBlamer) -> None:
        super().__init__(blamer.library, blamer.place)
        self.blamer = blamer


def fetch_stories(
    settings: Settings, remote: Remote, where: GitPlace, shas: Iterable[str]
) -> SharedLines:
    """Return what others shared of commits, fetched; what was fetched before if the server does not
    answer."""
    cache = SharedCache(settings, remote)
    names = list(dict.fromkeys(shas))[:COMMITS]
    answer = cache.look_up(where, names, sources=True)
    found: dict[str, SharedReading] = {}
    left = 0
    until = time.monotonic() + FETCHING
    for story in answer.stories:
        sha = answer.commit_of(story)
        if sha is None or sha in found:
            continue
        if time.monotonic() > until:
            left += 1
            continue
        try:
            found[sha] = cache.fetch(story)
        except WhyforError as error:
            return SharedLines({**cache.kept_among(names), **found}, left, error.message)
    kept = cache.kept_among(names) if answer.trouble else {}
    return SharedLines({**kept, **found}, left, answer.trouble)


def add_writers(where: GitPlace, rows: Sequence[BlameRow], found: SharedLines) -> list[BlameRow]:
    """Return the lines of a file with the turns of others that wrote them."""
    told: dict[int, BlameRow] = {}
    for blamer in _blamers(where, found):
        lines = [_blamed(row) for row in rows if row.commit in blamer.told]
        for row in blamer.with_writers(lines):
            told[row.line] = row
    return [told.get(row.line, row) if _is_unknown(row) else row for row in rows]


def add_reasons(
    where: GitPlace, reasons: Sequence[LineReason], found: SharedLines
) -> list[LineReason]:
    """Return why lines are there, by what others shared where nothing here tells it."""
    told: dict[int, list[LineReason]] = {}
    for blamer in _blamers(where, found):
        for number, reason in enumerate(reasons):
            if reason.first.commit in blamer.told and _is_unknown(reason.first):
                rows = blamer.with_writers([_blamed(row) for row in reason.rows])
                told[number] = SharedReasons(blamer).reasons_of(reason.path, rows)
    after: list[LineReason] = []
    for number, reason in enumerate(reasons):
        missing = replace(reason, notes=found.notes) if _is_unknown(reason.first) else reason
        after += told.get(number, [missing])
    return after


def add_gone(
    where: GitPlace, gone: GoneText, text: str, target: BlameTarget | None, found: SharedLines
) -> GoneText:
    """Return who removed a text, by what others shared of the commit that did."""
    for blamer in _blamers(where, found):
        if gone.commit in blamer.told:
            return SharedReasons(blamer).gone(text, target)
    return gone


def unknown_commits(rows: Iterable[BlameRow]) -> list[str]:
    """Return the commits of lines that nobody here is known for, each once."""
    return list(dict.fromkeys(row.commit for row in rows if _is_unknown(row)))


def _is_unknown(row: BlameRow) -> bool:
    return row.who.kind == "unknown" and row.commit != NOT_COMMITTED


def _blamers(where: GitPlace, found: SharedLines) -> Iterator[SharedBlamer]:
    """Yield what tells of lines, for each person who shared something of these commits."""
    for (_, person), shas in found.by_place().items():
        readings = {sha: found.stories[sha] for sha in shas}
        with _opened(readings) as (store, told):
            yield SharedBlamer(store, where, told, person)


@contextmanager
def _opened(
    readings: Mapping[str, SharedReading],
) -> Iterator[tuple[LocalStore, dict[str, Checkpoint]]]:
    settings = next(iter(readings.values())).settings
    with reading_local(settings) as store:
        kept = store.checkpoints.of_commits([each.name for each in readings.values()])
        told = {}
        for sha, reading in readings.items():
            if reading.name in kept and kept[reading.name].parts:
                told[sha] = kept[reading.name]
        yield store, told


def _blamed(row: BlameRow) -> BlamedLine:
    commit = BlamedCommit(row.commit, row.author, row.mail, row.time, row.summary)
    return BlamedLine(commit, row.path, row.old, row.line, row.text)

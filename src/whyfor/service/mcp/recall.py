"""Find sessions, notes and commits for a query, one line each."""

from __future__ import annotations

from datetime import datetime

import msgspec

from whyfor.model.agent_answers import MemoryLine, MemoryLines, RecallRequest
from whyfor.model.checkpoints import LinkedCommit
from whyfor.model.errors import BadInput
from whyfor.model.memory import StoredObservation
from whyfor.model.query import Filters, FoundPassage, Hit, Query
from whyfor.model.times import parse_when
from whyfor.recall import query as queries
from whyfor.recall.note_standing import judge_everywhere
from whyfor.recall.related import fitting_commits
from whyfor.recall.results import COMMITS, SearchResult, find_notes, result_page
from whyfor.recall.search import HitRange, hit_page
from whyfor.service.mcp.lines import commit_id, note_line, session_ids
from whyfor.store.open import OpenStore
from whyfor.story.repositories import Repository

PAGE = 12  # lines
_LONGEST = 500  # characters of a query
_SAID = {
    "user.prompt": "asked",
    "assistant.message": "answered",
    "assistant.thinking": "thought",
}


class RecallPlace(msgspec.Struct, frozen=True):
    """Where is looked: the store, which projects, and the repository notes are judged in."""

    store: OpenStore
    filters: Filters
    here: Repository | None = None


def recall_lines(place: RecallPlace, wanted: RecallRequest) -> MemoryLines:
    """Return what fits, best first; raises BadInput for a query or a time that makes no sense."""
    if len(wanted.query) > _LONGEST:
        raise BadInput(f"a query of over {_LONGEST} characters", "Give a few words.")
    filters = place.filters
    if wanted.since:
        since = parse_when(wanted.since, datetime.now().astimezone())
        filters = msgspec.structs.replace(filters, since=since)
    recall = _Recall(place.store, queries.parse_query(wanted.query), filters, place.here)
    lines, following = _RECALLED[wanted.kind](recall, wanted.after)
    hint = "" if lines else "Nothing fits. Try other or fewer words, or all."
    return MemoryLines(lines, str(following) if following else None, hint)


class _Recall(msgspec.Struct, frozen=True):
    """One question: where, what and within which bounds."""

    store: OpenStore
    query: Query
    filters: Filters
    here: Repository | None

    def everything(self, after: int) -> tuple[list[MemoryLine], int | None]:
        """Return sessions, and behind the first of them the notes and commits that have all the
        words."""
        found = result_page(
            self.store, self.query, self.filters, HitRange(PAGE, after), self._holding
        )
        hits = [each for each in found.results if isinstance(each, Hit)]
        ids = session_ids(self.store, (hit.session for hit in hits))
        return [_line(each, ids) for each in found.results], found.following

    def sessions(self, after: int) -> tuple[list[MemoryLine], int | None]:
        found = hit_page(self.store, self.query, self.filters, HitRange(PAGE, after))
        ids = session_ids(self.store, (hit.session for hit in found.hits))
        lines = [_session_line(hit, ids[hit.session.name]) for hit in found.hits]
        return lines, found.following

    def notes(self, after: int) -> tuple[list[MemoryLine], int | None]:
        return _page([note_line(note) for note in self._holding(self._notes())], after)

    def commits(self, after: int) -> tuple[list[MemoryLine], int | None]:
        return _page([_commit_line(commit) for commit in self._commits()], after)

    def _notes(self) -> list[StoredObservation]:
        return find_notes(self.store, self.query, self.filters)

    def _holding(self, notes: list[StoredObservation]) -> list[StoredObservation]:
        """Return those that still hold, with how they stand."""
        judged = judge_everywhere(self.store, notes, self.here)
        return [note for note in judged if not note.standing.gone]

    def _commits(self) -> list[LinkedCommit]:
        return fitting_commits(self.store, self.query, self.filters, COMMITS)


_RECALLED = {
    "": _Recall.everything,
    "session": _Recall.sessions,
    "note": _Recall.notes,
    "commit": _Recall.commits,
}


def _line(result: SearchResult, ids: dict[str, str]) -> MemoryLine:
    """Return the line for a result; `ids` are those of sessions, by name."""
    if isinstance(result, Hit):
        return _session_line(result, ids[result.session.name])
    if isinstance(result, LinkedCommit):
        return _commit_line(result)
    return note_line(result)


def _page(lines: list[MemoryLine], after: int) -> tuple[list[MemoryLine], int | None]:
    stop = after + PAGE
    return lines[after:stop], stop if len(lines) > stop else None


def _session_line(hit: Hit, ident: str) -> MemoryLine:
    said = [passage for passage in hit.passages if passage.kind in _SAID]
    shown = said[0] if said else hit.best
    return MemoryLine(ident, shown.created_at, "session", hit.session.title or "", _reason(shown))


def _reason(passage: FoundPassage) -> str:
    """Return where the words stand. What a tool was given or printed is not quoted: it may be
    anything."""
    if passage.named:
        return "in its title"
    if passage.kind not in _SAID:
        return f"turn {passage.turn}, in a tool call"
    return f"turn {passage.turn}, {_SAID[passage.kind]}: {passage.snippet}"


def _commit_line(commit: LinkedCommit) -> MemoryLine:
    intent = commit.note.intent if commit.note else ""
    return MemoryLine(commit_id(commit.sha), commit.committed_at, "commit", commit.subject, intent)

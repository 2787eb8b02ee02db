"""Notes from the commits that a session is linked to: what was done, and which commit holds what a
note is about."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from whyfor.model.checkpoints import Checkpoint, Part
from whyfor.model.memory import Observation, ObservationState, ObservationType, Quote, cut_title
from whyfor.recall import cues
from whyfor.recall.sentences import sentences
from whyfor.recall.session_walk import FILES_MAX, SessionTurn, SessionWalk

_LARGEST = 3
_REVERT = re.compile(r'Revert "(.+)"$')
_PREFIX = re.compile(r"(\w+)(?:\([^)]*\))?!?:\s")
_PREFIXES: Mapping[str, ObservationType] = {
    "feat": "feature",
    "feature": "feature",
    "fix": "bugfix",
    "bugfix": "bugfix",
    "hotfix": "bugfix",
    "refactor": "refactor",
}
_TAGS: Mapping[str, ObservationType] = {
    "FEATURE": "feature",
    "BUGFIX": "bugfix",
    "REFACTORING": "refactor",
}
_FIRST_WORDS: tuple[tuple[ObservationType, re.Pattern[str]], ...] = (
    ("bugfix", re.compile(r"(?:fix(?:e[sd])?|repair|mend|resolve)\b", re.I)),
    ("feature", re.compile(r"(?:add(?:ed|s)?|implement\w*|introduce[sd]?|support)\b", re.I)),
    (
        "refactor",
        re.compile(r"(?:refactor\w*|rename[sd]?|extract\w*|inline|simplif\w+|deduplicate)\b", re.I),
    ),
)


def commit_notes(
    walk: SessionWalk, turns: Sequence[SessionTurn], commits: Iterable[Checkpoint]
) -> list[Observation]:
    """Return one note for each commit that this session has the first part in."""
    found: dict[str, Observation] = {}
    for commit in commits:
        part = commit.parts[0] if commit.parts else None
        if part is None or part.name != walk.session or commit.is_merge or commit.superseded_by:
            continue
        undone = _REVERT.match(commit.subject)
        if undone and undone[1] in found:
            found[undone[1]] = msgspec.structs.replace(found[undone[1]], state="refuted")
        found[commit.subject] = _commit_note(walk, turns, commit, part)
    return list(found.values())


def _commit_note(
    walk: SessionWalk, turns: Sequence[SessionTurn], commit: Checkpoint, part: Part
) -> Observation:
    request = _request_before(turns, part)
    sure: ObservationState = "verified" if part.confidence == "high" else "stated"
    paths = tuple(file.path for file in commit.files[:FILES_MAX])
    largest = sorted(commit.files, key=lambda file: -(file.added + file.removed))
    changed = ", ".join(f"{file.path} +{file.added} −{file.removed}" for file in largest[:_LARGEST])
    return Observation(
        key=walk.key(0, f"commit {commit.commit}"),
        type=commit_type(commit),
        state=sure,
        title=cut_title(commit.subject),
        turn=_turn_at(turns, part.cut),
        at=commit.committed_at,
        facts=(f"commit {commit.commit[:10]}", f"changed: {changed}"),
        narrative=request.text if request else "",
        files_written=paths,
        commit=commit.commit,
        anchors=tuple(file.path for file in largest[:_LARGEST]),
        evidence=(request,) if request else (),
    )


def commit_type(commit: Checkpoint) -> ObservationType:
    """Return what kind of change a commit is; `change` unless somebody says more."""
    note = commit.annotation
    if note is not None and note.by != "derived":
        return _TAGS.get(note.tag, "change")
    prefix = _PREFIX.match(commit.subject)
    if prefix:
        return _PREFIXES.get(prefix[1].lower(), "change")
    for kind, words in _FIRST_WORDS:
        if words.match(commit.subject):
            return kind
    return "change"


def _request_before(turns: Sequence[SessionTurn], part: Part) -> Quote | None:
    """The last request in a commit's part of the session."""
    for turn in reversed(turns):
        event = turn.prompt
        if event is None or not part.first <= event.seq <= part.last:
            continue
        for sentence in sentences(event.text):
            if not cues.CONTROL.match(sentence.text) and cues.is_prose(sentence.text):
                return Quote(event.seq, sentence.start, sentence.end, sentence.text)
    return None


def _turn_at(turns: Sequence[SessionTurn], seq: int) -> int:
    number = 0
    for turn in turns:
        if turn.prompt is not None and turn.prompt.seq <= seq:
            number = turn.number
    return number


def anchor_notes(
    notes: Iterable[Observation], session: str, commits: Sequence[Checkpoint]
) -> Iterator[Observation]:
    """Yield notes with the commit that holds what they are about: one that came of the same part
    of the session and changes one of their files."""
    for note in notes:
        for commit in commits:
            if commit.superseded_by or not _is_of(commit, session, note.evidence[0].seq):
                continue
            paths = {file.path for file in commit.files}
            inside = tuple(filter(None, (_ending_in(each, paths) for each in note.anchors)))
            if inside:
                note = msgspec.structs.replace(note, commit=commit.commit, anchors=inside)
                break
        yield note


def _is_of(commit: Checkpoint, session: str, seq: int) -> bool:
    return any(part.name == session and part.first <= seq <= part.last for part in commit.parts)


def _ending_in(path: str, known: set[str]) -> str | None:
    """The longest end of a path that is a known one."""
    rest = path.replace("\\", "/").lstrip("/")
    while rest:
        if rest in known:
            return rest
        rest = rest.partition("/")[2]
    return None

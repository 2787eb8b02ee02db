"""Compare what Whyfor says of the lines of a laboratory's commits with the truth."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from whyfor.config import Settings
from whyfor.git.line_changes import LineChange, read_line_changes
from whyfor.git.place import name_place
from whyfor.model.lines import MODIFIED_LINE, CommitLines, LineWriter
from whyfor.store.open import reading_local
from whyfor.story.commit_stories import stories_of
from whyfor.story.lines.authorship import Authorship
from whyfor.story.lines.known_lines import lines_of_stories, story_parts
from whyfor.story.repositories import repository_at

from lines_lab import Lab, Owner

Said = dict[str, dict[int, Owner]]  # of one commit, by path and line


@dataclass
class LineScore:
    """Lines that were judged, and how many of them rightly."""

    lines: int = 0
    right_kind: int = 0
    agent_said: int = 0
    agent_right: int = 0
    agent_true: int = 0
    turn_right: int = 0
    unknown: int = 0

    @property
    def accuracy(self) -> float:
        return self.right_kind / max(1, self.lines)

    @property
    def precision(self) -> float:
        return self.agent_right / max(1, self.agent_said)

    @property
    def recall(self) -> float:
        return self.agent_right / max(1, self.agent_true)

    @property
    def turns(self) -> float:
        return self.turn_right / max(1, self.agent_true)

    def count(self, true: Owner, said: Owner) -> None:
        self.lines += 1
        is_agent, says_agent = true.kind == "agent", said.kind == "agent"
        self.right_kind += is_agent == says_agent
        self.agent_true += is_agent
        self.agent_said += says_agent
        self.agent_right += is_agent and says_agent
        self.turn_right += is_agent and true == said
        self.unknown += is_agent and said.kind == "unknown"

    def add(self, other: LineScore) -> None:
        for name in self.__dataclass_fields__:
            setattr(self, name, getattr(self, name) + getattr(other, name))


def said_lines(settings: Settings, lab: Lab, shas: Iterable[str]) -> dict[str, Said]:
    """What is said of the added lines of commits: by commit, path and line."""
    wanted = list(shas)
    place = name_place(lab.repository)
    found: dict[str, Said] = {}
    with reading_local(settings) as library:
        stories = stories_of(library, place, wanted)
        repository = repository_at(library, place)
        lines = lines_of_stories(library, repository, stories) if repository else {}
        changes = dict(read_line_changes(place, wanted))
        for story in stories:
            sha = story.commit.sha
            authors = Authorship(library, story_parts(story), [], lines.get(sha))
            found[sha] = _said(authors, lines.get(sha), changes[sha])
    return found


def _said(authors: Authorship, lines: CommitLines | None, changes: list[LineChange]) -> Said:
    known = {file.path: file.by_line() for file in lines.files} if lines else {}
    found: dict[str, dict[int, Owner]] = {}
    for change in changes:
        own = known.get(change.path, {})
        found[change.path] = {line: _owner(authors, own.get(line)) for line in change.added_lines}
    return found


def _owner(authors: Authorship, told: tuple[LineWriter, str] | None) -> Owner:
    pen = authors.author_of(told)
    if pen is None:
        return Owner("unknown")
    if pen.evidence == MODIFIED_LINE:
        return Owner("modified")
    asked = authors.asked(pen)
    session = authors.sources[pen.session].session.session_id
    return Owner("agent", session, asked.turn if asked else 0)


def judge(lab: Lab, said: dict[str, Said]) -> LineScore:
    """Count the lines that are told rightly. Of equal lines that stand together nobody can say
    which came first, and git may call either of them added: they are compared as a set."""
    score = LineScore()
    for sha, files in said.items():
        for path, lines in files.items():
            texts = lab.texts[sha][path]
            true = _as_git_sees(lab.truth[sha][path], texts, set(lines))
            for owners, told in _together(true, texts, lines):
                _count_set(score, owners, told)
    return score


def _as_git_sees(true: list[Owner], texts: list[str], added: set[int]) -> list[Owner]:
    """The truth where git calls the other one of two equal lines added."""
    found = list(true)
    spare: dict[str, list[int]] = {}
    for at, owner in enumerate(true):
        if at + 1 not in added and owner.kind == "agent":
            spare.setdefault(texts[at], []).append(at)
    for line in sorted(added):
        own = spare.get(texts[line - 1])
        if own and true[line - 1].kind == "base":
            near = min(own, key=lambda at: abs(at - line))
            own.remove(near)
            found[line - 1] = true[near]
    return found


def _together(
    true: list[Owner], texts: list[str], lines: dict[int, Owner]
) -> Iterable[tuple[list[Owner], list[Owner]]]:
    """Sets of equal lines of one run of added lines, with truth and answer of each."""
    groups: dict[tuple[int, str], tuple[list[Owner], list[Owner]]] = {}
    run = 0
    for line in sorted(lines):
        run = run if line - 1 in lines else line
        owners, told = groups.setdefault((run, texts[line - 1]), ([], []))
        if true[line - 1].kind != "unjudged":
            owners.append(true[line - 1])
            told.append(lines[line])
    return groups.values()


def _count_set(score: LineScore, true: list[Owner], said: list[Owner]) -> None:
    left = list(said)
    missing = []
    for owner in true:
        if owner in left:
            left.remove(owner)
            score.count(owner, owner)
        else:
            missing.append(owner)
    missing.sort(key=lambda owner: owner.kind == "agent")
    left.sort(key=lambda owner: owner.kind == "agent")
    for owner, told in zip(missing, left, strict=True):
        score.count(owner, told)

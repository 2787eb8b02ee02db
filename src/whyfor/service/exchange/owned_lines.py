"""The lines that commits add, as ranges with their writers: what the formats are made of."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import msgspec

from whyfor.capture.line_cache import keep_lines
from whyfor.config import Settings
from whyfor.git import history
from whyfor.git.identity import identify
from whyfor.git.line_changes import LineChange, read_line_changes, read_texts
from whyfor.git.place import name_place
from whyfor.model.blame import NOBODY, LineWho
from whyfor.model.errors import BadInput, NotFound
from whyfor.model.lines import AGENT, MODIFIED_LINE, CommitLines
from whyfor.model.stories import CommitStory
from whyfor.store.open import LocalStore, reading_local
from whyfor.story.commit_lookup import require_checkout, require_commit
from whyfor.story.commit_stories import stories_of
from whyfor.story.lines.file_blame import FileBlamer
from whyfor.story.lines.known_lines import lines_of_stories
from whyfor.story.lines.text_edits import text_lines

_COMMITS_MAX = 2_000


class OwnedRange(msgspec.Struct, frozen=True):
    """Lines that stand together and have one writer; nobody if that is not known."""

    first: int
    last: int
    who: LineWho
    digest: str  # SHA-256 of the lines, joined by line feeds


class OwnedFile(msgspec.Struct, frozen=True):
    path: str
    ranges: list[OwnedRange]


class OwnedCommit(msgspec.Struct, frozen=True):
    """A commit that sessions took part in, and the lines it adds."""

    sha: str
    authored_at: int  # ms
    committer: str  # name and address
    project: str  # identity
    files: list[OwnedFile]


def owned_commits(settings: Settings, reference: str, cwd: Path) -> list[OwnedCommit]:
    """Return the commits of a range, or one, that have a story, the oldest first. Merges add no
    lines of their own. Raises BadInput and NotFound for revisions that are not there."""
    with reading_local(settings) as library:
        blamer = FileBlamer(library, name_place(cwd))
        shas = _commits(library, blamer, reference)
        told = stories_of(library, blamer.folder, shas)
        found = list(_owned(blamer, told))
    keep_lines(settings, blamer.fresh.values())
    return found


def _commits(library: LocalStore, blamer: FileBlamer, reference: str) -> list[str]:
    if ".." not in reference:
        return [require_commit(library, reference, blamer.folder)]
    if reference.startswith("-"):
        raise BadInput(f"not a range: {reference}", "Give one such as main..HEAD.")
    found = [commit.sha for commit in history.commits(require_checkout(blamer.place), [reference])]
    if not found:
        raise NotFound(f"no commits in {reference}", "A range goes from the older to the newer.")
    if len(found) > _COMMITS_MAX:
        raise BadInput(f"{reference} has {len(found):,} commits", "Give a smaller range.")
    return found


def _owned(blamer: FileBlamer, told: list[CommitStory]) -> Iterator[OwnedCommit]:
    repository = blamer.repository
    if repository is None:
        return
    project = identify(str(repository.folder)).identity
    lines = lines_of_stories(blamer.library, repository, told)
    for known in lines.values():
        for file in known.files:
            blamer.turns.expect_writers(file.writers)
    changes = dict(read_line_changes(blamer.folder, list(lines)))
    for story in told:
        sha = story.commit.sha
        if sha in lines and sha in changes:
            commit = story.commit
            yield OwnedCommit(
                sha=sha,
                authored_at=commit.authored_at,
                committer=f"{commit.author} <{commit.email}>",
                project=project,
                files=list(_files(blamer, lines[sha], changes[sha])),
            )


def _files(
    blamer: FileBlamer, known: CommitLines, changes: list[LineChange]
) -> Iterator[OwnedFile]:
    writers = {file.path: file.by_line() for file in known.files}
    plain = [change for change in changes if change.plain and change.added]
    texts = read_texts(blamer.folder, [change.blob for change in plain])
    for change in plain:
        own = writers.get(change.path, {})
        whos = {}
        for line in sorted(change.added_lines):
            told = own.get(line)
            whos[line] = blamer.who(told, inferred=False) if told else NOBODY
        text = text_lines(texts.get(change.blob, ""))
        yield OwnedFile(change.path, list(_ranges(whos, text)))


def _ranges(whos: dict[int, LineWho], text: list[str]) -> Iterator[OwnedRange]:
    """Yield runs of lines with one writer."""
    first = last = 0
    for line, who in whos.items():
        if last and line == last + 1 and who == whos[first]:
            last = line
            continue
        if last:
            yield _range(first, last, whos[first], text)
        first = last = line
    if last:
        yield _range(first, last, whos[first], text)


def _range(first: int, last: int, who: LineWho, text: list[str]) -> OwnedRange:
    told = "\n".join(text[first - 1 : last])
    digest = sha256(told.encode("utf-8", "surrogatepass")).hexdigest()
    return OwnedRange(first, last, who, digest)


def is_agents(who: LineWho) -> bool:
    """Whether an agent wrote a line, or the line that a person then changed."""
    return who.kind in (AGENT, MODIFIED_LINE)

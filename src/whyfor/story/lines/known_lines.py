"""Who wrote the lines of commits, read back; what was not computed yet is computed in memory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from whyfor.model.checkpoints import Part
from whyfor.model.lines import CommitLines
from whyfor.model.stories import CommitStory
from whyfor.store.protocol import Store
from whyfor.story.repositories import Repository


def story_parts(told: CommitStory) -> Sequence[Part]:
    """Return the sessions' parts in a commit; none if it has no story."""
    return told.checkpoint.parts if told.checkpoint else ()


def lines_of_stories(
    store: Store, repository: Repository, stories: Iterable[CommitStory]
) -> dict[str, CommitLines]:
    """Return what is known of the lines of commits, by commit; those without a story are left
    out."""
    told = {story.commit.sha: story for story in stories if story_parts(story)}
    found = store.lines.of_commits(told)
    return found | fresh_lines(store, repository, [told[sha] for sha in told if sha not in found])


def fresh_lines(
    store: Store, repository: Repository, stories: Sequence[CommitStory]
) -> dict[str, CommitLines]:
    """Compute who wrote the lines of commits."""
    if not stories:
        return {}
    # here: the lines of most commits are known already
    from whyfor.story.lines.commit_lines import CommitSource, LineReader

    reader = LineReader(store, repository.folder, repository.folders)
    return reader.read([CommitSource(story.commit, story_parts(story)) for story in stories])

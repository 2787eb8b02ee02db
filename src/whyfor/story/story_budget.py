"""Stories of commits for pages, which cannot wait: what is kept at once; what nobody has looked
at, if it is quick.

Judging what is new may take long where much is. It goes on in a thread of its own, and the page
says so meanwhile.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import Future

from whyfor.config import Settings
from whyfor.git.place import GitPlace
from whyfor.model.checkpoints import NO_SESSION, NOT_THEN
from whyfor.model.errors import WhyforError
from whyfor.model.stories import MERGE, Commit, CommitStory
from whyfor.model.times import DAY
from whyfor.store.open import OpenStore, reading
from whyfor.story.commit_stories import stories_of, with_statements

NOT_YET = "nobody has looked at it yet"
WAIT = 1.0  # seconds a page waits for it

_lock = threading.Lock()
# one look per repository at a time
_running: dict[tuple[str, str], Future[dict[str, CommitStory]]] = {}


def stories_within(
    library: OpenStore, folder: GitPlace | None, commits: Sequence[Commit], begun: int | None
) -> list[CommitStory]:
    """Return the stories of commits in the order given, after WAIT at most; `begun` is when the
    project's first session began."""
    shas = [commit.sha for commit in commits]
    kept, seen = library.checkpoints.of_commits(shas), library.checkpoints.seen(shas)
    unseen = [c for c in commits if c.sha not in kept and c.sha not in seen]
    fresh = [c.sha for c in unseen if _may_have_story(c, begun)]
    judged = _judged(library.settings, folder, fresh) if fresh and folder else {}
    found = []
    for commit in commits:
        checkpoint = kept.get(commit.sha)
        if checkpoint is not None:
            merge = checkpoint.is_merge and not checkpoint.parts
            found.append(CommitStory(commit, checkpoint, MERGE if merge else None))
        elif commit.sha in judged:
            found.append(judged[commit.sha])
        else:
            reason, nearby = seen.get(commit.sha, (_unseen(commit, fresh), []))
            found.append(CommitStory(commit, None, reason or NO_SESSION, nearby))
    return with_statements(library, found)


def _may_have_story(commit: Commit, begun: int | None) -> bool:
    return begun is not None and commit.committed_at >= begun - DAY and not commit.is_merge


def _unseen(commit: Commit, fresh: list[str]) -> str:
    if commit.is_merge:
        return MERGE
    return NOT_YET if commit.sha in fresh else NOT_THEN


def _judged(settings: Settings, folder: GitPlace, shas: list[str]) -> dict[str, CommitStory]:
    """Return what can be judged within WAIT, else nothing: the next call gets it."""
    key = (str(settings.home), str(folder))
    with _lock:
        future = _running.get(key)
        if future is None:
            future = _running[key] = Future()
            given = (settings, folder, shas, future)
            threading.Thread(target=_look, args=given, daemon=True).start()
    try:
        found = future.result(WAIT)
    except (TimeoutError, WhyforError):
        found = {}
    if future.done():
        with _lock:
            if _running.get(key) is future:
                del _running[key]
    return found


def _look(
    settings: Settings, folder: GitPlace, shas: list[str], future: Future[dict[str, CommitStory]]
) -> None:
    try:
        with reading(settings) as library:
            found = {told.commit.sha: told for told in stories_of(library, folder, shas)}
    except Exception as error:  # noqa: BLE001 - raised again where the result is waited for
        future.set_exception(error)
    else:
        future.set_result(found)

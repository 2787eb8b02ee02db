"""What others shared of this machine's projects. Asked by commands that read, after this machine's
own store."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from whyfor.config import Settings
from whyfor.git.place import GitPlace
from whyfor.git.run import ask
from whyfor.model.errors import NotFound, WhyforError
from whyfor.model.query import SessionFilter
from whyfor.model.stories import CommitStory
from whyfor.model.sync import Remote
from whyfor.store.open import LocalStore, reading_local
from whyfor.story.session_lookup import find_session, parse_filters

if TYPE_CHECKING:  # most people share nothing, and never pay for it
    from whyfor.sync.cache import SharedReading as SharedReading
    from whyfor.sync.team_reader import TeamHit

_COMMITS = 200  # the newest of a list that others are asked about


class SharedHits(msgspec.Struct, frozen=True):
    """What others said that has the words of a search; `trouble` if a server could not be asked."""

    hits: list[TeamHit]
    trouble: str = ""


class SharedSearch(msgspec.Struct, frozen=True):
    """A search, as a server is asked."""

    words: str
    where: SessionFilter
    limit: int
    newest: bool = False
    deep: bool = False

    def parameters(self) -> dict[str, str]:
        where = self.where
        given = {
            "q": self.words[:400],
            "agent": where.agent,
            "since": where.since,
            "until": where.until,
            "fields": where.fields,
            "task": where.task,
            "newest": "true" if self.newest else None,
            "deep": "true" if self.deep else None,
            "limit": str(min(self.limit, 100)),
        }
        return {name: value for name, value in given.items() if value}


# -- commits -------------------------------------------------------------------------------------


def shared_story(
    settings: Settings, reference: str | None, cwd: Path
) -> tuple[SharedReading | None, str]:
    """Return what somebody shared of a commit; None, and why, if nothing is known."""
    found = _remote_here(settings, cwd)
    if found is None:
        return None, ""
    from whyfor.sync.cache import find_shared

    remote, where = found
    name = f"{reference or 'HEAD'}^{{commit}}"
    sha = ask(where, "rev-parse", "--verify", "--quiet", "--end-of-options", name)
    sha = sha or (reference if reference and len(reference) in (40, 64) else None)
    if sha is None:
        return None, ""
    return find_shared(settings, remote, where, sha)


def with_shared_stories(
    settings: Settings, cwd: Path, found: list[CommitStory]
) -> tuple[list[CommitStory], str]:
    """Return a list of commits in which those without a story here have the one that somebody
    shared; and why none has, if the server could not be asked."""
    missing = [told.commit.sha for told in found if not _has_parts(told)][:_COMMITS]
    here = _remote_here(settings, cwd) if missing else None
    if here is None:
        return found, ""
    from whyfor.sync.cache import SharedCache

    remote, where = here
    answer = SharedCache(settings, remote).look_up(where, missing, sources=False)
    shared: dict[str, CommitStory] = {}
    known = {told.commit.sha: told for told in found}
    for story in answer.stories:
        sha = answer.commit_of(story)
        if sha in known and sha not in shared:
            shared[sha] = msgspec.structs.replace(
                known[sha], checkpoint=story.checkpoint, reason=None, person=story.who
            )
    return [shared.get(told.commit.sha, told) for told in found], answer.trouble


def _has_parts(told: CommitStory) -> bool:
    return bool(told.checkpoint and told.checkpoint.parts)


# -- sessions ------------------------------------------------------------------------------------


def shared_session(settings: Settings, reference: str) -> tuple[SharedReading | None, str]:
    """Return what somebody shared of a session that is not kept here; None, and why, if nothing is
    known, or it is kept here."""
    if not settings.shares_anything or _has_session(settings, reference):
        return None, ""
    from whyfor.sync.cache import find_shared_session

    trouble = ""
    for remote in _remotes(settings):
        found, why = find_shared_session(settings, remote, reference)
        if found is not None:
            return found, ""
        trouble = trouble or why
    return None, trouble


def _has_session(settings: Settings, reference: str) -> bool:
    try:
        with reading_local(settings) as store:
            find_session(store, reference)
    except NotFound:
        return False
    except WhyforError:
        return True  # what is wrong is told where it is read
    return True


# -- search --------------------------------------------------------------------------------------


def shared_hits(settings: Settings, wanted: SharedSearch) -> SharedHits:
    """Ask the servers that projects are shared with for the words of a search; what is kept here
    is left out."""
    if not settings.shares_anything:
        return SharedHits([])
    from whyfor.sync.client import RemoteFault
    from whyfor.sync.deadline import ask_all
    from whyfor.sync.team_reader import search_team

    with reading_local(settings) as store:
        remotes = list(_searched(store, settings, wanted.where))
    asked = wanted.parameters()
    jobs: list[Callable[[], list[TeamHit]]] = []
    for remote in remotes:
        jobs.append(partial(search_team, settings, remote, asked))
    trouble = ""
    hits: list[TeamHit] = []
    for remote, answer in zip(remotes, ask_all(jobs), strict=True):
        if isinstance(answer, RemoteFault):
            known_here_only = asked.get("task") and answer.kind == "not_member"
            trouble = trouble or ("" if known_here_only else answer.message)
            continue
        for hit in answer:
            hits.append(msgspec.structs.replace(hit, project=remote.project))
    with reading_local(settings) as store:
        return SharedHits(_not_here(store, hits), trouble)


def _searched(store: LocalStore, settings: Settings, where: SessionFilter) -> Iterator[Remote]:
    """Yield where the projects that a filter names are shared."""
    chosen = parse_filters(store, SessionFilter(project=where.project)).projects
    known = dict(store.projects.known())
    identities = None
    if chosen is not None:
        identities = {known[number].identity for number in chosen if number in known}
    for remote in _servers(settings):
        if identities is None or remote.project in identities:
            yield remote


def _not_here(store: LocalStore, hits: Iterable[TeamHit]) -> list[TeamHit]:
    """Leave out what this machine's own search finds."""
    from whyfor.model.wire.sessions import WireCommitHit

    listed = list(hits)
    commits = [hit.sha for hit in listed if isinstance(hit, WireCommitHit)]
    sessions = []
    for hit in listed:
        if not isinstance(hit, WireCommitHit):
            sessions.append((hit.agent, hit.session_id))
    own = store.sessions.numbers(sessions)
    told = store.checkpoints.of_commits(commits)
    kept = []
    for hit in listed:
        if isinstance(hit, WireCommitHit):
            here = hit.sha in told and bool(told[hit.sha].parts)
        else:
            here = (hit.agent, hit.session_id) in own
        if not here:
            kept.append(hit)
    return kept


# -- remotes -------------------------------------------------------------------------------------


def _remotes(settings: Settings) -> tuple[Remote, ...]:
    from whyfor.sync.remotes import load_remotes

    return load_remotes(settings).remotes


def _servers(settings: Settings) -> list[Remote]:
    """Return the team servers that projects are shared with: a repository cannot be searched."""
    return [each for each in _remotes(settings) if each.team_project]


def _remote_here(settings: Settings, cwd: Path) -> tuple[Remote, GitPlace] | None:
    """Return where the repository around a folder is shared; None if it is not."""
    if not settings.shares_anything:
        return None
    from whyfor.sync.places import remote_here

    return remote_here(settings, cwd)

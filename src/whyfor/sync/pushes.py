"""Commits that were seen on their project's remote.

A hook that runs before a push tells that somebody is about to push, not that it happened: the push
may be a rehearsal, or be rejected. A commit counts as pushed when a ref that tracks the project's
own remote contains it, however it got there.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

import msgspec

from whyfor.git.identity import normalise
from whyfor.git.place import GitPlace
from whyfor.git.pushed import own_remotes, pushed_commits, remote_tips
from whyfor.model.signals import Signal
from whyfor.processes import exists
from whyfor.store.protocol import Store
from whyfor.story.repositories import repository_of

PATIENCE = 600.0  # seconds that a push may take
_POLL = 1.0
_NEWEST = 10_000  # commits that are looked for at once, the newest
_LOOK_BACK = 5_000  # signals


class Push(msgspec.Struct, frozen=True):
    """A push that somebody began."""

    at: int
    remote: str  # a name, or an address
    tips: tuple[str, ...]
    process: tuple[int, int] | None  # of git: its pid and start; None if it is not known


def begun_pushes(store: Store, project: int, since: int) -> list[Push]:
    """Return the pushes from this project's folders that began after a time, oldest first."""
    folders = {cwd for cwd, number in store.projects.places().items() if number == project}
    found = []
    for signal in store.signals.after(max(0, store.signals.newest() - _LOOK_BACK)):
        if signal.event == "pre-push" and signal.at > since and signal.repository in folders:
            found.append(_push(signal))
    return [push for push in found if push.tips]


def _push(signal: Signal) -> Push:
    tips = tuple(sha for _, sha, _ in signal.data.get("refs", []) if sha.strip("0"))
    process = signal.data.get("pushing")
    remote = str(signal.data.get("remote") or "")
    return Push(signal.at, remote, tips, tuple(process) if process else None)


def find_pushed(store: Store, project: int, shas: Iterable[str], since: int = 0) -> set[str]:
    """Return those of the commits that were seen on the project's own remote."""
    asked = list(shas)[-_NEWEST:]
    repository = repository_of(store, project) if asked else None
    if repository is None:
        return set()
    remotes = own_remotes(repository.folder)
    tips = _tips_of_addresses(store, project, repository.folder, remotes, since)
    return pushed_commits(repository.folder, asked, remotes, tips)


def _tips_of_addresses(
    store: Store, project: int, folder: GitPlace, remotes: dict[str, str], since: int
) -> list[str]:
    """Ask the remote about pushes to its address: no ref tracks those."""
    own = {normalise(url) for url in remotes.values()}
    urls = [
        push.remote
        for push in begun_pushes(store, project, since)
        if push.remote not in remotes and normalise(push.remote) in own
    ]
    if not urls:
        return []
    # the remote's own URL: of the one that was typed, the hook did not keep a password
    return remote_tips(folder, next(iter(remotes.values())))


def await_push(
    store: Store,
    project: int,
    push: Push,
    clock: Callable[[], float] = time.time,
    sleep: Callable[[float], object] = time.sleep,
) -> bool:
    """Wait until a push has arrived, its process is gone, or it takes too long; return whether it
    arrived."""
    repository = repository_of(store, project)
    if repository is None:
        return False
    remotes = own_remotes(repository.folder)
    while True:
        running = push.process is not None and exists(*push.process) is not False
        if pushed_commits(repository.folder, push.tips, remotes) >= set(push.tips):
            return True
        if not running or clock() * 1000 - push.at > PATIENCE * 1000:
            return False
        sleep(_POLL)

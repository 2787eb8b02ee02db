"""remote: where this repository's stories are shared, and on what terms."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import msgspec
from msgspec.structs import replace

from whyfor.capture.recover import writing
from whyfor.config import Settings
from whyfor.git.identity import identify, normalise
from whyfor.git.place import name_place
from whyfor.git.pushed import remote_urls
from whyfor.locks import LOCK_WAIT
from whyfor.model.errors import BadInput, NotFound
from whyfor.model.paths import to_text
from whyfor.model.sessions import Project
from whyfor.model.sync import (
    HELD,
    LOCAL,
    REFUSED,
    SENT,
    SHARES,
    WAITS,
    OutboxItem,
    Remote,
    TeamProjectName,
    TokenOwner,
)
from whyfor.model.times import wall_clock
from whyfor.store.open import journal, reading_local
from whyfor.story.commit_lookup import require_checkout
from whyfor.story.repositories import ensure_project, repository_at
from whyfor.sync.client import QUICK, TeamClient
from whyfor.sync.git_remote import (
    check_repository,
    git_address,
    is_git_address,
    own_addresses,
)
from whyfor.sync.remotes import (
    change_remotes,
    load_key,
    load_remotes,
    require_remote,
    save_remote,
    server_url,
)
from whyfor.sync.worker import reconcile

VIEWER = "viewer"
_HERE = "Go to the repository that you want to share, then try again."


class RemoteState(msgspec.Struct, frozen=True):
    """A remote, and how things stand with it."""

    project: str  # name
    identity: str
    url: str
    team_project: str  # empty: a repository, which has no projects
    share: str
    confirmed: bool
    paused: bool
    logged_in: bool
    local: int  # stories that were not pushed yet
    waiting: int
    sent: int
    refused: int
    held: int
    oldest_waiting: int | None  # since when
    next_try: int | None
    error: str | None
    reads_only: bool = False  # found when it is added: this person may not send to the project


def project_here(settings: Settings, cwd: Path) -> Project:
    """Return the project of a folder; one that no session of this machine ran in becomes known.
    Raises NotFound if the folder is no repository, or one without commits and remotes."""
    place = require_checkout(name_place(cwd), _HERE)
    if settings.database.exists():
        with reading_local(settings) as store:
            found = repository_at(store, place)
        if found is not None and found.id:
            return found.project
    if identify(to_text(place), named=True).evidence == "path":
        raise NotFound("this repository has no commit and no remote yet", "Commit something first.")
    with writing(settings, LOCK_WAIT) as store:
        identity = ensure_project(store, journal(settings), place, wall_clock())
        learned = store.projects.find(identity)
    if learned is None:
        raise NotFound("this repository is not known here", _HERE)
    return learned[1]


def add_remote(
    settings: Settings, cwd: Path, url: str, name: str | None, share: str
) -> RemoteState:
    """Share the repository around `cwd`. Nothing leaves before a person has seen what would; of
    somebody who may only read the project, nothing leaves at all. Raises BadInput if there are
    several projects, and none is named."""
    if share not in SHARES:
        raise BadInput(f"no such way to share: {share}", f"Ways: {', '.join(SHARES)}.")
    project = project_here(settings, cwd)
    reads_only = False
    if is_git_address(url):
        remote = Remote(project.identity, _repository_address(url, cwd), 0, "", share)
    else:
        address = server_url(url)
        chosen = _choose_project(settings, address, name, project.name)
        reads_only = chosen.role == VIEWER
        share = "ask" if reads_only else share
        remote = Remote(project.identity, address, chosen.id, chosen.name, share)
    before = {each.project: each for each in load_remotes(settings).remotes}.get(project.identity)
    if before is not None and _place(before) == _place(remote):
        remote = _with_terms(replace(before, name=remote.name), share)
    elif before is not None:
        _forget_remote(settings, before)  # nothing of what the other place has is there
    decided = save_remote(settings, remote)
    reconcile(settings, decided, 0)
    return replace(remote_state(settings, remote), reads_only=reads_only)


def _with_terms(remote: Remote, share: str) -> Remote:
    """Return a remote with other terms. Who agreed to less has not agreed to every session."""
    wider = share == "all" and remote.share != "all"
    return replace(remote, share=share, confirmed_at=None if wider else remote.confirmed_at)


def _repository_address(given: str, cwd: Path) -> str:
    """Return the address of a repository for stories. Raises BadInput for the code's own: who may
    read code need not read conversations, and every clone would carry them."""
    place = require_checkout(name_place(cwd), _HERE)
    address = git_address(given, cwd)
    if normalise(address.removeprefix("git+")) in own_addresses(place, remote_urls(place)):
        raise BadInput(
            "that is the code's own repository", "Stories need one of their own: git init --bare"
        )
    check_repository(address)
    return address


def _choose_project(settings: Settings, url: str, name: str | None, here: str) -> TeamProjectName:
    key = load_key(settings, url)
    if key is None:
        raise BadInput(f"nobody is logged in to {url}", f"Log in first: whyfor login {url}")
    with closing(TeamClient(url, key.token, QUICK)) as client:
        owner = client.get("/api/v1/sync/whoami", TokenOwner)
    wanted = name or here
    found = [each for each in owner.projects if wanted in (each.name, str(each.id))]
    if not found and name is None and len(owner.projects) == 1:
        found = list(owner.projects)
    if not found:
        names = ", ".join(each.name for each in owner.projects) or "none"
        raise BadInput(
            f"which project of the team is this? yours are: {names}",
            f"Name it: whyfor remote add {url} --project NAME",
        )
    return found[0]


def remove_remote(settings: Settings, cwd: Path) -> Remote:
    """Share the repository no longer. What was sent stays with the team."""
    remote = require_remote(settings, project_here(settings, cwd).identity)
    _forget_remote(settings, remote)
    return remote


def _forget_remote(settings: Settings, remote: Remote) -> None:
    after = change_remotes(
        settings,
        lambda before: replace(
            before, remotes=tuple(each for each in before.remotes if each != remote)
        ),
    )
    reconcile(settings, after, 0)


def _place(remote: Remote) -> tuple[str, int]:
    return remote.url, remote.team_project


def change_remote(
    settings: Settings, identity: str, *, share: str | None = None, paused: bool | None = None
) -> Remote:
    """Change on what terms a project is shared."""
    remote = require_remote(settings, identity)
    if share is not None:
        if share not in SHARES:
            raise BadInput(f"no such way to share: {share}", f"Ways: {', '.join(SHARES)}.")
        remote = _with_terms(remote, share)
    if paused is not None:
        remote = replace(remote, paused=paused)
    reconcile(settings, save_remote(settings, remote), 0)
    return remote


def list_remotes(settings: Settings) -> list[RemoteState]:
    """Return all remotes and how things stand with them."""
    return [remote_state(settings, each) for each in load_remotes(settings).remotes]


def remote_state(settings: Settings, remote: Remote) -> RemoteState:
    with reading_local(settings) as store:
        found = store.projects.find(remote.project)
        items = store.outbox.items(found[0]) if found else []
    waiting = [item for item in items if item.state == WAITS]
    failing = [item for item in waiting if item.error]
    return RemoteState(
        project=found[1].name if found else remote.project,
        identity=remote.project,
        url=remote.url,
        team_project=remote.name,
        share=remote.share,
        confirmed=remote.confirmed_at is not None,
        paused=remote.paused,
        logged_in=is_git_address(remote.url) or load_key(settings, remote.url) is not None,
        local=_count(items, LOCAL),
        waiting=len(waiting),
        sent=_count(items, SENT),
        refused=_count(items, REFUSED),
        held=_count(items, HELD),
        oldest_waiting=min((item.added_at for item in waiting), default=None),
        next_try=min((item.next_at for item in failing), default=None),
        error=next((item.error for item in failing), None),
    )


def _count(items: list[OutboxItem], state: str) -> int:
    return sum(item.state == state for item in items)

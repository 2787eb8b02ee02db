"""Deleting sessions that their projects keep no longer."""

from __future__ import annotations

from itertools import groupby

from whyfor.model.accounts import ExpiredSession
from whyfor.model.sessions import Project
from whyfor.model.sync import Retraction
from whyfor.sync.receive import UploadReceiver
from whyfor.team.resources import TeamResources

_MOST = 200  # sessions of one turn


def delete_expired(team: TeamResources, most: int = _MOST) -> int:
    """Delete sessions that are older than their projects keep them, with their stories and objects,
    up to `most`; machines that keep copies are told. Return how many. If it breaks off, the next
    turn does the rest."""
    with team.database.accounts.by(None) as accounts:
        found = accounts.expired_sessions(team.now(), most)
    return sum(
        _delete(team, person, project, list(sessions))
        for (project, person), sessions in groupby(found, key=_whose)
    )


def _whose(session: ExpiredSession) -> tuple[int, int]:
    return session.project, session.person


def _delete(team: TeamResources, person: int, project: int, sessions: list[ExpiredSession]) -> int:
    names = tuple(f"{each.agent}:{each.session_id}" for each in sessions)
    identity = f"team:{project}"
    place = Project(identity, "remote", identity, remote=identity)
    with team.database.expiring(person, project) as store:
        with store.transaction():
            store.uploads.log("forgotten", names, team.now())
        receiver = UploadReceiver(store, team.blobs(project), place, team.now)
        return receiver.retract(Retraction(sessions=names))

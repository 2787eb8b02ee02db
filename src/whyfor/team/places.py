"""A project of the team as services read a place: the same services answer for a laptop."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path

from whyfor.config import Settings
from whyfor.store.open import OpenStore
from whyfor.team.access import ProjectAccess

NOWHERE = Path("/dev/null/team")  # nothing can ever be there


def shared_place(project: ProjectAccess) -> Settings:
    """Return what services read for one member's request of one project."""

    def lend(settings: Settings) -> AbstractContextManager[OpenStore]:
        database = project.resources.database
        return database.lend(project.member, project.id, settings, project.blobs)

    return Settings(home=NOWHERE, user_home=NOWHERE, env={}, lend=lend)

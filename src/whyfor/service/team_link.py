"""The address of a session, commit or task on the team server its project is shared with."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote, urlencode

from whyfor.config import Settings
from whyfor.git.place import name_place
from whyfor.model.errors import NotFound
from whyfor.model.times import wall_clock
from whyfor.service.tasks import one_task
from whyfor.store.open import OpenStore, reading
from whyfor.story.commit_lookup import resolve_commit
from whyfor.story.session_lookup import find_session
from whyfor.story.tasks.board import spelled_keys
from whyfor.sync.remotes import require_remote


def team_link(settings: Settings, reference: str, cwd: Path) -> str:
    """Return the link that every member of the project can open. Raises NotFound if the project is
    shared with no server, or nothing has this name."""
    here = name_place(cwd)
    with reading(settings) as library:
        sha = resolve_commit(library, reference, here)
        if sha is None and spelled_keys(library, reference):
            task = one_task(library, reference, wall_clock()).task
            path = "tasks?" + urlencode({"since": "all", "at": task.key})
            project = task.project
        elif sha is None:
            session = find_session(library, reference)
            path = f"sessions/{quote(session.agent)}/{quote(session.session_id, safe='')}"
            project = session.project
        else:
            path = f"commits/{sha}"
            project = _project_of(library, sha)
    if project is None:
        raise NotFound("it belongs to no project", "Only what belongs to a project is shared.")
    remote = require_remote(settings, project)
    if not remote.team_project:
        raise NotFound("its project is shared without a server", "There are no pages to link to.")
    return f"{remote.url}/projects/{remote.team_project}/{path}"


def _project_of(library: OpenStore, sha: str) -> str | None:
    number = library.checkpoints.project_of(sha)
    known = dict(library.projects.known()).get(number) if number is not None else None
    return known.identity if known else None

"""What a team server tells of stories that others shared."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from urllib.parse import urlencode

from whyfor.config import Settings
from whyfor.model.sync import ChangesAnswer, Remote, SharedStory, StoryLookup
from whyfor.model.wire.base import ItemList, ItemPage
from whyfor.model.wire.memory import WireNote
from whyfor.model.wire.sessions import WireCommitHit, WireMarkedHit, WireNoteHit
from whyfor.store.blobs import unpack_object
from whyfor.sync.client import QUICK, Patience, TeamClient
from whyfor.sync.remotes import load_key

FETCH = Patience((0.2,), 2.0, 20.0)  # for the records of a story that is there
TeamHit = WireMarkedHit | WireNoteHit | WireCommitHit


class TeamReader:
    """One project of a team server, as one member reads it. Every method raises RemoteFault."""

    def __init__(self, settings: Settings, remote: Remote, patience: Patience = QUICK) -> None:
        key = load_key(settings, remote.url)
        self.client = TeamClient(remote.url, key.token if key else None, patience)
        self.path = f"/api/v1/projects/{remote.team_project}"

    def close(self) -> None:
        self.client.close()

    def changes(self, after: int) -> ChangesAnswer:
        """Return what changed after a number."""
        return self.client.get(f"{self.path}/sync/changes?after={after}", ChangesAnswer)

    def stories(self, asked: StoryLookup) -> list[SharedStory]:
        """Return who shared what of commits."""
        return self.client.post(f"{self.path}/sync/stories", asked, list[SharedStory])

    def sessions(self, name: str) -> list[SharedStory]:
        """Return who shared the session whose id begins so, or agent:id does."""
        query = urlencode({"name": name})
        return self.client.get(f"{self.path}/sync/sessions?{query}", list[SharedStory])

    def object(self, digest: str) -> bytes:
        """Return an object, unpacked. Raises StoreError if it is not what its name says."""
        packed = self.client.ask("GET", f"{self.path}/objects/{digest}").body
        return unpack_object(digest, packed)

    def notes(self, after: str | None = None) -> ItemPage[WireNote]:
        """Return notes on the project, newest first; `after` is the `next` of the page before."""
        asked = {"limit": "100", **({"after": after} if after else {})}
        return self.client.get(f"{self.path}/notes?{urlencode(asked)}", ItemPage[WireNote])

    def search(self, asked: Mapping[str, str]) -> list[TeamHit]:
        """Return what has the words of a query."""
        answer = self.client.get(f"{self.path}/search?{urlencode(asked)}", ItemList[TeamHit])
        return answer.items


def search_team(settings: Settings, remote: Remote, asked: Mapping[str, str]) -> list[TeamHit]:
    """Ask one project's server for the words of a query. Raises RemoteFault."""
    with closing(TeamReader(settings, remote)) as reader:
        return reader.search(asked)

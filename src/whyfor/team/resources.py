"""What all requests of a team server share: the database, the object store, known tokens."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from functools import cached_property

from obstore.store import ObjectStore

from whyfor.model.accounts import Member
from whyfor.model.errors import NotFound
from whyfor.store.objects import ObjectBlobs, open_objects
from whyfor.store.shared import PostgresListener, TeamDatabase, check_version, read_state
from whyfor.team.changes import ChangeHub
from whyfor.team.limits import RateLimiter
from whyfor.team.oidc_provider import OidcProvider
from whyfor.team.settings import TeamSettings
from whyfor.team.tokens import PREFIX, SESSION_PREFIX, TokenCache, hash_token, is_token

_SIZES_HOLD = 60.0  # seconds


class ProjectSizes:
    """How many bytes the objects of projects have. Listing all objects of a project takes long, so
    it is done once a minute at most; what this process stores meanwhile is added."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._known: dict[str, tuple[float, int]] = {}  # by prefix: until when, and how many
        self._lock = threading.Lock()

    def size(self, blobs: ObjectBlobs) -> int:
        """Return the bytes of a project's objects, as of at most a minute ago."""
        with self._lock:
            until, known = self._known.get(blobs.prefix, (0.0, 0))
        if self._clock() < until:
            return known
        found = blobs.size()
        with self._lock:
            self._known[blobs.prefix] = (self._clock() + _SIZES_HOLD, found)
        return found

    def add(self, blobs: ObjectBlobs, size: int) -> None:
        """Count what was stored just now."""
        with self._lock:
            until, known = self._known.get(blobs.prefix, (0.0, 0))
            self._known[blobs.prefix] = (until, known + size)


class TeamResources:
    def __init__(self, settings: TeamSettings) -> None:
        self.settings = settings
        self.database = TeamDatabase(settings.db_url)
        self.limits = RateLimiter(self.database, settings.rate_limit, settings.entry_limit)
        self.tokens = TokenCache(self.database.accounts.member_of_token)
        self._listener = PostgresListener(
            settings.db_url, "whyfor_access", self._access_changed, self.tokens.drop
        )
        self.changes = ChangeHub(self.database)
        self.sizes = ProjectSizes()

    @cached_property
    def _objects(self) -> ObjectStore:
        return open_objects(self.settings.blobs_url, dict(self.settings.blob_options) or None)

    @cached_property
    def provider(self) -> OidcProvider:
        """Return where people sign in. Raises NotFound if that is here."""
        if self.settings.oidc is None:
            raise NotFound("nothing is here", "")
        return OidcProvider(self.settings.oidc, self.settings.public_url)

    @cached_property
    def team_name(self) -> str:
        """Return what the organisation is called."""
        with self.database.accounts.by(None) as accounts:
            teams = accounts.teams()
        return teams[0][1] if teams else "Whyfor"

    def open(self) -> None:
        """Connect. Raises StoreError if the database cannot be reached, or is of a version that
        this program does not run on."""
        check_version(read_state(self.settings.db_url).version)
        self.database.open()
        self._listener.start()
        self.changes.start()
        self._listener.ready.wait(5)

    def close(self) -> None:
        self.changes.close()
        self._listener.stop()
        self.database.close()

    def _access_changed(self, payload: str) -> None:
        """Forget the tokens of a person whose rights may have changed."""
        what, _, number = payload.partition(" ")
        if what == "person" and number.isdigit():
            self.tokens.drop(int(number))
        self.changes.wake_all()

    def blobs(self, project: int) -> ObjectBlobs:
        """Return the segments of one project."""
        return ObjectBlobs(self._objects, project)

    def now(self) -> int:
        """Return the time in milliseconds."""
        return int(time.time() * 1000)

    def look_up(self, token: str, *, cookie: bool = False) -> Member | None:
        """Return whose a token is now, whatever was known before."""
        if not is_token(token, SESSION_PREFIX if cookie else PREFIX):
            return None
        found = self.database.accounts.member_of_token(hash_token(token), self.now())
        return found if found is not None and (found.kind == "web") == cookie else None

    def member(self, token: str, *, cookie: bool = False) -> Member | None:
        """Return whose a token is; None if it is good for nothing. A browser's session comes in
        its cookie, all others in a header, and neither is taken for the other."""
        if not is_token(token, SESSION_PREFIX if cookie else PREFIX):
            return None
        found = self.tokens.member(token)
        if found is None or (found.kind == "web") != cookie:
            return None
        return found

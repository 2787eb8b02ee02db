"""What machines send and read: plan, objects, commit; stories of commits and sessions."""

from __future__ import annotations

import re
from typing import Annotated, Any

from litestar import Request, Response, get, post, put
from litestar.params import FromPath, FromQuery, JSONBody, QueryParameter
from msgspec.structs import replace

from whyfor.model.errors import BadInput, StoreError, Unprocessable
from whyfor.model.sync import (
    ChangesAnswer,
    CommitAnswer,
    PlanAnswer,
    PlanRequest,
    Retraction,
    RetractionAnswer,
    SharedStory,
    StoryLookup,
    StoryUpload,
    TokenOwner,
)
from whyfor.server.team.context import OfProject, SignedIn, Team
from whyfor.team.access import MEMBER, READ, WRITE
from whyfor.team.stories import PACKED_MAX, TeamStories, TeamUploads, own_projects

Number = Annotated[int, QueryParameter(ge=0, le=1 << 62)]
_PROJECT = "/api/v1/projects/{project_id:int}"
_BODY_MAX = 8 << 20  # bytes of a plan or a commit
_DIGEST = re.compile(r"[0-9a-f]{64}")


@get("/api/v1/sync/whoami", opt={"access": MEMBER}, sync_to_thread=True)
def who_am_i(member: SignedIn, team: Team) -> TokenOwner:
    """Whose token this is, and which projects it is good for."""
    owner = TokenOwner(member.name, member.email, member.scopes, member.expires_at)
    return replace(owner, projects=own_projects(team, member))


@post(
    f"{_PROJECT}/sync/plan",
    opt={"access": WRITE},
    status_code=200,
    request_max_body_size=_BODY_MAX,
    sync_to_thread=True,
)
def plan(project: OfProject, data: JSONBody[PlanRequest]) -> PlanAnswer:
    """Which objects of these sources are missing here."""
    return TeamUploads(project).plan(data)


@put(
    f"{_PROJECT}/objects/{{digest:str}}",
    opt={"access": WRITE},
    request_max_body_size=PACKED_MAX,
)
async def put_object(
    request: Request[Any, Any, Any], project: OfProject, digest: FromPath[str]
) -> Response[None]:
    """Store an object: zstd, with its size in its head, named by the SHA-256 of its content."""
    packed = await request.body()
    made = await _in_thread(_store_object, TeamUploads(project), digest, packed)
    return Response(None, status_code=201 if made else 200)


def _store_object(uploads: TeamUploads, digest: str, packed: bytes) -> bool:
    if not _DIGEST.fullmatch(digest):
        raise BadInput("a digest is 64 hexadecimal digits", "This is a bug of the sender.")
    try:
        return uploads.put_object(digest, packed)
    except StoreError as error:
        raise Unprocessable(error.message, "Send it again.") from None


@post(
    f"{_PROJECT}/sync/commit",
    opt={"access": WRITE},
    status_code=200,
    request_max_body_size=_BODY_MAX,
    sync_to_thread=True,
)
def commit(project: OfProject, data: JSONBody[StoryUpload]) -> CommitAnswer:
    """Store a story whole: its sources, and what is told of its commit."""
    return TeamUploads(project).commit(data)


@post(f"{_PROJECT}/sync/retract", opt={"access": WRITE}, status_code=200, sync_to_thread=True)
def retract(project: OfProject, data: JSONBody[Retraction]) -> RetractionAnswer:
    """Take back what the same person sent; `forever`: nobody may send it again."""
    return RetractionAnswer(TeamUploads(project).retract(data))


@get(f"{_PROJECT}/sync/changes", opt={"access": READ}, sync_to_thread=True)
def changes(project: OfProject, after: Number = 0) -> ChangesAnswer:
    """What changed after a number, for machines that keep copies."""
    found, last = TeamStories(project).changes(after)
    return ChangesAnswer(tuple(found), last)


@post(f"{_PROJECT}/sync/stories", opt={"access": READ}, status_code=200, sync_to_thread=True)
def stories(project: OfProject, data: JSONBody[StoryLookup]) -> list[SharedStory]:
    """Who shared what of commits, by id, else by their changes."""
    return TeamStories(project).stories(data.commits, data.patches, sources=data.sources)


@get(f"{_PROJECT}/sync/sessions", opt={"access": READ}, sync_to_thread=True)
def named_session(project: OfProject, name: FromQuery[str]) -> list[SharedStory]:
    """What people shared of the session whose id, or agent:id, begins so."""
    return TeamStories(project).named_session(name[:200])


@get(
    f"{_PROJECT}/sync/sessions/{{agent:str}}/{{session_id:str}}",
    opt={"access": READ},
    sync_to_thread=True,
)
def shared_session(
    project: OfProject, agent: FromPath[str], session_id: FromPath[str]
) -> list[SharedStory]:
    """What people shared of a session."""
    return TeamStories(project).session(agent, session_id)


@get(f"{_PROJECT}/objects/{{digest:str}}", opt={"access": READ}, sync_to_thread=True)
def get_object(project: OfProject, digest: FromPath[str]) -> Response[bytes]:
    """An object as it was sent, of a story that the caller may read."""
    if not _DIGEST.fullmatch(digest):
        raise BadInput("a digest is 64 hexadecimal digits", "")
    packed = TeamStories(project).packed_object(digest)
    return Response(packed, media_type="application/zstd")


async def _in_thread(function: Any, *arguments: Any) -> Any:
    import asyncio

    return await asyncio.to_thread(function, *arguments)


HANDLERS = [
    *(who_am_i, plan, put_object, commit, retract, changes, stories),
    *(named_session, shared_session, get_object),
]

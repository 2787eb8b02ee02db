"""How programs sign in and out: the device grant of RFC 8628, and who a token is of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from litestar import Response, delete, get, post
from litestar.enums import RequestEncodingType
from litestar.params import Body

from whyfor.model.times import to_iso
from whyfor.model.wire.team import WireDeviceCode, WireDeviceError, WireDeviceToken, WireMember
from whyfor.server.team.context import Asked, SignedIn, Team
from whyfor.team.access import ANYONE, MEMBER
from whyfor.team.devices import CODE_MS, DEVICE_MS, INTERVAL, poll_device, start_device
from whyfor.team.people import revoke_token

GRANT = "urn:ietf:params:oauth:grant-type:device_code"


@dataclass
class DeviceCodeForm:
    name: str = "a device"  # of the machine
    scope: str = ""
    client_id: str = ""


@dataclass
class DeviceTokenForm:
    grant_type: str = ""
    device_code: str = ""
    client_id: str = ""


CodeBody = Annotated[DeviceCodeForm, Body(media_type=RequestEncodingType.URL_ENCODED)]
TokenBody = Annotated[DeviceTokenForm, Body(media_type=RequestEncodingType.URL_ENCODED)]


@post("/api/v1/device/code", opt={"access": ANYONE}, status_code=200, sync_to_thread=True)
def device_code(team: Team, context: Asked, data: CodeBody) -> WireDeviceCode:
    """Begin to let a device in; its person enters `user_code` at `verification_uri`."""
    codes = start_device(team, data.name, data.scope.split(), context.ip)
    page = f"{team.settings.public_url}/device"
    return WireDeviceCode(
        codes.device_code,
        codes.user_code,
        page,
        f"{page}?code={codes.user_code}",
        CODE_MS // 1000,
        INTERVAL,
    )


@post("/api/v1/device/token", opt={"access": ANYONE}, status_code=200, sync_to_thread=True)
def device_token(team: Team, data: TokenBody) -> Response[WireDeviceToken | WireDeviceError]:
    """Ask for the token of a device that may have been let in meanwhile."""
    if data.grant_type != GRANT:
        return Response(WireDeviceError("unsupported_grant_type"), status_code=400)
    issued = poll_device(team, data.device_code)
    if issued.error:
        return Response(WireDeviceError(issued.error), status_code=400)
    return Response(WireDeviceToken(issued.token, " ".join(issued.scopes), DEVICE_MS // 1000))


@get("/api/v1/me", opt={"access": MEMBER}, sync_to_thread=False)
def me(member: SignedIn) -> WireMember:
    """Say who the token is of."""
    return WireMember(
        *(member.name, member.email, member.role, member.kind, member.scopes),
        to_iso(member.expires_at),
    )


@delete("/api/v1/me/token", opt={"access": MEMBER}, status_code=204, sync_to_thread=True)
def sign_device_out(context: Asked, member: SignedIn) -> None:
    """Revoke the token that is used to ask."""
    revoke_token(context.actor, member.token)


HANDLERS = [device_code, device_token, me, sign_device_out]

"""The official SDK's client asks a team server with a token, as an agent does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import anyio
import httpx
import mcp
import pytest
from httpx2 import AsyncClient
from mcp.client.streamable_http import streamable_http_client

from tests.cases import check_each
from tests.store.team import Team
from tests.team.shop import SharedShop, shared_shop

pytestmark = pytest.mark.slow
PING = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
ACCEPTS = {"accept": "application/json, text/event-stream"}


@pytest.fixture(scope="module")
def shop(postgres_18: Team, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SharedShop]:
    with shared_shop(postgres_18, tmp_path_factory.mktemp("shop")) as made:
        yield made


def address(shop: SharedShop) -> str:
    return f"{shop.server.url}{shop.api}/mcp"


@pytest.mark.parametrize("mode", ["legacy", "auto", "2026-07-28"])
def test_an_agent_finds_and_reads_what_members_said(shop: SharedShop, mode: str) -> None:
    headers = {"authorization": f"Bearer {shop.tokens[shop.bob]}"}

    async def talk() -> None:
        async with AsyncClient(headers=headers, timeout=60) as http:
            transport = streamable_http_client(address(shop), http_client=http)
            async with mcp.Client(transport, mode=mode) as client:
                await ask(client)

    async def ask(client: Any) -> None:
        listed = await client.list_tools()
        assert {tool.name for tool in listed.tools} == {"recall", "timeline", "get", "context"}
        found = await client.call_tool("recall", {"query": "heron gate"})
        assert "heron" in found.content[0].text
        [first, *_] = [
            each for each in found.structured_content["items"] if each["kind"] == "session"
        ]
        whole = await client.call_tool("get", {"ids": [first["id"]]})
        assert "build a gate for the heron" in whole.content[0].text
        commit = await client.call_tool("get", {"ids": [f"commit:{shop.ann_commit}"]})
        assert "Paint the heron gate" in commit.content[0].text
        around = await client.call_tool("timeline", {"around": first["id"]})
        assert not around.is_error, around.content
        told = await client.call_tool("context", {})
        assert "Ann" in told.content[0].text
        assert len(told.structured_content["sessions"]) == 2
        wrong = await client.call_tool("recall", {"query": '"'})
        assert wrong.is_error
        with pytest.raises(mcp.MCPError, match="no such tool"):
            await client.call_tool("remember", {"text": "x"})

    anyio.run(talk)


def test_nobody_else_is_answered(shop: SharedShop) -> None:
    unknown = f"{shop.server.url}/api/v1/projects/2147483000/mcp"
    other = {"authorization": f"Bearer {shop.tokens[shop.outsider]}"}
    writer = {"authorization": f"Bearer {shop.served.token(shop.bob, ('write',))}"}
    cookie = {"cookie": f"__Host-whyfor={shop.served.cookie(shop.bob)}"}

    def check(case: tuple[str, dict[str, str], int]) -> None:
        url, headers, status = case
        answer = httpx.post(url, json=PING, headers={**ACCEPTS, **headers}, timeout=30)
        assert answer.status_code == status, answer.text
        assert "recall" not in answer.text

    cases = {
        "nobody": (address(shop), {}, 401),
        "an outsider": (address(shop), other, 404),
        "an unknown project": (unknown, other, 404),
        "a token that may not read": (address(shop), writer, 403),
        "a browser's cookie": (address(shop), cookie, 401),
    }
    check_each(cases.items(), check)
    answers = [
        httpx.post(url, json=PING, headers={**ACCEPTS, **other}, timeout=30).content
        for url in (address(shop), unknown)
    ]
    assert answers[0] == answers[1]


def test_messages_that_make_no_sense_are_refused(shop: SharedShop) -> None:
    own = {"authorization": f"Bearer {shop.tokens[shop.bob]}", **ACCEPTS}

    def check(content: bytes) -> None:
        headers = {**own, "content-type": "application/json"}
        answer = httpx.post(address(shop), content=content, headers=headers, timeout=30)
        assert 400 <= answer.status_code < 500, answer.text

    cases = {"no JSON": b"{", "an array": b"[]", "nothing": b"", "too long": b" " * (2 << 20)}
    check_each(cases.items(), check)

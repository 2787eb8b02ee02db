"""The official SDK's client, in both eras."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import anyio
import pytest

from tests.transcripts import Transcript

from .conftest import FOUND

mcp = pytest.importorskip("mcp")


@pytest.mark.parametrize("mode", ["legacy", "auto", "2026-07-28"])
def test_the_official_client_lists_and_calls_the_tools(
    mode: str, shop: Path, past: Transcript
) -> None:
    server = mcp.StdioServerParameters(
        command=sys.executable, args=["-m", "whyfor", "mcp"], cwd=shop, env=dict(os.environ)
    )

    async def talk() -> None:
        async with mcp.Client(server, mode=mode) as client:
            listed = await client.list_tools()
            assert {"recall", "timeline", "get"} <= {tool.name for tool in listed.tools}
            found = await client.call_tool("recall", {"query": "basket price"})
            assert FOUND in found.content[0].text
            assert found.structured_content["items"]
            wrong = await client.call_tool("recall", {"query": '"'})
            assert wrong.is_error
            with pytest.raises(mcp.MCPError, match="no such tool"):
                await client.call_tool("dance", {})
            resources = await client.list_resources()
            first = await client.read_resource(resources.resources[0].uri)
            assert "Paint the basket green" in first.contents[0].text
            assert len((await client.list_resource_templates()).resource_templates) == 2
            commit = await client.read_resource("whyfor://commit/HEAD")
            assert "Sell things" in commit.contents[0].text
            with pytest.raises(mcp.MCPError, match="no session begins"):
                await client.read_resource("whyfor://session/claude:nowhere")
            prompts = await client.list_prompts()
            told = await client.get_prompt(prompts.prompts[0].name, {"files": "basket.py"})
            assert FOUND in told.messages[0].content.text

    anyio.run(talk)

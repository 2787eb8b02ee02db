"""An editor's session with the language server, over its standard input and output."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types
from pygls.lsp.client import LanguageClient

from tests.conftest import Result
from tests.story.links.workshop import Agent, Clock, Repo, Workshop
from whyfor.config import load
from whyfor.service.editor import EditorFile, explain_line, turn_blocks

Cli = Callable[..., Result]
_WRITTEN = "def tide(hour):\n    return 3 * hour + 4\n"
_BY_HAND = "# by hand\n"
_PROMPT = "Compute the tide ![x](http://127.0.0.1/x.png) ``` <img src=x>"
_SECONDS = 60


@pytest.fixture
def file(tmp_path: Path, home: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file with a person's line, then two of an agent's."""
    repo = Repo.made(tmp_path / "code" / "shop", Clock())
    monkeypatch.chdir(repo.path)
    shop = Workshop(home, repo, cli, hooked=False)
    repo.write("tide.py", _BY_HAND)
    repo.commit("Begin")
    agent = Agent("s1", repo)
    agent.prompt(_PROMPT)
    agent.write("tide.py", _BY_HAND + _WRITTEN)
    agent.say("It is computed.")
    repo.commit("Compute the tide")
    shop.ingest(agent)
    return repo.path / "tide.py"


def talk(conversation: Callable[[LanguageClient], Awaitable[None]]) -> None:
    """Start the server as an editor does, and end it."""

    async def run() -> None:
        client = LanguageClient("test", "1")
        await client.start_io(sys.executable, "-m", "whyfor", "lsp")
        told = types.InitializeParams(capabilities=types.ClientCapabilities(), process_id=None)
        await client.initialize_async(told)
        client.initialized(types.InitializedParams())
        try:
            await conversation(client)
        finally:
            await client.shutdown_async(None)
            client.exit(None)
            await client.stop()  # type: ignore[no-untyped-call]

    asyncio.run(asyncio.wait_for(run(), _SECONDS))


def open_document(client: LanguageClient, uri: str, text: str) -> None:
    document = types.TextDocumentItem(uri=uri, language_id="python", version=1, text=text)
    client.text_document_did_open(types.DidOpenTextDocumentParams(document))


async def hover(client: LanguageClient, uri: str, line: int) -> str | None:
    place = types.Position(line=line, character=0)
    found = await client.text_document_hover_async(
        types.HoverParams(types.TextDocumentIdentifier(uri), place)
    )
    if found is None:
        return None
    assert isinstance(found.contents, types.MarkupContent)
    return found.contents.value


def test_an_editor_is_told_the_turn_of_a_line_and_opens_its_conversation(file: Path) -> None:
    shown: list[str] = []

    async def conversation(client: LanguageClient) -> None:
        @client.feature(types.WINDOW_SHOW_DOCUMENT)  # type: ignore[untyped-decorator]
        def show(params: types.ShowDocumentParams) -> types.ShowDocumentResult:
            shown.append(params.uri)
            return types.ShowDocumentResult(success=True)

        uri = file.as_uri()
        unsaved = "# not saved yet\n" + file.read_text()
        open_document(client, uri, unsaved)
        assert await hover(client, uri, 0) is None
        told = await hover(client, uri, 2)
        assert told is not None
        assert "**Claude Code** · turn 1" in told
        assert "It is computed." in told
        assert "Compute the tide" in told
        lenses = await client.text_document_code_lens_async(
            types.CodeLensParams(types.TextDocumentIdentifier(uri))
        )
        assert lenses is not None
        [lens] = lenses
        assert (lens.range.start.line, lens.range.end.line) == (2, 3)
        assert lens.command is not None
        assert lens.command.title.startswith("Claude Code T1: Compute the tide")
        given: Any = lens.command.arguments
        opened = await client.workspace_execute_command_async(
            types.ExecuteCommandParams(lens.command.command, given)
        )
        assert shown == [opened]

    talk(conversation)
    [uri] = shown
    path = Path(uri.removeprefix("file://"))
    assert path.stat().st_mode & 0o077 == 0
    assert "It is computed." in path.read_text()


def test_files_outside_of_a_repository_and_what_is_no_file_show_nothing(tmp_path: Path) -> None:
    loose = tmp_path / "loose.txt"
    loose.write_text("a line\n")

    async def conversation(client: LanguageClient) -> None:
        for uri in (loose.as_uri(), "untitled:Untitled-1"):
            open_document(client, uri, "a line\n")
            assert await hover(client, uri, 0) is None
            found = await client.text_document_code_lens_async(
                types.CodeLensParams(types.TextDocumentIdentifier(uri))
            )
            assert not found

    talk(conversation)


def test_nothing_that_was_said_can_act_in_an_editor(file: Path) -> None:
    told = explain_line(load(), EditorFile(file, file.read_text()), 2)
    assert told is not None
    before, _, after = told.partition(_PROMPT)
    assert before.endswith("````text\n")
    assert after.startswith("\n````")


def test_blocks_are_runs_of_one_turn(file: Path) -> None:
    text = file.read_text() + "# one more by hand\n"
    [block] = turn_blocks(load(), EditorFile(file, text))
    assert (block.first, block.last, block.agent, block.turn) == (2, 3, "claude", 1)

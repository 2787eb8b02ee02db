"""The language server, over standard input and output: hover, code lenses, and a command that opens
a conversation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lsprotocol import types
from pygls.lsp.server import LanguageServer
from pygls.uris import to_fs_path

from whyfor import __version__, config
from whyfor.model.errors import NotFound, WhyforError
from whyfor.service.conversation_file import write_conversation
from whyfor.service.editor import EditorFile, TurnBlock, explain_line, turn_blocks
from whyfor.terminal import debug

OPEN = "whyfor.openConversation"
_KEPT = 20  # files whose blocks are remembered


class WhyforServer(LanguageServer):
    """Knows the blocks of the files that were asked about last, by their versions."""

    def __init__(self) -> None:
        super().__init__("whyfor", __version__)
        self.settings = config.load()
        self._blocks: dict[tuple[str, int | None], list[TurnBlock]] = {}

    def file_of(self, uri: str) -> EditorFile | None:
        """Return a file that an editor has open; None for what is no file."""
        path = to_fs_path(uri)
        if not path or not uri.startswith("file:"):
            return None
        return EditorFile(Path(path), self.workspace.get_text_document(uri).source)

    def blocks_of(self, uri: str) -> list[TurnBlock]:
        """Return the blocks of a file; computed once for each version of its text."""
        key = (uri, self.workspace.get_text_document(uri).version)
        if key not in self._blocks:
            file = self.file_of(uri)
            self._blocks[key] = turn_blocks(self.settings, file) if file else []
            while len(self._blocks) > _KEPT:
                del self._blocks[next(iter(self._blocks))]
        return self._blocks[key]

    def forget_blocks(self, uri: str) -> None:
        """A commit may have come: compute the blocks of a file anew."""
        for key in [key for key in self._blocks if key[0] == uri]:
            del self._blocks[key]


def make_editor_server() -> WhyforServer:
    """Return the server with its features. An expected error, such as a file outside of any
    repository, shows nothing."""
    server = WhyforServer()

    @server.feature(types.TEXT_DOCUMENT_HOVER)
    @server.thread()
    def hover(params: types.HoverParams) -> types.Hover | None:
        try:
            file = server.file_of(params.text_document.uri)
            told = explain_line(server.settings, file, params.position.line + 1) if file else None
        except WhyforError as error:
            debug(f"hover: {error.message}")
            return None
        if told is None:
            return None
        return types.Hover(types.MarkupContent(types.MarkupKind.Markdown, told))

    @server.feature(types.TEXT_DOCUMENT_CODE_LENS)
    @server.thread()
    def code_lens(params: types.CodeLensParams) -> list[types.CodeLens]:
        try:
            found = server.blocks_of(params.text_document.uri)
        except WhyforError as error:
            debug(f"code lens: {error.message}")
            return []
        return [_lens(block) for block in found]

    @server.feature(types.TEXT_DOCUMENT_DID_SAVE)
    def saved(params: types.DidSaveTextDocumentParams) -> None:
        server.forget_blocks(params.text_document.uri)

    @server.command(OPEN)
    @server.thread()
    def open_conversation(agent: str, session_id: str, *_: Any) -> str | None:
        try:
            path = write_conversation(server.settings, agent, session_id)
        except WhyforError as error:
            _tell(server, error)
            return None
        uri = path.as_uri()
        server.window_show_document(types.ShowDocumentParams(uri=uri, take_focus=True))
        return uri

    return server


def _lens(block: TurnBlock) -> types.CodeLens:
    at = types.Position(line=block.first - 1, character=0)
    end = types.Position(line=block.last - 1, character=0)
    arguments = [block.agent, block.session_id]
    return types.CodeLens(types.Range(at, end), types.Command(block.title, OPEN, None, arguments))


def _tell(server: WhyforServer, error: WhyforError) -> None:
    kind = types.MessageType.Info if isinstance(error, NotFound) else types.MessageType.Error
    text = f"{error.message}. {error.hint}"
    server.window_show_message(types.ShowMessageParams(kind, text))


def serve_editor() -> None:
    """Serve the editor that started this process, until it goes."""
    make_editor_server().start_io()

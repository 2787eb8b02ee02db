"""Serve one client on stdin and stdout, a message a line, until it closes stdin."""

from __future__ import annotations

import gc
import os
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from queue import Queue
from typing import Any, BinaryIO

import msgspec

from whyfor.mcp.protocol import (
    BATCHED,
    INTERNAL_ERROR,
    INVALID_REQUEST,
    McpBatch,
    McpRequest,
    McpServer,
    ProtocolError,
    RequestId,
    failure,
    read_message,
)

LINE_MAX = 1 << 20  # bytes of a message; what is longer is refused without being kept
_WAITING_MAX = 1_000  # messages that are read ahead
_PIECE = 1 << 16

Message = McpRequest | McpBatch | ProtocolError


def serve_stdio(folder: Path | None = None) -> int:
    """Serve the client that started this process; return the exit code."""
    if sys.stdin is None or sys.stdout is None:
        return 0
    from whyfor.mcp.tools import make_server
    from whyfor.service.own_agents import use_own_agents

    use_own_agents()
    os.umask(0o077)
    gc.enable()  # a short-lived command goes without; this may live for days
    source, sink = sys.stdin.fileno(), sys.stdout.buffer
    sys.stdout = sys.stderr  # nothing but messages may reach the client
    try:
        _Connection(make_server(folder or Path.cwd()), source, sink).serve()
    except (BrokenPipeError, KeyboardInterrupt):
        pass  # the client is gone
    finally:
        _let_go(sink)
    return 0


class _Connection:
    """One client. A thread of its own reads, so that a request can be cancelled before, or while,
    it is worked on."""

    def __init__(self, server: McpServer, source: int, sink: BinaryIO) -> None:
        self.server = server
        self.source = source  # a file's number: a thread that waits in it does not hold up the end
        self.sink = sink
        self.waiting: Queue[Message | None] = Queue(_WAITING_MAX)
        self.open: set[RequestId] = set()  # read, not answered
        self.cancelled: set[RequestId] = set()

    def serve(self) -> None:
        threading.Thread(target=self._read, daemon=True).start()
        while (message := self.waiting.get()) is not None:
            if isinstance(message, ProtocolError):
                self._write(failure(None, message))
            elif isinstance(message, McpBatch):
                self._answer_batch(message)
            elif (answer := self._answer(message)) is not None:
                self._write(answer)

    def _answer(self, request: McpRequest) -> dict[str, Any] | None:
        """Return the response; None if nobody waits for one."""
        ident = request.ident
        if ident is None:
            return None
        answer = None
        if ident not in self.cancelled:
            answer = _guarded(self.server.answer, request)
        self.open.discard(ident)
        if ident in self.cancelled:
            self.cancelled.discard(ident)
            return None
        return answer

    def _answer_batch(self, batch: McpBatch) -> None:
        if self.server.version != BATCHED:
            self._write(failure(None, ProtocolError(INVALID_REQUEST, "one message a line")))
            return
        answers = []
        for each in batch.messages:
            if isinstance(each, ProtocolError):
                answers.append(failure(None, each))
            elif (answer := self._answer(each)) is not None:
                answers.append(answer)
        if answers:
            self._write(answers)

    def _write(self, message: object) -> None:
        self.sink.write(encode_message(message) + b"\n")
        self.sink.flush()

    # -- the reading thread ----------------------------------------------------------------------

    def _read(self) -> None:
        try:
            for line in read_lines(self.source):
                if line is None:
                    self.waiting.put(ProtocolError(INVALID_REQUEST, "a message of over 1 MiB"))
                elif line.strip():
                    self._note(line)
        finally:
            self.waiting.put(None)

    def _note(self, line: bytes) -> None:
        try:
            message = read_message(line)
        except ProtocolError as error:
            self.waiting.put(error)
            return
        if isinstance(message, McpRequest) and message.method == "notifications/cancelled":
            ident = message.params.get("requestId")
            if isinstance(ident, str | int) and ident in self.open:
                self.cancelled.add(ident)
        elif message is not None:
            each = message.messages if isinstance(message, McpBatch) else [message]
            self.open |= {
                one.ident for one in each if isinstance(one, McpRequest) and one.ident is not None
            }
            self.waiting.put(message)


def read_lines(source: int) -> Iterator[bytes | None]:
    """Yield the lines of a file until its end; None for one that is too long, of which nothing is
    kept."""
    kept, too_long = b"", False
    while piece := _piece(source):
        *ended, rest = piece.split(b"\n")
        for line in ended:
            too_long = too_long or len(kept) + len(line) > LINE_MAX
            yield None if too_long else kept + line
            kept, too_long = b"", False
        too_long = too_long or len(kept) + len(rest) > LINE_MAX
        kept = b"" if too_long else kept + rest
    if kept or too_long:
        yield None if too_long else kept


def _piece(source: int) -> bytes:
    try:
        return os.read(source, _PIECE)
    except OSError:
        return b""  # closed under our hands


def _guarded(
    answer: Callable[[McpRequest], dict[str, Any] | None], request: McpRequest
) -> dict[str, Any] | None:
    """Return the answer, or that there was an error of ours: the next request is answered again."""
    try:
        return answer(request)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # noqa: BLE001 - a panic in a Rust library is not an Exception
        if os.environ.get("WHYFOR_DEBUG"):
            import traceback

            traceback.print_exc(file=sys.stderr)
        told = f"unexpected: {type(error).__name__}. This is a bug; WHYFOR_DEBUG=1 shows where."
        return failure(request.ident, ProtocolError(INTERNAL_ERROR, told))


def encode_message(message: object) -> bytes:
    """Return a message on one line; half a surrogate pair in a transcript becomes a question
    mark."""
    try:
        return msgspec.json.encode(message)
    except UnicodeEncodeError:
        return msgspec.json.encode(_encodable(msgspec.to_builtins(message)))


def _encodable(value: Any) -> Any:
    if isinstance(value, dict):
        return {_encodable(key): _encodable(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_encodable(each) for each in value]
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value


def _let_go(sink: BinaryIO) -> None:
    """Discard what nobody reads, so that Python does not report a broken pipe at exit."""
    try:
        sink.flush()
    except OSError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sink.fileno())
        os.close(nowhere)

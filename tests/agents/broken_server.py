"""A server that is broken in every way, and that lets a working one answer between."""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

# Ways to be broken while it runs; `down` comes last, because it stays down.
WORST = ("hang", "garbage", "close", "down")  # where each costs much time
BROKEN = ("refuses", "no HTTP", *WORST)
_ANSWERS = {
    "garbage": b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n\xff{{allow]]",
    "refuses": b"HTTP/1.1 500 No\r\ncontent-length: 0\r\n\r\n",
    "no HTTP": b"allow allow allow\r\n\r\n",
}


class BrokenServer:
    """Takes connections and answers them as `how` says; `pass` asks the server on `behind`."""

    def __init__(self, behind: int = 0) -> None:
        self.how = "hang"
        self.asked = 0
        self.behind = behind
        self.held: list[socket.socket] = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self.listener.getsockname()[1])
        threading.Thread(target=self._serve, daemon=True).start()

    def break_it(self, how: str) -> None:
        self.how = how
        if how == "down":
            self.close()

    def _serve(self) -> None:
        while True:
            try:
                line, _ = self.listener.accept()
                self.asked += 1
                sent = line.recv(1 << 16)
                if self.how == "hang":
                    self.held.append(line)
                elif self.how == "pass":
                    self._pass_on(line, sent)
                else:
                    line.sendall(_ANSWERS.get(self.how, b""))
                    line.close()
            except OSError:
                return

    def _pass_on(self, line: socket.socket, sent: bytes) -> None:
        real = socket.create_connection(("127.0.0.1", self.behind))
        self.held += [line, real]
        sent = sent.replace(b":%d" % self.port, b":%d" % self.behind, 1)
        # The next request is to come on a connection of its own.
        sent = re.sub(rb"\r\nconnection: [^\r]*", b"", sent, count=1, flags=re.I)
        real.sendall(sent.replace(b"\r\n", b"\r\nConnection: close\r\n", 1))
        for pair in ((line, real), (real, line)):
            threading.Thread(target=_pump, args=pair, daemon=True).start()

    def close(self) -> None:
        with suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        for line in (*self.held, self.listener):
            line.close()


def _pump(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while part := source.recv(1 << 16):
            target.sendall(part)
    with suppress(OSError):
        target.shutdown(socket.SHUT_WR)


@contextmanager
def broken_server(behind: int = 0) -> Iterator[BrokenServer]:
    made = BrokenServer(behind)
    try:
        yield made
    finally:
        made.close()

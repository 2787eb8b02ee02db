"""Asks a server on another port than the one in the agent's settings for the person's answer.

Read only where `init --rules` asked for it and a server says in serve.json that it runs elsewhere.
The agent's dialog is shown meanwhile. A server that is gone, hangs or talks nonsense gives nothing.
"""

import posix

import announce  # type: ignore[import-not-found]

PATH = b"/whyfor/answers/"
SOON = 3.0  # seconds in which a server says that it listens
LONGEST = 595_000  # ms for an answer: less than the agent lets us run
LARGEST = 64 << 10  # bytes of an answer
GO_ON = b"HTTP/1.1 100 "
DONE = b"HTTP/1.1 200 "


def answer(home: bytes, agent: bytes, payload: bytes, settings_port: bytes) -> bytes:
    """Return what to print; empty if nobody answers, or the agent asks that server by itself."""
    port = served_port(home)
    key = announce.content(home + b"/hook/answer.key").strip()
    if not port or port == int(settings_port) or not key:
        return b""
    return asked(port, request(port, agent, key, payload), payload)


def served_port(home: bytes) -> int:
    """Return the port of the server of this home; 0 if none runs."""
    told = announce.content(home + b"/serve.json")
    pid, port = number(told, b'"pid":'), number(told, b'"port":')
    if not pid or not port:
        return 0
    posix.kill(pid, 0)  # raises if that process is gone, or somebody else's
    return port


def number(told: bytes, name: bytes) -> int:
    digits = told.partition(name)[2].strip().partition(b",")[0].partition(b"}")[0].strip()
    return int(digits) if digits.isdigit() else 0


def request(port: int, agent: bytes, key: bytes, payload: bytes) -> bytes:
    lines = (
        b"POST %s%s HTTP/1.1" % (PATH, agent),
        b"Host: 127.0.0.1:%d" % port,
        b"Authorization: Bearer " + key,
        b"Content-Type: application/json",
        b"Content-Length: %d" % len(payload),
        b"Expect: 100-continue",
        b"Connection: close",
    )
    return b"\r\n".join((*lines, b"", b""))


def asked(port: int, head: bytes, payload: bytes) -> bytes:
    """Return the body of the answer. A server that does not soon say that it listens hangs."""
    import _socket

    line = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
    line.settimeout(SOON)
    line.connect(("127.0.0.1", port))
    line.sendall(head)
    if not received_head(line).startswith(GO_ON):
        return b""
    line.sendall(payload)
    found = received_head(line) if is_answered(line) else b""
    if not found.startswith(DONE):
        return b""
    body = found.partition(b"\r\n\r\n")[2] + rest(line, LARGEST)
    return body if is_json(body) else b""


def is_json(body: bytes) -> bool:
    """Return whether a body is a whole answer: an agent may show anything else on its screen."""
    import json  # here: only a person's answer takes so long that this does not matter

    try:
        return len(body) < LARGEST and isinstance(json.loads(body), dict)
    except ValueError:
        return False


def is_answered(line: object) -> bool:
    """Wait for an answer; given up when whoever reads what we print is gone."""
    import select

    both = select.poll()
    both.register(line.fileno(), select.POLLIN)  # type: ignore[attr-defined]
    both.register(1, 0)
    ready = [number for number, _ in both.poll(LONGEST)]
    return bool(ready) and 1 not in ready


def received_head(line: object) -> bytes:
    """Return what came up to the end of a head; what came with it is behind it."""
    found = b""
    while b"\r\n\r\n" not in found and len(found) < LARGEST:
        part = line.recv(4096)  # type: ignore[attr-defined]
        if not part:
            return b""
        found += part
    return found


def rest(line: object, most: int) -> bytes:
    """Return what comes until the server closes."""
    found = b""
    while len(found) < most:
        part = line.recv(4096)  # type: ignore[attr-defined]
        if not part:
            break
        found += part
    return found

"""Whose connection is it? Linux says, for both ends of a connection on this machine, which user
has it.

A cookie or a link that another user got hold of does then not help them, nor does standing
between a browser and us. Other systems do not say; there a key is all that counts.
"""

from __future__ import annotations

import os
import socket
import struct
import sys

_SOCK_DIAG = 4  # the netlink family, of NETLINK_SOCK_DIAG
_BY_FAMILY = 20  # the message, SOCK_DIAG_BY_FAMILY
_REQUEST = 1
_ANY = 0xFFFFFFFF
_HEAD = struct.Struct("=IHHII")  # length, type, flags, sequence, process
_ASKED = struct.Struct("=BBBBI")  # family, protocol, extensions, padding, states
_UID_AT = _HEAD.size + 4 + 48 + 12  # after states, the socket's name, and its timer and queues
Address = tuple[str, int | None] | None


def is_foreign(client: Address, server: Address) -> bool:
    """Return whether a user other than ours and root is at the other end; False if the system does
    not say."""
    user = find_user(client, server) if client and server else None
    return user is not None and user not in (0, os.getuid())


def find_user(client: tuple[str, int | None], server: tuple[str, int | None]) -> int | None:
    """Return the user id at the client's end of a connection by IPv4; None if the system does
    not say."""
    if sys.platform != "linux":
        return None
    try:
        name = struct.pack("!HH", client[1], server[1])
        name += socket.inet_aton(client[0]).ljust(16, b"\0")
        name += socket.inet_aton(server[0]).ljust(16, b"\0")
        name += struct.pack("=III", 0, _ANY, _ANY)  # any interface, any cookie
        asked = _ASKED.pack(socket.AF_INET, socket.IPPROTO_TCP, 0, 0, _ANY) + name
        head = _HEAD.pack(_HEAD.size + len(asked), _BY_FAMILY, _REQUEST, 1, 0)
        with socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM, _SOCK_DIAG) as system:
            system.send(head + asked)
            answer = system.recv(4096, socket.MSG_DONTWAIT)
    except OSError:  # no address of IPv4, or a system that does not let us ask
        return None
    if len(answer) < _UID_AT + 4 or _HEAD.unpack_from(answer)[1] != _BY_FAMILY:
        return None
    (user,) = struct.unpack_from("=I", answer, _UID_AT)
    return int(user)

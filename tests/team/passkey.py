"""A passkey in software: what a browser and its authenticator do, for tests."""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import struct
from typing import Any

import cbor2
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec

from tests.team.served import PUBLIC


def encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


class SoftPasskey:
    """One key pair; `origin` and `domain` are what the browser says it is on."""

    def __init__(self, origin: str = PUBLIC, domain: str = "team.example") -> None:
        self.origin = origin
        self.domain = domain
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.id = secrets.token_bytes(16)
        self.count = 0

    def create(self, options: dict[str, Any]) -> str:
        """Answer the options of a registration."""
        numbers = self.key.public_key().public_numbers()
        public = {1: 2, 3: -7, -1: 1, -2: numbers.x.to_bytes(32), -3: numbers.y.to_bytes(32)}
        attested = bytes(16) + struct.pack(">H", len(self.id)) + self.id + cbor2.dumps(public)
        data = self._data(0x45) + attested
        sealed = cbor2.dumps({"fmt": "none", "attStmt": {}, "authData": data})
        client = self._client("webauthn.create", options["challenge"])
        response = {"clientDataJSON": encode(client), "attestationObject": encode(sealed)}
        return self._answer(response)

    def get(self, options: dict[str, Any]) -> str:
        """Answer the options of a sign-in."""
        self.count += 1
        client = self._client("webauthn.get", options["challenge"])
        data = self._data(0x05)
        signed = self.key.sign(data + hashlib.sha256(client).digest(), ec.ECDSA(hashes.SHA256()))
        return self._answer(
            {
                "clientDataJSON": encode(client),
                "authenticatorData": encode(data),
                "signature": encode(signed),
            }
        )

    def _data(self, flags: int) -> bytes:
        return hashlib.sha256(self.domain.encode()).digest() + struct.pack(">BI", flags, self.count)

    def _client(self, kind: str, challenge: str) -> bytes:
        said = {"type": kind, "challenge": challenge, "origin": self.origin}
        return json.dumps(said).encode()

    def _answer(self, response: dict[str, str]) -> str:
        name = encode(self.id)
        return json.dumps({"id": name, "rawId": name, "type": "public-key", "response": response})

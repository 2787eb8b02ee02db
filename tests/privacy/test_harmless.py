"""What stands near a word like password and is no secret stays, and so does every copy of it."""

from __future__ import annotations

import json

import pytest

from whyfor.privacy.engine import Engine
from whyfor.privacy.redactor import Redactor
from whyfor.privacy.rules import load_rules
from whyfor.privacy.samples import expand

ENGINE = Engine(load_rules())
KEY_LINES = [expand("{b64}" + " " * n).strip() for n in range(6)]
HARMLESS = {
    "a table cell": "| 2 | `security/hide-admin-password-in-logs` | gitlab2-runner | High |\ngitlab2-runner",
    "a table column": "| secret | charm |\n|---|---|\n| none | ingress2-k8s |",
    "an expression": "flags.PWD = *envFlags.PWD2",
    "a comment": "digest(password); // GOOD: PBKDF2/Argon2",
    "a count": "Original token count: 12\nOutput:\nIC_kwDOQRbenM8AAAABlk2mJw",
    "a variable": "login({\n  idToken: marketboxJwt,\n  publicKey,\n})",
    "alternatives": "- **Issue**: the secret lies in the store used for S3/Azure2/GCS backups",
    "an address": "For example 'secret:2854c47f-711a-e56f-a8ce-3c0f81a45f40' (its id)",
    "a head without a body": f"token: {expand('{jwt}').split('.')[0]}",
    "a made-up token": f'secret := []string{{"jwt-ish", "{".".join(expand("{jwt}").split(".")[:2])}.sig"}}',
    "a test result": "--- PASS: TestReadsAll/trailing_byte#01 (0.00s)\n--- PASS: TestCut2Words/#00 (0.01s)",
    "other names in a record": '{"PASSWORD": "enable=true", "next": 1}',
    "the letters of an image": "data:image/png;base64,iVBORw0KGgo"
    + expand("{b200}")
    + "/MDP/"
    + expand("{b64}"),
    "a domain in a table": "name\tanswer\nb5n.1password.com.\tocsp2.example.org.\n1password.com\tntp2.example.org.\n",
    "a folder": "pwd -P >| /var/folders/t_/kp114qlx1dg45d0h08df9lxh0000gn/T/out-102a-cwd",
    "a hash with a prefix": f";SecureToken; ;Kerberosv5;;m@LKDC:SHA1.{expand('{H40}')};",
    "a method": "The password is base64-encoded, then hashed with argon2id",
    "a rule": "password: at least 12 characters, min8lower",
    "a reference": "DB_PASSWORD=${DB_PASSWORD2} and password: process.env.DB_PASSWORD2",
    "a placeholder": "postgres://app:%3Cpassword%3E@db/app",
    "a list of names": "[\n    'encode_password',\n    'encodesql92',\n    'GetKeySymbol2Names',\n]",
    "a type": '{"passphrase": "string?"}',
    "an option": "prompt_pwd --full-length-dirs=2",
    "other languages": "Passwort vergessen? contraseña incorrecta, intento 3/5. 密码必须包含8个字符",
}


def _left(text: str) -> str:
    return Redactor(ENGINE).plain(text.encode()).decode()


@pytest.mark.parametrize("text", HARMLESS.values(), ids=HARMLESS)
def test_what_only_stands_near_a_word_for_a_secret_stays(text: str) -> None:
    assert _left(text) == text
    record = json.dumps({"message": {"content": text}}, ensure_ascii=False).encode()
    assert Redactor(ENGINE).jsonl(record) == record


@pytest.mark.parametrize("value", ["gitlab2-runner", "hunter2zebra", "Winter!2031x"])
def test_a_word_like_others_goes_where_it_is_assigned_and_nowhere_else(value: str) -> None:
    text = f"DB_PASSWORD={value}\nwe deploy {value} every day, see {value}/main\n"
    assert _left(text) == text.replace(f"={value}", "=[REDACTED:password#1]")


def test_a_value_that_stands_nowhere_by_chance_goes_everywhere() -> None:
    value = expand("{A20}")
    assert value not in _left(
        f"DB_PASSWORD={value}\nwe deploy {value} every day, see {value}/main\n"
    )


def test_lines_that_a_public_key_shares_with_its_private_key_stay_in_it() -> None:
    def block(kind: str, lines: list[str]) -> str:
        return "\n".join(
            [f"-----BEGIN PGP {kind} KEY BLOCK-----", *lines, f"-----END PGP {kind} KEY BLOCK-----"]
        )

    private = [json.dumps({"text": line}) for line in block("PRIVATE", KEY_LINES).split("\n")]
    public = json.dumps({"text": block("PUBLIC", KEY_LINES[:3])})
    left = Redactor(ENGINE).jsonl("\n".join([*private, public]).encode()).decode()
    assert left.endswith(public)
    assert not [line for line in KEY_LINES if line in left.removesuffix(public)]

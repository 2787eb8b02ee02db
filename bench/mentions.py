"""Secrets as people and files mention them: in a sentence, a table, a command, in ten languages.

A template holds ‹secret›, or ‹base64› or ‹percent› for the secret in that form. Passwords are of
every strength, keys only drawn by chance. The twins of a template hold something harmless in the
same place. The templates of mentions_held_out.py are measured and never listed.
"""

from __future__ import annotations

import string
from base64 import b64encode
from collections.abc import Iterator
from random import Random
from typing import NamedTuple
from urllib.parse import quote

import mentions_held_out as held_out

PASSWORDS: dict[str, tuple[str, ...]] = {
    "prose": (
        "I think the password might be ‹secret›, not sure",
        "changed the root password from ‹secret› to something else",
        "type ‹secret› at the password prompt",
        "enter ‹secret› when asked for the password",
        "**Password:** `‹secret›`",
        "Password — ‹secret›",
        "I made a new password, it's ‹secret›",
        "ssh ‹user›@‹host› (pw ‹secret›)",
        "pwd: ‹secret›",
        "creds are ‹user›:‹secret› for the dashboard",
        "what I used as password that day was ‹secret›",
        "The password (the one for staging) is: «‹secret›»",
        "the password is ‹secret›",
        "Password for staging is ‹secret›",
        "My password is ‹secret›, please log in and check.",
        "ssh into ‹host› as ‹user› with password ‹secret›",
        "The db password has been set to ‹secret› for now.",
        "use the password `‹secret›` for the demo user",
        "user: ‹user› / pass: ‹secret›",
        "here are the credentials: ‹user› / ‹secret›",
        'I log in as ‹user› with the password "‹secret›" and get a 403',
        "password for the backup archive: ‹secret›",
        "the vpn pwd was ‹secret› last week",
        "set the admin password to ‹secret› and restart",
        "‹secret› is the password, do not share it",
    ),
    "other languages": (
        "passwort: ‹secret›",
        "Passwort ist ‹secret›",
        "contraseña: ‹secret›",
        "mi clave es ‹secret›",
        "mot de passe : ‹secret›",
        "Senha: ‹secret›",
        "пароль ‹secret›",
        "Пароль: ‹secret›",
        "密码: ‹secret›",
        "口令是 ‹secret›",
        "パスワード：‹secret›",
        "암호: ‹secret›",
        "पासवर्ड: ‹secret›",
        "كلمة السر هي ‹secret›",
        "পাসওয়ার্ড হলো ‹secret›",
        "parola: ‹secret›",
        "wachtwoord: ‹secret›",
        "hasło: ‹secret›",
        "mật khẩu: ‹secret›",
        "sandi: ‹secret›",
    ),
    "SQL": (
        "CREATE USER ‹user› WITH LOGIN PASSWORD '‹secret›'",
        "CREATE USER '‹user›'@'localhost' IDENTIFIED BY '‹secret›';",
        "ALTER USER ‹user› WITH ENCRYPTED PASSWORD '‹secret›';",
        "ALTER LOGIN ‹user› WITH PASSWORD = '‹secret›'",
        "UPDATE users SET password = '‹secret›' WHERE name = '‹user›';",
    ),
    "CSV and TSV": (
        "User Name,Password\n‹user›,‹secret›\n",
        '"host","user","password"\n"‹host›","‹user›","‹secret›"\n',
        "login;password;role\n‹user›;‹secret›;admin\n",
        "| user | password |\n|---|---|\n| ‹user› | ‹secret› |\n",
        "id,user,password\n7,‹user›,‹secret›\n",
        "name\tpassword\n‹user›\t‹secret›\n",
        "username,password,email\nann,‹secret›,ann@‹host›\nbob,x,bob@‹host›\n",
    ),
    "YAML, INI, env, properties": (
        "DB_PASSWORD=‹secret›\nDB_PORT=5432\n",
        "db:\n  user: ‹user›\n  password: ‹secret›\n",
        "[database]\nuser = ‹user›\npassword = ‹secret›\n",
        "mail.smtp.password=‹secret›",
        'MYSQL_ROOT_PASSWORD: "‹secret›"',
    ),
    "JSON and TOML": (
        '{"user": "‹user›", "password": "‹secret›", "port": 5432}',
        'db_password = "‹secret›"\n',
        "{'passwd': '‹secret›'}",
    ),
    "Terraform": (
        'variable "db_password" {\n  description = "of the db"\n  default     = "‹secret›"\n}',
        'admin_password = "‹secret›"\nregion = "eu"\n',
        "export TF_VAR_db_password=‹secret›",
    ),
    "connection strings": (
        "postgres://‹user›:‹percent›@‹host›:5432/shop",
        "Server=‹host›;Database=shop;User Id=‹user›;Password=‹secret›;",
        "amqp://‹user›:‹percent›@‹host›//",
        "redis://:‹percent›@‹host›:6379/0",
    ),
    "commands": (
        "curl -u ‹user›:‹secret› https://‹host›/api",
        "docker login -u ‹user› -p '‹secret›' ‹host›",
        "mysql -u ‹user› -p'‹secret›' shop",
        "htpasswd -b .htpasswd ‹user› '‹secret›'",
        "kubectl create secret generic db --from-literal=db-password='‹secret›'",
        "echo '‹secret›' | docker login --username ‹user› --password-stdin ‹host›",
        "PGPASSWORD='‹secret›' psql -h ‹host› -U ‹user›",
    ),
    "files of tools": (
        "default login ‹user› password ‹secret›",
        "*:*:*:‹user›:‹secret›",
        "[wifi-security]\nkey-mgmt=wpa-psk\npsk=‹secret›\n",
        "<user>‹user›</user>\n<password>‹secret›</password>\n",
        "[client]\nuser=‹user›\npassword='‹secret›'\nhost=‹host›\n",
        "stringData:\n  username: ‹user›\n  password: ‹secret›\n",
        "machine ‹host› login ‹user› password ‹secret›",
        "‹host›:5432:shop:‹user›:‹secret›",
        "ansible_become_password: ‹secret›",
        "‹host› ansible_user=‹user› ansible_password=‹secret›",
        "kind: Secret\napiVersion: v1\ndata:\n  db-password: ‹base64›\ntype: Opaque\n",
        "<password>‹secret›</password>",
    ),
}

KEYS: dict[str, tuple[str, ...]] = {
    "prose": (
        "the key is ‹secret›",
        "Deploy with the license key ‹secret›",
        "the token you asked for:\n\n```\n‹secret›\n```\n",
        "Our webhook secret: ‹secret›",
        "put ‹secret› in as the access token",
        "This is the new key for the search service ‹secret›",
        "here is my stripe key, use it for the deploy: ‹secret› thanks",
        "The token for the registry is ‹secret›",
        "my api key is ‹secret› and it should work",
        "I generated a new access token, here you go: ‹secret›",
        "Use this key when you call the weather service: ‹secret›",
        "can you test with this token? ‹secret›",
        "the client secret of the app is ‹secret›.",
        "take ‹secret› as the api key",
        "Token:\n‹secret›",
    ),
    "other languages": (
        "Schlüssel: ‹secret›",
        "mi token es ‹secret›",
        "la clé est ‹secret›",
        "chave: ‹secret›",
        "токен: ‹secret›",
        "密钥是 ‹secret›",
        "トークン: ‹secret›",
        "API 키: ‹secret›",
    ),
    "cookies": (
        "Cookie: PHPSESSID=‹secret›",
        "cookie: a=1; laravel_session=‹secret›; b=2",
        'requests.get(url, cookies={"session": "‹secret›"})',
        "wget --header='Cookie: session=‹secret›' https://‹host›/",
        "Cookie: sessionid=‹secret›; theme=dark",
        "Set-Cookie: sid=‹secret›; Path=/; HttpOnly",
        "curl --cookie 'auth_token=‹secret›' https://‹host›/",
        "< set-cookie: JSESSIONID=‹secret›; Path=/",
    ),
    "Terraform": (
        'variable "api_token" {\n  default = "‹secret›"\n}',
        'stripe_api_key = "‹secret›"\n',
    ),
    "CSV and TSV": ("name,token,created\nci,‹secret›,2031-01-02\n",),
    "YAML, INI, env, properties": (
        "STRIPE_KEY=‹secret›",
        "api:\n  key: ‹secret›\n",
        "secret_key_base: ‹secret›",
    ),
    "commands": (
        "curl -H 'X-Api-Key: ‹secret›' https://‹host›/",
        "curl -H 'Authorization: Bearer ‹secret›' https://‹host›/",
        "npm config set //‹host›/:_authToken ‹secret›",
    ),
    "files of tools": (
        "machine ‹host› login token password ‹secret›",
        "always-auth=true\n_auth=‹secret›\n",
        'credentials "‹host›" {\n  token = "‹secret›"\n}',
        "apiVersion: v1\nkind: Secret\ndata:\n  api-key: ‹base64›\n",
        "[mailer]\napi_key = ‹secret›\n",
    ),
}

HARMLESS: tuple[str, ...] = (
    "The password is required.",
    "password is incorrect for user app2",
    "The password is stored base64-encoded in the db2 table.",
    "the token is a sha256 of the address",
    "Password for staging is in 1Password, ask ops.",
    "the key is ed25519, not rsa4096",
    "Here is the token flow: oauth2-proxy asks http://auth.local:9000/v1",
    "password: string | undefined",
    "password: { type: String, minlength: 8 }",
    "the password is the same as for staging2",
    "| 2 | `security/redact-admin-password-in-logs` | gitlab2-runner | High |",
    "digest(password); // GOOD: PBKDF2/Argon2",
    "flags.PWD = *envFlags.PWD2",
    "Original token count: 12\nOutput:\nIC_kwDOQRbenM8AAAABlk2mJw",
    "The secret key: consistency. See chapter12-notes.md for more.",
    "Passwort vergessen?",
    "contraseña incorrecta, intento 3/5",
    "mot de passe oublié",
    "密码必须包含8个字符",
    "The token budget is 200k, of which 12k4 are used.",
    "with password auth disabled, use id_ed25519 instead",
    "password ‹env›",
    "The password is ‹env›.",
    "Password (min8chars):",
    "import { hashPassword, verifyPassword } from './password-utils2'",
    "commit 3f9c2b1: rotate password of db-replica-02",
)

_WORDS = (
    "winter falcon zebra garden harbor pepper velvet copper meadow lantern sommer fenster montagne "
    "caballo ponte trovao silber papillon cereza molino orchid granite"
).split()
_LEET = str.maketrans("aeios", "43105")
_MARKS = "!&*+?%^~"
_HEX, _MIXED = "0123456789abcdef", string.ascii_letters + string.digits
_PLACEHOLDERS = (
    "<password>",
    "your-password-here",
    "YOUR_API_KEY",
    "changeme",
    "********",
    "xxxxxxxxxxxx",
    "[REDACTED]",
    "password123",
    "example-key-123",
)
_REFERENCES = (
    "$DB_PASSWORD",
    "${DB_PASSWORD}",
    "{{ vault_db_password }}",
    "process.env.DB_PASSWORD2",
    "${{ secrets.DB_PASSWORD }}",
    "var.db_password",
    "%DB_PASSWORD%",
    "os.environ['DB_PASSWORD2']",
)
_PLAIN = (
    "required",
    "incorrect",
    "base64-encoded",
    "gitlab2-runner",
    "user_password_hash",
    "/etc/app2/secret.key",
    "src/auth2/login.ts",
    "PBKDF2/Argon2",
    "oauth2-proxy",
    "*envFlags.PWD2",
)
# where any word at all may be the password
_ANY_WORD = ("SQL", "connection strings", "commands", "files of tools")
_USERS = "app admin deploy svc_reports maria root".split()
_HOSTS = "db.internal api.acme.test cache-01.prod.local 10.0.4.17".split()


class MentionCase(NamedTuple):
    """One template with one value in it."""

    text: str
    secret: str  # as it stands in the text; empty if the value is harmless
    family: str
    strength: str
    held_out: bool


def _drawn(rng: Random, letters: str, size: int) -> str:
    while True:
        value = "".join(rng.choices(letters, k=size))
        if any(map(str.isdigit, value)) and any(map(str.isalpha, value)) and value[-1].isalnum():
            return value


def _password(rng: Random) -> str:
    word = rng.choice(_WORDS).title()
    return word[0] + word[1:].translate(_LEET) + rng.choice(_MARKS) + _drawn(rng, "0123456789x", 2)


def _two_words(rng: Random) -> str:
    first, second = rng.sample(_WORDS, 2)
    return f"{first}{rng.randint(2, 99)}{second}"


def _word_and_digits(rng: Random) -> str:
    return f"{rng.choice(_WORDS)}{rng.randint(100, 9999)}{rng.choice('xyz!')}"


_STRENGTHS = {
    "long, by chance": lambda rng: _drawn(rng, _MIXED, rng.randint(24, 44)),
    "hex": lambda rng: _drawn(rng, _HEX, rng.choice([32, 40, 64])),
    "short, by chance": lambda rng: _drawn(rng, _MIXED, rng.randint(14, 18)),
    "password": _password,
    "two words": _two_words,
    "word and digits": _word_and_digits,
}
_BY_CHANCE = ("long, by chance", "hex", "short, by chance")


def _filled(rng: Random, template: str, value: str) -> str:
    forms = {
        "secret": value,
        "percent": quote(value, safe=""),
        "base64": b64encode(value.encode()).decode(),
        "env": rng.choice(_REFERENCES),
        "user": rng.choice(_USERS),
        "host": rng.choice(_HOSTS),
    }
    for name, form in forms.items():
        template = template.replace(f"‹{name}›", form)
    return template


def _written(template: str, value: str) -> str:
    """Return the secret as this template writes it."""
    if "‹base64›" in template:
        return b64encode(value.encode()).decode()
    return quote(value, safe="") if "‹percent›" in template else value


def _cases(held: bool) -> Iterator[MentionCase]:
    source = held_out if held else None
    passwords = source.PASSWORDS if source else PASSWORDS
    keys = source.KEYS if source else KEYS
    for families, strengths in ((passwords, tuple(_STRENGTHS)), (keys, _BY_CHANCE)):
        for family, templates in families.items():
            for template in templates:
                yield from _of_template(template, family, strengths, held)
    for line in source.HARMLESS if source else HARMLESS:
        yield MentionCase(_filled(Random(line), line, ""), "", "sentences", "harmless", held)


def _of_template(
    template: str, family: str, strengths: tuple[str, ...], held: bool
) -> Iterator[MentionCase]:
    for strength in strengths:
        rng = Random(f"{template}:{strength}")
        value = _STRENGTHS[strength](rng)
        text = _filled(rng, template, value)
        yield MentionCase(text, _written(template, value), family, strength, held)
    twins = {"placeholder": _PLACEHOLDERS, "reference": _REFERENCES}
    if family not in _ANY_WORD:
        twins["word"] = _PLAIN
    for kind, values in twins.items():
        for value in values:
            rng = Random(f"{template}:{value}")
            yield MentionCase(_filled(rng, template, value), "", family, kind, held)


def mention_cases() -> list[MentionCase]:
    """Return every template with values of every strength, and its harmless twins."""
    return [*_cases(False), *_cases(True)]

"""A secret goes where people and files mention it: in sentences of many languages, in tables, SQL,
cookies and commands; what stands in its place in documentation stays."""

from __future__ import annotations

import json
from base64 import b64encode

import pytest

from whyfor.privacy.engine import Engine
from whyfor.privacy.redactor import Redactor
from whyfor.privacy.rules import load_rules
from whyfor.privacy.samples import expand

ENGINE = Engine(load_rules())
WEAK = ["Tr0ub4dor&3x", "hunter2zebra", "geheim123x"]
STRONG = [expand("{A32}"), expand("{h40}"), expand("{A14}")]

PASSWORDS = [
    "the password is {}",
    "Password for staging is {}",
    "log in as ann with password {} and look",
    "set the admin password to {} and restart",
    "I made a new password, it's {}",
    "**Password:** `{}`",
    "{} is the password, keep it",
    "type {} at the password prompt",
    "here are the credentials: ann / {}",
    "user: ann / pass: {}",
    "passwort: {}",
    "mi clave es {}",
    "le mot de passe est {}",
    "a senha do banco é {}",
    "пароль от базы: {}",
    "密码是{}",
    "パスワードは {} です",
    "비밀번호: {}",
    "पासवर्ड है {}",
    "كلمة المرور: {}",
    "CREATE USER ann WITH LOGIN PASSWORD '{}'",
    "ALTER LOGIN ann WITH PASSWORD = N'{}';",
    "INSERT INTO users (name, password) VALUES ('ann', '{}');",
    "id,user,password\n7,ann,{}\n",
    "user\tpassword\nann\t{}\n",
    "host\tlogin\tpasswd\ndb1\tann\t{}\n",
    "| user | password |\n|---|---|\n| ann | {} |\n",
    'variable "db_password" {{\n  description = "of the db"\n  default     = "{}"\n}}',
    "<user>ann</user><password>{}</password>",
    "mysqladmin -u root password '{}'",
    "*:*:*:ann:{}",
]
KEYS = [
    "here is my stripe key, use it for the deploy: {} thanks",
    "I generated an access token, here you go: {}",
    "Token:\n{}",
    "der Schlüssel ist {}",
    "API密钥：{}",
    "Set-Cookie: sid={}; Path=/",
    "curl -b 'session={}' https://example.org",
    'requests.get(u, cookies={{"session": "{}"}})',
    "gh secret set DEPLOY_TOKEN --body '{}'",
]


def _check_gone(text: str, secret: str) -> None:
    left = Redactor(ENGINE).plain(text.encode()).decode()
    assert secret not in left
    assert Redactor(ENGINE).plain(left.encode()).decode() == left, "twice is not the same as once"
    record = json.dumps({"message": {"content": f"first\n{text}"}}, ensure_ascii=False)
    assert secret not in Redactor(ENGINE).jsonl(record.encode()).decode()


@pytest.mark.parametrize("template", PASSWORDS)
def test_a_password_goes_where_it_is_mentioned(template: str) -> None:
    for secret in [*WEAK, *STRONG]:
        _check_gone(template.format(secret), secret)


@pytest.mark.parametrize("template", KEYS)
def test_a_key_goes_where_it_is_mentioned(template: str) -> None:
    for secret in STRONG:
        _check_gone(template.format(secret), secret)


@pytest.mark.parametrize("template", ["the password is {}", "la contrase\u00f1a es {}"])
def test_joined_words_with_a_number_are_a_password_where_it_is_said(template: str) -> None:
    _check_gone(template.format("blueHorse42"), "blueHorse42")
    for name in ("passwordHash", "userPassword", "authTokenV2"):
        text = template.format(name)
        assert Redactor(ENGINE).plain(text.encode()).decode() == text


def test_a_password_of_a_kubernetes_secret_goes_in_base64_and_a_placeholder_stays() -> None:
    text = "kind: Secret\ndata:\n  db-password: {}\n"
    for secret in WEAK:
        coded = b64encode(secret.encode()).decode()
        _check_gone(text.format(coded), coded)
    for harmless in ("changeme", "${DB_PASSWORD}", "<password>"):
        plain = text.format(b64encode(harmless.encode()).decode()).encode()
        assert Redactor(ENGINE).plain(plain) == plain


@pytest.mark.parametrize("template", [*PASSWORDS, *KEYS])
@pytest.mark.parametrize(
    "value",
    ["$DB_PASSWORD", "<password>", "your-password-here", "********", "{{ vault_password }}"],
)
def test_what_stands_in_the_place_of_a_secret_stays(template: str, value: str) -> None:
    text = template.format(value)
    assert Redactor(ENGINE).plain(text.encode()).decode() == text

"""Secrets named in other languages, in the letters themselves and as JSON's escapes of them."""

from __future__ import annotations

import json
import re

import pytest

from whyfor.privacy.engine import Engine
from whyfor.privacy.rules import load_rules

SECRET = "vK8wQz3tLp0xRn5y"
NAMED = {
    "Chinese": ("密码：{}", "数据库密码是{}", "密碼: {}"),
    "Hindi": ("पासवर्ड: {}",),
    "Spanish": ("la contraseña del servidor es {}", "contraseña: {}"),
    "Arabic": ("كلمة السر: {}", "كلمة المرور: {}"),
    "French": ("voici ma clé api : {}", "mot de passe : {}"),
    "Bengali": ("পাসওয়ার্ড: {}",),
    "Portuguese": ("a senha do banco é {}", "código e senha: {}"),
    "Russian": ("пароль: {}", "Пароль от базы: {}", "ПАРОЛЬ: {}", "токен: {}"),
    "Urdu": ("پاس ورڈ: {}",),
    "Indonesian": ("kata sandi – {}", "kata sandi: {}"),
    "German": ("der Schlüssel ist {}", "Passwort: {}"),
    "Japanese": ("パスワードは {} です", "パスワード：{}"),
    "Korean": ("비밀번호: {}", "토큰은 {} 입니다"),
    "Turkish": ("şifre: {}", "Şifre: {}"),
    "Vietnamese": ("mật khẩu: {}",),
    "Polish": ("hasło: {}",),
}
SENTENCES = [sentence for sentences in NAMED.values() for sentence in sentences]
HARMLESS = (
    "密码必须包含8个字符",
    "пароль должен содержать минимум 8 символов",
    "비밀번호를 잊으셨나요? 관리자에게문의하세요",
    "パスワードを入力してください",
    "la contraseña es incorrecta",
    "die Schlüsselverwaltung ist überflüssig",
    "── ключевые слова ── 12",
)


@pytest.fixture(scope="module")
def engine() -> Engine:
    return Engine(load_rules())


def found(engine: Engine, text: str) -> list[str]:
    data = text.encode()
    return [data[item.start : item.end].decode() for item in engine.find(data)]


def as_json(text: str, depth: int) -> str:
    """The text in JSON as most programs write it, without a letter beyond ASCII; in JSON in JSON
    with a depth of 2."""
    for _ in range(depth):
        text = json.dumps({"message": text})
    return text


@pytest.mark.parametrize("sentence", SENTENCES)
def test_a_secret_is_found_in_the_letters_of_its_language(engine: Engine, sentence: str) -> None:
    assert found(engine, sentence.format(SECRET)) == [SECRET]


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("sentence", SENTENCES)
def test_a_secret_is_found_where_the_letters_are_escaped(
    engine: Engine, sentence: str, depth: int
) -> None:
    assert found(engine, as_json(sentence.format(SECRET), depth)) == [SECRET]


def test_a_key_that_is_escaped_names_its_value(engine: Engine) -> None:
    for name in ("пароль", "密码", "パスワード", "비밀번호", "كلمة السر", "contraseña"):
        written = json.dumps({name: SECRET, "other": "word"})
        assert written.isascii()
        assert found(engine, written) == [SECRET]
        in_capitals = re.sub(r"(?<=\\u)[0-9a-f]{4}", lambda digits: digits[0].upper(), written)
        assert found(engine, in_capitals) == [SECRET]


def test_a_secret_with_an_escaped_letter_in_it_goes_whole(engine: Engine) -> None:
    for secret in ("Zk4wéQz9rT7xPq", "Zk4wQz9rT7xPqé", "éZk4wQz9rT7xPq"):
        (value,) = found(engine, json.dumps(f"password: {secret}"))
        assert json.loads(f'"{value}"') == secret


def test_a_secret_in_quotes_that_are_escaped_is_found(engine: Engine) -> None:
    for sentence in ("пароль: «{}»", "密码：「{}」", "contraseña: “{}”", "Passwort: „{}“"):
        (value,) = found(engine, json.dumps(sentence.format(SECRET)))
        assert SECRET in value


@pytest.mark.parametrize("depth", [0, 1, 2])
@pytest.mark.parametrize("sentence", HARMLESS)
def test_words_about_secrets_stay(engine: Engine, sentence: str, depth: int) -> None:
    assert found(engine, as_json(sentence, depth)) == []


def test_half_a_pair_and_other_escapes_beside_a_name_do_no_harm(engine: Engine) -> None:
    for beside in (r"\ud83d\ude00", r"\ud83d", r"\ude00", r"\u0000", r"\u2192", r"\uzzzz"):
        text = rf'{{"text": "{beside} \u043f\u0430\u0440\u043e\u043b\u044c: {SECRET} {beside}"}}'
        assert found(engine, text) == [SECRET]

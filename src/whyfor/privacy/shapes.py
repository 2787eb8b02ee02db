"""Whether a word looks drawn by chance rather than thought up: the half of the evidence that is
in the value.

How surprising each pair of characters is in code and prose is a table of 28 by 28 costs
(letters, digit, anything else) in 0.4 bits, counted over the words of Python's standard library.
"""

from __future__ import annotations

import binascii
import itertools
import re
from functools import cache
from pathlib import Path

_DIGIT, _OTHER = 26, 27
_SCALE = "0123456789abcdefghijklmnopqrstuvwxyz"
_SYMBOL = [
    ord(c.lower()) - 97 if c.isascii() and c.isalpha() else _DIGIT if c in "0123456789" else _OTHER
    for c in map(chr, range(256))
]

_HEX = re.compile(r"(?:0x)?[0-9a-fA-F]{16,}")
_UUID = re.compile(
    r"\{?[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\}?"
)
_DIGITS = re.compile(r"[\d.,:/\-+ ]+")
_STAND_IN = re.compile(
    r"example|placeholder|change.?me|your[-_ "
    r"]?|dummy|redacted|foobar|insert|replace|xxxx|\*\*\*|\.\.\.|####|____|<|>"
    r"|\$\{|\$\(|\{\{|%\(|#\{|\$[A-Za-z_]|(?-i:%[A-Z_]{3,}%)|^%s|^\{[a-z_.]*\}$|12345678|abcdefgh|qwerty|deadbeef|0123456"
    r"|^(?:pass(?:word|wd)?|hunter|foo|bar|test|abc|demo|sample)\d{1,4}!?$",
    re.IGNORECASE,
)
_CODE = re.compile(
    r"^(?:process|os|env|self|this|import|var|local|data|module|secrets|inputs|steps|needs|matrix|github|req|res|ctx)[.\[]"
    r"|\(|\)$|^[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+$|^@|::|\{|\}|->|=>|\|\|?|&&|^!|\$$"
)
_MEMBER = re.compile(r"[*&!]{0,2}(?:[A-Za-z_]\w*\.)+[A-Za-z_]\w*")  # config.api.key
_VARIABLE = re.compile(
    r"(?:process|os|env|self|this|import|var|local|module|secrets|inputs|steps|needs|matrix|github)[.\[]"
    r"|%[A-Z_]{3,}%|\{\{|<[\w -]+>|\[[A-Z_]+\]"
)
_REFERENCE = re.compile(
    r"^(?:https?|ftp|file|ssh|git|data|urn|arn|vault|op|sops|env|projects|secret|ref|keychain)[:/]"
    r"|^(?:sha\d+|md5|h1)[-:]|^(?:toolu|srvtoolu|msg|req|call|chatcmpl|run|thread|asst|resp|fc|rs|ws|item|session|evt|file|agent)_"
    r"|^[\w.+-]+@[\w-]+\.[\w.-]+$|^v?\d+\.\d+(?:\.\d+)*(?:[-+.][\w.]+)?$|^\d{4}-\d\d-\d\d|^age1|^ssh-|^AAAA[BCE]3Nz"
    r"|^\$\d[a-z]?\$\.\.\.$|^--[a-z]"
    r"|^ey[\w-]+\.ey[\w-]*\.[\w-]{1,19}$"  # a token with a signature that somebody made up
)
_LETTERS = re.compile(r"[A-Za-z].*?[A-Za-z].*?[A-Za-z]")
_DIGIT_IN = re.compile(r"\d")
_FOLDER = re.compile(r"~?/[a-z]{2,12}/[\w.@-]")
_FILE = re.compile(
    r"^(?:\.{0,2}/|~/|[A-Za-z]:[\\/])|\.(?:pem|key|json|ya?ml|toml|env|txt|py|[jt]sx?|go|rs|md|html?|css|png|svg|sh|lock|crt)$"
)


@cache
def _costs() -> list[list[float]]:
    rows = (Path(__file__).with_name("rules") / "letters.txt").read_text("ascii").split()
    return [[_SCALE.index(c) / 2.5 for c in row] for row in rows]


def surprise(word: str) -> float:
    """Bits per character: names and prose stay below 4.6, what was drawn by chance lies above 5."""
    costs = _costs()
    total, before, upper, run = 0.0, _OTHER, False, 0
    for char in word:
        code = ord(char)
        symbol = _SYMBOL[code] if code < 256 else _OTHER
        capital = 65 <= code <= 90
        if symbol < _DIGIT and before < _DIGIT and capital != upper:
            # camelCase: a capital begins a word; a capital among small letters without one is odd
            total += (
                2.2 + costs[_OTHER][symbol] * 0.6
                if capital
                else costs[before][symbol] + (0 if run == 1 else 2.5)
            )
            run = 1
        else:
            total += costs[before][symbol] + (1.8 if symbol == _DIGIT else 0)
            run = run + 1 if before < _DIGIT else 1
        upper, before = capital, symbol
    return (total + costs[before][_OTHER]) / (len(word) + 1)


def is_hex(word: str) -> bool:
    return _HEX.fullmatch(word) is not None or _UUID.fullmatch(word) is not None


def is_stand_in(word: str) -> bool:
    """What people write where a secret would stand."""
    return _STAND_IN.search(word) is not None or is_monotonous(word)


def is_monotonous(word: str) -> bool:
    """`aaaa…`, `1231231…`: too few different pieces to have been drawn by chance."""
    size = len(word)
    if size < 8:
        return len(set(word)) <= 2
    same = sum(a == b for a, b in itertools.pairwise(word))
    pieces = len({word[i : i + 3] for i in range(size - 2)})
    return same >= 0.4 * size or (pieces < 0.5 * (size - 2) and size < 80) or len(set(word)) <= 4


def is_reference(word: str) -> bool:
    """Return whether a word only says where the secret is: `process.env.KEY`, `{{ vault_key }}`."""
    return _VARIABLE.match(word) is not None


def is_plain(word: str) -> bool:
    """A reference, a piece of code, a path, a number, a date: not a value that could be a
    secret."""
    return (
        _REFERENCE.search(word) is not None
        or _FOLDER.match(word) is not None
        or _CODE.search(word) is not None
        or (_MEMBER.fullmatch(word) is not None and not any(map(_chance, word.split("."))))
        or (_DIGITS.fullmatch(word) is not None and not re.fullmatch(r"\d{14,}", word))
        or (
            _FILE.search(word) is not None
            and surprise(max(re.split(r"[/\\.]", word), key=len)) < 5.2
        )
    )


def is_random(word: str, least: int = 8, bits: float = 4.75) -> bool:
    """Long enough, of letters with digits or odd capitals, and surprising."""
    if len(word) < least:
        return False
    if not _LETTERS.search(word):
        return False
    if not _DIGIT_IN.search(word):
        if len(word) < 16:
            return False  # the name of something, in capitals and small letters
        bits += 0.5
    if len(word) < 12:
        bits += 0.3
    return surprise(word) >= bits or (
        len(word) > 24 and any(_chance(part) for part in re.split(r"[-_.:]", word))
    )


def is_specific(word: str) -> bool:
    """Return whether a word is so long and so odd that it stands nowhere but where it was put: not
    the name of something, not words with a number in them."""
    if " " in word:
        return any(map(is_specific, word.split()))
    if len(word) < 12 or is_slug(word):
        return False
    parts = _JOINTS.split(word)
    if any(map(is_hex, parts)):
        return False  # a hash with something around it
    if is_random(word, 12, 5.3):
        return True
    return len(word) > 24 and any(_chance(part) for part in parts)


_JOINTS = re.compile(r"[-_./:@+]+")
_PART = re.compile(r"(?P<letters>[A-Za-z]+)\d{0,4}|\d+|[A-Za-z0-9]{1,3}")


def is_slug(word: str) -> bool:
    """Return whether a word is the name of something: words joined by dashes, dots or slashes, as
    `web-app2/main` is."""
    if word != word.lower() and "/" not in word:
        return False
    parts = [part for part in _JOINTS.split(word) if part]
    if len(parts) < 2:
        return False
    named = False
    for part in parts:
        match = _PART.fullmatch(part)
        if match is None:
            return False
        letters = match["letters"] or ""
        if len(letters) >= 4:
            acronym = letters.isupper() and len(letters) <= 6
            if not acronym and surprise(letters) > 5.4:
                return False
            named = True
    return named


_TECHNICAL = re.compile(
    r"(?i:(?:sha|md|base|aes|rsa|ecdsa|utf|ucs|iso|oauth|ipv|argon|pbkdf|hmac|b?crypt|scrypt|blake|"
    r"chacha|poly|secp|curve|https?|tls|ssl|ssh|u?int|float|win|amd|arm|pkcs|rfc|html|css|python|"
    r"node|web|log|crc|ntlm|krb)[-_]?\d+|ed25519|ed448|x25519|x509|x86|[ehrp]s(?:256|384|512)"
    r"|k8s|i18n|l10n|a11y|s3|ec2|p12)(?:[a-z]{0,12}|[A-Z][a-z]{2,12})(?:[-_/.:(].*)?"
)
_INNER_DIGIT = re.compile(r"[A-Za-z]\d+[A-Za-z]")
_LAST_DIGITS = re.compile(r"[A-Za-z]{3}\d{3,6}[!?]?$")
_JOINED_DIGITS = re.compile(r"[a-z]{3}[A-Z][a-z]{2,}\d{2}[!?]?$")  # blueHorse42
_SIGN = re.compile(r"[!#$%^&*?~]")


def is_spoken_password(word: str) -> bool:
    """Return whether a word of a sentence is a password: it mixes letters with digits as no word
    does, and is neither the name of something nor a technical term."""
    if not 8 <= len(word) <= 64 or "/" in word or is_technical(word) or is_slug(word):
        return False
    if len(_ALPHA.findall(word)) < 3 or not _DIGIT_IN.search(word):
        return False
    if _SIGN.search(word, 1, len(word) - 1):
        return True
    return any(odd.search(word) for odd in (_INNER_DIGIT, _LAST_DIGITS, _JOINED_DIGITS))


def is_technical(word: str) -> bool:
    """Return whether a word is a term with a number in it: `sha256`, `base64-encoded`."""
    return _TECHNICAL.fullmatch(word) is not None


_ALPHA = re.compile(r"[A-Za-z]")


def _chance(part: str) -> bool:
    return (
        len(part) >= 16 and any(c.isdigit() for c in part) and surprise(part) >= 4.75
    ) or _HEX.fullmatch(part) is not None


_PAIR = re.compile(r"[A-Za-z_]+=")  # a name and its own value


def is_password(word: str) -> bool:
    """Return whether a word has several kinds of characters, as passwords have; a name or a word
    alone has not."""
    if len(word) < 6 or " " in word or is_technical(word) or _PAIR.match(word):
        return False
    digits = any(map(str.isdigit, word))
    kinds = digits + any(map(str.islower, word)) + any(map(str.isupper, word))
    if kinds >= 2 and digits:
        return True
    return kinds >= 1 and any(not c.isalnum() and c not in "_-./:" for c in word[:-1])


def decode_base64(word: bytes) -> bytes | None:
    """The text behind base64, if it is text: bytes drawn by chance are not, so none is mistaken
    for it."""
    head = _unpacked(word[:48])
    if head is None or not _is_text(head):
        return None
    whole = _unpacked(word[: 1 << 20])
    return whole if whole is not None and _is_text(whole) else None


def _unpacked(word: bytes) -> bytes | None:
    word = word.rstrip(b"=").translate(_URL_SAFE)
    if len(word) % 4 == 1:
        word = word[:-1]
    try:
        return binascii.a2b_base64(word + b"=" * (-len(word) % 4), strict_mode=True)
    except binascii.Error:
        return None


_URL_SAFE = bytes.maketrans(b"-_", b"+/")
_TEXT = re.compile(rb"[\t\n\r\x1b\x20-\x7e]+")


def _is_text(data: bytes) -> bool:
    if _TEXT.fullmatch(data):
        return True
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        if error.start < len(data) - 3:
            return False
        text = data[: error.start].decode()
    return (
        len(text) >= 12
        and all(c.isprintable() or c in "\t\n\r" for c in text)
        and sum(map(str.isascii, text)) > 0.6 * len(text)
    )

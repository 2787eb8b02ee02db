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
from importlib.resources import files

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
    r"|^(?:pass(?:word|wd)?|hunter)\d{1,4}!?$",
    re.IGNORECASE,
)
_CODE = re.compile(
    r"^(?:[A-Za-z_]\w*\.)+[A-Za-z_]\w*$"  # config.api.key
    r"|^(?:process|os|env|self|this|import|var|local|data|module|secrets|inputs|steps|needs|matrix|github|req|res|ctx)[.\[]"
    r"|\(|\)$|^[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+$|^@|::|\{|\}|->|=>|\|\|?|&&|^!|\$$"
)
_REFERENCE = re.compile(
    r"^(?:https?|ftp|file|ssh|git|data|urn|arn|vault|op|sops|env|projects|secret|ref|keychain)[:/]"
    r"|^(?:sha\d+|md5|h1)[-:]|^(?:toolu|srvtoolu|msg|req|call|chatcmpl|run|thread|asst|resp|fc|rs|ws|item|session|evt|file|agent)_"
    r"|^[\w.+-]+@[\w-]+\.[\w.-]+$|^v?\d+\.\d+(?:\.\d+)*(?:[-+.][\w.]+)?$|^\d{4}-\d\d-\d\d|^age1|^ssh-|^AAAA[BCE]3Nz"
    r"|^\$\d[a-z]?\$\.\.\.$"
)
_LETTERS = re.compile(r"[A-Za-z].*?[A-Za-z].*?[A-Za-z]")
_DIGIT_IN = re.compile(r"\d")
_FILE = re.compile(
    r"^(?:\.{0,2}/|~/|[A-Za-z]:[\\/])|\.(?:pem|key|json|ya?ml|toml|env|txt|py|[jt]sx?|go|rs|md|html?|css|png|svg|sh|lock|crt)$"
)


@cache
def _costs() -> list[list[float]]:
    rows = files("whyfor.privacy").joinpath("rules/letters.txt").read_text("ascii").split()
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


def is_plain(word: str) -> bool:
    """A reference, a piece of code, a path, a number, a date: not a value that could be a
    secret."""
    return (
        _REFERENCE.search(word) is not None
        or _CODE.search(word) is not None
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
        bits += 0.5
    if len(word) < 12:
        bits += 0.3
    return surprise(word) >= bits or (
        len(word) > 24 and any(_chance(part) for part in re.split(r"[-_.:]", word))
    )


def _chance(part: str) -> bool:
    return (
        len(part) >= 16 and any(c.isdigit() for c in part) and surprise(part) >= 4.75
    ) or _HEX.fullmatch(part) is not None


def is_password(word: str) -> bool:
    """Return whether a word has several kinds of characters, as passwords have; a name or a word
    alone has not."""
    if len(word) < 6 or " " in word:
        return False
    digits = any(map(str.isdigit, word))
    kinds = digits + any(map(str.islower, word)) + any(map(str.isupper, word))
    if kinds >= 2 and digits:
        return True
    return kinds >= 1 and any(not c.isalnum() and c not in "_-./:" for c in word)


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

"""A secret in a sentence: `the password for staging is …`, `… is the token`.

Drawn by chance, it is found anywhere near the word for it. A password that a person thought up is
found where the sentence says that it is the password.
"""

from __future__ import annotations

import re

from whyfor.privacy.judge import is_prose_secret, is_said_password
from whyfor.privacy.names import ESCAPED_LETTERS, SecretName
from whyfor.privacy.shapes import surprise
from whyfor.privacy.values import BARE, JUDGED, Span, extended, judged_text, trimmed

PROSE = 120  # bytes of prose between a name and its value
FOREIGN = 60  # the same in another language, whose words for "is" are not known
LABEL = b"[REDACTED:x]"  # all labels count like this one
_RESULT = (b"pass", b"psk")  # mean a password only where a sign or a word says so
_PLAIN_TIES = (b"is", b"that", b"it", b"this", b"as", b"which", b"\xe2", b"<-")

_OPENING = rb"(?:[ \t]*(?:\\*[\"'`]|\*{1,2}|\xe2\x80[\x98\x9c\x9e]|\xc2\xab)){0,3}"
_BETWEEN = rb"(?:[ \t]+(?:\([^()\n\\\"]{1,40}\)|[\w@/'-]{1,30}(?:\.[\w@/'-]{1,30}){0,4})){0,7}?"
_IS_WORD = (
    rb"(?:'s|\xe2\x80\x99s|[.,;]?[ \t]+(?i:it's|it is|it\xe2\x80\x99s|this one:|namely)|"
    + _BETWEEN
    + rb"[ \t]+(?:is|was|are|to|be|been|being|from|equals|use|type|enter|try|put"
    rb"|es|est|ist|lautet|\xc3[\xa8\xa9]))"
    rb"(?=[ \t:])"
    rb"(?:[ \t]+(?:now|currently|still|just|probably|set|changed|reset|to|be)(?=[ \t:])){0,3}:?"
)
_IS = (
    rb"(?:"
    + _IS_WORD
    + rb"|"
    + _BETWEEN
    + rb"(?:[ \t]*(?:[:=]|->|\xe2\x86\x92)|[ \t](?:-|\xe2\x80[\x93\x94])(?=[ \t])))"
)
_VALUE = rb"(?P<value>[^\s\"'`<>\\,;(){}\[\]|\x80-\xff]{6,64})(?![(\[=|])"
_SAID = re.compile(_IS + rb"[ \t]*" + _OPENING + _VALUE)
_SAID_IN_WORDS = re.compile(_IS_WORD + rb"[ \t]*" + _OPENING + _VALUE)
_SAID_AT_ONCE = re.compile(rb"[ \t]+" + _OPENING + _VALUE)
_TIGHT = re.compile(_IS + rb"[ \t]*" + _OPENING + rb"$")
_IDS = re.compile(rb"(?i)\b(?:ids?|hash|sha|commit|checksum|digest|fingerprint|version)\b")
_NEXT_WORD = re.compile(rb"[ \t_-]([A-Za-z]{2,12})")
_OWNED = re.compile(rb"(?i)\b(?:my|our|this|here|these|following|new)\b[\w \t.'-]{0,30}$")

_PROSE_WORD = re.compile(rb"[^\s\"'`<>\\,;(){}\[\]|&*]{12,512}")
_ASCII_WORD = re.compile(rb"[^\s\"'`<>\\,;(){}\[\]|\x80-\xff]{6,512}")
_BEFORE = re.compile(
    rb"(?:(?<![^\s\"'`<>\\,;(){}\[\]|])|(?<=\\[nrt]))(?P<value>[^\s\"'`<>\\,;(){}\[\]|]{8,200})"
    rb"\\*[\"'`)\]*>]{0,3},?[ \t]+"
    rb"(?P<tie>(?:that's|that is|this is|it's|which is|is|was|as|for"
    rb"|\xe2\x86\x90|<-|<--|//|#|--|\()"
    rb"(?:[ \t]*\b(?:the|my|our|your|a|an|its|their|this|not|valid|no))*)"
    rb"(?P<more>(?:[ \t]+(?!(?:commit|sha|hash|branch|version|digest|checksum|id|uuid)\b)"
    rb"[\w.-]{1,20}){0,3})[ \t]*$"
)
_HANDED = re.compile(
    rb"(?i)(?:\b|(?<=\\[nrt]))(?:type|enter|use|try|put|paste|send|supply|with)[ \t]+"
    rb"(?:\\*[\"'`]){0,2}"
    rb"(?P<value>[^\s\"'`<>\\,;(){}\[\]|]{8,200})(?:\\*[\"'`]){0,2}"
    rb"[ \t]+(?:as|at|for|in|into|when)\b[ \t\w]{0,40}$"
)
_TIED = re.compile(rb" (?:that's|is|was|as|at|in|into|for|\xe2\x86\x90|<-+|//|#|--) [^\n]{0,60}$")
_ELSEWHERE = re.compile(
    rb"(?<!\\)\"[,}\]:]"  # the string ends
    rb"|\b(?:commit|sha|hash|index|id|uuid|checksum|digest|etag|build|version|branch|request|trace)"
    rb"[ \t\"'`:=#\\]*$",
    re.IGNORECASE,
)
_OTHER_KEY = re.compile(rb"\\*[\"'][\w.-]{1,40}\\*[\"'][ \t]*[:=][ \t]*\\*[\"']?$")
_BREAK = re.compile(rb"\r?\n|(?:\\+r)?\\+n")
_BLANK = re.compile(rb"(?:\s|\\+[rnt]|[\"'`>*])*")
_ENDS_WITH_COLON = re.compile(rb"(?::|\xef\xbc\x9a|\?)[ \t\"'`*\\]*$")
_COLOUR = re.compile(rb"\d{1,3}(?:;\d{1,3})*m")
_ASSIGNMENT = re.compile(rb"[+\->]?([A-Za-z_][\w.-]{1,40})[=:].")


def secrets_after(name: SecretName) -> list[Span]:
    """Return the values that a sentence gives after the name; there may be several."""
    if name.foreign:
        return _after_foreign(name)
    if _is_about_it(name):
        return []
    said = _said_password(name)
    return [said] if said else _drawn_by_chance(name)


def _is_about_it(name: SecretName) -> bool:
    """Return whether the next word makes it something about a secret: `token count`."""
    word = _NEXT_WORD.match(name.data, name.after, name.high)
    return word is not None and word[1].decode("ascii").lower() in name.about


def _said_password(name: SecretName) -> Span | None:
    """Return the word that the sentence calls the password."""
    if name.rule != "password":
        return None
    said = _SAID if name.strength > 1 else _SAID_IN_WORDS
    match = said.match(name.data, name.after, name.high)
    if match is None and name.word not in _RESULT:
        match = _SAID_AT_ONCE.match(name.data, name.after, name.high)
    return _password_in(name.data, match.span("value")) if match else None


def _password_in(data: bytes, span: Span) -> Span | None:
    start, end = span
    kept = data[start:end].rstrip(b".,:;*")
    span = (start, start + len(kept))
    word = judged_text(data, span)
    return span if is_said_password(word) or is_prose_secret(word, tight=True) else None


def _after_foreign(name: SecretName) -> list[Span]:
    """Return the first word of the line that can be the secret."""
    data, limit = name.data, min(name.high, name.after + FOREIGN)
    stop = _BREAK.search(data, name.after, limit)
    limit = stop.start() if stop else limit
    for found in _ASCII_WORD.finditer(data, name.after, min(name.high, limit + BARE)):
        if found.start() >= limit:
            break
        if name.rule == "password":
            span = _password_in(data, found.span())
            if span is not None:
                return [span]
        span = trimmed(data, *found.span())
        if is_prose_secret(judged_text(data, span), True):
            return [extended(data, span, name.high)]
    return []


def _drawn_by_chance(name: SecretName) -> list[Span]:
    """Return the words near the name that nobody thought up."""
    data, after, high = name.data, name.after, name.high
    spans: list[Span] = []
    if name.strength < 2 and name.rule != "api-key":
        return spans
    at, limit = after, after + (PROSE // 3 if name.rule == "auth" else PROSE)
    line_end = _end_of_line(data, after, min(high, limit))
    while found := _PROSE_WORD.search(data, at, min(high, limit + BARE)):
        if found.start() >= limit:
            break
        begin, at = _skip_escape(data, found.start()), found.end()
        if begin == after:
            continue  # still the name
        span = trimmed(data, begin, at)
        if begin > line_end and not _is_announced(data, (after, line_end), span, high):
            break
        between = data[after:begin]
        if _is_other(data, span, between):
            continue
        if _ELSEWHERE.search(between):
            break
        if _is_secret_here(name, span, between):
            spans.append(extended(data, span, high))
            at = max(at, spans[-1][1])
            limit += spans[-1][1] - span[0] - len(LABEL)  # as far as with a label in its place
            line_end = _end_of_line(data, after, min(high, limit))
    return spans


def _is_secret_here(name: SecretName, span: Span, between: bytes) -> bool:
    """Return whether a word after the name is a secret, by what stands between the two."""
    word = judged_text(name.data, span)
    if not is_prose_secret(word, tight=True):
        return False
    owned = _is_owned(name)
    sure = name.strength > 1 or owned
    tight = _is_tight(name, between) or (owned and not _IDS.search(between))
    return (sure or tight) and is_prose_secret(word, tight and sure)


def _is_owned(name: SecretName) -> bool:
    """Return whether a sentence hands the secret over: `here is my stripe key`."""
    lead = name.data[max(name.low, name.start - 48) : name.start]
    return _OWNED.search(lead) is not None


def _end_of_line(data: bytes, start: int, limit: int) -> int:
    found = _BREAK.search(data, start, limit)
    return found.start() if found else limit


def _is_announced(data: bytes, line: Span, word: Span, high: int) -> bool:
    """Return whether a word stands alone in the line after one that ends with a colon."""
    if not _ENDS_WITH_COLON.search(data, *line):
        return False
    blank = data[line[1] : word[0]]
    if len(_BREAK.findall(blank)) > 3 or not _BLANK.fullmatch(blank):
        return False
    rest = data[word[1] : min(high, word[1] + 4)].lstrip(b"\"'`*., \t")
    return not rest or rest[:1] in (b"\n", b"\r", b"\\", b"}", b"]")


def _is_tight(name: SecretName, between: bytes) -> bool:
    """Return whether the sentence says that what follows is the secret."""
    if _TIGHT.match(between) or _ENDS_WITH_COLON.search(between):
        return True
    return name.strength > 1 and not between.strip(b" \t")


def secrets_before(name: SecretName) -> list[Span]:
    """Return the value that a sentence gives before the name: `X is the password`."""
    lead = name.data[max(name.low, name.start - 280) : name.start]
    if not _TIED.search(lead):
        return []
    match, says, near = _HANDED.search(lead), True, True
    if match is None:
        match = _BEFORE.search(lead)
        if match is None:
            return []
        says = match["tie"].startswith(_PLAIN_TIES)
        near = match["more"].count(b" ") < 2
    offset = name.start - len(lead)
    begin = _skip_escape(name.data, offset + match.start("value"))
    span = trimmed(name.data, begin, offset + match.end("value"))
    word = judged_text(name.data, span)
    if is_prose_secret(word, says):
        return [span]
    said = says and near and name.rule == "password"
    return [span] if said and is_said_password(word) else []


def _is_other(data: bytes, span: Span, between: bytes) -> bool:
    """Return whether a word is what is left of a colour, or belongs to another name."""
    word = data[span[0] : span[0] + JUDGED]
    if between.endswith(b"[") and _COLOUR.match(word):
        return True
    if _OTHER_KEY.search(between):
        return True
    named = _ASSIGNMENT.match(word)
    return named is not None and surprise(named[1].decode("latin-1")) < 4.6


def _skip_escape(data: bytes, begin: int) -> int:
    r"""Return where a word begins that was found behind a backslash: after the n of `\n`."""
    escaped = data[begin - 1 : begin] == b"\\" and data[begin : begin + 1] in ESCAPED_LETTERS
    return begin + 1 if escaped else begin

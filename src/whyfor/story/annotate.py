"""An annotation without any model: from the commit, the prompts before it and the agent's own
words."""

from __future__ import annotations

import re
from collections.abc import Iterable

from whyfor.model.checkpoints import Annotation, ChangedFile, Note
from whyfor.model.events import StoredEvent

TITLE = 49
_SENTENCE = 240
_KEPT_ALTERNATIVES = 3
_CONVENTIONAL = re.compile(r"^(\w+)(?:\([^)]*\))?!?:\s+(.*)$")
_PREFIX = {
    "feat": "FEATURE",
    "feature": "FEATURE",
    "fix": "BUGFIX",
    "bugfix": "BUGFIX",
    "hotfix": "BUGFIX",
    "refactor": "REFACTORING",
    "perf": "REFACTORING",
    "style": "REFACTORING",
    "test": "TEST",
    "tests": "TEST",
    "docs": "DOCS",
    "doc": "DOCS",
    "chore": "CHORE",
    "ci": "CHORE",
    "build": "CHORE",
    "revert": "CHORE",
    "deps": "CHORE",
}
_WORDS = (
    (
        "BUGFIX",
        r"\b(fix(e[sd])?|bug|crash|regression|wrong|broken|prevent|repair|correct|handle|retry)\b",
    ),
    (
        "REFACTORING",
        r"\b(refactor|rename|simplif\w+|extract|clean "
        r"?up|move|split|inline|dedup\w*|reorgani[sz]e)\b",
    ),
    ("TEST", r"\b(tests?|coverage|fixtures?)\b"),
    ("DOCS", r"\b(docs?|readme|documentation|changelog|comments?)\b"),
    ("CHORE", r"\b(bump|upgrade|release|version|dependenc\w+|lint|format|config|ci)\b"),
)
_TEST_PATH = re.compile(
    r"(^|/)(tests?|__tests__|spec)/|(_test|\.test|\.spec|_spec)\.\w+$|(^|/)(test_|conftest)", re.I
)
_DOC_PATH = re.compile(r"(^|/)docs?/|\.(md|rst|adoc|txt)$", re.I)
_CHOICE = re.compile(
    r"\b(considered|alternativ\w+|instead of|rather than|could also|another "
    r"(?:option|way)|opted|trade-?off|"
    r"left (?:it )?out|decided against|ruled out)\b",
    re.I,
)
_MARKUP = re.compile(r"[*_`#>]+|^\s*[-+]\s+", re.M)


def derive(
    subject: str,
    body: str,
    files: list[ChangedFile],
    prompts: list[str],
    events: Iterable[StoredEvent],
) -> Annotation:
    """Return an annotation; `events` are those of the range that matter: what the agent said and
    thought."""
    said: list[StoredEvent] = []
    closing = ""
    for event in events:
        if event.text and event.kind in ("assistant.message", "assistant.thinking"):
            said.append(event)
            if event.kind == "assistant.message":
                closing = event.text
    steps = (
        _first_sentence(prompts[0]) if prompts else "",
        _first_sentence(body) or subject,
        _first_sentence(closing),
    )
    return Annotation(
        title=shortened(subject),
        intent=" → ".join(dict.fromkeys(filter(None, steps))),
        alternatives=_alternatives(said),
        summary=change_summary(files),
        tag=tag(subject, files),
        by="derived",
    )


def noted(derived: Annotation, by: str, note: Note) -> Annotation:
    """What somebody wrote takes the place of what was derived."""
    return Annotation(
        title=shortened(note.title) if note.title else derived.title,
        intent=note.intent or derived.intent,
        alternatives=note.alternatives if note.alternatives is not None else derived.alternatives,
        summary=note.summary or derived.summary,
        tag=note.tag or derived.tag,
        by=by,
    )


def written_note(subject: str, by: str, note: Note) -> Annotation:
    """What somebody wrote about a commit without a story: nothing else is known of it."""
    empty = Annotation(shortened(subject), "", [], "", tag(subject, []), by)
    return noted(empty, by, note)


def shortened(text: str) -> str:
    line = " ".join(text.split())
    if len(line) <= TITLE:
        return line
    cut = line[: TITLE - 1].rsplit(" ", 1)[0]
    return (cut if len(cut) > TITLE // 2 else line[: TITLE - 1]) + "…"


def change_summary(files: list[ChangedFile]) -> str:
    """Return how many files and lines changed, and the three files that changed most."""
    if not files:
        return "no file changes"
    added, removed = sum(f.added for f in files), sum(f.removed for f in files)
    largest = sorted(files, key=lambda f: -(f.added + f.removed))
    names = ", ".join(f.path for f in largest[:3])
    more = f" and {len(files) - 3} more" if len(files) > 3 else ""
    noun = "file" if len(files) == 1 else "files"
    return f"{len(files)} {noun}, +{added} −{removed}: {names}{more}"


def tag(subject: str, files: list[ChangedFile]) -> str:
    """Return the kind of a change, by its subject's prefix, its paths, or words of its subject."""
    conventional = _CONVENTIONAL.match(subject)
    if conventional and conventional[1].lower() in _PREFIX:
        return _PREFIX[conventional[1].lower()]
    if not files:
        return _tag_by_words(subject) or "CHORE"
    if all(_TEST_PATH.search(file.path) for file in files):
        return "TEST"
    if all(_DOC_PATH.search(file.path) for file in files):
        return "DOCS"
    grows = sum(file.added - file.removed for file in files) >= 0
    return _tag_by_words(subject) or ("FEATURE" if grows else "CHORE")


def _tag_by_words(subject: str) -> str | None:
    for name, words in _WORDS:
        if re.search(words, subject, re.I):
            return name
    return None


def _alternatives(said: list[StoredEvent]) -> list[str]:
    """Sentences in which the agent weighed one way against another."""
    found: list[str] = []
    for event in said:
        for sentence in re.split(r"(?<=[.!?])\s+|\n+", event.text):
            if _CHOICE.search(sentence) and 20 <= len(sentence) <= 400:
                found.append(_plain(sentence))
    return list(dict.fromkeys(found))[:_KEPT_ALTERNATIVES]


def _first_sentence(text: str) -> str:
    for line in text.splitlines():
        if words := _plain(line):
            sentence = re.split(r"(?<=[.!?])\s", words)[0]
            return sentence if len(sentence) <= _SENTENCE else sentence[: _SENTENCE - 1] + "…"
    return ""


def _plain(text: str) -> str:
    return " ".join(_MARKUP.sub("", text).split())

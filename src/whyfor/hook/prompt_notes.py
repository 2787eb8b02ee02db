"""Tells a session, with a prompt, which notes that prompt is about: at most a few, each once, from
a file that an ingest has made beforehand.

Read only where `init --memory-prompts` asked for it.
"""

import posix
import sys

import announce  # type: ignore[import-not-found]
from block_name import (  # type: ignore[import-not-found]
    block_key,
    block_name,
    checkout,
    notes_name,
)
from memory_block import asked_session, shaped  # type: ignore[import-not-found]
from prompt_words import PROMPT_MAX, is_strong, words_in  # type: ignore[import-not-found]

HEAD, FOOT, MOST, COUNT, NOTES = 1, 2, 3, 4, 5  # lines of the file; the words follow the notes
PER_TOKEN = 4  # characters, about


def answer(folder: bytes, given: dict[bytes, bytes], payload: bytes) -> bytes:
    """Return what to print, and note in `given` what that is; empty if the prompt is about no note
    that the session was not told yet."""
    ident = asked_session(payload)
    prompt = prompt_text(payload)
    if not ident or sys.stdout is None or not prompt or prompt[0] in "/!":
        return b""
    lines = notes_file(folder)
    if len(lines) <= NOTES:
        return b""
    name = given[b"agent"] + b"-" + ident
    told: bytes = announce.content(folder + b"/told/" + name)
    chosen = fitting(lines, words_in(prompt), told)
    if not chosen:
        return b""
    notes = [lines[NOTES + number].split(b"\t") for number in chosen]
    text = b'"' + lines[HEAD] + b"".join(note[1] + b"\\n" for note in notes) + lines[FOOT] + b'"'
    sources = b",".join(b'"%s"' % note[0] for note in notes)
    facts = b'{"block":"%s","part":"prompt","tokens":%d,"sources":[%s],"files":[]}' % (
        block_name(text),
        -(-len(text) // PER_TOKEN),
        sources,
    )
    remember(folder + b"/told", name, facts)
    given[b"memory"] = facts
    answered: bytes = shaped(given, text)
    return answered


def prompt_text(payload: bytes) -> str:
    """Return the beginning of what the person asked, without its escapes."""
    rest = payload.partition(b'"prompt"')[2].lstrip(b" :\t")
    if rest[:1] != b'"':
        return ""
    raw = rest[: 6 * PROMPT_MAX]
    end = announce.string_end(raw)
    text = raw[1 : end if end > 0 else len(raw)].decode("utf-8", "replace")
    first, *others = text.split("\\u")
    for other in others:
        try:
            first += chr(int(other[:4], 16)) + other[4:]
        except ValueError:
            first += " " + other
    for escape in ("\\n", "\\r", "\\t", '\\"', "\\\\"):
        first = first.replace(escape, " ")
    return first.strip()


def notes_file(folder: bytes) -> list[bytes]:
    """Return the lines of the notes on the repository around us; empty if there are none."""
    found = checkout(announce.cwd(), announce.content)
    if found is None:
        return []
    key = block_key(found[0], b"")
    lines: list[bytes] = announce.content(folder + b"/memory/" + notes_name(key)).split(b"\n")
    return lines if lines[0] == key else []


def fitting(lines: list[bytes], words: "set[str]", told: bytes) -> list[int]:
    """Return the numbers of the notes that these words are about, the best first, without those
    that the session was told."""
    count = int(lines[COUNT])
    wanted = {word.encode() for word in words}
    weights: list[dict[bytes, int]] = [{} for _ in range(count)]
    for line in lines[NOTES + count :]:
        word, _, pairs = line.partition(b" ")
        if word in wanted:
            for pair in pairs.split():
                at, _, weight = pair.partition(b":")
                weights[int(at)][word] = int(weight)
    best = []
    for number, found in enumerate(weights):
        whole = [word for word in found if not is_part(word, found)]
        score = sum(found[word] for word in whole)
        source = lines[NOTES + number].partition(b"\t")[0]
        if is_strong(score, len(whole), len(words)) and source not in told:
            best.append((-score, number))
    return [number for _, number in sorted(best)[: int(lines[MOST])]]


def is_part(word: bytes, words: dict[bytes, int]) -> bool:
    """Return whether a word is a part of another one: of a name that stands in the prompt."""
    return any(word != other and word in other for other in words)


def remember(folder: bytes, name: bytes, facts: bytes) -> None:
    """Note what a session was told, behind what it was told before."""
    announce.make_folder(folder)
    flags = posix.O_WRONLY | posix.O_CREAT | posix.O_APPEND
    posix.write(posix.open(folder + b"/" + name, flags, 0o600), facts + b"\n")

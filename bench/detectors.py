"""Runs one detector over a list of texts and writes what is left of them; each runs where it is
installed.

python detectors.py DETECTOR TEXTS.json OUT.json [CPU SECONDS]
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

Redacted = tuple[str, list[str]]  # the text without what was found, and the rules that found it
REFUSED = "refused"
_BATCH = 250  # texts the peers, which are made for files, get at once


def _masked(text: str, found: Iterable[tuple[str, str]]) -> Redacted:
    """The peers only say what they found: all copies of it are taken out."""
    those = sorted(found, key=lambda one: -len(one[0]))
    for value, rule in those:
        if value:
            text = text.replace(value, f"[REDACTED:{rule}]")
    return text, sorted({rule for _, rule in those})


def _batches(texts: list[str]) -> Iterator[list[str]]:
    for start in range(0, len(texts), _BATCH):
        yield texts[start : start + _BATCH]


def whyfor() -> Callable[[list[str]], Iterator[Redacted]]:
    from whyfor.model.errors import NotRedacted
    from whyfor.privacy.engine import Engine
    from whyfor.privacy.rules import load_rules
    from whyfor.privacy.structure_redactor import StructureRedactor

    engine = Engine(load_rules())

    def redact(texts: list[str]) -> Iterator[Redacted]:
        for text in texts:
            # a new one each time: what it knows from one text would help with the next
            redactor = StructureRedactor(engine)
            try:
                if text.startswith('{"'):
                    left = redactor.jsonl(text.encode(errors="surrogatepass")).decode(
                        errors="replace"
                    )
                else:
                    left = redactor.text(text)
            except NotRedacted:
                yield text, [REFUSED]
            else:
                yield left, sorted(redactor.counts)

    return redact


def detect_secrets() -> Callable[[list[str]], Iterator[Redacted]]:
    from detect_secrets.core.scan import scan_file  # type: ignore[import-not-found]
    from detect_secrets.settings import default_settings  # type: ignore[import-not-found]

    def redact(texts: list[str]) -> Iterator[Redacted]:
        with (
            default_settings(),
            tempfile.NamedTemporaryFile("w", suffix=".txt", errors="replace") as file,
        ):
            for batch in _batches(texts):
                owners = [at for at, text in enumerate(batch) for _ in text.split("\n")]
                file.seek(0)
                file.truncate()
                file.write("\n".join(batch).replace("\r", " "))
                file.flush()
                found: list[set[tuple[str, str]]] = [set() for _ in batch]
                for secret in scan_file(file.name):
                    found[owners[secret.line_number - 1]].add((secret.secret_value, secret.type))
                yield from map(_masked, batch, found)

    return redact


def detect_secrets_string() -> Callable[[list[str]], Iterator[Redacted]]:
    """Its scan of single strings, which counts unquoted words of any entropy."""
    from detect_secrets.core.scan import scan_line
    from detect_secrets.settings import default_settings

    def redact(texts: list[str]) -> Iterator[Redacted]:
        with default_settings():
            for text in texts:
                found = (secret for line in text.split("\n") for secret in scan_line(line))
                yield _masked(text, {(secret.secret_value, secret.type) for secret in found})

    return redact


def credsweeper() -> Callable[[list[str]], Iterator[Redacted]]:
    from credsweeper.app import CredSweeper  # type: ignore[import-not-found]
    from credsweeper.file_handler.string_content_provider import (  # type: ignore[import-not-found]
        StringContentProvider,
    )

    program = CredSweeper()
    known = program.credential_manager

    def redact(texts: list[str]) -> Iterator[Redacted]:
        for batch in _batches(texts):
            known.clear_credentials()
            for at, text in enumerate(batch):
                provider = StringContentProvider(
                    text.split("\n"), file_path=f"{at}.txt", file_type=".txt"
                )
                known.extend_credentials(program.file_scan(provider))
            program.post_processing(None)
            found: list[set[tuple[str, str]]] = [set() for _ in batch]
            for candidate in known.get_credentials():
                for line in candidate.line_data_list:
                    found[int(Path(line.path).stem)].add((line.value or "", candidate.rule_name))
            yield from map(_masked, batch, found)

    return redact


DETECTORS = {
    "ours": whyfor,
    "detect-secrets": detect_secrets,
    "d-s --string": detect_secrets_string,
    "CredSweeper": credsweeper,
}


def main() -> None:
    name, source, target, *budget = sys.argv[1:]
    texts = json.loads(Path(source).read_bytes())
    limit = float(budget[0]) if budget else float("inf")
    redact = DETECTORS[name]()
    started = time.process_time()
    done: list[Redacted] = []
    for one in redact(texts):
        done.append(one)
        if time.process_time() - started > limit:
            break
    size = sum(len(text.encode(errors="replace")) for text in texts[: len(done)])
    result = {"cpu": time.process_time() - started, "size": size, "redacted": done}
    Path(target).write_text(json.dumps(result))


if __name__ == "__main__":
    main()

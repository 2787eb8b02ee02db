"""Secrets of the labelled corpus planted in carriers and in whole transcripts, and which of them
nobody tunes on."""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random

import msgspec

from carriers import CARRIERS, Carried, Scene

_HELD = 0.3  # of the rules and of the carriers


class Row(msgspec.Struct, frozen=True):
    """One labelled example of the corpus."""

    rule: str
    label: str
    text: str
    secret: str


@dataclass(frozen=True)
class Case:
    """One secret in one carrier."""

    rule: str
    carrier: str
    secret: str
    carried: Carried
    split: str

    @property
    def held_out(self) -> bool:
        return self.split != DEV


DEV, NEW_RULES, NEW_CARRIERS, NEW_BOTH = (
    "dev",
    "held-out rules",
    "held-out carriers",
    "held-out rules and carriers",
)
SPLITS = (DEV, NEW_RULES, NEW_CARRIERS, NEW_BOTH)


def rows(path: Path) -> list[Row]:
    with gzip.open(path) as lines:
        return [msgspec.json.decode(line, type=Row) for line in lines]


def secrets(labelled: Iterable[Row]) -> dict[str, list[str]]:
    """The distinct secrets of each rule, without the quotes and line ends some of the labels
    took along."""
    found: dict[str, dict[str, None]] = {}
    for row in labelled:
        if row.label == "tp" and (secret := _bare(row)):
            found.setdefault(row.rule, {})[secret] = None
    return {rule: list(those) for rule, those in sorted(found.items())}


def _bare(row: Row) -> str | None:
    secret = row.secret.strip("\"'\n\\<&")
    if row.rule == "curl-auth-user":
        secret = secret.partition(":")[2]  # the user is not the secret
    usable = len(secret) >= 8 and not any(mark in secret for mark in "\"'{} \n")
    return secret if usable else None


def held_out(names: Iterable[str]) -> set[str]:
    """Drawn by lot, the same ones every time."""
    ordered = sorted(names)
    return set(Random("held out").sample(ordered, round(len(ordered) * _HELD)))


def cases(labelled: Iterable[Row], seed: int = 1) -> list[Case]:
    """Every rule in every carrier, the rule's secrets taking turns."""
    by_rule = secrets(labelled)
    rules, carriers = held_out(by_rule), held_out(CARRIERS)
    made: list[Case] = []
    for rule, those in by_rule.items():
        for at, (carrier, carry) in enumerate(CARRIERS.items()):
            secret = those[at % len(those)]
            carried = carry(
                Scene(Random(f"{seed}:{rule}:{carrier}"), secret, rule.partition("-")[0])
            )
            split = SPLITS[(rule in rules) + 2 * (carrier in carriers)]
            made.append(Case(rule, carrier, secret, carried, split))
    return made


def records(planted: Iterable[Case], seed: int = 1) -> Iterator[bytes]:
    """Each case in a record of an agent, quoted the way the agent does."""
    for at, case in enumerate(planted):
        yield record_of(Random(f"{seed}:{at}"), case.carried.text)


def record_of(rng: Random, text: str) -> bytes:
    """A text in a record of one of the agents."""
    return msgspec.json.encode(rng.choice(_SHAPES)(rng, text))


Record = dict[str, object]


def _uuid(rng: Random) -> str:
    digits = f"{rng.getrandbits(128):032x}"
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-a{digits[17:20]}-{digits[20:]}"


def _claude(rng: Random, kind: str, content: object, **more: object) -> Record:
    message: Record = {"role": kind, "content": content}
    if kind == "assistant":
        message["id"] = f"msg_01{rng.getrandbits(88):022x}"
    envelope: Record = {
        "parentUuid": _uuid(rng),
        "isSidechain": False,
        "type": kind,
        "message": message,
    }
    envelope |= {
        "uuid": _uuid(rng),
        "timestamp": "2026-03-04T10:11:12.345Z",
        "sessionId": _uuid(rng),
    }
    return envelope | {"cwd": "/home/dev/shop", "version": "2.1.197", "gitBranch": "main"} | more


def _call_id(rng: Random) -> str:
    return f"toolu_01{rng.getrandbits(88):022x}"


def _prompt(rng: Random, text: str) -> Record:
    return _claude(rng, "user", text)


def _answer(rng: Random, text: str) -> Record:
    return _claude(
        rng, "assistant", [{"type": "text", "text": f"This is what I found:\n\n```\n{text}\n```"}]
    )


def _result(rng: Random, text: str) -> Record:
    block = {"tool_use_id": _call_id(rng), "type": "tool_result", "content": text}
    return _claude(
        rng, "user", [block], toolUseResult={"stdout": text, "stderr": "", "interrupted": False}
    )


def _read(rng: Random, text: str) -> Record:
    """Claude's Read numbers the lines it shows and keeps the file without numbers beside."""
    shown = "\n".join(
        f"{at:>6}→{line}" for at, line in enumerate(text.split("\n"), rng.randint(1, 300))
    )
    block = {
        "tool_use_id": _call_id(rng),
        "type": "tool_result",
        "content": [{"type": "text", "text": shown}],
    }
    kept = {
        "type": "text",
        "file": {"filePath": "/home/dev/shop/config.txt", "content": text, "numLines": 9},
    }
    return _claude(rng, "user", [block], toolUseResult=kept)


def _command(rng: Random, text: str) -> Record:
    given = {"command": f"cat <<'EOF' > notes.txt\n{text}\nEOF", "description": "Write the notes"}
    return _claude(
        rng,
        "assistant",
        [{"type": "tool_use", "id": _call_id(rng), "name": "Bash", "input": given}],
    )


def _codex(kind: str, **payload: object) -> Record:
    return {"timestamp": "2026-03-04T10:11:12.345Z", "type": kind, "payload": payload}


def _codex_output(rng: Random, text: str) -> Record:
    head = "Chunk ID: 3f9c2b\nWall time: 0.05 seconds\nProcess exited with code 0\nOutput:\n"
    call = f"call_{rng.getrandbits(96):024x}"
    return _codex("response_item", type="function_call_output", call_id=call, output=head + text)


def _codex_call(rng: Random, text: str) -> Record:
    arguments = msgspec.json.encode(
        {"cmd": f"printf %s {text}", "workdir": "/home/dev/shop"}
    ).decode()
    call = f"call_{rng.getrandbits(96):024x}"
    return _codex(
        "response_item",
        type="function_call",
        name="exec_command",
        arguments=arguments,
        call_id=call,
    )


def _codex_message(_rng: Random, text: str) -> Record:
    part = {"type": "input_text", "text": text}
    return _codex("response_item", type="message", role="user", content=[part])


_SHAPES = [
    _prompt,
    _answer,
    _result,
    _result,
    _read,
    _read,
    _command,
    _codex_output,
    _codex_call,
    _codex_message,
]

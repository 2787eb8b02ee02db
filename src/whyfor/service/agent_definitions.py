"""Agents that a user defines in files: `whyfor agents new` and `check`, and their use."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import msgspec

from whyfor.agents import AGENTS
from whyfor.agents.base import head_records
from whyfor.agents.declared.agent import DeclaredAgent
from whyfor.agents.declared.definition import AgentDefinition, parse_definition, read_definition
from whyfor.agents.declared.template import definition_text
from whyfor.agents.decode import decode_line, split_lines
from whyfor.config import Settings
from whyfor.files import make_folders, replace
from whyfor.model.errors import BadInput, NotFound
from whyfor.model.findings import Sink
from whyfor.model.sources import UnparsedRecord

_SAMPLE_MAX = 32 << 20  # bytes of a transcript that are tried


def definitions_folder(settings: Settings) -> Path:
    return settings.home / "agents"


class TriedFile(msgspec.Struct, frozen=True):
    """What a definition reads of one transcript."""

    path: str
    recognised: bool
    session_id: str | None = None
    records: int = 0
    events: dict[str, int] = {}  # by kind
    tokens: int = 0  # answers whose tokens are counted
    files: list[str] = []  # that calls read or wrote
    prompts: list[str] = []
    unknown: dict[str, int] = {}  # records that no rule is for
    unparsed: int = 0  # lines that are no JSON


def new_definition(settings: Settings, name: str, sample: Path | None) -> Path:
    """Write a definition to start from; with a sample, what its records look like stands in it.
    Raises BadInput if the name is taken."""
    path = definitions_folder(settings) / f"{name}.toml"
    if name in AGENTS or path.exists():
        raise BadInput(f"an agent is called {name!r} already", "Choose another name.")
    if sample:
        place = _below_home(sample.expanduser().absolute().parent, settings.user_home)
        text = definition_text(name, list(_sample_records(sample)), place)
    else:
        text = definition_text(name, [])
    parse_definition(text, path.name)
    make_folders(path.parent)
    replace(path, text.encode())
    return path


def _below_home(folder: Path, home: Path) -> str:
    """Return a directory as a definition names it."""
    if folder.is_relative_to(home):
        return f"~/{folder.relative_to(home).as_posix()}"
    return folder.as_posix()


def _sample_records(sample: Path) -> Iterator[dict[str, object]]:
    try:
        with sample.open("rb") as file:
            data = file.read(_SAMPLE_MAX)
    except OSError as error:
        raise NotFound(f"cannot read {sample}: {error.strerror}", "Name a transcript.") from None
    yield from head_records(data, 2_000)


def check_definition(
    settings: Settings, which: str, samples: list[Path]
) -> tuple[AgentDefinition, list[TriedFile]]:
    """Return a definition, by its agent's name or its file, and what it reads of transcripts: of
    those given, else of the newest it finds. Raises BadInput if the definition is wrong."""
    path = (
        Path(which) if which.endswith(".toml") else definitions_folder(settings) / f"{which}.toml"
    )
    if not path.is_file():
        raise NotFound(f"there is no definition {path}", f"Write one: whyfor agents new {which}")
    definition = read_definition(path)
    agent = DeclaredAgent(definition)
    chosen = samples or _newest(agent, settings)
    return definition, [_try(agent, each) for each in chosen]


def _newest(agent: DeclaredAgent, settings: Settings) -> list[Path]:
    found: list[Path] = []
    for root in agent.roots(settings.user_home, settings.env):
        found += agent.find(root, lambda _: None)
    newest = sorted(found, key=lambda path: path.stat().st_mtime, reverse=True)
    return newest[:3]


def _try(agent: DeclaredAgent, path: Path) -> TriedFile:
    try:
        with path.open("rb") as file:
            data = file.read(_SAMPLE_MAX)
    except OSError as error:
        raise NotFound(f"cannot read {path}: {error.strerror}", "Name a transcript.") from None
    shape = agent.sniff(path, data)
    if shape is None:
        return TriedFile(os.fspath(path), recognised=False)
    sink = Sink(shape.session_id)
    reader = agent.reader(shape, {})
    records = unparsed = 0
    for offset, line in split_lines(data, 0):
        found = decode_line(line, offset)
        if isinstance(found, UnparsedRecord):
            unparsed += 1
            continue
        for record in found:
            records += 1
            reader.read(record, offset, line, sink)
    events = sink.main.events
    return TriedFile(
        path=os.fspath(path),
        recognised=True,
        session_id=shape.session_id,
        records=records,
        events=dict(Counter(event.kind for event in events)),
        tokens=len(sink.main.usage),
        files=sorted({touch.path for touch in sink.main.touches}),
        prompts=[event.text for event in events if event.kind == "user.prompt"],
        unknown=sink.unknown,
        unparsed=unparsed,
    )

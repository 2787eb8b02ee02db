"""Recordings of terminals: what `whyfor run` writes for programs that leave no files of their own.

The format is asciicast v3: a line with a header, then one array per event. Recordings that other
programs made are read too.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from whyfor.agents.base import (
    FileAgent,
    OnError,
    RecordReader,
    RecordStamp,
    SourceShape,
    get_dict,
    get_str,
    head_records,
    walk,
)
from whyfor.agents.facts import AgentFacts, split_words
from whyfor.agents.terminal.cast import header_time, is_header, recording_name
from whyfor.model.findings import Record

FOLDER = "recordings"  # below Whyfor's directory
FACTS = AgentFacts(
    mark="Te",
    colour="#8a8f98",
    untold=("thinking", "exit codes", "branch", "model", "tokens per answer", "cached tokens"),
    structure=frozenset(split_words("version type timestamp cwd")),
    identities=frozenset(split_words("version timestamp")),
)


class TerminalRecordings(FileAgent):
    name = "terminal"
    title = "Terminal"
    facts = FACTS

    def roots(self, home: Path, env: Mapping[str, str]) -> list[Path]:
        if override := env.get("WHYFOR_HOME"):
            return [Path(override).expanduser().absolute() / FOLDER]
        if sys.platform == "darwin":
            return [home / "Library" / "Application Support" / "whyfor" / FOLDER]
        data = Path(env["XDG_DATA_HOME"]) if env.get("XDG_DATA_HOME") else home / ".local/share"
        return [data / "whyfor" / FOLDER]

    def find(self, root: Path, onerror: OnError) -> Iterator[Path]:
        return walk(root, (".cast",), onerror)

    def sniff(self, path: Path, head: bytes) -> SourceShape | None:
        header = next(head_records(head, limit=1), {})
        if not is_header(header):
            return None
        cwd = get_str(get_dict(header, "whyfor"), "cwd") or None
        return SourceShape("lines", recording_name(header, head), cwd=cwd)

    def stamp(self, record: Record) -> RecordStamp:
        """Only the header says when and where; events follow one another by intervals."""
        at = header_time(record)
        return RecordStamp(at=at, since=at, cwd=get_str(get_dict(record, "whyfor"), "cwd") or None)

    def reader(self, shape: SourceShape, state: Record) -> RecordReader:
        from whyfor.agents.terminal.read import CastReader  # most commands read nothing

        return CastReader(state, shape, FACTS)


AGENT = TerminalRecordings()

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence

from tests.agents.quill.facts import own_folder
from whyfor.agents.base import as_str
from whyfor.agents.conversation import NewFile, NewSession, SpokenLine, json_lines
from whyfor.model.findings import Record
from whyfor.model.times import to_iso


class QuillWriter:
    def new_id(self, now: int) -> str:
        return str(uuid.uuid4())

    def command(self, session_id: str, path: str = "") -> str:
        return f"quill --unroll {session_id}"

    def opens(self, record: Record) -> list[str]:
        return [as_str(record["call"])] if record.get("verb") == "uses" else []

    def answers(self, record: Record) -> list[str]:
        return [as_str(record["call"])] if record.get("verb") == "got" else []

    def asks(self, record: Record) -> bool:
        return record.get("verb") == "asks"

    def without(self, record: Record, calls: set[str]) -> Record | None:
        return None if record.get("call") in calls else record

    def ident(self, record: Record) -> str | None:
        return None

    def continues(self, records: Sequence[Record]) -> tuple[str, int] | None:
        return None

    def exact(self, records: Sequence[Record], place: NewSession) -> list[Record]:
        return self.joined(records, place)

    def live(self, records: Sequence[Record]) -> list[Record]:
        return list(records)

    def spoken(self, said: Iterable[SpokenLine]) -> list[Record]:
        return [
            {
                "verb": "asks" if line.role == "user" else "says",
                "words": line.text,
                "timestamp": to_iso(line.at),
            }
            for line in said
        ]

    def joined(self, records: Sequence[Record], place: NewSession) -> list[Record]:
        return [{**record, "scroll": place.session_id} for record in records]

    def beside(
        self, path: str, records: Sequence[Record] | None, session_id: str, place: NewSession
    ) -> NewFile | None:
        return None

    def files(self, records: Sequence[Record], place: NewSession) -> list[NewFile]:
        folder = own_folder(place.home, place.env) / "scrolls"
        return [NewFile(folder / f"{place.session_id}.jsonl", json_lines(records))]

"""Write a session of Gemini CLI: a header and its messages, in its project's directory."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable, Sequence
from hashlib import sha256
from pathlib import Path

import msgspec

from whyfor.agents.base import as_dict, as_list, get_dict, get_list, get_str
from whyfor.agents.conversation import NewFile, NewSession, SpokenLine, json_lines
from whyfor.agents.gemini.facts import own_folder
from whyfor.model.findings import Record
from whyfor.model.times import to_iso

OWNER = ".project_root"  # says whose folder it is


class GeminiWriter:
    def new_id(self, now: int) -> str:
        return str(uuid.uuid4())

    def command(self, session_id: str, path: str = "") -> str:
        return f"gemini --resume {session_id}"

    # -- the content of a record -----------------------------------------------------------------

    def opens(self, record: Record) -> list[str]:
        return []  # a call and its result are one message

    def answers(self, record: Record) -> list[str]:
        return []

    def asks(self, record: Record) -> bool:
        parts = record.get("content")
        answered = any("functionResponse" in as_dict(part) for part in as_list(parts))
        return record.get("type") == "user" and not answered

    def without(self, record: Record, calls: set[str]) -> Record | None:
        return record

    def ident(self, record: Record) -> str | None:
        return get_str(record, "id") or None

    def continues(self, records: Sequence[Record]) -> tuple[str, int] | None:
        return None

    # -- sessions --------------------------------------------------------------------------------

    def exact(self, records: Sequence[Record], place: NewSession) -> list[Record]:
        return self.joined(self.live(records), place)

    def live(self, records: Sequence[Record]) -> list[Record]:
        """Replay the edit log: later versions replace earlier ones, a rewind deletes, a `$set`
        starts anew."""
        found: dict[str, Record] = {}
        times: dict[str, object] = {}  # a rewritten message has the time of the rewrite
        for record in records:
            anew = get_dict(record, "$set").get("messages")
            target = get_str(record, "$rewindTo")
            if isinstance(anew, list):
                messages = {
                    _ident(message): message for message in anew if isinstance(message, dict)
                }
                known = {
                    name: times.setdefault(name, m.get("timestamp")) for name, m in messages.items()
                }
                found = {
                    name: {**message, "timestamp": known[name]}
                    for name, message in messages.items()
                }
            elif target:
                names = list(found)
                for name in names[names.index(target) if target in found else 0 :]:
                    del found[name]
            elif "type" in record:
                times.setdefault(_ident(record), record.get("timestamp"))
                found[_ident(record)] = record
        answered: set[str] = set()
        for message in found.values():
            answered.update(_ids(message, "functionResponse"))
        kept = (_settled(message, answered) for message in found.values() if not _context(message))
        return [message for message in kept if message is not None]

    def spoken(self, said: Iterable[SpokenLine]) -> list[Record]:
        return [_message(item) for item in said]

    def joined(self, records: Sequence[Record], place: NewSession) -> list[Record]:
        begun = next(
            (record["timestamp"] for record in records if record.get("timestamp")),
            to_iso(place.now),
        )
        # Updated today: what is older than a month is cleared away when the agent starts.
        header: Record = {
            "sessionId": place.session_id,
            "projectHash": sha256(place.cwd.encode()).hexdigest(),
            "startTime": begun,
            "lastUpdated": to_iso(place.now),
            "kind": "main",
            "summary": place.title,
        }
        if place.origin:
            header["forkedFrom"] = place.origin
        # Tokens are counted where they were spent, in the session this is a copy of.
        kept = [_without_tokens(record) for record in records]
        end: Record = {"$set": {"lastUpdated": header["lastUpdated"]}}
        return [header, *kept, {**end, "restoredFrom": place.copy_of}]

    # -- files -----------------------------------------------------------------------------------

    def files(self, records: Sequence[Record], place: NewSession) -> list[NewFile]:
        root = own_folder(place.home, place.env) / "tmp"
        registry = root.parent / "projects.json"
        known = _registry(registry)
        projects = {
            path: slug
            for path, slug in get_dict(known, "projects").items()
            if isinstance(slug, str)
        }
        slug = _slug(place.cwd, projects, root)
        stamp = (to_iso(place.now) or "")[:16].replace(":", "-")
        path = root / slug / "chats" / f"session-{stamp}-{place.session_id[:8]}.jsonl"
        files = [NewFile(path, json_lines(records))]
        for folder in (root, root.parent / "history"):
            if not (mark := folder / slug / OWNER).exists():
                files.append(NewFile(mark, place.cwd.encode()))
        if projects.get(place.cwd) != slug:
            body = msgspec.json.encode({**known, "projects": {**projects, place.cwd: slug}})
            files.append(NewFile(registry, msgspec.json.format(body, indent=2)))
        return files

    def beside(
        self, path: str, records: Sequence[Record] | None, session_id: str, place: NewSession
    ) -> NewFile | None:
        return None  # a subagent's report is in the conversation


def _ident(message: Record) -> str:
    return get_str(message, "id") or str(id(message))


def _context(message: Record) -> bool:
    """Return whether the program wrote this message to say where the session runs; it writes it
    anew on resume."""
    first = as_dict(next(iter(get_list(message, "content")), None))
    return message.get("type") == "user" and get_str(first, "text").startswith("<session_context>")


def _without_tokens(record: Record) -> Record:
    return {name: value for name, value in record.items() if name != "tokens"}


def _ids(message: Record, name: str) -> set[str]:
    """Return the ids of the calls, or of the answers, in a message."""
    parts = [as_dict(part) for part in get_list(message, "content")]
    return {get_str(as_dict(part[name]), "id") for part in parts if name in part}


def _settled(message: Record, answered: set[str]) -> Record | None:
    """Return a message without calls that were never answered; None if nothing else was in it."""
    calls = [as_dict(call) for call in get_list(message, "toolCalls")]
    done = answered | {get_str(call, "id") for call in calls if call.get("result")}
    left_open = (_ids(message, "functionCall") | {get_str(call, "id") for call in calls}) - done
    if not left_open:
        return message
    kept = {
        **message,
        "toolCalls": [call for call in calls if get_str(call, "id") not in left_open],
    }
    if isinstance(content := message.get("content"), list):
        kept["content"] = [
            part for part in content if not _ids({"content": [part]}, "functionCall") & left_open
        ]
    return kept if kept["toolCalls"] or kept.get("content") else None


def _message(said: SpokenLine) -> Record:
    message: Record = {"id": str(uuid.uuid4()), "timestamp": to_iso(said.at)}
    if said.role == "user":
        return {**message, "type": "user", "content": [{"text": said.text}]}
    return {**message, "type": "gemini", "content": said.text, "model": said.model or "unknown"}


def _registry(path: Path) -> Record:
    try:
        return as_dict(msgspec.json.decode(path.read_bytes()))
    except (FileNotFoundError, msgspec.DecodeError, UnicodeDecodeError):
        return {}  # the agent replaces a damaged one too


def _slug(cwd: str, projects: dict[str, str], root: Path) -> str:
    """Return the agent's short name for a directory, chosen as it would: the registered one, a
    marked one, a free one."""
    marked = {
        folder.parent.name: folder.read_text().strip() for folder in sorted(root.glob(f"*/{OWNER}"))
    }
    if (own := projects.get(cwd)) and marked.get(own, cwd) == cwd:
        return own
    if found := next((name for name, owner in marked.items() if owner == cwd), None):
        return found
    base = re.sub(r"[^a-z0-9]+", "-", Path(cwd).name.lower()).strip("-") or "project"
    taken = {*projects.values(), *marked}
    number, slug = 0, base
    while slug in taken:
        number += 1
        slug = f"{base}-{number}"
    return slug


WRITER = GeminiWriter()

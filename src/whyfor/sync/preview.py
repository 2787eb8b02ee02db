"""What would leave, before it does: the records themselves, as they would be sent."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from whyfor.agents import AGENTS, decode
from whyfor.agents.base import SourceShape
from whyfor.config import Settings
from whyfor.model.errors import WhyforError
from whyfor.model.findings import Sink
from whyfor.model.sources import UnparsedRecord
from whyfor.model.sync import COMMIT, LOCAL, SESSION, WAITS, OutboxItem, Remote
from whyfor.store.open import LocalStore, reading_local
from whyfor.sync.package import SourcePackage, StoryPackage, StoryPacker
from whyfor.sync.remotes import RemoteFile
from whyfor.sync.worker import StoryChooser

_LINES = 400  # of one story


class PreviewLine(msgspec.Struct, frozen=True):
    """A line of a story as it would leave."""

    kind: str  # prompt | answer | thinking | tool | result
    name: str
    text: str


class StoryPreview(msgspec.Struct, frozen=True):
    """One story as it would leave; an error if it cannot."""

    name: str  # sha, or agent:id
    title: str
    sessions: list[str]
    bytes: int
    redacted: dict[str, int]  # places, by rule
    withheld: int  # ranges of its sessions that stay here
    lines: list[PreviewLine] = []
    error: str | None = None


def preview_items(
    settings: Settings,
    decided: RemoteFile,
    remote: Remote,
    items: Iterable[OutboxItem],
    *,
    lines: bool = False,
) -> list[StoryPreview]:
    """Return what these items of the outbox would send."""
    with reading_local(settings) as store:
        found = store.projects.find(remote.project)
        if found is None:
            return []
        chooser = StoryChooser(store, decided, remote, found[0])
        packer = StoryPacker(settings, store, store.blobs)
        told = []
        for item in items:
            if item.kind in (COMMIT, SESSION):
                told.append(_preview(store, item, chooser, packer, lines=lines))
        return [each for each in told if each is not None]


def waiting_items(store: LocalStore, project: int) -> list[OutboxItem]:
    """Return what waits, oldest first."""
    return store.outbox.items(project, [WAITS])


def local_items(store: LocalStore, project: int) -> list[OutboxItem]:
    """Return what was not pushed yet, oldest first."""
    return store.outbox.items(project, [LOCAL])


def _preview(
    store: LocalStore,
    item: OutboxItem,
    chooser: StoryChooser,
    packer: StoryPacker,
    *,
    lines: bool,
) -> StoryPreview | None:
    title = item_title(store, item)
    try:
        package = chooser.package(item, packer)
    except WhyforError as error:
        return StoryPreview(item.name, title, [], 0, {}, 0, error=error.message)
    if package is None:
        return None
    sessions = [f"{each.local.agent}:{each.local.session_id}" for each in package.sources]
    told = list(shared_lines(package))[:_LINES] if lines else []
    return StoryPreview(
        item.name,
        title,
        list(dict.fromkeys(sessions)),
        package.size,
        dict(sorted(package.redacted.items())),
        chooser.withheld(item),
        told,
    )


def item_title(store: LocalStore, item: OutboxItem) -> str:
    """Return what an item is called: the title of a commit's story, or of a session."""
    if item.kind == COMMIT:
        found = store.checkpoints.of_commits([item.name]).get(item.name)
        if found is None:
            return "(gone)"
        return found.annotation.title if found.annotation else found.subject
    agent, _, session_id = item.name.partition(":")
    numbers = store.sessions.numbers([(agent, session_id)])
    for session in store.sessions.by_number(list(numbers.values())).values():
        return session.title or "(no prompt)"
    return item.name


def shared_lines(package: StoryPackage) -> Iterator[PreviewLine]:
    """Yield what is said in a story as it would leave."""
    for source in package.sources:
        yield from _source_lines(source)


_KINDS = {
    "user.prompt": "prompt",
    "assistant.message": "answer",
    "assistant.thinking": "thinking",
    "tool.call": "tool",
    "tool.result": "result",
}


def _source_lines(source: SourcePackage) -> Iterator[PreviewLine]:
    local = source.local
    if local.framing == "blob":
        yield PreviewLine("result", source.path, source.content.decode("utf-8", "replace"))
        return
    shape = SourceShape(
        local.framing,  # type: ignore[arg-type]  # it was one when it was read
        *(local.session_id, local.parent, local.sidecar, local.cwd),
    )
    reader = AGENTS[local.agent].reader(shape, {})
    for offset, line in decode.split_lines(source.content, 0):
        found = decode.decode_line(line, offset)
        for record in [] if isinstance(found, UnparsedRecord) else found:
            sink = Sink(local.session_id, local.parent)
            reader.read(record, offset, line, sink)
            for event in sink.main.events:
                if event.kind in _KINDS:
                    text = event.text or _given(event.data)
                    yield PreviewLine(_KINDS[event.kind], event.name or "", text)


def _given(data: dict[str, object] | None) -> str:
    given = (data or {}).get("input")
    if isinstance(given, dict):
        return "\n".join(str(value) for value in given.values())
    return "" if given is None else str(given)

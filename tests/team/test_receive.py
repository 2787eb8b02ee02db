"""What machines send: redacted segments become the events that an ingest makes of them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.cases import check_each
from tests.conftest import Result
from tests.store.contract.build import NOW, SHOP
from tests.store.team import Team, TeamProject, postgres_18
from tests.transcripts import Transcript
from whyfor.config import Settings
from whyfor.model.errors import BadInput, NotFound, OutdatedUpload, StoreError
from whyfor.model.events import StoredEvent
from whyfor.model.query import Atom, Filters, Query
from whyfor.store.objects import ObjectBlobs, open_objects
from whyfor.store.open import open_store, reading
from whyfor.store.protocol import SharedStore
from whyfor.team.receive import SessionUpload, UploadedSegment, UploadReceiver, check_upload

__all__ = ["postgres_18"]
LINES = 4  # of one segment


class Sender:
    """One person's machine, and the server's side for that person."""

    def __init__(self, store: SharedStore, blobs: ObjectBlobs) -> None:
        self.store = store
        self.blobs = blobs
        self.receiver = UploadReceiver(store, blobs, SHOP, lambda: NOW)

    def upload(self, told: Transcript, generation: int = 0, **more: str) -> SessionUpload:
        segments = tuple(cut(told.text()))
        names = {"machine": "laptop", "agent": "claude", "path": "/s.jsonl", "framing": "lines"}
        return SessionUpload(
            **{**names, **more},
            session_id=told.session_id,
            generation=generation,
            segments=segments,
        )

    def send(self, told: Transcript, generation: int = 0, **more: str) -> tuple[int, int, bool]:
        upload = self.upload(told, generation, **more)
        missing = self.receiver.plan(upload).missing
        for content in pieces(told.text()):
            if hashlib.sha256(content).hexdigest() in missing:
                self.blobs.put(content)
        found = self.receiver.commit(upload)
        return found.segments, found.events, found.replaced

    def events(self, told: Transcript) -> list[StoredEvent]:
        name = ("claude", told.session_id)
        number = self.store.sessions.numbers([name])[name]
        return [replace(event, observed_at=0) for event in self.store.conversation.events(number)]

    def finds(self, word: str) -> bool:
        query = Query(clauses=((Atom(word),),))
        return bool(self.store.search.match(query, Filters(), 9))


def pieces(text: str) -> Iterator[bytes]:
    lines = text.encode().splitlines(keepends=True)
    for at in range(0, len(lines), LINES):
        yield b"".join(lines[at : at + LINES])


def cut(text: str) -> Iterator[UploadedSegment]:
    start = 0
    for content in pieces(text):
        end = start + len(content)
        yield UploadedSegment(start, end, hashlib.sha256(content).hexdigest())
        start = end


def talk(name: str = "talk", turns: int = 5, word: str = "walrus") -> Transcript:
    told = Transcript(name, cwd="/somewhere/on/a/laptop")
    for turn in range(turns):
        told.prompt(f"mend gate {turn} of the {word}")
        told.call("Bash", {"command": f"mend {turn}"}, f"mended {turn}\n" + "long " * 3000)
        told.say(f"gate {turn} is mended")
    return told


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.slow)])
def sender(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Sender]:
    store: SharedStore
    if request.param == "sqlite":
        store = open_store(tmp_path / "team.db")
    else:
        store = request.getfixturevalue("postgres_18").new_project().writer()
    with closing(store):
        yield Sender(store, ObjectBlobs(open_objects(f"file://{tmp_path}/objects"), 1))


def test_the_server_makes_the_events_that_an_ingest_makes(
    sender: Sender, home: Path, cli: Callable[..., Result], settings: Settings
) -> None:
    told = talk()
    told.save(home)
    assert cli("ingest").code == 0
    assert sender.send(told) == (len(list(pieces(told.text()))), len(sender.events(told)), False)
    with reading(settings) as local:
        name = ("claude", told.session_id)
        number = local.sessions.numbers([name])[name]
        expected = [replace(each, observed_at=0) for each in local.conversation.events(number)]
        here = local.sessions.by_number([number])[number]
    assert sender.events(told) == expected
    there = sender.store.sessions.find(told.session_id)
    assert replace(there, id=0, project=None) == replace(here, id=0, project=None)
    assert there.project == SHOP.identity, "wherever it ran, it is of the project it was sent to"


def test_every_step_may_be_repeated_and_changes_nothing(sender: Sender) -> None:
    told = talk()
    upload = sender.upload(told)
    with pytest.raises(NotFound, match="objects were not sent"):
        sender.receiver.commit(upload)
    first = sender.send(told)
    before = sender.events(told)
    assert first[0] > 1
    assert sender.receiver.plan(upload) == sender.receiver.plan(upload)
    assert sender.receiver.plan(upload).missing == ()
    for _ in range(2):
        assert sender.send(told) == (0, 0, False)
    assert sender.events(told) == before


def test_a_session_that_grew_is_read_on_and_a_late_upload_takes_nothing_back(
    sender: Sender,
) -> None:
    told = talk(turns=4)
    early = sender.upload(told)
    assert len(told.lines) % LINES == 0
    sender.send(told)
    before = len(sender.events(told))
    told.prompt("and the wall")
    assert sender.send(told)[0] == 1
    grown = sender.events(told)
    assert len(grown) > before
    assert sender.receiver.commit(early).segments == 0
    assert sender.events(told) == grown


def test_a_commit_that_breaks_off_leaves_nothing_and_succeeds_later(
    sender: Sender, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = talk()
    get = sender.blobs.get
    for content in pieces(told.text()):
        sender.blobs.put(content)
    upload = sender.upload(told)
    for broken in upload.segments:

        def failing(address: str, broken: str = broken.digest) -> bytes:
            if address == broken:
                raise StoreError("the object store refused", "Try again.")
            return get(address)

        monkeypatch.setattr(sender.blobs, "get", failing)
        with pytest.raises(StoreError, match="refused"):
            sender.receiver.commit(upload)
        assert sender.store.sessions.matching(Filters(), limit=9, subagents=True) == []
    monkeypatch.setattr(sender.blobs, "get", get)
    assert sender.receiver.commit(upload).segments == len(upload.segments)


def test_a_newer_generation_replaces_all_that_came_of_the_older_one(sender: Sender) -> None:
    secret, redacted = talk(word="walrus"), talk(word="REDACTED")
    sender.send(secret)
    before = set(sender.blobs.digests())
    assert sender.finds("walrus")
    with pytest.raises(OutdatedUpload, match="other bytes"):
        sender.send(redacted)
    assert sender.send(redacted, 1)[2]
    assert not sender.finds("walrus")
    assert sender.finds("REDACTED")
    events = sender.events(redacted)
    assert "walrus" not in str(events)
    assert len(events) == len({event.seq for event in events})
    assert set(sender.blobs.digests()) == {each.digest for each in sender.upload(redacted).segments}
    assert not before & set(sender.blobs.digests())
    with pytest.raises(OutdatedUpload, match="was replaced"):
        sender.receiver.plan(sender.upload(secret))
    assert sender.send(redacted, 1) == (0, 0, False)


def test_what_else_tells_of_a_session_stays_when_one_source_is_replaced(sender: Sender) -> None:
    one, other = talk(word="walrus"), talk(word="walrus")
    other.lines = other.lines[:]
    other.prompt("seen on another machine only")
    sender.send(one)
    sender.send(other, machine="desktop")
    assert sender.finds("another")
    assert sender.send(talk(turns=1, word="herring"), 1)[2]
    assert sender.finds("another")
    assert sender.finds("walrus"), "the other machine still tells it"


@pytest.mark.slow
def test_what_another_person_sent_too_stays_theirs(postgres_18: Team, tmp_path: Path) -> None:
    project: TeamProject = postgres_18.new_project()
    blobs = ObjectBlobs(open_objects(f"file://{tmp_path}"), project.number)
    colleague = project.add("member")
    with closing(project.writer()) as mine, closing(project.writer(colleague)) as theirs:
        one, two = Sender(mine, blobs), Sender(theirs, blobs)
        one.send(talk())
        assert two.receiver.plan(two.upload(talk())).missing == ()
        two.send(talk())
        one.send(talk(word="herring"), 1)
        assert not one.finds("walrus")
        assert two.finds("walrus")
        for segment in two.upload(talk()).segments:
            assert blobs.has(segment.digest)
        two.send(talk(word="herring"), 1)
        assert not any(blobs.has(segment.digest) for segment in two.upload(talk()).segments)


def bad(**changes: object) -> SessionUpload:
    upload = SessionUpload(
        *("laptop", "claude", "s", "/s.jsonl", "lines", 0),
        (UploadedSegment(0, 10, "a" * 64), UploadedSegment(10, 20, "b" * 64)),
    )
    return replace(upload, **changes)


def segments(*given: tuple[int, int, str]) -> dict[str, Iterable[UploadedSegment]]:
    return {"segments": tuple(UploadedSegment(*each) for each in given)}


BAD = {
    "an agent that nobody knows": bad(agent="hal"),
    "hooks are heard on machines only": bad(agent="hook"),
    "a framing that nobody knows": bad(framing="scroll"),
    "no session": bad(session_id=""),
    "a path without end": bad(path="x" * 5000),
    "a machine that is a path": bad(machine="../x"),
    "a generation before the first": bad(generation=-1),
    "a hole": bad(**segments((0, 10, "a" * 64), (11, 20, "b" * 64))),
    "bytes twice": bad(**segments((0, 10, "a" * 64), (9, 20, "b" * 64))),
    "no beginning": bad(**segments((5, 10, "a" * 64))),
    "nothing": bad(**segments((0, 0, "a" * 64))),
    "backwards": bad(**segments((0, -5, "a" * 64))),
    "too much at once": bad(**segments((0, 65 << 20, "a" * 64))),
    "too much in all": bad(**segments(*((n << 25, (n + 1) << 25, "a" * 64) for n in range(9)))),
    "a digest that is a path": bad(**segments((0, 10, "../" + "a" * 61))),
}


def test_uploads_that_make_no_sense_are_refused() -> None:
    check_upload(bad())

    def check(upload: SessionUpload) -> None:
        with pytest.raises(BadInput):
            check_upload(upload)

    check_each(BAD.items(), check)


def test_segments_that_are_not_as_they_were_announced_are_refused(sender: Sender) -> None:
    told = talk()
    whole = told.text().encode()
    digest = sender.blobs.put(whole)
    torn = sender.blobs.put(whole[:-3])
    upload = sender.upload(told)
    for segment, why in (
        (UploadedSegment(0, len(whole) - 1, digest), "another size"),
        (UploadedSegment(0, len(whole) - 3, torn), "inside a record"),
    ):
        with pytest.raises(BadInput, match=why):
            sender.receiver.commit(replace(upload, segments=(segment,)))
    assert sender.store.sessions.matching(Filters(), limit=9, subagents=True) == []


def test_a_session_that_names_no_folder_belongs_to_the_project_it_was_sent_to(
    sender: Sender,
) -> None:
    told = talk("nowhere", turns=2)
    for record in told.lines:
        record.pop("cwd", None)
    sender.send(told)
    name = ("claude", told.session_id)
    number = sender.store.sessions.numbers([name])[name]
    assert sender.store.sessions.by_number([number])[number].project == SHOP.identity

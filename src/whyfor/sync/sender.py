"""Sending one story: plan, objects, commit. Each step may be repeated, and cut off anywhere."""

from __future__ import annotations

from collections.abc import Callable

from whyfor.model.sync import (
    CommitAnswer,
    PlanAnswer,
    PlanRequest,
    Remote,
    Retraction,
    RetractionAnswer,
    SentSource,
    SessionUpload,
    UploadedSegment,
    UploadPlan,
)
from whyfor.sync.client import NeedsLogin, Outdated, RemoteTooLarge, TeamClient
from whyfor.sync.package import (
    PACKED_MAX,
    SEGMENT,
    SourcePackage,
    StoryPackage,
    cut_segments,
    gap_record,
)

_ROUNDS = 12  # of planning: each answers something that the server said
_SMALLEST = 64 << 10  # bytes of a segment, if a server takes no larger ones


class StorySender:
    """Sends stories of one project to its team server."""

    def __init__(self, client: TeamClient, remote: Remote, machine: str) -> None:
        self.client = client
        self.machine = machine
        self.path = f"/api/v1/projects/{remote.team_project}"

    def close(self) -> None:
        self.client.close()

    def send(
        self, package: StoryPackage, sent: Callable[[SourcePackage], SentSource | None]
    ) -> list[SentSource]:
        """Send a story whole; return what the server has of its sources then. Raises RemoteFault:
        then nothing of it is told to anybody."""
        if self.client.token is None:
            raise NeedsLogin("nobody is logged in", "Log in: whyfor login")
        parts = [UploadPart(source, self.machine, sent(source)) for source in package.sources]
        for _ in range(_ROUNDS):
            try:
                self._send_objects(parts)
                story = package.upload(self.machine, [part.upload() for part in parts])
                self.client.post(f"{self.path}/sync/commit", story, CommitAnswer)
                return [part.kept() for part in parts]
            except Outdated:
                continue  # somebody else was faster: the next plan says what there is
        raise Outdated("the server changes what it has faster than it can be sent", "Try later.")

    def retract(self, what: Retraction) -> int:
        """Take something back; return how many things there were."""
        if self.client.token is None:
            raise NeedsLogin("nobody is logged in", "Log in: whyfor login")
        return self.client.post(f"{self.path}/sync/retract", what, RetractionAnswer).retracted

    def _send_objects(self, parts: list[UploadPart]) -> None:
        for _ in range(_ROUNDS):
            request = PlanRequest(tuple(part.upload() for part in parts))
            answer = self.client.post(f"{self.path}/sync/plan", request, PlanAnswer)
            settled = [part.agrees(told) for part, told in zip(parts, answer.sources, strict=True)]
            if not all(settled):
                continue
            for part, told in zip(parts, answer.sources, strict=True):
                for digest in told.missing:
                    try:
                        self.client.put(f"{self.path}/objects/{digest}", part.packed(digest))
                    except RemoteTooLarge:
                        part.divide(digest)
                        settled.append(False)
                        break
            if all(settled):
                return
        raise Outdated("the server and this machine do not come to terms", "Try later.")


class UploadPart:
    """One source on its way."""

    def __init__(self, package: SourcePackage, machine: str, sent: SentSource | None) -> None:
        self.package = package
        self.content = package.content
        self.machine = machine
        self.most = SEGMENT
        self.generation = sent.generation if sent else 0
        known = tuple(UploadedSegment(*each) for each in sent.segments) if sent else ()
        self.segments = self._cut(known)
        if known and self.segments[: len(known)] != known:
            self._begin_anew(self.generation + 1)

    def _cut(self, known: tuple[UploadedSegment, ...] = ()) -> tuple[UploadedSegment, ...]:
        return cut_segments(self.content, self.package.local.framing, known, self.most)

    def _begin_anew(self, generation: int) -> None:
        self.generation = generation
        self.segments = self._cut()

    def upload(self) -> SessionUpload:
        local = self.package.local
        return SessionUpload(
            *(self.machine, local.agent, local.session_id, self.package.path, local.framing),
            *(self.generation, self.segments, local.parent, local.sidecar, None),
        )

    def agrees(self, told: UploadPlan) -> bool:
        """Return whether the plan fits what the server has; else change it."""
        stored = told.stored
        if told.generation < 0 or told.generation < self.generation:
            return True
        if told.generation == self.generation and self.segments[: len(stored)] == stored:
            return True
        aligned = self._cut(stored)
        if aligned[: len(stored)] == stored:
            self.generation, self.segments = told.generation, aligned
            return False
        self._begin_anew(told.generation + 1)
        return False

    def packed(self, digest: str) -> bytes:
        """Return an object as it travels. Raises RemoteTooLarge if no server would take it."""
        import zstandard

        segment = next(each for each in self.segments if each.digest == digest)
        content = self.content[segment.start : segment.end]
        packed = zstandard.ZstdCompressor(level=3).compress(content)
        if len(packed) > PACKED_MAX:
            raise RemoteTooLarge("an object is too large", "It is sent in smaller pieces.")
        return packed

    def divide(self, digest: str) -> None:
        """Cut smaller segments; a record that is too large by itself does not leave."""
        segment = next(each for each in self.segments if each.digest == digest)
        content = self.content[segment.start : segment.end]
        records = content.count(b"\n")
        if records > 1 and self.most > _SMALLEST:
            self.most = max(_SMALLEST, min(self.most, len(content)) // 2)
            kept = tuple(each for each in self.segments if each.end <= segment.start)
            self.segments = self._cut(kept)
            return
        gap = gap_record(len(content)) + b"\n"
        self.content = self.content[: segment.start] + gap + self.content[segment.end :]
        kept = tuple(each for each in self.segments if each.end <= segment.start)
        self.segments = self._cut(kept)

    def kept(self) -> SentSource:
        local = self.package.local
        pieces = [(each.start, each.end, each.digest) for each in self.segments]
        return SentSource(local.agent, local.path, self.generation, self.package.read, pieces)

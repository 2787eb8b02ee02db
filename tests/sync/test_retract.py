"""What is recognised late, replaced or forgotten is gone from the database and the object store."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import obstore
import pytest
import zstandard
from msgspec.structs import replace

from tests.seaweed import S3Server, running_s3
from tests.store.team import Team, TeamProject
from tests.sync.laptop import Laptop, SharedServer, shared_server
from tests.team.served import ServedTeam
from whyfor.model.errors import StoreError
from whyfor.service.share import keep_local, share
from whyfor.store.objects import ObjectBlobs, open_objects
from whyfor.sync.forget import forget_everywhere
from whyfor.sync.remotes import load_remotes, save_remote

VALUE = "Qx7vPz2mLk9sTr4w"


class Bucket:
    """A team server that keeps objects in a real S3."""

    def __init__(self, server: SharedServer, s3: S3Server) -> None:
        self.server = server
        self.store = open_objects("s3://stories", s3.options())
        self.project = server.served.project()

    def everything(self) -> str:
        """All words that the server keeps of the project, in rows and in objects."""
        return words_of(self.server.served, self.project) + str(self.contents())

    def contents(self) -> list[bytes]:
        found = []
        for batch in obstore.list(self.store, "p"):
            for each in batch:
                packed = obstore.get(self.store, each["path"]).bytes().to_bytes()
                found.append(zstandard.decompress(packed))
        return found


def words_of(served: ServedTeam, project: TeamProject) -> str:
    """Every text of every row of a project, whatever table it is in."""
    run = served.team.admin.execute
    tables = run(
        "SELECT table_name FROM information_schema.columns "
        "WHERE table_schema='whyfor' AND column_name='team_project'"
    ).fetchall()
    found = []
    for (table,) in tables:
        rows = run(f"SELECT t::text FROM {table} t WHERE team_project=%s", (project.number,))
        found += [row for (row,) in rows.fetchall()]
    return "\n".join(found)


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with running_s3(tmp_path_factory.mktemp("s3")) as running:
        yield running


@pytest.fixture
def bucket(postgres_18: Team, s3: S3Server, tmp_path: Path) -> Iterator[Bucket]:
    with shared_server(
        postgres_18, tmp_path, blobs_url="s3://stories", blob_options=s3.options()
    ) as server:
        yield Bucket(server, s3)


def test_a_value_that_is_recognised_later_is_gone_from_rows_and_s3_within_a_minute(
    laptop: Laptop, bucket: Bucket
) -> None:
    told = laptop.transcript("late")
    laptop.work(told, "Mend the gate", f"the walrus says {VALUE} to everybody")
    laptop.git("push", "-q", "origin", "main")
    laptop.ingest()
    laptop.share(bucket.server, bucket.project, bucket.server.key(bucket.project.person))
    assert laptop.sync().remotes[0].error is None
    assert VALUE in str(bucket.contents())
    told.prompt(f"by the way, export GATE_PASSWORD={VALUE}")
    told.save(laptop.home)
    begun = time.monotonic()
    laptop.ingest()
    assert laptop.sync().remotes[0].error is None
    everything = bucket.everything()
    assert time.monotonic() - begun < 60
    assert VALUE not in everything
    assert "walrus" in everything
    rules = laptop.settings.home / "config.toml"
    rules.write_text(
        '[[redact.rule]]\nid = "animal"\ntitle = "An animal"\npattern = "walrus"\nanchors = ["walrus"]\n'
    )
    laptop.reload()
    assert laptop.sync().remotes[0].error is None
    everything = bucket.everything()
    assert "walrus" not in everything, "newer rules hold for what was sent before"
    assert "REDACTED:animal" in everything
    forget_everywhere(laptop.settings, [f"claude:{told.session_id}"], [])
    assert laptop.sync().remotes[0].error is None
    assert bucket.contents() == []


def test_if_an_object_cannot_be_removed_the_whole_step_is_repeated(
    laptop: Laptop, server: SharedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = server.served.project()
    told = laptop.transcript("late")
    laptop.work(told, "Mend the gate", f"the walrus says {VALUE} to everybody")
    laptop.git("push", "-q", "origin", "main")
    laptop.ingest()
    laptop.share(server, project, server.key(project.person))
    laptop.sync()
    told.prompt(f"by the way, export GATE_PASSWORD={VALUE}")
    told.save(laptop.home)
    laptop.ingest()
    remove = ObjectBlobs.remove
    failed: list[list[str]] = []

    def failing(self: ObjectBlobs, digests: list[str]) -> None:
        names = list(digests)
        if names and not failed:
            failed.append(names)
            raise StoreError("the object store refused", "")
        remove(self, names)

    monkeypatch.setattr(ObjectBlobs, "remove", failing)
    assert laptop.sync().remotes[0].error is None
    assert failed
    blobs = server.served.app.resources.blobs(project.number)
    contents = [blobs.get(digest) for digest in blobs.digests()]
    assert VALUE not in str(contents) + words_of(server.served, project)


def test_what_was_taken_back_and_shared_again_is_there_again(
    laptop: Laptop, server: SharedServer
) -> None:
    project = server.served.project()
    told = laptop.transcript("again")
    sha = laptop.work(told, "Mend the gate", "said the walrus")
    laptop.git("push", "-q", "origin", "main")
    laptop.ingest()
    laptop.share(server, project, server.key(project.person))
    laptop.sync()
    name = f"claude:{told.session_id}"
    for reference, between in ((sha, True), (sha, False), (name, True), (name, False)):
        keep_local(laptop.settings, reference, laptop.repo)
        if between:
            assert laptop.sync().remotes[0].error is None
            assert "walrus" not in words_of(server.served, project)
        share(laptop.settings, reference, laptop.repo)
        assert laptop.sync().remotes[0].error is None
        assert laptop.states()[sha] == "sent"
        assert "walrus" in words_of(server.served, project), (reference, between)
        rows = server.rows("SELECT sha FROM checkpoints WHERE team_project=%s", project.number)
        assert rows == [(sha,)], (reference, between)


def test_what_one_person_takes_back_stays_with_another_who_shared_the_same(
    laptop: Laptop, server: SharedServer, origin: Path, tmp_path: Path
) -> None:
    project = server.served.project()
    other_person = project.add("member")
    told = laptop.transcript("copied")
    laptop.work(told, "Mend the gate", "said the walrus")
    laptop.git("push", "-q", "origin", "main")
    laptop.ingest()
    laptop.share(server, project, server.key(project.person))
    laptop.sync()
    other = Laptop(tmp_path / "two", origin, "other")
    told.save(other.home)
    other.ingest()
    other.share(server, project, server.key(other_person))
    other.sync()
    blobs = server.served.app.resources.blobs(project.number)
    people = "SELECT DISTINCT person FROM segments WHERE team_project=%s ORDER BY 1"
    assert server.rows(people, project.number) == [(project.person,), (other_person,)]
    assert len(list(blobs.digests())) == 1, "the same bytes are one object"
    keep_local(laptop.settings, f"claude:{told.session_id}", laptop.repo)
    [remote] = load_remotes(laptop.settings).remotes
    save_remote(laptop.settings, replace(remote, paused=True))
    assert laptop.sync().remotes[0].error is None
    assert server.rows(people, project.number) == [(other_person,)], "in a pause too"
    [(digest,)] = server.rows("SELECT digest FROM segments WHERE person=%s", other_person)
    assert b"walrus" in blobs.get(digest)

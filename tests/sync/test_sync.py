"""Stories that were pushed reach the team: whole, once, and nothing else does."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from msgspec.structs import replace

from tests.conftest import Result
from tests.store.team import TeamProject
from tests.sync.laptop import Laptop, SharedServer
from whyfor.model.errors import NotFound
from whyfor.service.share import keep_local
from whyfor.service.tasks import SpokenTask, say_task
from whyfor.service.team_link import team_link
from whyfor.store.open import reading_local
from whyfor.sync.forget import forget_everywhere
from whyfor.sync.remotes import ServerKey, load_remotes, save_key, save_remote


def test_a_pushed_commit_and_its_conversation_reach_the_team(
    laptop: Laptop, server: SharedServer
) -> None:
    project = server.served.project()
    told = laptop.transcript("gate")
    first = laptop.work(told, "Mend the gate", "mend the walrus gate")
    laptop.git("push", "-q", "origin", "main")
    later = laptop.work(told, "Paint the wall", "paint it with the secret heron")
    laptop.ingest()
    laptop.share(server, project, server.key(project.person))
    report = laptop.sync()
    assert report.remotes[0].error is None
    assert laptop.states() == {first: "sent", later: "local"}
    rows = server.rows(
        "SELECT sha, subject FROM checkpoints WHERE team_project = %s", project.number
    )
    assert rows == [(first, "Mend the gate")]
    texts = str(server.rows("SELECT text FROM events WHERE team_project = %s", project.number))
    assert "walrus" in texts
    assert "heron" not in texts, "what came after the pushed commit stays here"
    [(here_first, here_last, there_first, there_last)] = _ranges(laptop, server, first)
    assert (there_first, there_last) == (here_first, here_last)
    assert laptop.sync().sent == 0


def _ranges(laptop: Laptop, server: SharedServer, sha: str) -> list[tuple[int, int, int, int]]:
    with reading_local(laptop.settings) as store:
        part = store.checkpoints.of_commits([sha])[sha].parts[0]
    rows = server.rows("SELECT first, last FROM parts WHERE sha = %s", sha)
    return [(part.first, part.last, first, last) for first, last in rows]


def texts(server: SharedServer, project: TeamProject) -> str:
    """Everything that the server has of a project in words."""
    found = server.rows("SELECT text, data FROM events WHERE team_project = %s", project.number)
    told = server.rows("SELECT * FROM checkpoints WHERE team_project = %s", project.number)
    blobs = server.served.app.resources.blobs(project.number)
    objects = [blobs.get(digest) for digest in blobs.digests()]
    return f"{found} {told} {objects}"


def test_a_secret_that_is_recognised_later_is_gone_from_the_server(
    laptop: Laptop, server: SharedServer
) -> None:
    project = server.served.project()
    told = laptop.transcript("late")
    value = "Qx7vPz2mLk9sTr4w"
    laptop.work(told, "Mend the gate", f"the gate says {value} to everybody")
    laptop.git("push", "-q", "origin", "main")
    laptop.ingest()
    laptop.share(server, project, server.key(project.person))
    laptop.sync()
    before = set(server.served.app.resources.blobs(project.number).digests())
    assert value in texts(server, project)
    told.prompt(f"by the way, export GATE_PASSWORD={value}")
    told.save(laptop.home)
    laptop.ingest()
    assert laptop.sync().remotes[0].error is None
    after = texts(server, project)
    assert value not in after
    assert "REDACTED" in after
    assert not before & set(server.served.app.resources.blobs(project.number).digests())
    [(generation,)] = server.rows(
        "SELECT generation FROM sources WHERE team_project = %s", project.number
    )
    assert generation == 1
    assert laptop.sync().sent == 0, "and then there is nothing to do"


def test_what_was_not_pushed_or_is_held_back_stays_here_also_in_the_middle(
    laptop: Laptop, server: SharedServer
) -> None:
    project = server.served.project()
    told = laptop.transcript("middle")
    first = laptop.work(told, "First", "the walrus")
    laptop.git("checkout", "-q", "-b", "experiment")
    second = laptop.work(told, "Second", "the heron")
    laptop.git("checkout", "-q", "main")
    third = laptop.work(told, "Third", "the otter")
    laptop.git("push", "-q", "origin", "main")
    laptop.ingest()
    laptop.share(server, project, server.key(project.person))
    laptop.sync()
    assert laptop.states() == {first: "sent", second: "local", third: "sent"}
    words = texts(server, project)
    assert "walrus" in words
    assert "otter" in words
    assert "heron" not in words
    with reading_local(laptop.settings) as store:
        here = store.checkpoints.of_commits([third])[third].parts[0]
        before = store.conversation.openings(1, [here.first], 99)
    [(place, session)] = server.rows("SELECT first, session_id FROM parts WHERE sha = %s", third)
    [(there,)] = server.rows("SELECT text FROM events WHERE id = %s", (session << 24) + place)
    assert there == before[here.first], "ranges name the same words there"
    laptop.git("push", "-q", "origin", "experiment")
    laptop.sync()
    assert laptop.states()[second] == "sent"
    assert "heron" in texts(server, project), "what was left out is sent when it is pushed"
    assert run(laptop, keep_local, first).was_sent
    laptop.sync()
    assert laptop.states()[first] == "held"
    words = texts(server, project)
    assert "walrus" not in words
    assert "otter" in words


def run(laptop: Laptop, service: Callable[..., Any], *given: Any) -> Any:
    return service(laptop.settings, *given, laptop.repo)


def test_two_people_with_one_commit_and_two_machines_of_one_keep_all_they_said(
    laptop: Laptop, server: SharedServer, origin: Path, tmp_path: Path
) -> None:
    project = server.served.project()
    other_person = project.add("member")
    told = laptop.transcript("mine")
    sha = laptop.work(told, "Mend the gate", "said the walrus")
    laptop.git("push", "-q", "origin", "main")
    laptop.ingest()
    laptop.share(server, project, server.key(project.person))
    laptop.sync()
    other = Laptop(tmp_path / "two", origin, "other")
    copied = other.transcript("mine")  # the same session id, with other words
    copied.prompt("said the heron")
    call = {"command": "git commit -m 'Mend the gate'"}
    copied.call("Bash", call, f"[main {sha[:7]}] Mend the gate")
    copied.save(other.home)
    other.ingest()
    other.share(server, project, server.key(other_person))
    other.sync()
    rows = server.rows(
        "SELECT person, sha FROM checkpoints WHERE team_project = %s ORDER BY 1", project.number
    )
    assert rows == [(project.person, sha), (other_person, sha)]
    for person, word, not_word in (
        (project.person, "walrus", "heron"),
        (other_person, "heron", "walrus"),
    ):
        words = str(server.rows("SELECT text FROM events WHERE person = %s", person))
        assert word in words
        assert not_word not in words
    second = Laptop(tmp_path / "three", origin, "laptop")
    mine = second.transcript("mine")
    mine.lines = [*told.lines]
    mine.say("and on the second machine, the otter")
    mine.save(second.home)
    second.ingest()
    second.share(server, project, server.key(project.person))
    assert second.sync().remotes[0].error is None
    sessions = server.rows("SELECT id FROM sessions WHERE person = %s", project.person)
    assert len(sessions) == 1
    events = server.rows("SELECT text FROM events WHERE person = %s", project.person)
    prompts = [text for (text,) in events if "walrus" in text]
    assert len(prompts) == 1, "the same records are there once"


def test_a_teammate_reads_and_restores_what_somebody_pushed(
    laptop: Laptop,
    server: SharedServer,
    origin: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    cli: Callable[..., Result],
) -> None:
    project = server.served.project()
    told = laptop.transcript("gate")
    sha = laptop.work(told, "Mend the gate", "why did the walrus leave?", "because of the gate")
    laptop.git("push", "-q", "origin", "main")
    laptop.ingest()
    laptop.share(server, project, server.key(project.person))
    laptop.sync()
    mate = Laptop(tmp_path / "mate", origin, "mate")  # who never ran an agent
    for name, value in mate.settings.env.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(mate.repo)
    save_key(mate.settings, server.url, ServerKey(server.key(project.add("viewer"))))
    added = cli("remote", "add", server.url, "--share", "all")
    assert added.code == 0, added.err
    assert "Nothing of yours leaves" in added.err + added.out
    [remote] = load_remotes(mate.settings).remotes
    assert (remote.team_project, remote.share) == (project.number, "ask")
    shown = cli("show", sha)
    assert shown.code == 0, shown.err
    assert "why did the walrus leave?" in shown.out
    assert "From person-" in shown.out + shown.err
    listed = cli("log")
    assert "from person-" in listed.out
    made = cli("restore", sha, "--yes", "--json")
    assert made.code == 0, made.err
    report = made.json
    assert "words of person-" in " ".join(report["warnings"])
    written = Path(report["path"]).read_text()
    assert "why did the walrus leave?" in written
    assert report["session_id"] != told.session_id
    mate.git("commit", "-q", "--amend", "-m", "Another name")
    again = cli("show", "HEAD")
    assert "walrus" in again.out, "a commit with the same change is found too"
    for path in (mate.settings.home / "remote").rglob("*"):
        assert path.stat().st_mode & 0o077 == 0, path
    save_remote(
        mate.settings, replace(load_remotes(mate.settings).remotes[0], url="http://127.0.0.1:9")
    )
    begun = time.monotonic()
    away = cli("show", "HEAD~1")
    assert time.monotonic() - begun < 5
    assert "could not be asked" in away.out + away.err


def test_what_is_shared_elsewhere_is_asked_about_again_and_sent_there_whole(
    laptop: Laptop,
    server: SharedServer,
    monkeypatch: pytest.MonkeyPatch,
    cli: Callable[..., Result],
) -> None:
    project = server.served.project()
    other = server.served.project()
    membership = (other.number, project.person, "member")
    server.team.admin.execute("INSERT INTO project_members VALUES(%s, %s, %s)", membership)
    told = laptop.transcript("moved")
    sha = laptop.work(told, "Mend the gate")
    laptop.git("push", "-q", "origin", "main")
    laptop.ingest()
    laptop.share(server, project, server.key(project.person))
    assert laptop.sync().sent == 1
    for name, value in laptop.settings.env.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(laptop.repo)

    def add(*options: str) -> bool:
        assert cli("remote", "add", server.url, *options).code == 0
        return load_remotes(laptop.settings).remotes[0].confirmed_at is not None

    assert add("--project", str(project.number)), "nothing is new"
    assert not add("--project", str(project.number), "--share", "all"), "more leaves than before"
    assert not add("--project", str(other.number)), "it leaves to others"
    assert cli("sync", "--yes").code == 0
    rows = server.rows("SELECT team_project FROM checkpoints WHERE sha=%s ORDER BY 1", sha)
    assert rows == [(project.number,), (other.number,)]


def test_what_is_forgotten_everywhere_never_comes_back(
    laptop: Laptop, server: SharedServer, origin: Path, tmp_path: Path
) -> None:
    project = server.served.project()
    told = laptop.transcript("gone")
    laptop.work(told, "Mend the gate", "the walrus")
    laptop.git("push", "-q", "origin", "main")
    laptop.ingest()
    laptop.share(server, project, server.key(project.person))
    laptop.sync()
    assert "walrus" in texts(server, project)
    forget_everywhere(laptop.settings, [f"claude:{told.session_id}"], [])
    laptop.sync()
    assert "walrus" not in texts(server, project)
    again = Laptop(tmp_path / "two", origin, "laptop")
    told.save(again.home)
    again.ingest()
    again.share(server, project, server.key(project.person))
    report = again.sync()
    assert "forgotten everywhere" in (report.remotes[0].error or "")
    assert set(again.states().values()) == {"refused"}
    assert "walrus" not in texts(server, project)
    colleague = Laptop(tmp_path / "three", origin, "colleague")
    told.save(colleague.home)
    colleague.ingest()
    colleague.share(server, project, server.key(project.add("member")))
    assert "forgotten everywhere" in (colleague.sync().remotes[0].error or "")
    assert "walrus" not in texts(server, project), "nor from anybody else"


def test_a_link_leads_teammates_to_a_commit_and_its_session(
    laptop: Laptop, server: SharedServer
) -> None:
    project = server.served.project()
    told = laptop.transcript("link")
    sha = laptop.work(told, "Hang the sign", "hang the pelican sign")
    laptop.git("push", "-q", "origin", "main")
    laptop.ingest()
    with pytest.raises(NotFound, match="not shared"):
        team_link(laptop.settings, sha, laptop.repo)
    token = server.key(project.person)
    laptop.share(server, project, token)
    laptop.sync()
    for reference in (sha[:10], told.session_id):
        link = team_link(laptop.settings, reference, laptop.repo)
        headers = {"authorization": f"Bearer {token}", "accept": "text/html"}
        page = httpx.get(link, headers=headers, timeout=60)
        assert page.status_code == 200, link
        assert "pelican" in page.text
    say_task(laptop.settings, SpokenTask("SIGN-7", "start"), laptop.repo)
    task = team_link(laptop.settings, "SIGN-7", laptop.repo)
    assert task.endswith(f"/projects/{project.number}/tasks?since=all&at=SIGN-7")
    assert httpx.get(task, headers=headers, timeout=60).status_code == 200

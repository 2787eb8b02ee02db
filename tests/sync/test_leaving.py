"""What leaves is what was shown, and what must not leave never does."""

from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor

from msgspec.structs import replace

from tests.sync.laptop import Laptop, SharedServer
from tests.sync.test_sync import texts
from whyfor.model.sync import Remote
from whyfor.service.share import keep_local
from whyfor.service.sync import preview_sync
from whyfor.store.open import reading_local
from whyfor.sync.remotes import change_remotes, load_remotes, save_remote


def test_what_was_shown_before_the_first_upload_is_all_that_leaves(
    laptop: Laptop, server: SharedServer
) -> None:
    project = server.served.project()
    told = laptop.transcript("gate")
    laptop.work(told, "Mend the gate", "the key is ghp_0123456789abcdefghijklmnopqrstuvwxyz")
    laptop.git("push", "-q", "origin", "main")
    laptop.work(told, "Paint the wall", "paint the heron")
    laptop.ingest()
    laptop.share(server, project, server.key(project.person))
    [remote] = load_remotes(laptop.settings).remotes
    unseen = Remote(*(remote.project, remote.url, remote.team_project, remote.name, "push"))
    save_remote(laptop.settings, unseen)
    report = laptop.sync().remotes[0]
    assert (report.sent, report.unconfirmed) == (0, 1)
    assert texts(server, project) == "[] [] []", "nothing leaves before somebody agreed"
    [(_, [story])] = preview_sync(laptop.settings, lines=True)
    shown = [line.text.strip() for line in story.lines]
    save_remote(laptop.settings, remote)
    assert laptop.sync().sent == 1
    said = server.rows(
        "SELECT text FROM events WHERE team_project=%s AND kind IN "
        "('user.prompt', 'assistant.message', 'tool.result')",
        project.number,
    )
    assert said
    for (text,) in said:
        assert text.strip() in shown
    assert "ghp_" not in str(shown) + texts(server, project)
    assert "heron" not in str(shown) + texts(server, project)
    [item] = [each for each in laptop.outbox().values() if each.state == "sent"]
    assert (item.size, item.redacted) == (story.bytes, sum(story.redacted.values()))


def test_private_excluded_and_kept_sessions_never_leave(
    laptop: Laptop, server: SharedServer
) -> None:
    project = server.served.project()
    told = laptop.transcript("gate")
    laptop.work(told, "Mend the gate", "mend it <private>for the walrus</private>")
    secret = laptop.transcript("kept")
    laptop.work(secret, "Keep the gate", "for the heron")
    laptop.git("push", "-q", "origin", "main")
    laptop.ingest()
    laptop.share(server, project, server.key(project.person))
    keep_local(laptop.settings, f"claude:{secret.session_id}", laptop.repo)
    assert laptop.sync().remotes[0].error is None
    words = texts(server, project)
    assert "mend it" in words
    assert "walrus" not in words
    assert "heron" not in words
    told.prompt("go on for the otter")
    laptop.work(told, "Oil the gate")
    laptop.git("push", "-q", "origin", "main")
    laptop.ingest()
    with reading_local(laptop.settings) as store:
        [(_, known)] = [each for each in store.projects.known() if each[1].evidence != "path"]
    config = laptop.settings.home / "config.toml"
    config.write_text(f'[exclude]\nprojects = ["{known.identity}"]\n')
    laptop.reload()
    laptop.sync()
    assert "otter" not in texts(server, project), "an excluded project sends nothing more"
    config.unlink()
    laptop.reload()
    laptop.sync()
    assert "otter" in texts(server, project)


def test_no_file_in_a_repository_switches_sharing_on(laptop: Laptop, server: SharedServer) -> None:
    project = server.served.project()
    told = laptop.transcript("gate")
    laptop.work(told, "Mend the gate", "for the walrus")
    laptop.ingest()
    laptop.share(server, project, server.key(project.person))
    file = laptop.settings.remotes
    for name in (".", ".whyfor", ".git", ".config/whyfor"):
        place = laptop.repo / name
        place.mkdir(parents=True, exist_ok=True)
        for copied in (file, file.with_name("tokens.json")):
            shutil.copy(copied, place / copied.name)
            shutil.copy(copied, place / f"whyfor.{copied.name}")
    file.unlink()
    laptop.git("add", "-A")
    laptop.git("commit", "-q", "-m", "Share everything")
    laptop.git("push", "-q", "origin", "main")
    laptop.ingest()
    assert laptop.sync().remotes == []
    assert texts(server, project) == "[] [] []"


def test_what_two_processes_decide_at_once_is_all_kept(laptop: Laptop) -> None:
    names = [f"claude:{number}" for number in range(40)]

    def keep(name: str) -> None:
        change_remotes(
            laptop.settings, lambda before: replace(before, keep_local=(*before.keep_local, name))
        )

    with ThreadPoolExecutor(8) as people:
        list(people.map(keep, names))
    assert sorted(load_remotes(laptop.settings).keep_local) == sorted(names)

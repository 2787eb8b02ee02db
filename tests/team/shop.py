"""A team with a filled project: two people share their stories of one repository with it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.store.team import Team, TeamProject
from tests.sync.laptop import Laptop, SharedServer, new_origin, shared_server


class SharedShop:
    """The project `shop`, shared by Ann and Bob, and another one that is neither's."""

    def __init__(self, server: SharedServer, folder: Path) -> None:
        self.server = server
        self.served = server.served
        self.project = self.served.project()
        self.other = self.served.project()
        self.ann = self.project.person
        self.bob = self.project.add("member")
        self._call(self.ann, "Ann")
        self._call(self.bob, "Bob")
        self.outsider = self.other.person
        origin = new_origin(folder)
        self.ann_commit = self._work(folder / "ann", origin, self.ann, "heron")
        self.bob_commit = self._work(folder / "bob", origin, self.bob, "walrus")
        self.base = f"/projects/{self.project.number}"
        self.api = f"/api/v1/projects/{self.project.number}"
        self.tokens = {person: self.served.token(person) for person in (self.ann, self.bob)}
        self.tokens[self.outsider] = self.served.token(self.outsider)

    def _call(self, person: int, name: str) -> None:
        self.server.team.admin.execute("UPDATE people SET name=%s WHERE id=%s", (name, person))

    def _work(self, folder: Path, origin: Path, person: int, word: str) -> str:
        """Two pushed commits of one session; the second is returned."""
        folder.mkdir()
        laptop = Laptop(folder / "machine", origin, word)
        told = laptop.transcript(f"{word}-session")
        laptop.work(told, f"Add the {word} gate", f"build a gate for the {word}, please")
        sha = laptop.work(told, f"Paint the {word} gate", f"now paint the {word} gate green")
        laptop.git("pull", "-q", "--rebase", "origin", "main", ok=False)
        laptop.git("push", "-q", "origin", f"HEAD:{word}")
        laptop.ingest()
        laptop.share(self.server, self.project, self.server.key(person))
        report = laptop.sync()
        assert report.remotes[0].error is None, report
        return sha

    def get(self, path: str, person: int | None = None) -> str:
        answer = self.served.get(
            path, self.tokens[person or self.ann], headers={"accept": "text/html"}
        )
        assert answer.status_code == 200, (path, answer.status_code, answer.text[:600])
        return answer.text


@contextmanager
def shared_shop(team: Team, folder: Path) -> Iterator[SharedShop]:
    with shared_server(team, folder / "objects") as server:
        yield SharedShop(server, folder)


__all__ = ["SharedShop", "TeamProject", "shared_shop"]

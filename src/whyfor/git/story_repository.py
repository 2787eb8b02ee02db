"""A repository that holds shared stories, beside the code's: one ref for each machine.

A machine writes its own ref only, so that no two ever conflict. It grows by commits; what must not
be read any more is taken out by a commit without a past that takes the ref's place. Others fetch
refs and trees without the files in them, and a file when they read it.

This machine's copy is Whyfor's own and has no hooks. Git may use the person's ssh keys for it, but
it may not ask anything.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from whyfor.files import make_folders
from whyfor.git.place import GitDir
from whyfor.git.run import Answer, run_git
from whyfor.model.errors import StoreError

REFS = "refs/whyfor/v1/"
FETCH_SECONDS = 30.0
PUSH_SECONDS = 300.0
_NOBODY = "0" * 40
_REACHING = {
    "GIT_ALLOW_PROTOCOL": "file:ssh",
    "GIT_SSH_COMMAND": "ssh -o BatchMode=yes -o ConnectTimeout=10",
    "GIT_ASKPASS": os.devnull,
    "GIT_NO_LAZY_FETCH": "0",
}
_SELF = {}
for _role in ("AUTHOR", "COMMITTER"):
    _SELF[f"GIT_{_role}_NAME"] = "Whyfor"
    _SELF[f"GIT_{_role}_EMAIL"] = "whyfor@localhost"


class StoryRepositoryDown(StoreError):
    """The repository cannot be reached, or does not take what is sent."""


class StoryRepository:
    """This machine's copy of a repository with stories. Methods raise StoryRepositoryDown."""

    def __init__(self, folder: Path, url: str) -> None:
        self.place = GitDir(folder)
        self.url = url

    def prepare(self) -> None:
        """Create the copy, if there is none."""
        folder = self.place.path
        if not (folder / "HEAD").exists():
            make_folders(folder.parent)
            self._done(run_git(None, "init", "-q", "--bare", "--shared=0600", str(folder)))
            folder.chmod(0o700)
        for name, value in (
            ("remote.origin.url", self.url),
            ("remote.origin.promisor", "true"),
            ("remote.origin.partialclonefilter", "blob:none"),
        ):
            self._done(run_git(self.place, "config", name, value))

    # -- reading ---------------------------------------------------------------------------------

    def fetch(self) -> list[str]:
        """Fetch all machines' refs, without their files; return the machines that took something
        out, or are gone."""
        before = self.tips()
        refs = f"+{REFS}*:{REFS}*"
        options = ("-q", "--prune", "--no-tags", "--no-write-fetch-head", "--filter=blob:none")
        self._done(self._reach("fetch", *options, "origin", refs, seconds=FETCH_SECONDS))
        after = self.tips()
        rewritten = []
        for machine, tip in before.items():
            now = after.get(machine)
            if now is None or (now != tip and not self._contains(now, tip)):
                rewritten.append(machine)
        return rewritten

    def tips(self) -> dict[str, str]:
        """Return the machines with stories, and the latest commit of each."""
        answer = run_git(self.place, "for-each-ref", "--format=%(objectname) %(refname)", REFS)
        found = {}
        for line in answer.text.splitlines():
            tip, _, ref = line.partition(" ")
            found[ref.removeprefix(REFS)] = tip
        return found

    def _contains(self, tip: str, older: str) -> bool:
        return run_git(self.place, "merge-base", "--is-ancestor", older, tip).ok

    def names(self, tip: str, folder: str = "") -> list[str]:
        """Return the paths of files below a folder of a commit."""
        place = [f"{folder}/"] if folder else []
        answer = run_git(self.place, "ls-tree", "-r", "-z", "--name-only", tip, "--", *place)
        return [name for name in answer.text.split("\0") if name]

    def read(self, tip: str, path: str) -> bytes | None:
        """Return a file of a commit, fetched if it is not here; None if there is none."""
        if run_git(self.place, "ls-tree", tip, "--", path).out == b"":
            return None
        answer = self._reach("cat-file", "blob", f"{tip}:{path}", seconds=FETCH_SECONDS)
        self._done(answer)
        return answer.out

    # -- writing ---------------------------------------------------------------------------------

    def write(
        self, machine: str, added: Mapping[str, bytes], removed: Iterable[str], *, anew: bool
    ) -> None:
        """Change the files of a machine's ref and push it; `anew`: the ref begins again, so that
        nothing of what it held before can be reached."""
        ref = f"{REFS}{machine}"
        before = self.tips().get(machine)
        tree = self._tree(before, added, removed)
        parents = ["-p", before] if before and not anew else []
        answer = run_git(
            self.place, "commit-tree", tree, *parents, "-m", "Stories", variables=_SELF
        )
        commit = self._done(answer).text.strip()
        lease = f"--force-with-lease={ref}:{before or ''}"
        self._done(self._reach("push", "-q", lease, "origin", f"{commit}:{ref}"))
        self._done(run_git(self.place, "update-ref", ref, commit))
        if anew and before:
            run_git(self.place, "gc", "-q", "--prune=now", seconds=PUSH_SECONDS)

    def _tree(self, before: str | None, added: Mapping[str, bytes], removed: Iterable[str]) -> str:
        index = self.place.path / "whyfor-index"
        index.unlink(missing_ok=True)
        variables = {"GIT_INDEX_FILE": str(index)}
        start = [before] if before else ["--empty"]
        self._done(run_git(self.place, "read-tree", *start, variables=variables))
        lines = [f"0 {_NOBODY}\t{path}" for path in removed]
        for path, content in added.items():
            stored = run_git(self.place, "hash-object", "-w", "--stdin", given=content)
            lines.append(f"100644 {self._done(stored).text.strip()}\t{path}")
        given = "".join(f"{line}\n" for line in lines).encode()
        update = ("update-index", "--index-info")
        self._done(run_git(self.place, *update, given=given, variables=variables))
        # files of this machine that an older copy sent may not be here: only their names are
        made = run_git(self.place, "write-tree", "--missing-ok", variables=variables)
        index.unlink(missing_ok=True)
        return self._done(made).text.strip()

    # -- git -------------------------------------------------------------------------------------

    def _reach(self, *arguments: str, seconds: float = PUSH_SECONDS) -> Answer:
        return run_git(self.place, *arguments, seconds=seconds, variables=_REACHING)

    def _done(self, answer: Answer) -> Answer:
        if not answer.ok:
            raise StoryRepositoryDown(f"{self.url}: {answer.complaint}", "Can git reach it?")
        return answer


def reach_repository(url: str) -> str:
    """Return why a repository cannot be reached; empty if it can."""
    answer = run_git(None, "ls-remote", "-q", "--", url, seconds=FETCH_SECONDS, variables=_REACHING)
    return "" if answer.ok else answer.complaint

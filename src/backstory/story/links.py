"""Which sessions a commit came from, inferred from what they did and what it changes; never from time alone.

Evidence, strongest first: `output` (the session printed or ran the commit), `content` (lines it wrote are among the
lines the commit changes, same path, not already used up by an earlier commit), `nearby` (a hint, no link).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import msgspec

from backstory.story.acts import Acts, Made

DAY = 86_400_000
LOOK_BACK = 30 * DAY  # how old a line may be when it is committed
NEARBY = 600_000
_BOT = re.compile(r"\[bot\]|\bbot@|dependabot|renovate|github-actions", re.I)
_SPACES = re.compile(r"\s+")
_GENERATED = re.compile(
    r"(^|/)(dist|build|vendor|node_modules|third_party)/|(^|/)[^/]*lock\.(json|yaml|yml)$|\.lock$|(^|/)go\.sum$|\.min\.(js|css)$"
)
_COMMON_FILES = 15  # a line in more files than this is boilerplate


class CommitFacts(msgspec.Struct, frozen=True):
    """A commit as linking needs it, oldest first in a list; parents by position in that list."""

    sha: str
    parents: tuple[int, ...]
    is_merge: bool
    author: str
    authored_at: int
    committed_at: int
    subject: str
    body: str
    patch_id: str | None
    changes: list[tuple[str, list[str], list[str]]]  # path, added, removed


class Link(msgspec.Struct, frozen=True):
    commit: str
    session: int
    evidence: str  # output | content | nearby
    confidence: str  # high | medium | low
    role: str  # made | wrote | rewrote
    seq: int  # the last event of the session that belongs to the commit
    lines: int = 0
    share: float = 0.0
    why: str = ""


class _Line(msgspec.Struct, frozen=True):
    at: int
    path: str
    session: int
    seq: int


class Linker:
    """Built once from all sessions' acts, asked for commits oldest first."""

    def __init__(self, sessions: dict[int, Acts]) -> None:
        self.sessions = sessions
        self.added: dict[tuple[str, str], list[_Line]] = {}
        self.removed: dict[tuple[str, str], list[_Line]] = {}
        self.touched: dict[str, list[_Line]] = {}
        self._index(_owners(sessions))
        self.used: dict[tuple[str, str], list[tuple[int, int]]] = {}  # (path, line) → (committed_at, commit)
        self.by_patch: dict[str, dict[int, Link]] = {}
        self.by_subject: dict[tuple[str, int], dict[int, Link]] = {}

    def _index(self, owner: dict[str, int]) -> None:
        for number, acts in self.sessions.items():
            for write in acts.written:
                if write.call is not None and owner.get(write.call, number) != number:
                    continue  # a fork's copy: the session that ended first did it
                name = write.path.rsplit("/", 1)[-1]
                line = _Line(write.at, write.path, number, write.seq)
                self.touched.setdefault(name, []).append(line)
                for lines, into in ((write.added, self.added), (write.removed, self.removed)):
                    for text in lines:
                        into.setdefault((name, _norm(text)), []).append(line)

    # -- one commit after the other --------------------------------------------------------------

    def link(self, commits: Sequence[CommitFacts]) -> list[Link]:
        common = _common_lines(commits)
        found: list[Link] = []
        for index, commit in enumerate(commits):
            if commit.is_merge or _BOT.search(commit.author):
                continue
            links = self._output(commit)
            for link in self._content(commits, index, common):
                links.setdefault(link.session, link)
            self._remember(commit, links)
            found += links.values()
            if not links:
                found += self._nearby(commit)
            self._use_up(commit, index)
        return found

    def _output(self, commit: CommitFacts) -> dict[int, Link]:
        """The session ran the commit, or names it, or made the commit this one is a copy of."""
        links: dict[int, Link] = {}
        for number, acts in self.sessions.items():
            for made in acts.made:
                why = _made(commit, made)
                if why is None:
                    continue
                outside = not _during(made, commit.authored_at, 5000)
                role = "rewrote" if made.rewrites and outside else "made"
                links[number] = Link(commit.sha, number, "output", "high", role, made.seq, why=why)
        copies: list[dict[int, Link]] = []
        if commit.patch_id:
            copies.append(self.by_patch.get(commit.patch_id, {}))
        copies += [self.by_subject.get((commit.subject, commit.authored_at + skew), {}) for skew in (-1000, 0, 1000)]
        for known in copies:
            for number, link in known.items():
                if number not in links:
                    links[number] = msgspec.structs.replace(
                        link, commit=commit.sha, why="same change as " + link.commit[:10]
                    )
        # Who only rebased it did not make it, if somebody else did.
        if any(link.role == "made" for link in links.values()):
            links = {n: link for n, link in links.items() if link.role == "made"}
        return links

    def _remember(self, commit: CommitFacts, links: dict[int, Link]) -> None:
        sure = {n: link for n, link in links.items() if link.evidence == "output"}
        if not sure:
            return
        if commit.patch_id:
            self.by_patch.setdefault(commit.patch_id, {}).update(sure)
        self.by_subject.setdefault((commit.subject, commit.authored_at), {}).update(sure)

    # -- content ---------------------------------------------------------------------------------

    def _content(self, commits: Sequence[CommitFacts], index: int, common: set[str]) -> list[Link]:
        commit = commits[index]
        changed = [(path, added, removed) for path, added, removed in commit.changes if not _GENERATED.search(path)]
        lines = sum(len(added) + len(removed) for _, added, removed in changed)
        small = sum(1 for _, a, r in changed for text in (*a, *r) if _telling(_norm(text), common)) < 4
        credit: dict[int, tuple[int, int, int]] = {}  # session → lines, last seq, last write
        total = 0
        for path, added, removed in changed:
            for texts, known in ((added, self.added), (removed, self.removed)):
                for text in texts:
                    norm = _norm(text)
                    if not small and not _telling(norm, common):
                        continue
                    if not norm:
                        continue
                    total += 1
                    writer = self._last_writer(commits, index, path, norm, known)
                    if writer is not None:
                        count, seq, at = credit.get(writer.session, (0, 0, 0))
                        credit[writer.session] = (count + 1, max(seq, writer.seq), max(at, writer.at))
        if not total or not lines:
            return []
        found = []
        for number, (count, seq, at) in credit.items():
            share = count / total
            age = commit.authored_at - self._last_touch(number, changed, at, commit.committed_at)
            if (share >= 0.20 and (count >= 2 or age <= DAY)) or (share >= 0.05 and count >= 3 and age <= DAY):
                confidence = "high" if share >= 0.5 and count >= 3 else "medium"
                why = f"{count} of {total} changed lines"
                found.append(Link(commit.sha, number, "content", confidence, "wrote", seq, count, round(share, 3), why))
        return found

    def _last_writer(
        self,
        commits: Sequence[CommitFacts],
        index: int,
        path: str,
        norm: str,
        known: dict[tuple[str, str], list[_Line]],
    ) -> _Line | None:
        """Who wrote this line last before the commit, unless an ancestor has committed that writing already."""
        commit = commits[index]
        best: _Line | None = None
        for line in known.get((path.rsplit("/", 1)[-1], norm), ()):
            if not commit.authored_at - LOOK_BACK <= line.at <= commit.committed_at + 5000:
                continue
            if (best is None or line.at > best.at) and _same_file(line.path, path):
                best = line
        if best is None or self._used_up(commits, index, path, norm, best.at):
            return None
        return best

    def _used_up(self, commits: Sequence[CommitFacts], index: int, path: str, norm: str, at: int) -> bool:
        earlier = [c for when, c in self.used.get((path, norm), ()) if when >= at]
        return bool(earlier) and _reaches(commits, index, set(earlier))

    def _use_up(self, commit: CommitFacts, index: int) -> None:
        for path, added, removed in commit.changes:
            for text in {*added, *removed}:
                self.used.setdefault((path, _norm(text)), []).append((commit.committed_at, index))

    def _last_touch(self, number: int, changed: list[tuple[str, list[str], list[str]]], at: int, until: int) -> int:
        for path, _, _ in changed:
            for line in self.touched.get(path.rsplit("/", 1)[-1], ()):
                if line.session == number and at < line.at <= until and _same_file(line.path, path):
                    at = line.at
        return at

    def _nearby(self, commit: CommitFacts) -> list[Link]:
        """It wrote one of the files minutes before, but none of these lines: shown as a hint, never counted."""
        found: dict[int, Link] = {}
        for path, _, _ in commit.changes:
            for line in self.touched.get(path.rsplit("/", 1)[-1], ()):
                if 0 <= commit.authored_at - line.at <= NEARBY and _same_file(line.path, path):
                    found[line.session] = Link(
                        commit.sha, line.session, "nearby", "low", "wrote", line.seq, why=f"wrote {path} shortly before"
                    )
        return list(found.values())


# -- small judgements ------------------------------------------------------------------------------


def _made(commit: CommitFacts, made: Made) -> str | None:
    """How a command shows that it made this commit; None if it does not."""
    for sha, subject in made.printed:
        if commit.sha.startswith(sha):
            return f"printed {sha}"
        same = subject.strip() == commit.subject.strip() and subject.strip() != ""
        if same and _during(made, commit.authored_at, 5000):
            return f"printed {sha}, since rewritten"
    spans = _during(made, commit.authored_at, 1000) or _during(made, commit.committed_at, 1000)
    if spans and not made.rewrites and commit.subject[:40] and commit.subject[:40] in made.command:
        return "ran the commit"
    listed = {line[2:].strip() for line in commit.body.splitlines() if line.startswith("* ")}
    recent = 0 <= commit.committed_at - made.done_at <= LOOK_BACK
    return "squashed into it" if recent and any(subject.strip() in listed for _, subject in made.printed) else None


def _during(made: Made, at: int, slack: int) -> bool:
    return made.called_at - slack <= at <= made.done_at + slack


def _owners(sessions: dict[int, Acts]) -> dict[str, int]:
    """Of a call that stands in several sessions (forks copy them), the session that ended first."""
    owner: dict[str, int] = {}
    for number, acts in sorted(sessions.items(), key=lambda item: (item[1].last_at or 0, item[0])):
        for call in [*(write.call for write in acts.written), *(made.call for made in acts.made)]:
            if call is not None:
                owner.setdefault(call, number)
    return owner


def _norm(text: str) -> str:
    return _SPACES.sub(" ", text).strip()


def _telling(norm: str, common: set[str]) -> bool:
    """Long enough, with enough letters in it, and not in every other file."""
    return len(norm) >= 10 and norm not in common and sum(map(str.isalnum, norm)) >= 6


def _common_lines(commits: Iterable[CommitFacts]) -> set[str]:
    files: dict[str, set[str]] = {}
    common: set[str] = set()
    for commit in commits:
        for path, added, _ in commit.changes:
            for text in added:
                norm = _norm(text)
                if norm in common or len(norm) < 10:
                    continue
                seen = files.setdefault(norm, set())
                seen.add(path)
                if len(seen) > _COMMON_FILES:
                    common.add(norm)
                    del files[norm]
    return common


def _same_file(written: str, path: str) -> bool:
    """The agent writes absolute paths, in any worktree; git knows them from the top of the repository."""
    return written == path or written.endswith("/" + path)


def _reaches(commits: Sequence[CommitFacts], index: int, targets: set[int]) -> bool:
    """Whether one of the targets is an ancestor; parents stand before their children, so the search is short."""
    lowest = min(targets)
    seen = {index}
    todo = [index]
    while todo:
        for parent in commits[todo.pop()].parents:
            if parent in targets:
                return True
            if parent >= lowest and parent not in seen:
                seen.add(parent)
                todo.append(parent)
    return False

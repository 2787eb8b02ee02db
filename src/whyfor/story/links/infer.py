"""Which sessions a commit came from, inferred from what they did and what it changes; never from
time alone.

Evidence, strongest first: `hook` (it ran inside the agent's process), `output` (the session
printed or ran the commit, or the one this is a copy of), `content` (lines it wrote are among
those the commit changes, same file, not used up by an ancestor), `nearby` (a hint, no link).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set

import msgspec

from whyfor.model.checkpoints import EVIDENCE
from whyfor.model.times import DAY
from whyfor.story.links.activity import SessionActivity
from whyfor.story.links.ancestry import Ancestry
from whyfor.story.links.by_content import Content, ContentOverlap, PathSpans
from whyfor.story.links.by_output import CommitCreator, CommitCreators
from whyfor.story.links.commits import CommitFacts, FileFacts
from whyfor.story.links.line_keys import norm
from whyfor.story.links.paths import Places
from whyfor.story.links.people import People
from whyfor.story.links.ranges import SQUASHED
from whyfor.story.links.squashes import Squashes, lines_of

__all__ = ["CommitFacts", "FileFacts", "Link", "Linker", "PriorLink"]

NEARBY = 600_000
WROTE_LINES = "wrote lines that it changes"
_SAME_TIME = 2000
_FEW = 3
# links that another commit has given
_SECOND_HAND = re.compile(r"^same change|^squashed|since rewritten$")
_MANY = 10
_OTHERS = 0.7  # of a colleague's commit that a session must have written

# commit → session, seq, whether it only rewrote
Hooks = Mapping[str, Iterable[tuple[int, int, bool]]]
Found = dict[int, "Link"]  # by session


class Link(msgspec.Struct, frozen=True):
    commit: str
    session: int
    evidence: str  # hook | output | content | nearby
    confidence: str  # high | medium | low
    role: str  # made | wrote | rewrote | squashed
    seq: int  # the last event of the session that belongs to the commit
    lines: int = 0
    share: float = 0.0
    why: str = ""
    sources: tuple[str, ...] = ()  # the commits it was squashed from, in all links of a squash


class PriorLink(msgspec.Struct, frozen=True):
    """A commit whose links are known from before: it may be gone, and live on in a copy."""

    sha: str
    subject: str
    authored_at: int
    patch_id: str | None
    links: list[Link]


class Rewrites(msgspec.Struct, frozen=True):
    """What git tells of commits that were replaced."""

    pairs: list[tuple[str, str]]  # old and new
    unreachable: Set[str]  # commits that no ref reaches any more


class Linker:
    """Built once from all sessions' acts. Sessions in `foreign` ran elsewhere: they count below
    `folders` only."""

    def __init__(
        self,
        sessions: Mapping[int, SessionActivity],
        *,
        foreign: Set[int] = frozenset(),
        folders: Iterable[str] = (),
        people: People | None = None,
    ) -> None:
        self._sessions = sessions
        self._people = people or People({}, "")
        self._foreign = foreign
        self._places = Places(folders)
        self._content: tuple[frozenset[str], Content] | None = None

    def _content_for(self, judged: Sequence[CommitFacts]) -> Content:
        shas = frozenset(commit.sha for commit in judged)
        if self._content is None or not shas <= self._content[0]:
            self._content = shas, Content(self._sessions, self._foreign, self._places, judged)
        return self._content[1]

    def spans(self, judged: Iterable[CommitFacts]) -> PathSpans:
        """Where and when other commits matter to these: what they hold of a session's writing
        may be used up."""
        commits = list(judged)
        return self._content_for(commits).spans(commits)

    def link(
        self,
        commits: Sequence[CommitFacts],
        *,
        todo: Set[str] | None = None,
        hooks: Hooks | None = None,
        pairs: Iterable[tuple[str, str]] = (),
        seeds: Iterable[PriorLink] = (),
        unreachable: Set[str] = frozenset(),
    ) -> tuple[list[Link], dict[str, str]]:
        """Links of the commits in `todo` (all if None), and by commit which one took its place.

        Other commits are there as ancestors and as originals of copies.
        """
        judged = [commit for commit in commits if todo is None or commit.sha in todo]
        makers = CommitCreators(self._sessions, self._foreign)
        rewrites = Rewrites(list(pairs), unreachable)
        run = _Run(commits, makers, self._content_for(judged), seeds, rewrites, self._people)
        return run.run({commit.sha for commit in judged}, hooks or {})


class _Run:
    def __init__(
        self,
        commits: Sequence[CommitFacts],
        makers: CommitCreators,
        content: Content,
        seeds: Iterable[PriorLink],
        rewrites: Rewrites,
        people: People,
    ) -> None:
        self.people = people
        self.ancestry = Ancestry({commit.sha: commit.parents for commit in commits})
        self.commits = sorted(commits, key=lambda commit: self.ancestry.number[commit.sha])
        # originals before their copies
        self.by_time = sorted(self.commits, key=lambda commit: commit.committed_at)
        self.makers = makers
        self.content = content
        self.rewrites = rewrites
        self.copies = _Copies(self.ancestry)
        self.squashes = Squashes(self.ancestry, rewrites.pairs, rewrites.unreachable)
        self.originals: dict[tuple[str | None, int], str] = {}
        for commit in self.by_time:
            self.originals.setdefault((commit.patch_id, commit.authored_at), commit.sha)
        self.found: dict[str, Found] = {}
        self.seeds = {seed.sha: seed for seed in seeds}
        for seed in self.seeds.values():
            self.found[seed.sha] = {link.session: link for link in seed.links}

    def run(self, todo: set[str], hooks: Hooks) -> tuple[list[Link], dict[str, str]]:
        direct = self._makers(hooks)
        for seed in self.seeds.values():
            self.copies.add(seed, self.found[seed.sha])
        for commit in self.commits:
            self.content.use_up(commit)
            self.found.setdefault(commit.sha, direct.get(commit.sha, {}))
        for commit in self.by_time:
            if commit.sha in todo:
                self.found[commit.sha] = self._judge(commit, direct.get(commit.sha, {}))
            if self._told(commit.sha) and not commit.is_merge:
                self.squashes.add(commit)
        rewritten = self._rewritten(todo)
        superseded = {**self._replaced(), **rewritten}
        links = [link for sha in todo for link in self._told(sha)]
        for commit in self.commits:
            if commit.sha in todo and not self.found[commit.sha]:
                links += self._nearby(commit)
        order = self.ancestry.number
        links.sort(key=lambda link: (order[link.commit], link.session))
        return links, superseded

    def _told(self, sha: str) -> list[Link]:
        """Who only replayed it had no part in it."""
        return [link for link in self.found[sha].values() if link.role != "rewrote"]

    # -- output ----------------------------------------------------------------------------------

    def _makers(self, hooks: Hooks) -> dict[str, Found]:
        """Of all commits: what is known of a commit directly goes for its copies, in whatever
        order they come."""
        found: dict[str, Found] = {}
        plain = [commit for commit in self.commits if not commit.is_bot]
        for commit in plain:
            own = self.makers.of(commit)
            self.makers.learn(commit, own.values())
            found[commit.sha] = {m.session: _output(commit.sha, m) for m in own.values()}
        quiet = [c for c in plain if not found[c.sha] and c.sha not in hooks and not c.is_merge]
        for sha, maker in self.makers.unnamed(quiet).items():
            found[sha] = {maker.session: _output(sha, maker)}
        for sha, told in hooks.items():
            hooked = _hooked(sha, told)
            # Who made it is known: others that printed it, or ran the like at that time, only
            # looked on.
            if made := {session: link for session, link in hooked.items() if link.role == "made"}:
                found[sha] = made
            else:
                # During a rebase an agent may also make commits of its own: what it ran says so.
                found[sha] = {**hooked, **found.get(sha, {})}
        for commit in self.commits:
            known = found.get(commit.sha)
            if known:
                self.copies.add(commit, known)
                for link in known.values():
                    if link.role == "made" and not _is_second_hand(link):
                        self.people.learn(link.session, commit.people)
        return found

    # -- all evidence of one commit --------------------------------------------------------------

    def _judge(self, commit: CommitFacts, direct: Found) -> Found:
        if commit.is_bot:
            return {n: link for n, link in direct.items() if link.evidence == "hook"}
        found = dict(direct)
        if commit.is_merge:
            return found
        self._take_copies(commit, found)
        sources = [] if self._is_copy(commit) else self.squashes.of(commit)
        self._take_sources(commit, sources, found)
        for maker in self.makers.squashed(commit).values():
            squashed = msgspec.structs.replace(maker, why="squashed into it", confidence="medium")
            found.setdefault(maker.session, _output(commit.sha, squashed))
        for link in [] if self._is_copy(commit) else self._by_content(commit):
            known = found.get(link.session)
            found[link.session] = _with_content(known, link) if known else link
        if len(sources) > 1:
            replace = msgspec.structs.replace
            found = {n: replace(link, sources=tuple(sources)) for n, link in found.items()}
        if found:
            self.copies.add(commit, found)
        return found

    def _take_copies(self, commit: CommitFacts, found: Found) -> None:
        """What is known of a commit goes for its copies."""
        for copy, exact in self.copies.of(commit):
            for link in copy.links.values():
                if link.role != "rewrote" and (link.evidence != "content" or exact):
                    found.setdefault(link.session, _copied(link, commit.sha))

    def _take_sources(self, commit: CommitFacts, sources: list[str], found: Found) -> None:
        """A squash has the sessions of all its sources; a single one is a copy with changes."""
        for sha in sources:
            for link in self.found.get(sha, {}).values():
                known = found.get(link.session)
                if link.role == "rewrote":
                    continue
                if len(sources) == 1:
                    found.setdefault(link.session, _copied(link, commit.sha))
                elif known is None or known.role in ("rewrote", SQUASHED) or _is_second_hand(known):
                    found[link.session] = _borrowed(link, known, commit.sha, sources)

    def _is_copy(self, commit: CommitFacts) -> bool:
        """The very same change was committed before: whoever wrote its lines since then has no
        part in it."""
        return self.originals.get((commit.patch_id, commit.authored_at), commit.sha) != commit.sha

    def _by_content(self, commit: CommitFacts) -> list[Link]:
        shares, total = self.content.shares(commit, self.ancestry)
        found = []
        for number, share in shares.items():
            if self._is_others(commit, number):
                enough = _is_most(share, total)
            else:
                enough = _enough(share, total, fresh=self._is_fresh(commit, number, share))
            if enough:
                found.append(_written(commit.sha, number, share, total))
        return found

    def _is_fresh(self, commit: CommitFacts, session: int, share: ContentOverlap) -> bool:
        """Whether the session wrote in the commit's files on the day before it was made."""
        since = commit.authored_at - DAY
        if share.at >= since:
            return True
        touches = self.content.touches(commit, since)
        return any(write.session == session for _, write in touches)

    def _is_others(self, commit: CommitFacts, session: int) -> bool:
        return self.people.is_others(commit.sha, commit.people, session)

    def _nearby(self, commit: CommitFacts) -> list[Link]:
        """It wrote one of the files minutes before, but none of these lines: shown as a hint,
        never counted."""
        if commit.is_bot or commit.is_merge:
            return []
        found: Found = {}
        for path, write in self.content.touches(commit, commit.authored_at - NEARBY):
            recent = write.act.at <= commit.authored_at
            if recent and not self._is_others(commit, write.session):
                why = f"wrote {path} shortly before"
                found[write.session] = Link(
                    commit.sha, write.session, "nearby", "low", "wrote", write.act.seq, why=why
                )
        return list(found.values())

    # -- what took the place of what -------------------------------------------------------------

    def _rewritten(self, todo: set[str]) -> dict[str, str]:
        """Git says which commit a rewrite replaced; `rebase --skip` names somebody else's, so
        content must agree."""
        known = {commit.sha: commit for commit in self.commits}
        superseded: dict[str, str] = {}
        for old, new in self.rewrites.pairs:
            before = known.get(old) or self.seeds.get(old)
            after = known.get(new)
            if old == new or before is None or after is None or not _continues(before, after):
                continue
            superseded[old] = new
            if new in todo:
                self._inherit(self.found[new], self.found.get(old, {}), new)
        return superseded

    def _inherit(self, found: Found, links: Found, new: str) -> None:
        for link in links.values():
            mine = found.get(link.session)
            if mine is None:
                found[link.session] = _copied(link, new)
            elif not mine.sources:  # else it has the link already
                found[link.session] = _stronger(mine, _copied(link, new))

    def _replaced(self) -> dict[str, str]:
        """Commits no ref reaches any more, and the newest copy of each that one does."""
        found: dict[str, str] = {}
        lost: list[CommitFacts] = []
        unreachable = self.rewrites.unreachable
        number = self.ancestry.number
        known: list[CommitFacts | PriorLink] = [*self.commits, *self.seeds.values()]
        for commit in known:
            if commit.sha in unreachable and self.found.get(commit.sha):
                copies = [k.sha for k, _ in self.copies.of(commit) if k.sha not in unreachable]
                copies = copies or self._squashed_into(commit.sha)
                if copies:
                    found[commit.sha] = max(copies, key=lambda sha: number.get(sha, -1))
                elif isinstance(commit, CommitFacts):
                    lost.append(commit)
        return {**(self._heirs(lost) if lost else {}), **found}

    def _squashed_into(self, sha: str) -> list[str]:
        return [s for s in self.squashes.holding(sha) if s not in self.rewrites.unreachable]

    def _heirs(self, lost: list[CommitFacts]) -> dict[str, str]:
        """Of each the first later commit with most of it: amended with more, reset and committed
        again."""
        by_line: dict[int, list[CommitFacts]] = {}
        for old in lost:
            for line in lines_of(old):
                by_line.setdefault(line, []).append(old)
        found: dict[str, str] = {}
        for new in self.commits:
            if new.sha in self.rewrites.unreachable or new.is_merge:
                continue
            alike = {old.sha: old for line in lines_of(new) for old in by_line.get(line, ())}
            for old in alike.values():
                if old.sha not in found and self._follows(new, old) and _continues(old, new):
                    found[old.sha] = new.sha
        return found

    def _follows(self, new: CommitFacts, old: CommitFacts) -> bool:
        """Whether it was made later, and not on top of the other."""
        later = new.committed_at >= old.committed_at
        return later and not self.ancestry.descends(new.sha, old.sha)


class _Known(msgspec.Struct, frozen=True):
    sha: str
    authored_at: int
    size: int
    links: Found


class _Copies:
    """The same change in another commit: rebased, cherry-picked, amended."""

    def __init__(self, ancestry: Ancestry) -> None:
        self._ancestry = ancestry
        self._by_patch: dict[str, dict[str, _Known]] = {}
        self._by_subject: dict[str, dict[str, _Known]] = {}

    def add(self, commit: CommitFacts | PriorLink, links: Found) -> None:
        known = _Known(commit.sha, commit.authored_at, _size(commit), links)
        if commit.patch_id:
            self._by_patch.setdefault(commit.patch_id, {})[commit.sha] = known
        self._by_subject.setdefault(norm(commit.subject), {})[commit.sha] = known

    def of(self, commit: CommitFacts | PriorLink) -> Iterator[tuple[_Known, bool]]:
        """Commits this one is a copy of, or that are of it; and whether nothing speaks against
        it."""
        patched = self._by_patch.get(commit.patch_id or "", {})
        named = self._by_subject.get(norm(commit.subject), {})
        for sha in {**patched, **named}:
            # After its own ancestor the same change is no copy: it was reverted and made once more.
            related = self._ancestry.descends(commit.sha, sha) or self._ancestry.descends(
                sha, commit.sha
            )
            if sha == commit.sha or related:
                continue
            known = patched.get(sha) or named[sha]
            same_time = abs(known.authored_at - commit.authored_at) <= _SAME_TIME
            if same_time or (
                sha in patched and (sha in named or max(known.size, _size(commit)) >= _FEW)
            ):
                yield known, same_time and sha in patched


# -- small judgements ----------------------------------------------------------------------------


def _enough(share: ContentOverlap, total: int, *, fresh: bool) -> bool:
    """Part of the commit, not a line or two by chance: the older the writing, the more of it."""
    part = share.lines / total
    if not share.telling:
        return fresh and part >= 0.5
    if part >= 0.20:
        return share.lines >= 2 or fresh
    return fresh and (share.owns or share.lines >= _MANY or (part >= 0.05 and share.lines >= _FEW))


def _is_most(share: ContentOverlap, total: int) -> bool:
    """Nearly all of a commit that is not small: a colleague who did the like does not write the
    same."""
    return share.telling >= _MANY and share.lines >= total * _OTHERS


def _written(sha: str, session: int, share: ContentOverlap, total: int) -> Link:
    part = share.lines / total
    confidence = "high" if part >= 0.5 and share.lines >= _FEW else "medium"
    seq, lines = share.seq, share.lines
    return Link(
        sha, session, "content", confidence, "wrote", seq, lines, round(part, 3), WROTE_LINES
    )


def _output(sha: str, maker: CommitCreator) -> Link:
    role = "rewrote" if maker.rewrote else "made"
    return Link(sha, maker.session, "output", maker.confidence, role, maker.seq, why=maker.why)


def _hooked(sha: str, told: Iterable[tuple[int, int, bool]]) -> Found:
    found: Found = {}
    for session, seq, rewrites in told:
        role, why = ("rewrote", "replayed it") if rewrites else ("made", "ran inside its process")
        if session not in found or role == "made":
            found[session] = Link(sha, session, "hook", "high", role, seq, why=why)
    return found


def _stronger(mine: Link, copied: Link) -> Link:
    """Of one session, what is known of a commit and of the one it replaced; a squash ends where
    the last did."""
    if mine.role == "rewrote" and copied.role != "rewrote":
        return copied
    best = min(mine, copied, key=lambda link: EVIDENCE.index(link.evidence))
    return msgspec.structs.replace(
        best, seq=max(mine.seq, copied.seq), lines=mine.lines, share=mine.share
    )


def _with_content(known: Link, link: Link) -> Link:
    """What is known of a session and what it wrote of the commit, in one link."""
    if known.role == "rewrote":
        return link
    seq = known.seq
    role = known.role
    # A copy or a squash holds what was written later too; who made the commit itself wrote nothing
    # of it after that.
    if _is_second_hand(known) and link.seq > seq:
        seq = link.seq
        role = "wrote" if role == SQUASHED else role
    return msgspec.structs.replace(known, lines=link.lines, share=link.share, seq=seq, role=role)


def _borrowed(link: Link, known: Link | None, commit: str, sources: list[str]) -> Link:
    """A session's part in a squash: that which it has in the sources."""
    best, seq = link, link.seq
    if known is not None and known.role == SQUASHED:
        best = min(link, known, key=lambda link: EVIDENCE.index(link.evidence))
        seq = max(link.seq, known.seq)
    names = ", ".join(sha[:10] for sha in sources[:6])
    more = f" and {len(sources) - 6} more" if len(sources) > 6 else ""
    return Link(
        commit,
        link.session,
        best.evidence,
        best.confidence,
        SQUASHED,
        seq,
        why=f"squashed from {names}{more}",
    )


def _is_second_hand(link: Link) -> bool:
    return bool(_SECOND_HAND.search(link.why))


def _copied(link: Link, commit: str) -> Link:
    return msgspec.structs.replace(
        link, commit=commit, why=f"same change as {link.commit[:10]}: {link.why}"[:200]
    )


def _continues(before: CommitFacts | PriorLink, after: CommitFacts) -> bool:
    if before.patch_id is not None and before.patch_id == after.patch_id:
        return True
    same_time = abs(before.authored_at - after.authored_at) <= _SAME_TIME
    if isinstance(before, PriorLink):
        return same_time or norm(before.subject) == norm(after.subject)
    old, new = lines_of(before), lines_of(after)
    common = len(old & new)
    if same_time and before.email == after.email:
        return common > 0 or not old
    return common > 0 and common * 2 >= len(old)


def _size(commit: CommitFacts | PriorLink) -> int:
    return (
        0 if isinstance(commit, PriorLink) else sum(file.plus + file.minus for file in commit.files)
    )

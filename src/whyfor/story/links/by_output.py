"""Output as evidence: a session printed a commit's hash, or ran the command that made it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Set

import msgspec

from whyfor.model.times import DAY
from whyfor.story.links.activity import CommitCommand, SessionActivity
from whyfor.story.links.by_content import LOOK_BACK, owners
from whyfor.story.links.commits import CommitFacts
from whyfor.story.links.line_keys import norm
from whyfor.story.links.squashes import BULLET

SLACK = 5000  # ms between what the agent's clock and git's say of one moment
_TIGHT = 1000
_MINUTE = 60_000
_LONG = 10 * _MINUTE  # a command that took longer says little about one moment
_SPREAD = 24 * 60  # minutes: a command may wait for a person's consent
_SHORT = 7  # digits of an abbreviated hash
_MESSAGE = re.compile(r"\s(?:-[a-zA-Z]*m\b|--message\b|-m[\"'])")
_NUMBER = re.compile(r" \(#\d+\)$")
_PLAIN = 15  # characters of a subject that is hardly anybody else's by chance


class CommitCreator(msgspec.Struct, frozen=True):
    """A session that made a commit, and how we know."""

    session: int
    seq: int
    at: int
    rewrote: bool
    why: str
    confidence: str = "high"


class _Ran(msgspec.Struct, frozen=True):
    session: int
    foreign: bool
    made: CommitCommand
    command: str


class CommitCreators:
    """Commands of all sessions, found by the hash and subject they printed and by the minute
    they ran in."""

    def __init__(self, sessions: Mapping[int, SessionActivity], foreign: Set[int]) -> None:
        self._by_sha: dict[str, list[tuple[str, _Ran]]] = {}
        self._by_subject: dict[str, list[tuple[str, _Ran]]] = {}
        self._by_minute: dict[int, list[_Ran]] = {}
        self._subjects: dict[str, dict[int, CommitCreator]] = {}
        owner = owners(sessions)
        for number, acts in sessions.items():
            for made in acts.made:
                if made.call is None or owner[made.call] == number:
                    self._index(_Ran(number, number in foreign, made, _plain(made.command)))

    def _index(self, ran: _Ran) -> None:
        for sha, subject in ran.made.printed:
            self._by_sha.setdefault(sha[:_SHORT], []).append((sha, ran))
            if subject and not ran.foreign:
                self._by_subject.setdefault(norm(subject), []).append((sha, ran))
        if ran.made.commits and not ran.foreign:
            first, last = ran.made.called_at // _MINUTE, ran.made.done_at // _MINUTE
            for minute in range(first - 1, min(last, first + _SPREAD) + 2):
                self._by_minute.setdefault(minute, []).append(ran)

    # -- one commit ------------------------------------------------------------------------------

    def of(self, commit: CommitFacts) -> dict[int, CommitCreator]:
        found: dict[int, CommitCreator] = {}
        for maker in (*self._printed(commit), *self._spanned(commit)):
            known = found.get(maker.session)
            if known is None or (known.rewrote and not maker.rewrote):
                found[maker.session] = maker
        return found

    def _printed(self, commit: CommitFacts) -> Iterator[CommitCreator]:
        for sha, ran in self._by_sha.get(commit.sha[:_SHORT], ()):
            # A log that is shown again prints old hashes; a command of git prints those it makes.
            trusted = _during(ran.made, commit.committed_at, SLACK) or (
                ran.made.commits and not ran.foreign
            )
            if commit.sha.startswith(sha) and trusted:
                yield _maker(ran, commit, f"printed {sha}")
        for sha, ran in self._by_subject.get(norm(commit.subject), ()):
            if _during(ran.made, commit.authored_at, SLACK) and not commit.sha.startswith(sha):
                yield _maker(ran, commit, f"printed {sha}, since rewritten")

    def _spanned(self, commit: CommitFacts) -> Iterator[CommitCreator]:
        subject = _plain(commit.subject)[:40]
        for ran in self._at(commit):
            if subject and subject in ran.command and not ran.made.rewrites:
                yield _maker(ran, commit, "ran the commit")

    def _at(self, commit: CommitFacts) -> list[_Ran]:
        """Commands that ran when it was authored or committed."""
        times = (commit.authored_at, commit.committed_at)
        near = {id(ran): ran for at in times for ran in self._by_minute.get(at // _MINUTE, ())}
        return [ran for ran in near.values() if any(_during(ran.made, at, _TIGHT) for at in times)]

    # -- commits that only all together tell -----------------------------------------------------

    def unnamed(self, commits: Iterable[CommitFacts]) -> dict[str, CommitCreator]:
        """Commits without a trace of their own: a `git commit` that says neither message nor
        hash ran at that moment.

        Only if no other session ran one then, and no other commit was made then.
        """
        found: dict[int, list[tuple[CommitFacts, _Ran]]] = {}
        for commit in commits:
            here = [
                ran for ran in self._at(commit) if _during(ran.made, commit.committed_at, _TIGHT)
            ]
            if len(here) == 1 and _wordless(here[0]):
                found.setdefault(id(here[0]), []).append((commit, here[0]))
        alone = (pairs[0] for pairs in found.values() if len(pairs) == 1)
        return {
            c.sha: _maker(ran, c, "ran git commit at that moment", "medium") for c, ran in alone
        }

    def learn(self, commit: CommitFacts, makers: Iterable[CommitCreator]) -> None:
        """Subjects a session has committed, for the squashes that list them."""
        for maker in makers:
            if not maker.rewrote:
                self._subjects.setdefault(norm(commit.subject), {})[maker.session] = maker

    def squashed(self, commit: CommitFacts) -> dict[int, CommitCreator]:
        """A squash lists the subjects it swallowed, or keeps the only one and adds the number of
        the request."""
        found: dict[int, CommitCreator] = {}
        listed = [(norm(subject), LOOK_BACK) for subject in BULLET.findall(commit.body)]
        if single := single_subject(commit.subject):
            listed.append((single, 7 * DAY))
        for subject, within in listed:
            for maker in self._who(subject):
                known = found.get(maker.session)
                if 0 <= commit.committed_at - maker.at <= within and (
                    known is None or known.seq < maker.seq
                ):
                    found[maker.session] = maker
        return found

    def _who(self, subject: str) -> Iterator[CommitCreator]:
        yield from self._subjects.get(subject, {}).values()
        for _, ran in self._by_subject.get(subject, ()):
            if not ran.made.rewrites:
                yield CommitCreator(
                    ran.session, ran.made.seq, ran.made.at, False, "squashed into it"
                )


def single_subject(subject: str) -> str:
    """Return the subject that a forge kept when it squashed one commit and added the number of the
    request; empty if it is none."""
    single = norm(_NUMBER.sub("", subject)) if _NUMBER.search(subject) else ""
    return single if len(single) >= _PLAIN else ""


def _maker(ran: _Ran, commit: CommitFacts, why: str, confidence: str = "high") -> CommitCreator:
    # `git rebase` prints and dates commits anew, whoever made them; only the author date stays.
    rewrote = ran.made.rewrites and not _during(ran.made, commit.authored_at, SLACK)
    return CommitCreator(ran.session, ran.made.seq, ran.made.at, rewrote, why, confidence)


def _wordless(ran: _Ran) -> bool:
    made = ran.made
    brief = made.done_at - made.called_at <= _LONG
    return (
        brief
        and not made.printed
        and not made.failed
        and not made.rewrites
        and not _MESSAGE.search(made.command)
    )


def _during(made: CommitCommand, at: int, slack: int) -> bool:
    return made.called_at - slack <= at <= made.done_at + slack


def _plain(text: str) -> str:
    return norm(text.replace("\\", ""))

"""Whether a commit may be by the person whose sessions these are, or is a colleague's.

A person is known by the names and addresses in commits that their sessions made, in commits that
were made on this machine, and in git's configuration.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Set

from whyfor.git.identity import LocalPerson
from whyfor.model.stories import Commit

_TOGETHER = re.compile(r"^co-authored-by:\s*([^<\n]*?)\s*<([^>\n]+)>", re.I | re.M)
_NOBODY = re.compile(r"^no-?reply@", re.I)  # forges and agents sign with such addresses
_HOME = re.compile(
    r"^(?:/home/[^/]+|/Users/[^/]+|/root|[A-Za-z]:[\\/]Users[\\/][^\\/]+)(?=[\\/]|$)"
)


def people_of(commit: Commit) -> frozenset[str]:
    """Return names and addresses of everybody who had a part in a commit, in small letters."""
    pairs = [
        (commit.author, commit.email),
        (commit.committer, commit.committer_email),
        *_TOGETHER.findall(commit.body),
    ]
    found: set[str] = set()
    for name, address in pairs:
        if not _NOBODY.match(address):
            found |= {name.strip().casefold(), address.strip().casefold()}
    return frozenset(found - {""})


def home_of(cwd: str | None) -> str:
    """Return the home folder a folder is in; empty if it is in none."""
    found = _HOME.match(cwd or "")
    return found[0] if found else ""


class People:
    """What the sessions' persons are called, by the home folder they work in: sessions of several
    people may be kept together."""

    def __init__(self, homes: Mapping[int, str], here: str) -> None:
        self._homes = homes
        self._here = here
        self._known: dict[str, set[str]] = {}
        self._made_here: Set[str] = frozenset()

    def add(self, home: str, names: Iterable[str]) -> None:
        self._known.setdefault(home or self._here, set()).update(names)

    def add_local(self, person: LocalPerson, commits: Iterable[Commit]) -> None:
        """Add who commits on this machine. A name that is only configured counts if somebody of
        that name made one of the commits: the machine may be a stranger's."""
        self._made_here = person.commits
        self.add("", person.made_as)
        if person.configured and not self._known[self._here]:
            used = any(not person.configured.isdisjoint(people_of(one)) for one in commits)
            self.add("", person.configured if used else ())

    def learn(self, session: int, names: Iterable[str]) -> None:
        """A session made a commit under these names."""
        self.add(self._homes.get(session, ""), names)

    def is_others(self, sha: str, names: Set[str], session: int) -> bool:
        """Return whether a commit is certainly not by the person of a session; False if nothing
        is known of the person."""
        known = self._known.get(self._homes.get(session, "") or self._here)
        if not known or not names or sha in self._made_here:
            return False
        return known.isdisjoint(names)

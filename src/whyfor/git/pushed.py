"""Which commits are on a project's own remote, as far as this clone knows."""

from __future__ import annotations

import os
from collections.abc import Iterable

from whyfor.git.identity import fetch_urls, normalise
from whyfor.git.place import GitPlace
from whyfor.git.run import LONG, run_git

REMOTE_SECONDS = 20.0  # for a remote to say what it has


def own_remotes(where: GitPlace) -> dict[str, str]:
    """Return the remotes, by name, that the project is known by, with their URLs: `origin` (else
    the first), and others with the same address. Not one that is pushed elsewhere: what it tracks
    is not what was pushed."""
    urls = _urls(where)
    if not urls:
        return {}
    main = normalise(urls.get("origin") or urls[min(urls)])
    pushed = _push_urls(where)
    found = {}
    for name, url in urls.items():
        if normalise(url) == main and normalise(pushed.get(name, url)) == main:
            found[name] = url
    return found


def remote_urls(where: GitPlace) -> list[str]:
    """Return the addresses of all remotes, to fetch from and to push to."""
    return [*_urls(where).values(), *_push_urls(where).values()]


def _urls(where: GitPlace) -> dict[str, str]:
    listed = run_git(
        where, "config", "-z", "--get-regexp", r"^(remote\..*\.url|url\..*\.insteadof)$"
    )
    return fetch_urls(listed.text) if listed.ok else {}


def _push_urls(where: GitPlace) -> dict[str, str]:
    listed = run_git(where, "config", "-z", "--get-regexp", r"^remote\..*\.pushurl$")
    found = {}
    for entry in listed.text.split("\0") if listed.ok else []:
        key, _, value = entry.partition("\n")
        if value:
            found[key.removeprefix("remote.").removesuffix(".pushurl")] = value
    return found


def pushed_commits(
    where: GitPlace, shas: Iterable[str], remotes: Iterable[str], tips: Iterable[str] = ()
) -> set[str]:
    """Return those of the commits that a branch of these remotes contains, by the refs that track
    them, or that are behind one of these tips. Commits that are not here are in neither."""
    asked = list(dict.fromkeys(shas))
    names = [f"--remotes={name}" for name in remotes]
    ends = [tip for tip in tips if tip]
    if not asked or not (names or ends):
        return set()
    here = _existing(where, asked)
    ends = sorted(_existing(where, ends))
    lines = [*sorted(here), *(f"^{tip}" for tip in ends)]
    given = "".join(f"{line}\n" for line in lines).encode()
    # without what the remote has, what is left was not pushed
    answer = run_git(where, "rev-list", "--stdin", "--not", *names, given=given, seconds=LONG)
    if not answer.ok:
        return set()
    return here - set(answer.text.split())


def _existing(where: GitPlace, shas: Iterable[str]) -> set[str]:
    """Return the commits that this clone has."""
    given = "".join(f"{sha}\n" for sha in shas).encode()
    answer = run_git(
        where, "cat-file", "--batch-check=%(objectname) %(objecttype)", given=given, seconds=LONG
    )
    lines = (line.split() for line in answer.text.splitlines())
    return {words[0] for words in lines if words[1:] == ["commit"]}


def remote_tips(where: GitPlace, url: str) -> list[str]:
    """Ask a remote for its branches: for pushes to an address, which no ref tracks. The person has
    just pushed there, so git may use their keys, but it may not ask them anything."""
    variables = {
        "GIT_ALLOW_PROTOCOL": "file:ssh:https:http",
        "GIT_SSH_COMMAND": "ssh -o BatchMode=yes -o ConnectTimeout=10",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ASKPASS": os.devnull,
    }
    answer = run_git(
        where, "ls-remote", "--heads", "--", url, seconds=REMOTE_SECONDS, variables=variables
    )
    return [line.split("\t")[0] for line in answer.text.splitlines()] if answer.ok else []

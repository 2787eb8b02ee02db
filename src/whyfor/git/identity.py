"""Find the project of a folder: its remote, else its root commit, else its path."""

from __future__ import annotations

import os
import re
from pathlib import Path

import msgspec

from whyfor.git.place import GitPlace, find_work_tree, name_place, name_remote
from whyfor.git.run import ask, run_git
from whyfor.model.paths import to_path, to_text
from whyfor.model.sessions import Project

_SCP = re.compile(r"^(?:[^@/]+@)?([^/:]+):(?!//)(.+)$")
_URL = re.compile(r"^[a-z][a-z0-9+.-]*://(?:[^@/]*@)?([^/:]*)(?::\d+)?/(.*)$", re.I)
_DRIVE = re.compile(r"^[A-Za-z]:[\\/]")
# where agents and people put the work trees they make inside of a repository
_LINKED = re.compile(r"[\\/](?:\.claude[\\/]worktrees|\.worktrees)[\\/](?=[^\\/])")
# a line of the log of HEAD that says that a commit was made here
_MADE_HERE = re.compile(
    r"[0-9a-f]+ (?P<sha>[0-9a-f]{40,64}) (?P<name>[^<]*)<(?P<email>[^>]*)> \d+ \S+"
    r"\t(?:commit|rebase|cherry-pick|revert|am)\b"
)
_LOG_MAX = 1 << 20  # bytes of the log that are read
_HOPS = 3  # a clone of a clone of a clone on this machine


def identify(cwd: str, *, named: bool = False) -> Project:
    """Return the project of a folder as it is now; a folder that is gone is known by its path
    alone.

    A bare repository is asked only if the user named the folder (see git/place.py); an agent's
    session did not.
    """
    where: GitPlace | None = _repository(cwd)
    if where is None and named:
        where = name_place(Path(cwd))
    found = _identify(where, _HOPS) if where is not None else None
    if found is None:
        main = _main_folder(cwd)
        found = Project(identity=main, evidence="path", name=_basename(main), path=main)
    return found


def project_of_remote(url: str, folder: str) -> Project | None:
    """Return the project that a session says its folder was a clone of; None if the URL is of a
    folder on some machine."""
    if _local(url):
        return None
    identity, main = normalise(url), _main_folder(folder)
    return Project(identity, "remote", _basename(identity), remote=identity, path=main)


def _main_folder(cwd: str) -> str:
    """Return the work tree that a linked one was made in, as its path tells after it is gone."""
    return _LINKED.split(cwd, maxsplit=1)[0] or cwd


def _identify(where: GitPlace, hops: int) -> Project | None:
    """Return the project of a repository; None if git fails there."""
    common = ask(where, "rev-parse", "--path-format=absolute", "--git-common-dir")
    if not common:
        return None
    top = Path(common).parent if Path(common).name == ".git" else Path(common)
    if remote := _remote(where):
        return _by_remote(remote, top, hops)
    if root := ask(where, "rev-list", "--max-parents=0", "HEAD"):
        commit = root.split()[-1]
        return Project(
            f"git:{commit}", "root", _basename(str(top)), root_commit=commit, path=str(top)
        )
    return Project(identity=str(top), evidence="path", name=_basename(str(top)), path=str(top))


def _by_remote(remote: str, top: Path, hops: int) -> Project:
    identity = normalise(remote)
    if not _local(remote):
        return Project(identity, "remote", _basename(identity), remote=identity, path=str(top))
    folder = Path(os.path.normpath(top / re.sub(r"^file://", "", remote.strip(), flags=re.I)))
    where = name_remote(folder, top) if hops > 0 else None
    # A clone of a repository on this machine belongs to that repository's project.
    origin = _identify(where, hops - 1) if where is not None else None
    if origin is not None and origin.evidence != "path":
        return Project(
            origin.identity,
            origin.evidence,
            origin.name,
            origin.remote,
            origin.root_commit,
            to_text(top),
        )
    identity = normalise(to_text(folder))
    return Project(identity, "remote", _basename(identity), remote=identity, path=str(top))


def still(folder: str, project: Project) -> bool:
    """Return True if the folder is certainly this project, without walking its history; False if
    unknown."""
    at = _repository(folder)
    if at is None or project.evidence == "path":
        return False
    remote = _remote(at)
    if remote is not None:
        return not _local(remote) and normalise(remote) == project.identity
    return (
        project.root_commit is not None
        and project.remote is None
        and has_commit(at, project.root_commit)
    )


def normalise(url: str) -> str:
    """Return one spelling per remote: ssh, https and scp forms, `.git`, credentials, port and case
    do not matter."""
    text = url.strip()
    if _local(text):
        plain = re.sub(r"^file://", "", text, flags=re.I).rstrip("/")
        return plain.removesuffix(".git").rstrip("/") or text
    found = _URL.match(text) if "://" in text else _SCP.match(text)
    assert found is not None  # else it is local
    host, path = found[1].lower(), found[2].strip("/").lower().removesuffix(".git").rstrip("/")
    return f"{host}/{path}"


def _local(url: str) -> bool:
    text = url.strip()
    found = _URL.match(text) if "://" in text else _SCP.match(text)
    return not found or bool(_DRIVE.match(text)) or text.lower().startswith("file://")


def has_commit(where: GitPlace, commit: str) -> bool:
    """Return whether the repository still has the commit."""
    return ask(where, "rev-parse", "--verify", "--quiet", f"{commit}^{{commit}}") is not None


def _repository(cwd: str) -> Path | None:
    """Return the folder if it exists, else the repository it was deleted from (an agent's old
    worktree), else None."""
    folder = to_path(cwd)
    if not folder.is_absolute():
        return None
    top = find_work_tree(folder)
    try:
        if top is None or folder.is_dir():
            return top
    except (OSError, ValueError):  # a name no file system takes
        return None
    return top if top != Path(os.path.realpath(Path.home())) else None


# -- people --------------------------------------------------------------------------------------


class LocalPerson(msgspec.Struct, frozen=True):
    """Who commits on this machine: names and addresses in small letters."""

    configured: frozenset[str]  # user.name and user.email
    made_as: frozenset[str]  # in what git recorded of commits made here
    commits: frozenset[str]  # those


def local_person(where: GitPlace) -> LocalPerson:
    """Return who commits in a repository, by git's configuration and its log of HEAD."""
    listed = run_git(where, "config", "-z", "--get-regexp", r"^user\.(name|email)$")
    values = [entry.partition("\n")[2].strip().casefold() for entry in listed.text.split("\0")]
    made_as: set[str] = set()
    commits: set[str] = set()
    for line in _log_of_head(where):
        entry = _MADE_HERE.match(line)
        if entry:
            commits.add(entry["sha"])
            made_as |= {entry["name"].strip().casefold(), entry["email"].strip().casefold()}
    return LocalPerson(
        frozenset(filter(None, values)), frozenset(made_as - {""}), frozenset(commits)
    )


def _log_of_head(where: GitPlace) -> list[str]:
    """Return the newest lines of the log of HEAD; none if there is none."""
    name = ask(where, "rev-parse", "--path-format=absolute", "--git-path", "logs/HEAD")
    try:
        with to_path(name or "").open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - _LOG_MAX))
            return file.read().decode("utf-8", "replace").splitlines()
    except OSError:
        return []


# -- remotes -------------------------------------------------------------------------------------


def _remote(where: GitPlace) -> str | None:
    """Return the URL of origin, else of the first remote by name; None if there is none."""
    listed = run_git(
        where, "config", "-z", "--get-regexp", r"^(remote\..*\.url|url\..*\.insteadof)$"
    )
    urls = fetch_urls(listed.text) if listed.ok else {}
    return urls.get("origin") or (urls[min(urls)] if urls else None)


def fetch_urls(listing: str) -> dict[str, str]:
    """Return the fetch URL of each remote by name, from the output of `git config -z --get-regexp`.

    The user's abbreviations (url.<base>.insteadOf) are expanded. `git remote -v` would do that too,
    but marks the remotes of partial clones in a way that differs between versions.
    """
    urls: dict[str, str] = {}
    bases: dict[str, str] = {}  # by the prefix that each replaces
    for entry in listing.split("\0"):
        key, _, value = entry.partition("\n")
        section, _, rest = key.partition(".")
        name = rest.rpartition(".")[0]
        if not value:
            continue
        if section == "remote":
            urls.setdefault(name, value)
        elif section == "url":
            bases.setdefault(value, name)
    return {name: _written_out(url, bases) for name, url in urls.items()}


def _written_out(url: str, bases: dict[str, str]) -> str:
    """Expand the longest abbreviation that the URL starts with."""
    prefix = max((prefix for prefix in bases if url.startswith(prefix)), key=len, default="")
    return bases[prefix] + url.removeprefix(prefix) if prefix else url


def _basename(path: str) -> str:
    return re.split(r"[/\\]", path.rstrip("/\\"))[-1] or path

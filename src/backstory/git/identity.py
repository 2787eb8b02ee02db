"""Which project a folder belongs to: its remote, else its root commit, else its path."""

from __future__ import annotations

import os
import re
from pathlib import Path

from backstory.model.paths import escape_surrogates, to_path, to_text
from backstory.model.sessions import Project

_SCP = re.compile(r"^(?:[^@/]+@)?([^/:]+):(?!//)(.+)$")
_URL = re.compile(r"^[a-z][a-z0-9+.-]*://(?:[^@/]*@)?([^/:]*)(?::\d+)?/(.*)$", re.I)
_DRIVE = re.compile(r"^[A-Za-z]:[\\/]")
_TIMEOUT = 10
_HOPS = 3  # a clone of a clone of a clone on this machine


def identify(cwd: str, hops: int = _HOPS) -> Project:
    """The project of a folder as it is now; a folder that is gone is known by its path alone."""
    folder = _repository(cwd)
    common = folder and git(folder, "rev-parse", "--path-format=absolute", "--git-common-dir")
    if folder is None or not common:
        return Project(identity=cwd, evidence="path", name=_basename(cwd), path=cwd)
    top = Path(common).parent if Path(common).name == ".git" else Path(common)
    if remote := _remote(folder):
        return _by_remote(remote, top, hops)
    if root := git(folder, "rev-list", "--max-parents=0", "HEAD"):
        commit = root.split()[-1]
        return Project(f"git:{commit}", "root", _basename(str(top)), root_commit=commit, path=str(top))
    return Project(identity=str(top), evidence="path", name=_basename(str(top)), path=str(top))


def _by_remote(remote: str, top: Path, hops: int) -> Project:
    identity = normalise(remote)
    if not _local(remote):
        return Project(identity, "remote", _basename(identity), remote=identity, path=str(top))
    where = Path(os.path.normpath(top / re.sub(r"^file://", "", remote.strip(), flags=re.I)))
    if hops > 0 and where.is_dir():  # a clone of a repository on this machine is that repository's project
        origin = identify(to_text(where), hops - 1)
        if origin.evidence != "path":
            return Project(origin.identity, origin.evidence, origin.name, origin.remote, origin.root_commit, str(top))
    identity = normalise(str(where))
    return Project(identity, "remote", _basename(identity), remote=identity, path=str(top))


def still(folder: str, project: Project) -> bool:
    """Whether a folder is this project for sure, told without walking its history; False leaves it open."""
    at = _repository(folder)
    if at is None or project.evidence == "path":
        return False
    remote = _remote(at)
    if remote is not None:
        return not _local(remote) and normalise(remote) == project.identity
    return project.root_commit is not None and project.remote is None and has_commit(to_text(at), project.root_commit)


def normalise(url: str) -> str:
    """One spelling for one remote: ssh, https and scp forms, `.git`, credentials, port and case aside."""
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


def has_commit(folder: str, commit: str) -> bool:
    """Whether a commit is (still) in the repository there."""
    return git(to_path(folder), "rev-parse", "--verify", "--quiet", f"{commit}^{{commit}}") is not None


def _repository(cwd: str) -> Path | None:
    """The folder itself if it exists, else the repository it was deleted from (an agent's old worktree)."""
    folder = to_path(cwd)
    if not folder.is_absolute():
        return None
    try:
        inside = [at for at in (folder, *folder.parents) if (at / ".git").exists()]
        if folder.is_dir():
            return folder if inside or _bare(folder) else None
    except (OSError, ValueError):  # a name no file system takes
        return None
    return inside[0] if inside and inside[0] != Path.home() else None


def _bare(folder: Path) -> bool:
    return (folder / "HEAD").is_file() and (folder / "objects").is_dir()


def _remote(folder: Path) -> str | None:
    """origin, else the first by name; abbreviations of the person's configuration written out."""
    lines = (git(folder, "remote", "-v") or "").splitlines()
    urls = dict(line.removesuffix(" (fetch)").split("\t", 1) for line in lines if line.endswith(" (fetch)"))
    return urls.get("origin") or (urls[min(urls)] if urls else None)


def git(folder: Path, *arguments: str) -> str | None:
    """What a git command prints; None if it fails or takes too long."""
    import subprocess  # here: most runs meet no new folder

    command = ["git", "--no-optional-locks", "-C", str(folder), *arguments]
    try:
        done = subprocess.run(command, capture_output=True, timeout=_TIMEOUT, stdin=subprocess.DEVNULL, check=False)
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None
    said = escape_surrogates(done.stdout.decode("utf-8", "surrogateescape"))
    return said.strip() or None if done.returncode == 0 else None


def _basename(path: str) -> str:
    return re.split(r"[/\\]", path.rstrip("/\\"))[-1] or path

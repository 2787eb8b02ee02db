"""Which project a folder belongs to: its remote, else its root commit, else its path."""

from __future__ import annotations

import re
from pathlib import Path

from backstory.model.sessions import Project

_SCP = re.compile(r"^(?:[^@/]+@)?([^/:]+):(?!//)(.+)$")
_URL = re.compile(r"^[a-z][a-z0-9+.-]*://(?:[^@/]*@)?([^/:]*)(?::\d+)?/(.*)$", re.I)
_TIMEOUT = 10


def identify(cwd: str) -> Project:
    """The project of a folder as it is now; a folder that is gone is known by its path alone."""
    folder = _repository(Path(cwd))
    top = folder and _git(folder, "rev-parse", "--path-format=absolute", "--git-common-dir")
    if folder is None or not top:
        return Project(identity=cwd, evidence="path", name=_basename(cwd), path=cwd)
    path = str(Path(top).parent if Path(top).name == ".git" else Path(top))
    if remote := _remote(folder):
        identity = normalise(remote)
        return Project(identity, "remote", _basename(identity), remote=identity, path=path)
    if root := _git(folder, "rev-list", "--max-parents=0", "HEAD"):
        commit = root.split()[-1]
        return Project(f"git:{commit}", "root", _basename(path), root_commit=commit, path=path)
    return Project(identity=path, evidence="path", name=_basename(path), path=path)


def normalise(url: str) -> str:
    """One spelling for one remote: ssh, https and scp forms, `.git`, credentials, port and case aside."""
    text = url.strip()
    found = _URL.match(text) if "://" in text else _SCP.match(text)
    if not found or re.match(r"^[A-Za-z]:[\\/]", text) or text.lower().startswith("file://"):
        local = re.sub(r"^file://", "", text, flags=re.I).rstrip("/")
        return local.removesuffix(".git").rstrip("/") or text
    host, path = found[1].lower(), found[2].strip("/").lower().removesuffix(".git").rstrip("/")
    return f"{host}/{path}"


def _repository(folder: Path) -> Path | None:
    """The folder itself if it exists, else the repository it was deleted from (an agent's old worktree)."""
    for candidate in (folder, *folder.parents):
        try:
            if not candidate.is_dir():
                continue
            if candidate == folder:
                inside = any((at / ".git").exists() for at in (folder, *folder.parents))
                return folder if inside or _bare(folder) else None
            kept_in_git = (candidate / ".git").exists() and candidate != Path.home()
            return candidate if kept_in_git else None
        except OSError:
            return None
    return None


def _bare(folder: Path) -> bool:
    return (folder / "HEAD").is_file() and (folder / "objects").is_dir()


def _remote(folder: Path) -> str | None:
    found = _git(folder, "config", "--get-regexp", r"^remote\..*\.url$")
    urls = dict(line.split(" ", 1) for line in (found or "").splitlines() if " " in line)
    return urls.get("remote.origin.url") or (urls[min(urls)] if urls else None)


def _git(folder: Path, *arguments: str) -> str | None:
    import subprocess  # here: most runs meet no new folder

    command = ["git", "--no-optional-locks", "-C", str(folder), *arguments]
    try:
        done = subprocess.run(command, capture_output=True, timeout=_TIMEOUT, stdin=subprocess.DEVNULL, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.decode("utf-8", "replace").strip() or None if done.returncode == 0 else None


def _basename(path: str) -> str:
    return re.split(r"[/\\]", path.rstrip("/\\"))[-1] or path

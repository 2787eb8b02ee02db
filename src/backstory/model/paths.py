"""Paths as text, of whatever system: sessions may come from another machine."""

from __future__ import annotations


def below(path: str, folder: str) -> bool:
    """Whether a path is a folder or in it, with or without a slash at the end."""
    path, folder = path.replace("\\", "/").rstrip("/"), folder.replace("\\", "/").rstrip("/")
    return path == folder or path.startswith(folder + "/")

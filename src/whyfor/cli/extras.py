"""Parts that are installed only if somebody wants them: what to say where one is missing."""

from __future__ import annotations

import sys
from pathlib import Path

from whyfor.model.errors import MissingExtra


def missing_extra(extra: str, error: ModuleNotFoundError) -> MissingExtra:
    """Return the error for a command whose packages are not installed; raise the original if one of
    our own modules is missing."""
    package = (error.name or "").partition(".")[0]
    if package == "whyfor":
        raise error
    return MissingExtra(
        f"this needs the package {package}, which is not installed",
        f"Install it: {install_command(extra)}",
    )


def install_command(extra: str) -> str:
    """Return the command that installs an extra beside this copy of Whyfor, the way it was
    installed."""
    wanted = f"'{_origin()}[{extra}]'"
    prefix = Path(sys.prefix).as_posix()
    if "/pipx/venvs/" in prefix:
        return f"pipx install --force {wanted}"
    if "/uv/tools/" in prefix:
        return f"uv tool install --force {wanted}"
    return f"{sys.executable} -m pip install {wanted}"


def _origin() -> str:
    """Return the name of the package, or the folder it was installed from."""
    import json  # here, as these two: few runs tell of an extra
    from importlib.metadata import PackageNotFoundError, distribution
    from urllib.parse import unquote, urlsplit

    try:
        told = distribution("whyfor").read_text("direct_url.json")
    except PackageNotFoundError:
        return "whyfor"
    url = json.loads(told)["url"] if told else ""
    return unquote(urlsplit(url).path) if url.startswith("file://") else "whyfor"

"""init --telemetry: tell agents to send their telemetry to the server on this machine."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path

from whyfor.agents.settings_file import Unmergeable
from whyfor.agents.telemetry_settings import (
    TelemetryPlace,
    add_telemetry,
    remove_telemetry,
    telemetry_files,
    telemetry_places,
)
from whyfor.capture.manifest import InstallStep, error_reason
from whyfor.capture.telemetry.files import telemetry_file
from whyfor.config import Settings
from whyfor.files import replace
from whyfor.model.paths import to_text
from whyfor.service.telemetry import (
    drop_telemetry_key,
    make_telemetry_folder,
    read_telemetry_key,
    telemetry_address,
    telemetry_key,
)

KIND = "telemetry"


def switch_telemetry_on(
    settings: Settings, agents: set[str], *, dry_run: bool
) -> list[InstallStep]:
    """Tell these agents to send their telemetry here; return what was done."""
    key = "" if dry_run else telemetry_key(settings)
    if not dry_run:
        make_telemetry_folder(settings)
    address = telemetry_address()
    steps = []
    for place in telemetry_places(settings.user_home, settings.env):
        if place.switch.agent in agents:
            change = _adding(place, address, key)
            steps.append(_change(place, change, "installed", dry_run))
    return steps


def telemetry_files_to_name(settings: Settings, agents: set[str]) -> list[str]:
    """Return what a person has to do for these agents, which are told by a variable."""
    return [
        f"{file.title} writes its telemetry to a file if your shell says where: "
        f"export {file.variable}={shlex.quote(str(telemetry_file(settings.home, file)))}"
        for file in telemetry_files(settings.user_home, settings.env)
        if file.agent in agents and not settings.env.get(file.variable)
    ]


def switch_telemetry_off(settings: Settings, *, dry_run: bool) -> list[InstallStep]:
    """Take our settings out again, and let nobody send any more; return what was done."""
    key = read_telemetry_key(settings)
    if not key:
        return []
    address = telemetry_address()
    steps = []
    for place in telemetry_places(settings.user_home, settings.env):
        step = _change(place, _removing(place, address, key), "removed", dry_run)
        if step.state != "unchanged":
            steps.append(step)
    if not dry_run and all(step.state != "failed" for step in steps):
        drop_telemetry_key(settings)
    return steps


def _adding(place: TelemetryPlace, address: str, key: str) -> Callable[[bytes], bytes]:
    return lambda content: add_telemetry(content, place.switch, address, key)


def _removing(place: TelemetryPlace, address: str, key: str) -> Callable[[bytes], bytes]:
    return lambda content: remove_telemetry(content, place.switch, address, key)


def _change(
    place: TelemetryPlace, change: Callable[[bytes], bytes], word: str, dry_run: bool
) -> InstallStep:
    step = InstallStep(KIND, place.switch.agent, "failed", to_text(place.path))
    try:
        before = _content(place.path)
        after = change(before)
        if after != before and not dry_run:
            _write(place.path, after)
    except Unmergeable as error:
        step.note = f"left alone: {error}"
    except OSError as error:
        step.note = error_reason(error)
    else:
        step.state = "unchanged" if after == before else word
    return step


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""


def _write(path: Path, content: bytes) -> None:
    """Write settings; a file that would be empty was made by us."""
    if content.strip() in (b"", b"{}"):
        path.unlink(missing_ok=True)
    else:
        replace(path, content)

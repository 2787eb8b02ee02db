"""Our hook entries in agents' settings files: adding, finding and removing them."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from whyfor.agents import AGENTS
from whyfor.agents.facts import Hookable, HookEvent
from whyfor.agents.settings_file import Unmergeable as Unmergeable
from whyfor.agents.settings_file import parse_agent_settings, written_settings
from whyfor.model import former_name

MARK = "# whyfor"  # the end of a command of ours, and of no other
ANSWERS = "/whyfor/answers/"  # in an address of ours, and in no other


def hookable() -> dict[str, Hookable]:
    """Return the agents that can run our hook, by name."""
    found = {name: agent.facts.hooks for name, agent in AGENTS.items()}
    return {name: hooks for name, hooks in found.items() if hooks}


def is_present(agent: Hookable, home: Path, env: Mapping[str, str]) -> bool:
    """Return whether the agent is on this machine."""
    if agent.folder(home, env).is_dir():
        return True
    return shutil.which(agent.program, path=env.get("PATH", "")) is not None


def wanted_events(agent: Hookable, *, snapshots: bool) -> list[HookEvent]:
    """Return the events for which an agent runs our hook."""
    return [on for on in agent.events if snapshots or not on.only_snapshot]


def merge(
    content: bytes,
    agent: Hookable,
    command: Callable[[HookEvent], str],
    asked: dict[str, Any] | None = None,
    *,
    snapshots: bool = False,
) -> bytes:
    """Return the settings with one entry of ours per event: in the place of an earlier one, else
    after all others. `asked`: a request over HTTP beside it, where the person is asked.
    `snapshots`: also for what is only around shell commands."""
    data = _parse(content, agent)
    hooks = data.setdefault("hooks", {})
    places = _clear(hooks)
    for on in wanted_events(agent, snapshots=snapshots):
        entries = hooks.setdefault(on.event, [])
        entry = _entry(agent, on, command(on))
        if asked and on.approve:
            # the command asks too where the server is on another port, and waits as long
            entry["hooks"][0]["timeout"] = asked["timeout"]
            entry["hooks"].append(asked)
        entries.insert(places.get(on.event, len(entries)), entry)
    for event in [event for event in places if not hooks[event]]:
        del hooks[event]
    return content if data == _parse(content, agent) else written_settings(data, content)


def remove(content: bytes, agent: Hookable) -> bytes:
    """Return the settings without our entries and without lists that only contained them."""
    data = _parse(content, agent)
    hooks = data.get("hooks", {})
    places = _clear(hooks)
    for event in [event for event in places if not hooks[event]]:
        del hooks[event]
    if places and not hooks:
        del data["hooks"]
    return written_settings(data, content) if places else content


def commands(content: bytes, agent: Hookable) -> dict[str, str]:
    """Return our commands in the settings, by event."""
    hooks = _parse(content, agent).get("hooks", {})
    return {
        event: _command(handler)
        for event, entries in hooks.items()
        for entry in (entries if isinstance(entries, list) else [])
        for handler in _handlers(entry)
        if _is_ours(handler) and _command(handler)
    }


def turned_off(content: bytes, agent: Hookable) -> str | None:
    """Return the setting by which the person has turned all hooks off; None if they have not."""
    if agent.off is None:
        return None
    name, value = agent.off
    found: Any = _parse(content, agent)
    for key in name.split("."):
        found = found.get(key) if isinstance(found, dict) else None
    return name if found is value else None


def same_but_for_ours(one: bytes, other: bytes, agent: Hookable) -> bool:
    """Return whether two versions of the settings differ only in our entries."""
    return _bare(one, agent) == _bare(other, agent)


def _bare(content: bytes, agent: Hookable) -> dict[str, Any]:
    data = _parse(remove(content, agent), agent)
    hooks = {event: entries for event, entries in data.pop("hooks", {}).items() if entries}
    return {**data, **({"hooks": hooks} if hooks else {})}


def _entry(agent: Hookable, on: HookEvent, command: str) -> dict[str, Any]:
    matcher = {"matcher": on.matcher} if on.matcher else {}
    if agent.grouped:
        return {**matcher, "hooks": [{"type": "command", "command": command, **agent.limit}]}
    return {"type": "command", "bash": command, **matcher, **agent.limit}


def _clear(hooks: dict[str, Any]) -> dict[str, int]:
    """Remove our entries; return where the first of them was, by event."""
    places = {}
    for event, entries in hooks.items():
        if isinstance(entries, list) and any(
            _is_ours(handler) for entry in entries for handler in _handlers(entry)
        ):
            hooks[event], places[event] = _cleared(entries)
    return places


def _cleared(entries: list[Any]) -> tuple[list[Any], int]:
    kept: list[Any] = []
    place = None
    for entry in entries:
        theirs = [handler for handler in _handlers(entry) if not _is_ours(handler)]
        if len(theirs) == len(_handlers(entry)):
            kept.append(entry)
            continue
        if theirs:  # somebody added a command to our group
            kept.append({**entry, "hooks": theirs})
        place = len(kept) if place is None else place
    return kept, place or 0


def _handlers(entry: Any) -> list[Any]:
    if isinstance(entry, dict) and isinstance(entry.get("hooks"), list):
        return list(entry["hooks"])
    return [entry]


def _is_ours(handler: Any) -> bool:
    url = handler.get("url") if isinstance(handler, dict) else None
    if isinstance(url, str) and url.startswith("http://127.0.0.1:") and ANSWERS in url:
        return True
    return _command(handler).rstrip().endswith((MARK, former_name.COMMAND_MARK))


def _command(handler: Any) -> str:
    found = (handler.get("command") or handler.get("bash")) if isinstance(handler, dict) else None
    return found if isinstance(found, str) else ""


def _parse(content: bytes, agent: Hookable) -> dict[str, Any]:
    data = parse_agent_settings(content, agent.empty)
    if not isinstance(data.get("hooks", {}), dict):
        raise Unmergeable("its hooks are not an object")
    if not all(isinstance(data.get("hooks", {}).get(on.event, []), list) for on in agent.events):
        raise Unmergeable("its hooks are not lists")
    return data

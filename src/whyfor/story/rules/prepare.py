"""Prepares the rules for hooks: all that one needs to answer, in a file it reads in no time."""

from __future__ import annotations

import marshal
from pathlib import Path
from typing import Any

import msgspec

import whyfor
from whyfor import files
from whyfor.agents import AGENTS
from whyfor.config import Settings
from whyfor.git.place import find_work_tree
from whyfor.hook.rule_form import FORM, PREPARED
from whyfor.model.errors import WhyforError
from whyfor.model.paths import to_path, to_text
from whyfor.model.rules import CommandRule, RulesFile
from whyfor.store.protocol import Store
from whyfor.story.rules.bash_parser import parser_libraries
from whyfor.story.rules.decide import EVERYWHERE, DecisionRule
from whyfor.story.rules.rules_file import read_rules, rules_path

_SHOWN_MEANWHILE = 4_000  # ms a hook may take while the dialog is shown


def decision_rules(rules: list[CommandRule]) -> list[DecisionRule]:
    return [DecisionRule(*_fields(rule)) for rule in rules]


def prepare_rules(settings: Settings, store: Store | None) -> None:
    """Write the file for hooks, or remove it if the rules are off or cannot be used. Without a
    store, the places of projects stay as they were."""
    folder = settings.home / "hook"
    path = folder / PREPARED
    if not folder.is_dir():
        return
    try:
        found = read_rules(settings)
    except WhyforError:
        found = RulesFile()
    if found.mode == "off":
        path.unlink(missing_ok=True)
        return
    places = _places(store, found.rules) if store else _former_places(path)
    content = marshal.dumps((FORM, _prepared(settings, found, places)))
    if not path.exists() or path.read_bytes() != content:
        files.replace(path, content)


def _prepared(settings: Settings, found: RulesFile, places: dict[str, str]) -> dict[str, Any]:
    path = rules_path(settings)
    stamp = path.lstat()
    formats = {name: agent.facts.approvals for name, agent in AGENTS.items()}
    asked = {name: form for name, form in formats.items() if form}
    return {
        "file": bytes(path),
        "stamp": (stamp.st_ino, stamp.st_size, stamp.st_mtime_ns),
        "dry": found.mode == "dry-run",
        "package": str(Path(whyfor.__file__).parents[1]),
        "libraries": parser_libraries(),
        "rules": [_fields(rule) for rule in found.rules],
        "places": places,
        "formats": {name: msgspec.structs.asdict(form) for name, form in asked.items()},
        "limit": {
            name: found.limit_ms if form.waits else _SHOWN_MEANWHILE for name, form in asked.items()
        },
    }


def _fields(rule: CommandRule) -> tuple[str, str, list[str], list[str], list[str], str, str]:
    until = rule.until.isoformat() if rule.until else ""
    return rule.id, rule.project, rule.agents, rule.run, rule.may, rule.decision, until


def _places(store: Store, rules: list[CommandRule]) -> dict[str, str]:
    """Return the work trees of the projects that rules name, with the projects' identities."""
    named = {rule.project for rule in rules} - {EVERYWHERE}
    if not named:
        return {}
    numbers = {number: p.identity for number, p in store.projects.known() if p.identity in named}
    found: dict[str, str] = {}
    for cwd, number in store.projects.places().items():
        top = find_work_tree(to_path(cwd)) if number in numbers else None
        if top is not None:
            found[to_text(top)] = numbers[number]
    return found


def _former_places(path: Path) -> dict[str, str]:
    try:
        form, kept = marshal.loads(path.read_bytes())
        return dict(kept["places"]) if form == FORM else {}
    except (OSError, ValueError, EOFError, TypeError, KeyError):
        return {}

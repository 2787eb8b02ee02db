"""rules.toml in Whyfor's directory: reading it, changing it, and whether it may be believed.

Changes keep everything else in the file as it stands, comments too.
"""

from __future__ import annotations

import json
import re
import stat
import tomllib
from datetime import date
from pathlib import Path

import msgspec

from whyfor import files
from whyfor.config import Settings
from whyfor.git.place import find_work_tree, is_own
from whyfor.git.run import ask
from whyfor.model.errors import BadInput
from whyfor.model.rules import CommandRule, RuleMode, RulesFile
from whyfor.story.rules.decide import rule_fault

_MODE = re.compile(r"^mode[ \t]*=.*$", re.M)
_DECLINED = re.compile(r"^declined[ \t]*=.*$", re.M)
_BLOCK = re.compile(r"^\[\[rule\]\][ \t]*$", re.M)


def rules_path(settings: Settings) -> Path:
    return settings.home / "rules.toml"


def read_rules(settings: Settings) -> RulesFile:
    """Return the rules; none and `off` if there is no file. Raises BadInput for a file that is not
    right or that somebody else could have written."""
    path = rules_path(settings)
    try:
        text = path.read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return RulesFile()
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"cannot read {path}: {error}", "Rules answer nothing until then.") from None
    fault = trust_fault(path)
    if fault:
        raise BadInput(f"{path} is not used: {fault}", f"Then: chmod 600 {path}")
    return _checked(path, text)


def trust_fault(path: Path) -> str:
    """Return why a file of rules may not be believed; empty if it may."""
    found = path.lstat()
    if not stat.S_ISREG(found.st_mode):
        return "it is a link or no plain file"
    if not is_own(path) or not is_own(path.parent):
        return "it belongs to somebody else"
    if (found.st_mode | path.parent.stat().st_mode) & 0o022:
        return "others can write it"
    if find_work_tree(path.parent) is not None and ask(path.parent, "ls-files", "--", path.name):
        return "git tracks it, so that others can change it"
    return ""


def _checked(path: Path, text: str) -> RulesFile:
    try:
        found = msgspec.convert(tomllib.loads(text), RulesFile)
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise BadInput(
            f"{path} is not right: {error}", "See docs/rules.md. Rules answer nothing until then."
        ) from None
    idents = [rule.id for rule in found.rules]
    doubled = next((ident for ident in idents if idents.count(ident) > 1), None)
    if doubled:
        raise BadInput(f"{path} has two rules called {doubled}", "Rename one of them.")
    for rule in found.rules:
        fault = rule_fault(rule.run, rule.decision)
        if fault:
            raise BadInput(f"{path}, rule {rule.id}: {fault}", f"whyfor rules remove {rule.id}")
    return found


# -- changes -------------------------------------------------------------------------------------


def write_mode(settings: Settings, mode: RuleMode) -> None:
    _replace_line(settings, _MODE, f"mode = {json.dumps(mode)}")


def write_declined(settings: Settings, declined: list[str]) -> None:
    _replace_line(settings, _DECLINED, f"declined = {json.dumps(declined)}")


def append_rule(settings: Settings, rule: CommandRule) -> None:
    """Append a rule. Raises BadInput if it would allow what no rule can."""
    fault = rule_fault(rule.run, rule.decision)
    if fault:
        raise BadInput(f"this rule cannot be: {fault}", "Name the command more exactly.")
    text = _text(settings)
    _write(settings, f"{text.rstrip()}\n\n{_rule_text(rule)}".lstrip())


def cut_rule(settings: Settings, ident: str) -> None:
    """Remove a rule, with its comments. Raises BadInput if there is none of this id."""
    text = _text(settings)
    starts = [found.start() for found in _BLOCK.finditer(text)]
    for start, end in zip(starts, [*starts[1:], len(text)], strict=True):
        block = tomllib.loads(text[start:end])["rule"][0]
        if block.get("id") == ident:
            _write(settings, text[:start] + text[end:])
            return
    raise BadInput(f"no rule is called {ident}", "List them: whyfor rules list")


def _replace_line(settings: Settings, pattern: re.Pattern[str], line: str) -> None:
    text = _text(settings)
    head, mark, rest = text.partition("[[rule]]")
    if pattern.search(head):
        head = pattern.sub(lambda _: line, head, count=1)
    else:
        head = f"{line}\n{head}"
    _write(settings, head + mark + rest)


def _text(settings: Settings) -> str:
    path = rules_path(settings)
    read_rules(settings)  # what is not right or not ours is not changed
    return path.read_text(encoding="utf-8") if path.exists() else 'mode = "off"\n'


def _write(settings: Settings, text: str) -> None:
    path = rules_path(settings)
    _checked(path, text)
    settings.home.mkdir(mode=0o700, parents=True, exist_ok=True)
    files.replace(path, text.encode())


def _rule_text(rule: CommandRule) -> str:
    lines = ["[[rule]]"]
    for name, value in msgspec.to_builtins(rule, builtin_types=(date,)).items():
        if name == "tool" or value in ("", [], None):
            continue
        shown = value.isoformat() if isinstance(value, date) else json.dumps(value)
        lines.append(f"{name} = {shown}")
    return "\n".join(lines) + "\n"

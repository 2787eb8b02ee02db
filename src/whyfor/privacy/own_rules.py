"""Load the redaction rules: the built-in ones and those in config.toml."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import msgspec

from whyfor.config import Settings
from whyfor.model.errors import BadInput
from whyfor.privacy import rules

if TYPE_CHECKING:
    from whyfor.privacy.engine import Engine

HINT = "See: docs/redact.md. Try them: whyfor doctor"
_ID = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")


class RedactSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The [redact] section of config.toml."""

    personal: bool = False
    allow: list[str] = []
    rule: list[dict[str, Any]] = []


def redact_settings(settings: Settings) -> RedactSettings:
    try:
        return msgspec.convert(settings.redact, RedactSettings)
    except msgspec.ValidationError as error:
        raise BadInput(f"[redact] in config.toml is not right: {error}", HINT) from None


def own_rule(given: dict[str, Any]) -> rules.Rule:
    rule = rules.as_rule(given)
    if not _ID.fullmatch(rule.id) or rule.id == "private":
        raise BadInput(
            f"rule {rule.id!r}: an id is made of small letters, digits and dashes, and is not "
            "private",
            HINT,
        )
    if not rule.replace.isprintable() or any(sign in rule.replace for sign in '"\\'):
        raise BadInput(
            f"rule {rule.id}: what replaces it must be plain words, without quotes and backslashes",
            HINT,
        )
    rules.compiled(rule)
    return rule


def rules_for(settings: Settings, *, personal: bool = False) -> rules.Rules:
    """Return all rules; raise if one is invalid, because a rule must never be skipped silently."""
    wished = redact_settings(settings)
    own = [own_rule(given) for given in wished.rule]
    return rules.load_rules(personal=personal or wished.personal, own=own, allow=wished.allow)


def engine_for(settings: Settings, *, personal: bool = False) -> Engine:
    from whyfor.privacy.engine import Engine  # here: to check the rules is cheap without it

    return Engine(rules_for(settings, personal=personal))

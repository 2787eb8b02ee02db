"""[semantic] in config.toml: the model that makes vectors of texts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec

from whyfor.config import Settings
from whyfor.model.errors import BadInput

BUILT_IN = "built-in"
BUILT_IN_ID = "all-MiniLM-L6-v2-int8-1"  # another number when what it makes of a text changes
_URLS = ("http://", "https://")


class SemanticSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which model makes vectors: the built-in one, one in a folder, or one behind a URL."""

    model: str = BUILT_IN  # or a folder, or where an OpenAI-compatible API begins
    name: str = ""  # of the model behind a URL, as its server calls it
    key_env: str = ""  # the environment variable that holds its key; empty: none is sent
    seconds: Annotated[float, msgspec.Meta(gt=0, le=600)] = 10.0  # that it may take to answer

    @property
    def is_url(self) -> bool:
        return self.model.startswith(_URLS)


def semantic_settings(settings: Settings) -> SemanticSettings:
    """Return which model is to be used; raises BadInput for settings that cannot be used."""
    try:
        wished = msgspec.convert(settings.semantic, SemanticSettings)
    except msgspec.ValidationError as error:
        raise _wrong(str(error)) from None
    if wished.is_url and not wished.name:
        raise _wrong("a URL needs `name`, the model as its server calls it")
    if not wished.is_url and wished.name:
        raise _wrong("`name` is for a model behind a URL")
    return wished


def models_folder(settings: Settings) -> Path:
    """Return where models are that were made here."""
    return settings.home / "semantic"


def built_in_folder(settings: Settings) -> Path:
    """Return where the built-in model is once it is made."""
    return models_folder(settings) / BUILT_IN_ID


def _wrong(what: str) -> BadInput:
    return BadInput(f"[semantic] in config.toml is not right: {what}", "See docs/settings.md.")

"""[memory.model] in config.toml: the model that is asked about sessions that ended. Off by
default."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from whyfor.config import Settings
from whyfor.model.errors import BadInput

Positive = Annotated[float, msgspec.Meta(gt=0)]


class ModelSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which model, how it is reached, and how much it may be asked."""

    api: Literal["openai", "anthropic", "command"]
    name: str  # of the model, as its server calls it; notes are marked with it
    url: str = ""  # where the API begins: https://api.example.com/v1
    key_env: str = ""  # the environment variable that holds the key; empty: none is sent
    command: list[str] = []  # a program that reads the question and prints the answer
    seconds: Annotated[float, msgspec.Meta(gt=0, le=600)] = 60.0
    daily_tokens: Annotated[int, msgspec.Meta(ge=0)] = 100_000
    daily_cost: Positive | None = None  # in the currency of the prices
    input_price: Positive | None = None  # for a million tokens
    output_price: Positive | None = None

    @property
    def has_prices(self) -> bool:
        return self.input_price is not None and self.output_price is not None

    def cost(self, sent: int, received: int) -> float | None:
        """Return what a call costs; None if the prices are not known."""
        if self.input_price is None or self.output_price is None:
            return None
        return (sent * self.input_price + received * self.output_price) / 1_000_000


def model_settings(settings: Settings) -> ModelSettings | None:
    """Return which model is to be asked, None for none; raises BadInput for settings that cannot
    be used."""
    given = settings.memory.model
    if not given:
        return None
    try:
        wished = msgspec.convert(given, ModelSettings)
    except msgspec.ValidationError as error:
        raise _wrong(str(error)) from None
    if wished.api == "command" and not wished.command:
        raise _wrong('`api = "command"` needs `command`, e.g. ["claude", "-p"]')
    if wished.api != "command" and not wished.url.startswith(("http://", "https://")):
        raise _wrong(f'`api = "{wished.api}"` needs `url`, an http or https address')
    if wished.daily_cost is not None and not wished.has_prices:
        raise _wrong("`daily_cost` needs `input_price` and `output_price`")
    return wished


def _wrong(what: str) -> BadInput:
    return BadInput(f"[memory.model] in config.toml is not right: {what}", "See docs/memory.md.")

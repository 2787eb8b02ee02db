"""Ask for turns by meaning, if there are vectors to compare with."""

from __future__ import annotations

from pathlib import Path

import msgspec

from whyfor.config import Settings
from whyfor.model.errors import WhyforError
from whyfor.model.query import Filters
from whyfor.model.vectors import TurnLikeness
from whyfor.recall.embeddings.models import is_installed, model_id
from whyfor.recall.embeddings.settings import semantic_settings
from whyfor.store.protocol import SharedStore


class LikeTurns(msgspec.Struct, frozen=True):
    """What was found by meaning."""

    turns: list[TurnLikeness]  # of each session the nearest, nearest first
    trouble: str = ""  # why the model that there is could not be asked


def find_like(settings: Settings, store: SharedStore, text: str, filters: Filters) -> LikeTurns:
    """Return the turns most like a text; nothing if there are no vectors. Never raises what a
    model or its settings are to blame for."""
    try:
        wished = semantic_settings(settings)
        if not is_installed(wished) or not store.vectors.exist(model_id(settings, wished)):
            return LikeTurns([])
        from whyfor.recall.embeddings.encoder import open_encoder  # here: few have vectors
        from whyfor.recall.embeddings.nearest import like_turns

        encoder = open_encoder(settings)
        vector = encoder.encode([text])[0]
        stamp = _last_write(settings)
        return LikeTurns(like_turns(store, encoder.model, vector, filters, stamp))
    except WhyforError as error:
        return LikeTurns([], error.message)


def _last_write(settings: Settings) -> object:
    """Return what is another after anything was written to the database; None if nobody knows."""
    stamp: list[object] = [settings.database]
    for name in (settings.database, Path(f"{settings.database}-wal")):
        try:
            found = name.stat()
        except FileNotFoundError:
            continue
        except OSError:
            return None
        stamp += [found.st_ino, found.st_mtime_ns, found.st_size]
    return tuple(stamp)

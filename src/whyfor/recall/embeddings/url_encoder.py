"""Vectors from a model behind an OpenAI-compatible URL. Texts leave without their secrets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from whyfor.config import Settings
from whyfor.privacy.redacted_text import redacted
from whyfor.recall.embeddings.models import model_id
from whyfor.recall.embeddings.numbers import numpy
from whyfor.recall.embeddings.settings import SemanticSettings
from whyfor.recall.model_client import ModelFailed, ModelUnreachable, post_json

_AT_ONCE = 16  # texts in one question


class _Embedding(msgspec.Struct):
    embedding: list[float]
    index: int = 0


class _Answer(msgspec.Struct):
    data: list[_Embedding]


class UrlEncoder:
    """Asks a server. Nothing is asked twice."""

    def __init__(self, settings: Settings, wished: SemanticSettings) -> None:
        self._settings = settings
        self._wished = wished
        self._model = model_id(settings, wished)

    @property
    def model(self) -> str:
        return self._model

    def encode(self, texts: Sequence[str]) -> Any:
        np = numpy()
        clean, _ = redacted(self._settings, list(texts), rendered=False)
        vectors: list[list[float]] = []
        for start in range(0, len(clean), _AT_ONCE):
            vectors += self._ask(clean[start : start + _AT_ONCE])
        found = np.array(vectors, dtype="f4")
        lengths = np.linalg.norm(found, axis=1, keepdims=True)
        if not np.isfinite(lengths).all() or not lengths.all():
            raise self._strange()
        return found / lengths

    def _ask(self, texts: list[str]) -> list[list[float]]:
        wished = self._wished
        key = self._settings.env.get(wished.key_env, "") if wished.key_env else ""
        if wished.key_env and not key:
            raise ModelUnreachable(f"${wished.key_env} is empty", "It should hold the model's key.")
        headers = {"authorization": f"Bearer {key}"} if key else {}
        url = wished.model.rstrip("/") + "/embeddings"
        body = {"model": wished.name, "input": texts}
        try:
            answer = msgspec.json.decode(
                post_json(url, headers, body, wished.seconds), type=_Answer
            )
        except msgspec.DecodeError:
            raise self._strange() from None
        found = [each.embedding for each in sorted(answer.data, key=lambda each: each.index)]
        widths = {len(vector) for vector in found}
        if len(found) != len(texts) or len(widths) != 1 or 0 in widths:
            raise self._strange()
        return found

    def _strange(self) -> ModelFailed:
        return ModelFailed(f"{self._wished.model} did not answer as the OpenAI API does")

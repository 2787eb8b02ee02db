"""Turn texts into vectors, with the model of the settings."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import msgspec

from whyfor.config import Settings
from whyfor.model.errors import BadInput, MissingExtra, NotFound, WhyforError
from whyfor.recall.embeddings.models import FOLDER_HINT, is_installed, model_file, model_id
from whyfor.recall.embeddings.numbers import numpy, onnxruntime
from whyfor.recall.embeddings.settings import SemanticSettings, semantic_settings
from whyfor.recall.embeddings.wordpiece import WordPiece

PIECES = 256  # of a text that a model is given; the rest is cut off


class TextEncoder(Protocol):
    """A model that is ready."""

    @property
    def model(self) -> str:
        """Its id, which is stored with its vectors."""

    def encode(self, texts: Sequence[str]) -> Any:
        """Return a matrix with a vector of length 1 for each text; raises WhyforError."""


class _Opened:
    """The encoder that was used last: to open one costs far more than to use it."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.key: object = None
        self.encoder: TextEncoder | None = None


_OPENED = _Opened()


def open_encoder(settings: Settings) -> TextEncoder:
    """Return the model of the settings; the same object for the same settings. Raises MissingExtra,
    NotFound if the built-in model was not made yet, BadInput if a model cannot be used."""
    wished = semantic_settings(settings)
    if not is_installed(wished):
        raise MissingExtra("the packages for search by meaning are not installed")
    key = (wished, _stamp(settings, wished))
    with _OPENED.lock:
        if _OPENED.encoder is None or _OPENED.key != key:
            _OPENED.encoder = _open(settings, wished)
            _OPENED.key = key
        return _OPENED.encoder


def _stamp(settings: Settings, wished: SemanticSettings) -> object:
    if wished.is_url:
        return settings.home, settings.env.get(wished.key_env)
    try:
        path = model_file(settings, wished)
        found = path.stat()
    except (OSError, WhyforError):
        return None
    return path, found.st_mtime_ns, found.st_size


def _open(settings: Settings, wished: SemanticSettings) -> TextEncoder:
    if wished.is_url:
        from whyfor.recall.embeddings.url_encoder import UrlEncoder

        return UrlEncoder(settings, wished)
    path = model_file(settings, wished)
    return OnnxEncoder(path, model_id(settings, wished), _pieces_of(path.parent))


def _pieces_of(folder: Path) -> WordPiece:
    """Return the tokenizer beside a model, or above it; raises BadInput or NotFound."""
    for place in (folder, folder.parent):
        listed, described = place / "vocab.txt", place / "tokenizer.json"
        try:
            if listed.is_file():
                return WordPiece(listed.read_text(encoding="utf-8").split("\n"))
            if described.is_file():
                return WordPiece(_described(described))
        except (OSError, UnicodeDecodeError, msgspec.DecodeError) as error:
            raise BadInput(f"cannot read the tokenizer in {place}: {error}", FOLDER_HINT) from None
    raise NotFound(f"there is no vocab.txt in {folder}", FOLDER_HINT)


def _described(path: Path) -> list[str]:
    """Return the vocabulary of a tokenizer.json, in the order of its numbers."""
    told = msgspec.json.decode(path.read_bytes())
    model = told.get("model") if isinstance(told, dict) else None
    if not isinstance(model, dict) or model.get("type") != "WordPiece":
        raise BadInput(f"{path} describes no WordPiece tokenizer", FOLDER_HINT)
    numbers: dict[str, int] = model["vocab"]
    return sorted(numbers, key=lambda piece: numbers[piece])


class OnnxEncoder:
    """A BERT-like model in an ONNX file, run on one core. Texts go in one by one: on a processor
    that is as fast as many at once, and nothing is padded."""

    def __init__(self, path: Path, model: str, pieces: WordPiece) -> None:
        """Raises BadInput if the file is no such model."""
        runtime = onnxruntime()
        options = runtime.SessionOptions()
        options.intra_op_num_threads = 1
        options.inter_op_num_threads = 1
        options.enable_cpu_mem_arena = False  # it would keep what the longest text needed
        options.log_severity_level = 4  # what matters is raised
        self._model = model
        self._path = path
        self._pieces = pieces
        try:
            self._session = runtime.InferenceSession(
                str(path), options, providers=["CPUExecutionProvider"]
            )
        except Exception as error:  # noqa: BLE001 - its errors have no class in common
            raise self._unusable(error) from None
        self._inputs = [self._purpose(each.name) for each in self._session.get_inputs()]
        self._names = [each.name for each in self._session.get_inputs()]

    @property
    def model(self) -> str:
        return self._model

    def encode(self, texts: Sequence[str]) -> Any:
        np = numpy()
        vectors = [self._encode(np, text) for text in texts]
        return np.stack(vectors) if vectors else np.zeros((0, 0), dtype="f4")

    def _encode(self, np: Any, text: str) -> Any:
        ids = np.array([self._pieces.numbers(text, PIECES)], dtype="i8")
        given = {"ids": ids, "mask": np.ones_like(ids), "kinds": np.zeros_like(ids)}
        feed = {
            name: given[purpose] for name, purpose in zip(self._names, self._inputs, strict=True)
        }
        try:
            outputs = self._session.run(None, feed)
        except Exception as error:  # noqa: BLE001 - its errors have no class in common
            raise self._unusable(error) from None
        flat = [each for each in outputs if each.ndim == 2]
        if not flat and outputs[0].ndim != 3:
            raise self._unusable("it gives neither vectors nor states")
        vector = flat[0][0] if flat else outputs[0][0].mean(axis=0)
        length = float(np.linalg.norm(vector))
        if not 0 < length < float("inf"):
            raise self._unusable("it gives no numbers")
        return vector.astype("f4") / length

    def _purpose(self, name: str) -> str:
        lowered = name.lower()
        for part, purpose in (("mask", "mask"), ("type", "kinds"), ("ids", "ids")):
            if part in lowered:
                return purpose
        raise self._unusable(f"nobody knows its input {name!r}")

    def _unusable(self, why: object) -> BadInput:
        first = str(why).strip().partition("\n")[0][:200]
        return BadInput(f"the model in {self._path} cannot be used: {first}", FOLDER_HINT)

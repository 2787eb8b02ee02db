"""Which models there are: where their files are, and how their vectors are told apart."""

from __future__ import annotations

from pathlib import Path

from whyfor.config import Settings
from whyfor.model.errors import NotFound
from whyfor.recall.embeddings.numbers import has_packages
from whyfor.recall.embeddings.settings import (
    BUILT_IN,
    SemanticSettings,
    built_in_folder,
)

FOLDER_HINT = "It needs model.onnx and vocab.txt: see docs/settings.md."


def is_installed(wished: SemanticSettings) -> bool:
    """Return whether the packages are there that this model needs."""
    return has_packages(*(["numpy"] if wished.is_url else ["numpy", "onnxruntime"]))


def model_file(settings: Settings, wished: SemanticSettings) -> Path:
    """Return the file of a model that is no URL; raises NotFound if there is none."""
    if wished.model == BUILT_IN:
        path = built_in_folder(settings) / "model.onnx"
        if not path.is_file():
            raise NotFound("the built-in model is not made yet", "Make it: whyfor memory index")
        return path
    folder = _given_folder(settings, wished)
    for name in ("model.onnx", "onnx/model.onnx"):
        if (folder / name).is_file():
            return folder / name
    raise NotFound(f"there is no model in {folder}", FOLDER_HINT)


def _given_folder(settings: Settings, wished: SemanticSettings) -> Path:
    if wished.model.startswith("~/"):
        return settings.user_home / wished.model[2:]
    return Path(wished.model)


def model_id(settings: Settings, wished: SemanticSettings) -> str:
    """Return what is stored with vectors of a model; of a folder's it is made from its bytes.
    Raises NotFound."""
    import hashlib  # here: OpenSSL takes longer to load than most runs take

    if wished.is_url:
        where = hashlib.sha256(wished.model.encode()).hexdigest()[:8]
        return f"{wished.name} {where}"
    if wished.model == BUILT_IN:
        return built_in_folder(settings).name
    with model_file(settings, wished).open("rb") as file:
        return f"onnx {hashlib.file_digest(file, 'sha256').hexdigest()[:16]}"

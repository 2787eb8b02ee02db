"""numpy and onnxruntime, imported where they are needed.

numpy starts no threads: what is multiplied here is small, and several threads would only wait for
each other. onnxruntime reports nothing to its makers.
"""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from typing import Any

_THREADS = "OPENBLAS_NUM_THREADS"
# Without it onnxruntime makes an id of the machine, keeps a list of what it did in the home, and
# sends that to its makers.
_SILENT = "ORT_DISABLE_TELEMETRY"


def has_packages(*names: str) -> bool:
    """Return whether packages are installed, without importing them."""
    return all(name in sys.modules or find_spec(name) is not None for name in names)


def numpy() -> Any:
    """Return the module; raises ModuleNotFoundError."""
    if "numpy" in sys.modules:
        return sys.modules["numpy"]
    before = os.environ.get(_THREADS)
    os.environ[_THREADS] = "1"
    try:
        import numpy as np
    finally:
        if before is None:
            del os.environ[_THREADS]
        else:
            os.environ[_THREADS] = before
    return np


def onnxruntime() -> Any:
    """Return the module, which reports nothing to anybody; raises ModuleNotFoundError."""
    numpy()  # before onnxruntime imports it
    os.environ[_SILENT] = "1"
    import onnxruntime as module

    return module

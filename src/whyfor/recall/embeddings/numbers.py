"""numpy, imported where it is needed and so that it starts no threads: what is multiplied here is
small, and several threads would only wait for each other."""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from typing import Any

_THREADS = "OPENBLAS_NUM_THREADS"


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

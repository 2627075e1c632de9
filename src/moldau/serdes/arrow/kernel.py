"""numba where it is installed. `compiled` compiles a function once and keeps it on disk; `memory` is what it works on.

Without numba the same functions run as they stand, on memoryviews, which Python indexes faster than arrays: slow, and
right. So they are written for both: plain integers, and nothing that relies on a width.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

try:
    import numba
except ImportError:
    numba = None


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    if numba is None:
        return function
    try:
        return numba.njit(cache=True, nogil=True)(function)
    except RuntimeError:  # there is no place on disk that it may write to
        return numba.njit(nogil=True)(function)


def memory(array: Any) -> Any:
    return array if numba is not None else memoryview(array)


def copy_in_python(source: Any, p: int, n: int, to: Any, at: int) -> int:
    chunk = bytes(source[p : p + n])
    to[at : at + n] = chunk
    return 0 if chunk.isascii() else 128


@compiled
def copy_bytes(source: Any, p: int, n: int, to: Any, at: int) -> Any:
    """Copies n bytes; 128 or more if one of them is no ASCII."""
    seen = np.uint8(0)
    for i in range(n):
        byte = source[p + i]
        to[at + i] = byte
        seen |= byte
    return seen


copy: Callable[..., Any] = copy_bytes if numba is not None else copy_in_python

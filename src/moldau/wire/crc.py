"""CRC-32C of any buffer.

google-crc32c takes `bytes` alone, so a view must be copied first. That is nothing for a small batch and 40 us for a
megabyte, so a large writable view goes straight to the C function behind the library, if it can be found.
"""

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import cast

import google_crc32c

LARGE = 1 << 16

_value = cast(Callable[[bytes], int], google_crc32c.value)  # pyright: ignore[reportUnknownMemberType]


def crc32c(view: memoryview) -> int:
    """Compute the CRC-32C (Castagnoli) of a view of bytes."""
    if len(view) >= LARGE and not view.readonly:
        return _in_place()(view)
    return _value(view.tobytes())


@cache
def _in_place() -> Callable[[memoryview], int]:
    """Return the C function over a writable view, or a copying one if the library is built in another way."""
    import ctypes  # only here: it takes 10 ms, which a broker has not to spend when it starts

    try:
        library = import_module("google_crc32c._crc32c").__file__
        function = ctypes.PyDLL(library).crc32c_value
    except (AttributeError, ImportError, OSError):
        return lambda view: _value(view.tobytes())
    function.restype = ctypes.c_uint32
    function.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
    first, address = ctypes.c_char.from_buffer, ctypes.addressof
    return lambda view: function(address(first(view)), len(view))

"""SQL in ksqlDB's language: text to tree, analysis, steps, and a topology of `streams/`.

`scalar`, `aggregate` and `table_function` declare functions in Python; `connect` is a client of a server.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from moldau.sql.client import connect
    from moldau.sql.functions.python_functions import aggregate, scalar, table_function

__all__ = ["aggregate", "connect", "scalar", "table_function"]


def __getattr__(name: str) -> Any:
    """Import the client and the functions only for those who use them."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name == "connect":
        from moldau.sql.client import connect

        return connect
    from moldau.sql.functions import python_functions

    return getattr(python_functions, name)

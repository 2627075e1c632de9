"""Error codes of the protocol, and the one exception for bytes that are not what they should be."""

from __future__ import annotations


class WireError(Exception):
    """Bytes from a peer that do not decode, or a message that its version cannot carry."""

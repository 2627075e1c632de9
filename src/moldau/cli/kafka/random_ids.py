"""Random ids of clusters and directories."""

from __future__ import annotations

import uuid

from moldau.cli.kafka.java_text import base64_id

RESERVED = (bytes(16), bytes(15) + b"\x01")


def random_id() -> str:
    """Make a random id in base64 that is not reserved and does not start like a flag."""
    while True:
        raw = uuid.uuid4().bytes
        text = base64_id(raw)
        if raw not in RESERVED and not text.startswith("-"):
            return text

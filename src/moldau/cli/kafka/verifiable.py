"""What the verifiable clients share: an event is a line of JSON, and signals end them in good order."""

from __future__ import annotations

import signal
import threading
import time
from typing import Any

from moldau.cli.kafka.record_json import compact


def event(name: str, **more: Any) -> None:
    """Print an event, as Kafka's clients for system tests do."""
    print(compact({"timestamp": int(time.time() * 1000), "name": name, **more}), flush=True)


def stopping() -> threading.Event:
    """Set when somebody wants the process to end."""
    told = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: told.set())
    return told


def text(data: bytes | None) -> str | None:
    return None if data is None else data.decode(errors="replace")

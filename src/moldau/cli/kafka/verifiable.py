"""What the verifiable clients share: events as lines of JSON, and a clean end by signals."""

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
    """Return an event that SIGINT and SIGTERM set."""
    stopped = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopped.set())
    return stopped


def text(data: bytes | None) -> str | None:
    return None if data is None else data.decode(errors="replace")

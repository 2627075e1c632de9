"""The states of flows: what the worker that runs one last said of it, in a compacted topic that everybody may read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from moldau.client import Client, Record, build
from moldau.flows.definition import Definition
from moldau.topicstore import append

TOPIC = "__moldau_flow_states"
READ_S = 30.0
LONGEST_TRACE = 20_000


@dataclass(frozen=True, slots=True)
class FlowState:
    """What a worker said of a flow at `at_ms`. It is about one revision of the definition."""

    name: str
    serial: int
    revision: int
    state: str
    worker: str
    lane: str
    at_ms: int
    restarts: int = 0
    error: str | None = None
    trace: str | None = None

    def is_of(self, flow: Definition) -> bool:
        """Whether it is about the flow as it is defined now."""
        return (self.serial, self.revision) == (flow.serial, flow.revision)


def encode(row: FlowState) -> tuple[bytes, bytes]:
    document = asdict(row)
    del document["name"]
    if row.trace is not None:
        document["trace"] = row.trace[-LONGEST_TRACE:]
    return row.name.encode(), json.dumps(document, separators=(",", ":")).encode()


def decode(record: Record) -> FlowState:
    document: Mapping[str, Any] = json.loads(bytes(record.value or b"{}"))
    error, trace = (None if document[name] is None else str(document[name]) for name in ("error", "trace"))
    return FlowState(
        bytes(record.key or b"").decode(),
        int(document["serial"]),
        int(document["revision"]),
        str(document["state"]),
        str(document["worker"]),
        str(document["lane"]),
        int(document["at_ms"]),
        int(document["restarts"]),
        error,
        trace,
    )


def write(client: Client, row: FlowState | None, name: str, timeout_s: float = READ_S) -> None:
    """Append a state; None takes the one of a removed flow out."""
    key, value = (name.encode(), None) if row is None else encode(row)
    append(client, TOPIC, 0, build([Record(0, 0 if row is None else row.at_ms, key, value)]), timeout_s)

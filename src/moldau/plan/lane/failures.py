"""Flows that fail, alone: what is known of a failure, and the way from the step that failed to all who must know.

A failure is a record of a topic, written in the transaction of the batch in which a flow failed, so it is there if and
only if the batch is. The failure of a whole batch, which is then done again without the flow, is written before that.
The sink also leaves failures as files on the driver's machine before the batch is over: the process that plans the next
batch must know of them, and a commit may be visible to readers only later.

A flow is known by its serial number here, which is its own only within a family of lanes: those of deployed
applications, or those of the queries of one SQL service. So the keys of records begin with the family.
"""

from __future__ import annotations

import json
import re
import traceback
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from moldau.plan.lane.wanted import put

TOPIC = "__moldau_flow_failures"
FOLDER = "failed"
FIRST = "streams"  # the family of records whose keys name none
OF_A_BATCH = "batch"  # in place of a shard: the whole batch failed, and is done again without the flow
MARK = re.compile(r"\[flow (\d+)/(\d+)\]")  # in the text of an error that a step could not keep to itself
LONGEST = 20_000  # characters of a trace
ADDRESS = re.compile(r"0x[0-9a-f]{6,}")  # of objects: a batch that is replayed must write the same


@dataclass(frozen=True, slots=True)
class Failure:
    """Why an attempt of a flow stopped. In a sub-topology without state it goes on at an offset; a shard with state
    holds what it did not process.
    """

    serial: int
    attempt: int
    where: str  # the shard, or the partition
    error: str
    trace: str
    topic: str | None = None
    partition: int | None = None
    offset: int | None = None
    at: dict[str, Any] | None = None  # where the whole flow goes on, if a batch was done again without it

    @property
    def key(self) -> str:
        return f"{self.serial}/{self.attempt}/{self.where}"

    def to_bytes(self) -> bytes:
        return json.dumps(asdict(self)).encode()

    @classmethod
    def of_bytes(cls, data: bytes) -> Failure:
        document: dict[str, Any] = json.loads(data)
        return cls(**document)


def failed_at(failure: Failure, at: dict[str, Any]) -> dict[str, Any]:
    """Return the position of a flow: back where it began the batch that was done without it, or at the record that it
    failed on in a sub-topology without state.
    """
    if failure.at is not None:
        return failure.at
    if failure.topic is None or failure.offset is None:
        return at
    place = dict(at.get(failure.topic, {}))
    now = place.get(str(failure.partition), failure.offset)
    return {**at, failure.topic: {**place, str(failure.partition): min(now, failure.offset)}}


def failure_of(error: BaseException, serial: int, attempt: int, where: str, **place: Any) -> Failure:
    sentence = ADDRESS.sub("0x...", "".join(traceback.format_exception_only(error)).strip())
    trace = ADDRESS.sub("0x...", "".join(traceback.format_exception(error))[-LONGEST:])
    return Failure(serial, attempt, where, sentence[:LONGEST], trace, **place)


@contextmanager
def blaming(serial: int, attempt: int) -> Generator[None]:
    """Let an error that ends the batch say whose it is."""
    try:
        yield
    except Exception as error:
        raise RuntimeError(f"[flow {serial}/{attempt}] {error}") from error


class Failures:
    """All failures that are known on the driver's machine, by flow and attempt."""

    def __init__(self, found: Iterable[Failure] = ()) -> None:
        self.found: dict[tuple[int, int], dict[str, Failure]] = {}
        for one in found:
            self.add(one)

    def add(self, one: Failure) -> None:
        self.found.setdefault((one.serial, one.attempt), {})[one.where] = one

    def has(self, serial: int, attempt: int) -> bool:
        return (serial, attempt) in self.found

    def first(self, serial: int, attempt: int) -> Failure | None:
        return next(iter(self.found.get((serial, attempt), {}).values()), None)

    def of_a_batch(self, serial: int, attempt: int) -> Failure | None:
        return self.found.get((serial, attempt), {}).get(OF_A_BATCH)

    def of(self, serial: int) -> list[Failure]:
        return [one for (flow, _), some in self.found.items() if flow == serial for one in some.values()]

    def resumed(self, serial: int, attempt: int, at: dict[str, Any]) -> dict[str, Any]:
        """Return where an attempt that has failed goes on."""
        for one in self.found.get((serial, attempt), {}).values():
            at = failed_at(one, at)
        return at


class FailureFiles(Failures):
    """The failures in a folder, looked for again and again."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder / FOLDER
        self._seen: set[str] = set()

    def look(self) -> None:
        if not self._folder.exists():
            return
        for path in sorted(self._folder.iterdir()):
            if path.name not in self._seen and path.suffix == ".json":
                self._seen.add(path.name)
                self.add(Failure.of_bytes(path.read_bytes()))

    def forget(self, serial: int) -> None:
        """Forget a flow that is gone."""
        for one in self.of(serial):
            name = file_name(one)
            self._seen.discard(name)
            (self._folder / name).unlink(missing_ok=True)
        self.found = {key: some for key, some in self.found.items() if key[0] != serial}


def key_of(family: str, one: Failure) -> bytes:
    """Return the key of a failure's record."""
    return f"{family}/{one.key}".encode()


def of_family(family: str, records: Iterable[tuple[bytes | None, bytes | None]]) -> list[Failure]:
    """Return the failures of a family among the records of the topic."""
    return [Failure.of_bytes(value) for key, value in records if key and value and family_of(key) == family]


def family_of(key: bytes) -> str:
    first = key.decode().partition("/")[0]
    return FIRST if first.isdecimal() else first


def file_name(one: Failure) -> str:
    return f"{one.key.replace('/', '-')}.json"


def leave(folder: Path, failures: Iterable[Failure]) -> None:
    """Leave failures on this machine."""
    for one in failures:
        (folder / FOLDER).mkdir(parents=True, exist_ok=True)
        put(folder / FOLDER / file_name(one), one.to_bytes())

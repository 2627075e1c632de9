"""Processors with window, session and versioned stores."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from moldau.operators.stores.lru import lru
from moldau.operators.stores.session import session
from moldau.operators.stores.spec import StoreSpec
from moldau.operators.stores.versioned import versioned as versions
from moldau.operators.stores.window import window
from moldau.operators.windowed import Windowed
from moldau.streams import Record, StreamsBuilder
from tests.streams.judge.functions import text
from tests.streams.judge.topologies.processors import COUNTS, Counter, Texts, bringing, process_with, rows
from tests.streams.judge.topologies.sources import NUMBER, TEXT, Build, stream
from tests.streams.judge.topologies.versions import HISTORY_MS

MINUTES_3, SIZE_MS = 180_000, 10_000


class Windower(Texts):
    """Writes to a window store at the record's time, and lists what is there by key, by time and backwards."""

    def process(self, record: Record) -> None:
        if record.key is None:
            return
        store, key, time = self.context.store("windows"), record.key, record.timestamp
        store.put(key, record.value, time)
        start = max(0, time - 10_000)
        there, back = store.fetch_range(key, start, time), store.fetch_range(key, start, time, reverse=True)
        self.send(record, times(there) + times(back))
        among = keys(store.fetch_keys("a", "b", start, time)) + keys(store.fetch_all(start, time))
        among += keys(store.fetch_all(start, time, reverse=True))
        self.send(record, text(store.fetch(key, time)) + among)
        self.send(record, keys(store.all()) + keys(store.all(reverse=True)))


def times(found: Iterable[tuple[int, str]]) -> str:
    return "[" + "".join(f"{time}{value} " for time, value in found) + "]"


def keys(found: Iterable[tuple[Windowed, str]]) -> str:
    return "[" + "".join(f"{key.key}{key.start}-{key.end}{value} " for key, value in found) + "]"


class Sessioner(Texts):
    """Puts a session that ends at the record's time, and finds those around it."""

    def process(self, record: Record) -> None:
        if record.key is None:
            return
        store, key, time = self.context.store("sessions"), record.key, record.timestamp
        session = Windowed(key, max(0, time - 1000 * len(text(record.value))), time)
        store.put(session, record.value)
        self.send(record, keys(store.fetch(key)) + keys(store.fetch(key, reverse=True)))
        since, until = max(0, time - 2000), time + 2000
        among = keys(store.find_sessions(key, since, until)) + keys(store.find_sessions_of_keys("a", "b", since, until))
        self.send(record, among + keys(store.find_sessions(key, 0, time, reverse=True)))
        self.send(record, text(store.fetch_session(key, session.start, time)))
        if record.value == "b":
            store.remove(session)
            self.send(record, keys(store.fetch_keys("a", "c")))


class Scanner(Texts):
    """Asks for keys that begin alike, and for ranges from both ends, those that are empty too."""

    def process(self, record: Record) -> None:
        store, key = self.context.store("counts"), text(record.value)
        store.put_all([(key, len(key)), (f"b{key}", 0)])
        self.send(record, rows(store.prefix_scan("b")) + rows(store.prefix_scan(key)))
        ends = rows(store.range("a", "c", reverse=True)) + rows(store.range("b", None, reverse=True))
        self.send(record, rows(store.range("b", "a")) + rows(store.range("b")) + ends)


class WindowerBackwards(Texts):
    """Windows of many keys from the end."""

    def process(self, record: Record) -> None:
        if record.key is None:
            return
        store, time = self.context.store("windows"), record.timestamp
        store.put(record.key, record.value, time)
        self.send(record, keys(store.fetch_keys("a", "c", 0, time, reverse=True)))
        low = keys(store.fetch_keys(None, "b", 0, time, reverse=True))
        self.send(record, low + keys(store.fetch_keys("b", None, 0, time)))


class SessionerBackwards(Texts):
    """Sessions of many keys from the end."""

    def process(self, record: Record) -> None:
        if record.key is None:
            return
        store, time = self.context.store("sessions"), record.timestamp
        store.put(Windowed(record.key, max(0, time - 1000), time), record.value)
        self.send(record, keys(store.fetch_keys("a", "c", reverse=True)) + keys(store.fetch_keys("b", None)))
        self.send(record, keys(store.find_sessions_of_keys("a", "b", max(0, time - 2000), time + 2000, reverse=True)))


class Versioner(Texts):
    """Puts a version, then asks for it as of times around."""

    def process(self, record: Record) -> None:
        if record.key is None:
            return
        store, key, time = self.context.store("versions"), record.key, record.timestamp
        if record.value == "b":
            self.send(record, told(store.delete(key, time)))
        else:
            self.send(record, str(store.put(key, record.value, time)))
        found = [store.get(key), *(store.as_of(key, when) for when in (max(0, time - 5000), time, time + 5000))]
        self.send(record, "".join(map(told, found)))


def told(version: Any) -> str:
    """Without the time until which it is valid: ours tells it, Kafka's look-ups of one version do not."""
    return "~" if version is None else f"<{version.value}@{version.timestamp}>"


def windows(**options: Any) -> StoreSpec:
    return window("windows", SIZE_MS, MINUTES_3, TEXT, TEXT, **options)


def process_windows_duplicates(b: StreamsBuilder) -> None:
    kept = stream(b).filter(lambda k, v: v is not None)
    kept.process(bringing(windows(persistent=False, duplicates=True), Windower)).to("out")


TOPOLOGIES: dict[str, Build] = {
    "process_windows": lambda b: process_with(b, windows(), Windower),
    "process_windows_in_memory": lambda b: process_with(b, windows(persistent=False), Windower),
    "process_windows_duplicates": process_windows_duplicates,
    "process_sessions": lambda b: process_with(b, session("sessions", MINUTES_3, TEXT, TEXT), Sessioner),
    "process_sessions_in_memory": lambda b: process_with(
        b, session("sessions", MINUTES_3, TEXT, TEXT, persistent=False), Sessioner
    ),
    "process_windows_backwards": lambda b: process_with(b, windows(), WindowerBackwards),
    "process_sessions_backwards": lambda b: process_with(
        b, session("sessions", MINUTES_3, TEXT, TEXT), SessionerBackwards
    ),
    "process_scans": lambda b: process_with(b, COUNTS, Scanner),
    "process_recent": lambda b: process_with(b, lru("counts", 2, key=TEXT, value=NUMBER, persistent=False), Counter),
    "process_versions": lambda b: process_with(b, versions("versions", HISTORY_MS, TEXT, TEXT), Versioner),
}

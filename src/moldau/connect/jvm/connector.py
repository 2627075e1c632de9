"""Connectors of jars: what the worker asks of them, and those that run beside their tasks."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

from moldau.connect.config_def import ConfigDef
from moldau.connect.connector import SINK, Config, NotYet, TopicPartition
from moldau.connect.errors import ConnectError
from moldau.connect.jvm.catalogue import Entry
from moldau.connect.jvm.definition import JavaConfigDef, described
from moldau.connect.jvm.host import Host
from moldau.connect.jvm.link import java_error
from moldau.connect.jvm.tasks import JavaSink, JavaSource, end
from moldau.connect.offset_topic import SourceOffset, SourcePartition

log = logging.getLogger(__name__)
LOOK_S = 0.2
SUPPORTED = "SUPPORTED"
Reader = Callable[[SourcePartition], SourceOffset | None]


class JavaConnector:
    """A connector of a jar. Those of its configurations that run have a thread each, which listens to them."""

    exactly_once = True  # as in Connect, every source writes in transactions where the worker does

    def __init__(self, host: Host, entry: Entry) -> None:
        self.kind, self._host, self._entry = entry.kind, host, entry
        self._running: dict[str, Running] = {}

    def _ask(self, *words: Any) -> Any:
        return self._host.ask(self._entry.location, self._entry.class_name, *words)

    @cached_property
    def _described(self) -> tuple[str | None, JavaConfigDef]:
        return described(self._ask)

    @cached_property
    def task_class(self) -> str:
        return self._described[0] or ""

    @cached_property
    def config(self) -> ConfigDef:
        return self._described[1]

    def open(self, context: Any) -> JavaSource | JavaSink:
        make = JavaSink if self.kind == SINK else JavaSource
        return make(self._host, self._entry, context)

    # What it says of a configuration.

    def supports_exactly_once(self, config: Config) -> bool | None:
        """Return what the connector promises; None where it says nothing."""
        said = self._ask("exactlyOnce", dict(config))
        return None if said is None else said == SUPPORTED

    def draws_boundaries(self, config: Config) -> bool:
        return self._ask("boundaries", dict(config)) == SUPPORTED

    def check_offset(self, config: Config, partition: SourcePartition, offset: SourceOffset | None) -> None:
        """Everything is asked at once: `alter_offsets`."""

    def alter_offsets(self, config: Config, offsets: Sequence[tuple[SourcePartition, SourceOffset | None]]) -> bool:
        """Have a source look at offsets that somebody wants to set; return whether it has seen to them."""
        rows = [[dict(partition), None if offset is None else dict(offset)] for partition, offset in offsets]
        return self._ask("alterSource", dict(config), rows)

    def alter_sink_offsets(self, config: Config, offsets: Mapping[TopicPartition, int | None]) -> bool:
        rows = [[topic, number, offset] for (topic, number), offset in offsets.items()]
        return self._ask("alterSink", dict(config), rows)

    # One that runs.

    def task_configs(self, config: Config, most: int) -> list[dict[str, str]]:
        """Return the configurations of tasks of a connector that runs for this question only."""
        link = self._host.link("connector", self._entry.location, self._entry.class_name)
        try:
            link.call("start", dict(config))
            return link.call("tasks", most)
        finally:
            end(link, self._entry.class_name)

    def configured(self, name: str, config: Config, most: int, offset: Reader) -> list[dict[str, str]]:
        """Return the configurations of tasks; NotYet while the connector starts or thinks."""
        running = self._running.get(name)
        if running is None or running.config != config or running.most != most or running.has_ended:
            self.release(name)
            running = self._running[name] = Running(self._host, self._entry, name, config, most, offset)
        return running.tasks()

    def has_changed(self, name: str) -> bool:
        """Tell whether a connector wants other tasks; raise what it has failed with."""
        running = self._running.get(name)
        return running is not None and running.has_changed()

    def release(self, name: str) -> None:
        """Stop a connector."""
        running = self._running.pop(name, None)
        if running is not None:
            running.stop()


class Running:
    """A connector that runs in the host, and its thread here."""

    def __init__(self, host: Host, entry: Entry, name: str, config: Config, most: int, offset: Reader) -> None:
        self.config, self.most = dict(config), most
        self._host, self._entry, self._name, self._offset = host, entry, name, offset
        self._tasks: list[dict[str, str]] | None = None
        self._failure: ConnectError | None = None
        self._wants_change = False
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._live, name=f"connector {name}", daemon=True)
        self._thread.start()

    @property
    def has_ended(self) -> bool:
        return not self._thread.is_alive()

    def tasks(self) -> list[dict[str, str]]:
        """Return what the connector last said; NotYet while it is asked."""
        if self._failure is not None:
            raise self._failure
        if self._tasks is None:
            raise NotYet(f"The connector {self._name} has not said yet which tasks it wants.")
        return self._tasks

    def has_changed(self) -> bool:
        if self._failure is not None:
            raise self._failure
        if self._wants_change:
            self._tasks, self._wants_change = None, False
            return True
        return False

    def stop(self) -> None:
        self._stopped.set()

    def _live(self) -> None:
        try:
            self._run()
        except ConnectError as error:
            self._failure = error

    def _run(self) -> None:
        told = {"reconfigure": self._reconfigure, "raise": self._raise, "offsets": self._offsets}
        link = self._host.link("connector", self._entry.location, self._entry.class_name, told=told)
        try:
            link.call("start", self.config)
            while not self._stopped.is_set() and self._failure is None:
                if self._tasks is None and not self._wants_change:
                    self._tasks = [dict(one) for one in link.call("tasks", self.most)]
                link.wait(LOOK_S)
        finally:
            end(link, f"The connector {self._name}")

    def _reconfigure(self) -> None:
        self._wants_change = True

    def _raise(self, row: Any) -> None:
        self._failure = java_error(row)

    def _offsets(self, partitions: Sequence[SourcePartition]) -> list[dict[str, Any] | None]:
        found = map(self._offset, partitions)
        return [None if one is None else dict(one) for one in found]

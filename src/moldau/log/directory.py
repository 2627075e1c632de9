"""A directory of `log.dirs`: who it belongs to, its lock, its checkpoints, and the partitions in it.

`.kafka_cleanshutdown` is written when everything has been closed and synced, and taken away when the directory is
opened: while it is missing, a start must look at what lies behind the recovery points. `.moldau_boot` names the boot of
the machine in which all partitions were last sound: it tells a crash of the process, which loses nothing that was
written, from one of the machine, which may lose any write that was not synced. It has the epoch of the broker
too: after a crash of the process alone the next one says that it is the same, and its replicas stay eligible (KIP-966).
A process that is about to register leaves its incarnation there until it knows its epoch: if it is killed before, the
next one registers as the same incarnation, and gets the epoch that this one may have got.

A directory that is missing, read-only or broken is offline, with a sentence; the partitions of others go on.
"""

import logging
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

from moldau.log.answers import no_room
from moldau.log.checkpoints import (
    Damaged,
    Partition,
    read_offsets,
    read_properties,
    read_topic_id,
    write_offsets,
    write_properties,
)
from moldau.log.config import LogConfig
from moldau.log.disk import NO_ROOM, Disk, Files, Remover, at_once, remove_if_there, remove_tree
from moldau.log.log import METADATA, Log
from moldau.wire.errors import Error
from moldau.wire.refusal import Refused

logger = logging.getLogger(__name__)

CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
LOCK, BOOT, META = ".lock", ".moldau_boot", "meta.properties"
RECOVERY_POINTS = "recovery-point-offset-checkpoint"
START_OFFSETS = "log-start-offset-checkpoint"
HIGH_WATERMARKS = "replication-offset-checkpoint"
DELETE, STRAY, FUTURE = "-delete", "-stray", "-future"
LONGEST_NAME = 255
SYNC_TOGETHER = 16  # with more partitions to close, the whole volume is synced at once

_incarnation = re.compile(r"[0-9a-f]{32}")
_partition_name = re.compile(r"([A-Za-z0-9._-]+)-(\d{1,10})")
_future_name = re.compile(r"([A-Za-z0-9._-]+)-(\d{1,10})\.[0-9a-f]{32}-future")


class InUse(Exception):
    """Another broker has the directory; the text is a sentence for the operator."""


class Meta(NamedTuple):
    """Who a directory belongs to; ids are text as Kafka writes them. None where the file says nothing."""

    cluster_id: str | None
    node_id: int | None
    directory_id: str | None


def clean_shutdown(broker_epoch: int) -> bytes:
    """Return the content of the file that marks a clean stop."""
    return b'{"version":0,"brokerEpoch":%d}' % broker_epoch


def stopped_epoch(disk: Disk, path: str) -> int:
    """Return the epoch of the broker that has marked a clean stop; -1 where the file does not say so."""
    match = re.search(rb'"brokerEpoch"\s*:\s*(-?\d+)', disk.read(path))
    return int(match[1]) if match else -1


def partition_of(name: str) -> Partition | None:
    """Topic and partition of a folder's name."""
    match = _partition_name.fullmatch(name)
    return (match[1], int(match[2])) if match else None


@dataclass(slots=True, eq=False)
class Directory:
    """One entry of `log.dirs`. Call `open` first; `logs` are the partitions that were loaded or created."""

    files: Files
    path: str
    id: str = ""  # directory.id, for its owner to set
    offline: str | None = None
    clean: bool = False
    broker_epoch: int = -1  # of the broker that was here last, if nothing that it wrote is lost
    incarnation: str = ""  # of a process that may have registered, and did not live to know its epoch
    booted: bool = False
    lost_writes: bool = True
    logs: dict[Partition, Log] = field(default_factory=dict[Partition, Log])
    found: set[Partition] = field(default_factory=set[Partition])
    futures: dict[Partition, str] = field(default_factory=dict[Partition, str])  # folders of replicas on their way here
    condemned: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])
    stale: set[Partition] = field(default_factory=set[Partition])  # gone, but not yet from the checkpoints
    recovery_points: dict[Partition, int] = field(default_factory=dict[Partition, int])
    start_offsets: dict[Partition, int] = field(default_factory=dict[Partition, int])
    high_watermarks: dict[Partition, int] = field(default_factory=dict[Partition, int])
    release_lock: Callable[[], None] = lambda: None
    renamed: bool = False  # a partition was set aside, and its new name is not synced
    damaged: dict[Log, str] = field(default_factory=dict[Log, str])  # logs whose damage nobody has looked at yet

    def __post_init__(self) -> None:
        self.path = self.path.rstrip("/") or "/"

    def open(self) -> None:
        """Lock the directory and read its checkpoints. InUse if another broker has it; any failure means offline."""
        disk = self.files.disk
        try:
            self._make()
            self.release_lock = disk.lock(self._at(LOCK))
            self.clean = disk.exists(self._at(CLEAN_SHUTDOWN))
            self.broker_epoch = stopped_epoch(disk, self._at(CLEAN_SHUTDOWN)) if self.clean else -1
            remove_if_there(disk, self._at(CLEAN_SHUTDOWN))
            disk.sync_dir(self.path)  # a crash must not bring it back, not even one that an earlier start took away
            self._compare_boot()
            self.recovery_points = self._read(RECOVERY_POINTS)
            self.start_offsets = self._read(START_OFFSETS)
            self.high_watermarks = self._read(HIGH_WATERMARKS)
            self._find()
            self._forget_offsets()
            self._settle()
        except BlockingIOError:
            raise InUse(
                f"The data directory {self.path} is in use by another broker. Stop it, or choose another directory."
            ) from None
        except OSError as error:
            self.fail(f"The data directory {self.path} cannot be used: {error}")

    def _make(self) -> None:
        """Make the directory if need be, so that it survives the machine."""
        disk, path, parents = self.files.disk, self.path, list[str]()
        while path and not disk.exists(path):
            path = path.rpartition("/")[0]
            parents.append(path)
        disk.mkdir(self.path)
        for parent in parents:
            disk.sync_dir(parent)

    def _at(self, name: str) -> str:
        return f"{self.path}/{name}"

    def _compare_boot(self) -> None:
        here = self.files.disk.boot_id()
        try:
            lines = self.files.disk.read(self._at(BOOT)).decode(errors="replace").split("\n")
        except FileNotFoundError:
            lines = []
        last, epoch, incarnation, *_ = [line.strip() for line in lines] + [""] * 3
        self.lost_writes = not here or here != last
        if not self.lost_writes:
            self.incarnation = incarnation if _incarnation.fullmatch(incarnation) else ""
            if not self.clean and epoch.isdigit():
                self.broker_epoch = int(epoch)

    def note_incarnation(self, incarnation: str) -> None:
        """Remember as what a process registers, until it knows its epoch."""
        if self.offline is None and (self.booted or not self.lost_writes):
            epoch = self.broker_epoch if self.broker_epoch >= 0 else None
            self.files.disk.write_atomic(self._at(BOOT), self._boot(epoch, incarnation), sync=False)

    def note_epoch(self, broker_epoch: int) -> None:
        """Remember who is here: a process that is killed loses nothing that it wrote, so the next one may say so."""
        if self.offline is None and (self.booted or not self.lost_writes):
            try:
                self.files.disk.write_atomic(self._at(BOOT), self._boot(broker_epoch), sync=False)
            except OSError:  # nobody may take the incarnation for one that has never served
                remove_if_there(self.files.disk, self._at(BOOT))
                raise

    def _boot(self, broker_epoch: int | None = None, incarnation: str = "") -> bytes:
        epoch = "" if broker_epoch is None else broker_epoch
        return f"{self.files.disk.boot_id()}\n{epoch}\n{incarnation}\n".encode()

    def _settle(self) -> None:
        """When every partition has been looked at, what the last crash of the machine has left is known and cut."""
        settled = self.clean or (len(self.logs) >= len(self.found) and self.found <= self.logs.keys())
        if settled and self.lost_writes and not self.booted:
            self.files.disk.write_atomic(self._at(BOOT), self._boot(), sync=False)
            self.booted = True

    def _read(self, name: str) -> dict[Partition, int]:
        """Read a checkpoint. A damaged one counts as missing: then more of the logs is checked, that is all."""
        try:
            return read_offsets(self.files.disk, self._at(name))
        except Damaged as error:
            logger.warning("%s; going on without it", error)
            return {}

    def _find(self) -> None:
        names = self.files.disk.listdir(self.path)
        self.found = {partition for name in names if (partition := partition_of(name))}
        self.condemned = [(0, self._at(name)) for name in names if name.endswith(DELETE)]
        self.futures = {(found[1], int(found[2])): name for name in names if (found := _future_name.fullmatch(name))}

    def _forget_offsets(self) -> None:
        """Those of partitions that are no longer here."""
        for table in (self.recovery_points, self.start_offsets, self.high_watermarks):
            for key in table.keys() - self.found:
                del table[key]
                self.stale.add(key)

    def fail(self, reason: str) -> None:
        """Take the directory and all its partitions offline."""
        self.offline = reason
        logger.error("%s", reason)
        for log in self.logs.values():
            if log.offline is None:
                log.fail(reason)

    def read_meta(self) -> Meta | None:
        """None when there is no `meta.properties`. Damaged when it is of another version."""
        values = read_properties(self.files.disk, self._at(META))
        if values is None:
            return None
        if values.get("version") != "1":
            raise Damaged(f"{self._at(META)} is not of version 1, the only one that is understood")
        node_id = values.get("node.id", "")
        return Meta(values.get("cluster.id"), int(node_id) if node_id.isdigit() else None, values.get("directory.id"))

    def write_meta(self, meta: Meta) -> None:
        values = {"cluster.id": meta.cluster_id, "directory.id": meta.directory_id, "node.id": meta.node_id}
        kept = {name: str(value) for name, value in values.items() if value is not None}
        write_properties(self.files.disk, self._at(META), {**kept, "version": "1"})

    def topic_id(self, topic: str, partition: int) -> bytes | None:
        """Return which topic a partition's folder says that it belongs to."""
        try:
            return read_topic_id(self.files.disk, self._at(f"{topic}-{partition}/{METADATA}"))
        except (Damaged, OSError):
            return None

    def load(self, topic: str, partition: int, config: LogConfig, *, now_ms: int) -> Log:
        """Open a partition that is here (see `found`). It may come out offline; refused when there is no room."""
        key = (topic, partition)
        log = Log.open(
            self.files,
            self._at(f"{topic}-{partition}"),
            topic,
            partition,
            config,
            now_ms=now_ms,
            start_offset=self.start_offsets.get(key, 0),
            recovery_point=self.recovery_points.get(key),
            high_watermark=self.high_watermarks.get(key, 0),
            clean=self.clean,
            lost_writes=self.lost_writes,
        )
        self._take_in(log)
        if log.offline is not None:
            self.damaged[log] = log.offline
        if self.lost_writes and not self.booted:
            try:
                self._settle()
            except OSError as error:
                logger.warning("%s cannot be written: %s", self._at(BOOT), error)
        return log

    def absent(self, topic: str, partition: int, config: LogConfig, *, now_ms: int) -> Log:
        """Return an offline log for a partition that may lie in this directory, which is offline."""
        assert self.offline is not None
        log = Log(self.files, self._at(f"{topic}-{partition}"), topic, partition, config, now_ms)
        log.offline = self.offline
        self.logs[topic, partition] = log
        return log

    def create(self, topic: str, partition: int, config: LogConfig, *, topic_id: bytes, now_ms: int) -> Log:
        """Make a new partition; refused when the disk does not let it."""
        if self.offline is not None:
            raise Refused(Error.KAFKA_STORAGE_ERROR, self.offline)
        path = self._at(f"{topic}-{partition}")
        self.make_way(topic, partition)
        try:
            log = Log.create(self.files, path, topic, partition, config, topic_id=topic_id, now_ms=now_ms)
        except OSError as error:
            raise Refused(Error.KAFKA_STORAGE_ERROR, f"{path} cannot be made: {error}") from error
        self._take_in(log)
        return log

    def _take_in(self, log: Log) -> None:
        log.checkpoint, log.on_damage = self.checkpoint, self.damaged.__setitem__
        self.logs[log.topic, log.partition] = log

    # Replicas that are moved here from another directory (KIP-113).

    def future(self, log: Log, unique: str, *, now_ms: int) -> Log:
        """Return the log in which the copy of another directory's log grows: a new one, or what an earlier start left.

        Raises Refused if it cannot be used.
        """
        key = log.topic, log.partition
        name = self.futures.get(key)
        if name is None:
            tail = f"-{log.partition}.{unique}{FUTURE}"
            name = self.futures[key] = log.topic[: LONGEST_NAME - len(tail)] + tail
            try:
                topic_id = log.topic_id or bytes(16)
                return Log.create(self.files, self._at(name), *key, log.config, topic_id=topic_id, now_ms=now_ms)
            except OSError as error:
                self.drop_future(key)
                raise Refused(Error.KAFKA_STORAGE_ERROR, f"{self._at(name)} cannot be made: {error}") from error
        found = Log.open(self.files, self._at(name), *key, log.config, now_ms=now_ms, lost_writes=self.lost_writes)
        found.wake()
        return found

    def drop_future(self, key: Partition) -> None:
        """Give up a copy; its folder is removed by the next `sweep`."""
        name = self.futures.pop(key, None)
        if name is not None and self.offline is None and self.files.disk.exists(self._at(name)):
            self.condemned.append((0, self._at(name)))

    def adopt(self, log: Log, future: Log, home: "Directory", unique: str, *, now_ms: int) -> None:
        """Let a log go on in its copy, which has all of it, and delete it where it was. Raises Refused.

        At any moment a crash leaves one of the two, or both with the same records.
        """
        key, path = (log.topic, log.partition), self._at(f"{log.topic}-{log.partition}")
        future.close()
        self.make_way(*key)
        try:
            self.files.disk.rename(future.path, path)
            self.files.disk.sync_dir(self.path)
        except OSError as error:
            raise Refused(Error.KAFKA_STORAGE_ERROR, f"{path} cannot be made: {error}") from error
        del self.futures[key]
        del home.logs[key]
        log.segments.release()
        home._set_aside(key, unique, DELETE, now_ms + log.config.file_delete_delay_ms)
        home.make_certain()
        self.found.add(key)
        self._take_in(log)
        log.settle_in(path)
        self.checkpoint()

    def make_way(self, topic: str, partition: int) -> None:
        """Make certain that a namesake which was deleted does not come back, nor its offsets. Refused if that fails."""
        if (topic, partition) in self.stale and self.offline is None and not self.checkpoint():
            raise no_room(self.path)

    def delete(self, log: Log, unique: str, *, now_ms: int) -> None:
        """Delete a partition: its folder is renamed now and removed by a later `sweep`. `unique`: 32 hex digits."""
        key = (log.topic, log.partition)
        log.shut(f"{log.topic}-{log.partition} was deleted")
        self.logs.pop(key, None)
        self.damaged.pop(log, None)
        self._set_aside(key, unique, DELETE, now_ms + log.config.file_delete_delay_ms)

    def make_certain(self) -> None:
        """No crash may bring back what was set aside: it would be taken for a new partition of its name."""
        if not self.renamed or self.offline is not None:
            return
        try:
            self.files.disk.sync_dir(self.path)
            self.renamed = False
        except OSError as error:
            self.fail(f"The data directory {self.path} cannot be synced: {error}")

    def set_stray_aside(self, topic: str, partition: int, unique: str) -> None:
        """Rename a folder that belongs to no known topic, and keep it."""
        self._set_aside((topic, partition), unique, STRAY, None)

    def _set_aside(self, key: Partition, unique: str, suffix: str, due_ms: int | None) -> None:
        topic, partition = key
        tail = f"-{partition}.{unique}{suffix}"
        target = self._at(topic[: LONGEST_NAME - len(tail)] + tail)
        for table in (self.recovery_points, self.start_offsets, self.high_watermarks):
            table.pop(key, None)
        self.stale.add(key)
        self.found.discard(key)
        try:
            self.files.disk.rename(self._at(f"{topic}-{partition}"), target)
        except OSError as error:
            self.fail(f"{target} cannot be made: {error}")
        else:
            self.renamed = True
            if due_ms is not None:
                self.condemned.append((due_ms, target))

    def sweep(self, now_ms: int, remove: Remover = at_once) -> None:
        """Remove what is due: folders of deleted partitions, files of deleted segments. `remove` may use a thread."""
        for log in self.logs.values():
            if log.segments.condemned and log.offline is None:
                with suppress(Refused):  # it is offline now, and has said why
                    log.sweep(now_ms, remove)
        due = [path for due_ms, path in self.condemned if due_ms <= now_ms]
        self.condemned = [(due_ms, path) for due_ms, path in self.condemned if due_ms > now_ms]
        for path in due:
            try:
                remove(partial(remove_tree, self.files.disk, path))
            except OSError as error:
                logger.warning("%s cannot be removed, and is left to the next start: %s", path, error)

    def checkpoint(self) -> bool:
        """Write the offsets of all partitions, each file only if it changes; tells whether the disk has them now."""
        if self.offline is not None:
            return False
        points, starts, marks = dict(self.recovery_points), dict(self.start_offsets), dict(self.high_watermarks)
        for key, log in self.logs.items():
            points[key], marks[key] = log.recovery_point, log.high_watermark
            starts[key] = log.start_offset
        starts = {key: offset for key, offset in starts.items() if offset}
        try:
            for name, table, offsets in (
                (RECOVERY_POINTS, self.recovery_points, points),
                (START_OFFSETS, self.start_offsets, starts),
                (HIGH_WATERMARKS, self.high_watermarks, marks),
            ):
                if self.stale or offsets != table:
                    write_offsets(self.files.disk, self._at(name), offsets)
                    table.clear()  # each for itself: there may be no room for the next file
                    table.update(offsets)
        except OSError as error:
            if error.errno in NO_ROOM:
                logger.warning("The disk of %s is full; its checkpoints wait", self.path)
            else:
                self.fail(f"The checkpoints of {self.path} cannot be written: {error}")
            return False
        self.stale.clear()
        return True

    def close(self, *, clean: bool = True, broker_epoch: int = -1) -> None:
        """Close all partitions and let go of the lock. Only if each of them could be synced is the stop a clean one.

        The next registration of an Apache Kafka broker names the epoch; a wrong one makes the stop unclean (KIP-966).
        """
        sound = clean and self.offline is None and (self.clean or self.found <= self.logs.keys())
        together = sum(log.written for log in self.logs.values()) > SYNC_TOGETHER
        for log in self.logs.values():
            sound = sound and log.offline is None
            try:
                log.close(clean=clean, sync=not together)
            except Refused:
                sound = False
        if clean and together:
            sound = self._sync_all() and sound
        if clean:
            self.checkpoint()
        if sound and self.offline is None:
            try:
                self.files.disk.write_atomic(self._at(CLEAN_SHUTDOWN), clean_shutdown(broker_epoch))
            except OSError as error:
                logger.warning("%s could not be marked as cleanly closed: %s", self.path, error)
        self.release_lock()

    def _sync_all(self) -> bool:
        try:
            self.files.disk.sync_all(self.path)
        except OSError as error:
            self.fail(f"{self.path} cannot be synced: {error}")
        return self.offline is None

    def __iter__(self) -> Iterator[Log]:
        return iter(self.logs.values())

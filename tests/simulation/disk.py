"""The disk of the simulated machine: `moldau.log.disk.Disk` over `media`, with everything that disks do wrong.

`Machine` is what outlives a process: the media and the faults that hold at the moment. `SimDisk` is what one process
sees of it: when the process dies, nothing that its code still tries while it unwinds reaches the media.
"""

from __future__ import annotations

import errno
import os
from collections import Counter
from collections.abc import Callable
from random import Random

from moldau.log.disk import Data
from tests.simulation.media import Folder, Inode


class Crash(BaseException):
    """The process is dead. Not an Exception: no code of the node may catch it."""


class Machine:
    """Media, boot, and the faults of the moment: `full`, `broken` (paths that fail), `fuse` (steps to a crash)."""

    def __init__(self, random: Random, wall_ms: Callable[[], int], injected: Counter[str]) -> None:
        self.random = random
        self.wall_ms = wall_ms
        self.injected = injected
        self.root = Folder()
        self.boot = 1
        self.full = False
        self.broken: set[str] = set()
        self.fuse: int | None = None
        self.steps = 0

    def lose_power(self) -> None:
        """Un-synced writes meet their fate, and the machine starts anew."""
        self.root.crash(self.random)
        self.boot += 1

    def fails(self, path: str) -> bool:
        return any(path == broken or path.startswith(f"{broken}/") for broken in self.broken)

    def folder(self, path: str) -> Folder:
        """FileNotFoundError when there is none."""
        node = self.root
        for name in filter(None, path.split("/")):
            found = node.names.get(name)
            if not isinstance(found, Folder):
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
            node = found
        return node

    def find(self, path: str) -> Inode | Folder | None:
        parent, _, name = path.rpartition("/")
        try:
            return self.folder(parent).names.get(name)
        except FileNotFoundError:
            return None

    def inode(self, path: str) -> Inode:
        found = self.find(path)
        if not isinstance(found, Inode):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return found


class SimFile:
    """An open file. As with a descriptor, its end is what this handle has written, and a removed file stays usable."""

    __slots__ = ("disk", "end", "inode", "path")

    def __init__(self, disk: SimDisk, path: str, inode: Inode) -> None:
        self.disk = disk
        self.path = path
        self.inode = inode
        self.end = len(inode.data)

    def append(self, data: Data) -> None:
        self.disk.write(self.path, self.inode, self.end, bytes(data))
        self.end += len(data)

    def pread(self, size: int, position: int) -> bytes:
        self.disk.alive()
        return bytes(self.inode.data[position : position + size])

    def pwrite(self, data: Data, position: int) -> None:
        self.disk.write(self.path, self.inode, position, bytes(data))
        self.end = max(self.end, position + len(data))

    def truncate(self, size: int) -> None:
        self.disk.step(self.path)
        self.inode.truncate(size)
        self.end = size

    def size(self) -> int:
        return self.end

    def sync(self) -> None:
        self.disk.step(self.path)
        self.inode.sync()

    def fileno(self) -> int:
        raise AssertionError("a simulated file has no descriptor")

    def close(self) -> None:
        pass


class SimDisk:
    """The disk as one process sees it."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.dead = False
        self.locks: set[str] = set()

    # Faults.

    def alive(self) -> None:
        if self.dead:
            raise Crash

    def step(self, path: str) -> None:
        """Before each change: the process may die here, or the disk may fail."""
        self.alive()
        machine = self.machine
        machine.steps += 1
        if machine.fuse is not None:
            machine.fuse -= 1
            if machine.fuse <= 0:
                self.die()
        if machine.broken and machine.fails(path):
            machine.injected["EIO"] += 1
            raise OSError(errno.EIO, os.strerror(errno.EIO), path)

    def die(self) -> None:
        self.dead = True
        self.machine.fuse = None
        raise Crash

    def write(self, path: str, inode: Inode, position: int, data: bytes) -> None:
        """Part of the bytes may be there when it fails."""
        machine = self.machine
        self.alive()
        inode.modified_ms = machine.wall_ms()
        try:
            self.step(path)
        except (Crash, OSError):
            inode.write(position, data[: machine.random.randrange(len(data) + 1)])
            raise
        if machine.full and position + len(data) > len(inode.data):
            inode.write(position, data[: machine.random.randrange(len(data) + 1)])
            raise self.no_room(path)
        inode.write(position, data)

    def no_room(self, path: str) -> OSError:
        self.machine.injected["ENOSPC"] += 1
        return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)

    # Files.

    def open(self, path: str, *, create: bool = False) -> SimFile:
        self.alive()
        found = self.machine.find(path)
        if not isinstance(found, Inode):
            if not create:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
            parent, _, name = path.rpartition("/")
            folder = self.machine.folder(parent)
            self.step(path)
            if self.machine.full and self.machine.random.random() < 0.5:
                raise self.no_room(path)
            found = Inode()
            found.modified_ms = self.machine.wall_ms()
            folder.change(None, name, found)
        return SimFile(self, path, found)

    def read(self, path: str) -> bytes:
        self.alive()
        return bytes(self.machine.inode(path).data)

    def write_atomic(self, path: str, data: bytes, *, sync: bool = True) -> None:
        """The steps of `OsDisk.write_atomic`, each of which may be the last."""
        temporary = f"{path}.tmp"
        file = self.open(temporary, create=True)
        file.truncate(0)
        file.append(data)
        if sync:
            file.sync()
        self.rename(temporary, path)
        if sync:
            self.sync_dir(path.rpartition("/")[0])

    def size(self, path: str) -> int:
        self.alive()
        return len(self.machine.inode(path).data)

    def modified_ms(self, path: str) -> int:
        self.alive()
        return self.machine.inode(path).modified_ms

    def exists(self, path: str) -> bool:
        self.alive()
        return self.machine.find(path) is not None

    # Folders.

    def listdir(self, path: str) -> list[str]:
        """In no particular order."""
        self.alive()
        names = list(self.machine.folder(path).names)
        self.machine.random.shuffle(names)
        return names

    def mkdir(self, path: str) -> None:
        self.alive()
        folder = self.machine.root
        for name in path.split("/")[1:]:
            found = folder.names.get(name)
            if found is None:
                self.step(path.rpartition("/")[0])
                if self.machine.full and self.machine.random.random() < 0.5:
                    raise self.no_room(path)
                found = Folder()
                folder.change(None, name, found)
            assert isinstance(found, Folder)
            folder = found

    # A change of a name is a write to the folder in which the name stands.

    def rename(self, source: str, target: str) -> None:
        folder, _, old = source.rpartition("/")
        self.step(folder)
        to, _, new = target.rpartition("/")
        assert folder == to, "a rename stays within its folder"
        found = self.machine.find(source)
        if found is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), source)
        self.machine.folder(folder).change(old, new, found)

    def remove(self, path: str) -> None:
        folder, _, name = path.rpartition("/")
        self.step(folder)
        inode = self.machine.inode(path)
        self.machine.folder(folder).change(name, None, inode)

    def rmdir(self, path: str) -> None:
        folder, _, name = path.rpartition("/")
        self.step(folder)
        found = self.machine.folder(path)
        if found.names:
            raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY), path)
        self.machine.folder(folder).change(name, None, found)

    def sync_dir(self, path: str) -> None:
        self.step(path)
        self.machine.folder(path).sync()

    def sync_all(self, path: str) -> None:
        """All that anyone has written to the volume."""
        self.step(path)
        self.machine.root.sync_all()

    # The machine.

    def lock(self, path: str) -> Callable[[], None]:
        self.open(path, create=True)
        if path in self.locks:
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN), path)
        self.locks.add(path)
        return lambda: self.locks.discard(path)

    def space(self, path: str) -> tuple[int, int]:
        return 1 << 40, 0 if self.machine.full else 1 << 39

    def boot_id(self) -> str:
        return f"boot-{self.machine.boot}"

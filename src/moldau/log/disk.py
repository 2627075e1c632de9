"""The rim of the log: files and folders behind two small protocols.

Everything in `moldau.log` reaches the disk through `Disk` and `File`, so that a simulator can lose un-synced writes,
tear them, rot bits or run out of space. `OsDisk` is the real thing. A file stays usable while anything refers to it:
renaming or removing it does not disturb a reader, and the descriptor is closed with the last reference.
"""

import errno
import fcntl
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

Data = bytes | bytearray | memoryview
NO_ROOM = (errno.ENOSPC, errno.EDQUOT)


class File(Protocol):
    def append(self, data: Data) -> None: ...
    def pread(self, size: int, position: int) -> bytes: ...
    def pwrite(self, data: Data, position: int) -> None: ...
    def truncate(self, size: int) -> None: ...
    def size(self) -> int: ...
    def sync(self) -> None: ...
    def fileno(self) -> int: ...
    def close(self) -> None: ...


class Disk(Protocol):
    def open(self, path: str, *, create: bool = False) -> File: ...
    def read(self, path: str) -> bytes: ...
    def write_atomic(self, path: str, data: bytes, *, sync: bool = True) -> None: ...
    def size(self, path: str) -> int: ...
    def modified_ms(self, path: str) -> int: ...
    def exists(self, path: str) -> bool: ...
    def listdir(self, path: str) -> list[str]: ...
    def mkdir(self, path: str) -> None: ...
    def rename(self, source: str, target: str) -> None: ...
    def remove(self, path: str) -> None: ...
    def rmdir(self, path: str) -> None: ...
    def sync_dir(self, path: str) -> None: ...
    def sync_all(self, path: str) -> None: ...
    def lock(self, path: str) -> Callable[[], None]: ...
    def space(self, path: str) -> tuple[int, int]: ...
    def boot_id(self) -> str: ...


class OsFile:
    """A file that is written at its end (or at a position) and read at positions; it knows its own size."""

    __slots__ = ("end", "fd")

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self.end = os.fstat(fd).st_size

    def append(self, data: Data) -> None:
        """Write at the end. A failed write leaves `end` where it was: the next append overwrites the torn bytes."""
        done = os.pwrite(self.fd, data, self.end)
        if done != len(data):
            self._write_rest(memoryview(data), self.end, done)
        self.end += len(data)

    def _write_rest(self, data: memoryview, position: int, done: int) -> None:
        while done < len(data):
            done += os.pwrite(self.fd, data[done:], position + done)

    def pread(self, size: int, position: int) -> bytes:
        return os.pread(self.fd, size, position)

    def pwrite(self, data: Data, position: int) -> None:
        self._write_rest(memoryview(data), position, 0)
        self.end = max(self.end, position + len(data))

    def truncate(self, size: int) -> None:
        os.ftruncate(self.fd, size)
        self.end = size

    def size(self) -> int:
        return self.end

    def sync(self) -> None:
        os.fdatasync(self.fd)

    def fileno(self) -> int:
        return self.fd

    def close(self) -> None:
        fd, self.fd = self.fd, -1
        if fd >= 0:
            os.close(fd)

    def __del__(self) -> None:
        if getattr(self, "fd", -1) >= 0:
            self.close()


class OsDisk:
    """The operating system's disk."""

    __slots__ = ()

    def open(self, path: str, *, create: bool = False) -> OsFile:
        return OsFile(os.open(path, os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT if create else 0), 0o644))

    def read(self, path: str) -> bytes:
        with open(path, "rb") as file:
            return file.read()

    def write_atomic(self, path: str, data: bytes, *, sync: bool = True) -> None:
        temporary = f"{path}.tmp"
        with open(temporary, "wb", buffering=0) as file:
            file.write(data)
            if sync:
                os.fsync(file.fileno())
        os.replace(temporary, path)
        if sync:
            self.sync_dir(os.path.dirname(path))

    def size(self, path: str) -> int:
        return os.stat(path).st_size

    def modified_ms(self, path: str) -> int:
        return os.stat(path).st_mtime_ns // 1_000_000

    def exists(self, path: str) -> bool:
        return os.path.exists(path)

    def listdir(self, path: str) -> list[str]:
        return os.listdir(path)

    def mkdir(self, path: str) -> None:
        os.makedirs(path, exist_ok=True)

    def rename(self, source: str, target: str) -> None:
        os.replace(source, target)

    def remove(self, path: str) -> None:
        os.remove(path)

    def rmdir(self, path: str) -> None:
        os.rmdir(path)

    def sync_dir(self, path: str) -> None:
        """Make the names in a folder certain; the empty path is the root."""
        fd = os.open(path or "/", os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def sync_all(self, path: str) -> None:
        """Sync everything on the volume of `path`: cheaper than file by file when there are many."""
        import ctypes  # 10 ms that only a large stop pays

        library = ctypes.CDLL(None, use_errno=True)
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            if not hasattr(library, "syncfs"):
                os.sync()
            elif library.syncfs(fd):
                raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), path)
        finally:
            os.close(fd)

    def lock(self, path: str) -> Callable[[], None]:
        """Take the lock file for this process and return what releases it; BlockingIOError when another has it."""
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(fd)
            raise
        return lambda: os.close(fd)

    def space(self, path: str) -> tuple[int, int]:
        """Total and usable bytes of the volume."""
        stat = os.statvfs(path)
        return stat.f_blocks * stat.f_frsize, stat.f_bavail * stat.f_frsize

    def boot_id(self) -> str:
        """Changes when the machine starts anew: only then can un-synced writes have been lost. Empty if unknown."""
        try:
            return self.read("/proc/sys/kernel/random/boot_id").decode().strip()
        except OSError:
            return ""


@dataclass(slots=True, eq=False)
class Span:
    """Bytes of a file that are not read yet: what a fetch answers with. Keeps the file open while it lives."""

    file: File
    position: int
    size: int

    def __len__(self) -> int:
        return self.size

    def read(self) -> bytes:
        return self.file.pread(self.size, self.position)


class Owner(Protocol):
    """Something that keeps one file open while it is in use, and can open it again."""

    path: str
    file: File | None


@dataclass(slots=True, eq=False)
class Files:
    """The open files of a disk, bounded: the one that was opened first is let go first.

    Letting go means that the owner's reference is dropped; a `Span` on its way to a socket keeps its own.
    """

    disk: Disk
    capacity: int = 4096
    owners: dict[int, Owner] = field(default_factory=dict[int, Owner])

    def open(self, owner: Owner, *, create: bool = False) -> File:
        file = owner.file = self.disk.open(owner.path, create=create)
        self.owners[id(owner)] = owner
        if len(self.owners) > self.capacity:
            self.release(next(iter(self.owners.values())))
        return file

    def release(self, owner: Owner) -> None:
        self.owners.pop(id(owner), None)
        owner.file = None


def remove_if_there(disk: Disk, path: str) -> None:
    """Remove a file that may be gone already."""
    try:
        disk.remove(path)
    except FileNotFoundError:
        return


Remover = Callable[[Callable[[], None]], None]


def at_once(work: Callable[[], None]) -> None:
    """Remove here and now. A large file takes its time, so a node has another `Remover`, with a thread."""
    work()


def remove_tree(disk: Disk, path: str) -> None:
    """Remove a folder of plain files."""
    for name in disk.listdir(path):
        disk.remove(f"{path}/{name}")
    disk.rmdir(path)

"""What lies on the disks of the voters, as a loss of power would leave it: votes, and the metadata log."""

from __future__ import annotations

import json
from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING

from moldau.wire.errors import WireError
from moldau.wire.records import Batch, starts
from tests.simulation.media import Folder, Inode

if TYPE_CHECKING:
    from tests.cluster.simulation.host import Host

FOLDER = "/disk1/__cluster_metadata-0"


def synced_files(host: Host) -> dict[str, Inode]:
    folder = host.machine.find(FOLDER)
    names = folder.safe.items() if isinstance(folder, Folder) else ()
    return {name: inode for name, inode in names if isinstance(inode, Inode)}


def synced_vote(host: Host) -> tuple[int, int]:
    """Return the epoch and the vote that survive whatever happens; -1 if there is none."""
    inode = synced_files(host).get("quorum-state")
    if inode is None:
        return 0, -1
    fields = json.loads(inode.safe)
    return fields["leaderEpoch"], fields["votedId"]


@lru_cache(maxsize=64)
def whole_end(data: bytes) -> int:
    """Return where the last batch of a file ends that is whole: a loss of power may have left part of one."""
    end, view = 0, memoryview(data)
    with suppress(WireError):
        for position in starts(view):
            batch = Batch(view, position)
            batch.verify()
            end = batch.next_offset
    return end


def synced_end(host: Host) -> int:
    """Return up to where the metadata survives: by the log, or by a snapshot."""
    ends = [0]
    for name, inode in synced_files(host).items():
        if name.endswith(".checkpoint"):
            ends.append(int(name.partition("-")[0]))
        elif name.endswith(".log"):
            ends.append(whole_end(inode.safe))
    return max(ends)

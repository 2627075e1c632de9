"""What lies on the disks of the voters, as a loss of power would leave it: votes, and the metadata log."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

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


def synced_end(host: Host) -> int:
    """Return up to where the metadata survives: by the log, or by a snapshot."""
    ends = [0]
    for name, inode in synced_files(host).items():
        if name.endswith(".checkpoint"):
            ends.append(int(name.partition("-")[0]))
        elif name.endswith(".log"):
            view = memoryview(inode.safe)
            ends += [Batch(view, position).next_offset for position in starts(view)][-1:]
    return max(ends)

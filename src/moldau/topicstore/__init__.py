"""A store over a compacted topic: the state of a service is what the records of one partition say.

**State only by replay.** A store reads its partition from the start and goes on following it. `replay` is called for
each committed record in the order of the log, and nothing else changes the state, neither in the process that writes
nor in any other. All processes that have replayed up to the same position have the same state. Keys and values are
bytes to the topic; a `Codec` turns them into records. What a codec cannot read is logged and left out, because other
programs may write to the topic too. A topic that was deleted and made again is replayed from its start after `reset`.

**One writer.** The processes of a service are members of a group, and the group agrees on one that writes (`Election`);
the others forward what they are asked to change to it (`moldau.http.forwarding`). The group decides who *should* write.
It cannot stop a writer that was deposed while it was paused, or before it has heard of it; the fence can.

**The fence.** The writer holds a producer id under a transactional id that all writers of the topic share. `take_over`
raises the epoch of this producer, appends a record of the new epoch that changes nothing, and replays up to it. Once
that record is in the log, the partition's leader refuses every batch of an older epoch. So there is one point in the
log: what a deposed writer appended before it is known to its successor when that decides for the first time, and after
it nothing of the deposed writer is appended, however late it arrives. A refused write raises ClientError with a code of
`FENCED`.

**Decide, write, read back.** `update` lets one caller at a time look at the state and return records. It returns when
all in-sync replicas have the records and this process has replayed them (without fetching them, if it has replayed all
records before them): whoever made a change sees it, and the next decision sees all changes before it. The records of a
change are one batch, which is in the log entirely or not at all; only a change that is larger than the topic's
`max.message.bytes` is split, and a crash may then leave its beginning alone. A process that forwarded a change waits
for the position that the writer names, so its client sees the change there too.

**When a write is not answered** in time, ClientError REQUEST_TIMED_OUT, it may be in the log or still arrive. The next
`update` first raises the own epoch and replays up to a record of it: then the earlier write has been replayed, or can
never arrive. Until then nobody decides. Callers that try again must be able to recognise their own change.

**A late starter** needs nothing but the topic: compaction keeps the last record of each key, and `start` returns when
everything has been replayed that was there when it began. `snapshot` copies the state together with its position, and
no record is replayed meanwhile. A state must not depend on records that a later one with the same key has replaced. A
service that needs the state of an earlier position must keep it, or give the topic a `min.compaction.lag.ms`.

**Not promised.** A reader that is not the writer may be behind; `wait_for` waits for a position. A writer that freezes
in the middle of an append, and wakes up after the brokers have forgotten its successor's producer id (a day without
writes, by `producer.id.expiration.ms`), is not refused; between two writes it notices, since it renews its epoch before
a write that follows more than an hour after the last renewal. Where ACLs deny the transactional id, or the cluster has
too few brokers for `__transaction_state`, writes are not fenced; a warning says so, and a writer that lost its place is
stopped only by what it hears from the group. Programs that write to the topic outside of the store are not fenced.
"""

from .election import Election, Identity
from .reader import COMMITTED, UNCOMMITTED, Follower, PartitionState, Reader, StoreError
from .store import Codec, State, Store
from .topic import await_topic, await_use, exists, prepare, settings_of
from .writer import FENCED, TOO_LARGE, Writer, append

__all__ = [
    "COMMITTED",
    "FENCED",
    "TOO_LARGE",
    "UNCOMMITTED",
    "Codec",
    "Election",
    "Follower",
    "Identity",
    "PartitionState",
    "Reader",
    "State",
    "Store",
    "StoreError",
    "Writer",
    "append",
    "await_topic",
    "await_use",
    "exists",
    "prepare",
    "settings_of",
]

"""What becomes of a replica whose log is damaged, while others have it whole.

The controller is told that the replica is in no directory that works: it takes it out of the ISR and elects another
leader, if there is one (KIP-858). Only when the metadata says so, and the replica is not even eligible to lead
(KIP-966), nothing that was committed can be lost with its log: the log is thrown away, and the leader's is fetched.
Until then it is kept as it is, and nobody reads it.

While this node alone has what is committed, nothing of this happens: a log that can still be used stays in use, one
that cannot is offline until somebody restores its folder.
"""

from __future__ import annotations

from moldau.machines.metadata.cluster import NO_LEADER, Partition


def can_be_spared(part: Partition, me: int) -> bool:
    """Tell whether others have all that is committed, so that this replica may leave the ISR."""
    return part.leader not in (me, NO_LEADER) or len(set(part.isr) - {me}) > 0


def may_begin_anew(part: Partition, me: int) -> bool:
    """Tell whether this replica's log may go: another leads, and this one cannot be elected before it has caught up."""
    return part.leader not in (me, NO_LEADER) and me not in (*part.isr, *part.eligible_leaders)

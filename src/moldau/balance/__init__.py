"""The balancer: it spreads replicas and leaders over brokers, by the public protocol alone, so on any Kafka.

**Model, plan, run.** `observing` reads a `Model` from a cluster. `plan` is a pure function from a model to a `Plan`:
for some partitions, the replicas that they shall have. `execution` carries a plan out, and `journal` remembers it.

**The state of a run is the cluster's own.** Whether a move waits, is under way or has ended is read from the partitions
and reassignments of the cluster (`progress.py`), never from what a process remembers. The journal, a compacted topic,
holds only the plan, what somebody wants of it (go on, pause, cancel), and the throttles that were set, each written
before it is set and removed after it is taken away. So a process that is killed leaves nothing that the next one cannot
finish, cancel or clean up.

**One is active.** Balancers are members of a group, which elects one; it writes the journal under a fence
(`moldau.topicstore`). Others append what they want of it to the journal as plain records.
"""

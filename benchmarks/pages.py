"""The pages that `python -m benchmarks` makes: one broker beside one, three nodes beside three."""

from benchmarks import cluster_table, table
from benchmarks.places import CACHE, PROJECT
from benchmarks.report import Page

ONE_NODE = """\
`make bench` makes this page; `python -m benchmarks --only NAME` measures some rows again and keeps the others.

- The client is a C program on librdkafka (`benchmarks/client.c`), the same for both; raw requests go over plain
  sockets. Client and brokers share the cores of one machine and one file system, over loopback.
- Apache Kafka {kafka} runs from Maven's jars as one node (broker and controller), with the JVM flags of its own
  start script (1 GB heap, G1) and logging at level error. Settings are the defaults, but that both brokers have
  `log.segment.delete.delay.ms=100` and `log.cleaner.backoff.ms=1000`, so that a run need not wait for the one before.
- Both brokers are up during the warm rows, and one is loaded at a time. Kafka is warmed by a minute of all the loads
  first. Runs alternate between the two; the figure is the median, the range of the runs stands in brackets.
- Produce goes to a fresh topic with acks=all, linger.ms=5 and librdkafka's batch sizes; the topic is deleted after
  the run, so that no run pays for the write-back of another. Consume reads out of the page cache. One record a
  request is linger.ms=0 and batch.num.messages=1; the raw flood keeps 10 requests in flight on each of 8 connections.
- Broker CPU is user and system time of the broker process, its threads and its children, over the run.
- TLS handshakes are whole ones, of four threads that connect and close. Connections that stay say nothing; the memory
  of each is by what the RSS grows, of the JVM by what lives on its heap after a collection, as it keeps what was freed.
- ACLs and a quota: four entries that allow, 200 of others, a quota for every user that nobody reaches, beside a second
  broker without an authorizer and without quotas, in turn.
- End to end is from the call of produce to the consumer's hands, at linger.ms=0; the first second is left out.
- Commits are OffsetCommit v9 of 10 partitions of one topic: raw, for 8 groups without members, 10 requests in flight
  on each of 8 connections, every answer compared; and by librdkafka's synchronous call from 4 members of 4 groups.
- A rebalance has 100 members on 100 connections in one thread (`benchmarks/members.c`). Classic: members that know each
  other join again, and the time is from the last JoinGroup to the last SyncGroup answered. Consumer (KIP-848): all join
  a new group at once, and come back at once with what they were given, else after 20 ms; the time is from the last
  join until each has its share in the same epoch. Of that a second is `group.consumer.assignment.interval.ms`, which
  both wait before they assign a second time; in the row with an assignment for each join it is 0. The figure of a run
  is the median of 20 rebalances.
- Exactly-once copying moves 300,000 records of 100 bytes from partition to partition in transactions of 1,000: Kafka's
  own TransactionalMessageCopier in Java (batch.size=512 there, so it sends many small requests; its first 30 % are not
  counted), and a loop in Python on confluent-kafka (`benchmarks/copier.py`), which is client-bound.
- Groups: the start after a clean stop with 10,000 groups, until ListGroups names all of them.
- Start is from exec to the first acknowledged record, Kafka's storage formatted before. Recovery is kill -9 after
  1 GB went to one partition, then exec to the first record that this partition acknowledges; the end offset is
  checked. Compaction is of 1 GB with ten records a key; the latency is that of another topic from the change of
  `cleanup.policy` until the cleaner's checkpoint has the topic.
"""
THREE_NODES = """\
`make bench` makes this page; `python -m benchmarks --nodes 3 --only NAME` measures some rows again and keeps the
others.

- Three nodes, each broker and controller, beside three of Apache Kafka {kafka} with the same file of settings: three
  replicas of everything, `min.insync.replicas=2`. All six processes and the client share the cores of one machine, one
  file system and loopback. JVM flags are those of Kafka's own start script (1 GB heap, G1).
- Kafka is warmed by five minutes of load before the warm rows. Runs alternate between the two; the figure is the
  median, the range of the runs stands in brackets. CPU and memory are those of all three nodes together.
- Produce is librdkafka with acks=all into a fresh topic, as on the page about one broker.
- A node that fails leads the only partition of a topic, into which an idempotent librdkafka producer with default
  settings sends 200 records a second; what is shown is the longest time between two acknowledgements. In two of the
  rows it is not the active controller. Afterwards the node is started again, and all replicas are in sync before the
  next run.
- The follower that was away is stopped, 5 GB are written to six partitions on the other two, and the time is from its
  exec until it is in sync in all of them.
- 10,000 partitions are ten topics of 1,000. Six busy partitions are another topic, measured before and among them.
"""
_HOME = PROJECT / "benchmarks"
PAGES = {
    1: Page(
        "Moldau beside Apache Kafka",
        table.ROWS,
        ONE_NODE,
        CACHE / "results.json",
        PROJECT / "docs" / "benchmarks.md",
        _HOME / "remarks.md",
    ),
    3: Page(
        "three nodes beside three of Apache Kafka",
        cluster_table.ROWS,
        THREE_NODES,
        CACHE / "results-cluster.json",
        PROJECT / "docs" / "benchmarks-cluster.md",
        _HOME / "cluster-remarks.md",
    ),
}

"""Three replicas of a partition under a controller that elects at random: what was committed once stays, everywhere.

Real logs, the production code of leaders (`cluster/leading.py`, the reading side of Fetch) and of followers
(`cluster/following.py`); only network and controller are played here.
"""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from moldau.broker.api.fetch import read
from moldau.broker.fetch_sessions import Wanted
from moldau.broker.partition import Partition
from moldau.cluster import following
from moldau.cluster.following import Fetcher, Followed, Limits
from moldau.cluster.leading import Leading
from moldau.log.answers import Isolation
from moldau.machines.metadata.cluster import Partition as Placement
from moldau.wire import messages as m
from tests.log.logs import NOW, TOPIC_ID, batch, contents, create, reopen

LIMITS = Limits(500, 1, 10 << 20, 200, 1000)
REPLICAS = (1, 2, 3)
LAG = 30_000.0
STEPS = 400


class Replica:
    """A broker with one partition, and its fetcher while it follows."""

    def __init__(self, number: int, folder: Path) -> None:
        self.number = number
        self.folder = folder
        self.partition = Partition("t", TOPIC_ID, 0, create(folder), number)
        self.fetcher: Fetcher | None = None
        self.up = True

    def place(self, placement: Placement, now_ms: float) -> None:
        partition = self.partition
        if placement.leader == self.number:
            self.fetcher = None
            partition.lead(placement, now_ms)
            return
        epoch = partition.placement.leader_epoch
        partition.follow(placement)
        if placement.leader_epoch != epoch or self.fetcher is None:
            self.fetcher = Fetcher(self.number, lambda: 0, LIMITS)
            self.fetcher.add(Followed(TOPIC_ID, 0, partition.log, placement.leader_epoch))

    def crash(self) -> None:
        """Kill the process and open its log again: nothing that was written is lost, the high watermark may be."""
        log = self.partition.log
        log.close(clean=False)
        opened = reopen(self.folder, high_watermark=log.high_watermark // 2)
        self.partition = Partition("t", TOPIC_ID, 0, opened, self.number)
        self.fetcher = None


class World:
    def __init__(self, folder: Path, seed: int) -> None:
        self.random = Random(seed)
        self.now = 0.0
        self.replicas = {number: Replica(number, folder / str(number)) for number in REPLICAS}
        self.placement = Placement(0, REPLICAS, REPLICAS, 1, leader_epoch=0, partition_epoch=0)
        self.committed: list[bytes] = []
        self.sent = 0
        self.tell()

    def tell(self) -> None:
        """Let everybody know what the controller has decided; some hear of it later."""
        for replica in self.replicas.values():
            if self.random.random() < 0.8 or replica.number == self.placement.leader:
                replica.place(self.placement, self.now)

    @property
    def leader(self) -> Replica:
        return self.replicas[self.placement.leader]

    def produce(self) -> None:
        for _ in range(self.random.randint(1, 5)):
            values = [b"%d" % (self.sent + n) for n in range(self.random.randint(1, 3))]
            self.sent += len(values)
            self.leader.partition.append(batch(*values), NOW)

    def fetch(self) -> None:
        """One follower asks whom it takes for the leader, and the answer may be lost."""
        follower = self.random.choice(list(self.replicas.values()))
        fetcher, leader = follower.fetcher, self.replicas[max(1, follower.partition.placement.leader)]
        request = fetcher.request(self.now) if fetcher is not None and leader is not follower else None
        if fetcher is None or request is None:
            return
        response = self.serve(leader.partition, request, follower.number)
        if self.random.random() < 0.1:
            fetcher.fail(self.now)
        else:
            fetcher.heard(response, self.now, NOW)

    def serve(self, partition: Partition, request, follower: int):
        """As broker/api/fetch.py does it; there are no sessions here."""
        rows = []
        for topic in request.topics:
            for p in topic.partitions:
                epochs = p.current_leader_epoch, p.last_fetched_epoch
                wanted = Wanted(TOPIC_ID, 0, p.fetch_offset, p.partition_max_bytes, *epochs)
                row = read({TOPIC_ID: {0: partition}}, wanted, 1 << 20, True, Isolation.LOG_END, True)
                if not row.error_code and row.diverging_epoch is None and partition.led is not None:
                    log = partition.log
                    partition.led.fetched(follower, -1, p.fetch_offset, log.end_offset, self.now)
                    end = partition.led.high_watermark(log.end_offset, 2, LAG, lambda _: 0, self.now)
                    if end is not None and end > log.high_watermark:
                        log.advance_high_watermark(end)
                    row.high_watermark = log.high_watermark
                row.records = row.records.read() if row.records else b""
                rows.append(row)
        return m.FetchResponse(responses=[m.FetchResponse_FetchableTopicResponse("", TOPIC_ID, rows)])

    def propose(self) -> None:
        """A leader, or one that takes itself for it, wants another ISR."""
        partition = self.random.choice([one.partition for one in self.replicas.values()])
        led, log = partition.led, partition.log
        if led is not None:
            led.propose(log.high_watermark, log.end_offset, LAG, lambda _: 0, self.now)

    def agree(self) -> None:
        """The controller hears of it, which may take its time, and agrees if nothing has changed meanwhile."""
        led = self.leader.partition.led
        if led is None or led.proposal is None or led.epoch != self.placement.leader_epoch:
            return
        if led.proposal.partition_epoch == self.placement.partition_epoch:
            self.change(isr=led.proposal.isr)
            self.tell()

    def change(self, isr: tuple[int, ...], leader: int | None = None) -> None:
        old = self.placement
        epoch = old.leader_epoch + (leader is not None)
        chosen = old.leader if leader is None else leader
        self.placement = Placement(0, REPLICAS, isr, chosen, epoch, old.partition_epoch + 1)

    def elect(self) -> None:
        """Another one of the ISR leads: the last leader may be cut off, and go on to think that it leads."""
        self.change(self.placement.isr, self.random.choice(self.placement.isr))
        self.tell()

    def crash(self) -> None:
        replica = self.random.choice(list(self.replicas.values()))
        replica.crash()
        if replica is self.leader:
            others = tuple(one for one in self.placement.isr if one != replica.number)
            if not others:
                replica.place(self.placement, self.now)
                return
            self.change((*others, replica.number), others[0])
            self.tell()

    def check(self) -> None:
        """Whatever any replica holds as committed is what was committed there before."""
        for replica in self.replicas.values():
            log = replica.partition.log
            values = [value or b"" for offset, value in contents(log) if offset < log.high_watermark]
            shared = min(len(values), len(self.committed))
            assert values[:shared] == self.committed[:shared], f"replica {replica.number} has another history"
            if len(values) > len(self.committed):
                self.committed = values

    def settle(self) -> None:
        """All faults are over: every log becomes the leader's."""
        for replica in self.replicas.values():
            replica.place(self.placement, self.now)
        for _ in range(3000):
            self.now += LIMITS.backoff_ms + 1
            self.fetch()
            self.propose()
            self.agree()
        leader = contents(self.leader.partition.log)
        assert all(contents(one.partition.log) == leader for one in self.replicas.values())
        assert self.leader.partition.log.high_watermark == self.leader.partition.log.end_offset
        assert [value for _, value in leader][: len(self.committed)] == self.committed


@pytest.mark.parametrize("seed", range(12))
def test_what_was_committed_stays(tmp_path: Path, seed: int) -> None:
    world = World(tmp_path, seed)
    acts = (world.produce, world.fetch, world.propose, world.agree, world.elect, world.crash)
    for step in range(STEPS):
        world.now += world.random.choice((1.0, 100.0, 20_000.0))
        world.random.choices(acts, (30, 60, 15, 8, 4, 3))[0]()
        if step % 10 == 0:
            world.check()
    world.check()
    world.settle()
    world.check()


# The checker, tried on code that is wrong. Each plant must be found within a few seeds.

PLANTS: dict[str, tuple[object, str, object]] = {
    "a follower that is to leave no longer counts": (
        Leading,
        "counted",
        property(lambda self: self.isr if self.proposal is None else self.proposal.isr),
    ),
    "a follower joins before it is level": (Leading, "_may_join", lambda self, *_: True),
    "what is written is committed": (Leading, "high_watermark", lambda self, end, *_: end),
    "nothing is ever dropped": (following, "fork", lambda log, *_: log.end_offset),
    "all above the high watermark is dropped": (following, "fork", lambda log, *_: log.high_watermark),
}


@pytest.mark.parametrize("plant", PLANTS)
def test_plants_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plant: str) -> None:
    monkeypatch.setattr(*PLANTS[plant])
    with pytest.raises(AssertionError):
        for seed in range(40):
            test_what_was_committed_stays(tmp_path / str(seed), seed)

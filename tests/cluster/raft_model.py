"""Controllers of a quorum over a network and disks that fail, and what must be true of them all the time.

The production code of `cluster/raft.py` runs on logs in memory. Messages are delayed, lost, delivered twice and in any
order; links are cut, also one way; processes are paused, killed and lose power, with what was not synced; clocks run at
different speeds; voters come and go. What must hold:

- an epoch has at most one leader, and nobody votes for two candidates in it;
- what was committed once is never replaced, on any node, and every new leader has it;
- a vote is on disk when it is given;
- what a leader calls committed is synced by a majority of its voters, and ends with a record of its own epoch;
- a high watermark does not go back while its process lives;
- once the faults end, all controllers soon agree on a leader and have what it has.

`python -m tests.cluster.raft_model SEEDS [FIRST]` runs many seeds; one that fails is printed.
"""

from __future__ import annotations

import heapq
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from random import Random
from time import perf_counter
from typing import Any

from moldau.cluster.observing import Limits
from moldau.cluster.raft import Election, Endpoint, Raft, Role, Send, Voter, Voters
from moldau.cluster.voters import control_batch, load_history
from moldau.wire import codec
from moldau.wire import messages as m
from moldau.wire.records import Record, batches, build, records
from tests.cluster.memory_log import MemoryLog, as_log

LISTENER = "CONTROLLER"
CLUSTER = "a-cluster"
CALM = Limits(20, 400, 300)
HASTY = CALM._replace(max_wait_ms=100, election_timeout_ms=120, election_backoff_max_ms=120, fetch_timeout_ms=400)
REQUEST_MS = 2500.0
ROUNDING = 1e-6
WALL = 1_700_000_000_000
FAULTS_MS, CALM_MS = 12_000.0, 6_000.0
NEWEST = {1: 18, 18: 4, 52: 2, 53: 1, 54: 1, 59: 1, 80: 1, 81: 0, 82: 0}
OBSERVER = 9
NEW = Election()


@dataclass(slots=True)
class Disk:
    """What outlives a process."""

    directory: bytes
    log: MemoryLog = field(default_factory=MemoryLog)
    election: Election = NEW
    snapshots: dict[tuple[int, int], bytes] = field(default_factory=dict)


@dataclass(slots=True)
class Parked:
    """A fetch that waits at the leader."""

    request: Any
    until: float
    reply: Callable[[Any], None]


class Node:
    """A controller: its disk, its clock, and the process that runs on it, if one does."""

    def __init__(self, world: World, number: int) -> None:
        self.world = world
        self.number = number
        self.disk = Disk(bytes([number]) * 16)
        self.endpoints = (Endpoint(LISTENER, "host", number),)
        self.raft: Raft | None = None
        self.life = 0
        self.paused_until = 0.0
        self.rate, self.shift = 1.0, 0.0
        self.parked: list[Parked] = []
        self.wake_at = float("inf")
        self.synced_to = (0, 0)  # the sync that was last begun
        self.seen = (0, 0)  # high watermark and epoch that were checked

    def now(self) -> float:
        return self.shift + self.world.time * self.rate

    def wall(self) -> int:
        return WALL + int(self.now())

    @property
    def voter(self) -> Voter:
        return Voter(self.number, self.disk.directory if self.world.is_dynamic else bytes(16), self.endpoints)

    def start(self) -> None:
        world, disk = self.world, self.disk
        self.life += 1
        self.parked, self.seen, self.synced_to, self.wake_at = [], (0, 0), (0, 0), float("inf")
        newest = max(disk.snapshots, default=None)
        disk.log.high_watermark = disk.log.start_offset
        self.raft = Raft(
            self.number,
            disk.directory,
            CLUSTER,
            as_log(disk.log),
            voters=world.first_voters,
            servers=[("host", number) for number in world.nodes],
            listeners=self.endpoints,
            controller_listener=LISTENER,
            election=disk.election,
            save=self.save,
            random=world.dice,
            limits=world.limits,
            snapshot=newest,
            read_snapshot=self.read_snapshot,
        )
        self.raft.start(self.now(), self.wall())
        self.after()

    def save(self, election: Election) -> None:
        self.disk.election = election
        self.world.tempt(self)

    def read_snapshot(self, end_offset: int, epoch: int, position: int, most: int) -> tuple[bytes, int] | None:
        data = self.disk.snapshots.get((end_offset, epoch))
        return None if data is None else (data[position : position + most], len(data))

    def voters_on_disk(self) -> Voters:
        newest = max(self.disk.snapshots, default=None)
        header = None if newest is None else self.disk.snapshots[newest]
        return load_history(as_log(self.disk.log), self.world.first_voters, newest, header).current

    def stop(self, power: bool) -> None:
        self.raft = None
        self.life += 1
        self.parked = []
        if power:
            self.disk.log.lose_power(self.world.random)

    # The host's part.

    def run(self, life: int, act: Callable[[Raft], Any]) -> None:
        """Let the process of this life do something; one that is paused does it later."""
        raft = self.raft
        if raft is None or life != self.life:
            return
        if self.world.time < self.paused_until:
            self.world.at(self.paused_until, partial(self.run, life, act))
            return
        act(raft)
        self.after()

    def after(self) -> None:
        """What a host does after each call: check, sync, answer who waits, look at the time."""
        raft, world = self.raft, self.world
        if raft is None:
            return
        world.check(self, raft)
        log = self.disk.log
        if log.recovery_point < log.end_offset and (log.end_offset, log.cuts) != self.synced_to:
            self.synced_to = log.end_offset, log.cuts
            delay = world.random.choice(world.sync_delays)
            world.at(world.time + delay, partial(self.run, self.life, partial(self.sync, *self.synced_to)))
        self.answer_parked(raft)
        due = max(world.time, (raft.next_ms() - self.shift) / self.rate + ROUNDING)
        if due < self.wake_at:
            self.wake_at = due
            world.at(self.wake_at, partial(self.run, self.life, self.tick))

    def tick(self, raft: Raft) -> None:
        self.wake_at = float("inf")
        for sent in raft.tick(self.now(), self.wall()):
            self.world.send(self, sent)

    def sync(self, end_offset: int, cuts: int, raft: Raft) -> None:
        self.disk.log.sync(end_offset, cuts)
        raft.synced(self.now())

    def answer_parked(self, raft: Raft) -> None:
        waiting, self.parked = self.parked, []
        for one in waiting:
            is_last = self.world.time >= one.until
            response = raft.fetch(one.request, self.now(), is_new=False, is_last=is_last)
            if response is None:
                self.parked.append(one)
            else:
                one.reply(response)

    def serve(self, request: Any, reply: Callable[[Any], None], raft: Raft) -> None:
        now, wall = self.now(), self.wall()
        match request.SCHEMA.key:
            case 1:
                response = raft.fetch(request, now, is_new=True, is_last=False)
                if response is None:
                    until = self.world.time + request.max_wait_ms
                    self.parked.append(Parked(request, until, reply))
                    self.world.at(until, partial(self.run, self.life, lambda _: None))
                    return
            case 18:
                features = [m.ApiVersionsResponse_SupportedFeatureKey("kraft.version", 0, 1)]
                response = m.ApiVersionsResponse(supported_features=features)
            case 52:
                response = raft.vote(request, now)
                self.world.check_vote(self, request, response)
            case 53:
                response = raft.begin_quorum_epoch(request, now)
            case 54:
                response = raft.end_quorum_epoch(request, now)
            case 59:
                response = raft.fetch_snapshot(request, now)
            case _:
                response = raft.update_voter(request, now, wall)
        reply(response)

    def hear(self, sent: Send, response: Any, raft: Raft) -> None:
        if response is None:
            raft.lost(sent, self.now())
            return
        snapshot = raft.heard(sent, response, self.now(), self.wall())
        if snapshot is not None:
            self.install(raft, (snapshot.end_offset, snapshot.epoch), bytes(snapshot.data))

    def install(self, raft: Raft, name: tuple[int, int], data: bytes) -> None:
        self.disk.snapshots[name] = data
        raft.snapshot = name
        self.disk.log.begin_at(*name, chain_of(data))

    def take_snapshot(self) -> None:
        """Replace the beginning of the log by a snapshot of what is committed."""
        log, raft = self.disk.log, self.raft
        end = log.high_watermark
        if raft is None or end <= log.start_offset:
            return
        epoch = log.entries[log.slot(end - 1)].epoch
        chain = log.chain_at(end)
        controls = raft.snapshot_records(end, 0)
        data = bytes(control_batch(controls) if controls else b"") + bytes(
            build([Record(0, 0, None, b"%d" % (chain or 0))])
        )
        self.disk.snapshots = {(end, epoch): data}
        raft.snapshot = end, epoch
        log.delete_before(end)


def chain_of(snapshot: bytes) -> int:
    last = list(batches(memoryview(snapshot)))[-1]
    return int(next(iter(records(last))).value or b"0")


class Dice:
    """Random numbers for time-outs, if wanted of few values: so several voters stand for election at once."""

    def __init__(self, random: Random) -> None:
        self.chance = random
        self.is_coarse = random.random() < 0.5

    def random(self) -> float:
        return self.chance.choice((0.1, 0.1, 0.11, 0.5)) if self.is_coarse else self.chance.random()


class World:
    """Everything: nodes, network, time, faults and checks."""

    def __init__(self, seed: int) -> None:
        self.random = random = Random(seed)
        self.time = 0.0
        self.events: list[tuple[float, int, Callable[[], None]]] = []
        self.count = self.steps = 0
        self.is_dynamic = random.random() < 0.6
        self.is_upgraded = random.random() < 0.5  # from fixed voters
        self.loss = random.choice((0.0, 0.02, 0.2))
        self.slowness = random.choice((1.0, 10.0, 300.0))
        self.limits = random.choice((CALM, HASTY, HASTY))
        self.dice = Dice(random)
        self.sync_delays: tuple[float, ...] = random.choice(((0.0, 1.0, 5.0, 60.0), (0.0, 5.0, 800.0)))
        self.malice = random.choice((0.0, 0.02, 0.1))  # how likely somebody dies at the worst moment
        self.pace = random.choice((30, 120))
        self.cut: set[tuple[int, int]] = set()
        self.leaders: dict[int, tuple[int, int]] = {}  # epoch -> node and its life
        self.votes: dict[tuple[int, int], Any] = {}  # epoch and voter -> candidate
        self.committed: dict[int, int] = {0: 0}  # offset -> what stands for all before it
        self.end = 0  # of what is committed
        numbers = range(1, 1 + random.choice((3, 3, 5)))
        self.first_voters = Voters()
        self.nodes = {number: Node(self, number) for number in (*numbers, OBSERVER)}
        self.first_voters = Voters(tuple(self.nodes[number].voter for number in numbers), int(self.is_dynamic))
        likely = {self.propose: 60, self.crash: 5, self.restart: 10, self.pause: 3, self.split: 4, self.heal: 6}
        self.acts = likely | {self.snapshot: 3, self.order: 4, self.resign: 1}
        for node in self.nodes.values():
            node.rate, node.shift = random.uniform(0.9, 1.1), random.uniform(0, 1e6)
            node.start()

    # Time and messages.

    def at(self, time: float, act: Callable[[], None]) -> None:
        self.count += 1
        heapq.heappush(self.events, (time, self.count, act))

    def run_until(self, time: float) -> None:
        while self.events and self.events[0][0] <= time:
            self.time, _, act = heapq.heappop(self.events)
            self.steps += 1
            act()
        self.time = time

    def delay(self) -> float:
        random = self.random
        return random.random() * 2 if random.random() < 0.8 else random.expovariate(1 / self.slowness)

    def passes(self, source: int, target: int) -> bool:
        return (source, target) not in self.cut and self.random.random() >= self.loss

    def send(self, source: Node, sent: Send) -> None:
        """Deliver a request and its answer; whoever sent it hears of it once."""
        done: list[bool] = []
        target, life = self.nodes[sent.to[1]], source.life

        def end(response: Any) -> None:
            if not done:
                done.append(True)
                source.run(life, partial(source.hear, sent, response))

        def reply(response: Any) -> None:
            if self.passes(target.number, source.number):
                self.at(self.time + self.delay(), partial(end, self.on_wire(response)))

        request = self.on_wire(sent.request)
        copies = (self.random.random() >= 0.02) or 2
        for _ in range(copies):
            if self.passes(source.number, target.number):
                self.at(self.time + self.delay(), partial(self.deliver, target, request, reply))
        self.at(self.time + REQUEST_MS, partial(end, None))

    def deliver(self, target: Node, request: Any, reply: Callable[[Any], None]) -> None:
        target.run(target.life, partial(target.serve, request, reply))

    def on_wire(self, message: Any) -> Any:
        """Some messages are encoded and decoded; of all of them the records are."""
        for topic in getattr(message, "responses", ()):
            for row in topic.partitions:
                row.records = bytearray(row.records.read() if hasattr(row.records, "read") else row.records)
        if self.random.random() < 0.05:
            version = NEWEST[message.SCHEMA.key]
            return codec.decode(type(message), version, codec.encode(message, version))
        return message

    # Checks.

    def check(self, node: Node, raft: Raft) -> None:
        log = node.disk.log
        high_watermark, epoch = node.seen
        assert log.high_watermark >= high_watermark, f"the high watermark of {node.number} goes back"
        if raft.role is Role.LEADER and epoch != raft.epoch:
            self.check_leader(node, raft)
        assert raft.epoch >= epoch, f"the epoch of {node.number} goes back"
        if log.high_watermark > high_watermark:
            self.check_commit(node, raft, high_watermark)
        node.seen = log.high_watermark, raft.epoch if raft.role is Role.LEADER else min(epoch, raft.epoch)

    def check_leader(self, node: Node, raft: Raft) -> None:
        known = self.leaders.setdefault(raft.epoch, (node.number, node.life))
        assert known == (node.number, node.life), f"{known[0]} and {node.number} lead epoch {raft.epoch}"
        log, end = node.disk.log, self.end
        assert raft.voters == node.voters_on_disk(), f"{node.number} counts voters that its log does not have"
        assert log.end_offset >= end, f"the new leader {node.number} lacks what is committed"
        if end >= log.start_offset:
            assert log.chain_at(end) == self.committed[end], f"the new leader {node.number} has another history"

    def check_commit(self, node: Node, raft: Raft, before: int) -> None:
        """What a node newly takes for committed is what was committed there, and on the disks of a majority."""
        log = node.disk.log
        ends = [log.start_offset, *(entry.next for entry in log.entries[log.slot(max(before, log.start_offset)) :])]
        for end in ends:
            if before < end <= log.high_watermark:
                chain = log.chain_at(end) or 0
                assert self.committed.setdefault(end, chain) == chain, f"{node.number} has another history at {end}"
        assert log.chain_at(log.high_watermark) is not None, f"{node.number} has committed a part of a batch"
        if log.high_watermark > self.end:
            self.tempt(node)
            self.end = log.high_watermark
            assert raft.leader_id == raft.me, f"{node.number} knows of more than its leader"
            newest = log.entries[log.slot(self.end - 1)].epoch
            assert newest == raft.epoch, f"{node.number} commits epoch {newest} by counting in epoch {raft.epoch}"
            self.check_majority(raft)

    def check_majority(self, raft: Raft) -> None:
        disks = [self.nodes[one.id].disk.log for one in raft.voters.members]
        chain = self.committed[self.end]
        safe = [log for log in disks if log.recovery_point >= self.end and log.chain_at(self.end) in (chain, None)]
        assert len(safe) >= raft.voters.majority, f"{self.end} is committed without a majority"

    def check_vote(self, node: Node, request: Any, response: Any) -> None:
        row = request.topics[0].partitions[0]
        if row.pre_vote or response.error_code or not response.topics[0].partitions[0].vote_granted:
            return
        candidate = row.replica_id, bytes(row.replica_directory_id)
        kept = node.disk.election
        assert (kept.epoch, kept.voted) == (row.replica_epoch, candidate), f"the vote of {node.number} is not on disk"
        self.tempt(node)
        known = self.votes.setdefault((row.replica_epoch, node.number), candidate)
        assert known == candidate, f"{node.number} votes twice in epoch {row.replica_epoch}"

    # Faults.

    def disturb(self) -> None:
        """One thing goes wrong, or right, or somebody wants something."""
        self.random.choices(list(self.acts), list(self.acts.values()))[0]()

    def pick(self) -> Node:
        """Choose somebody, and often a leader: there things go wrong that matter."""
        leaders = [node for node in self.nodes.values() if node.raft is not None and node.raft.is_leader]
        return self.random.choice(leaders if leaders and self.random.random() < 0.4 else list(self.nodes.values()))

    def propose(self) -> None:
        for node in self.nodes.values():
            node.run(node.life, self.write)

    def write(self, raft: Raft) -> None:
        if raft.is_leader:
            value = b"%d" % self.random.getrandbits(40)
            raft.append(build([Record(0, 0, None, value)] * self.random.randint(1, 3)), 0)

    def crash(self) -> None:
        node = self.pick()
        if node.raft is not None:
            node.stop(power=self.random.random() < 0.7)

    def tempt(self, node: Node) -> None:
        """Epoch, vote or leader have changed: a good moment to die, or to be cut off."""
        random, life = self.random, node.life
        if random.random() < self.malice:
            self.at(self.time + random.choice((0, 1, 3, 10)), partial(self.strike, node, life, random.random()))

    def strike(self, node: Node, life: int, chance: float) -> None:
        if chance < 0.3:
            self.cut |= {pair for other in self.nodes for pair in ((node.number, other), (other, node.number))}
            self.at(self.time + 1000, self.heal)
        elif node.raft is not None and node.life == life:
            node.stop(power=chance < 0.65)
            self.at(self.time + self.random.choice((1, 10, 700)), partial(self.revive, node))

    def revive(self, node: Node) -> None:
        if node.raft is None:
            node.start()

    def restart(self) -> None:
        for node in self.nodes.values():
            if node.raft is None and self.random.random() < 0.7:
                node.start()

    def pause(self) -> None:
        self.pick().paused_until = self.time + self.random.choice((50, 500, 3000, 8000))

    def split(self) -> None:
        """Cut some links, in one direction or in both."""
        numbers = list(self.nodes)
        some = {self.pick().number, *self.random.sample(numbers, self.random.randint(0, len(numbers) - 2))}
        both = self.random.random() < 0.6
        for source in numbers:
            for target in numbers:
                if (source in some) != (target in some) and (both or source in some):
                    self.cut.add((source, target))

    def heal(self) -> None:
        self.cut.clear()

    def snapshot(self) -> None:
        self.pick().take_snapshot()

    def order(self) -> None:
        """Ask whoever takes itself for the leader to add or remove a voter, or to begin kraft.version 1."""
        for node in self.nodes.values():
            node.run(node.life, partial(self.change_voters, self.pick(), node))

    def change_voters(self, whom: Node, leader: Node, raft: Raft) -> None:
        now, directory = leader.now(), whom.disk.directory
        if not raft.voters.is_dynamic:
            if self.is_upgraded and raft.is_leader:
                raft.upgrade(now, 0)
        elif raft.voters.get(whom.number) is None:
            listeners = [m.AddRaftVoterRequest_Listener(*one) for one in whom.endpoints]
            raft.add_voter(m.AddRaftVoterRequest(CLUSTER, 1000, whom.number, directory, listeners), now, 0)
        elif len(raft.voters.members) > 2:
            raft.remove_voter(m.RemoveRaftVoterRequest(CLUSTER, whom.number, directory), now, 0)

    def resign(self) -> None:
        """Stop a process in order."""
        node = self.pick()
        if node.paused_until > self.time:
            return
        node.run(node.life, lambda raft: raft.resign(node.now()))
        self.at(self.time + self.random.choice((1, 30, 300)), partial(node.run, node.life, lambda _: node.stop(False)))

    # The whole.

    def run(self) -> None:
        while self.time < FAULTS_MS:
            self.run_until(self.time + self.random.expovariate(1 / self.pace))
            self.disturb()
        self.calm_down()

    def calm_down(self) -> None:
        """All faults are over: soon there is one leader, and everybody has what it has."""
        self.cut.clear()
        self.loss, self.slowness, self.malice, self.sync_delays = 0.0, 1.0, 0.0, (0.0, 1.0)
        self.dice.is_coarse = False
        for node in self.nodes.values():
            node.paused_until = 0.0
            if node.raft is not None and node.raft.is_leaving:
                node.stop(power=False)
            if node.raft is None:
                node.start()
        self.run_until(self.time + CALM_MS)
        before = self.end
        self.propose()
        self.run_until(self.time + 4000)
        leading = [node for node in self.nodes.values() if node.raft is not None and node.raft.is_leader]
        assert len(leading) == 1, f"{len(leading)} leaders after all faults"
        log = leading[0].disk.log
        assert log.high_watermark == log.end_offset > before, "nothing is committed any more"
        for node in self.nodes.values():
            other = node.disk.log
            state = other.end_offset, other.high_watermark, other.end_chain
            assert state == (log.end_offset, log.high_watermark, log.end_chain), f"{node.number} lags: {state}"


def main(seeds: int, first: int) -> int:
    started, steps, failed = perf_counter(), 0, 0
    for seed in range(first, first + seeds):
        world = World(seed)
        try:
            world.run()
        except Exception as problem:  # whatever it is, the seed is what one needs to know
            failed += 1
            print(f"seed {seed}: {type(problem).__name__}: {problem}", flush=True)
        steps += world.steps
    seconds = perf_counter() - started
    print(f"{seeds} seeds, {steps} steps, {steps / seconds:.0f} a second, {failed} failed")
    return failed


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0) > 0)

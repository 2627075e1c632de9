"""kafka-reassign-partitions: proposes, starts, verifies and cancels moves of partitions between brokers."""

from __future__ import annotations

import random
import time
from collections.abc import Iterable, Mapping, Sequence

from moldau.admin import TopicPartition, configs, log_dirs, reassignments, topics
from moldau.admin.configs import Kind, Resource
from moldau.admin.reassignments import Replica
from moldau.cli.kafka.exceptions import words, words_of
from moldau.cli.kafka.flags import Flag, Options, Tool, Usage, require
from moldau.cli.kafka.reassignment_json import BadPlan, Plan, checked, read_plan, read_topics, written
from moldau.cli.kafka.running import (
    COMMAND_CONFIG,
    CONTROLLER,
    FAILED,
    OK,
    ZOOKEEPER,
    Terse,
    connect,
    read_json,
    tell_usage,
)
from moldau.client import Client, ClientError, Error

ACTIONS = ("generate", "execute", "verify", "cancel", "list")
REQUIRED = {
    "verify": ("reassignment-json-file",),
    "generate": ("topics-to-move-json-file", "broker-list"),
    "execute": ("reassignment-json-file",),
    "cancel": ("reassignment-json-file",),
    "list": (),
}
PERMITTED = {
    "verify": ("preserve-throttles",),
    "generate": ("disable-rack-aware",),
    "execute": (
        "additional",
        "throttle",
        "replica-alter-log-dirs-throttle",
        "timeout",
        "disallow-replication-factor-change",
    ),
    "cancel": ("preserve-throttles", "timeout"),
    "list": (),
}
CONNECTION = ("bootstrap-server", "bootstrap-controller", "command-config")
OF_BROKERS = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")
OF_DIRECTORIES = "replica.alter.log.dirs.io.max.bytes.per.second"
OF_TOPICS = ("leader.replication.throttled.replicas", "follower.replication.throttled.replicas")
EXISTING = (
    "Cannot execute because there is an existing partition assignment.  Use --additional to override this and create a "
    "new partition assignment in addition to the existing one. The --additional flag can also be used to change the "
    "throttle by resubmitting the current reassignment."
)
VERIFY = (
    "Warning: You must run --verify periodically, until the reassignment completes, to ensure the throttle is removed."
)
EXAMPLE = (
    '{"partitions": [{"topic": "foo", "partition": 1, "replicas": [1, 2], "log_dirs": ["any", "/d1"]}], "version": 1}'
)
Moves = dict[TopicPartition, tuple[set[int], set[int]]]  # sources and destinations of partitions


def run(options: Options) -> int:
    action = check(options)
    try:
        with connect(options, client_id="reassign-partitions-tool") as client:
            DOING[action](client, options)
    except Terse as error:
        print(error)
        return FAILED
    except BadPlan as error:
        print(f"Error: {error}")
        return FAILED
    except ClientError as error:
        print(f"Error: {words_of(error)}")
        return FAILED
    return OK


def check(options: Options) -> str:
    """Return the action, if the other flags go with it."""
    given = options.given(*ACTIONS)
    if len(given) != 1:
        named = ", ".join(f"--{name}" for name in ACTIONS)
        raise Usage(f"Command must include exactly one action: {named}")
    if not options.given("bootstrap-server", "bootstrap-controller"):
        raise Usage("Please specify either --bootstrap-server or --bootstrap-controller")
    action = given[0]
    require(options, *REQUIRED[action])
    allowed = (action, *REQUIRED[action], *PERMITTED[action], *CONNECTION)
    for flag in options.tool.flags:
        if flag.name in options and flag.name not in allowed:
            raise Usage(f'Option "[{flag.name}]" can\'t be used with action "[{action}]"')
    return action


def plan_of(options: Options) -> Plan:
    return read_plan(read_json(options["reassignment-json-file"]))


def name(place: TopicPartition) -> str:
    return f"{place[0]}-{place[1]}"


def ids(brokers: Iterable[int]) -> str:
    return ",".join(map(str, brokers))


def list_moves(client: Client, options: Options) -> None:
    found = reassignments.listed(client)
    if not found:
        print("No partition reassignments found.")
        return
    print("Current partition reassignments:")
    for place in sorted(found):
        one = found[place]
        adding = f" adding: {ids(one.adding)}." if one.adding else ""
        removing = f" removing: {ids(one.removing)}." if one.removing else ""
        print(f"{name(place)}: replicas: {ids(one.replicas)}.{adding}{removing}")


def verify(client: Client, options: Options) -> None:
    plan = plan_of(options)
    moving = reassignments.listed(client)
    print("Status of partition reassignment:")
    current = replicas_of(client, [place for place in plan.partitions if place not in moving])
    for place in sorted(plan.partitions):
        print(move_line(place, plan.partitions[place], None if place in moving else current.get(place, ())))
    busy = print_directories(client, plan.directories)
    if not moving and not busy and "preserve-throttles" not in options:
        clear_throttles(client, plan)


def move_line(place: TopicPartition, target: Sequence[int], current: Sequence[int] | None) -> str:
    """Describe the state of a move; `current` is None while it is under way."""
    if current is None:
        return f"Reassignment of partition {name(place)} is still in progress."
    if tuple(current) == tuple(target):
        return f"Reassignment of partition {name(place)} is completed."
    return (
        f"There is no active reassignment of partition {name(place)}, but replica set is {ids(current)} rather than "
        f"{ids(target)}."
    )


def replicas_of(client: Client, places: Iterable[TopicPartition]) -> dict[TopicPartition, tuple[int, ...]]:
    """Return the brokers of partitions, without partitions that do not exist."""
    wanted = set(places)
    there = {topic.name: topic for topic in topics.listed(client)}
    return {
        (topic, part.index): part.replicas
        for topic in {place[0] for place in wanted}
        if topic in there
        for part in there[topic].partitions
        if (topic, part.index) in wanted
    }


def print_directories(client: Client, targets: Mapping[Replica, str]) -> bool:
    """Print the state of moves between directories; return whether one is under way."""
    print(*(["Status of directory moves:"] if targets else []), sep="\n")
    found = log_dirs.described(client, sorted({broker for _, _, broker in targets}))
    busy = False
    for topic, partition, broker in sorted(targets, key=lambda one: (one[2], one[0], one[1])):
        target = targets[topic, partition, broker]
        places = [
            (one.path, replica.future)
            for one in found[broker]
            for replica in one.replicas
            if replica.place == (topic, partition)
        ]
        now = next((path for path, future in places if not future), None)
        later = next((path for path, future in places if future), None)
        busy = busy or later is not None
        print(directory_line((topic, partition, broker), target, now, later))
    return busy


def directory_line(replica: Replica, target: str, now: str | None, later: str | None) -> str:
    topic, partition, broker = replica
    what = f"Partition {topic}-{partition} on broker {broker}"
    if now is None:
        return f"{what} is not found in any live log dir on broker {broker}. There is likely an offline log directory."
    if later == target:
        return f"Reassignment of replica {topic}-{partition}-{broker} is still in progress."
    if later is not None:
        return f"{what} is being moved to log dir {later} instead of {target}."
    if now == target:
        return f"Reassignment of replica {topic}-{partition}-{broker} completed successfully."
    return f"{what} is not being moved from log dir {now} to {target}."


def clear_throttles(client: Client, plan: Plan) -> None:
    brokers = {*client.refresh().brokers, *(broker for one in plan.partitions.values() for broker in one)}
    names = sorted({topic for topic, _ in plan.partitions})
    print(f"Clearing broker-level throttles on broker{'' if len(brokers) == 1 else 's'} {ids(sorted(brokers))}")
    for broker in sorted(client.cluster.brokers):
        gone = configs.changes({}, (*OF_BROKERS, OF_DIRECTORIES))
        configs.alter(client, Resource(Kind.BROKER, str(broker)), gone)
    print(f"Clearing topic-level throttles on topic{'' if len(names) == 1 else 's'} {','.join(names)}")
    for topic in names:
        configs.alter(client, Resource(Kind.TOPIC, topic), configs.changes({}, OF_TOPICS))


def generate(client: Client, options: Options) -> None:
    """Propose a plan: the replicas of each topic in turn on the brokers, each partition starting at the next."""
    brokers = broker_ids(options["broker-list"])
    names = read_topics(read_json(options["topics-to-move-json-file"]))
    racks = {one.id: one.rack for one in client.refresh().brokers.values()}
    live = [broker for broker in brokers if broker in racks]
    rackless = [broker for broker in live if racks[broker] is None]
    if "disable-rack-aware" not in options and rackless and len(rackless) != len(live):
        raise BadPlan(
            "Not all brokers have rack information. Add --disable-rack-aware in command line to make replica "
            "assignment without rack information."
        )
    found = topics.described(client, names)
    current = {(topic.name, part.index): part.replicas for topic in found for part in topic.partitions}
    proposed: dict[TopicPartition, list[int]] = {}
    for topic in found:
        factor = topic.replication_factor
        if factor > len(live):
            raise BadPlan(f"Replication factor: {factor} larger than available brokers: {len(live)}.")
        spread = assign(alternate(live, racks), len(topic.partitions), factor)
        proposed |= {(topic.name, index): replicas for index, replicas in enumerate(spread)}
    print(f"Current partition replica assignment\n{written(current, places_of(client, current))}\n")
    print(f"Proposed partition reassignment configuration\n{written(proposed)}")


def places_of(client: Client, assignment: Mapping[TopicPartition, Sequence[int]]) -> dict[Replica, str]:
    """Return the directory of each replica."""
    brokers = sorted(
        {broker for replicas in assignment.values() for broker in replicas} & client.cluster.brokers.keys()
    )
    return {
        (*replica.place, broker): one.path
        for broker, found in log_dirs.described(client, brokers).items()
        for one in found
        for replica in one.replicas
        if replica.place in assignment and not replica.future
    }


def broker_ids(text: str) -> list[int]:
    try:
        found = [int(part) for part in text.split(",")]
    except ValueError:
        raise BadPlan(f"A list of brokers is written 0,1,2 and not {text}") from None
    if twice := sorted({broker for broker in found if found.count(broker) > 1}):
        raise BadPlan(f"Broker list contains duplicate entries: [{', '.join(map(str, twice))}]")
    return found


def alternate(brokers: Sequence[int], racks: Mapping[int, str | None]) -> list[int]:
    """Order brokers so that neighbours are in different racks, if possible."""
    by_rack: dict[str | None, list[int]] = {}
    for broker in sorted(brokers):
        by_rack.setdefault(racks.get(broker), []).append(broker)
    rows = [by_rack[rack] for rack in sorted(by_rack, key=str)]
    return [row[at] for at in range(max(map(len, rows), default=0)) for row in rows if at < len(row)]


def assign(brokers: Sequence[int], partitions: int, factor: int) -> list[list[int]]:
    """Assign brokers to partitions: leaders in turn from a random start, followers shifted round by round."""
    count = len(brokers)
    start, shift = random.randrange(count), random.randrange(count)
    found = []
    for index in range(partitions):
        if index and index % count == 0:
            shift += 1
        first = (index + start) % count
        rest = [(first + 1 + (shift + step) % max(1, count - 1)) % count for step in range(factor - 1)]
        found.append([brokers[at] for at in (first, *rest)])
    return found


def execute(client: Client, options: Options) -> None:
    plan = checked(plan_of(options))
    moving = reassignments.listed(client)
    if moving and "additional" not in options:
        raise Terse(EXISTING)
    live = client.refresh().brokers
    for replicas in plan.partitions.values():
        for broker in replicas:
            if broker not in live:
                raise BadPlan(f"Unknown broker id {broker}")
    current = replicas_of(client, plan.partitions)
    if missing := [name(place) for place in plan.partitions if place not in current]:
        raise BadPlan(f"Unable to find partition: {', '.join(missing)}")
    if "disallow-replication-factor-change" in options:
        refuse_other_sizes(plan, current)
    print(f"Current partition replica assignment\n\n{written(current, places_of(client, current))}\n")
    print("Save this to use as the --reassignment-json-file option during rollback")
    throttle(client, options, plan, moves(plan, moving, current))
    refuse(reassignments.alter(client, dict(plan.partitions)), "Error reassigning partition(s)")
    places = ",".join(name(place) for place in sorted(plan.partitions))
    plural = "" if len(plan.partitions) == 1 else "s"
    print(f"Successfully started partition reassignment{plural} for {places}")
    if plan.directories:
        move_directories(client, plan.directories, options["timeout"])


def refuse_other_sizes(plan: Plan, current: Mapping[TopicPartition, Sequence[int]]) -> None:
    bad = [place for place, replicas in plan.partitions.items() if len(replicas) != len(current[place])]
    if bad:
        lines = "\n".join(f"{name(place)}: {len(current[place])} to {len(plan.partitions[place])}" for place in bad)
        raise Terse(f"The plan changes how many replicas partitions have:\n{lines}")


def moves(
    plan: Plan,
    moving: Mapping[TopicPartition, reassignments.Reassignment],
    current: Mapping[TopicPartition, Sequence[int]],
) -> Moves:
    found: Moves = {place: (set(one.replicas) - set(one.adding), set(one.adding)) for place, one in moving.items()}
    for place, replicas in plan.partitions.items():
        sources = found[place][0] if place in found else set(current[place])
        found[place] = (sources, set(replicas) - sources)
    return found


def throttle(client: Client, options: Options, plan: Plan, moving: Moves) -> None:
    between, within = options["throttle"], options["replica-alter-log-dirs-throttle"]
    if between < 0 and within < 0:
        return
    print(VERIFY)
    if between >= 0:
        for topic in sorted({place[0] for place in moving}):
            limits = {setting: throttled(moving, topic, side) for side, setting in enumerate(OF_TOPICS)}
            configs.alter(client, Resource(Kind.TOPIC, topic), configs.changes(limits))
        for broker in sorted({broker for sides in moving.values() for side in sides for broker in side}):
            limits = {setting: str(between) for setting in OF_BROKERS}
            configs.alter(client, Resource(Kind.BROKER, str(broker)), configs.changes(limits))
        print(f"The inter-broker throttle limit was set to {between} B/s")
    if within >= 0:
        for broker in sorted({broker for _, _, broker in plan.directories}):
            limits = {OF_DIRECTORIES: str(within)}
            configs.alter(client, Resource(Kind.BROKER, str(broker)), configs.changes(limits))
        print(f"The replica-alter-dir throttle limit was set to {within} B/s")


def throttled(moving: Moves, topic: str, side: int) -> str:
    """Return `partition:broker` for all sources (side 0) or destinations (side 1) of a topic."""
    pairs = {f"{part}:{broker}" for (one, part), sides in moving.items() if one == topic for broker in sides[side]}
    return ",".join(sorted(pairs))


def refuse(done: Mapping[TopicPartition, reassignments.Outcome], what: str) -> None:
    bad = {place: outcome for place, outcome in done.items() if outcome[0]}
    if bad:
        lines = "\n".join(f"{name(place)}: {words(*bad[place])}" for place in sorted(bad))
        raise Terse(f"{what}:\n{lines}")


def move_directories(client: Client, wanted: Mapping[Replica, str], timeout_ms: int) -> None:
    left, deadline = dict(wanted), time.monotonic() + timeout_ms / 1000
    while True:
        done = reassignments.move_replicas(client, left)
        for topic, partition, broker in sorted(done, key=lambda one: (one[2], one[0], one[1])):
            error = done[topic, partition, broker]
            where = f"replica {topic}-{partition} with broker {broker} "
            if error is Error.NONE:
                path = left.pop((topic, partition, broker))
                print(f"Successfully started moving log directory to {path} for {where}")
            elif error is not Error.REPLICA_NOT_AVAILABLE:
                raise BadPlan(f"Failed to alter dir for {topic}-{partition}-{broker}: {words(error)}")
        if not left:
            return
        if time.monotonic() >= deadline:
            plural, names = "" if len(left) == 1 else "s", ",".join(f"{t}-{p}-{b}" for t, p, b in sorted(left))
            raise Terse(f"Timed out before log directory move{plural} could be started for: {names}")
        time.sleep(0.1)


def cancel(client: Client, options: Options) -> None:
    plan = checked(plan_of(options))
    moving = reassignments.listed(client)
    known = [place for place in plan.partitions if place in moving]
    if known:
        refuse(reassignments.alter(client, dict.fromkeys(known)), "Error cancelling partition reassignment(s) for")
        places = ",".join(name(place) for place in sorted(known))
        plural = "" if len(known) == 1 else "s"
        print(f"Successfully cancelled partition reassignment{plural} for: {places}")
    else:
        print("None of the specified partition reassignments are active.")
    print("None of the specified partition moves are active.", end="")
    if "preserve-throttles" not in options:
        clear_throttles(client, plan)


DOING = {"generate": generate, "execute": execute, "verify": verify, "cancel": cancel, "list": list_moves}

TOOL = Tool(
    "kafka-reassign-partitions",
    "This tool helps to move topic partitions between replicas.",
    (
        Flag("bootstrap-server", "servers", "Connect to these brokers.", optional=True),
        CONTROLLER,
        COMMAND_CONFIG,
        Flag("verify", help="Print the progress of a plan; when it is done, remove the throttles."),
        Flag("generate", help="Propose a plan."),
        Flag("execute", help="Start a plan."),
        Flag("cancel", help="Cancel a plan."),
        ZOOKEEPER,
        Flag("list", help="List moves under way."),
        Flag("reassignment-json-file", "file", f"Read the plan: {EXAMPLE}. Directories may be left out."),
        Flag("topics-to-move-json-file", "file", 'Move topics: {"topics": [{"topic": "foo"}], "version": 1}.'),
        Flag("broker-list", "0,1,2", "Move to these brokers."),
        Flag("disable-rack-aware", help="Ignore racks."),
        Flag("throttle", "bytes/s", "Limit the speed of moves between brokers.", int, -1),
        Flag("replica-alter-log-dirs-throttle", "bytes/s", "Limit the speed of moves within brokers.", int, -1),
        Flag("timeout", "ms", "Wait this long until replicas can be moved to their directories.", int, 10_000),
        Flag("additional", help="Start even if other moves are under way."),
        Flag("preserve-throttles", help="Keep the throttles."),
        Flag("disallow-replication-factor-change", help="Refuse a plan with another number of replicas.", since="4.2"),
    ),
    run,
    tell_usage,
)

"""`moldau topic`: topics of any Kafka."""

from __future__ import annotations

from collections import Counter
from fnmatch import fnmatchcase
from typing import Any

from moldau.admin import TopicPartition, configs, moves, offsets, resets, topics
from moldau.admin.mistakes import Mistake, misused
from moldau.cli import moving
from moldau.cli.analysis import Analysis, ratio
from moldau.cli.commands import DryRun, Partitions, Pattern, Sure, Topic, Topics, noun, parse
from moldau.cli.kafka.java_text import base64_id
from moldau.cli.options import flag, option
from moldau.cli.output import Column, pick, progress, size, time_of
from moldau.cli.session import Session, pairs
from moldau.client import ClientError, Fetcher, records

cli, verb = noun()


@verb(
    "create",
    "moldau topic create orders --partitions 6",
    "moldau topic create customers --config cleanup.policy=compact",
)
def create(
    session: Session,
    names: Topics,
    partitions: int = option("--partitions -p", "Number of partitions; -1 takes the cluster's default.", -1),
    replicas: int = option("--replicas", "Replicas of each partition; -1 takes the cluster's default.", -1),
    config: list[str] | None = option("--config -c", "Set a setting of the topic; repeatable.", metavar="NAME=VALUE"),
    if_not_exists: bool = flag("--if-not-exists", "Do not fail if the topic exists."),
    dry_run: bool = flag("--dry-run", "Validate only; create nothing."),
) -> None:
    """Create topics."""
    given = pairs(config or (), "--config")
    created = []
    existing = {topic.name for topic in topics.listed(session.client)} if if_not_exists else set()
    for name in names:
        if name in existing:
            session.tell(f"Topic {name} exists already.")
            continue
        new = topics.NewTopic(name, partitions, replicas, given)
        created += topics.create(session.client, [new], validate_only=dry_run)
    rows = [
        {"name": one.name, "id": base64_id(one.id), **pick(one, "partitions", "replicas=replication_factor")}
        for one in created
    ]
    what = "could be created" if dry_run else "created"
    lines = [f"Topic {row['name']} {what}: {row['partitions']} partitions, {row['replicas']} replicas." for row in rows]
    session.done("\n".join(lines), topics=rows)


@verb("list", "moldau topic list", "moldau topic list 'ord*' --sizes", "moldau topic list -o json")
def list_topics(
    session: Session,
    pattern: Pattern = "*",
    internal: bool = flag("--internal", "Include the cluster's own topics."),
    sizes: bool = flag("--sizes", "Show bytes on disk and records; this takes longer."),
) -> None:
    """List topics."""
    listed = [one for one in topics.listed(session.client, internal=internal) if fnmatchcase(one.name, pattern)]
    rows: list[dict[str, Any]] = [
        {
            "name": one.name,
            "partitions": len(one.partitions),
            "replicas": one.replication_factor,
            "under_replicated": sum(part.is_under_replicated for part in one.partitions),
            "internal": one.internal,
        }
        for one in listed
    ]
    if sizes:
        _measure(session, listed, rows)
    columns = ["name", "partitions", "replicas", "under_replicated"]
    more = [Column("size", "size", size), "records"] if sizes else []
    session.show(rows, [*columns, *more], "There are no topics. `moldau topic create NAME` creates one.")


def _measure(session: Session, listed: list[topics.TopicState], rows: list[dict[str, Any]]) -> None:
    on_disk = topics.sizes(session.client, (one.name for one in listed))
    bounds = offsets.ends(session.client, [(one.name, part.index) for one in listed for part in one.partitions])
    for one, row in zip(listed, rows, strict=True):
        places = [(one.name, part.index) for part in one.partitions]
        row["size"] = sum(max(on_disk.get(place, {-1: 0}).values()) for place in places)
        row["records"] = sum(bounds[place][1] - bounds[place][0] for place in places)


@verb("describe", "moldau topic describe orders", "moldau topic describe orders -o yaml")
def describe(
    session: Session, names: Topics, all_configs: bool = flag("--all", "Show settings with their default values too.")
) -> None:
    """Show partitions, offsets, sizes and settings of topics."""
    described = [_describe(session, one, all_configs) for one in topics.described(session.client, names)]
    if not session.for_people:
        session.show(described)
        return
    for number, one in enumerate(described):
        print("\n" if number else "", end="")
        session.show(
            {key: one[key] for key in ("name", "id", "internal", "replicas", "records")}
            | {"size": size(sum(part["size"] or 0 for part in one["partitions"]))}
        )
        print()
        session.show(one["partitions"], PARTITION_COLUMNS)
        if one["configs"]:
            print()
            session.show(one["configs"], ["name", "value", "source"])


PARTITION_COLUMNS = (
    "partition",
    "leader",
    "leader_epoch",
    "replicas",
    Column("isr", "in sync"),
    "offline",
    Column("start", "first"),
    Column("end", "next"),
    Column("size", "size", size),
)


def _describe(session: Session, topic: topics.TopicState, all_configs: bool) -> dict[str, Any]:
    places = [(topic.name, part.index) for part in topic.partitions]
    first = offsets.at(session.client, dict.fromkeys(places, offsets.EARLIEST))
    last = offsets.at(session.client, dict.fromkeys(places, offsets.LATEST))
    on_disk = topics.sizes(session.client, [topic.name])
    rows = [
        {
            "partition": part.index,
            "leader": None if part.leader < 0 else part.leader,
            "leader_epoch": part.leader_epoch,
            **{name: list(getattr(part, name)) for name in ("replicas", "isr", "offline")},
            "start": None if first[place].error else first[place].offset,
            "end": None if last[place].error else last[place].offset,
            "size": max(on_disk.get(place, {-1: 0}).values()),
        }
        for place, part in zip(places, topic.partitions, strict=True)
    ]
    entries = configs.described(session.client, configs.Resource(configs.Kind.TOPIC, topic.name))
    return {
        "name": topic.name,
        "id": base64_id(topic.id),
        "internal": topic.internal,
        "replicas": topic.replication_factor,
        "records": sum((row["end"] or 0) - (row["start"] or 0) for row in rows),
        "partitions": rows,
        "configs": [
            {"name": entry.name, "value": entry.value, "source": entry.source.lower()}
            for entry in entries
            if all_configs or entry.is_own
        ],
    }


@verb(
    "alter", "moldau topic alter orders --set retention.ms=86400000", "moldau topic alter orders --unset retention.ms"
)
def alter(
    session: Session,
    names: Topics,
    given: list[str] | None = option("--set -s", "Set a setting; repeatable.", metavar="NAME=VALUE"),
    unset: list[str] | None = option("--unset", "Reset a setting to its default; repeatable.", metavar="NAME"),
    dry_run: DryRun = False,
) -> None:
    """Change settings of topics."""
    changes = configs.changes(pairs(given or (), "--set"), unset or ())
    if not changes:
        raise misused("Nothing to change: give --set NAME=VALUE or --unset NAME.")
    for name in names:
        resource = configs.Resource(configs.Kind.TOPIC, name)
        configs.alter(session.client, resource, changes, validate_only=dry_run)
    what = "could be changed" if dry_run else "changed"
    session.done(f"Settings of {', '.join(names)} {what}.", topics=names, dry_run=dry_run)


@verb("delete", "moldau topic delete customers")
def delete(
    session: Session,
    names: Topics,
    if_exists: bool = flag("--if-exists", "Do not fail if the topic does not exist."),
    sure: Sure = False,
) -> None:
    """Delete topics and all their records."""
    if if_exists:
        existing = {topic.name for topic in topics.listed(session.client)}
        names = [name for name in names if name in existing]
    session.confirm(f"Delete {', '.join(names)} and all records in them?", sure)
    if names:
        topics.delete(session.client, names)
    session.done(f"Deleted {', '.join(names)}." if names else "Nothing to delete.", deleted=names)


@verb("add-partitions", "moldau topic add-partitions orders --total 12")
def add_partitions(
    session: Session,
    name: Topic,
    total: int | None = option("--total", "Number of partitions afterwards.", min=1),
    more: int | None = option("--more", "Number of partitions to add.", min=1),
) -> None:
    """Add partitions to a topic. New records with a key may then go to other partitions than older ones."""
    if (total is None) == (more is None):
        raise misused("Give either --total or --more.")
    have = len(topics.described(session.client, [name])[0].partitions)
    wanted = total if total is not None else have + (more or 0)
    topics.add_partitions(session.client, {name: wanted})
    session.done(f"Topic {name} has {wanted} partitions, {wanted - have} more.", name=name, partitions=wanted)


@verb(
    "trim",
    "moldau topic trim orders --before -7d --dry-run",
    "moldau topic trim orders --offset 10 --partition 0",
    "moldau topic trim orders --all",
)
def trim(
    session: Session,
    name: Topic,
    offset: int | None = option("--offset", "Delete all records before this offset.", min=0),
    before: str | None = option(
        "--before", "Delete all records before a time: 2026-11-15T10:00:00, or -7d.", metavar="TIME"
    ),
    everything: bool = flag("--all", "Delete all records."),
    partition: Partitions = None,
    dry_run: bool = flag("--dry-run", "Show what would be deleted; delete nothing."),
    sure: Sure = False,
) -> None:
    """Delete records from the start of partitions. This cannot be undone."""
    places = choose_partitions(session, name, partition)
    bounds = offsets.ends(session.client, places)
    new = _new_starts(session, bounds, offset, before, everything)
    rows = [
        {
            "topic": topic,
            "partition": part,
            "start": bounds[topic, part][0],
            "new_start": new[topic, part],
            "deleted": max(0, new[topic, part] - bounds[topic, part][0]),
        }
        for topic, part in places
    ]
    if not dry_run:
        session.confirm(f"Delete {sum(row['deleted'] for row in rows)} records of {name}?", sure)
        for result in topics.delete_records(session.client, new).values():
            if isinstance(result, ClientError):
                raise result
    session.show(rows)


def _new_starts(
    session: Session,
    bounds: dict[TopicPartition, tuple[int, int]],
    offset: int | None,
    before: str | None,
    everything: bool,
) -> dict[TopicPartition, int]:
    if [offset is not None, before is not None, everything].count(True) != 1:
        raise misused("Give one of --offset, --before and --all.")
    target: resets.Wanted = resets.Latest() if everything else resets.To(offset or 0)
    if before is not None:
        target = resets.At(parse(resets.moment_ms, before))
    return resets.plan(session.client, target, bounds, {})


def choose_partitions(session: Session, name: str, partitions: list[int] | None) -> list[TopicPartition]:
    """Return these partitions of a topic, or all if none are given."""
    have = topics.partitions(session.client, [name])
    for number in partitions or ():
        if (name, number) not in have:
            raise Mistake(f"Topic {name} has no partition {number}: they go from 0 to {len(have) - 1}.")
    return [place for place in have if not partitions or place[1] in partitions]


@verb(
    "move",
    "moldau topic move orders --to 1,2,3 --plan",
    "moldau topic move orders --to 3,1 --partition 0",
    "moldau topic move orders --cancel",
)
def move(
    session: Session,
    name: Topic,
    to: str | None = option("--to", "The brokers to move to, by their ids.", metavar="ID,..."),
    partition: Partitions = None,
    plan: bool = flag("--plan", "Show the moves; change nothing."),
    at_a_time: int = option("--at-a-time", "Move at most this many partitions at once.", 5, min=1),
    cancel: bool = flag("--cancel", "Cancel moves of the topic that are under way."),
) -> None:
    """Move a topic to other brokers, which become its only replicas.

    The first broker becomes the preferred leader of a partition that is named; of a whole topic the brokers take turns.
    Old replicas go when the new ones are in sync. Ctrl-C offers to cancel what is under way.
    """
    places = choose_partitions(session, name, partition)
    if cancel == (to is not None):
        raise misused("Give either --to ID,... or --cancel.")
    if to is None:
        called_off = [f"{topic}-{index}" for topic, index in moves.cancel(session.client, places)]
        sentence = f"Cancelled: {', '.join(called_off)}." if called_off else "No move is under way."
        session.done(sentence, cancelled=called_off)
        return
    planned = moves.move(moves.look(session.client), name, partition, _broker_ids(to))
    if plan:
        moving.show(session, planned)
        return
    copied = moving.carry_out(session, planned, at_a_time)
    sentence = f"{len(planned)} partitions of {name} moved, {size(copied)} copied."
    session.done(sentence, topic=name, moved=len(planned), bytes=copied)


def _broker_ids(text: str) -> list[int]:
    ids = [part.strip() for part in text.split(",")]
    if not all(one.isdecimal() for one in ids) or len(set(ids)) < len(ids):
        raise misused(f"--to {text!r} is not a list of different ids of brokers, as in 1,2,3.")
    return [int(one) for one in ids]


@verb("analyze", "moldau topic analyze orders", "moldau topic analyze orders --last 100000 -o json")
def analyze(
    session: Session,
    name: Topic,
    last: int | None = option("--last -n", "Read only this many records, from the end of each partition.", min=1),
    partition: Partitions = None,
) -> None:
    """Read a topic and report sizes, keys, rates, compression, and what compaction would keep."""
    places = choose_partitions(session, name, partition)
    bounds = offsets.ends(session.client, places)
    begin = {place: first if last is None else max(first, end - last) for place, (first, end) in bounds.items()}
    analysis, spread = _read_all(session, begin, {place: end for place, (_, end) in bounds.items()})
    facts = analysis.facts()
    facts["partitions"] = len(places)
    facts["most_in_one_partition"] = ratio(max(spread.values(), default=0), analysis.records)
    facts |= {"first": time_of(facts.pop("first_ms")), "last": time_of(facts.pop("last_ms"))}
    session.show(facts, ANALYSIS if session.for_people else ())


ANALYSIS = (
    "records",
    "partitions",
    Column("most_in_one_partition", "fullest partition has", lambda share: f"{share:.1%}"),
    "batches",
    "records_a_batch",
    Column("bytes_stored", "stored", size),
    Column("bytes_of_keys_and_values", "keys and values", size),
    "stored_to_raw",
    Column("average_record", "average record", size),
    Column("largest_record", "largest record", size),
    "compression",
    "with_key",
    "distinct_keys",
    "tombstones",
    "with_headers",
    Column("compaction_keeps", "compaction would keep", lambda share: f"{share:.1%}"),
    "first",
    "last",
    "records_a_second",
    Column("bytes_a_second", "bytes a second", lambda rate: f"{size(rate)}/s"),
)


def _read_all(
    session: Session, begin: dict[TopicPartition, int], ends: dict[TopicPartition, int]
) -> tuple[Analysis, Counter[TopicPartition]]:
    """Analyze all records of these ranges, and show the progress."""
    analysis, spread = Analysis(), Counter[TopicPartition]()
    fetcher = Fetcher(session.client)
    left = {place: offset for place, offset in begin.items() if offset < ends[place]}
    with progress("records", sum(ends[place] - offset for place, offset in left.items())) as bar:
        while left:
            for place, fetched in fetcher.fetch(left).items():
                if fetched.error and not fetched.error.retriable:
                    raise ClientError(fetched.error, f"{place[0]}-{place[1]}: {fetched.error.message}")
                for batch in fetched.batches():
                    if not batch.is_control and batch.last_offset >= left[place]:
                        kept = [record for record in records(batch) if record.offset >= begin[place]]
                        analysis.add(batch, kept)
                        spread[place] += len(kept)
                    bar.advance(max(0, batch.next_offset - left[place]))
                    left[place] = max(left[place], batch.next_offset)
            left = {place: offset for place, offset in left.items() if offset < ends[place]}
    return analysis, spread

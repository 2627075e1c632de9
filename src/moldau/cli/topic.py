"""`moldau topic`: topics of any Kafka."""

from __future__ import annotations

import base64
from collections import Counter
from fnmatch import fnmatchcase
from typing import Annotated, Any

import typer

from moldau.admin import TopicPartition, configs, offsets, resets, topics
from moldau.admin.mistakes import Mistake, misused
from moldau.cli.analysis import Analysis
from moldau.cli.commands import Sure, Topic, Topics, noun, verb
from moldau.cli.output import Column, Output, progress, size, time_of
from moldau.cli.session import Session, pairs
from moldau.client import ClientError, Fetcher, records

cli = noun()

Config = Annotated[
    list[str] | None, typer.Option("--config", "-c", metavar="NAME=VALUE", help="A setting; repeatable.")
]
Partition = Annotated[list[int] | None, typer.Option("--partition", "-p", help="Only these; repeatable.")]


@verb(
    cli,
    "create",
    (
        "moldau topic create orders --partitions 6",
        "moldau topic create customers --config cleanup.policy=compact",
    ),
)
def create(
    session: Session,
    names: Topics,
    partitions: Annotated[int, typer.Option("--partitions", "-p", help="How many; as the cluster is set, if -1.")] = -1,
    replicas: Annotated[int, typer.Option("--replicas", help="Copies of each; as the cluster is set, if -1.")] = -1,
    config: Config = None,
    if_not_exists: Annotated[bool, typer.Option("--if-not-exists", help="One that is there is no error.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Ask whether it could be; create nothing.")] = False,
) -> None:
    """Create topics."""
    given = pairs(config or (), "--config")
    made = []
    there = {topic.name for topic in topics.listed(session.client)} if if_not_exists else set()
    for name in names:
        if name in there:
            session.tell(f"Topic {name} is there already.")
            continue
        wanted = topics.NewTopic(name, partitions, replicas, given)
        made += topics.create(session.client, [wanted], validate_only=dry_run)
    rows = [
        {"name": one.name, "id": _id(one.id), "partitions": one.partitions, "replicas": one.replication_factor}
        for one in made
    ]
    what = "could be created" if dry_run else "created"
    said = [f"Topic {row['name']} {what}: {row['partitions']} partitions, {row['replicas']} replicas." for row in rows]
    session.done("\n".join(said), topics=rows)


@verb(cli, "list", ("moldau topic list", "moldau topic list 'ord*' --sizes", "moldau topic list -o json"))
def list_topics(
    session: Session,
    pattern: Annotated[str, typer.Argument(help="Only names like this; * stands for anything.")] = "*",
    internal: Annotated[bool, typer.Option("--internal", help="Those of the cluster itself too.")] = False,
    sizes: Annotated[bool, typer.Option("--sizes", help="With bytes on disk and records, which takes longer.")] = False,
) -> None:
    """List topics."""
    found = [one for one in topics.listed(session.client, internal=internal) if fnmatchcase(one.name, pattern)]
    rows: list[dict[str, Any]] = [
        {
            "name": one.name,
            "partitions": len(one.partitions),
            "replicas": one.replication_factor,
            "under_replicated": sum(part.is_under_replicated for part in one.partitions),
            "internal": one.internal,
        }
        for one in found
    ]
    if sizes:
        _measure(session, found, rows)
    columns = ["name", "partitions", "replicas", "under_replicated"]
    more = [Column("size", "size", size), "records"] if sizes else []
    session.show(rows, [*columns, *more], "No topics. `moldau topic create NAME` makes one.")


def _measure(session: Session, found: list[topics.TopicState], rows: list[dict[str, Any]]) -> None:
    on_disk = topics.sizes(session.client, (one.name for one in found))
    bounds = offsets.ends(session.client, [(one.name, part.index) for one in found for part in one.partitions])
    for one, row in zip(found, rows, strict=True):
        places = [(one.name, part.index) for part in one.partitions]
        row["size"] = sum(max(on_disk.get(place, {-1: 0}).values()) for place in places)
        row["records"] = sum(bounds[place][1] - bounds[place][0] for place in places)


@verb(cli, "describe", ("moldau topic describe orders", "moldau topic describe orders -o yaml"))
def describe(
    session: Session,
    names: Topics,
    all_configs: Annotated[bool, typer.Option("--all", help="Settings with defaults too.")] = False,
) -> None:
    """Show partitions, offsets, sizes and settings of topics."""
    found = [_described(session, one, all_configs) for one in topics.described(session.client, names)]
    if session.output.value != "table":
        session.show(found)
        return
    for number, one in enumerate(found):
        print("\n" if number else "", end="")
        session.show({key: one[key] for key in ("name", "id", "internal", "replicas", "records")} | _total(one))
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


def _total(topic: dict[str, Any]) -> dict[str, str]:
    return {"size": size(sum(part["size"] or 0 for part in topic["partitions"]))}


def _described(session: Session, topic: topics.TopicState, all_configs: bool) -> dict[str, Any]:
    places = [(topic.name, part.index) for part in topic.partitions]
    first = offsets.at(session.client, dict.fromkeys(places, offsets.EARLIEST))
    last = offsets.at(session.client, dict.fromkeys(places, offsets.LATEST))
    on_disk = topics.sizes(session.client, [topic.name])
    rows = [
        {
            "partition": part.index,
            "leader": None if part.leader < 0 else part.leader,
            "leader_epoch": part.leader_epoch,
            "replicas": list(part.replicas),
            "isr": list(part.isr),
            "offline": list(part.offline),
            "start": None if first[topic.name, part.index].error else first[topic.name, part.index].offset,
            "end": None if last[topic.name, part.index].error else last[topic.name, part.index].offset,
            "size": max(on_disk.get((topic.name, part.index), {-1: 0}).values()),
        }
        for part in topic.partitions
    ]
    entries = configs.described(session.client, configs.Resource(configs.Kind.TOPIC, topic.name))
    return {
        "name": topic.name,
        "id": _id(topic.id),
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
    cli,
    "alter",
    (
        "moldau topic alter orders --set retention.ms=86400000",
        "moldau topic alter orders --unset retention.ms",
    ),
)
def alter(
    session: Session,
    names: Topics,
    given: Annotated[
        list[str] | None, typer.Option("--set", "-s", metavar="NAME=VALUE", help="A setting; repeatable.")
    ] = None,
    unset: Annotated[
        list[str] | None, typer.Option("--unset", metavar="NAME", help="Back to the default; repeatable.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Ask whether it could be; change nothing.")] = False,
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


@verb(cli, "delete", ("moldau topic delete customers",))
def delete(
    session: Session,
    names: Topics,
    if_exists: Annotated[bool, typer.Option("--if-exists", help="One that is not there is no error.")] = False,
    sure: Sure = False,
) -> None:
    """Delete topics and all that is in them."""
    if if_exists:
        there = {topic.name for topic in topics.listed(session.client)}
        names = [name for name in names if name in there]
    session.confirm(f"Delete {', '.join(names)} and all records in them?", sure)
    if names:
        topics.delete(session.client, names)
    session.done(f"Deleted {', '.join(names)}." if names else "Nothing to delete.", deleted=names)


@verb(cli, "add-partitions", ("moldau topic add-partitions orders --total 12",))
def add_partitions(
    session: Session,
    name: Topic,
    total: Annotated[int | None, typer.Option("--total", min=1, help="How many there shall be in all.")] = None,
    more: Annotated[int | None, typer.Option("--more", min=1, help="How many more.")] = None,
) -> None:
    """Give a topic more partitions. Records with keys then go elsewhere than those before them."""
    if (total is None) == (more is None):
        raise misused("Give either --total or --more.")
    have = len(topics.described(session.client, [name])[0].partitions)
    wanted = total if total is not None else have + (more or 0)
    topics.add_partitions(session.client, {name: wanted})
    session.done(f"Topic {name} has {wanted} partitions, {wanted - have} more.", name=name, partitions=wanted)


@verb(
    cli,
    "trim",
    (
        "moldau topic trim orders --before -7d --dry-run",
        "moldau topic trim orders --offset 10 --partition 0",
        "moldau topic trim orders --all",
    ),
)
def trim(
    session: Session,
    name: Topic,
    offset: Annotated[int | None, typer.Option("--offset", min=0, help="All records before this offset.")] = None,
    before: Annotated[
        str | None, typer.Option("--before", metavar="TIME", help="All older ones: 2026-11-15T10:00:00, or -7d.")
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="All records there are.")] = False,
    partition: Partition = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would go; delete nothing.")] = False,
    sure: Sure = False,
) -> None:
    """Delete records from the beginning of partitions. This cannot be undone."""
    places = chosen(session, name, partition)
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
        done = topics.delete_records(session.client, new)
        for result in done.values():
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
    wanted: resets.Wanted = resets.Latest() if everything else resets.To(offset or 0)
    if before is not None:
        wanted = resets.At(moment(before))
    return resets.plan(session.client, wanted, bounds, {})


def moment(text: str) -> int:
    """A time that the user has written, in ms."""
    try:
        return resets.moment_ms(text)
    except resets.ResetError as error:
        raise misused(str(error)) from None


def chosen(session: Session, name: str, partitions: list[int] | None) -> list[TopicPartition]:
    """The partitions of a topic that were asked for; all if none were."""
    have = topics.partitions(session.client, [name])
    for number in partitions or ():
        if (name, number) not in have:
            raise Mistake(f"Topic {name} has no partition {number}: they go from 0 to {len(have) - 1}.")
    return [place for place in have if not partitions or place[1] in partitions]


def _id(raw: bytes) -> str:
    """As Kafka writes it: URL-safe base64 without padding."""
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


@verb(
    cli,
    "analyze",
    ("moldau topic analyze orders", "moldau topic analyze orders --last 100000 -o json"),
)
def analyze(
    session: Session,
    name: Topic,
    last: Annotated[
        int | None, typer.Option("--last", "-n", min=1, help="Only so many records, from the end of each partition.")
    ] = None,
    partition: Partition = None,
) -> None:
    """Read a topic and tell sizes, keys, rates, compression, and what compaction would leave."""
    places = chosen(session, name, partition)
    bounds = offsets.ends(session.client, places)
    begin = {place: first if last is None else max(first, end - last) for place, (first, end) in bounds.items()}
    found, spread = _read_all(session, begin, {place: end for place, (_, end) in bounds.items()})
    facts = found.facts()
    facts["partitions"] = len(places)
    facts["most_in_one_partition"] = (
        round(max(spread.values(), default=0) / found.records, 3) if found.records else None
    )
    facts |= {"first": time_of(facts.pop("first_ms")), "last": time_of(facts.pop("last_ms"))}
    session.show(facts, ANALYSIS if session.output is Output.table else ())


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
    """All records from here to there, with progress."""
    found, spread = Analysis(), Counter[TopicPartition]()
    fetcher = Fetcher(session.client)
    left = {place: offset for place, offset in begin.items() if offset < ends[place]}
    with progress("records", sum(ends[place] - offset for place, offset in left.items())) as shown:
        while left:
            for place, fetched in fetcher.fetch(left).items():
                if fetched.error and not fetched.error.retriable:
                    raise ClientError(fetched.error, f"{place[0]}-{place[1]}: {fetched.error.message}")
                for batch in fetched.batches():
                    if not batch.is_control and batch.last_offset >= left[place]:
                        kept = [record for record in records(batch) if record.offset >= begin[place]]
                        found.add(batch, kept)
                        spread[place] += len(kept)
                    shown.advance(max(0, batch.next_offset - left[place]))
                    left[place] = max(left[place], batch.next_offset)
            left = {place: offset for place, offset in left.items() if offset < ends[place]}
    return found, spread

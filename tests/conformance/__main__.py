"""`python -m tests.conformance` (`make conformance`): the public suites against a fresh broker.

It writes docs/conformance.md and ends with exit code 1 if anything failed that expected.toml does not name. A suite
whose tool is missing is left out, and the page says so. With `--brokers 3` the suites of `THREE` run on a cluster, and
the page is docs/conformance-cluster.md; `--kafka` does that with three nodes of Apache Kafka, to compare.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests import needs
from tests.conformance import clients, cluster_tools, franz_go, librdkafka, report, streams
from tests.conformance.differential import suite as differential
from tests.conformance.kafka_tools import suite as kafka_tools
from tests.conformance.outcome import Score, Verdict, judged

PAGES = {1: needs.ROOT / "docs" / "conformance.md", 3: needs.ROOT / "docs" / "conformance-cluster.md"}
# What the suites ask of a broker, under Kafka's names.
SETTINGS = {
    "num.partitions": "4",
    "broker.rack": "RACK1",
    "offsets.topic.num.partitions": "4",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.num.partitions": "4",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "4",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
    "group.max.session.timeout.ms": "300000",
    "group.share.record.lock.duration.ms": "1000",
    "group.share.min.record.lock.duration.ms": "1000",
    "log.cleaner.backoff.ms": "1000",
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
}
# What a cluster sets for itself, and what it needs besides.
ALONE = ("replication.factor", "min.isr", "broker.rack")
TOGETHER = {"replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector"}


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.conformance", description=__doc__)
    parser.add_argument("--suite", choices=sorted(report.ABOUT), action="append", help="only this suite (repeatable)")
    parser.add_argument("--bootstrap", help="another broker, already running; the page is not written")
    parser.add_argument("--brokers", type=int, choices=(1, 3), default=1, help="how many brokers")
    parser.add_argument("--kafka", action="store_true", help="three nodes of Apache Kafka; the page is not written")
    parser.add_argument("--everything", action="store_true", help="also the tests that are known to wait")
    parser.add_argument("--full", action="store_true", help="librdkafka's full mode, 100,000 records for franz-go")
    parser.add_argument("--jobs", type=int, default=4, help="numbers of librdkafka that run at a time")
    parser.add_argument("--work", type=Path, help="keep logs here (default: a temporary folder)")
    parser.add_argument("test", nargs="*", help="numbers or names of tests of the one suite given")
    given = parser.parse_args()
    given.brokers = 3 if given.kafka else given.brokers
    if given.test and len(given.suite or ()) != 1:
        parser.error("name tests together with one --suite")
    return given


@contextmanager
def broker_at(given: argparse.Namespace) -> Iterator[str]:
    if given.bootstrap:
        yield given.bootstrap
    elif given.kafka:
        with kafka_cluster() as bootstrap:
            yield bootstrap
    elif given.brokers == 1:
        from moldau.testing import broker

        with broker(SETTINGS) as kafka:
            yield kafka.bootstrap_servers
    else:
        with moldau_cluster(given.brokers) as bootstrap:
            yield bootstrap


def cluster_settings() -> dict[str, str]:
    return {name: value for name, value in SETTINGS.items() if not name.endswith(ALONE)} | TOGETHER


@contextmanager
def moldau_cluster(count: int) -> Iterator[str]:
    """Start brokers with the racks that librdkafka's suite expects."""
    from moldau.testing import Cluster

    made = Cluster(count, cluster_settings(), proxied=False)
    try:
        for node, one in made.brokers.items():
            one.settings["broker.rack"] = f"RACK{node}"
        yield made.start().bootstrap_servers
    finally:
        made.close()


@contextmanager
def kafka_cluster() -> Iterator[str]:
    from tests.cluster.mixed import KAFKA, cluster

    libs = needs.find("kafka-jars").path
    assert libs is not None, "Kafka's jars are missing"
    with tempfile.TemporaryDirectory(prefix="moldau-conformance-") as folder:
        nodes: dict[int, tuple[str, str]] = dict.fromkeys((1, 2, 3), (KAFKA, "broker,controller"))
        more = cluster_settings() | {"min.insync.replicas": "2", "default.replication.factor": "3"}
        # Its controllers ask each other for votes before they know any ACL, in plain text and so without a name.
        more["super.users"] = "User:ANONYMOUS"
        with cluster(libs, Path(folder), nodes, **more) as made:
            yield made.bootstrap


def run_librdkafka(given: argparse.Namespace, bootstrap: str, work: Path) -> Score:
    found = needs.find("librdkafka-runner")
    if found.path is None:
        return Score(librdkafka.SUITE, left_out=f"{found.reason}; {needs.table()[found.tool].had_by}")
    flags = librdkafka.FULL if given.full else librdkafka.QUICK
    using = librdkafka.runner(found.path, bootstrap, work, flags)
    outcomes = librdkafka.run(using, given.test, given.everything, given.jobs, tell, given.brokers)
    return judged(librdkafka.SUITE, outcomes, quick=not given.full, brokers=given.brokers)


def run_franz_go(given: argparse.Namespace, bootstrap: str, work: Path) -> Score:
    found = needs.find("go")
    if found.path is None:
        return Score(franz_go.SUITE, left_out=f"go is {found.reason}")
    records = 100_000 if given.full else 10_000
    try:
        more = given.everything, records, tell, given.brokers
        outcomes = list(franz_go.run(bootstrap, work, given.test, *more))
    except franz_go.NoModule as error:
        return Score(franz_go.SUITE, left_out=str(error))
    return judged(franz_go.SUITE, outcomes, brokers=given.brokers)


def run_clients(given: argparse.Namespace, bootstrap: str, work: Path) -> Score:
    first = bootstrap.partition(",")[0]  # the clients find the others by themselves
    return judged(clients.SUITE, clients.run(first, work), brokers=given.brokers)


def run_differential(given: argparse.Namespace, bootstrap: str, work: Path) -> Score:
    lacking = needs.missing(differential.NEEDS)
    if lacking:
        return Score(differential.SUITE, left_out=f"{lacking.tool}: {lacking.reason}")
    return judged(differential.SUITE, differential.run(work, given.test))


def run_kafka_tools(given: argparse.Namespace, bootstrap: str, work: Path) -> Score:
    lacking = needs.missing(kafka_tools.NEEDS)
    if lacking:
        return Score(kafka_tools.SUITE, left_out=f"{lacking.tool}: {lacking.reason}")
    return judged(kafka_tools.SUITE, kafka_tools.run(bootstrap, work, given.test))


def run_clusters(given: argparse.Namespace, bootstrap: str, work: Path) -> Score:
    lacking = needs.missing(cluster_tools.NEEDS)
    if lacking:
        return Score(cluster_tools.SUITE, left_out=f"{lacking.tool}: {lacking.reason}")
    return judged(cluster_tools.SUITE, cluster_tools.run(work, given.test))


def run_streams(given: argparse.Namespace, bootstrap: str, work: Path) -> Score:
    lacking = needs.missing(streams.NEEDS)
    if lacking:
        return Score(streams.SUITE, left_out=f"{lacking.tool}: {lacking.reason}")
    return judged(streams.SUITE, streams.run(work, given.test, tell), brokers=given.brokers)


SUITES = {
    "clients": run_clients,
    "librdkafka": run_librdkafka,
    "franz-go": run_franz_go,
    "differential": run_differential,
    "kafka-tools": run_kafka_tools,
    "clusters": run_clusters,
    "streams": run_streams,
}
ON = {1: tuple(name for name in SUITES if name != "streams"), 3: ("clients", "librdkafka", "franz-go", "streams")}


def tell(line: str) -> None:
    print(f"  {line}", flush=True)


def run(given: argparse.Namespace, work: Path) -> list[Score]:
    scores = []
    for suite in given.suite or ON[given.brokers]:
        print(f"== {suite}", flush=True)
        with broker_at(given) as bootstrap:
            scores.append(SUITES[suite](given, bootstrap, work / suite))
    return scores


def main() -> int:
    given = arguments()
    with tempfile.TemporaryDirectory(prefix="moldau-conformance-") as scratch:
        scores = run(given, given.work or Path(scratch))
    whole = not (given.suite or given.bootstrap or given.full or given.kafka)
    if whole:
        PAGES[given.brokers].write_text(report.page(scores, given.brokers))
    failed = [(score.suite, outcome) for score in scores for outcome in score.of(Verdict.FAILED)]
    for suite, outcome in failed:
        print(f"FAILED {suite} {outcome.test} - {outcome.why}")
    for score in scores:
        print(score.line())
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

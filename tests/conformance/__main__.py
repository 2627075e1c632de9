"""`python -m tests.conformance` (`make conformance`): the public suites against a fresh broker.

It writes docs/conformance.md and ends with exit code 1 if anything failed that expected.toml does not name. A suite
whose tool is missing is left out, and the page says so.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests import needs
from tests.conformance import clients, cluster_tools, franz_go, librdkafka, report
from tests.conformance.differential import suite as differential
from tests.conformance.kafka_tools import suite as kafka_tools
from tests.conformance.outcome import Score, Verdict, judged

PAGE = needs.ROOT / "docs" / "conformance.md"
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


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.conformance", description=__doc__)
    parser.add_argument("--suite", choices=sorted(report.ABOUT), action="append", help="only this suite (repeatable)")
    parser.add_argument("--bootstrap", help="another broker, already running; the page is not written")
    parser.add_argument("--everything", action="store_true", help="also the tests that are known to wait")
    parser.add_argument("--full", action="store_true", help="librdkafka's full mode, 100,000 records for franz-go")
    parser.add_argument("--jobs", type=int, default=4, help="numbers of librdkafka that run at a time")
    parser.add_argument("--work", type=Path, help="keep logs here (default: a temporary folder)")
    parser.add_argument("test", nargs="*", help="numbers or names of tests of the one suite given")
    given = parser.parse_args()
    if given.test and len(given.suite or ()) != 1:
        parser.error("name tests together with one --suite")
    return given


@contextmanager
def broker_at(given: argparse.Namespace) -> Iterator[str]:
    if given.bootstrap:
        yield given.bootstrap
        return
    from moldau.testing import broker

    with broker(SETTINGS) as kafka:
        yield kafka.bootstrap_servers


def run_librdkafka(given: argparse.Namespace, bootstrap: str, work: Path) -> Score:
    found = needs.find("librdkafka-runner")
    if found.path is None:
        return Score(librdkafka.SUITE, left_out=f"{found.reason}; {needs.table()[found.tool].had_by}")
    using = librdkafka.runner(found.path, bootstrap, work, () if given.full else librdkafka.QUICK)
    outcomes = librdkafka.run(using, given.test, given.everything, given.jobs, tell)
    return judged(librdkafka.SUITE, outcomes, quick=not given.full)


def run_franz_go(given: argparse.Namespace, bootstrap: str, work: Path) -> Score:
    found = needs.find("go")
    if found.path is None:
        return Score(franz_go.SUITE, left_out=f"go is {found.reason}")
    records = 100_000 if given.full else 10_000
    try:
        outcomes = list(franz_go.run(bootstrap, work, given.test, given.everything, records, tell))
    except franz_go.NoModule as error:
        return Score(franz_go.SUITE, left_out=str(error))
    return judged(franz_go.SUITE, outcomes)


def run_clients(given: argparse.Namespace, bootstrap: str, work: Path) -> Score:
    return judged(clients.SUITE, clients.run(bootstrap, work))


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


SUITES = {
    "clients": run_clients,
    "librdkafka": run_librdkafka,
    "franz-go": run_franz_go,
    "differential": run_differential,
    "kafka-tools": run_kafka_tools,
    "clusters": run_clusters,
}


def tell(line: str) -> None:
    print(f"  {line}", flush=True)


def run(given: argparse.Namespace, work: Path) -> list[Score]:
    scores = []
    for suite in given.suite or SUITES:
        print(f"== {suite}", flush=True)
        with broker_at(given) as bootstrap:
            scores.append(SUITES[suite](given, bootstrap, work / suite))
    return scores


def main() -> int:
    given = arguments()
    with tempfile.TemporaryDirectory(prefix="moldau-conformance-") as scratch:
        scores = run(given, given.work or Path(scratch))
    whole = not (given.suite or given.bootstrap or given.full)
    if whole:
        PAGE.write_text(report.page(scores))
    failed = [(score.suite, outcome) for score in scores for outcome in score.of(Verdict.FAILED)]
    for suite, outcome in failed:
        print(f"FAILED {suite} {outcome.test} - {outcome.why}")
    for score in scores:
        print(score.line())
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

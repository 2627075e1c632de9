"""docs/conformance.md: the score of each suite beside Apache Kafka's, and what did not pass, with the reason."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from tests.conformance.outcome import Expected, Outcome, Score, Verdict

ABOUT = {
    "clients": "kcat, confluent-kafka, kafka-python, aiokafka, franz-go's kadm, Node's kafkajs and Kafka's own "
    "command-line tools: the tests of tests/conformance, also part of `make test`.",
    "librdkafka": "librdkafka's own test suite in its quick mode, the tests that need a broker.",
    "differential": "The same requests to Moldau and to Apache Kafka; answers must agree, but for docs/deviations.md.",
    "kafka-tools": "Kafka's own command-line tools and Moldau's, side by side on one broker: output and exit codes.",
    "clusters": "Commands for clusters on Apache Kafka alone and on Moldau and Kafka together: Kafka's verification of "
    "replicas, voters that come and go, moves, and a broker that is swapped and swapped back.",
    "streams": "A word count of Kafka Streams with exactly_once_v2 while random brokers are killed (`kill -9`).",
    "franz-go": "franz-go's kgo tests that need a broker, with 10,000 records a chain.",
}
SHOWN = (Verdict.FAILED, Verdict.WAITS, Verdict.KNOWN, Verdict.EMPTY, Verdict.SKIPPED)
HEADINGS = {
    Verdict.FAILED: "Failed",
    Verdict.WAITS: "Wait for a part that is not built yet",
    Verdict.KNOWN: "Fail with Apache Kafka too",
    Verdict.EMPTY: "Pass without asking the broker anything, here and with Apache Kafka",
    Verdict.SKIPPED: "Skipped",
}


def page(scores: Sequence[Score], brokers: int = 1) -> str:
    return "\n".join(lines(scores, brokers)) + "\n"


def lines(scores: Sequence[Score], brokers: int = 1) -> Iterator[str]:
    nodes = "one node" if brokers == 1 else f"{brokers} nodes"
    yield "# Conformance" if brokers == 1 else f"# Conformance of {brokers} brokers"
    yield ""
    yield f"Public suites and real clients against `moldau broker`, {nodes}. `make conformance` runs them and writes"
    yield "this page; `tests/conformance/expected.toml` names what waits and why; any other failure fails the command."
    yield ""
    yield f"| suite | passed | failed | waits | fails with Kafka too | empty | skipped | Apache Kafka 4.3.1, {nodes} |"
    yield "|---|---|---|---|---|---|---|---|"
    for score in scores:
        kafka = Expected.of(score.suite, brokers).apache_kafka
        if score.left_out:
            yield f"| {score.suite} | left out: {score.left_out} | | | | | | {kafka} |"
        else:
            counts = " | ".join(str(len(score.of(verdict))) for verdict in (Verdict.PASSED, *SHOWN))
            yield f"| {score.suite} | {counts} | {kafka} |"
    for score in scores:
        yield from section(score)


def section(score: Score) -> Iterator[str]:
    yield f"\n## {score.suite}\n"
    yield ABOUT[score.suite]
    for verdict in SHOWN:
        if found := score.of(verdict):
            yield f"\n### {HEADINGS[verdict]}\n"
            yield "| why | tests |"
            yield "|---|---|"
            yield from rows(found)
    if passed := score.of(Verdict.PASSED):
        yield "\n### Passed\n"
        yield ", ".join(f"`{name}`" for name in shortened(passed))


def rows(outcomes: list[Outcome]) -> Iterator[str]:
    """One row a reason."""
    for why, found in groupby(sorted(outcomes, key=lambda o: (o.why, o.test)), key=lambda o: o.why):
        names = ", ".join(f"`{outcome.test}`" for outcome in found)
        yield f"| {why.replace('|', '/') or 'no reason given'} | {names} |"


def shortened(outcomes: list[Outcome]) -> list[str]:
    """Names of tests without their parameters, each once."""
    return list(dict.fromkeys(outcome.test.split("[")[0] for outcome in outcomes))

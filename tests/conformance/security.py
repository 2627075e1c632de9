"""`python -m tests.conformance.security` (part of `make secured`): public suites through SSL and SASL_SSL.

librdkafka's tests of security, its whole quick suite and that of franz-go, on Moldau and on Apache Kafka with the same
settings. It writes docs/conformance-secured.md, and ends with exit code 1 if anything passes with Kafka, or with Moldau
in plain text, and not with Moldau.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests import needs
from tests.cluster.mixed import KAFKA, MOLDAU
from tests.conformance import franz_go, librdkafka
from tests.conformance.__main__ import SETTINGS, cluster_settings, tell
from tests.conformance.outcome import Outcome, Verdict
from tests.conformance.secured import Login, secured_nodes

PAGE = needs.ROOT / "docs" / "conformance-secured.md"
PLAIN = "plain"
NAMES = {MOLDAU: "Moldau", KAFKA: f"Apache Kafka {needs.KAFKA_VERSION}", PLAIN: "Moldau in plain text"}
SECONDS = 1200  # 0126 has some forty parts of seven seconds each
RECORDS = 10_000
# librdkafka calls a refused certificate a lost connection if the broker's half of the handshake is there before its
# first call returns: when it shares a processor with a fast broker, the scheduler may see to that.
PROCESSORS = sorted(os.sched_getaffinity(0))
CLIENTS, BROKERS = frozenset(PROCESSORS[:1]), frozenset(PROCESSORS[1:] or PROCESSORS)
JOBS = 2
ATTEMPTS = 3  # for librdkafka's: some of its tests have races of their own


@dataclass(frozen=True)
class Part:
    """Tests of a suite by one way in, on so many nodes; no tests: all of them. Those of security are not for plain
    text, all others are.
    """

    suite: str
    way: str
    title: str
    tests: tuple[str, ...] = ()
    nodes: int = 1
    remark: str = ""
    session_s: int = 10  # 0142 needs it; 0093 fails with it, with Kafka too

    @property
    def name(self) -> str:
        return f"{self.suite}-{self.way}{'' if self.tests else '-all'}"

    @property
    def kinds(self) -> tuple[str, ...]:
        return (MOLDAU, KAFKA) if self.tests else (MOLDAU, KAFKA, PLAIN)


OF_SECURITY = ("0022", "0097", "0115", "0119", "0128", "0133", "0135", "0142")
TOO_LATE = "`0097` expects an untrusted certificate to be refused within the handshake; in TLS 1.3 that comes after it."
PARTS = (
    Part("librdkafka", "ssl", "librdkafka over SSL, with a client certificate", OF_SECURITY, 3, TOO_LATE),
    Part("librdkafka", "sasl_ssl", "librdkafka over SASL_SSL, SCRAM-SHA-512", OF_SECURITY, nodes=3),
    Part("librdkafka", "oidc", "librdkafka over SASL_SSL, tokens of an OAuth server", ("0126",), nodes=3),
    Part("librdkafka", "sasl_ssl", "librdkafka's quick suite over SASL_SSL, SCRAM-SHA-512", session_s=3600),
    Part("franz-go", "ssl", "franz-go over SSL, with a client certificate"),
    Part("franz-go", "sasl_ssl", "franz-go over SASL_SSL, SCRAM-SHA-256"),
)
Outcomes = Mapping[str, Mapping[str, Outcome]]  # of each broker, by the test


def outcomes(part: Part, login: Login | None, bootstrap: str, work: Path) -> Iterable[Outcome]:
    """Run the tests of a part with a login; without one in plain text."""
    if part.suite == franz_go.SUITE:
        return franz_go.run(bootstrap, work, part.tests, True, RECORDS, tell, part.nodes, login)
    program, numbers = needs.find("librdkafka-runner").path, part.tests
    assert program is not None
    found: dict[str, Outcome] = {}
    for attempt in range(ATTEMPTS):
        folder = work / str(attempt)
        flags = ("-E",) if part.tests else librdkafka.QUICK
        using = librdkafka.runner(program, bootstrap, folder, flags, login, SECONDS, CLIENTS)
        found |= {one.test: one for one in librdkafka.run(using, numbers, True, JOBS, tell, part.nodes)}
        numbers = tuple(sorted({one.test[:4] for one in found.values() if one.verdict is Verdict.FAILED}))
        if not numbers:
            break
    return found.values()


def run(part: Part, kind: str, libs: Path, work: Path) -> dict[str, Outcome]:
    print(f"== {part.title}: {NAMES[kind]}", flush=True)
    brokers = MOLDAU if kind == PLAIN else kind
    settings = SETTINGS if part.nodes == 1 else cluster_settings()
    with (
        tempfile.TemporaryDirectory(prefix="moldau-conformance-") as folder,
        secured_nodes(brokers, libs, Path(folder), settings, part.nodes, part.session_s) as (made, realm),
    ):
        login = None if kind == PLAIN else realm.login(part.way, made)
        bootstrap = login.bootstrap if login else made.bootstrap
        found = list(outcomes(part, login, bootstrap, work / f"{part.name}-{kind}"))
    return {one.test: one for one in sorted(found, key=lambda one: one.test)}


def worse(both: Outcomes) -> list[str]:
    """Return the tests that pass with Kafka or in plain text, and not with Moldau; without those that leave themselves
    out with both.
    """
    good = (Verdict.PASSED, Verdict.EMPTY)
    passed = {name for found in both.values() for name, one in found.items() if one.verdict in good}

    def is_worse(name: str) -> bool:
        ours, theirs = (both[kind][name].verdict if name in both.get(kind, ()) else None for kind in (MOLDAU, KAFKA))
        return ours not in good and not ours is theirs is Verdict.SKIPPED

    return sorted(filter(is_worse, passed))


HEAD = """# Conformance over SSL and SASL_SSL

`python -m tests.conformance.security` writes this page: public suites on Moldau and Kafka, with the same
settings, certificates and OAuth server. Clients authenticate again when a session ends. The brokers of a section were
tried in one run; `--part` replaces one section.
"""


def page(sections: Mapping[Part, str], before: str) -> str:
    """Return the page with these sections; of parts that were not run those of the page before are left."""
    left = {text.partition("\n")[0]: f"## {text}".strip() + "\n" for text in before.split("\n## ")[1:]}
    return "\n".join([HEAD, *(one for part in PARTS if (one := sections.get(part) or left.get(part.title)))])


def section(part: Part, both: Outcomes) -> Iterator[str]:
    yield f"## {part.title}\n"
    where = "One node" if part.nodes == 1 else f"{part.nodes} nodes"
    yield f"{where}, sessions of {part.session_s} s. {part.remark}".strip() + "\n"
    names = list(both)
    yield f"| | {' | '.join(NAMES[name] for name in names)} |"
    yield "|---" * (len(names) + 1) + "|"
    yield from table(both, names, brief=not part.tests)
    yield ""


def table(both: Outcomes, names: Sequence[str], brief: bool) -> Iterator[str]:
    if brief:
        for verdict in Verdict:
            counts = [sum(one.verdict is verdict for one in both[name].values()) for name in names]
            if any(counts):
                yield f"| {verdict} | {' | '.join(map(str, counts))} |"
    for test in sorted({test for name in names for test in both[name]}):
        cells = [both[name].get(test, Outcome(test, Verdict.SKIPPED, "not run")) for name in names]
        if not brief or any(one.verdict is Verdict.FAILED for one in cells):
            yield f"| `{test}` | {' | '.join(cell(one) for one in cells)} |"


def cell(one: Outcome) -> str:
    why = one.why.replace("|", "/")
    return f"{one.verdict}: {why}" if why and one.verdict is not Verdict.PASSED else str(one.verdict)


def lacking() -> str:
    found = needs.missing(("librdkafka-runner", "kafka-jars", "java", "go"))
    return f"{found.tool}: {found.reason}; {needs.table()[found.tool].had_by}" if found else ""


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.conformance.security", description=__doc__)
    names = [part.name for part in PARTS]
    parser.add_argument("--part", choices=names, action="append", help="only this; other sections of the page stay")
    parser.add_argument("--only", choices=tuple(NAMES), help="on one of them; the page is not written")
    parser.add_argument("--work", type=Path, help="keep logs here (default: a temporary folder)")
    return parser.parse_args()


def main() -> int:
    given = arguments()
    if reason := lacking():
        print(f"left out: {reason}")
        return 0
    libs, found = needs.find("kafka-jars").path, dict[Part, Outcomes]()
    assert libs is not None
    os.sched_setaffinity(0, BROKERS)  # what is started inherits it
    with tempfile.TemporaryDirectory(prefix="moldau-conformance-") as scratch:
        for part in PARTS:
            if not given.part or part.name in given.part:
                kinds = (given.only,) if given.only else part.kinds
                found[part] = {kind: run(part, kind, libs, given.work or Path(scratch)) for kind in kinds}
    sections = {part: "\n".join(section(part, both)) for part, both in found.items()}
    print(*sections.values(), sep="\n")
    if not given.only:
        PAGE.write_text(page(sections, PAGE.read_text()))
    failed = [f"{part.name} {test}" for part, both in found.items() if MOLDAU in both for test in worse(both)]
    print("\n".join(f"WORSE {name}" for name in failed) or "nothing is worse than with Kafka, or in plain text")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

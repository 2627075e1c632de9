"""What alice may do: every API in every version, under many sets of ACLs, as Apache Kafka 4.3 has answered.

`make test` plays some sets of ACLs; `make access` (ACCESS=all) plays all of them, some twenty thousand requests.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from moldau.testing.process import Broker
from moldau.wire import messages as m
from tests.broker.authentication.secured import Secured, plain_line
from tests.conformance.access.play import conditions, play
from tests.conformance.access.record import recorded
from tests.conformance.sasl.scenarios import PASSWORD, USER

STANDARD = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
SOME = ("nothing",)
# What differs, by API and versions, and why. docs/security.md lists what a user may notice.
OTHERWISE = {
    r"(Create|Delete)Acls v\d+": "a code of 0: ours says what is wrong, on purpose; Kafka closes the connection",
    r"DeleteTopics v[1-5]": "the request has no time: Kafka tells so first; with a second to wait it refuses as well",
    r"GetTelemetrySubscriptions v0": "no right is needed; Kafka answers, although there is no telemetry",
    r"ListGroups v\d+": "which groups came to be by what was allowed before",
}
# Kafka and we say different things in a refusal, or nothing.
MESSAGE = re.compile(r"'(error_message|message|acknowledge_error_message)': ('[^']*'|None)")
# Requests of brokers and controllers, which a listener of clients does not serve, those that ask for no right, and one
# that Kafka does not answer where it is denied.
ELSEWHERE = {
    *("AllocateProducerIds", "AlterPartition", "AssignReplicasToDirs", "BeginQuorumEpoch", "BrokerHeartbeat"),
    *("BrokerRegistration", "ControllerRegistration", "EndQuorumEpoch", "FetchSnapshot", "UpdateRaftVoter", "Vote"),
    *("PushTelemetry", "SaslAuthenticate", "SaslHandshake", "DescribeUserScramCredentials"),
}


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    secured = Secured(Path(tmp_path_factory.mktemp("access")))
    more = {
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": plain_line({USER: PASSWORD, "admin": "admin-secret"}),
        "authorizer.class.name": STANDARD,
        "super.users": "User:admin;User:ANONYMOUS",
    }
    broker = Broker(secured.broker() | more)
    broker.start()
    try:
        yield secured.ports["SASL_PLAINTEXT"]
    finally:
        broker.close()


def test_an_answer_is_kafkas(port: int) -> None:
    chosen = None if os.environ.get("ACCESS") == "all" else SOME
    ours, kafkas = play(port, chosen), recorded()
    wrong: Counter[str] = Counter()
    shown: list[str] = []
    for condition, row in ours["rows"].items():
        for what in row.keys() & kafkas["rows"][condition].keys():
            answer, expected = ours["answers"][row[what]], kafkas["answers"][kafkas["rows"][condition][what]]
            if MESSAGE.sub("", answer) != MESSAGE.sub("", expected) and not is_otherwise(what):
                wrong[what] += 1
                shown += [f"{condition}, {what}:\n  Kafka  {expected}\n  Moldau {answer}"] if wrong[what] == 1 else []
    assert not wrong, f"{sum(wrong.values())} answers differ, for example\n" + "\n".join(shown[:20])


def is_otherwise(what: str) -> bool:
    return any(re.fullmatch(pattern, what.partition(" #")[0]) for pattern in OTHERWISE)


def test_every_set_of_acls_and_every_api_was_recorded() -> None:
    rows = recorded()["rows"]
    assert set(rows) == set(conditions())
    played = {what.partition(" ")[0] for what in rows["nothing"]}
    known = {name.removesuffix("Request") for name in m.names() if name.endswith("Request")}
    assert known - played == ELSEWHERE

"""Play the suite: for each set of ACLs, send every request in every version as alice, and note what she is told.

An answer with a refusal of authorization is noted as a whole, any other by what depends on ACLs: what it lists, and the
operations that it says are allowed. Answers that are equal are noted once.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator
from typing import Any, NamedTuple

from moldau.machines.metadata.acls import (
    ALL,
    ALLOW,
    ALTER,
    ALTER_CONFIGS,
    CLUSTER,
    CLUSTER_ACTION,
    CLUSTER_NAME,
    CREATE,
    CREATE_TOKENS,
    DELETE,
    DENY,
    DESCRIBE,
    DESCRIBE_CONFIGS,
    DESCRIBE_TOKENS,
    GROUP,
    IDEMPOTENT_WRITE,
    LITERAL,
    PREFIXED,
    READ,
    TOPIC,
    TRANSACTIONAL_ID,
    USER,
    WRITE,
)
from moldau.wire import messages as m
from moldau.wire.errors import Error
from tests.conformance.access.requests import requests, versions
from tests.conformance.sasl.scenarios import ADMIN, GOOD, Talk

ALICE = "User:alice"
NAMES = {TOPIC: "t", GROUP: "g", TRANSACTIONAL_ID: "x", CLUSTER: CLUSTER_NAME}
OPERATIONS = {
    TOPIC: (READ, WRITE, CREATE, DELETE, ALTER, DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS, ALL),
    GROUP: (READ, DESCRIBE, DELETE, DESCRIBE_CONFIGS, ALTER_CONFIGS, ALL),
    TRANSACTIONAL_ID: (WRITE, DESCRIBE, ALL),
    CLUSTER: (CREATE, CLUSTER_ACTION, DESCRIBE_CONFIGS, ALTER_CONFIGS, IDEMPOTENT_WRITE, ALTER, DESCRIBE, ALL),
}
ANY_KIND = (TOPIC, GROUP, TRANSACTIONAL_ID)
EVERYTHING = m.DeleteAclsRequest_DeleteAclsFilter(1, None, 1, ALICE, None, 1, 1)
PATIENCE_S = 60.0


class Rule(NamedTuple):
    kind: int
    name: str
    operation: int
    permission: int = ALLOW
    pattern: int = LITERAL
    host: str = "*"


def conditions() -> dict[str, list[Rule]]:
    """Return the sets of ACLs, by what they are called."""
    every = [Rule(kind, "*", ALL) for kind in ANY_KIND]
    found: dict[str, list[Rule]] = {"nothing": []}
    for kind, operations in OPERATIONS.items():
        for operation in operations:
            found[f"kind {kind} operation {operation}"] = [Rule(kind, NAMES[kind], operation)]
    for kind in ANY_KIND:
        found[f"prefixed kind {kind}"] = [Rule(kind, NAMES[kind], ALL, pattern=PREFIXED)]
        found[f"any but one of kind {kind}"] = [*every, Rule(kind, NAMES[kind], ALL, DENY)]
        found[f"any but to describe kind {kind}"] = [*every, Rule(kind, NAMES[kind], DESCRIBE, DENY)]
        found[f"any but a prefix of kind {kind}"] = [*every, Rule(kind, NAMES[kind], READ, DENY, PREFIXED)]
    found["anything"] = every
    found["anything from here"] = [rule._replace(host="127.0.0.1") for rule in every]
    found["anything from elsewhere"] = [rule._replace(host="10.0.0.1") for rule in every]
    found["denied from here"] = [*every, *(Rule(kind, "*", ALL, DENY, host="127.0.0.1") for kind in ANY_KIND)]
    found["tokens"] = [Rule(USER, "User:somebody", CREATE_TOKENS), Rule(USER, "User:somebody", DESCRIBE_TOKENS)]
    found["the cluster and anything"] = [*every, Rule(CLUSTER, CLUSTER_NAME, ALL)]
    return found


class Answers:
    """What was noted: for each set of ACLs the numbers of answers, and the answers."""

    def __init__(self) -> None:
        self.rows: dict[str, dict[str, int]] = {}
        self.known: dict[str, int] = {}

    def note(self, condition: str, what: str, answer: str) -> None:
        self.rows.setdefault(condition, {})[what] = self.known.setdefault(answer, len(self.known))

    def document(self) -> dict[str, Any]:
        return {"answers": list(self.known), "rows": self.rows}


def log_in(port: int, token: bytes) -> Talk:
    talk = Talk(port)
    assert not talk.ask(m.SaslHandshakeRequest("PLAIN"), 1).error_code
    assert not talk.ask(m.SaslAuthenticateRequest(token), 2).error_code
    return talk


class Stage:
    """A broker on which `alice` plays and `admin`, a super user, sets the scene."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.admin, self.alice = log_in(port, ADMIN), log_in(port, GOOD)
        topics = [m.CreateTopicsRequest_CreatableTopic(name, 1, 1) for name in ("t", "u")]
        made = self.admin.ask(m.CreateTopicsRequest(topics, 30_000), 7)
        self.topic_id = bytes(next(one for one in made.topics if one.name == "t").topic_id)
        for kind, key in ((0, "g"), (1, "x"), (2, f"g:{'A' * 22}:0")):
            self._until(lambda kind=kind, key=key: self._coordinator(kind, key))
        self._seen = 0

    def _coordinator(self, kind: int, key: str) -> bool:
        request = m.FindCoordinatorRequest(key_type=kind, coordinator_keys=[key])
        return not self.admin.ask(request, 6).coordinators[0].error_code

    def _until(self, condition: Any) -> None:
        end = time.monotonic() + PATIENCE_S
        while not condition():
            assert time.monotonic() < end
            time.sleep(0.02)

    def allow(self, rules: list[Rule]) -> None:
        """Replace alice's ACLs, and wait until they count: a broker hears of them a moment later."""
        self.admin.ask(m.DeleteAclsRequest([EVERYTHING]), 3)
        self._seen += 1
        sentinel = f"seen-{self._seen}"
        rows = [*rules, Rule(TOPIC, sentinel, DESCRIBE)]
        creations = [
            m.CreateAclsRequest_AclCreation(
                one.kind, one.name, one.pattern, ALICE, one.host, one.operation, one.permission
            )
            for one in rows
        ]
        answer = self.admin.ask(m.CreateAclsRequest(creations), 3)
        assert not any(one.error_code for one in answer.results), answer
        wanted = m.MetadataRequest([m.MetadataRequest_MetadataRequestTopic(name=sentinel)], False)
        denied = any(one.permission == DENY and (one.kind, one.name) == (TOPIC, "*") for one in rules)
        if not denied:
            self._until(lambda: self.alice.ask(wanted, 9).topics[0].error_code == Error.UNKNOWN_TOPIC_OR_PARTITION)
        else:
            self._until(lambda: not self.admin_sees(rows))

    def admin_sees(self, rows: list[Rule]) -> bool:
        """Tell whether ACLs are still missing in what the broker describes."""
        found = self.admin.ask(m.DescribeAclsRequest(1, None, 1, ALICE, None, 1, 1), 3)
        return sum(len(one.acls) for one in found.resources) < len(rows)

    def ask(self, request: Any, version: int) -> str | None:
        """Return what alice is told; None if that is nothing."""
        try:
            return told(self.alice.ask(request, version), request, self.topic_id)
        except (EOFError, ConnectionError, TimeoutError) as error:
            self.alice = log_in(self.port, GOOD)
            return None if isinstance(error, TimeoutError) else "closed"


def play(port: int, chosen: Collection[str] | None = None) -> dict[str, Any]:
    """Play the sets of ACLs with these names, or all; return what was noted."""
    stage, answers, silent = Stage(port), Answers(), set[str]()
    asked = [(request, list(versions(request))) for request in requests(stage.topic_id)]
    for name, rules in conditions().items():
        if chosen is not None and name not in chosen:
            continue
        stage.allow(rules)
        for number, (request, carried) in enumerate(asked):
            for version in carried:
                what = f"{request.SCHEMA.name.removesuffix('Request')} v{version} #{number}"
                if what in silent:
                    continue
                answer = stage.ask(request, version)
                if answer is None:
                    silent.add(what)  # it waits for something: it is not asked again
                    print(f"no answer to {what}, {name}", flush=True)
                else:
                    answers.note(name, what, answer)
    return answers.document()


REFUSALS = {int(error) for error in Error if error.name.endswith("AUTHORIZATION_FAILED")}
# Of answers without a refusal: what they list, by the array and the field that names an element.
LISTS = {
    "Metadata": ("topics", "name"),
    "ListGroups": ("groups", "group_id"),
    "DescribeTopicPartitions": ("topics", "name"),
    "ListTransactions": ("transaction_states", "transactional_id"),
}
OURS = ("t", "u", "g", "h", "x", "new", "none")  # brokers have other topics of their own


def told(answer: Any, request: Any, topic_id: bytes) -> str:
    """Return an answer as a text, without what two brokers may well differ in."""
    codes = {value for name, value in leaves(answer) if name.endswith("error_code")}
    if codes & REFUSALS:
        return repr(shape(answer, topic_id))
    operations = sorted(value for name, value in leaves(answer) if name.endswith("authorized_operations"))
    listed = LISTS.get(request.SCHEMA.name.removesuffix("Request"))
    names = sorted(getattr(one, listed[1]) or "" for one in getattr(answer, listed[0])) if listed else []
    return repr(("allowed", operations, [name for name in names if name in OURS]))


def leaves(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, list | tuple):
        for item in value:
            yield from leaves(item, name)
    elif hasattr(value, "__slots__"):
        for field in value.__slots__:
            yield from leaves(getattr(value, field), field)
    else:
        yield name, value


# Texts are each broker's own; whether there is one is compared. Ids and places differ from broker to broker.
TEXTS = ("message", "host", "cluster_id", "log_dir")
NUMBERS = ("port", "throttle_time_ms", "node_id", "epoch", "_ms", "controller_id", "leader_id", "timestamp")


def shape(value: Any, topic_id: bytes, name: str = "") -> Any:
    if isinstance(value, list | tuple):
        made = [shape(item, topic_id, name) for item in value]
        return sorted(made, key=repr)
    if isinstance(value, memoryview | bytes):
        data = bytes(value)
        return "t's id" if data == topic_id else ("some bytes" if any(data) else "no bytes")
    if hasattr(value, "__slots__"):
        return {field: shape(getattr(value, field), topic_id, field) for field in value.__slots__}
    if isinstance(value, str) and name.endswith(TEXTS):
        return "some text" if value else ""
    if isinstance(value, int) and name.endswith(NUMBERS):
        return (value > 0) - (value < 0)
    return Error(value).name if name.endswith("error_code") and value in list(Error) else value

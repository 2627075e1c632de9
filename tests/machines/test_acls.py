"""Commands on access control entries: what can be created, and what a filter means."""

from itertools import count

import pytest

from moldau.machines.metadata.acls import (
    ALL,
    ALLOW,
    ANY,
    CHANGES_MAX,
    CLUSTER,
    DENY,
    GROUP,
    LITERAL,
    MATCH,
    PREFIXED,
    READ,
    TOPIC,
    USER,
    WRITE,
    Acl,
    Acls,
    Filter,
    create,
    delete,
    describe,
)
from moldau.wire.errors import Error
from moldau.wire.refusal import Refused

IDS = count()
EVERYTHING = Filter(ANY, None, ANY, None, None, ANY, ANY)


def an_acl(**changes):
    return Acl(TOPIC, "pay", LITERAL, "User:a", "*", READ, ALLOW)._replace(**changes)


def commit(acls, result):
    records, answer = result
    for change in records:
        (acls.replay_removal if change.SCHEMA.name.startswith("Remove") else acls.replay)(change)
    return answer


def new(acls, *entries):
    return commit(acls, create(acls, entries, lambda: next(IDS).to_bytes(16)))


def test_an_entry_is_kept_once():
    acls = Acls()
    assert new(acls, an_acl(), an_acl()) == [None, None]
    assert new(acls, an_acl(), an_acl(host="h")) == [None, None]
    assert sorted(acls.ids) == [an_acl(), an_acl(host="h")]
    assert {acl: key for key, acl in acls.by_id.items()} == acls.ids


@pytest.mark.parametrize(
    "changes",
    [
        {"resource_type": CLUSTER, "resource_name": "other"},
        {"resource_name": ""},
        {"resource_type": ANY},
        {"resource_type": 99},
        {"pattern_type": MATCH},
        {"pattern_type": ANY},
        {"operation": ANY},
        {"operation": 99},
        {"permission": ANY},
        {"permission": 0},
        {"principal": "alice"},
    ],
)
def test_an_entry_that_makes_no_sense_is_refused_alone(changes):
    acls = Acls()
    good, bad = new(acls, an_acl(), an_acl(**changes))
    assert good is None
    assert bad is not None and bad.error == Error.INVALID_REQUEST
    assert list(acls.ids) == [an_acl()]


def test_what_looks_odd_is_taken_as_kafka_takes_it():
    odd = [{"principal": "User:"}, {"host": ""}, {"resource_name": "bad name!"}, {"resource_type": USER}]
    assert new(Acls(), *(an_acl(**changes) for changes in odd)) == [None] * len(odd)


def found(*entries, **wanted):
    acls = Acls()
    new(acls, *entries)
    return describe(acls, EVERYTHING._replace(**wanted))


def test_a_filter_asks_for_fields():
    one, two = an_acl(), an_acl(principal="User:b", host="h", operation=WRITE, permission=DENY)
    assert found(one, two) == [one, two]
    for field in ("principal", "host", "operation", "permission"):
        assert found(one, two, **{field: getattr(two, field)}) == [two]
    assert found(one, an_acl(resource_type=GROUP), resource_type=GROUP) == [an_acl(resource_type=GROUP)]
    assert found(one, operation=ALL) == []
    assert found(one, operation=99) == []


def test_a_filter_of_names_is_exact_or_asks_what_counts_for_a_resource():
    literal, longer, star = an_acl(), an_acl(resource_name="payment"), an_acl(resource_name="*")
    prefix, other = an_acl(resource_name="pa", pattern_type=PREFIXED), an_acl(resource_name="q", pattern_type=PREFIXED)
    entries = literal, longer, star, prefix, other
    assert found(*entries, resource_name="pay") == [literal]
    assert found(*entries, resource_name="pay", pattern_type=MATCH) == [literal, star, prefix]
    assert found(*entries, resource_name="pay", pattern_type=PREFIXED) == []
    assert found(*entries, resource_name="pa", pattern_type=PREFIXED) == [prefix]
    assert found(*entries, pattern_type=PREFIXED) == [prefix, other]
    assert found(*entries, pattern_type=MATCH) == list(entries)


def test_filters_delete_what_they_match_and_each_tells_it():
    acls = Acls()
    new(acls, an_acl(), an_acl(host="h"), an_acl(resource_type=GROUP))
    topics = EVERYTHING._replace(resource_type=TOPIC)
    one, two, bad = commit(acls, delete(acls, [topics, EVERYTHING._replace(host="h"), topics._replace(operation=99)]))
    assert one == [an_acl(), an_acl(host="h")]
    assert two == [an_acl(host="h")]
    assert isinstance(bad, Refused) and bad.error == Error.INVALID_REQUEST
    assert list(acls.ids) == [an_acl(resource_type=GROUP)]


def test_one_request_changes_only_so_many_entries():
    acls = Acls()
    entries = [an_acl(resource_name=str(number)) for number in range(CHANGES_MAX + 1)]
    refusals = new(acls, *entries)
    assert {refused.error for refused in refusals if refused} == {Error.POLICY_VIOLATION}
    assert len(refusals) == len(entries) and not acls.ids
    new(acls, *entries[1:])
    new(acls, entries[0])
    (answer,) = commit(acls, delete(acls, [EVERYTHING]))
    assert isinstance(answer, Refused) and len(acls.ids) == len(entries)

"""Client quotas: which entities, keys and values there are, and what a query finds."""

import math

import pytest

from moldau.machines.metadata import records
from moldau.machines.metadata.cluster import Cluster
from moldau.machines.metadata.quotas import ANY, DEFAULT, EXACT, Alteration, Component, alter_quotas, describe_quotas
from moldau.wire.errors import Error
from moldau.wire.refusal import Refused

U, U_C, U_ANY, C = (("user", "u"),), (("client-id", "c"), ("user", "u")), (("user", None),), (("client-id", "c"),)
ADDRESS, ANY_ADDRESS = (("ip", "1.2.3.4"),), (("ip", None),)
RATE, PERCENTAGE, CONNECTIONS = "producer_byte_rate", "request_percentage", "connection_creation_rate"


def alter(cluster, *alterations):
    changes, answer = alter_quotas(cluster, [Alteration(*one) for one in alterations])
    for record in changes:
        cluster.replay(records.decode(records.encode(record)))
    return [None if refused is None else refused.error for refused in answer.values()]


@pytest.fixture
def cluster():
    image = Cluster()
    rows = [(U, [(RATE, 1.0)]), (U_C, [(RATE, 2.0)]), (U_ANY, [(RATE, 3.0)]), (C, [(PERCENTAGE, 0.5)])]
    rows += [(ADDRESS, [(CONNECTIONS, 5.0)]), (ANY_ADDRESS, [(CONNECTIONS, 6.0)])]
    assert alter(image, *rows) == [None] * 6
    return image


def test_values_are_set_and_removed_by_replay(cluster):
    assert cluster.quotas[U] == {RATE: 1.0}
    assert alter(cluster, (U, [(RATE, None), (PERCENTAGE, 7.5)])) == [None]
    assert cluster.quotas[U] == {PERCENTAGE: 7.5}
    assert alter(cluster, (U, [(PERCENTAGE, None)])) == [None]
    assert U not in cluster.quotas


def test_what_changes_nothing_makes_no_record(cluster):
    same = [Alteration(U, [(RATE, 1.0), ("unknown", None)]), Alteration(C, [])]
    assert alter_quotas(cluster, same)[0] == []


@pytest.mark.parametrize(
    ("entity", "key", "value"),
    [
        (U, RATE, 0.0),
        (U, RATE, -1.0),
        (U, RATE, 1.5),
        (U, RATE, math.nan),
        (U, PERCENTAGE, math.nan),
        (U, RATE, math.inf),
        (U, RATE, 1e19),
        (U, "unknown", 1.0),
        (U, CONNECTIONS, 1.0),
        (ADDRESS, RATE, 1.0),
        (ADDRESS, CONNECTIONS, 2.0**31),
        ((), RATE, 1.0),
        ((("group", "g"),), RATE, 1.0),
        ((("user", ""),), RATE, 1.0),
        ((("ip", "1.2.3.4"), ("user", "u")), CONNECTIONS, 1.0),
        ((("ip", "not an address"),), CONNECTIONS, 1.0),
    ],
)
def test_quotas_that_cannot_be_are_refused(cluster, entity, key, value):
    assert alter(cluster, (entity, [(key, value)])) == [Error.INVALID_REQUEST]


@pytest.mark.parametrize(
    ("entity", "key", "value"),
    [
        (U, PERCENTAGE, math.inf),
        (U, RATE, 1.0000001),
        (U, RATE, 2.0**63),
        ((("ip", "::1"),), CONNECTIONS, 1.0),
        ((("ip", "localhost"),), CONNECTIONS, 1.0),
    ],
)
def test_odd_but_lawful_quotas_are_kept(cluster, entity, key, value):
    assert alter(cluster, (entity, [(key, value)])) == [None]
    assert cluster.quotas[entity][key] == value


def test_one_refusal_does_not_touch_other_entities(cluster):
    assert alter(cluster, (U, [(RATE, 9.0)]), (C, [("unknown", 1.0)])) == [None, Error.INVALID_REQUEST]
    assert cluster.quotas[U] == {RATE: 9.0}


def test_a_key_named_twice_changes_nothing(cluster):
    assert alter(cluster, (U, [(RATE, 8.0), (RATE, 9.0)])) == [Error.INVALID_REQUEST]
    assert cluster.quotas[U] == {RATE: 1.0}


def test_of_an_entity_named_twice_the_first_row_is_done(cluster):
    assert alter(cluster, (U, [(RATE, 8.0)]), (U, [(RATE, 9.0)])) == [Error.INVALID_REQUEST]
    assert cluster.quotas[U] == {RATE: 8.0}


@pytest.mark.parametrize(
    ("components", "loose", "strict"),
    [
        ([], {U, U_C, U_ANY, C, ADDRESS, ANY_ADDRESS}, set()),
        ([("user", EXACT, "u")], {U, U_C}, {U}),
        ([("user", DEFAULT, None)], {U_ANY}, {U_ANY}),
        ([("user", ANY, None)], {U, U_C, U_ANY}, {U, U_ANY}),
        ([("user", EXACT, "u"), ("client-id", ANY, None)], {U_C}, {U_C}),
        ([("user", EXACT, "u"), ("client-id", DEFAULT, None)], set(), set()),
        ([("ip", ANY, None)], {ADDRESS, ANY_ADDRESS}, {ADDRESS, ANY_ADDRESS}),
        ([("user", EXACT, "")], set(), set()),
    ],
)
def test_a_query_finds_what_fits_all_components(cluster, components, loose, strict):
    asked = [Component(*one) for one in components]
    assert {entity for entity, _ in describe_quotas(cluster, asked, False)} == loose
    assert {entity for entity, _ in describe_quotas(cluster, asked, True)} == strict


@pytest.mark.parametrize(
    ("components", "error"),
    [
        ([("user", EXACT, None)], Error.INVALID_REQUEST),
        ([("user", DEFAULT, "u")], Error.INVALID_REQUEST),
        ([("user", ANY, "u")], Error.INVALID_REQUEST),
        ([("user", 3, None)], Error.INVALID_REQUEST),
        ([("", ANY, None)], Error.INVALID_REQUEST),
        ([("user", ANY, None), ("user", ANY, None)], Error.INVALID_REQUEST),
        ([("ip", ANY, None), ("user", ANY, None)], Error.INVALID_REQUEST),
        ([("group", ANY, None)], Error.UNSUPPORTED_VERSION),
    ],
)
def test_queries_that_make_no_sense_are_refused(cluster, components, error):
    with pytest.raises(Refused) as caught:
        describe_quotas(cluster, [Component(*one) for one in components], False)
    assert caught.value.error == error

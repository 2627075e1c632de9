"""AlterClientQuotas and DescribeClientQuotas: kept in the metadata, found by a filter."""

import pytest

from moldau.wire import messages as m
from moldau.wire.errors import Error


def alter(world, *rows, validate_only=False, version=1):
    entries = [
        m.AlterClientQuotasRequest_EntryData(
            [m.AlterClientQuotasRequest_EntityData(*part) for part in entity],
            [m.AlterClientQuotasRequest_OpData(*change) for change in changes],
        )
        for entity, changes in rows
    ]
    answers = world.call(m.AlterClientQuotasRequest(entries, validate_only), version).entries
    assert all((row.error_message is None) == (row.error_code == 0) for row in answers)
    return [(row.error_code, [(part.entity_type, part.entity_name) for part in row.entity]) for row in answers]


def describe(world, *components, strict=False, version=1):
    rows = [m.DescribeClientQuotasRequest_ComponentData(*component) for component in components]
    answer = world.call(m.DescribeClientQuotasRequest(rows, strict), version)
    if answer.error_code:
        assert answer.entries is None
        return answer.error_code
    return {
        tuple((part.entity_type, part.entity_name) for part in row.entity): {v.key: v.value for v in row.values}
        for row in answer.entries
    }


@pytest.mark.parametrize("version", [0, 1])
def test_quotas_are_kept_and_found(world, version):
    both = [("user", "u"), ("client-id", None)]
    rows = [
        ([("user", "u")], [("producer_byte_rate", 10.0, False), ("request_percentage", 1.5, False)]),
        (both, [("consumer_byte_rate", 20.0, False)]),
    ]
    expected = [("client-id", None), ("user", "u")]
    assert alter(world, *rows, version=version) == [(0, [("user", "u")]), (0, expected)]
    world.restart()
    user = {(("user", "u"),): {"producer_byte_rate": 10.0, "request_percentage": 1.5}}
    assert describe(world, version=version) == user | {tuple(expected): {"consumer_byte_rate": 20.0}}
    assert describe(world, ("user", 0, "u"), strict=True, version=version) == user
    assert alter(world, ([("user", "u")], [("producer_byte_rate", 0.0, True)]), version=version)[0][0] == 0
    assert describe(world, ("user", 0, "u"), strict=True) == {(("user", "u"),): {"request_percentage": 1.5}}


def test_validate_only_keeps_nothing(world):
    assert alter(world, ([("user", "u")], [("producer_byte_rate", 1.0, False)]), validate_only=True)[0][0] == 0
    assert describe(world) == {}


def test_entities_fail_by_themselves_and_come_once(world):
    u, v = [("user", "u")], [("user", "v")]
    good, bad = [("producer_byte_rate", 1.0, False)], [("unknown", 1.0, False)]
    assert alter(world, (u, good), (v, bad)) == [(0, u), (Error.INVALID_REQUEST, v)]
    assert alter(world, (v, good), (v, good)) == [(Error.INVALID_REQUEST, v)]
    assert alter(world, ([("user", "u"), ("user", "w")], good)) == [(0, [("user", "w")])]
    assert alter(world) == []


def test_a_filter_that_makes_no_sense_is_refused(world):
    assert describe(world, ("user", 0, None)) == Error.INVALID_REQUEST
    assert describe(world, ("group", 2, None)) == Error.UNSUPPORTED_VERSION

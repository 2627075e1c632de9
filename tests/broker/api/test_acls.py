"""CreateAcls, DescribeAcls and DeleteAcls: off without an authorizer; with one kept, found and removed."""

import pytest

from moldau.settings import SettingError
from moldau.wire import messages as m
from moldau.wire.errors import Error

STANDARD = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
ENTRY = (2, "pay", 3, "User:a", "*", 3, 3)
EVERYTHING = (1, None, 1, None, None, 1, 1)


@pytest.fixture
def secured(make_world):
    return make_world(authorizer_class_name=STANDARD, super_users="User:ANONYMOUS")


def create(world, *rows, version=3):
    entries = [m.CreateAclsRequest_AclCreation(*row) for row in rows]
    return [row.error_code for row in world.call(m.CreateAclsRequest(entries), version).results]


def describe(world, wanted=EVERYTHING, version=3):
    answer = world.call(m.DescribeAclsRequest(*wanted), version)
    assert answer.error_code == 0
    return [
        (resource.resource_type, resource.resource_name, resource.pattern_type, *vars_of(acl))
        for resource in answer.resources
        for acl in resource.acls
    ]


def vars_of(acl):
    return acl.principal, acl.host, acl.operation, acl.permission_type


def delete(world, *filters, version=3):
    rows = [m.DeleteAclsRequest_DeleteAclsFilter(*row) for row in filters]
    answer = world.call(m.DeleteAclsRequest(rows), version)
    return [
        row.error_code
        or [(acl.resource_type, acl.resource_name, acl.pattern_type, *vars_of(acl)) for acl in row.matching_acls]
        for row in answer.filter_results
    ]


def test_without_an_authorizer_security_is_disabled(world):
    assert create(world, ENTRY, ENTRY) == [Error.SECURITY_DISABLED] * 2
    assert world.call(m.DescribeAclsRequest(*EVERYTHING)).error_code == Error.SECURITY_DISABLED
    assert delete(world, EVERYTHING) == [Error.SECURITY_DISABLED]


@pytest.mark.parametrize("version", [1, 2, 3])
def test_entries_are_kept_found_and_removed(secured, version):
    other = (3, "g", 4, "User:b", "10.0.0.1", 2, 2)
    bad = (2, "", 3, "User:a", "*", 3, 3)
    assert create(secured, ENTRY, bad, other, version=version) == [0, Error.INVALID_REQUEST, 0]
    assert describe(secured, version=version) == [ENTRY, other]
    secured.restart()
    assert describe(secured, version=version) == [ENTRY, other]
    assert describe(secured, (1, None, 1, "User:b", None, 1, 1), version) == [other]
    secured.node.metadata.write_snapshot()
    secured.restart(clean=False)
    assert delete(secured, (2, None, 1, None, None, 1, 1), (2, "q", 1, None, None, 1, 1), version=version) == [
        [ENTRY],
        [],
    ]
    assert describe(secured, version=version) == [other]


def test_an_entry_counts_from_the_next_request_on(make_world):
    world = make_world(authorizer_class_name=STANDARD, allow_everyone_if_no_acl_found="true")
    world.create("pay")
    ask = m.MetadataRequest([m.MetadataRequest_MetadataRequestTopic(name="pay")])
    assert world.call(ask).topics[0].error_code == 0
    assert create(world, ENTRY) == [0]
    assert world.call(ask).topics[0].error_code == Error.TOPIC_AUTHORIZATION_FAILED
    mine = (2, "pay", 3, "User:ANONYMOUS", "*", 8, 3)
    assert create(world, mine) == [0]
    assert world.call(ask).topics[0].error_code == 0


def test_an_authorizer_that_is_not_there_is_refused_at_the_start(make_world):
    with pytest.raises(SettingError, match="StandardAuthorizer"):
        make_world(authorizer_class_name="StandardAuthorizer")
    with pytest.raises(SettingError, match="User:NAME"):
        make_world(authorizer_class_name=STANDARD, super_users="User:a;bob")

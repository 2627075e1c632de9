"""How a host is written in an access control entry, and what a start tells of what it does not heed."""

import pytest

from moldau.broker.authorizer import host_of, list_unheeded, make_authorizer
from moldau.machines.metadata.acls import Acls
from moldau.machines.metadata.cluster import Cluster
from moldau.settings import Settings
from moldau.wire import messages as m


@pytest.mark.parametrize(
    ("peer", "host"),
    [
        ("127.0.0.1:5", "127.0.0.1"),
        ("[::1]:5", "0:0:0:0:0:0:0:1"),
        ("[::ffff:10.0.0.1]:5", "10.0.0.1"),
        ("[fe80::a%eth0]:5", "fe80:0:0:0:0:0:0:a"),
        ("somewhere:5", "somewhere"),
        ("", ""),
    ],
)
def test_a_host_is_written_as_java_writes_it(peer, host):
    assert host_of(peer) == host


def test_the_settings_make_the_authorizer():
    standard = {"authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer"}
    assert make_authorizer(Settings.load({}), Acls()) is None
    plain = make_authorizer(Settings.load(standard), Acls())
    assert plain is not None and not plain.allow_everyone and not plain.super_users
    users = {"super.users": "User:a; User:CN=b,O=c;", "allow.everyone.if.no.acl.found": "true"}
    open_one = make_authorizer(Settings.load(standard | users), Acls())
    assert open_one is not None and open_one.allow_everyone
    assert open_one.super_users == {"User:a", "User:CN=b,O=c"}


def test_a_start_tells_what_is_kept_but_not_heeded():
    cluster = Cluster()
    assert not list(list_unheeded(cluster, None))
    cluster.replay(m.AccessControlEntryRecord(bytes(16), 2, "t", 3, "User:a", "*", 3, 3))
    (entries,) = list_unheeded(cluster, None)
    assert "authorizer.class.name" in entries
    authorizer = make_authorizer(
        Settings.load({"authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer"}),
        cluster.acls,
    )
    assert list(list_unheeded(cluster, authorizer)) == []

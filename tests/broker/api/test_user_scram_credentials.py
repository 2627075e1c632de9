"""AlterUserScramCredentials and DescribeUserScramCredentials: kept in the metadata, told without secrets."""

from moldau.wire import messages as m
from moldau.wire.errors import Error


def alter(world, deletions=(), upsertions=()):
    gone = [m.AlterUserScramCredentialsRequest_ScramCredentialDeletion(*row) for row in deletions]
    new = [m.AlterUserScramCredentialsRequest_ScramCredentialUpsertion(*row) for row in upsertions]
    answer = world.call(m.AlterUserScramCredentialsRequest(gone, new))
    assert all((row.error_message is None) == (row.error_code == 0) for row in answer.results)
    return {row.user: row.error_code for row in answer.results}


def describe(world, *users):
    asked = [m.DescribeUserScramCredentialsRequest_UserName(user) for user in users] or None
    answer = world.call(m.DescribeUserScramCredentialsRequest(asked))
    assert answer.error_code == 0
    return {
        row.user: row.error_code or [(info.mechanism, info.iterations) for info in row.credential_infos]
        for row in answer.results
    }


def test_credentials_are_kept_over_restarts_and_snapshots(world):
    new = [("u", 1, 4096, b"salt", b"p" * 32), ("v", 2, 8192, b"salt", b"p" * 64), ("w", 1, 1, b"salt", b"p")]
    assert alter(world, [], new) == {"u": 0, "v": 0, "w": Error.UNACCEPTABLE_CREDENTIAL}
    world.restart()
    world.node.metadata.write_snapshot()
    world.restart(clean=False)
    assert describe(world) == {"u": [(1, 4096)], "v": [(2, 8192)]}
    assert alter(world, [("u", 1), ("v", 1)]) == {"u": 0, "v": Error.RESOURCE_NOT_FOUND}
    assert describe(world, "u", "v") == {"u": Error.RESOURCE_NOT_FOUND, "v": [(2, 8192)]}


def test_nothing_asked_is_nothing_done(world):
    assert alter(world) == {}
    assert describe(world) == {}

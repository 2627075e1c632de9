"""The decision on access control entries: Kafka's rules by example, and against a naive model."""

from hypothesis import given
from hypothesis import strategies as st

from moldau.machines.metadata.acls import (
    ALL,
    ALLOW,
    ALTER,
    ALTER_CONFIGS,
    CLUSTER_ACTION,
    CREATE,
    DELETE,
    DENY,
    DESCRIBE,
    DESCRIBE_CONFIGS,
    GROUP,
    LITERAL,
    PREFIXED,
    READ,
    TOPIC,
    WRITE,
    Acl,
    Acls,
    record,
)
from moldau.machines.metadata.authorizer import Authorizer
from moldau.wire import messages as m

ALICE, HOST = "User:alice", "10.0.0.1"


def acls_of(*entries: Acl) -> Acls:
    acls = Acls()
    for number, entry in enumerate(entries):
        acls.replay(record(entry, number.to_bytes(16)))
    return acls


def entry(name, operation, permission=ALLOW, pattern=LITERAL, who=ALICE, host="*", kind=TOPIC):
    return Acl(kind, name, pattern, who, host, operation, permission)


def may(*entries, operation=READ, name="pay", who=ALICE, host=HOST, kind=TOPIC, **options):
    return Authorizer(acls_of(*entries), **options).allows(who, host, operation, kind, name)


def test_without_an_entry_nobody_may_unless_everybody_may():
    assert not may()
    assert may(allow_everyone=True)
    assert not may(entry("pay", WRITE), allow_everyone=True), "an entry about the topic ends that"
    assert not may(entry("pa", READ, pattern=PREFIXED, who="User:bob"), allow_everyone=True)
    assert may(entry("other", READ), entry("pay", READ, kind=GROUP), allow_everyone=True)


def test_super_users_may_even_what_is_denied():
    deny = entry("pay", ALL, DENY)
    assert may(deny, super_users=["User:bob", ALICE])
    assert not may(deny, super_users=["User:bob"])


def test_patterns_are_literal_prefixed_or_the_wildcard():
    assert may(entry("pay", READ))
    assert not may(entry("pa", READ))
    assert may(entry("pa", READ, pattern=PREFIXED))
    assert may(entry("pay", READ, pattern=PREFIXED))
    assert not may(entry("pay2", READ, pattern=PREFIXED))
    assert may(entry("*", READ))
    assert not may(entry("*", READ, pattern=PREFIXED)), "as a prefix the star is a letter like any other"


def test_principals_and_hosts_match_whole_or_by_the_star():
    assert may(entry("pay", READ, who="User:*"))
    assert not may(entry("pay", READ, who="User:ali*"))
    assert not may(entry("pay", READ, who="Group:*"))
    assert may(entry("pay", READ, host=HOST))
    assert not may(entry("pay", READ, host="10.0.0.2"))


def test_one_denial_wins_over_all_that_allow():
    allow = entry("pay", ALL)
    for deny in (
        entry("pay", READ, DENY),
        entry("p", READ, DENY, PREFIXED),
        entry("*", ALL, DENY),
        entry("pay", READ, DENY, who="User:*", host=HOST),
    ):
        assert not may(allow, deny)
        assert may(allow, deny, operation=WRITE) == (deny.operation != ALL)


def test_some_operations_bring_describe_with_them_but_their_denial_does_not_take_it():
    for operation in (READ, WRITE, DELETE, ALTER, DESCRIBE, ALL):
        assert may(entry("pay", operation), operation=DESCRIBE)
    for operation in (CREATE, CLUSTER_ACTION, ALTER_CONFIGS, DESCRIBE_CONFIGS):
        assert not may(entry("pay", operation), operation=DESCRIBE)
    assert may(entry("pay", ALTER_CONFIGS), operation=DESCRIBE_CONFIGS)
    assert not may(entry("pay", ALTER), operation=DESCRIBE_CONFIGS)
    assert may(entry("pay", DESCRIBE), entry("pay", READ, DENY), operation=DESCRIBE)


def test_a_decision_is_forgotten_when_an_entry_changes():
    acls = acls_of(entry("pay", READ))
    authorizer = Authorizer(acls)
    assert authorizer.allows(ALICE, HOST, READ, TOPIC, "pay")
    acls.replay_removal(m.RemoveAccessControlEntryRecord(bytes(16)))
    assert not authorizer.allows(ALICE, HOST, READ, TOPIC, "pay")
    assert acls == Acls(), "nothing is left behind"


def may_any(*entries, operation=WRITE):
    return Authorizer(acls_of(*entries)).allows_any(ALICE, HOST, operation, TOPIC)


def test_who_may_write_anywhere_is_found_without_a_name():
    assert not may_any()
    assert may_any(entry("pay", WRITE))
    assert may_any(entry("p", ALL, pattern=PREFIXED))
    assert not may_any(entry("pay", READ))
    assert not may_any(entry("pay", READ), operation=DESCRIBE), "implied operations do not count"
    assert not may_any(entry("pay", WRITE), entry("*", WRITE, DENY))
    assert not may_any(entry("pay", WRITE), entry("pay", WRITE, DENY))
    assert not may_any(entry("pay", WRITE), entry("p", ALL, DENY, PREFIXED))
    assert may_any(entry("p", WRITE, pattern=PREFIXED), entry("pay", WRITE, DENY, PREFIXED))
    assert may_any(entry("*", WRITE), entry("h", WRITE, DENY, PREFIXED))


names = st.text("ab", min_size=1, max_size=3)
people = st.sampled_from([ALICE, "User:bob", "User:*"])
places = st.sampled_from([HOST, "10.0.0.2", "*"])
operations = st.sampled_from([ALL, READ, WRITE, DELETE, ALTER, DESCRIBE, CREATE, DESCRIBE_CONFIGS, ALTER_CONFIGS])
entries = st.builds(
    Acl,
    st.sampled_from([TOPIC, GROUP]),
    names | st.just("*"),
    st.sampled_from([LITERAL, PREFIXED]),
    people,
    places,
    operations,
    st.sampled_from([ALLOW, DENY]),
)


def naive(entries, who, host, operation, kind, name, allow_everyone):
    about = [
        one
        for one in entries
        if one.resource_type == kind
        and (name.startswith(one.resource_name) if one.pattern_type == PREFIXED else one.resource_name in (name, "*"))
    ]
    mine = [one for one in about if one.principal in (who, "User:*") and one.host in (host, "*")]
    if any(one.permission == DENY and one.operation in (operation, ALL) for one in mine):
        return False
    implied = {DESCRIBE: (READ, WRITE, DELETE, ALTER), DESCRIBE_CONFIGS: (ALTER_CONFIGS,)}.get(operation, ())
    if any(one.permission == ALLOW and one.operation in (operation, ALL, *implied) for one in mine):
        return True
    return allow_everyone and not about


@given(st.sets(entries, max_size=12), st.data(), st.booleans())
def test_decisions_are_those_of_a_model_that_looks_at_every_entry(found, data, allow_everyone):
    """Through additions and removals, with the memory of decisions in between."""
    acls, present = Acls(), {}
    authorizer = Authorizer(acls, allow_everyone=allow_everyone)
    for number, one in enumerate(sorted(found)):
        present[number.to_bytes(16)] = one
        acls.replay(record(one, number.to_bytes(16)))
        if data.draw(st.booleans()):
            gone = data.draw(st.sampled_from(sorted(present)))
            del present[gone]
            acls.replay_removal(m.RemoveAccessControlEntryRecord(gone))
        question = (
            data.draw(st.sampled_from([ALICE, "User:bob"])),
            HOST,
            data.draw(operations.filter(lambda operation: operation != ALL)),
            data.draw(st.sampled_from([TOPIC, GROUP])),
            data.draw(names),
        )
        assert authorizer.allows(*question) == naive(present.values(), *question, allow_everyone)


@given(st.sets(entries, max_size=8))
def test_who_may_do_nothing_by_name_may_do_nothing_anywhere(found):
    """With names as long as the patterns reach, `allows_any` is true where some name is allowed, but for implied."""
    authorizer = Authorizer(acls_of(*found))
    every = [a + b + c + d for a in "abz" for b in ["", *"abz"] for c in ["", *"abz"] for d in ["", "z"]]
    if any(authorizer.allows(ALICE, HOST, WRITE, TOPIC, name) for name in every):
        assert authorizer.allows_any(ALICE, HOST, WRITE, TOPIC)

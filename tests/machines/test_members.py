"""Records of members that are written without the codec."""

from hypothesis import given
from hypothesis import strategies as st

from moldau.broker.coordinators import encode
from moldau.machines.consumer.members import Member, assignment_change, target_change, target_of, with_assignment
from moldau.machines.effects import Change
from moldau.machines.reconciling import State
from moldau.wire import messages as m

TARGETS = st.dictionaries(st.binary(min_size=16, max_size=16), st.frozensets(st.integers(0, 2**31 - 1), max_size=200))


@given(group=st.text(max_size=200), member=st.text(max_size=200), target=TARGETS)
def test_a_target_is_written_as_the_codec_writes_it(group, member, target) -> None:
    row = m.ConsumerGroupTargetAssignmentMemberValue_TopicPartition
    value = m.ConsumerGroupTargetAssignmentMemberValue([row(t, sorted(mine)) for t, mine in target.items() if mine])
    key = m.ConsumerGroupTargetAssignmentMemberKey(group, member)
    change = target_change(group, member, target)
    assert change.encoded == encode(Change(key, value))
    assert target_of(value) == target_of(change.value)


NUMBERS = st.integers(0, 2**31 - 1)
OWNED = st.dictionaries(
    st.binary(min_size=16, max_size=16), st.dictionaries(NUMBERS, NUMBERS, max_size=200), max_size=5
)
MEMBERS = st.builds(
    Member,
    id=st.text(max_size=200),
    epoch=st.integers(-2, 2**31 - 1),
    previous_epoch=st.integers(-1, 2**31 - 1),
    state=st.sampled_from(State),
    assigned=OWNED,
    revoking=OWNED,
)


@given(group=st.text(max_size=200), member=MEMBERS)
def test_an_assignment_is_written_as_the_codec_writes_it(group, member) -> None:
    def rows(owned):
        row = m.ConsumerGroupCurrentMemberAssignmentValue_TopicPartitions
        return [row(topic, sorted(mine), [mine[index] for index in sorted(mine)]) for topic, mine in owned.items()]

    value = m.ConsumerGroupCurrentMemberAssignmentValue(
        member.epoch, member.previous_epoch, member.state, rows(member.assigned), rows(member.revoking)
    )
    change = assignment_change(group, member)
    assert change.encoded == encode(Change(m.ConsumerGroupCurrentMemberAssignmentKey(group, member.id), value))
    before = member._replace(epoch=0, previous_epoch=0, state=State.STABLE, assigned={}, revoking={})
    assert with_assignment(before, value) == with_assignment(before, change.value) == member

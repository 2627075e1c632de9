"""Records of members that are written without the codec."""

from hypothesis import given
from hypothesis import strategies as st

from moldau.broker.coordinators import encode
from moldau.machines.effects import Change
from moldau.machines.members import target_change, target_of
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

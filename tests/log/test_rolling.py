"""Segments roll at the same batches whether the bounds of a segment are believed or the question is asked each time."""

from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.log.logs import NOW, append, batch, config, create

LIMITS = st.fixed_dictionaries(
    {
        "segment_bytes": st.sampled_from([600, 2000, 1 << 20]),
        "segment_index_bytes": st.sampled_from([16, 24, 48, 1 << 20]),
        "segment_ms": st.sampled_from([5, 50, 1 << 40]),
        "index_interval_bytes": st.sampled_from([0, 100, 300]),
    }
)
TIMES = st.integers(0, 20).map(lambda late: NOW + late) | st.just(-1)
APPENDS = st.tuples(st.integers(1, 300), TIMES)
STEPS = st.lists(APPENDS | LIMITS | st.floats(0, 1), max_size=40)


def segments(folder, first, steps, *, ask):
    log = create(folder, config(**first))
    for step in steps:
        if ask and log.active is not None:
            log.active.roomy_size = -1
        if isinstance(step, float):
            log.truncate_to(int(log.end_offset * step), NOW)
        elif isinstance(step, dict):
            log.configure(config(**step))
        else:
            size, timestamp = step
            append(log, batch(b"v" * size, timestamp=timestamp))
    return log.segments.bases, log.end_offset


@settings(max_examples=100, deadline=None)
@given(first=LIMITS, steps=STEPS)
def test_the_bounds_of_a_segment_change_no_roll(first, steps):
    with TemporaryDirectory() as one, TemporaryDirectory() as other:
        assert segments(one, first, steps, ask=False) == segments(other, first, steps, ask=True)

"""Segments roll at the same batches whether the bounds of a segment are believed or the question is asked each time."""

from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.log.logs import NOW, append, batch, config, create

LIMITS = st.fixed_dictionaries(
    {
        "segment_bytes": st.sampled_from([600, 3000, 1 << 20]),
        "segment_index_bytes": st.sampled_from([36, 60, 1 << 20]),
        "segment_ms": st.sampled_from([10, 1 << 40]),
        "index_interval_bytes": st.sampled_from([0, 100, 1000]),
    }
)
TIMES = st.integers(0, 20).map(lambda late: NOW + late) | st.just(-1)
APPENDS = st.tuples(st.integers(1, 300), TIMES)
RUNS = st.lists(st.tuples(st.lists(APPENDS, min_size=3, max_size=9), LIMITS | st.floats(0, 1)), min_size=2, max_size=5)


def segments(folder, first, runs, *, ask):
    """Runs of appends, with other settings or a truncation between them; where the segments begin, run by run."""
    log = create(folder, config(**first))
    seen = []
    for appends, between in runs:
        for size, timestamp in appends:
            if ask and log.active is not None:
                log.active.roomy_size = -1
            append(log, batch(b"v" * size, timestamp=timestamp))
        seen.append((list(log.segments.bases), log.end_offset))
        if isinstance(between, float):
            log.truncate_to(int(log.end_offset * between), NOW)
        else:
            log.configure(config(**between))
    return seen


@settings(max_examples=150, deadline=None)
@given(first=LIMITS, runs=RUNS)
def test_the_bounds_of_a_segment_change_no_roll(first, runs):
    with TemporaryDirectory() as one, TemporaryDirectory() as other:
        assert segments(one, first, runs, ask=False) == segments(other, first, runs, ask=True)

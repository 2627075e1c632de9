"""The log beside a list: whatever is done to it, it holds what the list holds."""

import shutil
import tempfile
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from moldau.log.config import LogConfig
from tests.log.logs import NOW, append, batch, contents, create, reopen


class LogBesideList(RuleBasedStateMachine):
    """`truth` are the batches: base offset, values, epoch."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.truth: list[tuple[int, list[bytes], int]] = []
        self.start = self.end = self.epoch = 0

    @initialize(size=st.sampled_from([300, 1000, 1 << 30]), interval=st.sampled_from([0, 150, 4096]))
    def begin(self, size: int, interval: int) -> None:
        self.config = LogConfig(segment_bytes=size, index_interval_bytes=interval)
        self.log = create(self.folder, self.config)

    @rule(values=st.lists(st.binary(max_size=60), min_size=1, max_size=4))
    def append(self, values: list[bytes]) -> None:
        if len(batch(*values)) <= self.config.segment_bytes:
            assert append(self.log, batch(*values), epoch=self.epoch) == self.end
            self.truth.append((self.end, values, self.epoch))
            self.end += len(values)

    @rule()
    def roll(self) -> None:
        self.log.roll(NOW)

    @rule()
    def lead_anew(self) -> None:
        self.epoch += 1

    @rule()
    def flush(self) -> None:
        self.log.flush(NOW)

    @rule()
    def stop_cleanly(self) -> None:
        self.log.close()
        state = {"start_offset": self.log.start_offset, "recovery_point": self.log.recovery_point}
        self.log = reopen(self.folder, self.config, clean=True, high_watermark=self.log.high_watermark, **state)

    @rule(torn=st.binary(max_size=100), lost_writes=st.booleans())
    def crash(self, torn: bytes, lost_writes: bool) -> None:
        newest = max(Path(self.log.path).glob("*.log"), default=None)
        if newest:
            with newest.open("ab") as file:
                file.write(torn)
        state = {"start_offset": self.log.start_offset, "recovery_point": self.log.recovery_point}
        marks = {"high_watermark": self.log.high_watermark, "lost_writes": lost_writes}
        self.log.shut("crashed")
        self.log = reopen(self.folder, self.config, **state, **marks)

    @precondition(lambda self: self.end > self.start)
    @rule(data=st.data())
    def truncate(self, data: st.DataObject) -> None:
        offset = data.draw(st.integers(self.start, self.end))
        self.log.truncate_to(offset, NOW)
        while self.truth and self.end > offset:
            base, _, _ = self.truth.pop()
            self.end = base
        self.start = min(self.start, self.end)
        self.epoch += 1

    @rule(data=st.data())
    def delete_records(self, data: st.DataObject) -> None:
        self.start = data.draw(st.integers(self.start, self.end))
        assert self.log.delete_records(self.start) == self.start

    @rule()
    def retain(self) -> None:
        bases = self.log.segments.bases if self.log.active else []
        whole = sum(base <= self.start for base in bases[1:])
        self.log.delete_segments(self.log.segments.items[:whole], NOW)
        self.log.sweep(NOW + 10**6)

    @invariant()
    def holds_the_same(self) -> None:
        if not hasattr(self, "log"):
            return
        assert self.log.offline is None
        assert (self.log.start_offset, self.log.end_offset) == (self.start, self.end)
        expected = [(base + i, v) for base, values, _ in self.truth for i, v in enumerate(values)]
        assert contents(self.log) == [(offset, value) for offset, value in expected if offset >= self.start]

    @invariant()
    def knows_the_epoch_of_each_batch(self) -> None:
        if hasattr(self, "log") and self.truth:
            base, _, epoch = self.truth[-1]
            if base >= self.start:
                assert self.log.leader_epochs.epoch_of(base) == epoch

    def teardown(self) -> None:
        shutil.rmtree(self.folder)


LogBesideList.TestCase.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
test_the_log_holds_what_a_list_holds = LogBesideList.TestCase

"""A few rounds of `make crash`, for every run of the tests."""

from tests.crash.rounds import Trial


def test_what_was_acknowledged_survives_kill_9():
    with Trial(seed=1) as trial:
        for _ in range(4):
            trial.round()
        assert trial.promised > 0

"""A few rounds of kill -9 in the middle of transactions, for every run of the tests."""

from tests.crash.transactions import Trial


def test_transactions_survive_kill_9_whole_or_not_at_all():
    with Trial(seed=1) as trial:
        for _ in range(5):
            trial.round()
        assert trial.committed > 0

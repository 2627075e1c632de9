"""A few hundred statements of the fuzzer; `make fuzz-sql` tries a hundred thousand that were never tried before."""

from __future__ import annotations

from tests.sql.fuzz import Fuzzer


def test_a_statement_is_executed_or_refused() -> None:
    fuzzer = Fuzzer()
    wrong = [found for seed in range(1500) if (found := fuzzer.run(seed)) is not None]
    assert not wrong, "\n".join(wrong)
    assert min(fuzzer.outcomes["accepted"], fuzzer.outcomes["refused"]) > 200

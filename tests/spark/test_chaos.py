"""The core of `make chaos-spark`: a worker, the driver and the broker of a query die; every record is there once."""

from __future__ import annotations

import pytest

from tests.spark.chaos import campaign


@pytest.mark.needs("java")
@pytest.mark.timeout(1500)
def test_a_worker_the_driver_and_the_broker_die_and_every_record_is_there_once() -> None:
    result = campaign(3, ("worker", "driver", "broker"), calm=1.0, rate=40)
    assert result.passed, result
    assert result.found == result.fed > 0

"""The tests' own plugins, and how hypothesis and Ctrl-C work in them.

`make test` draws the same examples every time and on every machine, so that what is green stays green; `make fuzz`
draws new ones. Neither has a deadline: a slow machine is no fault.

A run in a shell's background is deaf to Ctrl-C, and so would be the commands that tests start and interrupt.

While tests are collected there is no garbage, and looking for it would take more than half of the time. What they are
made of stays to the end, so nobody need look at it again.
"""

import gc
import logging
import signal
from collections.abc import Generator, Iterator

import pytest
from hypothesis import HealthCheck, settings

pytest_plugins = ["tests.needs", "tests.scheduling"]

UNTIMED = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("same", derandomize=True, database=None, **UNTIMED)
settings.register_profile("new", print_blob=True, **UNTIMED)
settings.load_profile("same")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.fixture
def no_logs() -> Iterator[None]:
    """The faults of a simulated world fill the logs."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)

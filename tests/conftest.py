"""The tests' own plugins."""

import pytest

pytest_plugins = ["tests.needs"]


def pytest_configure(config: pytest.Config) -> None:
    """In a worker of pytest-xdist: groups of tests stay together. With pytest 9 the worker is not told of it, and a
    second Spark, or a second Java, would start beside the first.
    """
    if hasattr(config, "workerinput"):
        config.option.loadgroup = True

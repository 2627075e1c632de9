"""The tests' own plugins."""

pytest_plugins = ["tests.needs"]

"""The pytest plugin and a context manager that give tests a real broker."""

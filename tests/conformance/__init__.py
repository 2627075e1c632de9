"""Real clients and public suites against a running broker."""

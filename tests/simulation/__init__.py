"""A seeded world around the production node: virtual time, a disk that loses writes, a network that cuts, and clients
that remember what they were promised. `make simulate` runs ten thousand of them, `make simulate SEED=n` one."""

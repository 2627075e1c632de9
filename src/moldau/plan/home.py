"""Where an application keeps what outlives it: a folder of its own in `state.dir`."""

STATE_DIR = "moldau-state"  # if nothing else is said
FROZEN = "moldau-streams.json"  # in the folder, beside the checkpoint: what must not change between two starts
BEGIN = "moldau-begin.json"  # beside it: where the first batch begins

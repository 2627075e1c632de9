"""Who comes in: the gate in front of the node, and the mechanisms with what they are checked against."""

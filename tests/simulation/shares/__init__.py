"""Share groups: clients that acquire, accept, release, reject, renew and die, and what the node is held to by them."""

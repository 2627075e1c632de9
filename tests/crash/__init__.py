"""kill -9 under load: what was acknowledged is there, in order, once; what was not is retried without doubling."""

"""A topology as data: frozen nodes, checks, its text form, and its execution for one shard."""

"""Clients that copy exactly once: they read in a group, write in transactions, and commit their offsets in them."""

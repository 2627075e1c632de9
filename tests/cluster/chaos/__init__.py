"""Faults on real processes: what real clients were told by a cluster while its nodes were killed, frozen and cut off.

`faults.py` is the table of what befalls a cluster, `clients.py` has those who use it meanwhile, `judge.py` holds all
nodes and clients to one history, with the ledgers of the simulator, and `trial.py` runs the rounds.
"""

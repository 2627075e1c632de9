"""Statements that are over with their answer: pull queries, push queries and INSERT ... VALUES. No I/O.

`pull.py` decides what to look up in a table, `push.py` turns a query into steps whose rows go to a client, `inserts.py`
turns values into a record, `nodes.py` turns values into JSON.
"""

"""Change data capture: rows of databases, and every change of them, in Debezium's format.

`envelope.py`, `settings.py` and `snapshot.py` are shared by all databases; a database has a module or package of its
own for its types and its log.
"""

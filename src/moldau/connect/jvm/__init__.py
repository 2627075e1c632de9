"""Java plugins: connectors, converters, transforms and predicates of jars, in a JVM beside the worker.

`catalogue.py` knows which plugins there are, `host.py` runs the JVM, `link.py` and `codec.py` talk to it, and the rest
makes of a class in a jar what the worker has of its own: a connector, a task, a row of a table.
"""

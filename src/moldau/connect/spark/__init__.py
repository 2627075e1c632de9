"""Workers of Connect in the executors of a Spark cluster.

`driver.py` runs in `moldau connect`, which answers REST and carries no tasks itself. It keeps one job of Spark for each
worker; the job's only task is `executor.py`, which runs an ordinary worker. `lines.py` is the connection between them.
"""

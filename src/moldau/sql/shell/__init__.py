"""The shell: statements and commands of a terminal or a script, executed by a server of ksqlDB's kind over HTTP.

`remote.py` is the server, `shell.py` executes, `entities.py` and `tables.py` write answers, `completing.py` and
`faults.py` help whoever types. Nothing here knows a terminal: `cli/ksql/terminal.py` does.
"""

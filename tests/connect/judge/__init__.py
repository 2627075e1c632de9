"""Connect as the judge: the same random records go through Connect 4.3.1's transforms and converters and through ours.

`inputs.py` makes records, `subjects.py` the settings of each transform, predicate and converter, `ours.py` and `jvm.py`
answer, `trial.py` compares. `python -m tests.connect.judge` is `make judge-connect`.
"""

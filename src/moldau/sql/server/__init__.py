"""The SQL server: statements come in over HTTP, queries run, rows go out.

`service.py` holds everything together and knows nothing of HTTP; `topics.py` says what it needs of a Kafka cluster,
which `broker_topics.py` gets from a broker; `commands.py` has the statements that change the catalogue; `local.py` runs
persistent queries in this process; `materialized.py` is what pull queries look into; `entities.py` has the shapes of
answers; `app.py` is HTTP; `rest_cases.py` runs files of test cases.
"""

"""A lane: one query that carries many flows, which come and go while it runs.

The set of flows is data. It rides in the position of the query, so a batch that is replayed carries the flows that it
carried before, and a change takes effect with the next batch. What a flow runs is a parcel (`moldau.spark.parcels`),
which the position and each row name. All that runs a flow is the conveyor's own.

| part | file |
|---|---|
| what the position says, and how it goes on | `position.py` |
| what the driver wants of each flow | `wanted.py` |
| what a flow runs | `cargo.py` |
| source, steps and sink of the query | `source.py`, `steps.py`, `sink.py` |
| flows that fail, alone | `failures.py` |
| the driver's side | `driver.py` |
"""

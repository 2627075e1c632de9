"""Flows: pipelines as data, deployed to workers that run them on Spark.

**A flow is a definition**: a name, a kind (`streams`; others follow), settings, what to run, and what is wanted of it
(running, paused, stopped, removed). Definitions are records of a compacted topic, and nothing else is the truth: who
deploys, pauses or removes a flow writes a record (`catalog.py`), and workers act on what they read.

**A lane is one Structured Streaming query** under supervision, with a checkpoint and transactional ids of its own. It
carries flows: those with equally many levels with state share one (`shared.py`), some have one to themselves.
`lanes.py` decides that.

**A worker** (`worker.py`) has one Spark session and some lanes. Workers are members of one group, whose leader decides
by a pure function which lane runs where (`assignment.py`). Only what moves is stopped: a lane is given to another
worker after the one before has let it go. A worker that the group has lost stops its lanes at once; should it be too
late to notice, the transactional ids of the lane fence it.

**States** of flows are records of a second compacted topic, written by the worker that runs them (`states.py`). A
flow that fails is held with its error until somebody resumes or changes it, and does not disturb the others.

**Kinds** (`kinds.py`) know how a definition becomes a query, and what to clear away when a flow is removed.
"""

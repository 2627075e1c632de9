"""The web console: a page each for overview, topics, messages and the rest, of any Kafka.

`model/` is pure: what a page shows, made from answers. `pages/` is the rim, one file a page, on NiceGUI; its table says
which pages there are. Between them stand `page_context.py` (what a page works with, and who may act), `frame.py` (what
all pages have around them) and `guard.py` (who comes in).
"""

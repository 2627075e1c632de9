"""What the active controller decides, a file for each decision.

A decision reads the image and a request and returns the records to write and the answer to give once they are
committed. It changes nothing; only `heartbeats.py` remembers something, which dies with the controller's term.
"""

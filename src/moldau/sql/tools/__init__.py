"""Tools around a server: what a file of statements would change (`changes.py`), migrations, tests of statements."""

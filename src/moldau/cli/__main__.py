"""`python -m moldau.cli`."""

from moldau.cli import main

main()

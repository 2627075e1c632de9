"""`python -m moldau`: the same as the command `moldau`."""

from moldau.cli import main

main()

"""The source: what a batch reads, how it is read, and the columns of the result."""

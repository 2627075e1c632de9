"""Batches of records to Arrow columns and back. Needs pyarrow, and is fast with numba: the extra `spark` has both."""
